"""Where dreaming stands in a resource: whether somebody dreams right now, and what the dreams so far have left.

There is no lock beside the journal. Whoever begins a dream says so by an event, and while that holds nobody else does;
the number of the event and the name of its holder are the token by which one who was too slow finds out that the dream
is another's by now. What holds is told by the clock alone: no process has to be alive, or dead, or reachable, for the
next one to go on. Each stage that a dream has reached is an event too, so the next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from inmind.core.events.base import Event, Origin, named_tuple
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
from inmind.documents.document import MEMORY_PAGE_PATH

RULES = "rules"
"""Who proposes where no model does."""

LIMIT_REACHED = "limit reached: "
"""How the reason begins for which a model was not asked at all: it says nothing of the model."""

LEASE_DURATION = timedelta(seconds=60)
"""How long a dream holds without saying more. Whoever finds one that was killed waits for no longer."""

MAX_RESUME_AGE = timedelta(days=1)
"""For how long a dream that was left in the middle is worth going on with. What it proposes was weighed by what there
was then, by the levels and the mood of then: after a day a new one sees more, whatever was paid for the old one."""

Stage = Literal["begun", "gathered", "proposed", "checked"]

PHASE_AFTER: Mapping[Stage, str] = {"begun": "gather", "gathered": "propose", "proposed": "check", "checked": "commit"}
"""The phase that a dream is in behind each stage."""


@frozen(kw_only=True)
class ActiveDream:
    """A dream that has begun and not ended."""

    dream: int
    started_at: datetime
    lease_until: datetime
    gathered_at: datetime
    """The time by which it has gathered; before that, when it began."""
    trigger: str = "asked"
    proposer: str = RULES
    holder: str = ""
    gathered: int = 0
    proposed: int = 0
    checked: int = 0
    """Numbers of the events by which it has reached these stages; 0 where it has not."""
    answers: tuple[int, ...] = ()
    """Numbers of the events that have what a model has answered to what was gathered."""
    tokens: tuple[int, int] = (0, 0)
    price: float = 0.0
    """Of all that was answered and proposed for it."""
    released: bool = False
    """Whoever had it has left it to others, in good order: nothing of it has failed."""

    @property
    def stage(self) -> Stage:
        """The last one that it has reached."""
        if self.checked:
            return "checked"
        if self.proposed:
            return "proposed"
        return "gathered" if self.gathered else "begun"

    @property
    def has_paid_work(self) -> bool:
        """Is there something to go on with that has cost something, or may have?"""
        return bool(self.proposed or self.answers)

    @property
    def uses_model(self) -> bool:
        return self.proposer != RULES

    def is_held(self, now: datetime) -> bool:
        """For one lease, and one more where its clock is ahead of this one. What ends later than that was told by a
        clock that is wrong, and must not keep everybody out until then."""
        return self.lease_until - 2 * LEASE_DURATION <= now < self.lease_until

    def is_resumable(self, now: datetime) -> bool:
        """Is it worth going on with? Not where a clock that is wrong, then or now, does not tell how old it is."""
        return -LEASE_DURATION <= now - self.gathered_at < MAX_RESUME_AGE


def _empty() -> dict[str, Any]:
    return {}


@frozen(kw_only=True)
class DreamingState:
    running: ActiveDream | None = None
    last_started_at: datetime | None = None
    """When the last dream began, whatever became of it."""
    model_asked_at: datetime | None = None
    """When the last one began for which a model was asked."""
    last_done_at: datetime | None = None
    """When the last one began that came to its end: what came in since then is new."""
    last_dream: int = 0
    """That one, unless it was undone."""
    failures: int = 0
    """Dreams in a row that came to nothing."""
    model_failures: int = 0
    """Dreams in a row for which a model was asked in vain."""
    day_tokens: tuple[str, int] = ("", 0)
    """A day, and the tokens that models have read and written on it."""
    last_seq: int = 0
    journal_position: int = 0
    """Up to where notes, and sessions, have been looked at: see Dreamt."""
    lines: Mapping[str, PageLine] = field(default_factory=_empty)
    """Those on the page that dreams have written, by their text."""
    user_lines: Mapping[str, str] = field(default_factory=_empty)
    """Entries on the page that people have written, with the crystals that have their words."""
    adopted_entries: frozenset[str] = frozenset()
    """Those among them that were there before the first dream."""
    page_adopted: bool = False
    gaps: tuple[KnowledgeGap, ...] = ()
    skills: tuple[LearnedSkill, ...] = ()
    insight_keys: frozenset[str] = frozenset()

    def apply(self, event: Event) -> DreamingState:
        match event.payload:
            case DreamStarted() as started:
                running = ActiveDream(
                    dream=event.seq,
                    started_at=event.at,
                    lease_until=_parse_datetime(started.lease_until),
                    gathered_at=event.at,
                    trigger=started.trigger,
                    proposer=started.proposer,
                    holder=started.holder,
                )
                previous = self.running
                return replace(
                    self,
                    running=running,
                    last_started_at=event.at,
                    model_asked_at=event.at if running.uses_model else self.model_asked_at,
                    failures=self.failures + (previous is not None and not previous.released),
                    model_failures=self.model_failures
                    + (previous is not None and not previous.released and previous.uses_model),
                )
            case (
                DreamResumed()
                | DreamProgressed()
                | DreamGathered()
                | DreamAnswered()
                | DreamProposed()
                | DreamChecked()
            ):
                running, payload = self.running, event.payload
                return (
                    self._apply_progress(payload, running, event)
                    if running and running.dream == payload.dream
                    else self
                )
            case DreamFailed(dream=dream, tokens=tokens) if self.running is not None and self.running.dream == dream:
                return replace(
                    self,
                    running=None,
                    failures=self.failures + 1,
                    model_failures=self.model_failures + self.running.uses_model,
                    day_tokens=self._add_tokens(self._uncounted_tokens(tokens), event.at),
                )
            case DreamCommitted() as committed:
                return self._apply_commit(committed, event)
            case DreamUndone() as undone:
                return self._apply_undo(undone)
            case PageAdopted(text=text):
                from inmind.dreams.page.adopt_existing import (
                    chunk_by_entry,
                    entry_texts,
                )  # needed once in the life of a resource

                chunks = {
                    entry: f"{event.stream}#{event.seq + 1 + place}" for entry, place in chunk_by_entry(text).items()
                }
                return replace(
                    self, page_adopted=True, adopted_entries=entry_texts(text), user_lines={**self.user_lines, **chunks}
                )
            case DocumentWritten(path=path, text=text) if path == MEMORY_PAGE_PATH and event.origin is Origin.DREAM:
                return self._apply_page(text)
            case _:
                return self

    def _apply_progress(self, payload: DreamUnderway, running: ActiveDream, event: Event) -> DreamingState:
        previous, running = running, replace(running, lease_until=_parse_datetime(payload.lease_until), released=False)
        match payload:
            case DreamResumed():
                return self._apply_takeover(
                    replace(running, holder=payload.holder, proposer=payload.proposer), previous, event.at
                )
            case DreamGathered():
                running = replace(running, gathered=event.seq, gathered_at=_parse_datetime(payload.as_of))
                running = replace(running, answers=(), proposed=0, checked=0)
            case DreamAnswered():
                return self._apply_payment(payload, replace(running, answers=(*running.answers, event.seq)), event.at)
            case DreamProposed():
                return self._apply_payment(payload, replace(running, proposed=event.seq, checked=0), event.at)
            case DreamChecked():
                running = replace(running, checked=event.seq)
            case DreamProgressed():
                running = replace(running, released=payload.released)
        return replace(self, running=running)

    def _apply_payment(
        self, payload: DreamAnswered | DreamProposed, running: ActiveDream, at: datetime
    ) -> DreamingState:
        read, written = (before + more for before, more in zip(running.tokens, payload.tokens, strict=True))
        running = replace(running, tokens=(read, written), price=running.price + payload.price)
        return replace(self, running=running, day_tokens=self._add_tokens(payload.tokens, at))

    def _apply_takeover(self, running: ActiveDream, previous: ActiveDream, at: datetime) -> DreamingState:
        """Whoever held it came to nothing, unless it was left to others; but a model that has answered already was not
        asked in vain."""
        unasked = not previous.has_paid_work
        return replace(
            self,
            running=running,
            model_asked_at=at if unasked and running.uses_model else self.model_asked_at,
            failures=self.failures + (not previous.released),
            model_failures=self.model_failures + (unasked and previous.uses_model and not previous.released),
        )

    def _apply_commit(self, committed: DreamCommitted, event: Event) -> DreamingState:
        return replace(
            self,
            running=None,
            last_done_at=self.running.gathered_at if self.running else event.at,
            last_dream=committed.dream,
            failures=0,
            model_failures=self._count_model_failures(committed),
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
        """Tokens that models have taken on this day, in UTC."""
        day, tokens = self.day_tokens
        return tokens if day == _day(now) else 0

    def _add_tokens(self, tokens: tuple[int, int], at: datetime) -> tuple[str, int]:
        return (_day(at), self.tokens_on(at) + sum(tokens)) if any(tokens) else self.day_tokens

    def _uncounted_tokens(self, tokens: tuple[int, int]) -> tuple[int, int]:
        """What of a dream's tokens has not been counted with what was answered and proposed for it."""
        counted = self.running.tokens if self.running else (0, 0)
        return max(0, tokens[0] - counted[0]), max(0, tokens[1] - counted[1])

    def _count_model_failures(self, committed: DreamCommitted) -> int:
        """A dream for which no model was asked says nothing of the model."""
        if committed.fallback_reason and not committed.fallback_reason.startswith(LIMIT_REACHED):
            return self.model_failures + 1
        return self.model_failures if committed.proposer == RULES else 0

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
        """What is no longer on the page is no line of it: said there again by somebody, it is theirs."""
        from inmind.dreams.page.page import parse_page  # most who open a memory meet no dream

        standing = {entry for _, entry in parse_page(text).all_entries()}
        return replace(
            self,
            lines={line: made for line, made in self.lines.items() if line in standing},
            user_lines={entry: crystal for entry, crystal in self.user_lines.items() if entry in standing},
            adopted_entries=self.adopted_entries & standing,
        )

    def freeze(self) -> dict[str, Any]:
        return {
            "running": self.running and _freeze_running(self.running),
            "times": [_isoformat(self.last_started_at), _isoformat(self.model_asked_at), _isoformat(self.last_done_at)],
            "numbers": [self.last_dream, self.failures, self.model_failures, self.last_seq, self.journal_position],
            "spent": self.day_tokens,
            "lines": list(self.lines.values()),
            "theirs": dict(self.user_lines),
            "seed": [self.page_adopted, sorted(self.adopted_entries)],
            "gaps": self.gaps,
            "skills": self.skills,
            "insights": sorted(self.insight_keys),
        }

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any]) -> DreamingState:
        running = frozen["running"]
        begun, asked, done = map(_parse_optional, frozen["times"])
        last, failures, model_failures, upto, position = frozen["numbers"]
        lines = [named_tuple(PageLine, line) for line in frozen["lines"]]
        return cls(
            running=running and _thaw_running(running),
            last_started_at=begun,
            model_asked_at=asked,
            last_done_at=done,
            last_dream=last,
            failures=failures,
            model_failures=model_failures,
            day_tokens=(frozen["spent"][0], frozen["spent"][1]),
            last_seq=upto,
            journal_position=position,
            lines={line.text: line for line in lines},
            user_lines=frozen["theirs"],
            page_adopted=frozen["seed"][0],
            adopted_entries=frozenset(frozen["seed"][1]),
            gaps=tuple(named_tuple(KnowledgeGap, gap) for gap in frozen["gaps"]),
            skills=tuple(named_tuple(LearnedSkill, skill) for skill in frozen["skills"]),
            insight_keys=frozenset(frozen["insights"]),
        )


