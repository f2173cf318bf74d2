"""What keeps a memory fit, when there is time: the index, automatic notes, consolidations, dreams, vectors.

Whoever has the time calls it: a host in its pauses, a thread in the background, `inmind worker`. All of them may at
once, since what is due is decided from the journal; and none has to, since nothing is lost when nobody does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta

from inmind.affect.auto import due_notes
from inmind.affect.felt import is_strong
from inmind.consolidator import Consolidation, Consolidator
from inmind.crystals.crystal import PRIVATE
from inmind.deep import DeepMemory
from inmind.dream.schedule import Rhythm, asks_model, trigger
from inmind.dreams import Dream
from inmind.errors import Closed, DreamRunning, InmindError, StoreError
from inmind.frozen import frozen
from inmind.journal import NOBODY
from inmind.mind import Belongings
from inmind.settings import Settings
from inmind.stores.base import Clock
from inmind.stores.fork import tell_after_fork
from inmind.stores.stream import Decision, Stream

log = logging.getLogger("inmind")

AT_A_TIME = 2.0
"""Seconds of one round in the background: whoever closes a memory waits for little more."""

_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@frozen(kw_only=True)
class Upkeep:
    """What a round has done."""

    dreams: tuple[Dream, ...] = ()
    """Those that came by themselves, whatever became of them."""
    consolidated: Mapping[str, Consolidation] = field(default_factory=dict[str, Consolidation])
    """By resource."""
    notes: int = 0
    """Taken by themselves, of levels that stay high."""
    finished: bool = True
    """All that was due is done. False where time ran out: the next round goes on there."""

    def and_then(self, other: Upkeep) -> Upkeep:
        return Upkeep(
            dreams=(*self.dreams, *other.dreams),
            consolidated={**self.consolidated, **other.consolidated},
            notes=self.notes + other.notes,
            finished=self.finished and other.finished,
        )


class Housekeeping:
    """Of one home."""

    def __init__(
        self,
        *,
        deep: Callable[[], DeepMemory],
        belongings: Callable[[str], Stream[Belongings]],
        consolidator: Callable[[str], Consolidator],
        dream: Callable[[str, str, bool], Dream],
        settings: Settings,
        clock: Clock,
    ) -> None:
        """`dream`: by resource, by what has triggered it, and whether a model may be asked."""
        self._deep, self._belongings, self._consolidator, self._dream = deep, belongings, consolidator, dream
        self._settings, self._clock = settings, clock
        self._started = clock(), time.monotonic()
        self._gone_through: dict[str, datetime] = {}
        """Resources that were consolidated here, and when that came to its end."""
        self._dreamt: dict[str, float] = {}
        """Resources for which a dream came by itself here, and when, by a clock that nobody sets."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        tell_after_fork(self)

    def after_fork(self) -> None:
        """The thread is the parent's."""
        self._stop, self._thread = threading.Event(), None

    def run(self, seconds: float) -> Upkeep:
        """One round, for about so long."""
        until = time.monotonic() + seconds
        deep, done = self._deep(), Upkeep()
        deep.catch_up()
        for resource in deep.resources():
            if resource.startswith(PRIVATE) or resource == NOBODY:
                continue
            if (left := until - time.monotonic()) <= 0:
                return done.and_then(Upkeep(finished=False))
            done = done.and_then(self._tended(resource, left))
        if not deep.embed(seconds=max(0.0, until - time.monotonic())):
            return done.and_then(Upkeep(finished=False))
        deep.forget_other_vectors()
        return done

    def consolidate(self, resource: str, seconds: float | None) -> Consolidation:
        done = self._consolidator(resource).run(seconds=seconds)
        if done.finished:
            self._gone_through[resource] = self._clock()
        return done

    def begin(self, every: float) -> None:
        """Go on with it in the background, a round every so many seconds, until `end`."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._go_on, args=(every,), name="inmind-upkeep", daemon=True)
            self._thread.start()

    def end(self) -> None:
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    @property
    def ending(self) -> bool:
        return self._stop.is_set()

    def _go_on(self, every: float) -> None:
        finished = True
        while not self._stop.wait(every if finished else 0):
            finished = True
            try:
                finished = self.run(AT_A_TIME).finished
            except Closed:
                return
            except InmindError as error:
                log.warning("left for the next round: %s", error)
            except Exception:
                log.exception("a round of upkeep failed; the next one tries again")

    def _tended(self, resource: str, seconds: float) -> Upkeep:
        """What is wrong with one resource is no reason to leave the others alone."""
        try:
            return self._tend(resource, seconds)
        except (Closed, StoreError):
            raise
        except InmindError as error:
            log.warning("upkeep of %s is left for the next round: %s", resource, error)
        except Exception:
            log.exception("upkeep of %s failed; the next round tries again", resource)
        return Upkeep()

    def _tend(self, resource: str, seconds: float) -> Upkeep:
        every = 60 * self._settings.consolidation.interval_minutes
        done, finished = Upkeep(), self._gone_through.get(resource)
        if self._consolidator(resource).due(every_seconds=every, finished=finished):
            notes = self._note_moods(resource) if self._settings.affect.enabled else 0
            gone_through = self.consolidate(resource, seconds)
            done = Upkeep(consolidated={resource: gone_through}, notes=notes, finished=gone_through.finished)
        if self._settings.dream.enabled and (dream := self._dreamt_if_due(resource)) is not None:
            done = done.and_then(Upkeep(dreams=(dream,)))
        return done

    def _note_moods(self, resource: str) -> int:
        def decide(owned: Belongings, now: datetime) -> Decision[Belongings, int]:
            notes = due_notes(owned.felt, now)
            return Decision(notes, len(notes))

        return self._belongings(resource).commit(decide).answer or 0

    def _dreamt_if_due(self, resource: str) -> Dream | None:
        owned, now, rhythm = self._belongings(resource).state, self._clock(), self._rhythm()
        done = owned.dreams.done
        since = done if done is not None and done <= now else _LONG_AGO
        why = trigger(
            owned.dreams,
            rhythm,
            now=now,
            awake=self._awake(now),
            strong=self._settings.affect.enabled and is_strong(owned.felt.levels.then(now)),
            fresh=lambda most: self._deep().fresh(resource, since, most),
        )
        if not why or self._just_dreamt(resource, rhythm.early if why == "spike" else rhythm.every):
            return None
        self._dreamt[resource] = time.monotonic()
        try:
            return self._dream(resource, why, asks_model(owned.dreams, rhythm, now))
        except DreamRunning:
            log.info("somebody dreams for %s already", resource)
            return None

    def _awake(self, now: datetime) -> timedelta:
        """For how long this has been at it: by either clock, since one may be set back, and the other is nobody's."""
        began, ticks = self._started
        return max(now - began, timedelta(seconds=time.monotonic() - ticks))

    def _just_dreamt(self, resource: str, wait: timedelta) -> bool:
        """However often the clock is set: no more than one here in so much time."""
        last = self._dreamt.get(resource)
        return last is not None and time.monotonic() - last < wait.total_seconds()

    def _rhythm(self) -> Rhythm:
        dream = self._settings.dream
        return Rhythm(
            every=timedelta(minutes=dream.interval_minutes),
            first=timedelta(minutes=dream.first_minutes),
            early=timedelta(minutes=dream.spike_minutes),
            least=dream.min_crystals,
        )
