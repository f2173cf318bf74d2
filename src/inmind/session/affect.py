"""What is felt, carried out: rules are asked about whatever happens in sessions, and hosts may raise it themselves.

All that is felt belongs to the resource. What a session's messages and tools stir up goes into the commit that keeps
them, beside it in the resource's stream, with the notes that it is worth: so a message is felt once, like it is kept
once, and where nothing stirs nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Final, NamedTuple

from inmind.core.events.base import Draft, Origin
from inmind.core.events.dreams import AffectSpiked
from inmind.core.events.session import ToolObserved
from inmind.core.language.prose import (
    ends_with_shell_prompt,
    has_output_heading,
    own_words,
    split_sentences,
    starts_like_output,
)
from inmind.core.text import shorten
from inmind.documents.document import validate_text
from inmind.documents.overview.event_log import OverviewLog
from inmind.documents.overview.tool_rules import overview_events
from inmind.dreams.affect.auto_notes import add_auto_notes
from inmind.dreams.affect.levels import SPIKES, Levels, describe_mood
from inmind.dreams.affect.rules import (
    AffectSignal,
    ToolOutcome,
    may_have_affect,
    signal_from_outcome,
    signal_from_search,
    signals_from_text,
)
from inmind.dreams.affect.state import AffectState, level_history
from inmind.entities.observe import Observation
from inmind.errors import InvalidInput
from inmind.session.overview import read_outcome
from inmind.session.state import ResourceState, SessionState
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Decision, Stream, key_for

MAX_REASON_LENGTH: Final = 200
MIN_MINUTES: Final = 1e-6
"""Some microseconds, of which a time is made."""
MAX_MINUTES: Final = 100 * 366 * 24 * 60
"""A hundred years: a history from before there were computers has nothing to tell."""
MAX_HISTORY_POINTS: Final = 10_000
"""Of a history: more than any plot has pixels."""

SignalSource = Callable[[AffectState], Iterable[AffectSignal]]
"""What something stirs up in whoever feels so far as this."""


class SearchCall(NamedTuple):
    """A search by the model."""

    has_hits: bool
    event: str
    """Id of the event that has the call, or that recorded the search."""


class Affect:
    """The affect levels of one resource: `memory.resource("ada").affect`.

    If affect is disabled, the levels are the baselines and no spike is stored; the history still has earlier spikes.
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
        """`open_stream` reads the store and is called on first use. `publish` updates the live file of the notes."""
        self._open_stream, self._store, self._clock, self.enabled = open_stream, store, clock, enabled
        self._publish = publish

    @cached_property
    def _stream(self) -> Stream[ResourceState]:
        return self._open_stream()

    @property
    def levels(self) -> Levels:
        """What they are right now."""
        return self._stream.refresh().affect.levels.decayed_to(self._clock()) if self.enabled else Levels()

    @property
    def mood(self) -> str:
        """The levels in words."""
        return describe_mood(self.levels)

    def spike(self, spike: str, why: str = "", *, key: str | None = None) -> bool:
        """Something happened that is felt: reward, error, social, achievement, urgency, sale, recall or missed.

        `why` stands in the note that a high level writes. Returns False if affect is disabled; nothing is stored then.
        """
        if spike not in SPIKES:
            raise InvalidInput(field="spike", value=spike, expected=f"one of {', '.join(SPIKES)}")
        what = AffectSpiked(spike, reason=shorten(validate_text(why, field="why"), MAX_REASON_LENGTH))
        named = key_for(key, "raise", spike, why)
        if not self.enabled:
            return False

        def decide(owned: ResourceState, now: datetime) -> Decision[ResourceState, None]:
            return Decision(add_auto_notes(owned.affect, [Draft(payload=what, origin=Origin.OPERATOR)], now), None)

        self._stream.commit(decide, key=named)
        self._publish(self._stream)
        return True

    def history(self, hours: float = 24, step_minutes: float = 10) -> list[Levels]:
        """The levels of the last hours, a point every so many minutes, each with its time; the last is now."""
        span, step = _to_minutes(hours, 60, "hours"), _to_minutes(step_minutes, 1, "step_minutes")
        steps = int(span / step)
        if steps >= MAX_HISTORY_POINTS:
            raise InvalidInput(
                field="step_minutes", value=step_minutes, expected=f"at most {MAX_HISTORY_POINTS} points in all"
            )
        now, every = self._clock(), timedelta(minutes=step)
        events = self._store.read(self._stream.name, kind=AffectSpiked.kind)
        return level_history(events, since=now - steps * every, until=now, step=every)


