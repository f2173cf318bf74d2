"""Parsing of tool results in every encoding."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values
from tables import each_row

from inmind.core.parse_result import MAX_JSON_CHARS, MAX_YAML_CHARS, parse_result
from inmind.core.tool_outcome import is_failure

pytestmark = pytest.mark.spec("B4")


@given(json_values().filter(lambda value: isinstance(value, dict | list)))
def test_json_in_a_string_is_parsed(value: Any) -> None:
    assert parse_result(json.dumps(value)) == parse_result(value)


PRINTED: list[tuple[str, Any]] = [
    ("a: 1\nb: two", {"a": 1, "b": "two"}),
    ("- a\n- b", ["a", "b"]),
    ("- id: 1\n  tags:\n  - x\n  - y\n- id: 2\n  tags: []", [{"id": 1, "tags": ["x", "y"]}, {"id": 2, "tags": []}]),
    ("a:\n  b:\n    c: true\nd: null", {"a": {"b": {"c": True}}, "d": None}),
    ("a: 'it''s one\n\n  line'\nb: 2", {"a": "it's one  line", "b": 2}),
    ('a: "x: y\\tz"\nb: 1.5', {"a": "x: y\tz", "b": 1.5}),
    ("text: |\n  one\n  two\nid: p-1", {"text": "one\ntwo", "id": "p-1"}),
    ("a plain: text that\n  goes on\nb: 1", {"a plain": "text that goes on", "b": 1}),
    ("ada@example.com: rw\nbob@example.com: r", {"ada@example.com": "rw", "bob@example.com": "r"}),
    ("'34': x\n'35': y", {"34": "x", "35": "y"}),
    ("- - a\n  - b\n- - c", [["a", "b"], ["c"]]),
    ("ids: [a, b]\nnone: {}", {"ids": ["a", "b"], "none": {}}),
]


@each_row(("text", "value"), PRINTED)
def test_yaml_printed_by_tools_is_parsed(text: str, value: Any) -> None:
    assert parse_result(text) == value


@each_row(
    "prose",
    [
        "Dear Ada,\nI have: nothing to say.\nBye\n",
        "The result is 12.",
        "{not json",
        "[1, 2",
        '"unfinished',
        "{}}",
        "",
        "\n",
        "- ",
        "Note: this is one sentence.\nAnd this is another one that is no pair.",
    ],
)
def test_prose_stays_text(prose: str) -> None:
    assert parse_result(prose) == prose


def test_a_python_literal_is_parsed_and_nothing_is_executed() -> None:
    assert parse_result("{'id': 'p-1', 'live': True, 'none': None}") == {"id": "p-1", "live": True, "none": None}
    assert parse_result("[print('x')]") == "[print('x')]"
    assert parse_result("{'a': b'bytes'}") == "{'a': b'bytes'}"


def test_rows_of_a_table_are_read_by_the_names_of_its_columns() -> None:
    table = {"columns": ["id", "name"], "rows": [["page-1", "Home"], ["page-2"]]}
    assert parse_result(table) == [{"id": "page-1", "name": "Home"}, {"id": "page-2"}]


def test_content_blocks_are_unwrapped() -> None:
    assert parse_result([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]) == "one\ntwo"
    assert parse_result([{"type": "text", "text": "[1]"}, {"type": "image", "data": "…"}]) == [1]
    assert parse_result({"content": [{"type": "text", "text": "{}"}], "structuredContent": {"id": "p-1"}}) == {
        "id": "p-1"
    }


def test_an_object_that_resembles_content_blocks_stays_an_object() -> None:
    sections = [{"type": "text", "text": "Hello", "id": "sec-1"}]
    assert parse_result(sections) == sections
    page = {"id": "page-1", "content": [{"type": "text", "text": "Hello"}]}
    assert parse_result(page) == page


def test_parsing_stops_at_a_size_and_a_depth() -> None:
    large = "[" + "1," * (MAX_JSON_CHARS // 2) + "1]"
    assert parse_result(large) == large
    assert parse_result("a: 1\n" * MAX_YAML_CHARS) == "a: 1\n" * MAX_YAML_CHARS
    nested: Any = "x"
    for _ in range(12):
        nested = json.dumps([{"type": "text", "text": nested}])
    assert isinstance(parse_result(nested), str)


@pytest.mark.parametrize(
    "text", ["[" * 10_000 + "]" * 10_000, '{"a":' * 10_000 + "1" + "}" * 10_000, "- " * 10_000 + "x"]
)
def test_too_deep_nesting_stays_text(text: str) -> None:
    assert parse_result(text) is not None


@given(st.text())
def test_no_text_makes_parsing_fail(text: str) -> None:
    parse_result(text)
    is_failure(text)


@given(st.lists(st.sampled_from(["- ", "a:", " ", "  ", "\n", "'", '"', "|", "x", "1", "[", "]", "# ", "---", ": "])))
def test_no_broken_yaml_makes_parsing_fail(pieces: list[str]) -> None:
    parse_result("".join(pieces))


def test_time_is_linear_for_text_that_is_nearly_yaml() -> None:
    """The test hangs if lines are read repeatedly."""
    parse_result("a: 'open\n" + "b: still\n" * 20_000)
    parse_result("- 'open\n" * 20_000)
    parse_result(("a: " + " " * 50 + "b\n") * 3_000)


@pytest.mark.spec("B11")
@each_row(
    "text",
    ["Order: W1\nItem: 10\nOrder: W2\nTotal: 5", "- name: a\n  id: 1\n  name: b", "id: 1\n---\nid: 2\nname: b"],
)
def test_a_text_with_a_repeated_key_has_no_fields(text: str) -> None:
    """With fields, the order W2 would have the item of W1."""
    assert parse_result(text) == text
