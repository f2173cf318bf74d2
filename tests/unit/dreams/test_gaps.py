"""What the agent does not know: how gaps open, come up again, close, and are over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import pytest
from builders import WHEN
from tables import each_row

from inmind.core.events.base import Trust
from inmind.core.events.dreams import KnowledgeGap
from inmind.dreams.activity import ANSWER_GRACE, Activity, SearchUse, ToolUse, Utterance
from inmind.dreams.gaps import GAP_LIFETIME, MAX_GAPS, update_gaps

pytestmark = pytest.mark.spec("G3", "G5")

MINUTE = timedelta(minutes=1)
NOW = WHEN + 60 * MINUTE
FERRY = "When does the ferry to Brodick leave?"


def said(
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


def asked(text: str, minute: int = 0, *, session: str = "s") -> Utterance:
    return said("user", text, minute, session=session)


def replied(text: str, minute: int = 1, *, session: str = "s") -> Utterance:
    return said("assistant", text, minute, session=session)


def looked_up(query: str, hits: int = 0, minute: int = 0) -> SearchUse:
    found = tuple(f"resource/ada#{n}" for n in range(hits))
    return SearchUse(id=f"session/s#{minute}", session="s", at=WHEN + minute * MINUTE, query=query, hits=found)


def a_gap(topic: str = FERRY, why: str = "unanswered", *, renewed: timedelta = timedelta()) -> KnowledgeGap:
    return KnowledgeGap(topic, why, WHEN.isoformat(), (WHEN + renewed).isoformat(), ("session/t#1",))


def found(
    *talk: Utterance,
    lookups: Iterable[SearchUse] = (),
    before: Sequence[KnowledgeGap] = (),
    after: timedelta = NOW - WHEN,
) -> list[tuple[str, str]]:
    known = update_gaps(Activity(utterances=talk, searches=tuple(lookups)), before, WHEN + after)
    return [(gap.topic, gap.reason) for gap in known]


# -- questions ---------------------------------------------------------------------------------------------


def test_a_question_that_the_assistant_could_not_answer_is_a_gap_in_the_users_words() -> None:
    (gap,) = update_gaps(Activity(utterances=(asked(FERRY, 3), replied("I don't know.", 4))), [], NOW)
    when = (WHEN + 3 * MINUTE).isoformat()
    assert gap == KnowledgeGap(FERRY, "unanswered", when, when, ("session/s#3",))


def test_a_question_that_was_answered_is_none() -> None:
    assert found(asked(FERRY), replied("At nine.")) == []


def test_an_unanswered_last_question_is_a_gap_after_the_grace_period() -> None:
    assert found(asked(FERRY), after=ANSWER_GRACE) == [(FERRY, "unanswered")]
    assert found(asked(FERRY), after=ANSWER_GRACE - MINUTE) == []


def test_a_turn_in_progress_is_not_unanswered() -> None:
    assert found(asked(FERRY), said("assistant", "", 1, calls=True)) == []


def test_a_question_in_two_messages_is_answered_by_what_follows_the_second() -> None:
    assert found(asked(FERRY), asked("I mean the one on Sunday", 1), replied("At nine.", 2)) == []


def test_of_two_questions_the_one_that_was_answered_is_none() -> None:
    talk = (
        asked(f"{FERRY} Who owns the harbour pub?"),
        replied("The ferry to Brodick leaves at nine. I don't know the pub."),
    )
    assert found(*talk) == [("Who owns the harbour pub?", "unanswered")]


def test_a_sentence_that_is_no_question_leaves_no_gap() -> None:
    for text in ("How are you?", "Great, right?", "Fix the ferry page", "Who knows?"):
        assert found(asked(text), replied("I don't know.")) == []


def test_only_people_are_asked_for() -> None:
    assert found(said("user", FERRY, trust=Trust.DATA), replied("I don't know.")) == []


def test_chinese_questions_are_understood() -> None:
    assert found(asked("去布罗迪克的轮渡几点开？"), replied("抱歉，我不知道。")) == [
        ("去布罗迪克的轮渡几点开？", "unanswered")
    ]
    assert found(asked("去布罗迪克的轮渡几点开？"), replied("九点开船。")) == []


# -- searches ----------------------------------------------------------------------------------------------


def test_a_search_that_found_nothing_is_a_gap_and_one_that_found_anything_is_none() -> None:
    assert found(lookups=[looked_up("ferry timetable", 0)]) == [("ferry timetable", "not_found")]
    assert found(lookups=[looked_up("ferry timetable", 1)]) == []


def test_a_search_for_nothing_is_none() -> None:
    assert found(lookups=[looked_up(" "), looked_up("?!", minute=1)]) == []


def test_a_later_search_that_found_enough_closes_it() -> None:
    assert found(lookups=[looked_up("ferry timetable"), looked_up("timetable of the ferry", 2, minute=1)]) == []


def test_an_earlier_one_does_not() -> None:
    lookups = [looked_up("timetable of the ferry", 2), looked_up("ferry timetable", minute=1)]
    assert found(lookups=lookups) == [("ferry timetable", "not_found")]


def test_a_search_on_the_way_to_an_answer_is_no_gap() -> None:
    lookups = [looked_up("ferry Brodick", minute=1)]
    assert found(asked(FERRY), replied("The ferry leaves at nine.", 2), lookups=lookups) == []


def test_a_question_and_the_search_for_its_answer_are_one_gap() -> None:
    lookups = [looked_up("ferry Brodick timetable", minute=1)]
    assert found(asked(FERRY), replied("I couldn't find it.", 2), lookups=lookups) == [(FERRY, "unanswered")]


# -- names -------------------------------------------------------------------------------------------------


def test_a_name_that_was_mentioned_once_and_not_taken_up_is_a_gap() -> None:
    assert found(asked("I met Maria Lopez at the harbour."), replied("How nice!")) == [
        ("Maria Lopez", "mentioned_once")
    ]


@each_row(
    "talk",
    [
        (asked("I met Maria Lopez."), replied("How is Maria Lopez?")),
        (
            asked("I met Maria Lopez."),
            replied("How nice!"),
            asked("We had tea with Maria Lopez.", 2),
            replied("Good.", 3),
        ),
        (asked("My name is Maria Lopez."), replied("Hello!")),
        (asked("Where does Maria Lopez live?"), replied("In Berlin.")),
        (said("tool", "I met Maria Lopez."), replied("How nice!")),
    ],
    ids=["taken up", "twice", "the user", "asked for", "a tool"],
)
def test_other_names_are_none(talk: tuple[Utterance, ...]) -> None:
    assert found(*talk) == []


def test_names_do_not_push_out_what_was_asked() -> None:
    names = [asked(f"I met {name} there.", n) for n, name in enumerate(("Ann", "Bob", "Cem", "Dora", "Eva"), 2)]
    talk = asked(FERRY), replied("I don't know."), *names, replied("How nice!", 9)
    assert found(*talk) == [
        ("Eva", "mentioned_once"),
        ("Dora", "mentioned_once"),
        ("Cem", "mentioned_once"),
        (FERRY, "unanswered"),
    ]


# -- over time ---------------------------------------------------------------------------------------------


def test_a_gap_is_over_two_days_after_it_last_came_up() -> None:
    assert found(before=[a_gap()], after=GAP_LIFETIME) == [(FERRY, "unanswered")]
    assert found(before=[a_gap()], after=GAP_LIFETIME + MINUTE) == []
    assert found(before=[a_gap(renewed=MINUTE)], after=GAP_LIFETIME + MINUTE) == [(FERRY, "unanswered")]


def test_a_repeated_gap_lasts_two_more_days_and_keeps_its_age() -> None:
    talk = asked("When does the Brodick ferry leave on Sundays?", 50), replied("I don't know.", 51)
    (gap,) = update_gaps(Activity(utterances=talk), [a_gap()], NOW)
    assert (gap.since, gap.last_seen) == (WHEN.isoformat(), (WHEN + 50 * MINUTE).isoformat())
    assert gap.sources == ("session/t#1", "session/s#50")


def test_a_name_that_comes_up_again_and_is_still_not_taken_up_is_renewed() -> None:
    talk = asked("Maria and I had tea with Maria Lopez again.", 50), replied("How nice!", 51)
    (gap,) = update_gaps(Activity(utterances=talk), [a_gap("Maria Lopez", "mentioned_once")], NOW)
    assert gap.last_seen == (WHEN + 50 * MINUTE).isoformat()


def test_a_name_in_a_question_becomes_that_question() -> None:
    talk = asked("Who is Maria Lopez really?", 50), replied("I don't know.", 51)
    assert found(*talk, before=[a_gap("Maria Lopez", "mentioned_once")]) == [
        ("Who is Maria Lopez really?", "unanswered")
    ]


@pytest.mark.parametrize("session", ["s", "another"])
def test_a_gap_of_an_earlier_dream_is_closed_by_an_answer_in_any_session(session: str) -> None:
    talk = asked("What time does the Brodick ferry leave?", 5, session=session), replied("At nine.", 6, session=session)
    assert found(*talk, before=[a_gap()]) == []


def test_it_is_closed_by_an_unrequested_answer() -> None:
    talk = asked("Good morning!", 5), replied("The ferry to Brodick will leave at nine.", 6)
    assert found(*talk, before=[a_gap()]) == []


def test_it_is_not_closed_by_a_reply_that_knows_only_something_else() -> None:
    talk = asked(FERRY, 5), replied("I don't know. The harbour pub is open until nine.", 6)
    assert found(*talk, before=[a_gap()]) == [(FERRY, "unanswered")]


def test_it_is_not_closed_by_what_speaks_of_something_else() -> None:
    talk = asked("When does the bus leave?", 5), replied("The bus leaves at nine.", 6)
    assert found(*talk, before=[a_gap()]) == [(FERRY, "unanswered")]


def test_the_ten_newest_are_kept_the_newest_first() -> None:
    topics = "anchor barge canoe dinghy ferry galley hull island jetty keel lighthouse mast".split()
    lookups = [looked_up(f"{topic} timetable {topic}s", minute=n) for n, topic in enumerate(topics)]
    assert [topic.split()[0] for topic, _ in found(lookups=lookups)] == topics[::-1][:MAX_GAPS]


def test_a_clock_that_was_set_back_ends_nothing() -> None:
    assert found(before=[a_gap(renewed=timedelta(days=30))]) == [(FERRY, "unanswered")]
