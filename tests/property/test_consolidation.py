"""Properties of consolidation for any history of notes, accesses and pins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice

import pytest
from builders import WHEN
from hypothesis import given
from hypothesis import strategies as st

from inmind.core.events.base import Event, EventPayload, Origin, Trust
from inmind.core.events.crystals import Consolidated, CrystalPinned, SearchRecorded
from inmind.search.consolidate import plan_consolidation, split_batches
from inmind.search.crystal import Crystal, apply_event, is_searchable

pytestmark = pytest.mark.spec("H2", "H5")

DAY = timedelta(days=1)

# Few topics in few wordings, so that most notes are related.
TEXTS = st.sampled_from(
    [
        "User lives in Berlin",
        "The user lives in Berlin.",
        "User moved to Munich",
        "User lives in Munich",
        "User no longer lives in Berlin",
        "User prefers tabs",
        "User now prefers spaces over tabs",
        "The deadline is March 20",
        "The deadline moved to April 2",
        "用户住在北京",
        "用户搬到了上海",
        "",
        "!",
    ]
)
MOMENTS = st.integers(min_value=0, max_value=40).map(lambda day: WHEN + day * DAY)


@st.composite
def notes(draw: st.DrawFn) -> list[Crystal]:
    return [
        Crystal(
            id=f"resource/ada#{number}",
            text=draw(TEXTS),
            kind=draw(st.sampled_from(["general", "fact"])),
            source=draw(st.sampled_from(["memory", "memory", "memory", "sessions"])),
            trust=draw(st.sampled_from([Trust.DATA, Trust.PERSON, Trust.PERSON])),
            at=draw(MOMENTS),
            importance=draw(st.sampled_from([0.0, 0.1, 0.7, 0.9])),
            accesses=draw(st.integers(min_value=0, max_value=3)),
            valid_from=draw(st.none() | MOMENTS),
            valid_to=draw(st.none() | st.none() | MOMENTS),
            lifecycle=draw(st.sampled_from(["generated", "generated", "activated", "frozen"])),
        )
        for number in range(draw(st.integers(min_value=0, max_value=12)))
    ]


class CrystalHistory:
    """Crystals and the events that change them."""

    def __init__(self, crystals: Sequence[Crystal]) -> None:
        self.crystals = {crystal.id: crystal for crystal in crystals}

    def apply(self, payload: EventPayload, at: datetime) -> None:
        event = Event(stream="resource/ada", seq=1, at=at, payload=payload, origin=Origin.ASSISTANT, trust=Trust.AGENT)
        self.crystals = {id: apply_event(crystal, event, self.crystals) for id, crystal in self.crystals.items()}

    def consolidate(self, now: datetime, batch_size: int) -> list[Consolidated]:
        """A whole pass, planned at once and applied in batches."""
        batches = list(split_batches(plan_consolidation([*self.crystals.values()], now=now), batch_size))
        for batch in batches:
            self.apply(batch, now)
        return batches


@given(notes(), MOMENTS, st.integers(min_value=1, max_value=20))
def test_a_second_pass_changes_nothing(crystals: list[Crystal], now: datetime, batch_size: int) -> None:
    history = CrystalHistory(crystals)
    history.consolidate(now, batch_size)
    assert history.consolidate(now, batch_size) == []


@given(notes().flatmap(lambda crystals: st.tuples(st.just(crystals), st.permutations(crystals))), MOMENTS)
def test_the_order_of_crystals_does_not_matter(orders: tuple[list[Crystal], list[Crystal]], now: datetime) -> None:
    one, other = (plan_consolidation(crystals, now=now) for crystals in orders)
    assert one == other


@given(notes(), MOMENTS, st.integers(min_value=1, max_value=4))
def test_batches_name_every_crystal_once_within_the_size(
    crystals: list[Crystal], now: datetime, batch_size: int
) -> None:
    plan = plan_consolidation(crystals, now=now)
    ids_by_batch = [_crystal_ids(batch) for batch in split_batches(plan, batch_size)]
    assert all(len(one) <= batch_size for one in ids_by_batch)
    assert sorted(id for one in ids_by_batch for id in one) == sorted(set(_crystal_ids(plan)))


def _crystal_ids(batch: Consolidated) -> list[str]:
    return [*(one for one, _ in batch.merged), *(one for one, _ in batch.superseded), *batch.expired]


@given(notes(), MOMENTS)
def test_the_target_of_a_merge_stays_searchable(crystals: list[Crystal], now: datetime) -> None:
    history = CrystalHistory(crystals)
    batches = history.consolidate(now, 100)
    assert all(is_searchable(history.crystals[kept]) for batch in batches for _, kept in batch.merged)


@given(notes(), MOMENTS)
def test_a_pinned_crystal_stays_searchable(crystals: list[Crystal], now: datetime) -> None:
    history = CrystalHistory(crystals)
    history.consolidate(now, 100)
    assert all(is_searchable(history.crystals[one.id]) for one in crystals if one.lifecycle == "frozen")


@given(notes(), MOMENTS)
def test_nothing_is_superseded_by_a_less_trusted_crystal(crystals: list[Crystal], now: datetime) -> None:
    by_id = {crystal.id: crystal for crystal in crystals}
    batch = plan_consolidation(crystals, now=now)
    assert all(by_id[newer].trust >= by_id[older].trust for older, newer in batch.superseded)
    assert all(by_id[kept].trust == by_id[one].trust for one, kept in batch.merged)


@given(st.data())
def test_merges_and_successors_have_no_cycles(data: st.DataObject) -> None:
    """Notes are added, accessed, pinned and unpinned, and passes are interrupted and resumed."""
    pending = data.draw(notes())
    history, now = CrystalHistory([]), WHEN
    for _ in range(data.draw(st.integers(min_value=1, max_value=12))):
        now += data.draw(st.integers(min_value=0, max_value=30)) * DAY
        for _ in range(data.draw(st.integers(min_value=0, max_value=4))):
            if pending:
                crystal = pending.pop()
                history.crystals[crystal.id] = crystal
        if history.crystals:
            one = data.draw(st.sampled_from(sorted(history.crystals)))
            payload = data.draw(
                st.sampled_from([SearchRecorded("", (one,)), CrystalPinned(one), CrystalPinned(one, False)])
            )
            history.apply(payload, now)
        batches = split_batches(plan_consolidation([*history.crystals.values()], now=now), data.draw(st.integers(1, 6)))
        for batch in islice(batches, data.draw(st.integers(0, 2))):
            history.apply(batch, now)
    for start in history.crystals.values():
        seen, current = {start.id}, start
        while next_id := current.merged_into or current.superseded_by:
            assert next_id not in seen
            seen.add(next_id)
            current = history.crystals[next_id]


@given(st.data())
def test_a_merged_crystal_leads_to_a_searchable_one_after_concurrent_passes(data: st.DataObject) -> None:
    """Passes of several processes: each is planned on an older state than it is applied to."""
    texts = data.draw(st.lists(st.sampled_from(["User prefers tabs", "User lives in Berlin"]), min_size=2, max_size=6))
    initial = [Crystal(id=f"resource/ada#{n}", text=text, at=WHEN, importance=0.9) for n, text in enumerate(texts)]
    history, now, plans = CrystalHistory(initial), WHEN + DAY, list[Consolidated]()
    for _ in range(data.draw(st.integers(min_value=1, max_value=12))):
        plans.append(plan_consolidation([*history.crystals.values()], now=now))
        hits = data.draw(st.sets(st.sampled_from(sorted(history.crystals))))
        history.apply(SearchRecorded("", tuple(sorted(hits))), now)
        if data.draw(st.booleans()):
            history.apply(plans.pop(data.draw(st.integers(0, len(plans) - 1))), now)
    for crystal in history.crystals.values():
        seen = {crystal.id}
        while crystal.merged_into:
            crystal = history.crystals[crystal.merged_into]
            assert crystal.id not in seen
            seen.add(crystal.id)
        assert is_searchable(crystal)
