"""Valid input is copied; invalid input is refused with its exact path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import AliasChoices, BaseModel, Field
from tables import each_row

from inmind.core.json import MAX_DEPTH
from inmind.documents.document import MAX_DOCUMENT_BYTES
from inmind.documents.scratchpad.values import MAX_OBJECT_DEPTH, copy_json
from inmind.errors import InvalidInput


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Person(BaseModel):
    name: str = Field(alias="fullName")
    email: str = "default@example.com"


class Renamed(BaseModel):
    """A model with different names for validation and serialization."""

    one: int = Field(validation_alias="ONE")
    two: int = Field(default=0, validation_alias=AliasChoices("TWO", "Two"), serialization_alias="second")
    three: int = Field(default=0, serialization_alias="third")
    inner: Renamed | None = None
    listed: list[Renamed] = []
    keyed: dict[str, Renamed] = {}


class Broken(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("the connection is gone")

    def __len__(self) -> int:
        return 1


def in_objects(levels: int, inside: Any) -> Any:
    for _ in range(levels):
        inside = {"a": inside}
    return inside


def in_lists(levels: int, inside: Any, *, times: int = 1) -> Any:
    """Nested lists that each repeat the inner one: large as JSON, small in memory."""
    for _ in range(levels):
        inside = [inside] * times
    return inside


def a_cycle() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


def refusal(data: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        copy_json(data, "values")
    return caught.value


@pytest.mark.spec("J3")
@each_row(
    ("value", "field", "expected"),
    [
        ({"owner": {"name": b"Ada"}}, "values.owner.name", "a value that JSON can carry"),
        ({"steps": [1, {"at": {1, 2}}]}, "values.steps[1].at", "a value that JSON can carry"),
        ({"a.b": {"c/d": object}}, 'values["a.b"]["c/d"]', "a value that JSON can carry"),
        ({"cost": float("nan")}, "values.cost", "a finite number"),
        ({"cost": [float("-inf")]}, "values.cost[0]", "a finite number"),
        ({"n": 1 << 13_000}, "values.n", "a shorter integer"),
        ({"note": "a\x00b"}, "values.note", "text without NUL characters and lone surrogates"),
        ({"note": "\ud800"}, "values.note", "text without NUL characters and lone surrogates"),
        ({"owner": {"\ud800": 1}}, "values.owner (a key)", "text without NUL characters and lone surrogates"),
        ({"owner": {7: 1}}, "values.owner (a key)", "a string"),
        ({"owner": Broken()}, "values.owner", "an object that can be read"),
        ({"owner": Person}, "values.owner", "a value that JSON can carry"),
        (object(), "values", "a value that JSON can carry"),
    ],
)
def test_a_value_that_is_not_json_is_refused_with_its_path(value: object, field: str, expected: str) -> None:
    error = refusal(value)
    assert (error.field, error.expected) == (field, expected)


@pytest.mark.spec("C2", "J3")
def test_values_that_are_too_deep_are_refused() -> None:
    assert copy_json(in_objects(MAX_OBJECT_DEPTH, "x"), "values")[0] == in_objects(MAX_OBJECT_DEPTH, "x")
    assert refusal(in_objects(MAX_OBJECT_DEPTH + 1, "x")).expected == f"at most {MAX_OBJECT_DEPTH} levels of objects"
    assert refusal(in_objects(10_000, "x")).field == "values" + ".a" * MAX_OBJECT_DEPTH
    lists = in_lists(MAX_DEPTH - 1, [])
    assert copy_json(lists, "values")[0] == lists
    assert refusal([lists]).expected == f"at most {MAX_DEPTH} levels of nesting"
    assert refusal({"a": a_cycle()}).expected == f"at most {MAX_DEPTH} levels of nesting"
    assert refusal({"a": in_lists(100_000, [])}).field.endswith("…")


class EndlessDump:
    def model_dump(self, **_: Any) -> EndlessDump:
        return self


class FailingDump:
    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise RuntimeError("no dump")


def test_an_object_that_cannot_be_dumped_is_refused() -> None:
    assert refusal({"a": EndlessDump()}).field == "values.a"
    assert refusal({"a": FailingDump()}).expected == "an object that can be dumped"


@pytest.mark.spec("C2", "J3")
@each_row(
    ("value", "field"),
    [
        ({"note": "x" * 10_000_000}, "values.note"),
        ({"owner": {"notes": ["fine", "x" * 10_000_000]}}, "values.owner.notes[1]"),
        ({"a": {"log": ["a line of the log"] * 100_000}}, "values.a.log"),
        ({"a": {"log": [0] * 10_000_000}}, "values.a.log"),
        ({"a": {str(n): n for n in range(600_000)}}, "values.a"),
        ({"a": {f"a key {n}": "x" for n in range(100_000)}}, "values.a"),
        ({"deep": in_lists(9, "x", times=10)}, "values.deep[0][0][0]"),
        ({"x" * 2_000_000: 1}, "values (a key)"),
        ({str(n): "x" * 1_000 for n in range(2_000)}, "values"),
    ],
)
def test_the_error_names_the_value_that_is_too_large(value: object, field: str) -> None:
    error = refusal(value)
    assert error.field == field
    assert f"at most {MAX_DOCUMENT_BYTES} bytes" in error.expected
    assert len(str(error)) < 400


@pytest.mark.spec("C2")
def test_unsafe_keys_are_dropped_at_every_depth() -> None:
    values = json.loads(
        """{"__proto__": {"admin": true}, "kept": 1, "constructor": 2,
        "deep": {"prototype": 3, "list": [[{"__class__": 4, "ok": 5}]], "__init": 6, "____": 7}}"""
    )
    copy, dropped = copy_json(values, "values")
    assert copy == {"kept": 1, "deep": {"list": [[{"ok": 5}]], "__init": 6, "____": 7}}
    assert dropped == ("__proto__", "constructor", "deep.prototype", "deep.list[0][0].__class__")


def test_the_copy_has_only_plain_values() -> None:
    given = {
        Colour.RED: Colour.RED,
        "level": Level.HIGH,
        "pair": (1, "two"),
        "view": MappingProxyType({"a": None}),
        "owner": Person(fullName="Ada"),
        "list": [Person(fullName="Bo", email="bo@example.com")],
        "text": "关于我们",
        "numbers": [0, -1, 2.5, True, 1 << 100],
    }
    value = copy_json(given, "values")[0]
    assert value == {
        "red": "red",
        "level": 3,
        "pair": [1, "two"],
        "view": {"a": None},
        "owner": {"fullName": "Ada"},
        "list": [{"fullName": "Bo", "email": "bo@example.com"}],
        "text": "关于我们",
        "numbers": [0, -1, 2.5, True, 1 << 100],
    }
    assert list(value) == ["red", "level", "pair", "view", "owner", "list", "text", "numbers"]
    assert [type(part) for part in (next(iter(value)), value["red"], value["level"], value["pair"])] == [
        str,
        str,
        int,
        list,
    ]


@pytest.mark.spec("C9")
def test_a_model_is_dumped_under_its_validation_names() -> None:
    leaf = {"ONE": 1, "TWO": 2, "three": 3}
    fields = {**leaf, "inner": leaf, "listed": [leaf, {"ONE": 4}], "keyed": {"one": leaf}}
    model = Renamed.model_validate(fields)
    assert copy_json({"a": model, "b": [model]}, "values")[0] == {"a": fields, "b": [fields]}
    assert set(fields) <= set(Renamed.model_json_schema()["$defs"]["Renamed"]["properties"])


def test_the_copy_is_independent() -> None:
    given: dict[str, Any] = {"a": {"b": [1]}}
    copy = copy_json(given, "values")[0]
    given["a"]["b"].append(2)
    given["a"]["c"] = 3
    assert copy == {"a": {"b": [1]}}
