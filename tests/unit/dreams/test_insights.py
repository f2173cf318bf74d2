"""What no single crystal says, and what must not be made of any."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from builders import WHEN
from tables import each_row

from inmind.core.events.base import Trust
from inmind.dreams.activity import Activity, SearchUse, Utterance
from inmind.dreams.insights import MAX_INSIGHTS_PER_KIND, accessed_crystals, find_insights
from inmind.dreams.material import Insight
from inmind.search.crystal import Crystal

pytestmark = pytest.mark.spec("G3")

DAY = timedelta(days=1)
NOW = WHEN + 30 * DAY
TABS = "I prefer tabs over spaces in Python"


def said(number: int, text: str, *, session: str | None = None, **known: Any) -> Crystal:
    """Each in a session of its own, a day after the one before, unless a test says otherwise."""
    session = f"s{number}" if session is None else session
    known = {"kind": "episode", "source": "sessions", "trust": Trust.PERSON, **known}
    return Crystal(id=f"session/{session}#{number}", text=text, session=session, at=WHEN + number * DAY, **known)


def seen(*crystals: Crystal, talk: Sequence[Utterance] = (), known: Iterable[str] = ()) -> list[Insight]:
    return find_insights(crystals, Activity(utterances=tuple(talk)), frozenset(known), NOW)


def looked_up(*found: str) -> SearchUse:
    return SearchUse(id="session/s#1", session="s", at=WHEN, query="tea", hits=found)


def user(text: str) -> Utterance:
    return Utterance(id="session/s#7", session="s", at=WHEN, role="user", text=text)


# -- replay ------------------------------------------------------------------------------------------------


def test_an_accessed_crystal_is_listed_once() -> None:
    assert accessed_crystals([looked_up("a", "b"), looked_up(), looked_up("c", "a")]) == ("a", "b", "c")


# -- compression -------------------------------------------------------------------------------------------


def test_repeated_statements_become_one_insight_with_all_sources() -> None:
    (insight,) = seen(said(1, TABS), said(2, f"Well, {TABS}!"), said(3, TABS), said(4, "The ferry leaves at nine"))
    assert insight == Insight(
        text=f"Well, {TABS}! (came up 3 times since 2026-01-02)",
        method="compression",
        key="same session/s1#1",
        sources=("session/s1#1", "session/s2#2", "session/s3#3"),
        importance=0.5,
        trust=Trust.PERSON,
    )


def test_it_is_told_in_chinese_where_it_was_said_so() -> None:
    (insight,) = seen(*(said(n, "我写代码的时候喜欢用制表符缩进") for n in (1, 2, 3)))
    assert insight.text == "我写代码的时候喜欢用制表符缩进 （自 2026-01-02 起提到 3 次）"


def test_two_repeats_are_too_few() -> None:
    assert seen(said(1, TABS), said(2, TABS)) == []


@pytest.mark.parametrize(
    "text",
    ["I do not prefer tabs over spaces in Python", "I never prefer tabs over spaces in Python", f"{TABS} 3"],
)
def test_a_negation_or_another_number_is_another_statement(text: str) -> None:
    assert seen(said(1, TABS), said(2, TABS), said(3, text)) == []


def test_in_chinese_no_is_not_yes() -> None:
    assert seen(*(said(n, f"我写代码的时候{'不' * (n == 3)}喜欢用制表符缩进") for n in (1, 2, 3))) == []


def test_three_times_in_one_session_is_one_occasion() -> None:
    assert seen(*(said(n, TABS, session="s") for n in (1, 2, 3))) == []
    assert len(seen(*(said(n, TABS, session="s") for n in (1, 2)), said(3, TABS))) == 1


def test_notes_of_two_days_are_two_occasions_and_of_one_day_one() -> None:
    notes = [said(n, TABS, session="", source="memory", kind="general") for n in (1, 2, 3)]
    assert len(seen(*notes)) == 1
    assert seen(*(Crystal(id=f"resource/ada#{n}", text=TABS, at=WHEN) for n in (1, 2, 3))) == []


@each_row(
    "text",
    [
        "Thanks, go on please",
        "Take care, bye! Thanks for the support, I appreciate it",
        "Yes, do it",
        "ok",
        "好的，谢谢",
        "继续",
    ],
)
def test_common_phrases_are_no_insight(text: str) -> None:
    assert seen(*(said(n, text) for n in range(1, 9))) == []


@each_row(
    "known",
    [
        {"trust": Trust.DATA},
        {"trust": Trust.DATA, "source": "memory", "kind": "fact"},
        {"trust": Trust.AGENT},
        {"kind": "insight", "source": "memory"},
        {"lifecycle": "archived"},
        {"lifecycle": "expired"},
        {"path": "detail/style.md"},
        {"text": f"{TABS} " * 20},
    ],
    ids=["a tool", "a tool's note", "the assistant", "insights", "merged", "faded", "pages", "long texts"],
)
def test_of_these_no_insight_is_made(known: dict[str, Any]) -> None:
    text = known.pop("text", TABS)
    assert seen(*(said(n, text, **known) for n in (1, 2, 3))) == []


@pytest.mark.spec("J5")
def test_tool_text_about_people_is_not_used() -> None:
    people = [said(n, TABS) for n in (1, 2)]
    assert seen(*people, said(3, TABS, trust=Trust.DATA), said(4, TABS, trust=Trust.DATA)) == []


@pytest.mark.spec("J5")
def test_an_insight_is_trusted_no_more_than_the_least_of_what_it_is_made_of() -> None:
    noted = said(3, TABS, source="memory", kind="preference", trust=Trust.AGENT)
    (insight,) = seen(said(1, TABS), said(2, TABS, trust=Trust.OPERATOR), noted)
    assert insight.trust is Trust.AGENT


def test_an_insight_is_not_made_again_when_it_is_said_once_more_or_its_first_is_forgotten() -> None:
    crystals = [said(n, TABS) for n in (1, 2, 3)]
    (insight,) = seen(*crystals)
    assert seen(*crystals, said(4, TABS), known=[insight.key]) == []
    assert seen(*crystals[1:], said(4, TABS), said(5, TABS), known=["same session/s3#3"]) == []


# -- links -------------------------------------------------------------------------------------------------


def test_two_names_that_come_up_together_in_several_sessions_are_linked() -> None:
    texts = [
        "We met Maria at the Harbor Café",
        "The talk at Harbor Café, with Maria, went well",
        "Is Maria at Harbor Café now",
    ]
    (insight,) = seen(*(said(n, text) for n, text in enumerate(texts, 1)))
    assert (insight.method, insight.key) == ("link", "link harbor café + maria")
    assert insight.text == "Harbor Café and Maria come up together (in 3 sessions since 2026-01-02)"
    assert insight.sources == ("session/s1#1", "session/s2#2", "session/s3#3")


def test_names_that_come_up_in_one_session_or_apart_are_not() -> None:
    together = "We met Maria at the Harbor Café"
    assert seen(said(1, together), said(2, f"Again: {together}, and {together} later", session="s1")) == []
    apart = ["We met Maria", "We sat in the Harbor Café", "She is Maria"]
    assert seen(*(said(n, text) for n, text in enumerate(apart, 1))) == []


def test_a_name_and_a_part_of_it_are_one() -> None:
    texts = ["That is Maria, yes, Maria Lopez", "She is Maria or rather Maria Lopez", "It was Maria Lopez, our Maria"]
    assert seen(*(said(n, text) for n, text in enumerate(texts, 1))) == []


def test_a_link_is_not_made_again() -> None:
    texts = [
        "We met Maria at the Harbor Café",
        "The talk at Harbor Café, with Maria, went well",
        "Is Maria at Harbor Café now",
    ]
    assert seen(*(said(n, text) for n, text in enumerate(texts, 1)), known=["link harbor café + maria"]) == []


# -- open loops --------------------------------------------------------------------------------------------


def test_an_open_loop_becomes_one_insight_with_its_date() -> None:
    asked = user("Remind me to renew the passport.")
    (insight,) = seen(talk=[asked, user("And again, remind me to renew the passport.")])
    assert insight.text == "Open since 2026-01-01: Remind me to renew the passport."
    assert (insight.method, insight.sources, insight.trust) == ("open_loop", ("session/s#7",), Trust.PERSON)
    assert seen(talk=[asked], known=[insight.key]) == []


def test_it_is_told_in_chinese_too() -> None:
    (insight,) = seen(talk=[user("提醒我周五交房租。")])
    assert insight.text == "未完成（自 2026-01-01 起）：提醒我周五交房租。"


# -- many --------------------------------------------------------------------------------------------------


def test_a_dream_has_a_bounded_number_of_them_and_the_next_has_the_rest() -> None:
    nouns = "anchor barge canoe dinghy ferry galley hull island jetty keel lighthouse mast".split()
    crystals = [
        said(10 * place + n, f"My {noun} needs fresh {noun}paint and {noun}wood")
        for place, noun in enumerate(nouns)
        for n in (1, 2, 3)
    ]
    first = seen(*crystals)
    assert len(first) == MAX_INSIGHTS_PER_KIND
    rest = seen(*crystals, known=[insight.key for insight in first])
    assert len(rest) == len(nouns) - MAX_INSIGHTS_PER_KIND
    assert not {insight.key for insight in first} & {insight.key for insight in rest}


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["mixed", "nearly alike"])
def test_ten_thousand_crystals_take_no_square_of_their_time(kind: str) -> None:
    """The bar is half a second; a machine that is busy with other tests gets four times that."""
    dice = random.Random(7)
    vocabulary = [f"word{n}" for n in range(3_000)]
    mixed = (" ".join(dice.choices(vocabulary, k=15)) for _ in range(10_000))
    alike = (f"the order of customer {n % 700} was sent to the harbour" for n in range(10_000))
    texts = mixed if kind == "mixed" else alike
    crystals = [said(n % 300, text, session=f"s{n}") for n, text in enumerate(texts)]
    began = time.process_time()
    seen(*crystals)
    assert time.process_time() - began < 2
