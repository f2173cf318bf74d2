"""Detect what an agent does repeatedly: sequences of tools, and tasks of the same kind.

Each is counted once per turn. The counts continue from dream to dream, because a dream only reads new activity. The
confidence in a skill grows with its success rate and with its number of occurrences:

    confidence = (succeeded + 1) / (occurrences + 2) x (1 - e^(-occurrences / 2))

The first factor is the success rate with Laplace smoothing; the second is small for one occurrence and approaches one.
Seven out of seven are 86%, four out of four 72%, seven out of fourteen 50%.

A sequence that is part of a longer one with as many occurrences is not listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from math import exp
from typing import Final

from inmind.core.events.base import Trust
from inmind.core.events.dreams import LearnedSkill
from inmind.core.text import shorten
from inmind.dreams.material import Activity, ActivityTurn, split_turns
from inmind.dreams.sentences import find_request

MIN_OCCURRENCES: Final = 3
"""Occurrences from which something counts as a skill."""

MAX_SKILLS: Final = 40
"""Skills that are stored, including those with too few occurrences so far."""

SEQUENCE_LENGTHS: Final = (2, 3, 4)
"""Numbers of tools in a sequence."""

MAX_NAME_CHARACTERS: Final = 120
MAX_SKILL_SOURCES: Final = 5
"""Sources stored for each skill, the latest ones."""

HALF_LIFE: Final = timedelta(days=30)
"""Occurrences decay by half: two this week outweigh three last year."""

_SEPARATOR = " > "


def update_skills(activity: Activity, previous: Sequence[LearnedSkill], now: datetime) -> tuple[LearnedSkill, ...]:
    """All known skills after this activity, the most practised first."""
    known = {skill.name: skill for skill in previous}
    for name, at, source, succeeded in _practices(activity):
        skill = known.get(name) or LearnedSkill(name, 0, 0, "", ())
        known[name] = LearnedSkill(
            name=name,
            occurrences=skill.occurrences + 1,
            succeeded=skill.succeeded + succeeded,
            last_used=max(skill.last_used, at.isoformat()),
            sources=(*skill.sources, source)[-MAX_SKILL_SOURCES:],
        )
    return tuple(sorted(known.values(), key=lambda skill: (-_decayed_count(skill, now), skill.name))[:MAX_SKILLS])


def emerging_skills(known: Sequence[LearnedSkill]) -> list[LearnedSkill]:
    """Skills to list on the page, the most certain first."""
    frequent = [skill for skill in known if skill.occurrences >= MIN_OCCURRENCES]
    sequences = [skill for skill in frequent if _SEPARATOR in skill.name]
    longest = [skill for skill in frequent if not any(_is_subsequence(skill, sequence) for sequence in sequences)]
    return sorted(longest, key=lambda skill: (-confidence(skill), -skill.occurrences, skill.name))


def confidence(skill: LearnedSkill) -> float:
    return (skill.succeeded + 1) / (skill.occurrences + 2) * (1 - exp(-skill.occurrences / 2))


def skill_line(skill: LearnedSkill) -> str:
    return f"{skill.name} → Confidence: {confidence(skill):.0%} | Occurrences: {skill.occurrences}"


_Practice = tuple[str, datetime, str, bool]
"""One occurrence of a skill: its name, time and source, and whether it succeeded."""


def _practices(activity: Activity) -> Iterator[_Practice]:
    for turn in split_turns(activity.utterances):
        if turn.responses:
            yield from _task_practices(turn)
            yield from _sequence_practices(turn)


def _task_practices(turn: ActivityTurn) -> Iterator[_Practice]:
    """The task that a user asked for. It succeeded if the last tool call for it did."""
    people = [message for message in turn.user_messages if message.trust >= Trust.PERSON]
    task = next(((task, message) for message in people if (task := find_request(message.sentences))), None)
    if task is not None:
        name, message = task
        yield name, message.at, message.id, not (turn.tool_calls and turn.tool_calls[-1].failed)


def _sequence_practices(turn: ActivityTurn) -> Iterator[_Practice]:
    """Sequences of different tools. Of two equal sequences in a turn, the later one counts."""
    steps = [[*same][-1] for _, same in groupby(turn.tool_calls, key=lambda call: call.tool)]
    last = turn.responses[-1]
    sequences = {
        _SEPARATOR.join(step.tool for step in steps[start : start + length]): not steps[start + length - 1].failed
        for length in SEQUENCE_LENGTHS
        for start in range(len(steps) - length + 1)
    }
    for name, succeeded in sequences.items():
        yield shorten(name, MAX_NAME_CHARACTERS), last.at, last.id, succeeded


def _is_subsequence(skill: LearnedSkill, sequence: LearnedSkill) -> bool:
    inside = f"{_SEPARATOR}{skill.name}{_SEPARATOR}" in f"{_SEPARATOR}{sequence.name}{_SEPARATOR}"
    return inside and sequence.name != skill.name and sequence.occurrences >= skill.occurrences


def _decayed_count(skill: LearnedSkill, now: datetime) -> float:
    """Occurrences, reduced by age. A clock that was set back does not increase them."""
    age = max(timedelta(), now - datetime.fromisoformat(skill.last_used))
    return skill.occurrences * 0.5 ** (age / HALF_LIFE)