def _freeze_running(running: ActiveDream) -> dict[str, Any]:
    values = {item.name: getattr(running, item.name) for item in fields(running)}
    values |= {name: _isoformat(values[name]) for name in _DATETIME_FIELDS}
    return {_SNAPSHOT_KEYS.get(name, name): value for name, value in values.items()}


def _thaw_running(frozen: Mapping[str, Any]) -> ActiveDream:
    names = {key: name for name, key in _SNAPSHOT_KEYS.items()}
    values: dict[str, Any] = {names.get(key, key): value for key, value in frozen.items()}
    values |= {name: _parse_datetime(values[name]) for name in _DATETIME_FIELDS}
    values |= {name: tuple(values[name]) for name in ("answers", "tokens")}
    return ActiveDream(**values)


_DATETIME_FIELDS = ("started_at", "lease_until", "gathered_at")

_SNAPSHOT_KEYS = {
    "started_at": "began",
    "lease_until": "until",
    "gathered_at": "made_of",
    "proposer": "by",
    "released": "left",
}
"""Field name, then its key in stored snapshots where that differs."""


def _day(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()


def _isoformat(at: datetime | None) -> str:
    return at.isoformat() if at else ""


def _parse_datetime(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _parse_optional(text: str) -> datetime | None:
    return _parse_datetime(text) if text else None
