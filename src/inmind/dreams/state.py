"""Dreaming state of a resource: the running dream, and results of earlier dreams.

The state is folded from the journal, which is the only lock. An event starts a dream; while its lease holds, no other
process starts one. The number of that event and the name of its holder are a fencing token: a slow process finds out
that another one has taken the dream over. Only the clock decides whether a lease holds, so no process has to be alive
or reachable for the next one to continue. Each answer of a model is an event too, so that the next process does not pay
for it again. Journals of earlier versions also have events of other stages.

A dream is due every two hours, and earlier after strong affect. It requires new material. The decision depends on the
journal only, so all processes decide the same, and frequent restarts do not cause more dreams. Clock changes are
tolerated: a jump ahead causes one dream; setting the clock back causes one dream and no more, because the last dream in
order counts, not the latest date.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

from inmind.core.events.base import Event, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import (
    DreamAnswered,
    DreamChecked,
    DreamCommitted,
    DreamFailed,
    DreamGathered,
    DreamProgressed,
    DreamProposed,
    DreamResumed,
    DreamStarted,
    DreamUnderway,
    DreamUndone,
    KnowledgeGap,
    LearnedSkill,
    PageAdopted,
    PageLine,
)
from inmind.core.frozen import frozen
from inmind.core.settings import DreamSettings
from inmind.documents.document import MEMORY_PAGE_PATH

RULES = "rules"
"""The proposer of a dream without a model."""

LIMIT_REACHED = "limit reached: "
"""Prefix of the fallback reason if a rate limit prevented the call. It does not count as a failure of the model."""

LEASE_DURATION = timedelta(seconds=60)
"""Duration of a lease without renewal, and so the longest wait after the process of a dream was killed."""

MAX_RESUME_AGE = timedelta(days=1)
"""Age up to which an unfinished dream is resumed. A proposal depends on the input, levels and mood of its time. After a
day a new dream knows more, even if the old one has cost money."""


@frozen(kw_only=True)
class ActiveDream:
    """A dream that has started and not ended."""

    dream: int
    started_at: datetime
    lease_until: datetime
    gathered_at: datetime
    """The time as of which its input was gathered, which the dream uses as now."""
    trigger: str = "asked"
    proposer: str = RULES
    holder: str = ""
    gathered: int = 0
    """The event up to which its input was read: its start, or the event that last resumed it without answers."""
    answers: int = 0
    """Number of the model's answers about this input."""
    tokens: tuple[int, int] = (0, 0)
    price: float = 0.0
    """Price and tokens of all its answers."""
    released: bool = False
    """The holder released it for another process. This is not a failure."""

    @property
    def phase(self) -> str:
        """The phase that it has reached, as far as the journal has it."""
        return "propose" if self.answers else "gather"

    @property
    def uses_model(self) -> bool:
        return self.proposer != RULES

    def is_held(self, now: datetime) -> bool:
        """True while the lease holds.

        A lease that ends more than two durations ahead was written by a wrong clock and does not hold. One duration is
        allowed for a holder whose clock is ahead.
        """
        return self.lease_until - 2 * LEASE_DURATION <= now < self.lease_until

    def is_resumable(self, now: datetime) -> bool:
        """True if it is young enough to resume. False if a wrong clock makes its age unknown."""
        return -LEASE_DURATION <= now - self.gathered_at < MAX_RESUME_AGE

    def has_usable_answers(self, now: datetime) -> bool:
        """True if a process that resumes it now uses its answers instead of gathering again."""
        return self.answers > 0 and self.is_resumable(now)


def _empty() -> dict[str, Any]:
    return {}


