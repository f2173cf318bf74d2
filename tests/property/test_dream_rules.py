"""What holds of what dreams notice, whatever was lived through."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Literal

import pytest
from builders import WHEN, an_event
from hypothesis import given
from hypothesis import strategies as st

from inmind.core.events.base import Event, Trust
from inmind.core.events.codec import decode_payload, encode_payload
from inmind.core.events.dreams import KnowledgeGap, LearnedSkill, TradeRecorded
from inmind.dreams.activity import Activity, SearchUse, ToolUse, Utterance
from inmind.dreams.economics import economics_lines, summarize_trades
from inmind.dreams.gaps import GAP_LIFETIME, update_gaps
from inmind.dreams.gaps import MAX_GAPS as MOST_GAPS
from inmind.dreams.insights import find_insights
from inmind.dreams.skills import MAX_SKILLS as MOST_SKILLS
from inmind.dreams.skills import confidence, emerging_skills, update_skills
from inmind.search.crystal import Crystal

pytestmark = pytest.mark.spec("G3", "G14")

HOUR = timedelta(hours=1)
TRUSTS = {"user": Trust.PERSON, "assistant": Trust.AGENT, "tool": Trust.DATA}

# Few things, said in few ways, so that most of it has to do with each other.
TEXTS = st.sampled_from(
    [
        "When does the ferry to Brodick leave?",
        "What time does the Brodick ferry leave?",
        "I don't know.",
        "The ferry to Brodick leaves at nine.",
        "Refactor the auth module",
        "please refactor the payment modules",
        "Remind me to renew the passport.",
        "I renewed the passport, done.",
        "We met Maria at the Harbor Café",
        "We met Maria at the Harbor Café again",
        "How are you?",
        "提醒我周五交房租。",
        "轮渡几点开？",
        "我不知道。",
        "",
        "?!",
    ]
)
MOMENTS = st.integers(min_value=0, max_value=200).map(lambda hours: WHEN + hours * HOUR)
TOOLS = st.builds(ToolUse, tool=st.sampled_from(["search", "edit", "test"]), failed=st.booleans())


@st.composite
def spoken(draw: st.DrawFn) -> Utterance:
    role = draw(st.sampled_from(["user", "assistant", "tool"]))
    session = draw(st.sampled_from(["s", "t"]))
    return Utterance(
        id=f"session/{session}#{draw(st.integers(1, 99))}",
        session=session,
        at=draw(MOMENTS),
        role=role,
        text=draw(TEXTS),
        tool_uses=() if role == "user" else tuple(draw(st.lists(TOOLS, max_size=4))),
        trust=TRUSTS[role],
    )


@st.composite
def lookups(draw: st.DrawFn) -> SearchUse:
    found = draw(st.lists(st.sampled_from(["resource/ada#1", "resource/ada#2"]), unique=True))
    return SearchUse(id="session/s#1", session="s", at=draw(MOMENTS), query=draw(TEXTS), hits=tuple(found))


@st.composite
def lives(draw: st.DrawFn) -> Activity:
    talk = sorted(draw(st.lists(spoken(), max_size=12)), key=lambda spoke: spoke.at)
    looked_up = sorted(draw(st.lists(lookups(), max_size=4)), key=lambda lookup: lookup.at)
    return Activity(utterances=tuple(talk), searches=tuple(looked_up))


@st.composite
def crystals(draw: st.DrawFn) -> list[Crystal]:
    return [
        Crystal(
            id=f"session/{session}#{number}",
            text=draw(TEXTS),
            kind="episode",
            source=draw(st.sampled_from(["sessions", "memory"])),
            session=session,
            trust=draw(st.sampled_from(list(Trust))),
            at=draw(MOMENTS),
        )
        for number in range(draw(st.integers(0, 14)))
        for session in [draw(st.sampled_from(["s", "t", "u", "v"]))]
    ]


def over_dreams(life: Sequence[tuple[Activity, datetime]]) -> list[tuple[KnowledgeGap, ...]]:
    """What there is after each of several dreams."""
    known: list[tuple[KnowledgeGap, ...]] = [()]
    for lived, now in life:
        known.append(update_gaps(lived, known[-1], now))
    return known


# -- gaps --------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(lives(), MOMENTS), max_size=4))
def test_no_gap_outlives_its_time_and_there_are_never_too_many(life: list[tuple[Activity, datetime]]) -> None:
    for known, (_, now) in zip(over_dreams(life)[1:], life, strict=True):
        assert len(known) <= MOST_GAPS
        assert all(now - datetime.fromisoformat(gap.last_seen) <= GAP_LIFETIME for gap in known)
        assert [gap.last_seen for gap in known] == sorted((gap.last_seen for gap in known), reverse=True)


@given(lives(), MOMENTS)
def test_without_anything_new_gaps_only_run_out(lived: Activity, now: datetime) -> None:
    known = update_gaps(lived, (), now)
    assert update_gaps(Activity(), known, now) == known
    assert update_gaps(Activity(), known, now + GAP_LIFETIME + 201 * HOUR) == ()


@given(lives(), MOMENTS)
def test_a_gap_tells_where_it_comes_from(lived: Activity, now: datetime) -> None:
    ids = {spoke.id for spoke in lived.utterances} | {lookup.id for lookup in lived.searches}
    for gap in update_gaps(lived, (), now):
        assert gap.topic.strip() == gap.topic != ""
        assert set(gap.sources) <= ids
        assert gap.since <= gap.last_seen


# -- skills ------------------------------------------------------------------------------------------------


@given(st.lists(lives(), max_size=5))
def test_counts_never_fall_and_there_are_never_more_good_ends_than_occurrences(life: list[Activity]) -> None:
    known: tuple[LearnedSkill, ...] = ()
    for lived in life:
        before, known = known, update_skills(lived, known, WHEN + 300 * HOUR)
        now = {skill.name: skill for skill in known}
        assert len(known) <= MOST_SKILLS
        for old in before:
            new = now.get(old.name)
            assert new is None or (new.occurrences >= old.occurrences and new.succeeded >= old.succeeded)
            assert new is None or new.last_used >= old.last_used
        assert all(0 <= skill.succeeded <= skill.occurrences and 0 < confidence(skill) < 1 for skill in known)
        assert set(emerging_skills(known)) <= set(known)


@given(lives(), lives())
def test_what_two_dreams_count_is_what_one_would_have(one: Activity, other: Activity) -> None:
    """Where a turn does not go on from the one to the other: in sessions of their own."""
    renamed = tuple(
        Utterance(
            id=spoke.id,
            session=f"{spoke.session}2",
            at=spoke.at,
            role=spoke.role,
            text=spoke.text,
            tool_uses=spoke.tool_uses,
            trust=spoke.trust,
        )
        for spoke in other.utterances
    )
    now = WHEN + 300 * HOUR
    twice = update_skills(Activity(utterances=renamed), update_skills(one, (), now), now)
    at_once = update_skills(Activity(utterances=(*one.utterances, *renamed)), (), now)
    if len(at_once) < MOST_SKILLS:
        assert {skill[:4] for skill in twice} == {skill[:4] for skill in at_once}


# -- insights ----------------------------------------------------------------------------------------------


@given(crystals().flatmap(lambda made: st.tuples(st.just(made), st.permutations(made))), lives(), MOMENTS)
def test_insights_are_the_same_in_whatever_order_crystals_come(
    orders: tuple[list[Crystal], list[Crystal]], lived: Activity, now: datetime
) -> None:
    one, other = (find_insights(made, lived, frozenset(), now) for made in orders)
    assert one == other


@given(crystals(), st.lists(lives(), max_size=3), MOMENTS)
def test_no_insight_is_made_twice(made: list[Crystal], life: list[Activity], now: datetime) -> None:
    known: list[str] = []
    for place, lived in enumerate(life):
        new = [insight.key for insight in find_insights(made[: 5 * place + 5], lived, frozenset(known), now)]
        assert len(set(new)) == len(new)
        assert not {*new} & {*known}
        known += new
    if life:
        assert find_insights(made[: 5 * len(life)], life[-1], frozenset(known), now) == []


@pytest.mark.spec("J5")
@given(crystals(), lives(), MOMENTS)
def test_an_insight_names_what_it_is_made_of_and_is_trusted_like_the_least_of_it(
    made: list[Crystal], lived: Activity, now: datetime
) -> None:
    trusts = {crystal.id: [crystal.trust] for crystal in made}
    for spoke in lived.utterances:
        trusts.setdefault(spoke.id, []).append(spoke.trust)
    for insight in find_insights(made, lived, frozenset(), now):
        assert insight.sources
        assert insight.trust > Trust.DATA
        assert insight.trust <= min(max(trusts[source]) for source in insight.sources)


# -- economics ---------------------------------------------------------------------------------------------

What = Literal["earning", "spending", "listing"]


@st.composite
def trades(draw: st.DrawFn) -> Event:
    trade = TradeRecorded(
        trade_type=draw(st.sampled_from(["earning", "spending", "listing"])),
        amount=format(draw(st.decimals(0, 10**15, places=draw(st.integers(0, 18)), allow_nan=False)), "f"),
        currency=draw(st.sampled_from(["USD", "EUR"])),
        skill=draw(st.sampled_from(["", "docs", "tests", "reviews", "naming"])),
        counterparty=draw(st.sampled_from(["", "bob", "eve"])),
        date=draw(st.just("") | MOMENTS.map(datetime.isoformat)),
    )
    assert decode_payload("traded", encode_payload(trade)) == trade
    return an_event(trade)


@given(st.lists(trades(), max_size=15), MOMENTS)
def test_what_is_reported_are_the_sums(entered: list[Event], now: datetime) -> None:
    made = [event.payload for event in entered if isinstance(event.payload, TradeRecorded)]
    found = summarize_trades(entered, now)
    assert {one.currency for one in found} == {trade.currency for trade in made}
    for one in found:
        assert Fraction(one.earned) == exact_sum(made, one.currency, "earning")
        assert Fraction(one.spent) == exact_sum(made, one.currency, "spending")
        assert Fraction(one.week) == sum(map(Fraction, one.days))
        assert Fraction(one.week) + Fraction(one.week_before) <= Fraction(one.earned)
        assert sum(Fraction(amount) for _, amount in one.top) <= Fraction(one.earned)
        assert len(economics_lines(one)) <= 1


def exact_sum(made: Sequence[TradeRecorded], currency: str, what: What) -> Fraction:
    return sum((Fraction(one.amount) for one in made if (one.currency, one.trade_type) == (currency, what)), Fraction())
