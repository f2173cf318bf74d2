"""One stream, folded and followed: read, decide, append, and again when somebody was faster.

This is the only loop that turns decisions into events. A decision is a pure function of the state; when
another writer got in between, the new events are folded and the decision is taken again on what is true now.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any, Generic, TypeVar

from inmind.core.encoding import digest, to_json
from inmind.core.events.base import Draft, Event
from inmind.core.events.fold import Fold
from inmind.core.events.session import Reverted
from inmind.core.fork import tell_after_fork
from inmind.core.frozen import frozen
from inmind.core.timestamps import from_microseconds, to_microseconds
from inmind.errors import Conflict, InvalidInput, NotFound, StoreError
from inmind.store.protocol import Appended, Batch, Clock, Key, Snapshot, Store

log = logging.getLogger("inmind")

SNAPSHOT_EVERY = 200
"""Events between snapshots: folding this many takes about as long as reading the snapshot."""

SNAPSHOT_SHARE = 2_000
"""Characters of a snapshot that one event pays for: a state that grows is frozen less often, or all the freezing
together would grow with its square."""

# Every lost race means that another writer won it, so this many in a row is a fault and not bad luck.
MOST_RETRIES = 1_000

S = TypeVar("S")
R = TypeVar("R")


@frozen
class Decision(Generic[S, R]):
    """What shall happen, what the call then answers, and what it leads to where that was worked out already."""

    drafts: Sequence[Draft]
    answer: R
    foreseen: S | None = None
    beside: Sequence[Draft] = ()
    """What shall happen in the stream beside this one, together with it or not at all."""
    binding: bool = True
    """Its key is kept. What is refused binds nobody: it may be asked again, under the same key."""


@frozen
class Done(Generic[R]):
    """The outcome of a commit. `answer` is None when the key had been used before: see `appended`."""

    appended: Appended
    answer: R | None
    events: Sequence[Event] = ()
    """What this commit added; empty when it added nothing."""


@frozen
class _Next(Generic[S]):
    """Events that a stream will have if they are stored, and what they lead to."""

    events: Sequence[Event]
    state: S


class Stream(Generic[S]):
    """The newest known state of one stream, and the way to change it."""

    def __init__(self, store: Store, name: str, fold: Fold[S], clock: Clock) -> None:
        self.name = name
        self._store, self._fold, self._clock = store, fold, clock
        self._lock = threading.RLock()
        self._spoilt = 0
        """Where the snapshot stands that could not be used; 0 when there is none."""
        self._snapshot_at, self._snapshot_size = 0, 0
        self._state, self._version = self._load(until=None)
        self._forked = False
        tell_after_fork(self)

    @property
    def state(self) -> S:
        return self._state

    @property
    def version(self) -> int:
        return self._version

    def after_fork(self) -> None:
        """A thread of the parent may have been in the middle of a step: the child loads its own state."""
        self._lock = threading.RLock()
        self._forked = True

    def refresh(self) -> S:
        """Fold in what others have appended since."""
        with self._lock:
            if self._forked:
                self._state, self._version = self._load(until=None)
                self._forked = False
            for event in self._store.read(self.name, after=self._version):
                self._take(event)
            return self._state

    def at(self, seq: int) -> S:
        """The state right after event `seq`, whatever happened since."""
        if seq < 0 or seq > self._store.version(self.name):
            raise NotFound(what="event", name=f"{self.name}#{seq}")
        return self._load(until=seq)[0]

    def snapshot_of(self, state: S, seq: int) -> Snapshot:
        """The snapshot that a state has after event `seq`."""
        body = self._sealed(seq, to_json(self._fold.freeze(state)))
        return Snapshot(seq=seq, fold=self._fold.version, body=body)

    def is_sealed(self, snapshot: Snapshot) -> bool:
        """Is it as it was written?"""
        return snapshot.body == self._sealed(snapshot.seq, snapshot.body.partition("\n")[2])

    def commit(
        self,
        decide: Callable[[S, datetime], Decision[S, R]],
        *,
        key: Key | None = None,
        beside: Stream[Any] | None = None,
    ) -> Done[R]:
        """Carry out a decision exactly once, on the newest state.

        What it leads to is folded before it is stored: an event that cannot be folded would close the stream for
        ever. A key is kept also when there is nothing to store, since it must not come to mean something else; only a
        decision that is not `binding` leaves it free.

        `beside`: another stream that the decision may change too, and whose state then is what it was decided on.
        """
        with self._lock, beside._lock if beside else nullcontext():
            if self._forked:
                self.refresh()
            if beside and beside._forked:
                beside.refresh()
            version = self._version
            for _ in range(MOST_RETRIES):
                if key is not None and (earlier := self._store.receipt(self.name, key)) is not None:
                    return Done(appended=earlier, answer=None)
                version, now = self._version, self._clock()
                decision = decide(self._state, now)
                kept = key if decision.binding else None
                if not decision.drafts and not decision.beside and kept is None:
                    if self._store.version(self.name) != version:
                        self.refresh()
                        continue
                    return Done(Appended(first=version + 1, last=version, at=now), decision.answer)
                ours = self._next(decision.drafts, now, decision.foreseen)
                theirs, batch = None, None
                if beside and decision.beside:
                    theirs = beside._next(decision.beside, now)
                    batch = Batch(beside.name, decision.beside, beside._version)
                try:
                    appended = self._store.append(
                        self.name, decision.drafts, expected=version, at=now, key=kept, beside=batch
                    )
                except Conflict as conflict:
                    if conflict.actual <= conflict.expected:
                        raise  # the store has lost what we hold: retrying would decide on a state that never was
                    (beside if beside and conflict.stream == beside.name else self).refresh()
                    continue
                if appended.repeated:
                    return Done(appended=appended, answer=None)
                self._advance(ours)
                if beside and theirs:
                    beside._advance(theirs)
                return Done(appended=appended, answer=decision.answer, events=ours.events)
            raise Conflict(stream=self.name, expected=version, actual=self._store.version(self.name))

    def append(self, *drafts: Draft, key: Key | None = None) -> Appended:
        """Something happened, whatever the state is."""
        return self.commit(lambda _, __: Decision(drafts, None), key=key).appended

    def suppose(self, decide: Callable[[S, datetime], R]) -> R:
        """What would be decided now, on the newest state; nothing comes of it."""
        with self._lock:
            return decide(self.refresh(), self._clock())

    def foresee(self, state: S, version: int, drafts: Sequence[Draft], now: datetime) -> S:
        """The state that these drafts would lead to, without storing anything."""
        for event in _events(self.name, version, drafts, now):
            state = self._fold.apply(state, event)
        return state

    def _next(self, drafts: Sequence[Draft], now: datetime, foreseen: S | None = None) -> _Next[S]:
        events = _events(self.name, self._version, drafts, from_microseconds(to_microseconds(now)))
        return _Next(events, self._folded(events) if foreseen is None else foreseen)

    def _folded(self, events: Sequence[Event]) -> S:
        """The state that these events will lead to, which are not stored yet."""
        state = self._state
        passed = {self._version: state}
        for event in events:
            if isinstance(event.payload, Reverted):
                state = self._fold.revert(self._gone_back(event.payload.to, passed, event), state, event)
            else:
                state = self._fold.apply(state, event)
            passed[event.seq] = state
        return state

    def _gone_back(self, to: int, passed: Mapping[int, S], event: Event) -> S:
        if not 0 <= to < event.seq:
            raise NotFound(what="earlier event", name=to, hint=f"the newest is {event.seq - 1}")
        return passed[to] if to in passed else self._load(until=to)[0]

    def _advance(self, then: _Next[S]) -> None:
        version = self._version + len(then.events)
        self._state, self._version = then.state, version
        due = max(SNAPSHOT_EVERY, self._snapshot_size // SNAPSHOT_SHARE)
        if version - self._snapshot_at >= due or 0 < self._spoilt < version:
            self._keep_snapshot()

    def _take(self, event: Event) -> None:
        """An event that somebody else has stored."""
        self._state, self._version = self._folded([event]), event.seq

    def _keep_snapshot(self) -> None:
        """A snapshot only saves time: when it cannot be written the call that came here has still succeeded."""
        self._snapshot_at, self._spoilt = self._version, 0
        snapshot = self.snapshot_of(self._state, self._version)
        self._snapshot_size = len(snapshot.body)
        try:
            self._store.keep_snapshot(self.name, snapshot)
        except StoreError as error:
            log.warning("no snapshot of %s: %s", self.name, error)

    def _load(self, *, until: int | None) -> tuple[S, int]:
        """Fold from the snapshot on, in one pass however often somebody went back: states that are gone back to
        are remembered when the pass comes by. One from before the snapshot means folding from the beginning.
        """
        state, version = self._thawed(until)
        events = self._store.read(self.name, after=version, until=until)
        targets = {event.payload.to for event in events if isinstance(event.payload, Reverted)}
        if targets and min(targets) < version:
            state, version = self._fold.initial(), 0
            events = self._store.read(self.name, until=until)
            targets = {event.payload.to for event in events if isinstance(event.payload, Reverted)}
        passed = {version: state}
        for event in events:
            if isinstance(event.payload, Reverted):
                state = self._fold.revert(passed[event.payload.to], state, event)
            else:
                state = self._fold.apply(state, event)
            version = event.seq
            if version in targets:
                passed[version] = state
        return state, version

    def _thawed(self, until: int | None) -> tuple[S, int]:
        """Where folding begins: at the snapshot, or at the very beginning without one that can be trusted.

        It only saves time, so one that does not read back is no reason to fail, and none to believe it.
        """
        snapshot = self._store.snapshot(self.name, fold=self._fold.version, until=until)
        if snapshot is None:
            return self._fold.initial(), 0
        _, _, body = snapshot.body.partition("\n")
        try:
            if not self.is_sealed(snapshot):
                raise ValueError("it is not as it was written")
            messages = self._store.read(self.name, until=snapshot.seq, kind="message")
            state = self._fold.thaw(json.loads(body), messages)
            self._snapshot_at, self._snapshot_size = snapshot.seq, len(snapshot.body)
            return state, snapshot.seq
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            if self._spoilt != snapshot.seq:
                log.warning("the snapshot of %s does not read back and is not used: %s", self.name, error)
            self._spoilt = snapshot.seq
            return self._fold.initial(), 0

    def _sealed(self, seq: int, body: str) -> str:
        """With its digest in front: a state that was changed by hand may well thaw, into something that never was."""
        return f"{digest(self.name, str(seq), body)}\n{body}"


def key_for(key: object, operation: str, *arguments: object) -> Key | None:
    """The idempotency key of a call: what the caller named it, and what was asked."""
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= 200 or not _can_be_kept(key):
        raise InvalidInput(field="key", value=key, expected="a text of 1 to 200 characters, without NUL or half a pair")
    try:
        request = json.dumps(arguments, sort_keys=True, default=_spoken)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(field=operation, value=arguments, expected="arguments that JSON can carry") from error
    return Key(value=f"{operation} {key}", request=digest(operation, request))


def _can_be_kept(text: str) -> bool:
    """Half a surrogate pair is a character to Python and to nobody else, and NUL is none to PostgreSQL."""
    try:
        return b"\x00" not in text.encode()
    except UnicodeEncodeError:
        return False


def _spoken(value: object) -> object:
    """An argument that is not plain JSON (yet): the same call must get the same digest, whatever it holds."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_unset=True, warnings=False) if callable(dump) else repr(value)


def _events(stream: str, version: int, drafts: Sequence[Draft], at: datetime) -> list[Event]:
    return [
        Event(
            stream=stream,
            seq=version + 1 + n,
            at=at,
            payload=draft.payload,
            origin=draft.origin,
            trust=draft.effective_trust,
            sources=draft.sources,
            starts_batch=n == 0,
        )
        for n, draft in enumerate(drafts)
    ]