@frozen(kw_only=True)
class DreamingState:
    """The folded state."""

    running: ActiveDream | None = None
    last_started_at: datetime | None = None
    """Start of the last dream, with any outcome."""
    model_asked_at: datetime | None = None
    """Start of the last dream that used a model."""
    last_done_at: datetime | None = None
    """The time as of which the last committed dream gathered its input. Later input is new."""
    last_dream: int = 0
    """Number of the last committed dream that was not undone."""
    failures: int = 0
    """Consecutive dreams that failed."""
    model_failures: int = 0
    """Consecutive dreams in which the model failed."""
    day_tokens: tuple[str, int] = ("", 0)
    """A UTC day, and the tokens that models used on it."""
    last_seq: int = 0
    journal_position: int = 0
    """Positions up to which the resource's stream and the whole journal were read: see DreamCommitted."""
    lines: Mapping[str, PageLine] = field(default_factory=_empty)
    """Lines on the page that dreams wrote, by their text."""
    user_lines: Mapping[str, str] = field(default_factory=_empty)
    """Entries on the page that users wrote, with the crystal of each."""
    adopted_entries: frozenset[str] = frozenset()
    """Entries of these from before the first dream."""
    page_adopted: bool = False
    gaps: tuple[KnowledgeGap, ...] = ()
    skills: tuple[LearnedSkill, ...] = ()
    insight_keys: frozenset[str] = frozenset()

    def apply(self, event: Event) -> DreamingState:
        payload, running = event.payload, self.running
        if isinstance(payload, DreamUnderway):
            is_current = running and running.dream == payload.dream
            return self._apply_progress(payload, running, event) if running and is_current else self
        match payload:
            case DreamStarted():
                return self._apply_start(payload, event)
            case DreamFailed(dream=dream, tokens=tokens) if running is not None and running.dream == dream:
                return replace(
                    self,
                    running=None,
                    failures=self.failures + 1,
                    model_failures=self.model_failures + running.uses_model,
                    day_tokens=self._add_tokens(self._uncounted_tokens(tokens), event.at),
                )
            case DreamCommitted():
                return self._apply_commit(payload, event)
            case DreamUndone():
                return self._apply_undo(payload)
            case PageAdopted(text=text):
                from inmind.dreams.page.draft import chunk_by_entry  # needed once for each resource

                first = event.seq + 1
                chunks = {entry: f"{event.stream}#{first + number}" for entry, number in chunk_by_entry(text).items()}
                return replace(
                    self,
                    page_adopted=True,
                    adopted_entries=frozenset(chunks),
                    user_lines={**self.user_lines, **chunks},
                )
            case DocumentWritten(path=path, text=text) if path == MEMORY_PAGE_PATH and event.origin is Origin.DREAM:
                return self._apply_page(text)
            case _:
                return self

    def _apply_start(self, started: DreamStarted, event: Event) -> DreamingState:
        """A dream that another one replaces has failed, unless it was released."""
        previous = self.running
        has_failed = previous is not None and not previous.released
        running = ActiveDream(
            dream=event.seq,
            started_at=event.at,
            lease_until=_parse_datetime(started.lease_until),
            gathered=event.seq,
            gathered_at=event.at,
            trigger=started.trigger,
            proposer=started.proposer,
            holder=started.holder,
        )
        return replace(
            self,
            running=running,
            last_started_at=event.at,
            model_asked_at=event.at if running.uses_model else self.model_asked_at,
            failures=self.failures + has_failed,
            model_failures=self.model_failures + (previous is not None and has_failed and previous.uses_model),
        )

    def _apply_progress(self, payload: DreamUnderway, previous: ActiveDream, event: Event) -> DreamingState:
        running = replace(previous, lease_until=_parse_datetime(payload.lease_until), released=False)
        match payload:
            case DreamResumed(holder=holder, proposer=proposer):
                return self._apply_takeover(replace(running, holder=holder, proposer=proposer), previous, event)
            case DreamProgressed(released=released):
                return replace(self, running=replace(running, released=released))
            case DreamGathered(as_of=as_of):
                gathered_at = _parse_datetime(as_of)
                return replace(self, running=replace(running, gathered=event.seq, gathered_at=gathered_at, answers=0))
            case DreamAnswered(tokens=tokens, price=price) | DreamProposed(tokens=tokens, price=price):
                running = replace(
                    running,
                    answers=running.answers + isinstance(payload, DreamAnswered),
                    tokens=(running.tokens[0] + tokens[0], running.tokens[1] + tokens[1]),
                    price=running.price + price,
                )
                return replace(self, running=running, day_tokens=self._add_tokens(tokens, event.at))
            case DreamChecked():
                return replace(self, running=running)

    def _apply_takeover(self, running: ActiveDream, previous: ActiveDream, event: Event) -> DreamingState:
        """Count a failure of the previous holder, unless it released the dream.

        The model failed only if it had not answered yet. Without recent answers the input is gathered again.
        """
        if not running.has_usable_answers(event.at):
            running = replace(running, gathered=event.seq, gathered_at=event.at, answers=0)
        was_unanswered = not previous.answers
        return replace(
            self,
            running=running,
            model_asked_at=event.at if was_unanswered and running.uses_model else self.model_asked_at,
            failures=self.failures + (not previous.released),
            model_failures=self.model_failures + (was_unanswered and previous.uses_model and not previous.released),
        )

    def _apply_commit(self, committed: DreamCommitted, event: Event) -> DreamingState:
        reason = committed.fallback_reason
        if reason and not reason.startswith(LIMIT_REACHED):
            model_failures = self.model_failures + 1
        else:  # a dream without a model does not change the number
            model_failures = self.model_failures if committed.proposer == RULES else 0
        return replace(
            self,
            running=None,
            last_done_at=self.running.gathered_at if self.running else event.at,
            last_dream=committed.dream,
            failures=0,
            model_failures=model_failures,
            day_tokens=self._add_tokens(self._uncounted_tokens(committed.tokens), event.at),
            last_seq=committed.last_seq,
            journal_position=committed.journal_position,
            lines={**self.lines, **{line.text: line for line in committed.lines}},
            user_lines={**self.user_lines, **dict(committed.user_lines)},
            gaps=committed.gaps,
            skills=committed.skills,
            insight_keys=self.insight_keys | {*committed.insights},
        )

    def tokens_on(self, now: datetime) -> int:
        """Tokens that models used on this UTC day."""
        day, tokens = self.day_tokens
        return tokens if day == _day(now) else 0

    def _add_tokens(self, tokens: tuple[int, int], at: datetime) -> tuple[str, int]:
        return (_day(at), self.tokens_on(at) + sum(tokens)) if any(tokens) else self.day_tokens

    def _uncounted_tokens(self, tokens: tuple[int, int]) -> tuple[int, int]:
        """The part of a dream's tokens that was not counted with its answers."""
        counted = self.running.tokens if self.running else (0, 0)
        return max(0, tokens[0] - counted[0]), max(0, tokens[1] - counted[1])

    def _apply_undo(self, undone: DreamUndone) -> DreamingState:
        return replace(
            self,
            last_dream=undone.previous_dream,
            last_seq=undone.last_seq,
            journal_position=undone.journal_position,
            lines={line.text: line for line in undone.lines},
            gaps=undone.gaps,
            skills=undone.skills,
            insight_keys=self.insight_keys - {*undone.insights},
            user_lines={**dict(undone.user_lines), **self.user_lines},
            adopted_entries=self.adopted_entries | {*undone.adopted_entries},
        )

    def _apply_page(self, text: str) -> DreamingState:
        """Forget lines that are gone from the page.

        If a user adds the same text again, it is a user's line.
        """
        from inmind.dreams.page.page import parse_page  # imported here: most processes see no dream

        entries = {entry for _, entry in parse_page(text).all_entries()}
        return replace(
            self,
            lines={line: page_line for line, page_line in self.lines.items() if line in entries},
            user_lines={entry: crystal for entry, crystal in self.user_lines.items() if entry in entries},
            adopted_entries=self.adopted_entries & entries,
        )


