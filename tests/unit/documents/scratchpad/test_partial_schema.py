"""The partial schema: which requirements are dropped and which stay."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.documents.scratchpad.partial_schema import partial_schema
from inmind.errors import InvalidInput

STEP = {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}
ANY_STEP = {"type": "object", "properties": {"title": {"type": "string"}}}
REF = {"$ref": "#/$defs/Step"}


def an_object(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", **keywords}


@pytest.mark.spec("C6")
@each_row(
    ("where", "schema"),
    [
        ("a field", {"properties": {"a": STEP}}),
        ("any other field", {"additionalProperties": STEP}),
        ("fields of a pattern", {"patternProperties": {"^x": STEP}}),
        ("each of several", {"allOf": [{"properties": {"a": STEP}}, STEP]}),
        ("any of several", {"properties": {"a": {"anyOf": [STEP, {"type": "null"}]}}}),
        ("deeper objects", {"properties": {"a": {"type": "object", "properties": {"b": STEP}}}}),
    ],
)
def test_nothing_is_required_of_an_object_that_is_merged_into(where: str, schema: dict[str, Any]) -> None:
    found = str(partial_schema(an_object(required=["a"], minProperties=1, **schema)))
    assert not [demand for demand in ("required", "minProperties") if demand in found], where


@pytest.mark.spec("C6")
@each_row(
    "schema",
    [
        {"properties": {"a": {"type": "array", "items": STEP}}},
        {"properties": {"a": {"type": "array", "prefixItems": [STEP]}}},
        {"properties": {"a": {"oneOf": [STEP, {"type": "null"}]}}},
        {"not": STEP},
        {"if": STEP, "then": STEP, "else": STEP},
        {"dependentSchemas": {"a": STEP}},
        {"dependentRequired": {"a": ["b"]}},
        {"properties": {"a": {"enum": [{"required": ["x"]}], "const": {"title": "kept", "default": 1}}}},
    ],
)
def test_lists_and_conditions_keep_their_requirements(schema: dict[str, Any]) -> None:
    assert partial_schema(an_object(**schema)) == an_object(**schema)


def told_apart_by(tag: str, *kinds: dict[str, Any]) -> dict[str, Any]:
    branches = [an_object(required=["kind", "n"], properties={"kind": kind, "n": {}}) for kind in kinds]
    return {"oneOf": branches, "discriminator": {"propertyName": tag, "mapping": {"a": "#/$defs/A"}}}


@pytest.mark.spec("C6")
def test_with_a_discriminator_only_its_field_is_required() -> None:
    found = partial_schema(an_object(properties={"a": told_apart_by("kind", {"const": "a"}, {"enum": ["b", "c"]})}))
    begun = [an_object(properties={"kind": kind, "n": {}}) for kind in ({"const": "a"}, {"enum": ["b", "c"]})]
    assert found["properties"]["a"] == {"oneOf": begun, "required": ["kind"]}


@pytest.mark.spec("C6")
@pytest.mark.parametrize(
    "schema",
    [
        told_apart_by("kind", {"const": "a"}, {"type": "string"}),
        told_apart_by("sort", {"const": "a"}, {"const": "b"}),
        {"oneOf": [STEP, {"type": "null"}], "discriminator": {"propertyName": "title"}},
        {"items": told_apart_by("kind", {"const": "a"}, {"const": "b"})},
    ],
    ids=["one branch leaves it open", "it is no field", "a branch has no fields", "in a list"],
)
def test_without_a_discriminator_branches_keep_their_requirements(schema: dict[str, Any]) -> None:
    found = partial_schema(an_object(properties={"a": schema}))["properties"]["a"]
    branches = schema.get("items", schema)["oneOf"]
    assert found.get("items", found) == {"oneOf": branches}


@pytest.mark.spec("C6")
def test_a_definition_that_is_used_both_ways_is_there_both_ways() -> None:
    properties = {"next": REF, "done": {"type": "array", "items": REF}}
    found = partial_schema({"type": "object", "properties": properties, "$defs": {"Step": STEP, "Unused": STEP}})
    assert found == {
        "type": "object",
        "properties": {
            "next": {"$ref": "#/$defs/PartialStep"},
            "done": {"type": "array", "items": {"$ref": "#/$defs/Step"}},
        },
        "$defs": {"PartialStep": ANY_STEP, "Step": STEP},
    }


@pytest.mark.spec("C6")
def test_a_definition_with_nothing_to_merge_into_is_there_once() -> None:
    colour = {"enum": ["red", "green"], "type": "string"}
    properties = {"one": {"$ref": "#/definitions/Colour"}, "more": {"items": {"$ref": "#/definitions/Colour"}}}
    found = partial_schema({"type": "object", "properties": properties, "definitions": {"Colour": colour}})
    assert found["$defs"] == {"Colour": colour}


@pytest.mark.spec("C6")
def test_a_recursive_schema_terminates() -> None:
    def fields(left: str, kids: str) -> dict[str, Any]:
        return {"label": {"type": "string"}, "left": {"$ref": left}, "kids": {"items": {"$ref": kids}}}

    found = partial_schema({"type": "object", "required": ["label"], "properties": fields(left="#", kids="#")})
    begun = {"type": "object", "properties": fields(left="#/$defs/PartialRoot", kids="#/$defs/Root")}
    finished = {"type": "object", "required": ["label"], "properties": fields("#/$defs/Root", "#/$defs/Root")}
    assert found == {**begun, "$defs": {"PartialRoot": begun, "Root": finished}}


def test_a_reference_at_the_root_is_replaced_by_what_it_means() -> None:
    found = partial_schema({"$ref": "#/$defs/Step", "$defs": {"Step": STEP}, "description": "One step."})
    assert found == {**ANY_STEP, "description": "One step."}


def test_titles_and_defaults_are_left_out_where_they_are_no_fields() -> None:
    title = {"type": "string", "title": "Title", "default": "none", "description": "What it is called."}
    found = partial_schema(
        {"type": "object", "title": "Task", "$id": "https://example.com/task", "properties": {"title": title}}
    )
    assert found == {"type": "object", "properties": {"title": {"type": "string", "description": "What it is called."}}}


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("#/$defs/a~1b", "a_b"),
        ("#/$defs/two%20words", "two_words"),
        ("#/$defs/list/0", "0"),
        ("#/properties/other", "other"),
    ],
)
def test_a_reference_to_any_path_is_resolved(reference: str, name: str) -> None:
    text = {"type": "string"}
    found = partial_schema(
        {
            "type": "object",
            "properties": {"one": {"$ref": reference}, "other": text},
            "$defs": {"a/b": text, "two words": text, "list": [text]},
        }
    )
    assert found["properties"]["one"] == {"$ref": f"#/$defs/{name}"}
    assert found["$defs"] == {name: text}


def test_two_definitions_of_one_name_are_kept_apart() -> None:
    found = partial_schema(
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A/x"}, "b": {"$ref": "#/$defs/B/x"}},
            "$defs": {"A": {"x": {"type": "string"}}, "B": {"x": {"type": "number"}}},
        }
    )
    assert found["$defs"] == {"x": {"type": "string"}, "x_": {"type": "number"}}


@pytest.mark.spec("J3")
@each_row(
    "schema",
    [
        {"$ref": "https://example.com/task.json"},
        {"$ref": "task.json#/$defs/Step"},
        {"$ref": "#step"},
        {"$ref": "#/$defs/Nobody"},
        {"$ref": "#/$defs/Step/title/x"},
        {"$ref": "#/$defs/~2"},
        {"$ref": 7},
        {"$id": "https://example.com/inner", "type": "string"},
        {"$dynamicRef": "#step"},
        {"$recursiveRef": "#"},
    ],
)
def test_a_reference_outside_the_schema_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        partial_schema({"type": "object", "properties": {"a": schema}, "$defs": {"Step": STEP}})
    assert caught.value.field == "schema"
    assert "#/$defs/Step" in caught.value.expected
