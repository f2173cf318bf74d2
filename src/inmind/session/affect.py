"""Affect of a resource, as a host reads and sets it.

Spikes caused in a session are derived in `derive`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

from inmind.core.events.base import Draft, Origin
from inmind.core.events.dreams import AffectSpiked
from inmind.core.text import shorten
from inmind.documents.document import validate_text
from inmind.dreams.affect import SPIKES, Levels, add_auto_notes, describe_mood, level_history
from inmind.errors import InvalidInput
from inmind.session.state import ResourceState
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Decision, Stream, key_for

MAX_REASON_LENGTH: Final = 200
MIN_MINUTES: Final = 1e-6
"""The smallest step that a timestamp can express is a microsecond."""
MAX_MINUTES: Final = 100 * 366 * 24 * 60
"""A hundred years."""
MAX_HISTORY_POINTS: Final = 10_000
"""Points of one history."""


class Affect:
    """The affect of one resource, as a host sees it.

    If affect is disabled, the levels stay at their baselines and spikes are ignored; `history` still shows earlier
    spikes.
    """

    def __init__(
        self,
        open_stream: Callable[[], Stream[ResourceState]],
        store: Store,
        clock: Clock,
        *,
        enabled: bool = True,
        publish: Callable[[Stream[ResourceState]], None] = lambda _: None,
    ) -> None:
        """`publish` writes the notes page."""
        self._open_stream, self._store, self._clock, self.enabled = open_stream, store, clock, enabled
        self._publish = publish

    @cached_property
    def _stream(self) -> Stream[ResourceState]:
        return self._open_stream()

    @property
    def levels(self) -> Levels:
        """The current levels."""
        return self._stream.refresh().affect.levels.decayed_to(self._clock()) if self.enabled else Levels()

    @property
    def mood(self) -> str:
        """The levels in words."""
        return describe_mood(self.levels)

    def __str__(self) -> str:
        levels = self.levels
        return f"{describe_mood(levels)}: {levels}"

    def spike(self, spike: str, why: str = "", *, key: str | None = None) -> bool:
        """Raise a level: reward, error, social, achievement, urgency, sale, recall or missed.

        `why` is the text of the note that a high level writes. Returns False if affect is disabled; nothing is stored
        then.
        """
        if spike not in SPIKES:
            raise InvalidInput(field="spike", value=spike, expected=f"one of {', '.join(SPIKES)}")
        payload = AffectSpiked(spike, reason=shorten(validate_text(why, field="why"), MAX_REASON_LENGTH))
        checked_key = key_for(key, "raise", spike, why)
        if not self.enabled:
            return False

        def decide(owned: ResourceState, now: datetime) -> Decision[ResourceState, None]:
            return Decision(add_auto_notes(owned.affect, [Draft(payload=payload, origin=Origin.OPERATOR)], now), None)

        self._stream.commit(decide, key=checked_key)
        self._publish(self._stream)
        return True

    def history(self, hours: float = 24, step_minutes: float = 10) -> list[Levels]:
        """Levels of the last hours, one point every `step_minutes`, each with its time.

        The last point is now.
        """
        span, step = _to_minutes(hours, 60, "hours"), _to_minutes(step_minutes, 1, "step_minutes")
        steps = int(span / step)
        if steps >= MAX_HISTORY_POINTS:
            raise InvalidInput(
                field="step_minutes", value=step_minutes, expected=f"at most {MAX_HISTORY_POINTS} points in all"
            )
        now, every = self._clock(), timedelta(minutes=step)
        events = self._store.read(self._stream.name, kind=AffectSpiked.kind)
        return level_history(events, since=now - steps * every, until=now, step=every)


def _to_minutes(value: object, each: int, field: str) -> float:
    """Check a duration and convert it to minutes."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not MIN_MINUTES <= value * each <= MAX_MINUTES:
        most = MAX_MINUTES // each
        raise InvalidInput(field=field, value=value, expected=f"a number above 0, at most {most:,}")
    return float(value * each)
