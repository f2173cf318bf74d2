"""Replays recorded conversations call by call through sessions.

For every message of the agent, the session prepares the prompt from the messages before it. It is compared with the
prompt of an agent without memory, in the same window and without one. The recording has the real reply of the model:
the ids in its calls show what the prompt had to contain.

The checks of a prompt read the request and the recording only, not memory's own report, which they are meant to check.
A use of an id is judged by locations: whether it appeared before, who used it first, and whether it is in the part that
is still sent.

The home is temporary unless `keep` is given. The clock advances a few seconds between calls, so that the provider's
cache is as warm as for a working agent, whenever the replay runs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import accumulate, dropwhile
from pathlib import Path
from time import perf_counter

from inmind.apps.replay.baseline import BaselineAgent, TokenSizes, TruncatingHost
from inmind.apps.replay.files import Recording
from inmind.apps.replay.report import IdUse, MissingItem, ReplayReport, total
from inmind.core.encoding import to_json
from inmind.core.events.session import RetainedItem
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Image, Message, Opaque, Part, Result, Text
from inmind.core.text import contains_id, id_positions
from inmind.entities.extract.identity import parse_tool_name
from inmind.entities.find_ids import FoundId, find_ids
from inmind.entities.nouns import UNTYPED
from inmind.entities.window import Entities
from inmind.errors import ContextOverflow, InvalidInput
from inmind.history.compaction.policy import DEFAULT_POLICY, CompressionPolicy
from inmind.history.compaction.retention import extract_items, last_request, merge_items, missing_items
from inmind.history.turns import TurnCall, mark_command_output
from inmind.memory.memory import Memory
from inmind.memory.session_opener import DEFAULT_RESERVE, DEFAULT_WINDOW
from inmind.prompt.anchor import CACHE_SECONDS
from inmind.prompt.budget import WindowLimits
from inmind.prompt.layers.builtin import RETAINED_LAYER, EntityLayer
from inmind.prompt.report import Prompt, Report
from inmind.session.session import Session
from inmind.testing import ManualClock

CALL_SECONDS = 5

MAX_RESERVE_SHARE = 1 / 8
"""Maximum share of the reserve in a small window."""

ENTITY_PART = f"memory:{EntityLayer().name}"
"""Name of the entity layer in a prompt report."""
HOST_PARTS = frozenset({"tools", "system", "history"})
"""Parts of a prompt that exist without memory; its tools are added separately."""


def replay(
    recordings: Iterable[Recording],
    *,
    window: int = DEFAULT_WINDOW,
    compression: CompressionPolicy = DEFAULT_POLICY,
    memory_tools: bool = True,
    keep: Path | None = None,
) -> Generator[ReplayReport]:
    """Replay each recording in its own session and yield its report.

    `keep` saves the sessions in that folder. The recorded agent cannot call memory tools; they are offered all the
    same, as in any session, because they cost tokens. `memory_tools=False` leaves them out.
    """
    reserve = min(DEFAULT_RESERVE, int(window * MAX_RESERVE_SHARE))
    limits = WindowLimits(window=window, reserve=reserve, cache_seconds=CACHE_SECONDS)
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise InvalidInput(field="keep", value=str(keep), expected="a new or empty folder")
    folder = tempfile.TemporaryDirectory(prefix="inmind-replay-") if keep is None else nullcontext(keep)
    clock = ManualClock()
    with folder as home, Memory.open(home, clock=clock) as memory:
        for number, recording in enumerate(recordings, start=1):
            id = f"recording-{number}"
            session = memory.session(
                id,
                resource=id,
                window=window,
                reserve=reserve,
                cwd=home,
                memory_tools=memory_tools,
                compression=compression,
            )
            yield _Player(recording, session, limits).run(clock)


class _Player:
    """Replay of one recording in one session."""

    def __init__(self, recording: Recording, session: Session, limits: WindowLimits) -> None:
        self._recording, self._session, self._limits = recording, session, limits
        self._locations = IdLocations(recording)
        self._sizes = sizes = TokenSizes(recording)
        self._host, self._bare = TruncatingHost(sizes), BaselineAgent(sizes, limits.spendable)
        self._full = BaselineAgent(sizes)
        self._report = ReplayReport(
            name=recording.name,
            memory=self._host.cost,
            bare=self._bare.cost,
            full=self._full.cost,
            left_out=recording.left_out,
        )
        self._recorded = 0  # messages recorded in the session
        self._items: list[RetainedItem] = []
        self._items_stop = 0

    def run(self, clock: ManualClock) -> ReplayReport:
        report = self._report
        for stop in self._call_indexes():
            clock.advance(seconds=CALL_SECONDS)
            prompt = self._host.call(stop, partial(self._prepare, stop=stop))
            usage, in_full = self._bare.send(stop), self._full.send(stop)
            if prompt is None:  # only calls that every agent could make are compared
                continue
            report.bare.usage = total([report.bare.usage, usage])
            report.full.usage = total([report.full.usage, in_full])
            self._count_tokens(prompt.report.tokens)
            sent = SentPrompt.of(prompt, self._sizes)
            self._check_prompt(sent, stop, prompt.report)
            report.uses += self._id_uses(stop, sent, sent_bare=usage is not None)
        report.compacted += [compaction.payload for compaction in self._session.state.history.compactions]
        stubs = [stub for compacted in report.compacted for stub in compacted.stubs]
        report.stub_tokens += [sum(map(self._sizes.message, stub.messages)) for stub in stubs]
        report.memory.usage = self._session.usage
        return report

    def _count_tokens(self, tokens: Mapping[str, int]) -> None:
        report = self._report
        report.tool_tokens = tokens["tools"] - self._sizes.value(self._recording.tools)
        report.entity_tokens.append(tokens.get(ENTITY_PART, 0) + tokens["changes"])
        added = sum(size for part, size in tokens.items() if part not in HOST_PARTS)
        report.memory_tokens.append(added + report.tool_tokens)

    def _call_indexes(self) -> Iterator[int]:
        """Indexes of the agent's messages, without an initial greeting."""
        roles = enumerate(wire["role"] for wire in self._recording.messages)
        after_greeting = dropwhile(lambda item: item[1] == "assistant", roles)
        return (place for place, role in after_greeting if role == "assistant")

    def _prepare(self, start: int, stop: int) -> Prompt:
        recording = self._recording
        started = perf_counter()
        try:
            prompt = self._session.prepare(
                recording.messages[start:stop],
                system=recording.system,
                tools=recording.tools,
                format=recording.format,
            )
        except ContextOverflow:
            # Record messages that are dropped from the prompt: memory must know them anyway.
            if self._recorded < stop:
                self._session.add(recording.messages[self._recorded : stop], format=recording.format)
                self._recorded = stop
            raise
        self._report.seconds.append(perf_counter() - started)
        self._recorded = stop
        return prompt

    def _check_prompt(self, sent: SentPrompt, stop: int, prompt_report: Report) -> None:
        """Check that the prompt fits, is valid for the provider, and contains all expected items."""
        report, history = self._report, self._session.state.history
        report.over_window += sent.tokens > self._limits.window - self._limits.reserve
        report.unpaired += sent.unpaired
        expected = {item.text: item for item in (*self._expected_items(stop), *history.items)}
        omitted = {item.text for item in history.dropped}
        if any(one.startswith(f"{RETAINED_LAYER}: ") for one in prompt_report.cut):
            omitted.update(item.text for item in history.items if item.kind in ("rule", "decision"))
        report.expected_items += len(expected)
        for item in missing_items(list(expected.values()), sent.text):
            if item.text in omitted:
                report.omitted += 1
            else:
                missing = MissingItem(recording=report.name, prompt=report.prompts, kind=item.kind, text=item.text)
                report.missing.append(missing)

    def _expected_items(self, stop: int) -> Iterator[RetainedItem]:
        """Items that must be retained, derived from the recording alone."""
        messages, fresh = self._sizes.messages[:stop], range(self._items_stop, stop)
        first = not any(item.kind == "goal" for item in self._items)
        new_items = extract_items(mark_command_output(messages), first=first, places=fresh)
        self._items = merge_items(self._items, new_items, max_tokens=sys.maxsize, count=len).kept
        self._items_stop = stop
        yield from self._items
        if (request := last_request(reversed(messages))) is not None:
            yield request

    def _id_uses(self, stop: int, sent: SentPrompt, *, sent_bare: bool) -> Iterator[IdUse]:
        locations, entities = self._locations, self._session.state.entities
        for call in self._sizes.messages[stop].calls:
            for used_id in _ids_in_call(call):
                yield IdUse(
                    recording=self._report.name,
                    prompt=self._report.prompts,
                    tool=call.tool,
                    argument=used_id.path,
                    id=used_id.id,
                    kind=used_id.kind,
                    known=locations.appeared_before(used_id.id, stop),
                    held=_is_in_window(entities, used_id),
                    in_prompt=contains_id(sent.text, used_id.id),
                    in_bare=sent_bare and locations.is_sent(used_id.id, self._bare.start, stop),
                    user_given=locations.is_first_from_user(used_id.id),
                )


