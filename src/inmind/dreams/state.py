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
from inmind.documents.document import STATE

RULES = "rules"
"""Who proposes where no model does."""

LIMITED = "limit reached: "
"""How the reason begins for which a model was not asked at all: it says nothing of the model."""

LEASE = timedelta(seconds=60)
"""How long a dream holds without saying more. Whoever finds one that was killed waits for no longer."""

KEEPS = timedelta(days=1)
"""For how long a dream that was left in the middle is worth going on with. What it proposes was weighed by what there
was then, by the levels and the mood of then: after a day a new one sees more, whatever was paid for the old one."""

Stage = Literal["begun", "gathered", "proposed", "checked"]

NEXT: Mapping[Stage, str] = {"begun": "gather", "gathered": "propose", "proposed": "check", "checked": "commit"}
"""The phase that a dream is in behind each stage."""


@frozen(kw_only=True)
class Running:
    """A dream that has begun and not ended."""

    dream: int
    began: datetime
    until: datetime
    made_of: datetime
    """The time by which it has gathered; before that, when it began."""
    trigger: str = "asked"
    by: str = RULES
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
    left: bool = False
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
    def is_paid_for(self) -> bool:
        """Is there something to go on with that has cost something, or may have?"""
        return bool(self.proposed or self.answers)

    @property
    def asks_model(self) -> bool:
        return self.by != RULES

    def holds(self, now: datetime) -> bool:
        """For one lease, and one more where its clock is ahead of this one. What ends later than that was told by a
        clock that is wrong, and must not keep everybody out until then."""
        return self.until - 2 * LEASE <= now < self.until

    def keeps(self, now: datetime) -> bool:
        """Is it worth going on with? Not where a clock that is wrong, then or now, does not tell how old it is."""
        return -LEASE <= now - self.made_of < KEEPS


def _none() -> dict[str, Any]:
    return {}


