"""One stream, folded and followed: read, decide, append, and again when somebody was faster.

This is the only loop that turns decisions into events. A decision is a pure function of the state; when
another writer got in between, the new events are folded and the decision is taken again on what is true now.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from inmind.errors import Conflict, InvalidInput, NotFound, StoreError
from inmind.journal import Draft, Event, Fold, Reverted, digest, to_json
from inmind.stores.base import Appended, Clock, Key, Snapshot, Store
from inmind.stores.fork import tell_after_fork

log = logging.getLogger("inmind")

SNAPSHOT_EVERY = 200
"""Events between snapshots: folding this many takes about as long as reading the snapshot."""

# Every lost race means that another writer won it, so this many in a row is a fault and not bad luck.
MOST_RETRIES = 1_000

S = TypeVar("S")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Decision(Generic[S, R]):
    """What shall happen, what the call then answers, and what it leads to where that was worked out already."""

    drafts: Sequence[Draft]
    answer: R
    foreseen: S | None = None


@dataclass(frozen=True, slots=True)
class Done(Generic[R]):
    """The outcome of a commit. `answer` is None when the key had been used before: see `appended`."""

    appended: Appended
    answer: R | None
    events: Sequence[Event] = ()
    """What this commit added; empty when it added nothing."""


class Stream(Generic[S]):
    """The newest known state of one stream, and the way to change it."""

    def __init__(self, store: Store, name: str, fold: Fold[S], clock: Clock) -> None:
        self.name = name
        self._store, self._fold, self._clock = store, fold, clock
        self._lock = threading.RLock()
        self._state, self._version = self._load(until=None)
        self._snapshot_at = self._version
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

    def commit(self, decide: Callable[[S, datetime], Decision[S, R]], *, key: Key | None = None) -> Done[R]:
        """Carry out a decision exactly once, on the newest state."""
        with self._lock:
            if self._forked:
                self.refresh()
            if key is not None and (earlier := self._store.receipt(self.name, key)) is not None:
                return Done(appended=earlier, answer=None)
            version = self._version
            for _ in range(MOST_RETRIES):
                version, now = self._version, self._clock()
                decision = decide(self._state, now)
                if not decision.drafts:
                    if self._store.version(self.name) != version:
                        self.refresh()
                        continue
                    return Done(Appended(first=version + 1, last=version, at=now), decision.answer)
                try:
                    appended = self._store.append(self.name, decision.drafts, expected=version, at=now, key=key)
                except Conflict as conflict:
                    if conflict.actual <= version:
                        raise  # the store has lost what we hold: retrying would decide on a state that never was
                    self.refresh()
                    continue
                if appended.repeated:
                    return Done(appended=appended, answer=None)
                events = self._advance(decision, appended)
                return Done(appended=appended, answer=decision.answer, events=events)
            raise Conflict(stream=self.name, expected=version, actual=self._store.version(self.name))

    def append(self, *drafts: Draft, key: Key | None = None) -> Appended:
        """Something happened, whatever the state is."""
        return self.commit(lambda _, __: Decision(drafts, None), key=key).appended

    def foresee(self, state: S, version: int, drafts: Sequence[Draft], now: datetime) -> S:
        """The state that these drafts would lead to, without storing anything."""
        for event in _events(self.name, version, drafts, now):
            state = self._fold.apply(state, event)
        return state

    def _advance(self, decision: Decision[S, R], appended: Appended) -> Sequence[Event]:
        events = _events(self.name, appended.first - 1, decision.drafts, appended.at)
        if decision.foreseen is not None:
            self._state, self._version = decision.foreseen, appended.last
        else:
            for event in events:
                self._take(event)
        if self._version - self._snapshot_at >= SNAPSHOT_EVERY:
            self._keep_snapshot()
        return events

    def _take(self, event: Event) -> None:
        if isinstance(event.what, Reverted):
            past, _ = self._load(until=event.what.to)
            self._state = self._fold.reverted(past, self._state, event)
        else:
            self._state = self._fold.apply(self._state, event)
        self._version = event.seq

    def _keep_snapshot(self) -> None:
        """A snapshot only saves time: when it cannot be written the call that came here has still succeeded."""
        self._snapshot_at = self._version
        snapshot = Snapshot(seq=self._version, fold=self._fold.version, body=to_json(self._fold.freeze(self._state)))
        try:
            self._store.keep_snapshot(self.name, snapshot)
        except StoreError as error:
            log.warning("no snapshot of %s: %s", self.name, error)

    def _load(self, *, until: int | None) -> tuple[S, int]:
        """Fold from the snapshot on, in one pass however often somebody went back: states that are gone back to
        are remembered when the pass comes by. One from before the snapshot means folding from the beginning.
        """
        snapshot = self._store.snapshot(self.name, fold=self._fold.version, until=until)
        start = snapshot.seq if snapshot else 0
        events = self._store.read(self.name, after=start, until=until)
        targets = {event.what.to for event in events if isinstance(event.what, Reverted)}
        if snapshot and targets and min(targets) < start:
            snapshot, events = None, self._store.read(self.name, until=until)
            targets = {event.what.to for event in events if isinstance(event.what, Reverted)}
        state, version = self._thawed(snapshot)
        passed = {version: state}
        for event in events:
            if isinstance(event.what, Reverted):
                state = self._fold.reverted(passed[event.what.to], state, event)
            else:
                state = self._fold.apply(state, event)
            version = event.seq
            if version in targets:
                passed[version] = state
        return state, version

    def _thawed(self, snapshot: Snapshot | None) -> tuple[S, int]:
        if snapshot is None:
            return self._fold.initial(), 0
        frozen: dict[str, Any] = json.loads(snapshot.body)
        messages = self._store.read(self.name, until=snapshot.seq, kind="message")
        return self._fold.thaw(frozen, messages), snapshot.seq


def key_for(key: object, operation: str, *arguments: object) -> Key | None:
    """The idempotency key of a call: what the caller named it, and what was asked."""
    if key is None:
        return None
    if not isinstance(key, str) or not 0 < len(key) <= 200 or not _is_unicode(key):
        raise InvalidInput(field="key", value=key, expected="a text of 1 to 200 characters")
    try:
        request = json.dumps(arguments, sort_keys=True, default=_spoken)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(field=operation, value=arguments, expected="arguments that JSON can carry") from error
    return Key(value=key, request=digest(operation, request))


def _is_unicode(text: str) -> bool:
    """Half a surrogate pair is a character to Python and to nobody else."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _spoken(value: object) -> object:
    """An argument that is not plain JSON (yet): the same call must get the same digest, whatever it holds."""
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_unset=True) if callable(dump) else repr(value)


def _events(stream: str, version: int, drafts: Sequence[Draft], at: datetime) -> list[Event]:
    return [
        Event(
            stream=stream,
            seq=version + 1 + n,
            at=at,
            what=draft.what,
            origin=draft.origin,
            trust=draft.trusted,
            sources=draft.sources,
            opens=n == 0,
        )
        for n, draft in enumerate(drafts)
    ]
