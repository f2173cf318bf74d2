"""Recorded conversations, played call by call through sessions.

For every message that the agent sent, the session prepares the prompt that the model would have been sent, from the
messages before it; beside it stands what an agent without memory would have sent. What the model then really did is in
the recording: the ids that it used tell what it needed to know.

The home is a temporary one, unless somebody wants to look into it afterwards. Time stands still but for a few seconds
between two calls, so that a replay finds the provider's cache as warm as a working agent does, whenever it runs.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter

from inmind.entities.extract.calls import tool_named
from inmind.entities.ids.arguments import Found, ids_in
from inmind.entities.nouns import UNTYPED
from inmind.entities.window import Entities
from inmind.errors import ContextOverflow, InvalidInput
from inmind.memory import RESERVE, WINDOW, Memory
from inmind.prompt.anchor import CACHE_SECONDS
from inmind.prompt.formats import FORMATS
from inmind.prompt.formats.parts import Call
from inmind.prompt.layer import EntityLayer
from inmind.prompt.ledger import Ledger
from inmind.prompt.plan import Limits
from inmind.prompt.report import Prompt
from inmind.replay.appearances import Appearances
from inmind.replay.bare import BareAgent
from inmind.replay.host import Host, Sizes, turns_of
from inmind.replay.recording import Recording
from inmind.replay.report import ReplayReport, Side, Use, added
from inmind.session import Session
from inmind.text import stands_in

BETWEEN_CALLS = timedelta(seconds=5)

MOST_RESERVED = 1 / 8
"""Of a window that is forced down: the reserve of a large one would be all of it."""

ENTITIES = EntityLayer()
BLOCK = f"memory:{ENTITIES.name}"
"""What a prompt's report calls the tokens of that layer."""
THE_HOSTS_OWN = frozenset({"tools", "system", "history"})
"""Parts of a prompt that are there without memory too."""


def replay(
    recordings: Iterable[Recording], *, window: int = WINDOW, keep: Path | None = None
) -> Generator[ReplayReport]:
    """Play each in a session of its own, and report as each ends; the sessions stay in the folder `keep`, if given."""
    reserve = min(RESERVE, int(window * MOST_RESERVED))
    limits = Limits(window=window, reserve=reserve, cache_seconds=CACHE_SECONDS)
    clock = _Clock()
    with _home(keep) as home, Memory.open(home, clock=clock) as memory:
        for number, recording in enumerate(recordings, start=1):
            id = f"recording-{number}"
            # The agent of a recording cannot call what it was never offered: with memory's tools it would be another.
            session = memory.session(id, resource=id, window=window, reserve=reserve, cwd=home, memory_tools=False)
            yield _Play(recording, session, limits.spendable).through(clock)


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

    def __init__(self, recording: Recording, session: Session, spendable: int) -> None:
        self._recording, self._session = recording, session
        self._spoken = FORMATS[recording.format]
        self._appearances = Appearances(recording)
        sizes, turns = Sizes(recording), turns_of(recording)
        self._sizes, self._spendable = sizes, spendable
        self._host = Host(turns, sizes)
        self._bare = BareAgent(Host(turns, sizes), sizes, spendable)
        self._taken_in = 0  # messages that the session has heard of
        self._around = 0  # tokens of a prompt beside its history and its entities
        self._seconds: list[float] = []
        self._entity_tokens: list[int] = []
        self._memory_tokens: list[int] = []
        self._uses: list[Use] = []

    def through(self, clock: _Clock) -> ReplayReport:
        ledger = Ledger()
        for stop in self._asked_at():
            clock.now += BETWEEN_CALLS
            prompt = self._host.ask(stop, partial(self._prepare, stop=stop))
            bare = self._bare.ask(stop)
            if prompt is None:  # what the other one could still have sent is not held against it
                continue
            ledger = added(ledger, bare or Ledger())
            tokens = prompt.report.tokens
            self._entity_tokens.append(tokens.get(BLOCK, 0) + tokens["changes"])
            self._memory_tokens.append(sum(size for part, size in tokens.items() if part not in THE_HOSTS_OWN))
            self._uses += self._used_at(stop, sent_bare=bare is not None)
        return ReplayReport(
            name=self._recording.name,
            memory=_side(self._host, self._session.ledger),
            bare=_side(self._bare.host, ledger),
            uses=self._uses,
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
            self._leave_room(start, stop)
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
        self._around = sum(
            size for part, size in prompt.report.tokens.items() if part not in ("history", "changes", BLOCK)
        )
        return prompt

    def _leave_room(self, start: int, stop: int) -> None:
        """Memory gets what the history leaves of the window: before that is too little, the host drops a turn."""
        needed = self._around + ENTITIES.budget.max + self._sizes.between(start, stop)
        if self._around and needed > self._spendable and self._host.can_drop(stop):
            raise ContextOverflow(needed=needed, spendable=self._spendable)

    def _used_at(self, stop: int, *, sent_bare: bool) -> Iterator[Use]:
        calls = self._spoken.read(self._recording.messages[stop]).calls
        if not calls:
            return
        mind = self._session.mind
        blocks = (*mind.standing.blocks, *mind.standing.fresh)
        memory = "\n".join([*(block.text for block in blocks), mind.standing.tail])
        said = self._appearances
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
                    held=_in_mind(mind.entities, found),
                    in_prompt=said.sent(found.id, self._host.start, stop) or stands_in(memory, found.id),
                    in_bare=sent_bare and said.sent(found.id, self._bare.host.start, stop),
                    user_given=said.user_said_it_first(found.id),
                )


def _handles_of(call: Call) -> Iterable[Found]:
    """Each id or name once, as extraction finds them; none in arguments that are no JSON."""
    try:
        arguments = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return ()
    tool = tool_named(call.name)
    return {found.id: found for found in ids_in(arguments, own=tool.type or UNTYPED, about=tool.nouns)}.values()


def _in_mind(entities: Entities, found: Found) -> bool:
    """An id is held as one. A name is held also where it is what something in mind is called."""
    if entities.holds(found.id):
        return True
    called = (name for entity in entities for name in (*entity.names, *(part.name for part in entity.parts)))
    return found.kind == "name" and found.id in called


def _side(host: Host, ledger: Ledger) -> Side:
    return Side(ledger=ledger, cut_messages=host.cut_messages, cut_tokens=host.cut_tokens, did_not_fit=host.did_not_fit)
