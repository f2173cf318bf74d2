"""Three-way merge of a child's scratchpad: no change of the parent is lost."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.documents.scratchpad.merge import merge_update
from inmind.documents.scratchpad.merge3 import MergeConflict, ScratchpadMerge, merge_three_way
from inmind.documents.scratchpad.paths import ABSENT

BASE: dict[str, Any] = {"goal": "Ship", "steps": ["plan"], "owner": {"name": "Ada", "phone": "555"}, "done": 1}


def applied(ours: Any, came: ScratchpadMerge) -> Any:
    if isinstance(ours, str):
        return ours if came.text is None else came.text
    return merge_update(ours, came.values, came.delete)


def changed(**values: Any) -> dict[str, Any]:
    return {**BASE, **values}


def lacking(key: str) -> dict[str, Any]:
    return {other: BASE[other] for other in BASE if other != key}


@pytest.mark.spec("C8")
@each_row(
    ("ours", "theirs", "after", "taken"),
    [
        (BASE, BASE, BASE, ()),
        (BASE, changed(goal="Rest"), changed(goal="Rest"), ("goal",)),
        (changed(goal="Rest"), BASE, changed(goal="Rest"), ()),
        (changed(goal="Rest"), changed(goal="Rest"), changed(goal="Rest"), ()),
        (changed(goal="Rest"), changed(due="May"), changed(goal="Rest", due="May"), ("due",)),
        (
            changed(owner={"name": "Bo", "phone": "555"}),
            changed(owner={"name": "Ada", "phone": None}),
            changed(owner={"name": "Bo", "phone": None}),
            ("owner.phone",),
        ),
        (BASE, changed(owner={"name": "Ada"}), changed(owner={"name": "Ada"}), ("owner.phone",)),
        (BASE, {"goal": "Ship"}, {"goal": "Ship"}, ("steps", "owner", "done")),
        (BASE, changed(steps=[]), changed(steps=[]), ("steps",)),
        (BASE, changed(owner="Ada"), changed(owner="Ada"), ("owner",)),
        (BASE, changed(done=True), changed(done=True), ("done",)),
        (BASE, changed(extra={"a.b": {"c": 1}}), changed(extra={"a.b": {"c": 1}}), ("extra",)),
        (changed(extra={}), changed(extra={"a.b": 1}), changed(extra={"a.b": 1}), ('extra["a.b"]',)),
    ],
)
def test_what_only_one_of_them_changed_is_taken(ours: Any, theirs: Any, after: Any, taken: tuple[str, ...]) -> None:
    came = merge_three_way(BASE, ours, theirs)
    assert applied(ours, came) == after
    assert (came.taken, came.combined, came.conflicts) == (taken, (), ())


@pytest.mark.spec("C8")
def test_a_list_that_both_appended_to_holds_what_both_did() -> None:
    came = merge_three_way(BASE, changed(steps=["plan", "code", "test"]), changed(steps=["plan", "test", "review"]))
    assert came.values == {"steps": ["plan", "code", "test", "review"]}
    assert (came.combined, came.taken, came.conflicts) == (("steps",), (), ())


@pytest.mark.spec("C8")
def test_a_list_that_both_began_holds_what_both_did() -> None:
    came = merge_three_way({"log": None}, {"log": [1], "new": [{"a": 1}]}, {"log": [True], "new": [{"a": 1}, {"a": 2}]})
    assert came.values == {"log": [1, True], "new": [{"a": 1}, {"a": 2}]}
    assert came.combined == ("log", "new")


@pytest.mark.spec("C8")
def test_an_appended_item_is_merged_though_the_list_had_an_equal_item() -> None:
    came = merge_three_way(BASE, changed(steps=["plan", "code"]), changed(steps=["plan", "plan"]))
    assert came.values == {"steps": ["plan", "code", "plan"]}


@pytest.mark.spec("C8")
def test_an_appended_item_is_merged_after_items_of_another_child() -> None:
    """The child has come home before, and so has another."""
    came = merge_three_way({"f": ["m", "b1"]}, {"f": ["m", "a1", "b1", "a2"]}, {"f": ["m", "b1", "b2"]})
    assert (came.values, came.combined) == ({"f": ["m", "a1", "b1", "a2", "b2"]}, ("f",))
    assert merge_three_way({"f": [1, 2]}, {"f": [2, 1]}, {"f": [1, 2, 3]}).conflicts
    assert merge_three_way({"f": [1, 2]}, {"f": [1]}, {"f": [1, 2, 3]}).conflicts


@pytest.mark.spec("C8")
def test_equal_appended_items_are_merged_once() -> None:
    assert merge_three_way(BASE, changed(steps=["plan", "a", "b"]), changed(steps=["plan", "b"])) == ScratchpadMerge()


@pytest.mark.spec("C8")
@each_row(
    ("ours", "theirs", "clash"),
    [
        (changed(goal="Rest"), changed(goal="Sleep"), MergeConflict("goal", "Ship", "Rest", "Sleep")),
        (
            changed(steps=["other"]),
            changed(steps=["plan", "x"]),
            MergeConflict("steps", ["plan"], ["other"], ["plan", "x"]),
        ),
        (
            changed(steps=["plan", "x"]),
            changed(steps=["other"]),
            MergeConflict("steps", ["plan"], ["plan", "x"], ["other"]),
        ),
        (
            changed(owner={"name": "Bo", "phone": "555"}),
            lacking("owner"),
            MergeConflict("owner", BASE["owner"], {"name": "Bo", "phone": "555"}, ABSENT),
        ),
        (
            lacking("goal"),
            changed(goal="Rest"),
            MergeConflict("goal", "Ship", ABSENT, "Rest"),
        ),
        (changed(due="May"), changed(due=None), MergeConflict("due", ABSENT, "May", None)),
        (
            changed(owner={"name": "Bo", "phone": "555"}),
            changed(owner={"name": "Cy", "phone": "555"}),
            MergeConflict("owner.name", "Ada", "Bo", "Cy"),
        ),
    ],
)
def test_on_conflict_the_parent_value_stays_and_is_reported(ours: Any, theirs: Any, clash: MergeConflict) -> None:
    came = merge_three_way(BASE, ours, theirs)
    assert came.conflicts == (clash,)
    assert applied(ours, came) == ours
    assert (came.taken, came.combined) == ((), ())


@pytest.mark.spec("C8")
def test_a_conflict_does_not_stop_other_changes() -> None:
    came = merge_three_way(BASE, changed(goal="Rest"), changed(goal="Sleep", due="May", steps=["plan", "nap"]))
    assert [clash.path for clash in came.conflicts] == ["goal"]
    assert came.values == {"due": "May", "steps": ["plan", "nap"]}


@pytest.mark.spec("C8")
def test_changing_a_report_does_not_change_the_state() -> None:
    ours = changed(owner=["Bo"])
    [clash] = merge_three_way(BASE, ours, changed(owner=["Cy"])).conflicts
    clash.ours.append("x")
    clash.base["name"] = "x"
    assert ours["owner"] == ["Bo"]
    assert BASE["owner"]["name"] == "Ada"


@pytest.mark.spec("C8")
@each_row(
    ("base", "ours", "theirs", "after", "how"),
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
def test_texts_are_merged_line_by_line(base: str, ours: str, theirs: str, after: str, how: str) -> None:
    came = merge_three_way(base, ours, theirs)
    assert applied(ours, came) == after
    assert [kind for kind in ("taken", "combined", "conflicts") if getattr(came, kind)] == ([how] if how else [])
    assert applied(after, merge_three_way(base, after, theirs)) == after


@pytest.mark.spec("C8")
def test_a_text_and_an_object_do_not_mix() -> None:
    assert merge_three_way("a", {"b": 1}, "c").conflicts == (MergeConflict("", "a", {"b": 1}, "c"),)
    assert merge_three_way({}, "mine", {"b": 1}).conflicts == (MergeConflict("", {}, "mine", {"b": 1}),)
    assert merge_three_way("a", {"b": 1}, "a") == ScratchpadMerge()
    assert merge_three_way({}, "mine", "theirs").text == "mine\ntheirs"
