"""Updates of hosts and models, including those that must not clear other fields."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel
from tables import each_row

from inmind.core.events.documents import ScratchpadMerged, ScratchpadWritten
from inmind.documents.document import MAX_DOCUMENT_BYTES
from inmind.documents.scratchpad.schema import compile_schema
from inmind.documents.scratchpad.update import ScratchpadUpdate, plan_object_update, plan_text_update
from inmind.errors import InvalidInput

STATE: dict[str, Any] = {
    "currentGoal": "Deploy v2",
    "completedSteps": ["write tests"],
    "blockers": ["no staging"],
    "owner": {"name": "Ada", "phone": "555"},
}


class Person(BaseModel):
    name: str
    phone: str | None = None


class Task(BaseModel):
    currentGoal: str  # noqa: N815 -- the names that models are shown
    completedSteps: list[str]  # noqa: N815
    blockers: list[str] = []
    owner: Person | None = None


TASK = compile_schema(Task)


def by_model(values: object, delete: object = ()) -> ScratchpadUpdate:
    return plan_object_update(STATE, values, delete, may_have_filler=True)


@pytest.mark.spec("C2")
def test_a_model_that_sends_one_field_replaces_one_field() -> None:
    assert by_model({"currentGoal": "Ship"}).state == {**STATE, "currentGoal": "Ship"}


@pytest.mark.spec("C2")
def test_a_model_that_fills_in_nulls_wipes_nothing() -> None:
    update = by_model({"currentGoal": "Ship", "completedSteps": None, "blockers": None, "owner": None})
    assert update.state == {**STATE, "currentGoal": "Ship"}
    assert update.filler == ("completedSteps", "blockers", "owner")


@pytest.mark.spec("C2")
def test_a_model_that_fills_in_empty_lists_wipes_nothing() -> None:
    update = by_model({"currentGoal": "Ship", "completedSteps": [], "blockers": [], "owner": {"name": "", "phone": ""}})
    assert update.state == {**STATE, "currentGoal": "Ship"}
    assert update.filler == ("completedSteps", "blockers", "owner.name", "owner.phone")


@pytest.mark.spec("C2")
def test_a_model_that_says_nothing_but_an_empty_list_clears_it() -> None:
    assert by_model({"blockers": []}).state == {**STATE, "blockers": []}


@pytest.mark.spec("C2")
def test_a_single_null_is_set() -> None:
    phone = by_model({"owner": {"phone": None}})
    assert phone.state == {**STATE, "owner": {"name": "Ada", "phone": None}}


@pytest.mark.spec("C2")
def test_a_model_may_send_null_for_delete() -> None:
    assert by_model({"currentGoal": "Ship"}, None).state == {**STATE, "currentGoal": "Ship"}
    assert by_model({"currentGoal": "Ship"}, []).missing == ()


@pytest.mark.spec("C2")
def test_a_call_that_is_repeated_means_what_it_meant_the_first_time() -> None:
    """The second time there is nothing left to delete, and the list is still no more than padding."""
    first = by_model({"blockers": []}, ["owner.phone"])
    assert first.state == {**STATE, "owner": {"name": "Ada"}}
    again = plan_object_update(first.state, {"blockers": []}, ["owner.phone"], may_have_filler=True)
    assert (again.changed, again.filler, again.missing) == (False, ("blockers",), ("owner.phone",))


@pytest.mark.spec("C2", "C9")
def test_a_host_is_taken_literally() -> None:
    update = plan_object_update(STATE, {"currentGoal": "Ship", "blockers": [], "owner": None})
    assert update.state == {**STATE, "currentGoal": "Ship", "blockers": [], "owner": None}
    assert update.filler == ()


@pytest.mark.spec("C9")
def test_a_model_instance_says_what_it_has_set() -> None:
    update = plan_object_update(STATE, Person(name="Bo"))
    assert update.values == {"name": "Bo"}


@pytest.mark.spec("C2", "J3")
@each_row("values", ["Deploy v3", ["Deploy v3"], 7, None, True])
def test_an_object_pad_takes_an_object(values: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan_object_update(STATE, values)
    assert caught.value.field == "values"
    assert "an object" in caught.value.expected


@pytest.mark.spec("C2", "J3")
@each_row("text", [{"currentGoal": "Ship"}, ["a"], None, b"bytes", "a\x00b", "\ud800"])
def test_a_text_pad_is_never_overwritten_by_anything_but_a_text(text: object) -> None:
    for append in (True, False):
        with pytest.raises(InvalidInput) as caught:
            plan_text_update("my notes", text, append=append)
        assert caught.value.field == "text"
        assert "text" in caught.value.expected


@pytest.mark.spec("C2")
def test_a_text_is_replaced_or_appended_to() -> None:
    replaced = plan_text_update("old", "new")
    assert (replaced.state, replaced.changed) == ("new", True)
    assert replaced.event("notes") == ScratchpadWritten("notes", "new")
    grown = plan_text_update("old", "new", append=True)
    assert grown.state == "old\nnew"
    assert grown.event("notes") == ScratchpadWritten("notes", "new", append=True)
    assert not plan_text_update("old", "old").changed
    assert not plan_text_update("old", "", append=True).changed
    assert plan_text_update(None, "first", append=True).state == "first"


@pytest.mark.spec("C2")
@pytest.mark.parametrize("blank", ["", " ", "\n\t\n"])
def test_a_model_that_writes_a_blank_text_wipes_nothing_and_a_host_is_taken_literally(blank: str) -> None:
    padded = plan_text_update("my notes", blank, may_have_filler=True)
    assert (padded.state, padded.changed, padded.filler) == ("my notes", False, ("text",))
    added = plan_text_update("my notes", blank, append=True, may_have_filler=True)
    assert (added.state, added.changed, added.filler) == ("my notes", False, ())
    assert plan_text_update("", blank, may_have_filler=True).filler == ()
    assert plan_text_update("my notes", "-", may_have_filler=True).state == "-"
    assert plan_text_update("my notes", blank).state == blank


@pytest.mark.spec("C2")
def test_a_text_grows_up_to_the_limit_and_not_beyond() -> None:
    assert plan_text_update("x" * 10, "y" * (MAX_DOCUMENT_BYTES - 11), append=True).changed
    with pytest.raises(InvalidInput):
        plan_text_update("x" * 11, "y" * (MAX_DOCUMENT_BYTES - 11), append=True)


@pytest.mark.spec("C2")
def test_deleting_comes_first_so_an_object_can_be_replaced_whole() -> None:
    update = plan_object_update(STATE, {"owner": {"name": "Bo"}}, ["owner"])
    assert update.state == {**STATE, "owner": {"name": "Bo"}}
    assert update.event("plan") == ScratchpadMerged("plan", {"owner": {"name": "Bo"}}, (("owner",),))


@pytest.mark.spec("C2")
def test_deleting_a_missing_path_is_reported_and_harmless() -> None:
    paths = ["owner.phone", ["owner", "phone"], "/owner/fax", "nobody.knows", "owner.name.first"]
    update = plan_object_update(STATE, {}, paths)
    assert update.state == {**STATE, "owner": {"name": "Ada"}}
    assert update.delete == (("owner", "phone"),)
    assert update.missing == ("owner.fax", "nobody.knows", "owner.name.first")
    again = plan_object_update(update.state, {}, paths)
    assert (again.state, again.changed, again.delete) == (update.state, False, ())


@pytest.mark.spec("C2", "J3")
@pytest.mark.parametrize(
    ("delete", "field"), [("owner", "delete"), ({"owner": 1}, "delete"), (["owner", 7], "delete[1]")]
)
def test_what_to_delete_is_a_list_of_paths(delete: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan_object_update(STATE, {}, delete)
    assert caught.value.field == field


@pytest.mark.spec("C2")
def test_unsafe_keys_are_dropped_and_reported() -> None:
    update = plan_object_update(STATE, {"owner": {"__proto__": 1, "name": "Bo"}, "steps": [{"constructor": 1}]})
    assert update.state == {**STATE, "owner": {"name": "Bo", "phone": "555"}, "steps": [{}]}
    assert update.dropped == ("owner.__proto__", "steps[0].constructor")


@pytest.mark.spec("C2")
def test_many_small_updates_do_not_make_a_state_too_large() -> None:
    state: Any = {"log": "x" * (MAX_DOCUMENT_BYTES - 1_000)}
    with pytest.raises(InvalidInput) as caught:
        plan_object_update(state, {"note": {"text": "y" * 2_000, "by": "Ada"}})
    assert caught.value.field == "values.note.text"
    assert plan_object_update(state, {"log": "shorter", "note": "y" * 2_000}).changed


@pytest.mark.spec("C2")
def test_what_is_known_of_the_size_saves_measuring_and_decides_nothing() -> None:
    small = {"a": "x" * 100}
    for size in (110, MAX_DOCUMENT_BYTES - 5, MAX_DOCUMENT_BYTES):
        update = plan_object_update(small, {"b": 1}, size=size)
        assert update.state == {**small, "b": 1}
        assert len(json.dumps(update.state, separators=(",", ":"))) <= update.size <= MAX_DOCUMENT_BYTES
    with pytest.raises(InvalidInput):
        plan_object_update({"log": "x" * (MAX_DOCUMENT_BYTES - 100)}, {"note": "y" * 200}, size=MAX_DOCUMENT_BYTES - 90)


@pytest.mark.spec("C2")
def test_an_update_knows_whether_it_changes_anything() -> None:
    assert not plan_object_update(STATE, {"currentGoal": "Deploy v2"}).changed
    assert not plan_object_update(STATE, {}).changed
    assert plan_object_update({"done": 1}, {"done": True}).changed
    assert plan_object_update({}, {"note": None}).changed


@pytest.mark.spec("C2")
def test_an_object_begins_where_there_was_none() -> None:
    for nothing in (None, "a text of earlier"):
        assert plan_object_update(nothing, {"a": 1}, ["b"]).state == {"a": 1}
