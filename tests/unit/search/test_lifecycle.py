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
from inmind.search.crystal import Crystal, Lifecycle
from inmind.search.lifecycle import apply_event, is_searchable

pytestmark = pytest.mark.spec("H1", "H5")

IT, OTHER = "resource/ada#1", "resource/ada#2"
LIFECYCLES: tuple[Lifecycle, ...] = get_args(Lifecycle)

FOUND = SearchRecorded("tea", (OTHER, IT))
REPLAYED = DreamCommitted(1, "rules", 0, 0, replayed=(OTHER, IT))
MERGED = Consolidated("", merged=((IT, OTHER),))
KEPT = Consolidated("", merged=((OTHER, IT),))
SUPERSEDED = Consolidated("", superseded=((IT, OTHER),))
SUPERSEDES = Consolidated("", superseded=((OTHER, IT),))
FADED = Consolidated("", expired=(IT,))
FROZEN, THAWED = CrystalPinned(IT), CrystalPinned(IT, pinned=False)

# What each event makes of each lifecycle, in the order of `Lifecycle`.
TRANSITIONS: list[tuple[str, EventPayload, str]] = [
    ("something else", NoteAdded("tea"), "generated activated consolidated archived expired frozen"),
    ("found", FOUND, "activated activated consolidated archived activated frozen"),
    ("replayed", REPLAYED, "activated activated consolidated archived activated frozen"),
    ("merged", MERGED, "archived archived archived archived expired frozen"),
    ("kept", KEPT, "consolidated consolidated consolidated archived expired frozen"),
    ("superseded", SUPERSEDED, "consolidated consolidated consolidated archived expired frozen"),
    ("supersedes", SUPERSEDES, "consolidated consolidated consolidated archived expired frozen"),
    ("faded", FADED, "expired expired expired archived expired frozen"),
    ("frozen", FROZEN, "frozen frozen frozen frozen frozen frozen"),
    ("thawed", THAWED, "generated activated consolidated archived expired consolidated"),
]


def a_crystal(id: str = IT, at: datetime = WHEN, **known: Any) -> Crystal:
    return Crystal(id=id, text="likes tea", at=at, **known)


def happened(crystal: Crystal, what: EventPayload, *others: Crystal) -> Crystal:
    return apply_event(crystal, an_event(what), {other.id: other for other in others})


@pytest.mark.parametrize(
    ("before", "what", "then"),
    [
        pytest.param(before, what, then, id=f"{before}, {name}")
        for name, what, row in TRANSITIONS
        for before, then in zip(LIFECYCLES, row.split(), strict=True)
    ],
)
def test_every_event_changes_every_lifecycle_as_in_the_table(
    before: Lifecycle, what: EventPayload, then: Lifecycle
) -> None:
    assert happened(a_crystal(lifecycle=before), what, a_crystal(OTHER)).lifecycle == then


@each_row(
    "what",
    [
        NoteAdded("something else"),
        SearchRecorded("tea", (OTHER,)),
        DreamCommitted(1, "rules", 0, 0, replayed=(OTHER,)),
        Consolidated(OTHER, merged=((OTHER, "resource/ada#3"),), expired=("resource/ada#4",)),
        CrystalPinned(OTHER),
    ],
    ids=["note", "search", "dream", "consolidation", "freezing"],
)
def test_an_event_about_other_crystals_changes_nothing(what: EventPayload) -> None:
    crystal = a_crystal()
    assert happened(crystal, what) is crystal


def test_an_access_is_counted_once_per_search_with_its_time() -> None:
    found = happened(a_crystal(accesses=2), SearchRecorded("tea", (IT, IT)))
    assert (found.accesses, found.accessed) == (3, WHEN)


@pytest.mark.spec("G13")
def test_a_replay_by_a_dream_is_one_access() -> None:
    replayed = happened(a_crystal(accesses=2), REPLAYED)
    assert (replayed.accesses, replayed.accessed) == (3, WHEN)


