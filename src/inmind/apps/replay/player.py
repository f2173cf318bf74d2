"""Recorded conversations, played call by call through sessions.

For every message that the agent sent, the session prepares the prompt that the model would have been sent, from the
messages before it; beside it stands what an agent without memory would have sent, in the same window and without one.
What the model then really did is in the recording: the ids that it used tell what it needed to know.

The home is a temporary one, unless somebody wants to look into it afterwards. Time stands still but for a few seconds
between two calls, so that a replay finds the provider's cache as warm as a working agent does, whenever it runs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter

from inmind.apps.replay.baseline import BareAgent
from inmind.apps.replay.id_usage import Appearances
from inmind.apps.replay.prompt_checks import Sent
from inmind.apps.replay.recording import Recording
from inmind.apps.replay.report import ReplayReport, Side, Unsaid, Use, added
from inmind.apps.replay.truncating_host import Host, Sizes, turns_of
from inmind.core.events.session import RetainedItem
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Message
from inmind.core.pricing import Usage
from inmind.core.text import stands_in
from inmind.entities.extract.tool_name import parse_tool_name
from inmind.entities.ids.arguments import FoundId, find_ids
from inmind.entities.nouns import UNTYPED
from inmind.entities.window import Entities
from inmind.errors import ContextOverflow, InvalidInput
from inmind.history.command_output import mark_command_output
from inmind.history.compaction.policy import DEFAULT_POLICY, CompressionPolicy
from inmind.history.compaction.retention import extract_items, last_request, merge_items, missing_items
from inmind.history.turns import Speaker, TurnCall, TurnMessage, TurnResult
from inmind.memory.memory import Memory
from inmind.memory.session_opener import DEFAULT_RESERVE, DEFAULT_WINDOW
from inmind.prompt.anchor import CACHE_SECONDS
from inmind.prompt.layers.builtin import EntityLayer
from inmind.prompt.layers.retained import RETAINED
from inmind.prompt.plan import WindowLimits
from inmind.prompt.report import Prompt, Report
from inmind.session.session import Session

BETWEEN_CALLS = timedelta(seconds=5)

MOST_RESERVED = 1 / 8
"""Of a window that is forced down: the reserve of a large one would be all of it."""

BLOCK = f"memory:{EntityLayer().name}"
"""What a prompt's report calls the tokens of that layer."""
THE_HOSTS_OWN = frozenset({"tools", "system", "history"})
"""Parts of a prompt that are there without memory too."""


def replay(
    recordings: Iterable[Recording],
    *,
    window: int = DEFAULT_WINDOW,
    compression: CompressionPolicy = DEFAULT_POLICY,
    memory_tools: bool = False,
    keep: Path | None = None,
) -> Generator[ReplayReport]:
    """Play each in a session of its own, and report as each ends; the sessions stay in the folder `keep`, if given.

    The agent of a recording cannot call what it was never offered. `memory_tools`: the offer is made all the same, to
    see what it costs.
    """
    reserve = min(DEFAULT_RESERVE, int(window * MOST_RESERVED))
    limits = WindowLimits(window=window, reserve=reserve, cache_seconds=CACHE_SECONDS)
    clock = _Clock()
    with _home(keep) as home, Memory.open(home, clock=clock) as memory:
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
            yield _Play(recording, session, limits).through(clock)


@contextmanager
def _home(keep: Path | None) -> Generator[Path]:
    if keep is not None:
        if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
            raise InvalidInput(field="keep", value=str(keep), expected="a folder that is new or empty")
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="inmind-replay-") as home:
        yield Path(home)


