"""What a model meant, told from what it put into the other fields of the form."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.documents.scratchpad.filler_values import drop_filler, is_empty

STATE: dict[str, Any] = {
    "currentGoal": "Deploy v2",
    "completedSteps": ["write tests"],
    "blockers": ["no staging"],
    "owner": {"name": "Ada", "phone": "555"},
    "note": "",
}


def took(values: dict[str, Any], *, delete: tuple[tuple[str, ...], ...] = ()) -> Any:
    found = drop_filler(values, STATE, delete=delete)
    return found.values, [".".join(path) for path in found.filler]


@pytest.mark.spec("C2")
@each_row("empty", [None, [], {}, "", " \n", [""], [None], [" ", None, [], {}], [[""]]])
def test_an_empty_value_beside_another_is_padding_where_there_is_something_to_lose(empty: object) -> None:
    assert took({"currentGoal": "Ship", "blockers": empty}) == ({"currentGoal": "Ship"}, ["blockers"])
    assert took({"currentGoal": "Ship", "owner": empty}) == ({"currentGoal": "Ship"}, ["owner"])


@pytest.mark.spec("C2")
def test_a_form_that_is_filled_in_with_nothing_but_padding_says_nothing() -> None:
    values: dict[str, Any] = {
        "currentGoal": None,
        "completedSteps": [],
        "blockers": [],
        "owner": {"name": "", "phone": None},
    }
    assert took(values) == ({}, ["currentGoal", "completedSteps", "blockers", "owner.name", "owner.phone"])
    values = {
        "currentGoal": " ",
        "completedSteps": [""],
        "blockers": [None],
        "owner": {"name": "\n", "phone": [" "]},
    }
    assert took(values) == ({}, ["currentGoal", "completedSteps", "blockers", "owner.name", "owner.phone"])


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
def test_one_empty_value_that_is_all_that_was_said_is_meant(values: dict[str, Any]) -> None:
    assert took(values) == (values, [])


@pytest.mark.spec("C2")
def test_deleting_something_else_is_saying_something_else() -> None:
    assert took({"blockers": []}, delete=(("owner", "phone"),)) == ({}, ["blockers"])
    assert took({"blockers": []}, delete=(("nowhere",),)) == ({}, ["blockers"])
    assert took({"blockers": []}, delete=(("blockers",),)) == ({"blockers": []}, [])
    assert took({"owner": {"phone": ""}}, delete=(("owner",),)) == ({"owner": {"phone": ""}}, [])


@pytest.mark.spec("C2")
def test_where_nothing_can_be_lost_null_is_left_out_and_other_empty_values_are_set() -> None:
    values: dict[str, Any] = {
        "currentGoal": "Ship",
        "note": None,
        "due": None,
        "tags": [],
        "meta": {},
        "risk": "",
        "who": [""],
        "a": {"b": None},
    }
    assert took(values) == ({"currentGoal": "Ship", "tags": [], "meta": {}, "risk": "", "who": [""]}, [])


@pytest.mark.spec("C2")
def test_padding_inside_an_object_is_left_out_and_so_is_an_object_of_nothing_else() -> None:
    values = {"owner": {"name": "Bo", "phone": ""}, "blockers": {"why": None}}
    assert took(values) == ({"owner": {"name": "Bo"}}, ["owner.phone", "blockers.why"])


@pytest.mark.spec("C2")
def test_padding_never_takes_the_place_of_a_value_further_up() -> None:
    assert took({"currentGoal": {"title": [], "due": ""}}) == ({}, ["currentGoal.title", "currentGoal.due"])


def test_zero_and_false_are_not_empty() -> None:
    assert took({"currentGoal": 0, "blockers": False}) == ({"currentGoal": 0, "blockers": False}, [])
    assert [
        value for value in (0, 0.0, False, "-", [0], [None, False], [{"a": None}], {"a": None}) if is_empty(value)
    ] == []
