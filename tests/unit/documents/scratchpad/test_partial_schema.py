"""The partial schema: which requirements are dropped and which stay."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.documents.scratchpad.schema import partial_schema
from inmind.errors import InvalidInput

STEP = {"type": "object", "required": ["title"], "properties": {"title": {"type": "string"}}}
ANY_STEP = {"type": "object", "properties": {"title": {"type": "string"}}}
REF = {"$ref": "#/$defs/Step"}


def an_object(**keywords: Any) -> dict[str, Any]:
    return {"type": "object", **keywords}


@pytest.mark.spec("C6")
@each_row(
    ("location", "schema"),
    [
        ("a field", {"properties": {"a": STEP}}),
        ("any other field", {"additionalProperties": STEP}),
        ("fields of a pattern", {"patternProperties": {"^x": STEP}}),
        ("each of several", {"allOf": [{"properties": {"a": STEP}}, STEP]}),
        ("any of several", {"properties": {"a": {"anyOf": [STEP, {"type": "null"}]}}}),
        ("deeper objects", {"properties": {"a": {"type": "object", "properties": {"b": STEP}}}}),
    ],
)
def test_nested_objects_that_are_merged_have_no_required_fields(location: str, schema: dict[str, Any]) -> None:
    partial = str(partial_schema(an_object(required=["a"], minProperties=1, **schema)))
    assert not [keyword for keyword in ("required", "minProperties") if keyword in partial], location


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


def tagged_union(tag: str, *kinds: dict[str, Any]) -> dict[str, Any]:
    branches = [an_object(required=["kind", "n"], properties={"kind": kind, "n": {}}) for kind in kinds]
    return {"oneOf": branches, "discriminator": {"propertyName": tag, "mapping": {"a": "#/$defs/A"}}}


@pytest.mark.spec("C6")
def test_with_a_discriminator_only_its_field_is_required() -> None:
    partial = partial_schema(an_object(properties={"a": tagged_union("kind", {"const": "a"}, {"enum": ["b", "c"]})}))
    branches = [an_object(properties={"kind": kind, "n": {}}) for kind in ({"const": "a"}, {"enum": ["b", "c"]})]
    assert partial["properties"]["a"] == {"oneOf": branches, "required": ["kind"]}


@pytest.mark.spec("C6")
@pytest.mark.parametrize(
    "schema",
    [
        tagged_union("kind", {"const": "a"}, {"type": "string"}),
        tagged_union("sort", {"const": "a"}, {"const": "b"}),
        {"oneOf": [STEP, {"type": "null"}], "discriminator": {"propertyName": "title"}},
        {"items": tagged_union("kind", {"const": "a"}, {"const": "b"})},
    ],
    ids=["one branch accepts any tag", "the tag is not a field", "a branch has no fields", "in a list"],
)
def test_without_a_discriminator_branches_keep_their_requirements(schema: dict[str, Any]) -> None:
    partial = partial_schema(an_object(properties={"a": schema}))["properties"]["a"]
    branches = schema.get("items", schema)["oneOf"]
    assert partial.get("items", partial) == {"oneOf": branches}


@pytest.mark.spec("C6")
def test_a_definition_used_in_fields_and_lists_has_a_partial_and_a_full_form() -> None:
    properties = {"next": REF, "done": {"type": "array", "items": REF}}
    partial = partial_schema({"type": "object", "properties": properties, "$defs": {"Step": STEP, "Unused": STEP}})
    assert partial == {
        "type": "object",
        "properties": {
            "next": {"$ref": "#/$defs/PartialStep"},
            "done": {"type": "array", "items": {"$ref": "#/$defs/Step"}},
        },
        "$defs": {"PartialStep": ANY_STEP, "Step": STEP},
    }


@pytest.mark.spec("C6")
def test_a_definition_without_objects_has_one_form() -> None:
    colour = {"enum": ["red", "green"], "type": "string"}
    properties = {"one": {"$ref": "#/definitions/Colour"}, "more": {"items": {"$ref": "#/definitions/Colour"}}}
    partial = partial_schema({"type": "object", "properties": properties, "definitions": {"Colour": colour}})
    assert partial["$defs"] == {"Colour": colour}


@pytest.mark.spec("C6")
def test_a_recursive_schema_terminates() -> None:
    def fields(parent: str, kids: str) -> dict[str, Any]:
        return {"label": {"type": "string"}, "parent": {"$ref": parent}, "kids": {"items": {"$ref": kids}}}

    partial = partial_schema({"type": "object", "required": ["label"], "properties": fields(parent="#", kids="#")})
    partial_node = {"type": "object", "properties": fields(parent="#/$defs/PartialRoot", kids="#/$defs/Root")}
    full_node = {"type": "object", "required": ["label"], "properties": fields("#/$defs/Root", "#/$defs/Root")}
    assert partial == {**partial_node, "$defs": {"PartialRoot": partial_node, "Root": full_node}}


def test_a_reference_at_the_root_is_replaced_by_its_definition() -> None:
    partial = partial_schema({"$ref": "#/$defs/Step", "$defs": {"Step": STEP}, "description": "One step."})
    assert partial == {**ANY_STEP, "description": "One step."}


def test_titles_and_defaults_are_left_out_unless_they_are_fields() -> None:
    title = {"type": "string", "title": "Title", "default": "none", "description": "What it is called."}
    partial = partial_schema(
        {"type": "object", "title": "Task", "$id": "https://example.com/task", "properties": {"title": title}}
    )
    assert partial == {
        "type": "object",
        "properties": {"title": {"type": "string", "description": "What it is called."}},
    }


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
    partial = partial_schema(
        {
            "type": "object",
            "properties": {"one": {"$ref": reference}, "other": text},
            "$defs": {"a/b": text, "two words": text, "list": [text]},
        }
    )
    assert partial["properties"]["one"] == {"$ref": f"#/$defs/{name}"}
    assert partial["$defs"] == {name: text}


def test_two_definitions_with_the_same_name_are_kept_separate() -> None:
    partial = partial_schema(
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A/x"}, "b": {"$ref": "#/$defs/B/x"}},
            "$defs": {"A": {"x": {"type": "string"}}, "B": {"x": {"type": "number"}}},
        }
    )
    assert partial["$defs"] == {"x": {"type": "string"}, "x_": {"type": "number"}}


@pytest.mark.spec("J3")
@each_row(
    "schema",
    [
        {"$ref": "https://example.com/task.json"},
        {"$ref": "task.json#/$defs/Step"},
        {"$ref": "#step"},
        {"$ref": "#/$defs/Missing"},
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