def _day(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()


def _parse_datetime(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


FAILURES_BEFORE_BACKOFF = 3
"""Consecutive failures, of dreams or of the model, from which each further one doubles the wait."""

MAX_WAIT = timedelta(days=1)
"""Upper bound of a doubled wait."""


def next_dream(
    dreaming: DreamingState,
    settings: DreamSettings,
    *,
    now: datetime,
    uptime: timedelta,
    strong_affect: bool,
    count_new: Callable[[int], int],
) -> tuple[datetime, str] | None:
    """The time and trigger of the next dream: `schedule` or `spike`, the earlier of both.

    None if none will be due without further events.

    The time is `now` if one is due already, and the end of the lease while one runs. An unfinished dream is due with
    its original trigger, unless it has failed repeatedly. `count_new(limit)`: number of new crystals, counted up to
    `limit`. `uptime`: how long the calling process has been running.
    """
    running, after_start = dreaming.running, now + max(timedelta(), timedelta(minutes=settings.first_minutes) - uptime)
    if running is not None and running.is_held(now):
        return running.lease_until, running.trigger
    if running is not None and running.is_resumable(now) and dreaming.failures < FAILURES_BEFORE_BACKOFF:
        return after_start, running.trigger
    schedule = "schedule", after_start, settings.interval_minutes, settings.min_crystals
    triggers = [("spike", now, settings.spike_minutes, 1), schedule] if strong_affect else [schedule]
    elapsed, times = _elapsed(dreaming.last_started_at, now), list[tuple[datetime, str]]()
    for trigger, earliest, minutes, crystals in triggers:
        if count_new(crystals) >= crystals:
            wait = _backoff(minutes, dreaming.failures)
            times.append((earliest if elapsed >= wait else max(earliest, now + wait - elapsed), trigger))
    return min(times, key=itemgetter(0), default=None)


def may_ask_model(dreaming: DreamingState, settings: DreamSettings, now: datetime) -> bool:
    """False while a model that failed repeatedly is not asked again. Rules propose meanwhile."""
    if dreaming.model_failures < FAILURES_BEFORE_BACKOFF:
        return True
    return _elapsed(dreaming.model_asked_at, now) >= _backoff(settings.interval_minutes, dreaming.model_failures)


def _elapsed(started_at: datetime | None, now: datetime) -> timedelta:
    return now - started_at if started_at is not None and started_at <= now else timedelta.max


def _backoff(usual_minutes: float, failures: int) -> timedelta:
    """The usual wait, doubled with each further failure."""
    usual = timedelta(minutes=usual_minutes)
    factor = 2 ** min(max(0, failures - FAILURES_BEFORE_BACKOFF + 1), 10)
    return max(usual, min(MAX_WAIT, usual * factor))
