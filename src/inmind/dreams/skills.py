"""What an agent does again and again: tools that follow each other, and tasks that begin alike.

Each is counted once in a turn, and the counts go on from dream to dream: what a dream is handed is only what is new.
How sure one can be of a skill follows from two things, that it comes to a good end and that it was done often enough:

    confidence = (succeeded + 1) / (occurrences + 2) x (1 - e^(-occurrences / 2))

The first factor is the share of good ends, careful while there are few of them (Laplace); the second is small for what
happened once, and one for what happens all the time. Seven out of seven are 86%, four out of four 72%, seven out of
fourteen 50%.

Of tools in a row, those that are part of a longer row which was done as often are not told beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from math import exp
from typing import Final, NamedTuple

from inmind.core.events.base import Trust
from inmind.core.events.dreams import LearnedSkill
from inmind.core.text import shortened
from inmind.dreams.activity import Activity, ActivityTurn, split_turns
from inmind.dreams.requests import find_request

MIN_OCCURRENCES: Final = 3
"""Occurrences from which on something is a skill and no accident."""

MAX_SKILLS: Final = 40
"""Kept in mind, those that are none yet among them."""

SEQUENCE_LENGTHS: Final = (2, 3, 4)
"""Tools in a row."""

MAX_NAME_CHARACTERS: Final = 120
MAX_SKILL_SOURCES: Final = 5
"""Occurrences that are named, the last ones."""

HALF_LIFE: Final = timedelta(days=30)
"""An old habit counts half: so what was done twice this week outlives what was done three times last year."""

_SEPARATOR = " > "


def update_skills(activity: Activity, previous: Sequence[LearnedSkill], now: datetime) -> tuple[LearnedSkill, ...]:
    """All that are known from now on, the most practised first."""
    known = {skill.name: skill for skill in previous}
    for done in _practices(activity):
        known[done.name] = _count_practice(known.get(done.name), done)
    return tuple(sorted(known.values(), key=lambda skill: (-_decayed_count(skill, now), skill.name))[:MAX_SKILLS])


def emerging_skills(known: Sequence[LearnedSkill]) -> list[LearnedSkill]:
    """Those to be told of, the surest first."""
    often = [skill for skill in known if skill.occurrences >= MIN_OCCURRENCES]
    rows = [skill for skill in often if _SEPARATOR in skill.name]
    whole = [skill for skill in often if not any(_is_subsequence(skill, row) for row in rows)]
    return sorted(whole, key=lambda skill: (-confidence(skill), -skill.occurrences, skill.name))


def confidence(skill: LearnedSkill) -> float:
    return (skill.succeeded + 1) / (skill.occurrences + 2) * (1 - exp(-skill.occurrences / 2))


def skill_line(skill: LearnedSkill) -> str:
    return f"{skill.name} → Confidence: {confidence(skill):.0%} | Occurrences: {skill.occurrences}"


class _Practice(NamedTuple):
    """Something that was done once."""

    name: str
    at: datetime
    source: str
    succeeded: bool


def _count_practice(skill: LearnedSkill | None, done: _Practice) -> LearnedSkill:
    before = skill or LearnedSkill(done.name, 0, 0, "", ())
    return LearnedSkill(
        name=done.name,
        occurrences=before.occurrences + 1,
        succeeded=before.succeeded + done.succeeded,
        last_used=max(before.last_used, done.at.isoformat()),
        sources=(*before.sources, done.source)[-MAX_SKILL_SOURCES:],
    )


def _practices(activity: Activity) -> Iterator[_Practice]:
    for turn in split_turns(activity.utterances):
        if turn.responses:
            yield from _task_practices(turn)
            yield from _sequence_practices(turn)


def _task_practices(turn: ActivityTurn) -> Iterator[_Practice]:
    """What a person asked for. It came to a good end if the last thing that was done for it did."""
    people = [spoke for spoke in turn.user_messages if spoke.trust >= Trust.PERSON]
    task = next(((task, spoke) for spoke in people if (task := find_request(spoke.sentences))), None)
    if task is not None:
        name, asked = task
        yield _Practice(name, asked.at, asked.id, not (turn.tool_calls and turn.tool_calls[-1].failed))


def _sequence_practices(turn: ActivityTurn) -> Iterator[_Practice]:
    """Tools in a row, the same one several times over counting as one; of two equal rows in a turn, the later."""
    steps = [[*same][-1] for _, same in groupby(turn.tool_calls, key=lambda call: call.tool)]
    last = turn.responses[-1]
    found = {
        _SEPARATOR.join(step.tool for step in steps[start : start + length]): not steps[start + length - 1].failed
        for length in SEQUENCE_LENGTHS
        for start in range(len(steps) - length + 1)
    }
    for name, succeeded in found.items():
        yield _Practice(shortened(name, MAX_NAME_CHARACTERS), last.at, last.id, succeeded)


def _is_subsequence(skill: LearnedSkill, row: LearnedSkill) -> bool:
    inside = f"{_SEPARATOR}{skill.name}{_SEPARATOR}" in f"{_SEPARATOR}{row.name}{_SEPARATOR}"
    return inside and row.name != skill.name and row.occurrences >= skill.occurrences


def _decayed_count(skill: LearnedSkill, now: datetime) -> float:
    """How often it was done, less with time. A clock that was set back makes nothing newer than new."""
    age = max(timedelta(), now - datetime.fromisoformat(skill.last_used))
    return skill.occurrences * 0.5 ** (age / HALF_LIFE)
