"""Filler values of a model are distinguished from intended values."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.documents.scratchpad.state import drop_filler, is_empty

STATE: dict[str, Any] = {
    "currentGoal": "Deploy v2",
    "completedSteps": ["write tests"],
    "blockers": ["no staging"],
    "owner": {"name": "Ada", "phone": "555"},
    "note": "",
}


def split_filler(values: dict[str, Any], *, delete: tuple[tuple[str, ...], ...] = ()) -> Any:
    kept, filler = drop_filler(values, STATE, delete=delete)
    return kept, list(filler)


@pytest.mark.spec("C2")
@each_row("empty", [None, [], {}, "", " \n", [""], [None], [" ", None, [], {}], [[""]]])
def test_an_empty_value_next_to_another_is_filler_if_the_field_has_a_value(empty: object) -> None:
    assert split_filler({"currentGoal": "Ship", "blockers": empty}) == ({"currentGoal": "Ship"}, ["blockers"])
    assert split_filler({"currentGoal": "Ship", "owner": empty}) == ({"currentGoal": "Ship"}, ["owner"])


@pytest.mark.spec("C2")
def test_an_update_of_only_filler_changes_nothing() -> None:
    values: dict[str, Any] = {
        "currentGoal": None,
        "completedSteps": [],
        "blockers": [],
        "owner": {"name": "", "phone": None},
    }
    assert split_filler(values) == ({}, ["currentGoal", "completedSteps", "blockers", "owner.name", "owner.phone"])
    values = {
        "currentGoal": " ",
        "completedSteps": [""],
        "blockers": [None],
        "owner": {"name": "\n", "phone": [" "]},
    }
    assert split_filler(values) == ({}, ["currentGoal", "completedSteps", "blockers", "owner.name", "owner.phone"])


@pytest.mark.spec("C2")
@each_row(
    "values",
    [
        {"blockers": []},
        {"blockers": {}},
        {"blockers": [""]},
        {"currentGoal": ""},
        {"currentGoal": " "},
        {"owner": None},
        {"owner": {"phone": None}},
    ],
)
def test_a_single_empty_value_is_taken_literally(values: dict[str, Any]) -> None:
    assert split_filler(values) == (values, [])


@pytest.mark.spec("C2")
def test_an_empty_value_next_to_a_deletion_is_filler() -> None:
    assert split_filler({"blockers": []}, delete=(("owner", "phone"),)) == ({}, ["blockers"])
    assert split_filler({"blockers": []}, delete=(("nowhere",),)) == ({}, ["blockers"])
    assert split_filler({"blockers": []}, delete=(("blockers",),)) == ({"blockers": []}, [])
    assert split_filler({"owner": {"phone": ""}}, delete=(("owner",),)) == ({"owner": {"phone": ""}}, [])


@pytest.mark.spec("C2")
def test_without_a_value_null_is_dropped_and_other_empty_values_are_set() -> None:
    values: dict[str, Any] = {
        "currentGoal": "Ship",
        "note": None,
        "due": None,
        "tags": [],
        "meta": {},
        "risk": "",
        "people": [""],
        "a": {"b": None},
    }
    assert split_filler(values) == ({"currentGoal": "Ship", "tags": [], "meta": {}, "risk": "", "people": [""]}, [])


@pytest.mark.spec("C2")
def test_filler_in_an_object_and_an_object_of_filler_are_dropped() -> None:
    values = {"owner": {"name": "Bo", "phone": ""}, "blockers": {"why": None}}
    assert split_filler(values) == ({"owner": {"name": "Bo"}}, ["owner.phone", "blockers.why"])


@pytest.mark.spec("C2")
def test_filler_does_not_replace_a_value_with_an_object() -> None:
    assert split_filler({"currentGoal": {"title": [], "due": ""}}) == ({}, ["currentGoal.title", "currentGoal.due"])


def test_zero_and_false_are_not_empty() -> None:
    assert split_filler({"currentGoal": 0, "blockers": False}) == ({"currentGoal": 0, "blockers": False}, [])
    assert [
        value for value in (0, 0.0, False, "-", [0], [None, False], [{"a": None}], {"a": None}) if is_empty(value)
    ] == []