def _ids_in_call(call: TurnCall) -> Iterable[FoundId]:
    """Each id or name in a call once; none if the arguments are not JSON."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ()
    tool = parse_tool_name(call.tool)
    ids = find_ids(arguments, own_type=tool.type or UNTYPED, tool_nouns=tool.nouns)
    return {used_id.id: used_id for used_id in ids}.values()


def _is_in_window(entities: Entities, used_id: FoundId) -> bool:
    """True if the id is in the entity window.

    A name also counts as the name of an entity or part.
    """
    if entities.holds(used_id.id):
        return True
    names = (name for entity in entities for name in (*entity.names, *(part.name for part in entity.parts)))
    return used_id.kind == "name" and used_id.id in names


HEAD = -1
"""Location of the system prompt and the tools, before the conversation."""

_SEPARATOR = "\x00"


@frozen(kw_only=True)
class SentPrompt:
    text: str
    """The complete text, from the tools to the context meter."""
    tokens: int
    unpaired: int
    """Calls without a result at the expected place, and results without a call."""

    @classmethod
    def of(cls, prompt: Prompt, sizes: TokenSizes) -> SentPrompt:
        fmt, head = FORMATS[prompt.format], (prompt.tools, prompt.system)
        messages = [fmt.read(wire) for wire in prompt.messages]
        return cls(
            text="\n".join([*map(to_json, filter(None, head)), *map(_message_text, messages)]),
            tokens=sum(map(sizes.value, head)) + sum(map(sizes.message, prompt.messages)),
            unpaired=count_unpaired(messages, together=fmt.rules.result_position == "together"),
        )


def count_unpaired(messages: Iterable[Message], *, together: bool) -> int:
    """Number of calls and results that are not adjacent.

    Results must follow their calls directly; with `together`, all of them in one message.
    """
    faults, pending = 0, set[str]()
    for message in messages:
        answered = {result.id for result in message.results}
        faults += len(answered - pending)
        pending -= answered
        if together or not answered:
            faults += len(pending)
            pending.clear()
        pending |= {call.id for call in message.calls}
    return faults + len(pending)


class IdLocations:
    def __init__(self, recording: Recording) -> None:
        fmt = FORMATS[recording.format]
        messages = [fmt.read(wire) for wire in recording.messages]
        texts = [f"{to_json(recording.system)}\n{to_json(recording.tools)}", *map(_message_text, messages)]
        self._text = _SEPARATOR.join(texts)
        self._starts = [0, *accumulate(len(text) + len(_SEPARATOR) for text in texts)]
        self._roles = [message.role for message in messages]
        self._by_id: dict[str, tuple[int, ...]] = {}

    def locations(self, id: str) -> tuple[int, ...]:
        """Indexes of the messages that contain it, in order; `HEAD` comes first."""
        if id not in self._by_id:
            texts = {bisect_right(self._starts, position) - 1 for position in id_positions(id, self._text)}
            self._by_id[id] = tuple(text + HEAD for text in sorted(texts))
        return self._by_id[id]

    def appeared_before(self, id: str, before: int) -> bool:
        """True if it appeared before this message."""
        return any(place < before for place in self.locations(id)[:1])

    def is_sent(self, id: str, start: int, stop: int) -> bool:
        """True if a request with the messages from `start` to `stop` contains it."""
        return any(place == HEAD or start <= place < stop for place in self.locations(id))

    def is_first_from_user(self, id: str) -> bool:
        first = next(iter(self.locations(id)), HEAD)
        return first != HEAD and self._roles[first] == "user"


def _message_text(message: Message) -> str:
    """Text, arguments and results of a message, without the names of calls."""
    return "\n".join(text for part in message.parts for text in _texts(part))


def _texts(part: Part) -> Iterator[str]:
    match part:
        case Text(text=text):
            yield text
        case Call(arguments=arguments):
            yield arguments
        case Result(parts=parts):
            for inner in parts:
                yield from _texts(inner)
        case Opaque(body=body):
            yield to_json(body)
        case Image():
            pass
