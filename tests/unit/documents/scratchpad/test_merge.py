"""Merging an update into a state without modifying the old state."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.core.json import MAX_DEPTH
from inmind.documents.scratchpad.state import (
    append_text,
    delete_paths,
    json_equal,
    merge_update,
    plan_object_update,
)
from inmind.documents.scratchpad.values import MAX_OBJECT_DEPTH

STATE: dict[str, Any] = {
    "currentGoal": "Deploy v2",
    "owner": {"name": "Ada", "address": {"city": "London", "zip": "N1"}},
    "steps": [{"title": "write tests"}],
}


@pytest.mark.spec("C2")
@each_row(
    ("values", "delete", "changed"),
    [
        ({"currentGoal": "Ship"}, [], {"currentGoal": "Ship"}),
        ({"owner": {"name": "Bo"}}, [], {"owner": {"name": "Bo", "address": {"city": "London", "zip": "N1"}}}),
        (
            {"owner": {"address": {"zip": "E2"}}},
            [],
            {"owner": {"name": "Ada", "address": {"city": "London", "zip": "E2"}}},
        ),
        ({"steps": []}, [], {"steps": []}),
        ({"steps": [{"done": True}]}, [], {"steps": [{"done": True}]}),
        ({"owner": None}, [], {"owner": None}),
        ({"owner": "Ada"}, [], {"owner": "Ada"}),
        ({"currentGoal": {"title": "Ship"}}, [], {"currentGoal": {"title": "Ship"}}),
        ({"owner": {}}, [], {}),
        ({}, [("owner", "address")], {"owner": {"name": "Ada"}}),
        ({"owner": {"name": "Bo"}}, [("owner",)], {"owner": {"name": "Bo"}}),
        ({}, [("owner", "unknown"), ("currentGoal", "deeper"), ("nowhere", "x"), ()], {}),
    ],
)
def test_objects_merge_and_everything_else_replaces(
    values: dict[str, Any], delete: list[tuple[str, ...]], changed: dict[str, Any]
) -> None:
    assert merge_update(STATE, values, delete) == {**STATE, **changed}


@pytest.mark.spec("C2")
def test_only_the_objects_along_the_path_are_copied() -> None:
    state = {"a": {"b": {"c": 1}, "big": [1, 2]}, "other": {"kept": True}}
    after = merge_update(state, {"a": {"b": {"c": 2}}}, [("a", "gone")])
    assert after == {"a": {"b": {"c": 2}, "big": [1, 2]}, "other": {"kept": True}}
    assert after["other"] is state["other"]
    assert after["a"]["big"] is state["a"]["big"]
    assert state == {"a": {"b": {"c": 1}, "big": [1, 2]}, "other": {"kept": True}}


def nested(levels: int, inside: Any) -> Any:
    for _ in range(levels):
        inside = {"a": inside}
    return inside


@pytest.mark.spec("C2")
def test_merging_deep_objects_does_not_exhaust_the_stack() -> None:
    """A journal can contain values that are deeper than the current limit for updates."""
    after = merge_update(nested(10_000, {}), nested(10_000, {"b": 1}), [("a",) * 9_999])
    assert json_equal(after, nested(10_000, {"b": 1}))
    assert not json_equal(after, nested(10_000, {"b": True}))
    depth = 0
    while "a" in after:
        after, depth = after["a"], depth + 1
    assert (depth, after) == (10_000, {"b": 1})


@pytest.mark.spec("C2")
@each_row("levels", [MAX_OBJECT_DEPTH - 1, MAX_DEPTH - 1])
def test_a_state_at_the_limit_or_deeper_is_updated(levels: int) -> None:
    state = nested(levels, {"steps": []})
    update = plan_object_update(state, {"goal": "Ship"}, ["a"], may_have_filler=True)
    assert (update.state, update.changed) == ({"goal": "Ship"}, True)
    values = nested(MAX_OBJECT_DEPTH - 1, {"b": 1})
    update = plan_object_update(state, values)
    assert json_equal(update.state, merge_update(state, values))
    assert not plan_object_update(update.state, values).changed


@pytest.mark.spec("C2")
def test_a_path_and_its_parent_can_be_deleted_in_any_order() -> None:
    for delete in ([("owner",), ("owner", "name")], [("owner", "name"), ("owner",)]):
        assert delete_paths(STATE, delete) == {key: STATE[key] for key in STATE if key != "owner"}
    assert "owner" in STATE


def test_a_missing_path_deletes_nothing() -> None:
    assert delete_paths(STATE, [("owner", "name", "first"), ("steps", "0")]) is STATE


@each_row(
    ("text", "more", "both"),
    [("", "a", "a"), ("a", "b", "a\nb"), ("a\n", "b", "a\nb"), ("a", "", "a"), ("a\n", "", "a\n"), ("", "", "")],
)
def test_appended_text_starts_a_line(text: str, more: str, both: str) -> None:
    assert append_text(text, more) == both


@each_row(
    ("one", "other", "equal"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, True),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        (1, True, False),
        ([0], [False], False),
        ({"a": {"b": [1]}}, {"a": {"b": [True]}}, False),
        (1, 1.0, True),
        (None, {}, False),
        ([1], [1, 2], False),
    ],
)
def test_values_are_equal_if_their_json_is_equal(one: object, other: object, equal: bool) -> None:
    assert json_equal(one, other) is equal
    assert json_equal(other, one) is equal
