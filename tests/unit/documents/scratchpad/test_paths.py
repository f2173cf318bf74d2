"""Formatting and parsing of scratchpad paths."""

from __future__ import annotations

from typing import Any

import pytest
from tables import each_row

from inmind.documents.scratchpad.values import ABSENT, MAX_PATH_CHARACTERS, format_path, parse_path, value_at
from inmind.errors import InvalidInput

STATE: dict[str, Any] = {
    "owner": {"name": "Ada", "a.b": 1, "c/d": 2},
    "due.date": "May",
    "steps": [{"title": "x"}],
    "x.y": 1,
    "x": {"y": 2},
    "": "empty",
}


@each_row(
    ("path", "formatted"),
    [
        (["owner", "name"], "owner.name"),
        (["steps", 2, "title"], "steps[2].title"),
        (["due-date"], "due-date"),
        (["目标"], "目标"),
        (["a.b"], '["a.b"]'),
        (["owner", "c/d", "x"], 'owner["c/d"].x'),
        ([""], '[""]'),
        (['say "hi"'], r'["say \"hi\""]'),
        (["a\nb"], r'["a\nb"]'),
        (["\ud800"], r'["\ud800"]'),
        ([], ""),
    ],
)
def test_each_path_has_a_unique_format(path: list[str | int], formatted: str) -> None:
    assert format_path(path) == formatted


def test_a_path_has_a_root_and_a_maximum_length() -> None:
    assert format_path(["a", "b.c", 0], "values") == 'values.a["b.c"][0]'
    assert format_path(["x" * 1_000], "values") == f"values.{'x' * (MAX_PATH_CHARACTERS - 7)}…"


@pytest.mark.spec("C2")
@each_row(
    ("value", "path"),
    [
        (["owner", "name"], ("owner", "name")),
        (("owner", "a.b"), ("owner", "a.b")),
        ("owner.name", ("owner", "name")),
        ("/owner/name", ("owner", "name")),
        ("/owner/c~1d", ("owner", "c/d")),
        ("/owner/a.b", ("owner", "a.b")),
        ("/~01/~0", ("~1", "~")),
        ("due.date", ("due.date",)),
        ("owner", ("owner",)),
        ("steps", ("steps",)),
        ("", ("",)),
        ("unknown.field", ("unknown", "field")),
        ("owner.name.first", ("owner", "name", "first")),
        (["x.y"], ("x.y",)),
        (["x", "y"], ("x", "y")),
        ("/x/y", ("x", "y")),
        ("." * 10_000, ("",) * 10_001),
    ],
)
def test_a_path_is_parsed_with_the_keys_of_the_state(value: object, path: tuple[str, ...]) -> None:
    assert parse_path(value, STATE, "delete[0]") == path


@pytest.mark.spec("C2", "J3")
@each_row(
    ("path", "expected"),
    [
        ("x.y", "a list of keys, since it can mean ['x.y'] or ['x', 'y']"),
        ("steps.0", "a path that ends at steps, since lists are replaced as a whole"),
        ("/steps/0/title", "a path that ends at steps"),
        (["steps", "0"], "a path that ends at steps"),
        ([], "a path"),
        (["owner", 1], "a path"),
        (7, "a path"),
        (None, "a path"),
        ({"owner": "name"}, "a path"),
        ("/owner/~2", "a path"),
    ],
)
def test_an_ambiguous_or_invalid_path_is_refused(path: object, expected: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_path(path, STATE, "delete[0]")
    assert caught.value.field == "delete[0]"
    assert caught.value.value == path
    assert caught.value.expected.startswith(expected)


def test_absent_differs_from_null() -> None:
    assert value_at({"a": None}, ("a",)) is None
    assert value_at({"a": None}, ("b",)) is ABSENT
    assert value_at({"a": None}, ("a", "b")) is ABSENT
    assert repr(ABSENT) == "absent"
    assert not ABSENT
