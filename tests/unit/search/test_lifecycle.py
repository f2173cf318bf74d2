"""Lifecycle of a crystal, transition by transition."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, get_args

import pytest
from builders import WHEN, an_event
from tables import each_row

from inmind.core.events.base import EventPayload
from inmind.core.events.crystals import Consolidated, CrystalPinned, NoteAdded, SearchRecorded
from inmind.core.events.dreams import DreamCommitted
from inmind.search.crystal import Crystal, Lifecycle, apply_event, is_searchable

pytestmark = pytest.mark.spec("H1", "H5")

CRYSTAL, OTHER = "resource/ada#1", "resource/ada#2"
LIFECYCLES: tuple[Lifecycle, ...] = get_args(Lifecycle)

SEARCHED = SearchRecorded("tea", (OTHER, CRYSTAL))
REPLAYED = DreamCommitted(1, "rules", 0, 0, replayed=(OTHER, CRYSTAL))
MERGED = Consolidated("", merged=((CRYSTAL, OTHER),))
KEPT = Consolidated("", merged=((OTHER, CRYSTAL),))
SUPERSEDED = Consolidated("", superseded=((CRYSTAL, OTHER),))
SUPERSEDES = Consolidated("", superseded=((OTHER, CRYSTAL),))
EXPIRED = Consolidated("", expired=(CRYSTAL,))
FROZEN, THAWED = CrystalPinned(CRYSTAL), CrystalPinned(CRYSTAL, pinned=False)

# The lifecycle after each event, for each lifecycle before it, in the order of `Lifecycle`.
TRANSITIONS: list[tuple[str, EventPayload, str]] = [
    ("something else", NoteAdded("tea"), "generated activated consolidated archived expired frozen"),
    ("searched", SEARCHED, "activated activated consolidated archived activated frozen"),
    ("replayed", REPLAYED, "activated activated consolidated archived activated frozen"),
    ("merged", MERGED, "archived archived archived archived expired frozen"),
    ("kept", KEPT, "consolidated consolidated consolidated archived expired frozen"),
    ("superseded", SUPERSEDED, "consolidated consolidated consolidated archived expired frozen"),
    ("supersedes", SUPERSEDES, "consolidated consolidated consolidated archived expired frozen"),
    ("expired", EXPIRED, "expired expired expired archived expired frozen"),
    ("frozen", FROZEN, "frozen frozen frozen frozen frozen frozen"),
    ("thawed", THAWED, "generated activated consolidated archived expired consolidated"),
]


def a_crystal(id: str = CRYSTAL, at: datetime = WHEN, **known: Any) -> Crystal:
    return Crystal(id=id, text="likes tea", at=at, **known)


def apply(crystal: Crystal, payload: EventPayload, *others: Crystal) -> Crystal:
    return apply_event(crystal, an_event(payload), {other.id: other for other in others})


@pytest.mark.parametrize(
    ("before", "payload", "then"),
    [
        pytest.param(before, payload, then, id=f"{before}, {name}")
        for name, payload, row in TRANSITIONS
        for before, then in zip(LIFECYCLES, row.split(), strict=True)
    ],
)
def test_every_event_changes_every_lifecycle_as_in_the_table(
    before: Lifecycle, payload: EventPayload, then: Lifecycle
) -> None:
    assert apply(a_crystal(lifecycle=before), payload, a_crystal(OTHER)).lifecycle == then


@each_row(
    "payload",
    [
        NoteAdded("something else"),
        SearchRecorded("tea", (OTHER,)),
        DreamCommitted(1, "rules", 0, 0, replayed=(OTHER,)),
        Consolidated(OTHER, merged=((OTHER, "resource/ada#3"),), expired=("resource/ada#4",)),
        CrystalPinned(OTHER),
    ],
    ids=["note", "search", "dream", "consolidation", "freezing"],
)
def test_an_event_about_other_crystals_changes_nothing(payload: EventPayload) -> None:
    crystal = a_crystal()
    assert apply(crystal, payload) is crystal


def test_an_access_is_counted_once_per_search_with_its_time() -> None:
    crystal = apply(a_crystal(accesses=2), SearchRecorded("tea", (CRYSTAL, CRYSTAL)))
    assert (crystal.accesses, crystal.accessed) == (3, WHEN)


@pytest.mark.spec("G13")
def test_a_replay_by_a_dream_is_one_access() -> None:
    replayed = apply(a_crystal(accesses=2), REPLAYED)
    assert (replayed.accesses, replayed.accessed) == (3, WHEN)


def test_only_merged_and_expired_crystals_are_hidden() -> None:
    assert [lifecycle for lifecycle in LIFECYCLES if not is_searchable(a_crystal(lifecycle=lifecycle))] == [
        "archived",
        "expired",
    ]


def test_a_merged_crystal_names_its_target() -> None:
    assert apply(a_crystal(), MERGED, a_crystal(OTHER)).merged_into == OTHER


@pytest.mark.parametrize("lifecycle", ["archived", "expired"])
def test_nothing_is_merged_into_a_hidden_crystal(lifecycle: Lifecycle) -> None:
    crystal = a_crystal()
    assert apply(crystal, MERGED, a_crystal(OTHER, lifecycle=lifecycle)) is crystal


def test_nothing_is_merged_into_an_unknown_crystal() -> None:
    crystal = a_crystal()
    assert apply(crystal, MERGED) is crystal


@pytest.mark.parametrize(
    "payload",
    [
        Consolidated("", merged=((CRYSTAL, OTHER), (OTHER, CRYSTAL))),
        Consolidated("", merged=((CRYSTAL, OTHER),), expired=(OTHER,)),
    ],
    ids=["merged", "expired"],
)
def test_nothing_is_merged_into_a_crystal_hidden_by_the_same_event(payload: EventPayload) -> None:
    crystal = a_crystal()
    assert is_searchable(apply(crystal, payload, a_crystal(OTHER)))


def test_the_first_merge_wins() -> None:
    merged = a_crystal(lifecycle="archived", merged_into="resource/ada#3")
    assert apply(merged, MERGED, a_crystal(OTHER)) is merged


@pytest.mark.parametrize(
    "other",
    [
        a_crystal(OTHER, lifecycle="frozen", accesses=3),
        a_crystal(OTHER, lifecycle="expired", accesses=3),
        a_crystal(OTHER, lifecycle="archived", merged_into="resource/ada#3", accesses=3),
    ],
    ids=lambda other: other.lifecycle,
)
def test_a_merge_that_is_not_applied_adds_nothing(other: Crystal) -> None:
    crystal = a_crystal()
    assert apply(crystal, KEPT, other) is crystal


def test_the_kept_crystal_gets_lineage_and_accesses() -> None:
    other = a_crystal(OTHER, sources=("session/s#4",), accesses=3, accessed=WHEN + timedelta(days=3))
    kept = apply(a_crystal(sources=("session/s#2",), accesses=2, accessed=WHEN, importance=0.4), KEPT, other)
    assert kept.sources == ("session/s#2", OTHER, "session/s#4")
    assert (kept.accesses, kept.accessed) == (5, WHEN + timedelta(days=3))
    assert kept.importance == 0.4


def test_a_superseded_crystal_ends_at_the_time_of_the_newer_one() -> None:
    older = apply(a_crystal(), SUPERSEDED, a_crystal(OTHER, at=WHEN + timedelta(days=9)))
    assert (older.superseded_by, older.valid_to) == (OTHER, WHEN + timedelta(days=9))


def test_a_superseded_crystal_ends_when_the_newer_one_becomes_valid() -> None:
    newer = a_crystal(OTHER, at=WHEN + timedelta(days=9), valid_from=WHEN + timedelta(days=5))
    assert apply(a_crystal(), SUPERSEDED, newer).valid_to == WHEN + timedelta(days=5)


def test_a_declared_end_is_kept() -> None:
    declared = WHEN + timedelta(days=2)
    assert apply(a_crystal(valid_to=declared), SUPERSEDED, a_crystal(OTHER)).valid_to == declared


def test_a_pinned_crystal_can_be_superseded() -> None:
    frozen = apply(a_crystal(lifecycle="frozen"), SUPERSEDED, a_crystal(OTHER))
    assert (frozen.superseded_by, frozen.lifecycle) == (OTHER, "frozen")


def test_pinning_a_merged_crystal_restores_it() -> None:
    merged = apply(a_crystal(), MERGED, a_crystal(OTHER))
    assert apply(merged, FROZEN) == replace(merged, lifecycle="frozen", merged_into="")