@frozen(kw_only=True)
class Dreaming:
    running: Running | None = None
    begun: datetime | None = None
    """When the last dream began, whatever became of it."""
    asked: datetime | None = None
    """When the last one began for which a model was asked."""
    done: datetime | None = None
    """When the last one began that came to its end: what came in since then is new."""
    last: int = 0
    """That one, unless it was undone."""
    failures: int = 0
    """Dreams in a row that came to nothing."""
    model_failures: int = 0
    """Dreams in a row for which a model was asked in vain."""
    spent: tuple[str, int] = ("", 0)
    """A day, and the tokens that models have read and written on it."""
    upto: int = 0
    position: int = 0
    """Up to where notes, and sessions, have been looked at: see Dreamt."""
    lines: Mapping[str, PageLine] = field(default_factory=_none)
    """Those on the page that dreams have written, by their text."""
    theirs: Mapping[str, str] = field(default_factory=_none)
    """Entries on the page that people have written, with the crystals that have their words."""
    seed: frozenset[str] = frozenset()
    """Those among them that were there before the first dream."""
    seeded: bool = False
    gaps: tuple[KnowledgeGap, ...] = ()
    skills: tuple[LearnedSkill, ...] = ()
    insights: frozenset[str] = frozenset()

    def apply(self, event: Event) -> Dreaming:
        match event.payload:
            case DreamStarted() as begun:
                running = Running(
                    dream=event.seq,
                    began=event.at,
                    until=_moment(begun.lease_until),
                    made_of=event.at,
                    trigger=begun.trigger,
                    by=begun.proposer,
                    holder=begun.holder,
                )
                lost = self.running
                return replace(
                    self,
                    running=running,
                    begun=event.at,
                    asked=event.at if running.asks_model else self.asked,
                    failures=self.failures + (lost is not None and not lost.left),
                    model_failures=self.model_failures + (lost is not None and not lost.left and lost.asks_model),
                )
            case (
                DreamResumed()
                | DreamProgressed()
                | DreamGathered()
                | DreamAnswered()
                | DreamProposed()
                | DreamChecked()
            ):
                running, what = self.running, event.payload
                return self._went(what, running, event) if running and running.dream == what.dream else self
            case DreamFailed(dream=dream, tokens=tokens) if self.running is not None and self.running.dream == dream:
                return replace(
                    self,
                    running=None,
                    failures=self.failures + 1,
                    model_failures=self.model_failures + self.running.asks_model,
                    spent=self._spent(self._unpaid(tokens), event.at),
                )
            case DreamCommitted() as dreamt:
                return self._dreamt(dreamt, event)
            case DreamUndone() as undone:
                return self._undone(undone)
            case PageAdopted(text=text):
                from inmind.dreams.page.adopt_existing import entries, keeping  # needed once in the life of a resource

                chunks = {entry: f"{event.stream}#{event.seq + 1 + place}" for entry, place in keeping(text).items()}
                return replace(self, seeded=True, seed=entries(text), theirs={**self.theirs, **chunks})
            case DocumentWritten(path=path, text=text) if path == STATE and event.origin is Origin.DREAM:
                return self._shown(text)
            case _:
                return self

    def _went(self, what: DreamUnderway, running: Running, event: Event) -> Dreaming:
        lost, running = running, replace(running, until=_moment(what.lease_until), left=False)
        match what:
            case DreamResumed():
                return self._taken(replace(running, holder=what.holder, by=what.proposer), lost, event.at)
            case DreamGathered():
                running = replace(running, gathered=event.seq, made_of=_moment(what.as_of))
                running = replace(running, answers=(), proposed=0, checked=0)
            case DreamAnswered():
                return self._paid(what, replace(running, answers=(*running.answers, event.seq)), event.at)
            case DreamProposed():
                return self._paid(what, replace(running, proposed=event.seq, checked=0), event.at)
            case DreamChecked():
                running = replace(running, checked=event.seq)
            case DreamProgressed():
                running = replace(running, left=what.released)
        return replace(self, running=running)

    def _paid(self, what: DreamAnswered | DreamProposed, running: Running, at: datetime) -> Dreaming:
        read, written = (before + more for before, more in zip(running.tokens, what.tokens, strict=True))
        running = replace(running, tokens=(read, written), price=running.price + what.price)
        return replace(self, running=running, spent=self._spent(what.tokens, at))

    def _taken(self, running: Running, lost: Running, at: datetime) -> Dreaming:
        """Whoever held it came to nothing, unless it was left to others; but a model that has answered already was not
        asked in vain."""
        unasked = not lost.is_paid_for
        return replace(
            self,
            running=running,
            asked=at if unasked and running.asks_model else self.asked,
            failures=self.failures + (not lost.left),
            model_failures=self.model_failures + (unasked and lost.asks_model and not lost.left),
        )

    def _dreamt(self, dreamt: DreamCommitted, event: Event) -> Dreaming:
        return replace(
            self,
            running=None,
            done=self.running.made_of if self.running else event.at,
            last=dreamt.dream,
            failures=0,
            model_failures=self._in_vain(dreamt),
            spent=self._spent(self._unpaid(dreamt.tokens), event.at),
            upto=dreamt.last_seq,
            position=dreamt.journal_position,
            lines={**self.lines, **{line.text: line for line in dreamt.lines}},
            theirs={**self.theirs, **dict(dreamt.user_lines)},
            gaps=dreamt.gaps,
            skills=dreamt.skills,
            insights=self.insights | {*dreamt.insights},
        )

    def spent_on(self, now: datetime) -> int:
        """Tokens that models have taken on this day, in UTC."""
        day, tokens = self.spent
        return tokens if day == _day(now) else 0

    def _spent(self, tokens: tuple[int, int], at: datetime) -> tuple[str, int]:
        return (_day(at), self.spent_on(at) + sum(tokens)) if any(tokens) else self.spent

    def _unpaid(self, tokens: tuple[int, int]) -> tuple[int, int]:
        """What of a dream's tokens has not been counted with what was answered and proposed for it."""
        counted = self.running.tokens if self.running else (0, 0)
        return max(0, tokens[0] - counted[0]), max(0, tokens[1] - counted[1])

    def _in_vain(self, dreamt: DreamCommitted) -> int:
        """A dream for which no model was asked says nothing of the model."""
        if dreamt.fallback_reason and not dreamt.fallback_reason.startswith(LIMITED):
            return self.model_failures + 1
        return self.model_failures if dreamt.proposer == RULES else 0

    def _undone(self, undone: DreamUndone) -> Dreaming:
        return replace(
            self,
            last=undone.previous_dream,
            upto=undone.last_seq,
            position=undone.journal_position,
            lines={line.text: line for line in undone.lines},
            gaps=undone.gaps,
            skills=undone.skills,
            insights=self.insights - {*undone.insights},
            theirs={**dict(undone.user_lines), **self.theirs},
            seed=self.seed | {*undone.adopted_entries},
        )

    def _shown(self, text: str) -> Dreaming:
        """What is no longer on the page is no line of it: said there again by somebody, it is theirs."""
        from inmind.dreams.page.page import read  # most who open a memory meet no dream

        standing = {entry for _, entry in read(text).everything()}
        return replace(
            self,
            lines={line: made for line, made in self.lines.items() if line in standing},
            theirs={entry: crystal for entry, crystal in self.theirs.items() if entry in standing},
            seed=self.seed & standing,
        )

    def freeze(self) -> dict[str, Any]:
        return {
            "running": self.running and _frozen(self.running),
            "times": [_text(self.begun), _text(self.asked), _text(self.done)],
            "numbers": [self.last, self.failures, self.model_failures, self.upto, self.position],
            "spent": self.spent,
            "lines": list(self.lines.values()),
            "theirs": dict(self.theirs),
            "seed": [self.seeded, sorted(self.seed)],
            "gaps": self.gaps,
            "skills": self.skills,
            "insights": sorted(self.insights),
        }

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any]) -> Dreaming:
        running = frozen["running"]
        begun, asked, done = map(_moment_or_none, frozen["times"])
        last, failures, model_failures, upto, position = frozen["numbers"]
        lines = [named_tuple(PageLine, line) for line in frozen["lines"]]
        return cls(
            running=running and _thawed(running),
            begun=begun,
            asked=asked,
            done=done,
            last=last,
            failures=failures,
            model_failures=model_failures,
            spent=(frozen["spent"][0], frozen["spent"][1]),
            upto=upto,
            position=position,
            lines={line.text: line for line in lines},
            theirs=frozen["theirs"],
            seeded=frozen["seed"][0],
            seed=frozenset(frozen["seed"][1]),
            gaps=tuple(named_tuple(KnowledgeGap, gap) for gap in frozen["gaps"]),
            skills=tuple(named_tuple(LearnedSkill, skill) for skill in frozen["skills"]),
            insights=frozenset(frozen["insights"]),
        )


def _frozen(running: Running) -> dict[str, Any]:
    values = {one.name: getattr(running, one.name) for one in fields(running)}
    return values | {name: _text(values[name]) for name in _MOMENTS}


def _thawed(frozen: Mapping[str, Any]) -> Running:
    values: dict[str, Any] = {name: _moment(frozen[name]) for name in _MOMENTS}
    values |= {name: tuple(frozen[name]) for name in ("answers", "tokens")}
    return Running(**{**frozen, **values})


_MOMENTS = ("began", "until", "made_of")


def _day(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()


def _text(at: datetime | None) -> str:
    return at.isoformat() if at else ""


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _moment_or_none(text: str) -> datetime | None:
    return _moment(text) if text else None
