"""Three-way merge of a child's scratchpad: no change of the parent is lost."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.documents.scratchpad.state import MergeConflict, ScratchpadMerge, merge_three_way, merge_update
from inmind.documents.scratchpad.values import ABSENT

BASE: dict[str, Any] = {"goal": "Ship", "steps": ["plan"], "owner": {"name": "Ada", "phone": "555"}, "done": 1}


def apply_merge(ours: Any, merged: ScratchpadMerge) -> Any:
    if isinstance(ours, str):
        return ours if merged.text is None else merged.text
    return merge_update(ours, merged.values, merged.delete)


def base_with(**values: Any) -> dict[str, Any]:
    return {**BASE, **values}


def base_without(key: str) -> dict[str, Any]:
    return {other: BASE[other] for other in BASE if other != key}


@pytest.mark.spec("C8")
@each_row(
    ("ours", "theirs", "after", "taken"),
    [
        (BASE, BASE, BASE, ()),
        (BASE, base_with(goal="Rest"), base_with(goal="Rest"), ("goal",)),
        (base_with(goal="Rest"), BASE, base_with(goal="Rest"), ()),
        (base_with(goal="Rest"), base_with(goal="Rest"), base_with(goal="Rest"), ()),
        (base_with(goal="Rest"), base_with(due="May"), base_with(goal="Rest", due="May"), ("due",)),
        (
            base_with(owner={"name": "Bo", "phone": "555"}),
            base_with(owner={"name": "Ada", "phone": None}),
            base_with(owner={"name": "Bo", "phone": None}),
            ("owner.phone",),
        ),
        (BASE, base_with(owner={"name": "Ada"}), base_with(owner={"name": "Ada"}), ("owner.phone",)),
        (BASE, {"goal": "Ship"}, {"goal": "Ship"}, ("steps", "owner", "done")),
        (BASE, base_with(steps=[]), base_with(steps=[]), ("steps",)),
        (BASE, base_with(owner="Ada"), base_with(owner="Ada"), ("owner",)),
        (BASE, base_with(done=True), base_with(done=True), ("done",)),
        (BASE, base_with(extra={"a.b": {"c": 1}}), base_with(extra={"a.b": {"c": 1}}), ("extra",)),
        (base_with(extra={}), base_with(extra={"a.b": 1}), base_with(extra={"a.b": 1}), ('extra["a.b"]',)),
    ],
)
def test_a_change_of_only_one_side_is_taken(ours: Any, theirs: Any, after: Any, taken: tuple[str, ...]) -> None:
    merged = merge_three_way(BASE, ours, theirs)
    assert apply_merge(ours, merged) == after
    assert (merged.taken, merged.combined, merged.conflicts) == (taken, (), ())


@pytest.mark.spec("C8")
def test_a_list_that_both_appended_to_has_the_items_of_both() -> None:
    merged = merge_three_way(
        BASE, base_with(steps=["plan", "code", "test"]), base_with(steps=["plan", "test", "review"])
    )
    assert merged.values == {"steps": ["plan", "code", "test", "review"]}
    assert (merged.combined, merged.taken, merged.conflicts) == (("steps",), (), ())


@pytest.mark.spec("C8")
def test_a_list_that_both_created_has_the_items_of_both() -> None:
    merged = merge_three_way(
        {"log": None}, {"log": [1], "new": [{"a": 1}]}, {"log": [True], "new": [{"a": 1}, {"a": 2}]}
    )
    assert merged.values == {"log": [1, True], "new": [{"a": 1}, {"a": 2}]}
    assert merged.combined == ("log", "new")


@pytest.mark.spec("C8")
def test_an_appended_item_is_merged_even_if_the_list_has_an_equal_item() -> None:
    merged = merge_three_way(BASE, base_with(steps=["plan", "code"]), base_with(steps=["plan", "plan"]))
    assert merged.values == {"steps": ["plan", "code", "plan"]}


@pytest.mark.spec("C8")
def test_an_appended_item_is_merged_after_items_of_another_child() -> None:
    """This child was merged before, and so was another child."""
    merged = merge_three_way({"f": ["m", "b1"]}, {"f": ["m", "a1", "b1", "a2"]}, {"f": ["m", "b1", "b2"]})
    assert (merged.values, merged.combined) == ({"f": ["m", "a1", "b1", "a2", "b2"]}, ("f",))
    assert merge_three_way({"f": [1, 2]}, {"f": [2, 1]}, {"f": [1, 2, 3]}).conflicts
    assert merge_three_way({"f": [1, 2]}, {"f": [1]}, {"f": [1, 2, 3]}).conflicts


@pytest.mark.spec("C8")
def test_equal_appended_items_are_merged_once() -> None:
    assert (
        merge_three_way(BASE, base_with(steps=["plan", "a", "b"]), base_with(steps=["plan", "b"])) == ScratchpadMerge()
    )


@pytest.mark.spec("C8")
@each_row(
    ("ours", "theirs", "conflict"),
    [
        (base_with(goal="Rest"), base_with(goal="Sleep"), MergeConflict("goal", "Ship", "Rest", "Sleep")),
        (
            base_with(steps=["other"]),
            base_with(steps=["plan", "x"]),
            MergeConflict("steps", ["plan"], ["other"], ["plan", "x"]),
        ),
        (
            base_with(steps=["plan", "x"]),
            base_with(steps=["other"]),
            MergeConflict("steps", ["plan"], ["plan", "x"], ["other"]),
        ),
        (
            base_with(owner={"name": "Bo", "phone": "555"}),
            base_without("owner"),
            MergeConflict("owner", BASE["owner"], {"name": "Bo", "phone": "555"}, ABSENT),
        ),
        (
            base_without("goal"),
            base_with(goal="Rest"),
            MergeConflict("goal", "Ship", ABSENT, "Rest"),
        ),
        (base_with(due="May"), base_with(due=None), MergeConflict("due", ABSENT, "May", None)),
        (
            base_with(owner={"name": "Bo", "phone": "555"}),
            base_with(owner={"name": "Cy", "phone": "555"}),
            MergeConflict("owner.name", "Ada", "Bo", "Cy"),
        ),
    ],
)
def test_on_conflict_the_parent_value_stays_and_is_reported(ours: Any, theirs: Any, conflict: MergeConflict) -> None:
    merged = merge_three_way(BASE, ours, theirs)
    assert merged.conflicts == (conflict,)
    assert apply_merge(ours, merged) == ours
    assert (merged.taken, merged.combined) == ((), ())


@pytest.mark.spec("C8")
def test_a_conflict_does_not_stop_other_changes() -> None:
    merged = merge_three_way(BASE, base_with(goal="Rest"), base_with(goal="Sleep", due="May", steps=["plan", "nap"]))
    assert [conflict.path for conflict in merged.conflicts] == ["goal"]
    assert merged.values == {"due": "May", "steps": ["plan", "nap"]}


@pytest.mark.spec("C8")
def test_changing_a_report_does_not_change_the_state() -> None:
    ours = base_with(owner=["Bo"])
    [conflict] = merge_three_way(BASE, ours, base_with(owner=["Cy"])).conflicts
    conflict.ours.append("x")
    conflict.base["name"] = "x"
    assert ours["owner"] == ["Bo"]
    assert BASE["owner"]["name"] == "Ada"


@pytest.mark.spec("C8")
@each_row(
    ("base", "ours", "theirs", "after", "outcome"),
    [
        ("a", "a", "a", "a", ""),
        ("a", "a", "b", "b", "taken"),
        ("a", "b", "a", "b", ""),
        ("a", "b", "b", "b", ""),
        ("a", "a\nours", "a\ntheirs", "a\nours\ntheirs", "combined"),
        ("a\n", "a\nours\n", "a\ntheirs\n", "a\nours\ntheirs\n", "combined"),
        ("", "ours", "theirs", "ours\ntheirs", "combined"),
        ("a", "a\nboth\nours", "a\nboth", "a\nboth\nours", ""),
        ("a", "a\nbothers", "a\nboth", "a\nbothers\nboth", "combined"),
        ("a", "a\nours", "a\n\n", "a\nours", ""),
        ("a", "ab", "a\ntheirs", "ab\ntheirs", "combined"),
        ("a", "a\nours", "abc", "abc\nours", "combined"),
        ("a", "a\nours\n", "a\ntheirs", "a\nours\ntheirs\n", "combined"),
        ("a\nb\nc", "a\nB\nc", "a\nb\nC", "a\nB\nC", "combined"),
        ("a\nb", "a\nours\nb", "a\ntheirs\nb", "a\nours\ntheirs\nb", "combined"),
        ("a\nb1", "a\na1\nb1\na2", "a\nb1\nb2", "a\na1\nb1\na2\nb2", "combined"),
        ("a\nb\nc", "a\nc", "a\nb\nnew\nc", "a\nnew\nc", "combined"),
        ("a\nb\nc", "c", "a\nnew\nb\nc", "c", "conflicts"),
        ("a", "b", "c", "b", "conflicts"),
        ("a", "b", "", "b", "conflicts"),
        ("a", "b", "\n", "b", "conflicts"),
        ("a\nb\nc\nd", "d", "a\nc\nd", "d", ""),
        ("a\nb", "x\na\nb\ny", "b", "x\nb\ny", "combined"),
        ("a\nb", "", "a\nb\nx\ny", "x\ny", "combined"),
        ("a\nb\nc", "A\nB\nc", "a\nnew\nb\nc", "A\nnew\nB\nc", "combined"),
        ("a\nb\nc\nd", "A\nB\nc\nd", "a\nB\nC\nd", "A\nB\nC\nd", "combined"),
    ],
)
def test_texts_are_merged_line_by_line(base: str, ours: str, theirs: str, after: str, outcome: str) -> None:
    merged = merge_three_way(base, ours, theirs)
    assert apply_merge(ours, merged) == after
    assert [kind for kind in ("taken", "combined", "conflicts") if getattr(merged, kind)] == (
        [outcome] if outcome else []
    )
    assert apply_merge(after, merge_three_way(base, after, theirs)) == after


@pytest.mark.spec("C8")
def test_a_text_and_an_object_are_a_conflict() -> None:
    assert merge_three_way("a", {"b": 1}, "c").conflicts == (MergeConflict("", "a", {"b": 1}, "c"),)
    assert merge_three_way({}, "mine", {"b": 1}).conflicts == (MergeConflict("", {}, "mine", {"b": 1}),)
    assert merge_three_way("a", {"b": 1}, "a") == ScratchpadMerge()
    assert merge_three_way({}, "mine", "theirs").text == "mine\ntheirs"


@pytest.mark.spec("C8")
def test_merging_deep_states_does_not_exhaust_the_stack() -> None:
    base, ours, theirs = {"n": 1}, {"n": 2}, {"n": 3, "new": 4}
    for _ in range(1_000):
        base, ours, theirs = {"a": base}, {"a": ours}, {"a": theirs}
    merged = merge_three_way(base, ours, theirs)
    assert [(one.base, one.ours, one.theirs) for one in merged.conflicts] == [(1, 2, 3)]
    after = apply_merge(ours, merged)
    for _ in range(1_000):
        after = after["a"]
    assert after == {"n": 2, "new": 4}
