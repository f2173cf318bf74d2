"""Numbers of a replay report and their sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind import Usage
from inmind.apps.replay import ReplayReport, sum_reports
from inmind.apps.replay.report import AgentCost, IdUse, MissingItem, percentile
from inmind.core.events.session import Compacted
from inmind.types import Rates

pytestmark = pytest.mark.spec("I8")

RATES = Rates.per_million(input=1.0)


VISIBLE = IdUse(
    recording="r", prompt=1, tool="t", argument="id", id="x", known=True, held=False, in_prompt=True, in_bare=True
)


def a_use(**facts: Any) -> IdUse:
    return replace(VISIBLE, **facts)


def ids(*uses: IdUse) -> dict[str, Any]:
    return ReplayReport(name="r", uses=list(uses)).as_json(RATES)["ids"]


def test_an_id_in_the_window_is_held_and_an_id_only_in_the_history_is_visible() -> None:
    counts = ids(a_use(held=True), a_use(held=True), a_use())
    assert (counts["known"], counts["held"], counts["visible"], counts["lost"]) == (3, 2, 1, 0)
    assert counts["held_share"] == pytest.approx(2 / 3)


def test_a_known_id_that_is_not_in_the_prompt_is_lost_even_if_it_is_held() -> None:
    counts = ids(a_use(in_prompt=False), a_use(held=True, in_prompt=False), a_use(in_bare=False))
    assert (counts["lost"], counts["lost_though_held"]) == (2, 1)
    assert (counts["lost_without_memory"], counts["visible"]) == (1, 1)


def test_an_id_without_a_source_is_not_counted_as_lost() -> None:
    counts = ids(a_use(known=False, in_prompt=False, in_bare=False), a_use(known=False, kind="path", in_prompt=False))
    assert (counts["from_nowhere"], counts["new"], counts["lost"], counts["lost_without_memory"]) == (1, 1, 0, 0)
    assert counts["held_share"] is None


def test_lost_and_unknown_ids_are_listed_with_their_call() -> None:
    report = ReplayReport(name="r", uses=[a_use(id="gone", in_prompt=False), a_use(id="made up", known=False)])
    report_json = report.as_json(RATES)
    assert [use["id"] for use in report_json["lost_ids"]] == ["gone"]
    assert report_json["ids_from_nowhere"] == [
        {"recording": "r", "prompt": 1, "tool": "t", "argument": "id", "id": "made up"}
    ]


def test_names_and_ids_are_counted_separately() -> None:
    ada = a_use(id="Ada", kind="name", held=True)
    report = ReplayReport(
        name="r", uses=[a_use(held=True), ada, replace(ada, in_prompt=False), replace(ada, known=False)]
    )
    report_json = report.as_json(RATES)
    assert (report_json["ids"]["used"], report_json["ids"]["lost"], report_json["lost_ids"]) == (1, 0, [])
    assert [report_json["names"][fact] for fact in ("used", "known", "held", "lost", "new")] == [3, 2, 2, 1, 1]
    assert [use["id"] for use in report_json["lost_names"]] == ["Ada"]


@pytest.mark.parametrize(
    ("report", "why"),
    [
        (ReplayReport(name="r", seconds=[0.1], memory=AgentCost(did_not_fit=1)), ""),
        (ReplayReport(name="r"), "no message of an agent answers another one"),
        (ReplayReport(name="r", memory=AgentCost(did_not_fit=1)), "no call fits the window"),
        (sum_reports([], "r"), "it contains no recordings"),
    ],
    ids="played silent too-long empty".split(),
)
def test_an_empty_replay_has_a_skip_reason(report: ReplayReport, why: str) -> None:
    assert (report.skip_reason, report.as_json(RATES)["why_nothing"]) == (why, why or None)


def test_the_price_ratio_uses_the_recorded_usage_and_is_absent_without_calls() -> None:
    memory, bare = AgentCost(usage=Usage(cached=10, written=4)), AgentCost(usage=Usage(written=4, uncached=1))
    report = ReplayReport(name="r", memory=memory, bare=bare)
    assert report.price_ratio(RATES) == pytest.approx((10 * 0.1 + 4 * 1.25) / (4 * 1.25 + 1))
    assert ReplayReport(name="r").price_ratio(RATES) is None


def test_the_cost_is_compared_with_full_history_by_price_and_tokens() -> None:
    report = ReplayReport(
        name="r",
        memory=AgentCost(usage=Usage(cached=10, written=4)),
        full=AgentCost(usage=Usage(cached=60, written=10)),
    )
    comparison = report.as_json(RATES)["against_full_history"]
    assert comparison["price_ratio"] == pytest.approx((10 * 0.1 + 4 * 1.25) / (60 * 0.1 + 10 * 1.25))
    assert comparison["token_ratio"] == pytest.approx(14 / 70)


def test_the_cost_of_a_second_replay_is_reported_only_if_there_was_one() -> None:
    report = ReplayReport(name="r", memory=AgentCost(usage=Usage(written=4)))
    assert report.as_json(RATES)["compacting_only_when_full"] is None
    twice = replace(report, when_full=AgentCost(usage=Usage(written=5)))
    assert twice.as_json(RATES)["compacting_only_when_full"]["price_ratio"] == pytest.approx(4 / 5)


def test_compactions_are_counted_by_reason_with_their_messages_and_tokens() -> None:
    full = Compacted(target="all", reason="full", stubs=(), messages=30, tokens=900, archives=("archive/001-a.md",))
    requested = Compacted(target="all", reason="asked", stubs=(), messages=2, tokens=100)
    report = ReplayReport(name="r", compacted=[full, requested, full], stub_tokens=[90, 120, 60])
    assert report.as_json(RATES)["compactions"] == {
        "count": 3,
        "by_reason": {"full": 2, "asked": 1},
        "messages": 62,
        "tokens": 1900,
        "archives": 2,
        "largest_stub": 120,
    }
    assert ReplayReport(name="r").compactions["largest_stub"] == 0


def test_missing_items_are_listed_with_their_prompt() -> None:
    item = MissingItem(recording="r", prompt=7, kind="rule", text="Never on Friday.")
    report = ReplayReport(name="r", expected_items=40, missing=[item], omitted=2, over_window=2, unpaired=3)
    report_json = report.as_json(RATES)
    assert report_json["must_survive"] == {"items": 40, "missing": 1, "no_room": 2}
    assert report_json["missing_items"] == [{"recording": "r", "prompt": 7, "kind": "rule", "text": "Never on Friday."}]
    assert (report_json["prompts_over_window"], report_json["unpaired_calls"]) == (2, 3)


def reports() -> st.SearchStrategy[ReplayReport]:
    numbers = st.integers(0, 1000)
    usages = st.builds(Usage, calls=numbers, cached=numbers, written=numbers, uncached=numbers)
    sides = st.builds(AgentCost, usage=usages, cut_messages=numbers, cut_tokens=numbers, did_not_fit=numbers)
    uses = st.builds(
        a_use,
        kind=st.sampled_from(["id", "path", "name"]),
        known=st.booleans(),
        held=st.booleans(),
        in_prompt=st.booleans(),
        in_bare=st.booleans(),
    )
    missing = st.builds(
        MissingItem, recording=st.just("r"), prompt=numbers, kind=st.just("rule"), text=st.text(max_size=3)
    )
    compacted = st.builds(
        Compacted, target=st.just("all"), reason=st.sampled_from(["full", "asked"]), stubs=st.just(()), messages=numbers
    )
    left_out = st.dictionaries(st.sampled_from(["a", "b"]), numbers)
    times = st.lists(st.floats(0, 1), max_size=3)
    sizes = st.lists(numbers, max_size=3)
    return st.builds(
        ReplayReport,
        name=st.just("r"),
        memory=sides,
        bare=sides,
        full=sides,
        when_full=st.none() | sides,
        uses=st.lists(uses, max_size=4),
        over_window=numbers,
        unpaired=numbers,
        expected_items=numbers,
        missing=st.lists(missing, max_size=2),
        compacted=st.lists(compacted, max_size=2),
        stub_tokens=sizes,
        memory_tokens=sizes,
        entity_tokens=sizes,
        seconds=times,
        left_out=left_out,
    )


@given(st.lists(reports(), max_size=4), st.integers(0, 4))
def test_a_total_of_totals_is_the_total(parts: list[ReplayReport], cut: int) -> None:
    halves = [sum_reports(parts[:cut], "first"), sum_reports(parts[cut:], "second")]
    assert sum_reports(halves, "all") == sum_reports(parts, "all")


@given(st.lists(reports(), max_size=4))
def test_a_total_is_the_sum_of_its_parts(parts: list[ReplayReport]) -> None:
    whole = sum_reports(parts, "all")
    assert whole.recordings == len(parts)
    for names in (False, True):
        counts, part_counts = whole.id_counts(names=names), [part.id_counts(names=names) for part in parts]
        assert all(counts[fact] == sum(one[fact] for one in part_counts) for fact in ("used", "held", "lost"))
    assert whole.memory.usage.tokens == sum(part.memory.usage.tokens for part in parts)
    assert whole.bare.cut_tokens == sum(part.bare.cut_tokens for part in parts)
    assert whole.full.usage.tokens == sum(part.full.usage.tokens for part in parts)
    assert whole.compactions["messages"] == sum(part.compactions["messages"] for part in parts)
    assert (whole.when_full is None) == all(part.when_full is None for part in parts)


@given(st.lists(st.integers(0, 100), min_size=1), st.integers(1, 100))
def test_a_percentile_is_the_smallest_value_that_covers_its_share(values: list[int], percent: int) -> None:
    result = percentile(values, percent)
    assert 100 * sum(value <= result for value in values) >= percent * len(values)
    assert 100 * sum(value < result for value in values) < percent * len(values)
