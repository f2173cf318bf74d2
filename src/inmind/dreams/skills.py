"""Detect what an agent does repeatedly: tasks of the same kind.

A task is counted once per turn. The counts continue from dream to dream, because a dream only reads new activity. The
confidence in a skill grows with its success rate and with its number of occurrences:

    confidence = (succeeded + 1) / (occurrences + 2) x (1 - e^(-occurrences / 2))

The first factor is the success rate with Laplace smoothing; the second is small for one occurrence and approaches one.
Seven out of seven are 86%, four out of four 72%, seven out of fourteen 50%.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from math import exp
from typing import Final

from inmind.core.events.base import Trust
from inmind.core.events.dreams import LearnedSkill
from inmind.core.fair_turns import giving_way
from inmind.dreams.material import Activity, split_turns
from inmind.dreams.sentences import find_request

MIN_OCCURRENCES: Final = 3
"""Occurrences from which something counts as a skill."""

MAX_SKILLS: Final = 40
"""Skills that are stored, including those with too few occurrences so far."""

MAX_SKILL_SOURCES: Final = 5
"""Sources stored for each skill, the latest ones."""

HALF_LIFE: Final = timedelta(days=30)
"""Occurrences decay by half: two this week outweigh three last year."""

_TOOL_SEPARATOR = " > "
"""Earlier versions also counted sequences of tools, as skills with this in their names."""


def update_skills(activity: Activity, previous: Sequence[LearnedSkill], now: datetime) -> tuple[LearnedSkill, ...]:
    """All known skills after this activity, the most practised first."""
    known = {skill.name: skill for skill in previous if _TOOL_SEPARATOR not in skill.name}
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
    frequent = (skill for skill in known if skill.occurrences >= MIN_OCCURRENCES)
    return sorted(frequent, key=lambda skill: (-confidence(skill), -skill.occurrences, skill.name))


def confidence(skill: LearnedSkill) -> float:
    return (skill.succeeded + 1) / (skill.occurrences + 2) * (1 - exp(-skill.occurrences / 2))


def skill_line(skill: LearnedSkill) -> str:
    return f"{skill.name} → Confidence: {confidence(skill):.0%} | Occurrences: {skill.occurrences}"


def _practices(activity: Activity) -> Iterator[tuple[str, datetime, str, bool]]:
    """The tasks of users: name, time, source, and whether the last tool call succeeded."""
    for turn in giving_way(split_turns(activity.utterances)):
        people = [message for message in turn.user_messages if message.trust >= Trust.PERSON]
        task = next(((task, message) for message in people if (task := find_request(message.sentences))), None)
        if task is not None and turn.responses:
            name, message = task
            calls = (tool_use for response in reversed(turn.responses) for tool_use in reversed(response.tool_uses))
            last_call = next(calls, None)
            yield name, message.at, message.id, last_call is None or not last_call.failed


def _decayed_count(skill: LearnedSkill, now: datetime) -> float:
    """Occurrences, reduced by age. A clock that was set back does not increase them."""
    age = max(timedelta(), now - datetime.fromisoformat(skill.last_used))
    return skill.occurrences * 0.5 ** (age / HALF_LIFE)
