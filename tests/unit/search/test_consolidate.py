"""Decisions of a consolidation, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from builders import WHEN
from tables import each_row

from inmind.core.events.base import Trust
from inmind.core.events.crystals import Consolidated
from inmind.search import consolidate
from inmind.search.claims import Answer
from inmind.search.consolidate import plan_consolidation, split_batches
from inmind.search.crystal import Crystal

pytestmark = pytest.mark.spec("H5")

DAY = timedelta(days=1)
NOW = WHEN + 30 * DAY


def a_note(number: int, text: str, *, day: int | None = None, importance: float = 0.7, **known: Any) -> Crystal:
    """A note written a day after the previous one."""
    at = WHEN + (number if day is None else day) * DAY
    return Crystal(id=f"resource/ada#{number}", text=text, at=at, importance=importance, **known)


def plan(*crystals: Crystal, now: datetime = NOW) -> Consolidated:
    return plan_consolidation(crystals, now=now)


def numbers(pairs: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    return [(int(one.partition("#")[2]), int(other.partition("#")[2])) for one, other in pairs]


TEA, TEA_AGAIN = "User likes green tea", "The user really likes green tea."
BERLIN, MUNICH, HAMBURG = "User lives in Berlin", "User moved to Munich", "User lives in Hamburg"


# -- merging -----------------------------------------------------------------------------------------------


def test_of_two_duplicates_the_newer_is_kept() -> None:
    assert numbers(plan(a_note(1, TEA), a_note(2, TEA_AGAIN)).merged) == [(1, 2)]


def test_the_duplicate_with_more_accesses_is_kept() -> None:
    assert numbers(plan(a_note(1, TEA, accesses=3), a_note(2, TEA_AGAIN)).merged) == [(2, 1)]


def test_the_more_important_duplicate_is_kept() -> None:
    little, much = a_note(1, TEA, accesses=9, importance=0.3), a_note(2, TEA_AGAIN, importance=0.9)
    assert numbers(plan(little, much).merged) == [(1, 2)]


def test_a_pinned_duplicate_is_always_kept() -> None:
    frozen = a_note(1, TEA, lifecycle="frozen", importance=0.1)
    assert numbers(plan(frozen, a_note(2, TEA_AGAIN, importance=0.9)).merged) == [(2, 1)]
    assert plan(frozen, a_note(2, TEA_AGAIN, lifecycle="frozen")).merged == ()


def test_many_duplicates_are_merged_into_one() -> None:
    assert numbers(plan(*(a_note(n, TEA) for n in range(1, 5))).merged) == [(1, 4), (2, 4), (3, 4)]


@each_row(
    "known",
    [
        {"trust": Trust.DATA},
        {"kind": "preference"},
        {"valid_from": WHEN},
        {"valid_to": NOW},
        {"source": "sessions"},
        {"lifecycle": "archived", "merged_into": "resource/ada#9"},
        {"lifecycle": "expired"},
    ],
    ids=lambda known: next(iter(known)),
)
def test_crystals_of_another_kind_trust_or_validity_are_not_merged(known: dict[str, Any]) -> None:
    assert plan(a_note(1, TEA), a_note(2, TEA, **known)).merged == ()


def test_a_successor_is_not_merged() -> None:
    munich = [a_note(2, MUNICH), a_note(3, MUNICH, importance=0.9)]
    assert plan(a_note(1, BERLIN, superseded_by="resource/ada#2"), *munich).merged == ()


def test_a_statement_that_becomes_true_again_is_merged() -> None:
    answer = plan(a_note(1, HAMBURG), a_note(2, BERLIN), a_note(3, HAMBURG))
    assert (numbers(answer.merged), numbers(answer.superseded)) == ([(1, 3)], [(2, 3)])


def test_a_superseded_crystal_is_not_merged() -> None:
    answer = plan(a_note(1, BERLIN), a_note(2, BERLIN), a_note(3, MUNICH))
    assert (answer.merged, numbers(answer.superseded)) == ((), [(1, 3), (2, 3)])


# -- superseding -------------------------------------------------------------------------------------------


def test_a_statement_is_superseded_by_the_newest_value() -> None:
    assert numbers(plan(a_note(1, BERLIN), a_note(2, MUNICH), a_note(3, HAMBURG)).superseded) == [(1, 3), (2, 3)]


def test_the_newer_statement_is_the_one_valid_from_later() -> None:
    backdated = a_note(2, MUNICH, valid_from=WHEN - 99 * DAY)
    assert numbers(plan(a_note(1, HAMBURG), backdated).superseded) == [(2, 1)]


def test_at_the_same_time_the_later_event_is_newer() -> None:
    """Two calls in one reply may change a value, and event 10 is after event 9."""
    assert numbers(plan(a_note(9, BERLIN, day=1), a_note(10, HAMBURG, day=1)).superseded) == [(9, 10)]
    assert numbers(plan(a_note(9, TEA, day=1), a_note(10, TEA_AGAIN, day=1)).merged) == [(9, 10)]


def test_at_the_same_time_events_of_two_streams_have_no_order() -> None:
    here, there = a_note(1, BERLIN, day=1), replace(a_note(2, HAMBURG, day=1), id="session/s#2")
    assert plan(here, there).superseded == ()


def test_sections_of_a_page_do_not_supersede_each_other() -> None:
    parts = [replace(a_note(2, text, day=1), id=f"session/s#2.{n}") for n, text in enumerate((BERLIN, HAMBURG))]
    assert plan(*parts).superseded == ()


def test_a_future_statement_supersedes_when_it_becomes_valid() -> None:
    notes = [a_note(1, BERLIN), a_note(2, MUNICH, valid_from=NOW + DAY)]
    assert plan(*notes).superseded == ()
    assert numbers(plan(*notes, now=NOW + DAY).superseded) == [(1, 2)]


def test_a_statement_with_a_declared_end_supersedes_nothing() -> None:
    assert plan(a_note(1, BERLIN), a_note(2, HAMBURG, valid_to=NOW)).superseded == ()


@pytest.mark.spec("J5")
def test_text_of_a_tool_cannot_supersede_text_of_a_person() -> None:
    person, tool = a_note(1, BERLIN, trust=Trust.PERSON), a_note(2, MUNICH, trust=Trust.DATA)
    assert plan(person, tool).superseded == ()
    assert numbers(plan(tool, a_note(3, HAMBURG, trust=Trust.PERSON)).superseded) == [(2, 3)]


def test_a_message_is_evidence_and_neither_supersedes_nor_is_superseded() -> None:
    assert plan(a_note(1, BERLIN, source="sessions"), a_note(2, MUNICH)).superseded == ()
    assert plan(a_note(1, BERLIN), a_note(2, MUNICH, source="sessions")).superseded == ()


def test_a_note_with_more_than_the_replaced_value_is_kept() -> None:
    assert plan(a_note(1, f"{BERLIN}. Her sister is Anna."), a_note(2, MUNICH)).superseded == ()


# -- expiring ----------------------------------------------------------------------------------------------


def test_an_unused_crystal_expires_whatever_its_source() -> None:
    unused = [a_note(1, TEA, importance=0.0, day=0), a_note(2, "ok", importance=0.0, day=0, source="sessions")]
    kept = [a_note(3, TEA), a_note(4, "x", importance=0.0, day=0, lifecycle="frozen")]
    assert plan(*unused, *kept).expired == ("resource/ada#1", "resource/ada#2")


def test_nothing_is_merged_into_an_expired_crystal() -> None:
    expiring = a_note(1, MUNICH, importance=0.0, day=2)
    answer = plan(a_note(2, BERLIN, day=1), a_note(3, MUNICH, importance=0.0, day=1), expiring, now=WHEN + 99 * DAY)
    assert (answer.merged, answer.superseded) == ((), ())


# -- batches -----------------------------------------------------------------------------------------------


def test_batches_cover_the_plan_and_name_their_last_crystal() -> None:
    consolidated = plan_consolidation([a_note(n, TEA) for n in range(1, 6)], now=NOW)
    batches = list(split_batches(consolidated, 2))
    assert [batch.last_crystal for batch in batches] == ["resource/ada#2", "resource/ada#4"]
    assert numbers([pair for batch in batches for pair in batch.merged]) == [(1, 5), (2, 5), (3, 5), (4, 5)]


@pytest.mark.parametrize("text", ["User lives in Town{n}", "User lives in Berlin", "Step {n} of the plan is done"])
def test_twice_as_many_notes_need_no_more_than_twice_the_comparisons(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparisons = 0

    def count_comparison(one: Answer, other: Answer) -> bool:
        nonlocal comparisons
        comparisons += 1
        return one != other

    monkeypatch.setattr(consolidate, "answers_differ", count_comparison)
    for many in (400, 800):
        comparisons = 0
        plan_consolidation([a_note(n, text.format(n=n)) for n in range(many)], now=NOW + 999 * DAY)
        assert comparisons <= 2 * many