@dataclass
class _Clock:
    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class _Play:
    """One recording on its way through one session."""

    def __init__(self, recording: Recording, session: Session, limits: WindowLimits) -> None:
        self._recording, self._session = recording, session
        self._spoken = FORMATS[recording.format]
        self._appearances = Appearances(recording)
        sizes, turns = Sizes(recording), turns_of(recording)
        self._sizes, self._turns, self._limits = sizes, turns, limits
        self._host = Host(turns, sizes)
        self._bare = BareAgent(Host(turns, sizes), sizes, limits.spendable)
        self._full = BareAgent(Host(turns, sizes), sizes)
        self._taken_in = 0  # messages that the session has heard of
        self._seconds: list[float] = []
        self._entity_tokens: list[int] = []
        self._memory_tokens: list[int] = []
        self._uses: list[Use] = []
        self._over_window = self._unpaired = self._must_survive = 0
        self._unsaid: list[Unsaid] = []
        self._no_room = 0
        self._heard: list[TurnMessage] = []
        self._found: list[RetainedItem] = []

    def through(self, clock: _Clock) -> ReplayReport:
        bare, full = Usage(), Usage()
        for stop in self._asked_at():
            clock.now += BETWEEN_CALLS
            prompt = self._host.ask(stop, partial(self._prepare, stop=stop))
            costs, in_full = self._bare.ask(stop), self._full.ask(stop)
            if prompt is None:  # what the others could still have sent is not held against them
                continue
            bare, full = added(bare, costs or Usage()), added(full, in_full or Usage())
            tokens = prompt.report.tokens
            self._entity_tokens.append(tokens.get(BLOCK, 0) + tokens["changes"])
            self._memory_tokens.append(sum(size for part, size in tokens.items() if part not in THE_HOSTS_OWN))
            sent = Sent.of(prompt, self._sizes)
            self._inspect(sent, stop, prompt.report)
            self._uses += self._used_at(stop, sent, sent_bare=costs is not None)
        compacted = [compaction.payload for compaction in self._session.state.history.compactions]
        return ReplayReport(
            name=self._recording.name,
            memory=_side(self._host, self._session.usage),
            bare=_side(self._bare.host, bare),
            full=_side(self._full.host, full),
            uses=self._uses,
            over_window=self._over_window,
            unpaired=self._unpaired,
            must_survive=self._must_survive,
            unsaid=self._unsaid,
            no_room=self._no_room,
            compacted=compacted,
            stub_tokens=[sum(map(self._sizes.message, stub.messages)) for what in compacted for stub in what.stubs],
            entity_tokens=self._entity_tokens,
            memory_tokens=self._memory_tokens,
            seconds=self._seconds,
            left_out=self._recording.left_out,
        )

    def _asked_at(self) -> Iterator[int]:
        """Before which messages the model was asked: the agent's, but for a greeting that nobody asked for."""
        messages = self._recording.messages
        spoken = (place for place, wire in enumerate(messages) if wire["role"] != "assistant")
        first = next(spoken, len(messages))
        return (place for place in range(first, len(messages)) if messages[place]["role"] == "assistant")

    def _prepare(self, start: int, stop: int) -> Prompt:
        recording = self._recording
        begun = perf_counter()
        try:
            prompt = self._session.prepare(
                recording.messages[start:stop],
                system=recording.system,
                tools=recording.tools,
                format=recording.format,
            )
        except ContextOverflow:
            # What is dropped next has been said all the same: memory hears of it, whatever the model is sent.
            if self._taken_in < stop:
                self._session.add(recording.messages[self._taken_in : stop], format=recording.format)
                self._taken_in = stop
            raise
        self._seconds.append(perf_counter() - begun)
        self._taken_in = stop
        return prompt

    def _inspect(self, sent: Sent, stop: int, report: Report) -> None:
        """What a prompt owes: that it fits, that the provider takes it, and that what must survive is in it."""
        self._over_window += sent.tokens > self._limits.window - self._limits.reserve
        self._unpaired += sent.unpaired
        history = self._session.state.history
        owed = {item.text: item for item in (*self._owed_at(stop), *history.items)}
        told = {item.text for item in history.dropped}
        if any(one.startswith(f"{RETAINED}: ") for one in report.cut):
            told.update(item.text for item in history.items if item.kind in ("rule", "decision"))
        self._must_survive += len(owed)
        for item in missing_items(list(owed.values()), sent.text):
            if item.text in told:
                self._no_room += 1
                continue
            gone = Unsaid(recording=self._recording.name, prompt=len(self._seconds), kind=item.kind, text=item.text)
            self._unsaid.append(gone)

    def _owed_at(self, stop: int) -> Iterator[RetainedItem]:
        """What must survive of the messages so far, told by the recording alone: whatever a session took for it."""
        fresh = range(len(self._heard), stop)
        self._heard += (_spoken(self._spoken.read(self._recording.messages[place]), place) for place in fresh)
        first = not any(item.kind == "goal" for item in self._found)
        found = extract_items(mark_command_output(self._heard), first=first, places=fresh)
        self._found = merge_items(self._found, found, max_tokens=sys.maxsize, count=len).kept
        yield from self._found
        if (request := last_request(reversed(self._heard))) is not None:
            yield request

    def _used_at(self, stop: int, sent: Sent, *, sent_bare: bool) -> Iterator[Use]:
        calls = self._spoken.read(self._recording.messages[stop]).calls
        said, entities = self._appearances, self._session.state.entities
        for call in calls:
            for found in _handles_of(call):
                yield Use(
                    recording=self._recording.name,
                    prompt=len(self._seconds),
                    tool=call.name,
                    argument=found.path,
                    id=found.id,
                    kind=found.kind,
                    known=said.known(found.id, stop),
                    held=_in_mind(entities, found),
                    in_prompt=stands_in(sent.text, found.id),
                    in_bare=sent_bare and said.sent(found.id, self._bare.host.start, stop),
                    user_given=said.user_said_it_first(found.id),
                )


def _spoken(message: Message, place: int) -> TurnMessage:
    by: Speaker = "operator" if message.role in ("system", "developer") else message.role
    answers = tuple(TurnResult(result.id, "", 0) for result in message.results)
    asks = tuple(TurnCall(call.id, call.name, call.arguments) for call in message.calls)
    return TurnMessage(seq=place, speaker=by, text=message.text, calls=asks, results=answers)


def _handles_of(call: Call) -> Iterable[FoundId]:
    """Each id or name once, as extraction finds them; none in arguments that are no JSON."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ()
    tool = parse_tool_name(call.name)
    return {
        found.id: found for found in find_ids(arguments, own_type=tool.type or UNTYPED, tool_nouns=tool.nouns)
    }.values()


def _in_mind(entities: Entities, found: FoundId) -> bool:
    """An id is held as one. A name is held also where it is what something in mind is called."""
    if entities.holds(found.id):
        return True
    called = (name for entity in entities for name in (*entity.names, *(part.name for part in entity.parts)))
    return found.kind == "name" and found.id in called


def _side(host: Host, ledger: Usage) -> Side:
    return Side(ledger=ledger, cut_messages=host.cut_messages, cut_tokens=host.cut_tokens, did_not_fit=host.did_not_fit)
