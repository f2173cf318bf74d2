"""Properties of gaps, skills, insights and totals for any activity."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Literal

import pytest
from builders import WHEN, an_event
from hypothesis import given
from hypothesis import strategies as st

from inmind.core.events import decode_payload, encode_payload
from inmind.core.events.base import Event, Trust
from inmind.core.events.dreams import KnowledgeGap, LearnedSkill, TradeRecorded
from inmind.dreams.economics import economics_lines, summarize_trades
from inmind.dreams.gaps import GAP_LIFETIME, MAX_GAPS, update_gaps
from inmind.dreams.insights import find_insights
from inmind.dreams.material import Activity, SearchUse, ToolUse, Utterance
from inmind.dreams.skills import MAX_SKILLS, confidence, emerging_skills, update_skills
from inmind.search.crystal import Crystal

pytestmark = pytest.mark.spec("G3", "G14")

HOUR = timedelta(hours=1)
TRUSTS = {"user": Trust.PERSON, "assistant": Trust.AGENT, "tool": Trust.DATA}

# Few topics in few wordings, so that most texts are related.
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
def utterances(draw: st.DrawFn) -> Utterance:
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
def search_uses(draw: st.DrawFn) -> SearchUse:
    hits = draw(st.lists(st.sampled_from(["resource/ada#1", "resource/ada#2"]), unique=True))
    return SearchUse(id="session/s#1", session="s", at=draw(MOMENTS), query=draw(TEXTS), hits=tuple(hits))


@st.composite
def activities(draw: st.DrawFn) -> Activity:
    messages = sorted(draw(st.lists(utterances(), max_size=12)), key=lambda utterance: utterance.at)
    searches = sorted(draw(st.lists(search_uses(), max_size=4)), key=lambda search: search.at)
    return Activity(utterances=tuple(messages), searches=tuple(searches))


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


def gaps_after_dreams(series: Sequence[tuple[Activity, datetime]]) -> list[tuple[KnowledgeGap, ...]]:
    """Gaps after each of several dreams."""
    known: list[tuple[KnowledgeGap, ...]] = [()]
    for activity, now in series:
        known.append(update_gaps(activity, known[-1], now))
    return known


# -- gaps --------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(activities(), MOMENTS), max_size=4))
def test_gaps_expire_and_are_limited_in_number(series: list[tuple[Activity, datetime]]) -> None:
    for known, (_, now) in zip(gaps_after_dreams(series)[1:], series, strict=True):
        assert len(known) <= MAX_GAPS
        assert all(now - datetime.fromisoformat(gap.last_seen) <= GAP_LIFETIME for gap in known)
        assert [gap.last_seen for gap in known] == sorted((gap.last_seen for gap in known), reverse=True)


@given(activities(), MOMENTS)
def test_without_new_activity_gaps_only_expire(activity: Activity, now: datetime) -> None:
    known = update_gaps(activity, (), now)
    assert update_gaps(Activity(), known, now) == known
    assert update_gaps(Activity(), known, now + GAP_LIFETIME + 201 * HOUR) == ()


@given(activities(), MOMENTS)
def test_a_gap_names_its_sources(activity: Activity, now: datetime) -> None:
    ids = {utterance.id for utterance in activity.utterances} | {search.id for search in activity.searches}
    for gap in update_gaps(activity, (), now):
        assert gap.topic.strip() == gap.topic != ""
        assert set(gap.sources) <= ids
        assert gap.since <= gap.last_seen


# -- skills ------------------------------------------------------------------------------------------------


@given(st.lists(activities(), max_size=5))
def test_counts_never_fall_and_successes_never_exceed_occurrences(series: list[Activity]) -> None:
    known: tuple[LearnedSkill, ...] = ()
    for activity in series:
        before, known = known, update_skills(activity, known, WHEN + 300 * HOUR)
        now = {skill.name: skill for skill in known}
        assert len(known) <= MAX_SKILLS
        for old in before:
            new = now.get(old.name)
            assert new is None or (new.occurrences >= old.occurrences and new.succeeded >= old.succeeded)
            assert new is None or new.last_used >= old.last_used
        assert all(0 <= skill.succeeded <= skill.occurrences and 0 < confidence(skill) < 1 for skill in known)
        assert set(emerging_skills(known)) <= set(known)


@given(activities(), activities())
def test_two_dreams_count_the_same_as_one(one: Activity, other: Activity) -> None:
    """The sessions differ, so that no turn continues from one dream to the other."""
    renamed = tuple(
        Utterance(
            id=utterance.id,
            session=f"{utterance.session}2",
            at=utterance.at,
            role=utterance.role,
            text=utterance.text,
            tool_uses=utterance.tool_uses,
            trust=utterance.trust,
        )
        for utterance in other.utterances
    )
    now = WHEN + 300 * HOUR
    twice = update_skills(Activity(utterances=renamed), update_skills(one, (), now), now)
    at_once = update_skills(Activity(utterances=(*one.utterances, *renamed)), (), now)
    if len(at_once) < MAX_SKILLS:
        assert {skill[:4] for skill in twice} == {skill[:4] for skill in at_once}


# -- insights ----------------------------------------------------------------------------------------------


@given(crystals().flatmap(lambda items: st.tuples(st.just(items), st.permutations(items))), activities(), MOMENTS)
def test_the_order_of_crystals_does_not_change_insights(
    orders: tuple[list[Crystal], list[Crystal]], activity: Activity, now: datetime
) -> None:
    one, other = (find_insights(items, activity, frozenset(), now) for items in orders)
    assert one == other


@given(crystals(), st.lists(activities(), max_size=3), MOMENTS)
def test_no_insight_is_repeated(material: list[Crystal], series: list[Activity], now: datetime) -> None:
    known: list[str] = []
    for place, activity in enumerate(series):
        new = [insight.key for insight in find_insights(material[: 5 * place + 5], activity, frozenset(known), now)]
        assert len(set(new)) == len(new)
        assert not {*new} & {*known}
        known += new
    if series:
        assert find_insights(material[: 5 * len(series)], series[-1], frozenset(known), now) == []


@pytest.mark.spec("J5")
@given(crystals(), activities(), MOMENTS)
def test_an_insight_has_sources_and_at_most_their_lowest_trust(
    material: list[Crystal], activity: Activity, now: datetime
) -> None:
    trusts = {crystal.id: [crystal.trust] for crystal in material}
    for utterance in activity.utterances:
        trusts.setdefault(utterance.id, []).append(utterance.trust)
    for insight in find_insights(material, activity, frozenset(), now):
        assert insight.ids
        assert insight.trust > Trust.DATA
        assert insight.trust <= min(max(trusts[source]) for source in insight.ids)


# -- economics ---------------------------------------------------------------------------------------------

TradeType = Literal["earning", "spending", "listing"]


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
def test_totals_are_exact_sums(events: list[Event], now: datetime) -> None:
    recorded = [event.payload for event in events if isinstance(event.payload, TradeRecorded)]
    totals = summarize_trades(events, now)
    assert {one.currency for one in totals} == {trade.currency for trade in recorded}
    for one in totals:
        assert Fraction(one.earned) == exact_sum(recorded, one.currency, "earning")
        assert Fraction(one.spent) == exact_sum(recorded, one.currency, "spending")
        assert Fraction(one.week) == sum(map(Fraction, one.days))
        assert Fraction(one.week) + Fraction(one.week_before) <= Fraction(one.earned)
        assert sum(Fraction(amount) for _, amount in one.top) <= Fraction(one.earned)
        assert len(economics_lines(one)) <= 1


def exact_sum(recorded: Sequence[TradeRecorded], currency: str, trade_type: TradeType) -> Fraction:
    return sum(
        (Fraction(one.amount) for one in recorded if (one.currency, one.trade_type) == (currency, trade_type)),
        Fraction(),
    )
