"""Affect of a resource: spikes caused by messages and tool results, or set by the host.

Affect belongs to the resource. Spikes caused in a session go into the commit that causes them, in the resource's
stream, with the notes that they write. So a message has its effect once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Final, NamedTuple

from inmind.core.events.base import Draft, Origin
from inmind.core.events.dreams import AffectSpiked
from inmind.core.events.session import ToolObserved
from inmind.core.language.prose import ends_with_shell_prompt, has_output_heading, own_words, starts_like_output
from inmind.core.language.spans import split_sentences
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
"""The smallest step that a timestamp can express is a microsecond."""
MAX_MINUTES: Final = 100 * 366 * 24 * 60
"""A hundred years."""
MAX_HISTORY_POINTS: Final = 10_000
"""Points of one history."""

SignalSource = Callable[[AffectState], Iterable[AffectSignal]]
"""Returns the signals of one observation, given the affect so far."""


class SearchCall(NamedTuple):
    """A search by the model."""

    has_hits: bool
    event: str
    """Id of the event that has the call, or that recorded the search."""


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


class SessionAffect:
    """Affect events for one session, for the stream of its resource."""

    def __init__(self, resource: Stream[ResourceState], *, enabled: bool) -> None:
        self._resource, self._enabled = resource, enabled

    def spikes_for(self, state: SessionState, observations: Sequence[Observation], now: datetime) -> list[Draft]:
        """Spikes caused by observations.

        Only the last message and what follows it count: a host may pass a long old conversation at once. Messages of
        child sessions come from the parent agent and carry no affect.
        """
        if not self._enabled or not observations:
            return []
        child = state.opened is not None and bool(state.opened.parent)
        messages = (index for index, item in enumerate(observations) if isinstance(item.content, str))
        newest = observations[max(messages, default=0) :]
        return self._spikes(
            state, now, [(partial(_signals_for, item, now, child=child), item.origin, item.source) for item in newest]
        )

    def spikes_for_searches(self, state: SessionState, now: datetime, searches: Sequence[SearchCall]) -> list[Draft]:
        """Spikes caused by searches of the model."""
        if not self._enabled:
            return []
        return self._spikes(
            state, now, [(partial(_search_signals, search), Origin.ASSISTANT, search.event) for search in searches]
        )

    def _spikes(
        self, state: SessionState, now: datetime, causes: Iterable[tuple[SignalSource, Origin, str]]
    ) -> list[Draft]:
        """Spikes of several causes, each computed on the affect after the ones before.

        Each kind of spike is raised once: three calls that fail together are one error.
        """
        before = self._resource.state.affect
        affect, session = before, state.stream.removeprefix("session/")
        spikes: dict[str, Draft] = {}
        for signals, origin, source in causes:
            for signal in signals(affect):
                payload = AffectSpiked(signal.spike, reason=signal.why, subject=signal.about, session=session)
                draft = Draft(payload=payload, origin=origin, sources=(source,))
                if spikes.setdefault(signal.spike, draft) is draft:
                    affect = affect.with_spike(payload, at=now, trust=draft.effective_trust)
        return add_auto_notes(before, spikes.values(), now)


def _signals_for(item: Observation, now: datetime, affect: AffectState, *, child: bool) -> Iterable[AffectSignal]:
    if isinstance(item.content, str):
        return () if child else affect_from_text(item.content)
    signal = signal_from_outcome(tool_outcome(item.content), affect, now)
    return () if signal is None else (signal,)


def _search_signals(search: SearchCall, _: AffectState) -> Iterable[AffectSignal]:
    return (signal_from_search(has_hits=search.has_hits),)


def affect_from_text(text: str) -> list[AffectSignal]:
    """Affect signals in a user's message, in the user's own words only."""
    if (
        not may_have_affect(text)
        or has_output_heading(text)
        or starts_like_output(text)
        or ends_with_shell_prompt(text)
    ):
        return []
    return signals_from_text([sentence for line in own_words(text) for sentence in split_sentences(line)])


def tool_outcome(observation: ToolObserved) -> ToolOutcome:
    """The outcome of a tool call.

    A search without hits counts as a success, for any exit code.
    """
    outcome = read_outcome(observation)
    counts = outcome.failed and bool(
        overview_events([outcome], OverviewLog(), has_worked=lambda _: True, language="en")
    )
    return ToolOutcome(tool=observation.tool, arguments=outcome.arguments, result=outcome.result, failed=counts)


def _to_minutes(value: object, each: int, field: str) -> float:
    """Check a duration and convert it to minutes."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not MIN_MINUTES <= value * each <= MAX_MINUTES:
        most = MAX_MINUTES // each
        raise InvalidInput(field=field, value=value, expected=f"a number above 0, at most {most:,}")
    return float(value * each)
