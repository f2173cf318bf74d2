"""Skills: repeated tasks, counted over several dreams."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from builders import WHEN

from inmind.core.events.base import Trust
from inmind.core.events.dreams import LearnedSkill
from inmind.dreams.material import Activity, ToolUse, Utterance
from inmind.dreams.skills import MAX_SKILLS, MIN_OCCURRENCES, confidence, emerging_skills, skill_line, update_skills

pytestmark = pytest.mark.spec("G3", "G5")

DAY = timedelta(days=1)


def user(text: str, *, turn: int = 1, session: str = "s", trust: Trust = Trust.PERSON) -> Utterance:
    at = WHEN + timedelta(minutes=turn)
    return Utterance(id=f"session/{session}#{turn}0", session=session, at=at, role="user", text=text, trust=trust)


def tool_messages(*tools: str, turn: int = 1, session: str = "s") -> list[Utterance]:
    """Messages with calls and their results; a tool whose name ends with ! fails."""
    at, place = WHEN + timedelta(minutes=turn), f"session/{session}#{turn}"
    outcomes = [ToolUse(tool=tool.rstrip("!"), failed=tool.endswith("!")) for tool in tools]
    uses = [ToolUse(tool=one.tool) for one in outcomes]
    calls = Utterance(
        id=f"{place}1", session=session, at=at, role="assistant", tool_uses=tuple(uses), trust=Trust.AGENT
    )
    return [
        calls,
        *(
            Utterance(id=f"{place}{n}", session=session, at=at, role="tool", tool_uses=(one,), trust=Trust.DATA)
            for n, one in enumerate(outcomes, 2)
        ),
    ]


def reply(text: str = "Done.", *, turn: int = 1, session: str = "s") -> Utterance:
    at = WHEN + timedelta(minutes=turn)
    return Utterance(
        id=f"session/{session}#{turn}9", session=session, at=at, role="assistant", text=text, trust=Trust.AGENT
    )


def a_turn(request: str, *tools: str, turn: int = 1) -> list[Utterance]:
    return [user(request, turn=turn), *tool_messages(*tools, turn=turn), reply(turn=turn)]


def count_skills(*messages: Utterance, before: Sequence[LearnedSkill] = ()) -> dict[str, tuple[int, int]]:
    known = update_skills(Activity(utterances=messages), before, WHEN + DAY)
    return {skill.name: (skill.occurrences, skill.succeeded) for skill in known}


def a_skill(name: str, occurrences: int, succeeded: int | None = None, *, days_ago: float = 0) -> LearnedSkill:
    done = occurrences if succeeded is None else succeeded
    return LearnedSkill(name, occurrences, done, (WHEN - days_ago * DAY).isoformat())


def test_similar_requests_are_one_task() -> None:
    messages = [*a_turn("Refactor the auth module", turn=1), *a_turn("please refactor the payment modules", turn=2)]
    assert count_skills(*messages) == {"refactor module": (2, 2)}


def test_a_task_with_a_failed_last_call_did_not_succeed() -> None:
    assert count_skills(*a_turn("Refactor the auth module", "edit", "test!")) == {"refactor module": (1, 0)}
    assert count_skills(*a_turn("Refactor the auth module", "edit!", "test")) == {"refactor module": (1, 1)}


def test_a_request_without_a_reply_is_not_counted() -> None:
    assert count_skills(user("Refactor the auth module")) == {}


def test_only_requests_of_people_are_counted() -> None:
    assert count_skills(user("Refactor the auth module", trust=Trust.DATA), reply()) == {}


def test_counts_continue_from_earlier_dreams() -> None:
    before = [a_skill("refactor module", 4, 3), a_skill("fix roof", 2, 2)]
    assert count_skills(*a_turn("Refactor the auth module"), before=before) == {
        "refactor module": (5, 4),
        "fix roof": (2, 2),
    }


def test_sequences_of_tools_from_earlier_versions_are_dropped() -> None:
    assert count_skills(before=[a_skill("edit > test", 4)]) == {}


def test_a_skill_has_its_last_time_and_its_newest_sources() -> None:
    messages = [one for turn in range(1, 8) for one in a_turn("Fix the roof", turn=turn)]
    (skill,) = update_skills(Activity(utterances=tuple(messages)), [], WHEN + DAY)
    assert skill.last_used == (WHEN + timedelta(minutes=7)).isoformat()
    assert skill.sources == tuple(f"session/s#{turn}0" for turn in range(3, 8))


def test_the_rarest_and_oldest_skill_is_dropped_first() -> None:
    often = [a_skill(f"often {n}", 9) for n in range(MAX_SKILLS - 2)]
    before = [*often, a_skill("old habit", 4, days_ago=90), a_skill("new habit", 2), a_skill("once", 1, days_ago=3)]
    kept = {skill.name for skill in update_skills(Activity(), before, WHEN + DAY)}
    assert len(kept) == MAX_SKILLS
    assert "new habit" in kept
    assert "old habit" not in kept


def test_three_occurrences_are_a_skill() -> None:
    assert emerging_skills([a_skill("fix roof", MIN_OCCURRENCES), a_skill("fix door", MIN_OCCURRENCES - 1)]) == [
        a_skill("fix roof", MIN_OCCURRENCES)
    ]


def test_confidence_grows_with_successes_and_occurrences() -> None:
    assert [round(confidence(a_skill("", n, s)), 2) for n, s in [(7, 7), (4, 4), (14, 7), (1, 1)]] == [
        0.86,
        0.72,
        0.5,
        0.26,
    ]
    assert confidence(a_skill("", 7, 7)) > confidence(a_skill("", 7, 6)) > confidence(a_skill("", 6, 5)) * 0.9
    assert 0 < confidence(a_skill("", 1000, 0)) < 0.01


def test_a_skill_line_contains_its_confidence() -> None:
    assert (
        skill_line(a_skill("TypeScript refactoring", 7, 7))
        == "TypeScript refactoring → Confidence: 86% | Occurrences: 7"
    )
