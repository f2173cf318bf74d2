"""Validation gives the same results for a pydantic model and for JSON Schema."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints, field_validator, model_validator
from tables import each_row

from inmind.documents.scratchpad.schema import ScratchpadSchema, compile_schema, find_unknown_fields
from inmind.errors import InvalidInput, SchemaViolation


class Step(BaseModel):
    title: str
    minutes: int = 0


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    age: int
    phone: str | None = None


class Node(BaseModel):
    label: str
    left: Node | None = None
    kids: list[Node] = []


class Task(BaseModel):
    currentGoal: str = Field(description="The goal of the task.")  # noqa: N815 -- field names that models see
    completedSteps: list[Step]  # noqa: N815
    owner: Person | None = None
    people: dict[str, Person] = {}
    contact: Person | str = ""
    tree: Node | None = None


TASK_SCHEMAS = [compile_schema(Task), compile_schema(Task.model_json_schema())]
COMPLETE: dict[str, Any] = {"currentGoal": "Ship", "completedSteps": [{"title": "test"}]}

both_schemas = pytest.mark.parametrize("shape", TASK_SCHEMAS, ids=["pydantic", "json_schema"])


def violation(
    shape: ScratchpadSchema, state: dict[str, Any], before: object = None, delete: Sequence[tuple[str, ...]] = ()
) -> SchemaViolation:
    with pytest.raises(SchemaViolation) as caught:
        shape.check(state, {} if before is None else before, delete)
    return caught.value


@pytest.mark.spec("C6")
@both_schemas
@pytest.mark.parametrize(
    "state",
    [
        {},
        {"currentGoal": "Ship"},
        {"completedSteps": []},
        {"owner": {}},
        {"owner": {"name": "Ada"}},
        {"owner": None},
        {"people": {"ada": {"age": 36}}},
        {"contact": "ada@example.com"},
        {"contact": {"name": "Ada"}},
        {"tree": {"left": {"left": {}}}},
        COMPLETE,
    ],
)
def test_an_unset_field_is_not_missing(shape: ScratchpadSchema, state: dict[str, Any]) -> None:
    shape.check(state, {})
    assert shape.mismatch_reason(state) == ""


@pytest.mark.spec("C6")
@both_schemas
@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"currentGoal": 7}, "currentGoal"),
        ({"currentGoal": None}, "currentGoal"),
        ({"completedSteps": [{"title": "a"}, {"minutes": 5}]}, "completedSteps[1].title"),
        ({"completedSteps": [{"title": "a", "minutes": "long"}]}, "completedSteps[0].minutes"),
        ({"completedSteps": {"title": "a"}}, "completedSteps"),
        ({"owner": {"nmae": "Ada"}}, "owner.nmae"),
        ({"people": {"a.b": {"age": "old"}}}, 'people["a.b"].age'),
        ({"tree": {"left": {"left": {"label": 7}}}}, "tree.left.left.label"),
        ({"tree": {"kids": [{"left": None}]}}, "tree.kids[0].label"),
    ],
)
def test_a_value_that_contradicts_the_schema_is_refused_with_its_path(
    shape: ScratchpadSchema, state: dict[str, Any], path: str
) -> None:
    error = violation(shape, state)
    assert (error.code, error.path) == ("SCHEMA_VIOLATION", path)
    assert error.reason
    assert shape.mismatch_reason(state) == f"{path}: {error.reason}"


ADA = {"name": "Ada", "age": 36}


@pytest.mark.spec("C6")
@both_schemas
@pytest.mark.parametrize(
    ("before", "state", "path"),
    [
        (COMPLETE, {"currentGoal": "Ship"}, "completedSteps"),
        ({"currentGoal": "Ship"}, {"completedSteps": []}, "currentGoal"),
        ({**COMPLETE, "owner": ADA}, {**COMPLETE, "owner": {"name": "Ada"}}, "owner.age"),
        ({"owner": {"name": "Ada"}}, {"owner": {"age": 36}}, "owner.name"),
        ({"people": {"007": ADA}}, {"people": {"007": {"name": "Ada"}}}, "people.007.age"),
        ({"tree": {"left": {"label": "l"}}}, {"tree": {"left": {}}}, "tree.left.label"),
    ],
)
def test_a_required_field_that_is_set_cannot_be_removed(
    shape: ScratchpadSchema, before: dict[str, Any], state: dict[str, Any], path: str
) -> None:
    refused = violation(shape, state, before)
    assert (refused.path, refused.reason) == (path, "required, cannot be removed")
    shape.check(before, before)


@pytest.mark.spec("C6")
@both_schemas
@pytest.mark.parametrize(
    "before", [COMPLETE, {**COMPLETE, "owner": None, "contact": "ada@example.com"}, "a text", None]
)
def test_a_new_object_is_filled_in_step_by_step(shape: ScratchpadSchema, before: object) -> None:
    partial: dict[str, Any] = {**COMPLETE, "owner": {"name": "Ada"}, "people": {"bo": {}}, "contact": {"age": 36}}
    shape.check(partial, before)
    shape.check({**partial, "people": {"bo": {"name": "Bo"}}}, partial)
    shape.check({**partial, "owner": ADA}, partial)


class Email(BaseModel):
    address: str
    owner: Person | None = None


class Phone(BaseModel):
    number: str
    country: str


class ByMail(Email):
    kind: Literal["mail"]


class ByPhone(Phone):
    kind: Literal["phone"]


class ContactCard(BaseModel):
    contact: Email | Phone | None = None
    channel: ByMail | ByPhone | None = Field(default=None, discriminator="kind")
    several: dict[str, int] = Field(default={}, min_length=2)


CONTACT_SCHEMAS = [compile_schema(ContactCard), compile_schema(ContactCard.model_json_schema())]
both_contact_schemas = pytest.mark.parametrize("shape", CONTACT_SCHEMAS, ids=["pydantic", "json_schema"])


@pytest.mark.spec("C6")
@both_contact_schemas
@pytest.mark.parametrize(
    ("before", "state"),
    [
        ({}, {"contact": {}}),
        ({"contact": None}, {"contact": {}}),
        ({"contact": {}}, {"contact": {"country": "UK"}}),
        ({"contact": {"country": "UK"}}, {"contact": {"country": "UK", "address": "a@example.com"}}),
        ({"contact": {"number": "5", "country": "UK"}}, {"contact": {"address": "a@example.com"}}),
        ({"contact": {"address": "a@example.com"}}, {"contact": {"address": "a@example.com", "owner": {"age": 36}}}),
        ({}, {"channel": {"kind": "phone"}}),
        ({"channel": {"kind": "phone"}}, {"channel": {"kind": "phone", "number": "5"}}),
        ({"channel": {"kind": "mail", "address": "a"}}, {"channel": {"kind": "phone", "address": "a"}}),
        ({}, {"several": {"a": 1}}),
        ({"several": {"a": 1}}, {"several": {"b": 2}}),
    ],
)
def test_a_union_accepts_an_alternative_with_only_unset_fields(
    shape: ScratchpadSchema, before: dict[str, Any], state: dict[str, Any]
) -> None:
    shape.check(state, before)
    assert shape.mismatch_reason(state) == ""


@pytest.mark.spec("C6")
@both_contact_schemas
@pytest.mark.parametrize(
    ("before", "state", "path"),
    [
        ({"contact": {"address": "a"}}, {"contact": {}}, "contact.address"),
        ({"contact": {"address": "a"}}, {"contact": {"number": "5"}}, "contact.address"),
        ({"contact": {"number": "5"}}, {"contact": {}}, "contact.number"),
        ({"contact": {"address": "a", "owner": ADA}}, {"contact": {"address": "a", "owner": {}}}, "contact.owner.name"),
        ({"channel": {"kind": "mail", "address": "a"}}, {"channel": {"kind": "mail"}}, "channel.address"),
        ({"channel": {"kind": "mail", "address": "a"}}, {"channel": {"address": "a"}}, "channel"),
        ({"several": {"a": 1, "b": 2}}, {"several": {"a": 1}}, "several"),
        ({}, {"contact": {"address": 7, "number": 7}}, "contact"),
        ({}, {"contact": "a"}, "contact"),
        ({}, {"channel": {"kind": "phone", "number": 5}}, "channel"),
        ({}, {"channel": {"number": "5"}}, "channel"),
    ],
)
def test_a_union_refuses_removing_a_required_field(
    shape: ScratchpadSchema, before: dict[str, Any], state: dict[str, Any], path: str
) -> None:
    assert violation(shape, state, before).path.startswith(path)


@pytest.mark.spec("C6")
@both_contact_schemas
@pytest.mark.parametrize(
    ("before", "delete", "state"),
    [
        ({"contact": {"address": "a"}}, [("contact",)], {"contact": {"number": "5"}}),
        ({"contact": {"address": "a"}}, [("channel",), ("contact",)], {"contact": {}}),
        ({"channel": {"kind": "mail", "address": "a"}}, [("channel",)], {"channel": {"kind": "mail"}}),
        (
            {"contact": {"address": "a", "owner": ADA}},
            [("contact", "owner")],
            {"contact": {"address": "a", "owner": {"age": 36}}},
        ),
        ({"several": {"a": 1, "b": 2}}, [("several",)], {"several": {"c": 3}}),
    ],
)
def test_an_object_removed_completely_starts_empty(
    shape: ScratchpadSchema, before: dict[str, Any], delete: list[tuple[str, ...]], state: dict[str, Any]
) -> None:
    assert violation(shape, state, before)
    shape.check(state, before, delete)


@pytest.mark.spec("C6")
@both_contact_schemas
@pytest.mark.parametrize(
    ("before", "delete", "state", "path"),
    [
        ({"contact": {"address": "a"}}, [("contact", "address")], {"contact": {}}, "contact.address"),
        ({"contact": {"address": "a"}}, [("channel",)], {"contact": {}}, "contact.address"),
        (
            {"contact": {"address": "a", "owner": ADA}},
            [("contact", "owner")],
            {"contact": {"owner": {}}},
            "contact.address",
        ),
        ({"several": {"a": 1, "b": 2}}, [("several", "a")], {"several": {"b": 2}}, "several"),
    ],
)
def test_an_object_removed_in_part_does_not_start_empty(
    shape: ScratchpadSchema, before: dict[str, Any], delete: list[tuple[str, ...]], state: dict[str, Any], path: str
) -> None:
    assert violation(shape, state, before, delete).path == path


@pytest.mark.spec("C6")
@both_contact_schemas
def test_removing_a_field_below_the_minimum_reports_the_minimum(shape: ScratchpadSchema) -> None:
    refused = violation(shape, {"several": {"a": 1}}, {"several": {"a": 1, "b": 2}})
    assert (refused.path, refused.reason) == ("several", "needs at least 2 fields")


@pytest.mark.spec("C6")
def test_a_field_required_by_two_alternatives_is_one_problem() -> None:
    class Letter(Email):
        street: str

    class Written(BaseModel):
        to: Email | Letter

    for schema in (Written, Written.model_json_schema()):
        refused = violation(compile_schema(schema), {"to": {}}, {"to": {"address": "a"}})
        assert (refused.path, refused.reason) == ("to.address", "required, cannot be removed")


@pytest.mark.spec("C6")
def test_missing_fields_are_reported_with_type_errors_until_all_are_set() -> None:
    """Until `y` is set, the type of `x` is unknown."""
    schema: dict[str, Any] = {
        "required": ["a"],
        "properties": {"a": {}},
        "anyOf": [{"properties": {"x": {}}, "required": ["y"]}, {}],
    }
    shape = compile_schema({"type": "object", **schema, "unevaluatedProperties": False})
    shape.check({"a": 1, "x": 1}, {"a": 1})
    assert violation(shape, {"x": 1}, {"a": 1, "x": 1}).path == "a"


@pytest.mark.spec("C6")
def test_a_refused_key_differs_from_a_refused_value() -> None:
    class Counts(BaseModel):
        by_colour: dict[Literal["red", "green"], int] = {}

    for schema in (Counts, Counts.model_json_schema()):
        assert violation(compile_schema(schema), {"by_colour": {"blue": 1}}).path == 'by_colour.blue["[key]"]'


@pytest.mark.spec("C6")
def test_a_key_that_json_schema_refuses_is_named_at_any_depth() -> None:
    short: dict[str, Any] = {"propertyNames": {"maxLength": 2}}
    shape = compile_schema({"type": "object", **short, "properties": {"a": {"anyOf": [short, {"type": "null"}]}}})
    refused = violation(shape, {"long": 1})
    assert (refused.path, refused.reason) == ('long["[key]"]', "it is longer than 2 characters")
    assert violation(shape, {"a": {"007": 1}}).path == 'a.007["[key]"]'


@both_schemas
def test_all_problems_are_counted(shape: ScratchpadSchema) -> None:
    state = {"currentGoal": 7, "completedSteps": [{"title": 1}, {"title": 2}]}
    assert violation(shape, state).reason.endswith("(and 2 more)")


@pytest.mark.spec("C6")
def test_a_reason_has_the_expected_type_and_not_the_value() -> None:
    reasons = [violation(shape, {"currentGoal": ["x" * 50]}).reason for shape in TASK_SCHEMAS]
    assert reasons == ["Input should be a valid string", 'it is not of type "string"']


@pytest.mark.spec("C3")
@both_schemas
def test_a_text_is_not_an_object(shape: ScratchpadSchema) -> None:
    assert "text" in shape.mismatch_reason("my notes")


@pytest.mark.spec("C6")
@both_schemas
def test_a_reason_is_short_for_a_large_value(shape: ScratchpadSchema) -> None:
    error = violation(shape, {"completedSteps": [{"title": "a", "minutes": "x" * 100_000}]})
    assert len(str(error)) < 500


# -- validators that misbehave -----------------------------------------------------------------------------

KEPT: list[Any] = []


class MutatingValidators(BaseModel):
    items: list[int] = []

    @field_validator("items", mode="before")
    @classmethod
    def keep(cls, value: list[int]) -> list[int]:
        KEPT.append(value)
        value.append(99)
        return value

    @model_validator(mode="before")
    @classmethod
    def empty(cls, value: dict[str, Any]) -> dict[str, Any]:
        KEPT.append(value)
        return value


@pytest.mark.spec("C6")
def test_a_validator_cannot_change_the_state() -> None:
    state = {"items": [1]}
    compile_schema(MutatingValidators).check(state, {})
    for kept in KEPT:
        kept.clear()
    assert state == {"items": [1]}


def raising(error: BaseException) -> ScratchpadSchema:
    def fail(_: int) -> int:
        raise error

    class Strict(BaseModel):
        n: int = 0

        @field_validator("n")
        @classmethod
        def check(cls, value: int) -> int:
            return fail(value)

    return compile_schema(Strict)


@pytest.mark.spec("C6")
@pytest.mark.parametrize("error", [RuntimeError("out of order"), RecursionError("too deep"), KeyError("n"), OSError(5)])
def test_any_exception_of_a_validator_is_a_violation(error: Exception) -> None:
    refused = violation(raising(error), {"n": 1})
    assert type(error).__name__ in refused.reason


def test_the_message_of_a_validator_is_reported() -> None:
    error = violation(raising(ValueError("must be even")), {"n": 1})
    assert (error.path, error.reason) == ("n", "Value error, must be even")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit()])
def test_an_interrupt_is_not_caught(error: BaseException) -> None:
    with pytest.raises(type(error)):
        raising(error).check({"n": 1}, {})


class Coercing(BaseModel):
    name: str = Field(alias="fullName")
    n: int = 5


def test_fields_have_their_aliases_and_defaults_are_not_added() -> None:
    shape = compile_schema(Coercing)
    assert list(shape.parameters["properties"]) == ["fullName", "n", "delete"]
    state = {"fullName": "Ada", "n": "7"}
    shape.check(state, {})
    assert state == {"fullName": "Ada", "n": "7"}


# -- invalid schemas ---------------------------------------------------------------------------------------


def nested_schema(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


class NotJson(BaseModel):
    handler: Callable[[], int]


@pytest.mark.spec("J3")
@each_row(
    ("schema", "expected"),
    [
        ({"type": "object", "properties": {"a": {"type": "strin"}}}, "properties.a.type"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, "properties.a.pattern"),
        ({"type": "object", "properties": 7}, "properties"),
        ({"type": "object", "required": "a"}, "required"),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/Missing"}}}, "$defs/Missing"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/a.json"}}}, "example.com"),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, "external references"),
        ({"type": "object", "$schema": "https://example.com/draft-99"}, "draft-99"),
        ({"type": "object", "properties": {"a": {"const": float("nan")}}}, "a finite number"),
        ({"type": "object", "properties": {"a": {"enum": [{1, 2}]}}}, "JSON"),
        ({"type": "object", "properties": {"\ud800": {}}}, "without lone surrogates"),
        ({"type": "object", "properties": {"delete": {}, "delete_paths": {}}}, "delete or delete_paths"),
        ({"type": "string"}, "type: object"),
        ({"type": ["object", "null"]}, "type: object"),
        ({}, "type: object"),
        ({"$ref": "#"}, "type: object"),
        (RootModel[list[int]], "type: object"),
        (NotJson, "JSON Schema"),
        (nested_schema(5_000), "at most 200 levels of nesting"),
        (Step(title="a"), "a pydantic model or JSON Schema"),
        (int, "a pydantic model or JSON Schema"),
        ("object", "a pydantic model or JSON Schema"),
        ([], "a pydantic model or JSON Schema"),
        (True, "a pydantic model or JSON Schema"),
    ],
)
def test_an_invalid_schema_is_refused_before_use(schema: object, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        compile_schema(schema)
    assert caught.value.field.startswith("schema")
    assert expected in caught.value.expected


class RecordingHandler(BaseHTTPRequestHandler):
    requests: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.requests.append(self.path)
        self.send_error(404)


@pytest.mark.spec("J3")
def test_an_external_reference_is_not_fetched() -> None:
    with HTTPServer(("127.0.0.1", 0), RecordingHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        reference = f"http://127.0.0.1:{server.server_port}/step.json"
        with pytest.raises(InvalidInput):
            compile_schema({"type": "object", "properties": {"a": {"$ref": reference}}})
        server.shutdown()
    assert RecordingHandler.requests == []


@each_row(
    "draft",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ],
)
def test_older_drafts_keep_their_meaning(draft: str) -> None:
    step = {"type": "object", "required": ["title"]}
    schema = {
        "$schema": draft,
        "type": "object",
        "required": ["steps"],
        "properties": {
            "steps": {"type": "array", "items": {"$ref": "#/definitions/step"}},
            "next": {"$ref": "#/definitions/step"},
        },
        "definitions": {"step": step},
    }
    shape = compile_schema(schema)
    shape.check({"next": {}}, {})
    assert violation(shape, {"steps": [{}]}).path == "steps[0].title"
    assert "$schema" not in shape.parameters


def test_a_schema_is_copied() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    shape = compile_schema(schema)
    schema["properties"]["n"]["type"] = "string"
    shape.check({"n": 1}, {})


def test_without_the_library_the_error_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(InvalidInput, match=r'pip install "inmind\[schema\]"'):
        compile_schema({"type": "object"})
    compile_schema(Task).check(COMPLETE, {})


def test_pydantic_and_jsonschema_are_not_imported_without_a_schema() -> None:
    code = (
        "import sys, inmind.documents.scratchpad.state\n"
        "assert not {'pydantic', 'pydantic_core', 'jsonschema_rs'} & set(sys.modules), set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- tool parameters ---------------------------------------------------------------------------------------


@pytest.mark.spec("C5")
def test_the_tool_parameters_have_every_field_and_none_is_required() -> None:
    class Small(BaseModel):
        """A small task."""

        goal: str = Field(description="The goal of the task.")
        steps: list[Step] = []
        state: Literal["open", "done"] = "open"

    assert compile_schema(Small).parameters == {
        "description": "A small task.",
        "type": "object",
        "properties": {
            "goal": {"type": "string", "description": "The goal of the task."},
            "steps": {"type": "array", "items": {"$ref": "#/$defs/Step"}},
            "state": {"type": "string", "enum": ["open", "done"]},
            "delete": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Paths of fields to remove, like owner.name.",
            },
        },
        "$defs": {
            "Step": {
                "type": "object",
                "required": ["title"],
                "properties": {"title": {"type": "string"}, "minutes": {"type": "integer"}},
            }
        },
    }


@pytest.mark.spec("C5")
def test_a_field_called_delete_stays_a_field() -> None:
    shape = compile_schema({"type": "object", "properties": {"delete": {"type": "boolean"}}})
    assert shape.delete_key == "delete_paths"
    assert shape.parameters["properties"]["delete"] == {"type": "boolean"}


@pytest.mark.spec("C5")
def test_the_tool_parameters_are_a_valid_schema_for_partial_updates() -> None:
    parameters = compile_schema(Task).parameters
    offered = compile_schema({**parameters, "properties": {**parameters["properties"], "delete": {"type": "array"}}})
    offered.check({"owner": {"age": 36}, "delete": ["owner.name"]}, {})


class Num(BaseModel):
    value: int


class Add(BaseModel):
    left: Add | Mul | Num
    right: Add | Mul | Num


class Mul(BaseModel):
    left: Add | Mul | Num
    right: Add | Mul | Num


class Sum(BaseModel):
    e: Add | Mul | Num


class Inner(BaseModel):
    a: int = 0


class Outer(BaseModel):
    pair: tuple[Inner, int] | None = None
    keyed: dict[Annotated[str, StringConstraints(pattern="^k")], Inner] = {}


@pytest.mark.spec("C6")
def test_finding_unknown_fields_takes_linear_time_in_nested_unions() -> None:
    value: dict[str, Any] = {"value": 1, "unknown": 1}
    for _ in range(25):
        value = {"left": value, "right": {"value": 1}}
    fields = compile_schema(Sum).fields
    assert fields is not None
    assert [len(field.path) for field in find_unknown_fields({"e": value}, fields)] == [27]


@pytest.mark.spec("C6")
@pytest.mark.parametrize("wrong", [{"pair": [{"zz": 1}, 2]}, {"keyed": {"k1": {"zz": 1}}}])
def test_unknown_fields_are_found_in_tuples_and_under_pattern_keys(wrong: dict[str, Any]) -> None:
    shape = compile_schema(Outer)
    shape.check_known_fields({"pair": [{"a": 1}, 2], "keyed": {"k1": {"a": 1}}})
    with pytest.raises(SchemaViolation, match="unknown field"):
        shape.check_known_fields(wrong)
