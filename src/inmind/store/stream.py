"""Optimistic-concurrency loop over one stream: read, decide, append.

This is the only loop that turns decisions into events. A decision is a pure function of the state. If another writer
was faster, its events are applied and the decision runs again on the new state.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any, Generic, TypeVar

from inmind.core.encoding import digest, from_microseconds, to_json, to_microseconds
from inmind.core.events.base import Draft, Event, Fold
from inmind.core.events.session import Reverted
from inmind.core.fair_turns import dreams_wait
from inmind.core.fork import register_after_fork
from inmind.core.frozen import frozen
from inmind.errors import Conflict, InvalidInput, NotFound, StoreError
from inmind.store.protocol import AppendResult, Batch, Clock, Key, Snapshot, Store

log = logging.getLogger("inmind")

SNAPSHOT_INTERVAL_EVENTS = 200
"""Events between snapshots: folding this many takes about as long as reading the snapshot."""

SNAPSHOT_CHARS_PER_EVENT = 2_000
"""Minimum number of events between snapshots is the snapshot's size divided by this.

A growing state is saved less often; otherwise the total cost of snapshots would grow quadratically."""

# Every lost race means that another writer has committed, so this many in a row are a bug.
MAX_RETRIES = 1_000

S = TypeVar("S")
R = TypeVar("R")


@frozen
class Decision(Generic[S, R]):
    """The events to append and the result of the call."""

    drafts: Sequence[Draft]
    result: R
    next_state: S | None = None
    """The state after these events, if it was already computed."""
    companion: Sequence[Draft] = ()
    """Events for the companion stream, stored in the same transaction."""
    consumes_key: bool = True
    """False for a refused call: its key is not stored and can be used again."""


@frozen
class CommitResult(Generic[R]):
    """The outcome of a commit.

    `result` is None if the key had been used before: see `appended`.
    """

    appended: AppendResult
    result: R | None
    events: Sequence[Event] = ()
    """Events that this commit added."""


class Stream(Generic[S]):
    """The newest known state of one stream, and the methods to change it."""

    def __init__(self, store: Store, name: str, fold: Fold[S], clock: Clock) -> None:
        self.name = name
        self._store, self._fold, self._clock = store, fold, clock
        self._lock = threading.RLock()
        self._unusable_snapshot_seq = 0
        """Sequence number of a snapshot that could not be used; 0 if there is none."""
        self._snapshot_at, self._snapshot_size = 0, 0
        self._state, self._version = self._load(until=None)
        self._forked = False
        register_after_fork(self)

    @property
    def state(self) -> S:
        return self._state

    @property
    def version(self) -> int:
        return self._version

    def after_fork(self) -> None:
        """Make a forked child load the state again.

        A thread of the parent may have been in the middle of a commit.
        """
        self._lock = threading.RLock()
        self._forked = True

    def refresh(self) -> S:
        """Apply the events that other writers have appended since."""
        with self._lock:
            if self._forked:
                self._state, self._version = self._load(until=None)
                self._forked = False
            if events := self._store.read(self.name, after=self._version):
                self._state, self._version = self._fold_events(self._state, self._version, events), events[-1].seq
            return self._state

    def state_at(self, seq: int) -> S:
        """The state right after event `seq`."""
        if seq < 0 or seq > self._store.version(self.name):
            raise NotFound(what="event", name=f"{self.name}#{seq}")
        return self._load(until=seq)[0]

    def make_snapshot(self, state: S, seq: int) -> Snapshot:
        """Return the snapshot of a state after event `seq`."""
        body = self._with_digest(seq, to_json(self._fold.freeze(state)))
        return Snapshot(seq=seq, fold_version=self._fold.version, body=body)

    def has_valid_digest(self, snapshot: Snapshot) -> bool:
        """True if the snapshot is unchanged since it was written."""
        return snapshot.body == self._with_digest(snapshot.seq, snapshot.body.partition("\n")[2])

    def commit(
        self,
        decide: Callable[[S, datetime], Decision[S, R]],
        *,
        key: Key | None = None,
        companion: Stream[Any] | None = None,
        at: datetime | None = None,
    ) -> CommitResult[R]:
        """Carry out a decision exactly once, on the newest state.

        The events are folded before they are stored: an event that cannot be folded would make the stream unreadable.
        The key is stored even if there is nothing to append, since it must not get another meaning later; only a
        decision with `consumes_key=False` leaves it free.

        `companion`: another stream that the decision may change too. Its version is checked like that of this stream.
        `at`: when it happened, if that was before this call.
        """
        with self._lock, companion._lock if companion else nullcontext(), dreams_wait():
            if self._forked:
                self.refresh()
            if companion and companion._forked:
                companion.refresh()
            version = self._version
            for _ in range(MAX_RETRIES):
                if key is not None and (earlier := self._store.receipt(self.name, key)) is not None:
                    return CommitResult(appended=earlier, result=None)
                version, now = self._version, at or self._clock()
                decision = decide(self._state, now)
                stored_key = key if decision.consumes_key else None
                if not decision.drafts and not decision.companion and stored_key is None:
                    if self._store.version(self.name) != version:
                        self.refresh()
                        continue
                    return CommitResult(AppendResult(first=version + 1, last=version, at=now), decision.result)
                next_own = self._next(decision.drafts, now, decision.next_state)
                next_companion, batch = None, None
                if companion and decision.companion:
                    next_companion = companion._next(decision.companion, now)
                    batch = Batch(companion.name, decision.companion, companion._version)
                try:
                    appended = self._store.append(
                        Batch(self.name, decision.drafts, version), at=now, key=stored_key, companion=batch
                    )
                except Conflict as conflict:
                    if conflict.actual <= conflict.expected:
                        raise  # the store has lost events that we have folded: do not decide on that state
                    (companion if companion and conflict.stream == companion.name else self).refresh()
                    continue
                if appended.repeated:
                    return CommitResult(appended=appended, result=None)
                self._advance(*next_own)
                if companion and next_companion:
                    companion._advance(*next_companion)
                return CommitResult(appended=appended, result=decision.result, events=next_own[0])
            raise Conflict(stream=self.name, expected=version, actual=self._store.version(self.name))

    def append(self, *drafts: Draft, key: Key | None = None, at: datetime | None = None) -> AppendResult:
        """Append events regardless of the state."""
        return self.commit(lambda _, __: Decision(drafts, None), key=key, at=at).appended

    def dry_run(self, decide: Callable[[S, datetime], R]) -> R:
        """Return the result of a decision on the newest state without storing anything."""
        with self._lock:
            return decide(self.refresh(), self._clock())

    def preview(self, state: S, version: int, drafts: Sequence[Draft], now: datetime) -> S:
        """Return the state after these drafts without storing anything."""
        for event in Batch(self.name, drafts, version).events(now):
            state = self._fold.apply(state, event)
        return state

    def _next(self, drafts: Sequence[Draft], now: datetime, known_state: S | None = None) -> tuple[Sequence[Event], S]:
        """Return the events that are about to be stored, and the state after them."""
        events = Batch(self.name, drafts, self._version).events(from_microseconds(to_microseconds(now)))
        state = self._fold_events(self._state, self._version, events) if known_state is None else known_state
        return events, state

    def _fold_events(self, state: S, version: int, events: Sequence[Event]) -> S:
        """Return the state after these events, which follow a version.

        States that a revert refers to are remembered when the pass reaches them; earlier ones are loaded.
        """
        targets = {event.payload.to for event in events if isinstance(event.payload, Reverted)}
        states = {version: state}
        for event in events:
            if isinstance(event.payload, Reverted):
                to = event.payload.to
                if not 0 <= to < event.seq:
                    raise NotFound(what="earlier event", name=to, hint=f"the newest is {event.seq - 1}")
                state = self._fold.revert(states[to] if to in states else self._load(until=to)[0], state, event)
            else:
                state = self._fold.apply(state, event)
            if event.seq in targets:
                states[event.seq] = state
        return state

    def _advance(self, events: Sequence[Event], state: S) -> None:
        self._state, self._version = state, self._version + len(events)
        due = max(SNAPSHOT_INTERVAL_EVENTS, self._snapshot_size // SNAPSHOT_CHARS_PER_EVENT)
        if self._version - self._snapshot_at >= due or 0 < self._unusable_snapshot_seq < self._version:
            self._save_snapshot()

    def _save_snapshot(self) -> None:
        """Save a snapshot. A failure is only logged: the commit has already succeeded."""
        self._snapshot_at, self._unusable_snapshot_seq = self._version, 0
        snapshot = self.make_snapshot(self._state, self._version)
        self._snapshot_size = len(snapshot.body)
        try:
            self._store.save_snapshot(self.name, snapshot)
        except StoreError as error:
            log.warning("cannot save a snapshot of %s: %s", self.name, error)

    def _load(self, *, until: int | None) -> tuple[S, int]:
        """Fold the events after the snapshot, in one pass for any number of reverts.

        If a revert refers to a state older than the snapshot, the stream is folded from the beginning.
        """
        state, version = self._load_snapshot(until)
        events = self._store.read(self.name, after=version, until=until)
        if any(isinstance(event.payload, Reverted) and event.payload.to < version for event in events):
            state, version = self._fold.initial(), 0
            events = self._store.read(self.name, until=until)
        return self._fold_events(state, version, events), events[-1].seq if events else version

    def _load_snapshot(self, until: int | None) -> tuple[S, int]:
        """Return the state and version of the snapshot, or the initial state without a usable one.

        A snapshot only saves time, so one that cannot be decoded is ignored with a warning.
        """
        snapshot = self._store.snapshot(self.name, fold_version=self._fold.version, until=until)
        if snapshot is None:
            return self._fold.initial(), 0
        _, _, body = snapshot.body.partition("\n")
        try:
            if not self.has_valid_digest(snapshot):
                raise ValueError("its digest does not match")
            messages = self._store.read(self.name, until=snapshot.seq, kind="message")
            state = self._fold.thaw(json.loads(body), messages)
            self._snapshot_at, self._snapshot_size = snapshot.seq, len(snapshot.body)
            return state, snapshot.seq
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            if self._unusable_snapshot_seq != snapshot.seq:
                log.warning("ignoring the damaged snapshot of %s: %s", self.name, error)
            self._unusable_snapshot_seq = snapshot.seq
            return self._fold.initial(), 0

    def _with_digest(self, seq: int, body: str) -> str:
        """Prefix the body with its digest.

        A state that was changed by hand might otherwise decode without an error.
        """
        return f"{digest(self.name, str(seq), body)}\n{body}"


def key_for(key: object, operation: str, *arguments: object) -> Key | None:
    """Return the idempotency key of a call: the caller's key and a digest of the arguments."""
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= 200 or not _is_storable(key):
        raise InvalidInput(field="key", value=key, expected="1 to 200 characters, no NUL, no unpaired surrogates")
    try:
        request = json.dumps(arguments, sort_keys=True, default=_json_fallback)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(field=operation, value=arguments, expected="arguments that JSON can carry") from error
    return Key(value=f"{operation} {key}", request=digest(operation, request))


def _is_storable(text: str) -> bool:
    """False for text with an unpaired surrogate or NUL.

    UTF-8 cannot encode the former, PostgreSQL cannot store the latter.
    """
    try:
        return b"\x00" not in text.encode()
    except UnicodeEncodeError:
        return False


def _json_fallback(value: object) -> object:
    """Convert an argument that is not JSON, so that the same call always has the same digest."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_unset=True, warnings=False) if callable(dump) else repr(value)