class SessionAffect:
    """What happens in one session, as its resource feels it."""

    def __init__(self, resource: Stream[ResourceState], *, enabled: bool) -> None:
        self._resource, self._enabled = resource, enabled

    def spikes_for(self, state: SessionState, told: Sequence[Observation], now: datetime) -> list[Draft]:
        """What these stir up, for the resource's stream.

        Only what is new is felt: a host that hands in a long conversation at once brings back what was said long ago.
        What a child is told comes from its parent, which neither thanks nor rages.
        """
        if not self._enabled or not told:
            return []
        child = state.opened is not None and bool(state.opened.parent)
        news = told[max((place for place, one in enumerate(told) if isinstance(one.content, str)), default=0) :]
        return self._spikes(
            state, now, [(partial(_signals_for, one, now, child=child), one.origin, one.source) for one in news]
        )

    def spikes_for_searches(self, state: SessionState, now: datetime, lookups: Sequence[SearchCall]) -> list[Draft]:
        """The same for what the model has asked its memory."""
        if not self._enabled:
            return []
        return self._spikes(
            state, now, [(partial(_search_signals, one), Origin.ASSISTANT, one.event) for one in lookups]
        )

    def _spikes(
        self, state: SessionState, now: datetime, moving: Iterable[tuple[SignalSource, Origin, str]]
    ) -> list[Draft]:
        """Each is asked what it stirs up once those before it are felt.

        Every spike comes once: three calls that fail side by side are one mishap.
        """
        owned = self._resource.state.affect
        felt, session = owned, state.stream.removeprefix("session/")
        raised: dict[str, Draft] = {}
        for stirs, origin, source in moving:
            for one in stirs(felt):
                what = AffectSpiked(one.spike, reason=one.why, subject=one.about, session=session)
                draft = Draft(payload=what, origin=origin, sources=(source,))
                if raised.setdefault(one.spike, draft) is draft:
                    felt = felt.with_spike(what, at=now, trust=draft.effective_trust)
        return add_auto_notes(owned, raised.values(), now)


def _signals_for(one: Observation, now: datetime, felt: AffectState, *, child: bool) -> Iterable[AffectSignal]:
    if isinstance(one.content, str):
        return () if child else affect_from_text(one.content)
    stirred = signal_from_outcome(tool_outcome(one.content), felt, now)
    return () if stirred is None else (stirred,)


def _search_signals(one: SearchCall, _: AffectState) -> Iterable[AffectSignal]:
    return (signal_from_search(found=one.has_hits),)


def affect_from_text(text: str) -> list[AffectSignal]:
    """What a person's message says that is felt, in their own words."""
    if (
        not may_have_affect(text)
        or has_output_heading(text)
        or starts_like_output(text)
        or ends_with_shell_prompt(text)
    ):
        return []
    return signals_from_text([sentence for line in own_words(text) for sentence in split_sentences(line)])


def tool_outcome(told: ToolObserved) -> ToolOutcome:
    """What came of a call. A search that finds nothing has done what it was asked, whatever it ends with."""
    outcome = read_outcome(told)
    counts = outcome.failed and bool(
        overview_events([outcome], OverviewLog(), has_worked=lambda _: True, language="en")
    )
    return ToolOutcome(tool=told.tool, arguments=outcome.arguments, result=outcome.result, failed=counts)


def _to_minutes(value: object, each: int, field: str) -> float:
    """What somebody says in units of so many minutes: no less than a clock tells, and no more than it has told."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not MIN_MINUTES <= value * each <= MAX_MINUTES:
        most = MAX_MINUTES // each
        raise InvalidInput(field=field, value=value, expected=f"a number above 0, and at most {most:,}")
    return float(value * each)
