"""Updates of hosts and models, including those that must not clear other fields."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from tables import each_row

from inmind.core.events.documents import ScratchpadMerged, ScratchpadWritten
from inmind.documents.document import MAX_DOCUMENT_BYTES
from inmind.documents.scratchpad.schema import compile_schema
from inmind.documents.scratchpad.state import ScratchpadUpdate, plan_object_update, plan_text_update
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
    currentGoal: str  # noqa: N815 -- field names that models see
    completedSteps: list[str]  # noqa: N815
    blockers: list[str] = []
    owner: Person | None = None


TASK = compile_schema(Task)


def model_update(values: object, delete: object = ()) -> ScratchpadUpdate:
    return plan_object_update(STATE, values, delete, may_have_filler=True)


@pytest.mark.spec("C2")
def test_a_model_that_sends_one_field_replaces_one_field() -> None:
    assert model_update({"currentGoal": "Ship"}).state == {**STATE, "currentGoal": "Ship"}


@pytest.mark.spec("C2")
def test_nulls_from_a_model_clear_nothing() -> None:
    update = model_update({"currentGoal": "Ship", "completedSteps": None, "blockers": None, "owner": None})
    assert update.state == {**STATE, "currentGoal": "Ship"}
    assert update.filler == ("completedSteps", "blockers", "owner")


@pytest.mark.spec("C2")
def test_empty_lists_from_a_model_clear_nothing() -> None:
    update = model_update(
        {"currentGoal": "Ship", "completedSteps": [], "blockers": [], "owner": {"name": "", "phone": ""}}
    )
    assert update.state == {**STATE, "currentGoal": "Ship"}
    assert update.filler == ("completedSteps", "blockers", "owner.name", "owner.phone")


@pytest.mark.spec("C2")
def test_a_single_empty_list_from_a_model_clears_the_field() -> None:
    assert model_update({"blockers": []}).state == {**STATE, "blockers": []}


@pytest.mark.spec("C2")
def test_a_single_null_is_set() -> None:
    phone = model_update({"owner": {"phone": None}})
    assert phone.state == {**STATE, "owner": {"name": "Ada", "phone": None}}


@pytest.mark.spec("C2")
def test_a_model_can_send_null_for_delete() -> None:
    assert model_update({"currentGoal": "Ship"}, None).state == {**STATE, "currentGoal": "Ship"}
    assert model_update({"currentGoal": "Ship"}, []).missing == ()


@pytest.mark.spec("C2")
def test_a_repeated_call_has_the_same_meaning() -> None:
    """The path is already deleted in the second call, and the empty list is still filler."""
    first = model_update({"blockers": []}, ["owner.phone"])
    assert first.state == {**STATE, "owner": {"name": "Ada"}}
    again = plan_object_update(first.state, {"blockers": []}, ["owner.phone"], may_have_filler=True)
    assert (again.changed, again.filler, again.missing) == (False, ("blockers",), ("owner.phone",))


@pytest.mark.spec("C2", "C9")
def test_empty_values_from_a_host_are_set() -> None:
    update = plan_object_update(STATE, {"currentGoal": "Ship", "blockers": [], "owner": None})
    assert update.state == {**STATE, "currentGoal": "Ship", "blockers": [], "owner": None}
    assert update.filler == ()


@pytest.mark.spec("C9")
def test_only_the_set_fields_of_a_model_instance_are_merged() -> None:
    update = plan_object_update(STATE, Person(name="Bo"))
    assert update.values == {"name": "Bo"}


@pytest.mark.spec("C2", "J3")
@each_row("values", ["Deploy v3", ["Deploy v3"], 7, None, True])
def test_an_object_scratchpad_accepts_only_an_object(values: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan_object_update(STATE, values)
    assert caught.value.field == "values"
    assert "an object" in caught.value.expected


@pytest.mark.spec("C2", "J3")
@each_row("text", [{"currentGoal": "Ship"}, ["a"], None, b"bytes", "a\x00b", "\ud800"])
def test_a_text_scratchpad_accepts_only_a_text(text: object) -> None:
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
    appended = plan_text_update("old", "new", append=True)
    assert appended.state == "old\nnew"
    assert appended.event("notes") == ScratchpadWritten("notes", "new", append=True)
    assert not plan_text_update("old", "old").changed
    assert not plan_text_update("old", "", append=True).changed
    assert plan_text_update(None, "first", append=True).state == "first"


@pytest.mark.spec("C2")
@pytest.mark.parametrize("blank", ["", " ", "\n\t\n"])
def test_a_blank_text_from_a_model_clears_nothing_and_one_from_a_host_is_set(blank: str) -> None:
    replaced_text = plan_text_update("my notes", blank, may_have_filler=True)
    assert (replaced_text.state, replaced_text.changed, replaced_text.filler) == ("my notes", False, ("text",))
    appended_text = plan_text_update("my notes", blank, append=True, may_have_filler=True)
    assert (appended_text.state, appended_text.changed, appended_text.filler) == ("my notes", False, ())
    assert plan_text_update("", blank, may_have_filler=True).filler == ()
    assert plan_text_update("my notes", "-", may_have_filler=True).state == "-"
    assert plan_text_update("my notes", blank).state == blank


@pytest.mark.spec("C2")
def test_a_text_can_grow_up_to_the_limit() -> None:
    assert plan_text_update("x" * 10, "y" * (MAX_DOCUMENT_BYTES - 11), append=True).changed
    with pytest.raises(InvalidInput):
        plan_text_update("x" * 11, "y" * (MAX_DOCUMENT_BYTES - 11), append=True)


@pytest.mark.spec("C2")
def test_paths_are_deleted_first_so_that_an_object_can_be_replaced() -> None:
    update = plan_object_update(STATE, {"owner": {"name": "Bo"}}, ["owner"])
    assert update.state == {**STATE, "owner": {"name": "Bo"}}
    assert update.event("plan") == ScratchpadMerged("plan", {"owner": {"name": "Bo"}}, (("owner",),))


@pytest.mark.spec("C2")
def test_deleting_a_missing_path_is_reported_and_harmless() -> None:
    paths = ["owner.phone", ["owner", "phone"], "/owner/fax", "unknown.field", "owner.name.first"]
    update = plan_object_update(STATE, {}, paths)
    assert update.state == {**STATE, "owner": {"name": "Ada"}}
    assert update.delete == (("owner", "phone"),)
    assert update.missing == ("owner.fax", "unknown.field", "owner.name.first")
    again = plan_object_update(update.state, {}, paths)
    assert (again.state, again.changed, again.delete) == (update.state, False, ())


@pytest.mark.spec("C2", "J3")
@pytest.mark.parametrize(
    ("delete", "field"), [("owner", "delete"), ({"owner": 1}, "delete"), (["owner", 7], "delete[1]")]
)
def test_delete_must_be_a_list_of_paths(delete: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan_object_update(STATE, {}, delete)
    assert caught.value.field == field


@pytest.mark.spec("C2")
def test_unsafe_keys_are_dropped_and_reported() -> None:
    update = plan_object_update(STATE, {"owner": {"__proto__": 1, "name": "Bo"}, "steps": [{"constructor": 1}]})
    assert update.state == {**STATE, "owner": {"name": "Bo", "phone": "555"}, "steps": [{}]}
    assert update.dropped == ("owner.__proto__", "steps[0].constructor")


@pytest.mark.spec("C2")
def test_an_update_over_the_size_limit_is_refused() -> None:
    state: Any = {"log": "x" * (MAX_DOCUMENT_BYTES - 1_000)}
    with pytest.raises(InvalidInput) as caught:
        plan_object_update(state, {"note": {"text": "y" * 2_000, "by": "Ada"}})
    assert caught.value.field == "values.note.text"
    assert plan_object_update(state, {"log": "shorter", "note": "y" * 2_000}).changed


@pytest.mark.spec("C2")
def test_an_update_reports_whether_it_changes_the_state() -> None:
    assert not plan_object_update(STATE, {"currentGoal": "Deploy v2"}).changed
    assert not plan_object_update(STATE, {}).changed
    assert plan_object_update({"done": 1}, {"done": True}).changed
    assert plan_object_update({}, {"note": None}).changed


@pytest.mark.spec("C2")
def test_an_object_replaces_a_missing_state_or_a_text() -> None:
    for nothing in (None, "an earlier text"):
        assert plan_object_update(nothing, {"a": 1}, ["b"]).state == {"a": 1}
