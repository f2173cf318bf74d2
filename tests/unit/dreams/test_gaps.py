"""Knowledge gaps: how they open, are renewed, close and expire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import pytest
from builders import WHEN

from inmind.core.events.base import Trust
from inmind.core.events.dreams import KnowledgeGap
from inmind.dreams.gaps import GAP_LIFETIME, MAX_GAPS, update_gaps
from inmind.dreams.material import ANSWER_GRACE, Activity, SearchUse, ToolUse, Utterance

pytestmark = pytest.mark.spec("G3", "G5")

MINUTE = timedelta(minutes=1)
NOW = WHEN + 60 * MINUTE
FERRY = "When does the ferry to Brodick leave?"


def an_utterance(
    role: str, text: str, minute: int = 0, *, session: str = "s", trust: Trust | None = None, calls: bool = False
) -> Utterance:
    own = {"user": Trust.PERSON, "assistant": Trust.AGENT}.get(role, Trust.DATA)
    return Utterance(
        id=f"session/{session}#{minute}",
        session=session,
        at=WHEN + minute * MINUTE,
        role=role,
        text=text,
        tool_uses=(ToolUse(tool="look"),) if calls else (),
        trust=own if trust is None else trust,
    )


def question(text: str, minute: int = 0, *, session: str = "s") -> Utterance:
    return an_utterance("user", text, minute, session=session)


def reply(text: str, minute: int = 1, *, session: str = "s") -> Utterance:
    return an_utterance("assistant", text, minute, session=session)


def a_search(query: str, hits: int = 0, minute: int = 0) -> SearchUse:
    ids = tuple(f"resource/ada#{n}" for n in range(hits))
    return SearchUse(id=f"session/s#{minute}", session="s", at=WHEN + minute * MINUTE, query=query, hits=ids)


def a_gap(topic: str = FERRY, reason: str = "unanswered", *, renewed: timedelta = timedelta()) -> KnowledgeGap:
    return KnowledgeGap(topic, reason, WHEN.isoformat(), (WHEN + renewed).isoformat(), ("session/t#1",))


def find_gaps(
    *messages: Utterance,
    lookups: Iterable[SearchUse] = (),
    before: Sequence[KnowledgeGap] = (),
    after: timedelta = NOW - WHEN,
) -> list[tuple[str, str]]:
    known = update_gaps(Activity(utterances=messages, searches=tuple(lookups)), before, WHEN + after)
    return [(gap.topic, gap.reason) for gap in known]


# -- questions ---------------------------------------------------------------------------------------------


def test_a_question_that_the_assistant_could_not_answer_is_a_gap_in_the_users_words() -> None:
    (gap,) = update_gaps(Activity(utterances=(question(FERRY, 3), reply("I don't know.", 4))), [], NOW)
    when = (WHEN + 3 * MINUTE).isoformat()
    assert gap == KnowledgeGap(FERRY, "unanswered", when, when, ("session/s#3",))


def test_an_answered_question_is_no_gap() -> None:
    assert find_gaps(question(FERRY), reply("At nine.")) == []


def test_an_unanswered_last_question_is_a_gap_after_the_grace_period() -> None:
    assert find_gaps(question(FERRY), after=ANSWER_GRACE) == [(FERRY, "unanswered")]
    assert find_gaps(question(FERRY), after=ANSWER_GRACE - MINUTE) == []


def test_a_turn_in_progress_is_not_unanswered() -> None:
    assert find_gaps(question(FERRY), an_utterance("assistant", "", 1, calls=True)) == []


def test_a_question_in_two_messages_is_answered_after_the_second() -> None:
    assert find_gaps(question(FERRY), question("I mean the one on Sunday", 1), reply("At nine.", 2)) == []


def test_of_two_questions_only_the_unanswered_one_is_a_gap() -> None:
    messages = (
        question(f"{FERRY} Who owns the harbour pub?"),
        reply("The ferry to Brodick leaves at nine. I don't know the pub."),
    )
    assert find_gaps(*messages) == [("Who owns the harbour pub?", "unanswered")]


def test_a_sentence_without_a_question_is_no_gap() -> None:
    for text in ("How are you?", "Great, right?", "Fix the ferry page", "Who knows?"):
        assert find_gaps(question(text), reply("I don't know.")) == []


def test_only_questions_of_people_are_gaps() -> None:
    assert find_gaps(an_utterance("user", FERRY, trust=Trust.DATA), reply("I don't know.")) == []


def test_chinese_questions_are_understood() -> None:
    assert find_gaps(question("去布罗迪克的轮渡几点开？"), reply("抱歉，我不知道。")) == [
        ("去布罗迪克的轮渡几点开？", "unanswered")
    ]
    assert find_gaps(question("去布罗迪克的轮渡几点开？"), reply("九点开船。")) == []


# -- searches ----------------------------------------------------------------------------------------------


def test_only_a_search_without_hits_is_a_gap() -> None:
    assert find_gaps(lookups=[a_search("ferry timetable", 0)]) == [("ferry timetable", "not_found")]
    assert find_gaps(lookups=[a_search("ferry timetable", 1)]) == []


def test_an_empty_query_is_no_gap() -> None:
    assert find_gaps(lookups=[a_search(" "), a_search("?!", minute=1)]) == []


def test_a_later_search_with_hits_closes_the_gap() -> None:
    assert find_gaps(lookups=[a_search("ferry timetable"), a_search("timetable of the ferry", 2, minute=1)]) == []


def test_an_earlier_search_with_hits_does_not_close_the_gap() -> None:
    lookups = [a_search("timetable of the ferry", 2), a_search("ferry timetable", minute=1)]
    assert find_gaps(lookups=lookups) == [("ferry timetable", "not_found")]


def test_a_search_before_an_answer_is_no_gap() -> None:
    lookups = [a_search("ferry Brodick", minute=1)]
    assert find_gaps(question(FERRY), reply("The ferry leaves at nine.", 2), lookups=lookups) == []


def test_a_question_and_the_search_for_its_answer_are_one_gap() -> None:
    lookups = [a_search("ferry Brodick timetable", minute=1)]
    assert find_gaps(question(FERRY), reply("I couldn't find it.", 2), lookups=lookups) == [(FERRY, "unanswered")]


# -- over time ---------------------------------------------------------------------------------------------


def test_a_gap_expires_two_days_after_it_was_last_seen() -> None:
    assert find_gaps(before=[a_gap()], after=GAP_LIFETIME) == [(FERRY, "unanswered")]
    assert find_gaps(before=[a_gap()], after=GAP_LIFETIME + MINUTE) == []
    assert find_gaps(before=[a_gap(renewed=MINUTE)], after=GAP_LIFETIME + MINUTE) == [(FERRY, "unanswered")]


def test_a_repeated_gap_lasts_two_more_days_and_keeps_its_age() -> None:
    messages = question("When does the Brodick ferry leave on Sundays?", 50), reply("I don't know.", 51)
    (gap,) = update_gaps(Activity(utterances=messages), [a_gap()], NOW)
    assert (gap.since, gap.last_seen) == (WHEN.isoformat(), (WHEN + 50 * MINUTE).isoformat())
    assert gap.sources == ("session/t#1", "session/s#50")


def test_a_gap_of_an_earlier_version_is_replaced_by_a_question_about_it() -> None:
    messages = question("Who is Maria Lopez really?", 50), reply("I don't know.", 51)
    assert find_gaps(*messages, before=[a_gap("Maria Lopez", "mentioned_once")]) == [
        ("Who is Maria Lopez really?", "unanswered")
    ]


@pytest.mark.parametrize("session", ["s", "another"])
def test_a_gap_of_an_earlier_dream_is_closed_by_an_answer_in_any_session(session: str) -> None:
    messages = (
        question("What time does the Brodick ferry leave?", 5, session=session),
        reply("At nine.", 6, session=session),
    )
    assert find_gaps(*messages, before=[a_gap()]) == []


def test_a_gap_is_closed_by_an_unrequested_answer() -> None:
    messages = question("Good morning!", 5), reply("The ferry to Brodick will leave at nine.", 6)
    assert find_gaps(*messages, before=[a_gap()]) == []


def test_a_gap_is_not_closed_by_a_reply_with_another_answer() -> None:
    messages = question(FERRY, 5), reply("I don't know. The harbour pub is open until nine.", 6)
    assert find_gaps(*messages, before=[a_gap()]) == [(FERRY, "unanswered")]


def test_a_gap_is_not_closed_by_an_exchange_about_another_topic() -> None:
    messages = question("When does the bus leave?", 5), reply("The bus leaves at nine.", 6)
    assert find_gaps(*messages, before=[a_gap()]) == [(FERRY, "unanswered")]


def test_the_ten_newest_gaps_are_kept_newest_first() -> None:
    topics = "anchor barge canoe dinghy ferry galley hull island jetty keel lighthouse mast".split()
    lookups = [a_search(f"{topic} timetable {topic}s", minute=n) for n, topic in enumerate(topics)]
    assert [topic.split()[0] for topic, _ in find_gaps(lookups=lookups)] == topics[::-1][:MAX_GAPS]


def test_no_gap_expires_if_the_clock_was_set_back() -> None:
    assert find_gaps(before=[a_gap(renewed=timedelta(days=30))]) == [(FERRY, "unanswered")]