def test_only_merged_and_expired_crystals_are_hidden() -> None:
    assert [lifecycle for lifecycle in LIFECYCLES if not is_searchable(a_crystal(lifecycle=lifecycle))] == [
        "archived",
        "expired",
    ]


def test_a_merged_crystal_names_its_target() -> None:
    assert happened(a_crystal(), MERGED, a_crystal(OTHER)).merged_into == OTHER


@pytest.mark.parametrize("lifecycle", ["archived", "expired"])
def test_nothing_is_merged_into_a_hidden_crystal(lifecycle: Lifecycle) -> None:
    crystal = a_crystal()
    assert happened(crystal, MERGED, a_crystal(OTHER, lifecycle=lifecycle)) is crystal


def test_nothing_is_merged_into_an_unknown_crystal() -> None:
    crystal = a_crystal()
    assert happened(crystal, MERGED) is crystal


@pytest.mark.parametrize(
    "what",
    [
        Consolidated("", merged=((IT, OTHER), (OTHER, IT))),
        Consolidated("", merged=((IT, OTHER),), expired=(OTHER,)),
    ],
    ids=["merged", "expired"],
)
def test_nothing_is_merged_into_a_crystal_hidden_by_the_same_event(what: EventPayload) -> None:
    crystal = a_crystal()
    assert is_searchable(happened(crystal, what, a_crystal(OTHER)))


def test_the_first_merge_wins() -> None:
    merged = a_crystal(lifecycle="archived", merged_into="resource/ada#3")
    assert happened(merged, MERGED, a_crystal(OTHER)) is merged


@pytest.mark.parametrize(
    "other",
    [
        a_crystal(OTHER, lifecycle="frozen", accesses=3),
        a_crystal(OTHER, lifecycle="expired", accesses=3),
        a_crystal(OTHER, lifecycle="archived", merged_into="resource/ada#3", accesses=3),
    ],
    ids=lambda other: other.lifecycle,
)
def test_a_merge_that_does_not_happen_adds_nothing(other: Crystal) -> None:
    crystal = a_crystal()
    assert happened(crystal, KEPT, other) is crystal


def test_the_kept_crystal_gets_lineage_and_accesses() -> None:
    other = a_crystal(OTHER, sources=("session/s#4",), accesses=3, accessed=WHEN + timedelta(days=3))
    kept = happened(a_crystal(sources=("session/s#2",), accesses=2, accessed=WHEN, importance=0.4), KEPT, other)
    assert kept.sources == ("session/s#2", OTHER, "session/s#4")
    assert (kept.accesses, kept.accessed) == (5, WHEN + timedelta(days=3))
    assert kept.importance == 0.4


def test_a_superseded_crystal_ends_when_the_newer_one_was_said() -> None:
    older = happened(a_crystal(), SUPERSEDED, a_crystal(OTHER, at=WHEN + timedelta(days=9)))
    assert (older.superseded_by, older.valid_to) == (OTHER, WHEN + timedelta(days=9))


def test_a_superseded_crystal_ends_when_the_newer_one_becomes_valid() -> None:
    newer = a_crystal(OTHER, at=WHEN + timedelta(days=9), valid_from=WHEN + timedelta(days=5))
    assert happened(a_crystal(), SUPERSEDED, newer).valid_to == WHEN + timedelta(days=5)


def test_a_declared_end_is_kept() -> None:
    declared = WHEN + timedelta(days=2)
    assert happened(a_crystal(valid_to=declared), SUPERSEDED, a_crystal(OTHER)).valid_to == declared


def test_a_pinned_crystal_can_be_superseded() -> None:
    frozen = happened(a_crystal(lifecycle="frozen"), SUPERSEDED, a_crystal(OTHER))
    assert (frozen.superseded_by, frozen.lifecycle) == (OTHER, "frozen")


def test_pinning_a_merged_crystal_restores_it() -> None:
    merged = happened(a_crystal(), MERGED, a_crystal(OTHER))
    assert happened(merged, FROZEN) == replace(merged, lifecycle="frozen", merged_into="")
