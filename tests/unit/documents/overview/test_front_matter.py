"""Front matter is validated and merged; the rest of the page stays unchanged."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tables import each_row

from inmind.documents.overview.front_matter import (
    MAX_CHARACTERS,
    front_matter_error,
    merge_front_matter,
    parse_front_matter,
    split_front_matter,
)
from inmind.errors import InvalidInput

pytestmark = pytest.mark.spec("F4")

HEAD = """\
---
# Who keeps this: the host.
meta:
  version: "1.0"  # of the form
  last_updated: 2025-01-15T10:30:00Z
project: {name: ai, commands: {test: 'go test ./...'}}
current_state:
  task: Add the index
  next_actions:
    - Review
    - Test
ours: [1, 2.50, no, null]
issues:
  - id: issue-1  # the first
    title: 'overview: stale'
    severity: medium
---
"""
BODY = "# Working memory\r\n\n---\nfree: text\n---\n  \ttail"


def head(yaml: str) -> str:
    return f"---\n{yaml}\n---\n{BODY}"


def test_front_matter_is_parsed_to_plain_values() -> None:
    assert parse_front_matter(HEAD + BODY) == {
        "meta": {"version": "1.0", "last_updated": "2025-01-15T10:30:00+00:00"},
        "project": {"name": "ai", "commands": {"test": "go test ./..."}},
        "current_state": {"task": "Add the index", "next_actions": ["Review", "Test"]},
        "ours": [1, 2.5, "no", None],
        "issues": [{"id": "issue-1", "title": "overview: stale", "severity": "medium"}],
    }


@each_row("text", ["", BODY, "---\nA rule, and prose below.\n---\n", "---\nmeta: 1\n", " ---\na: 1\n---\n"])
def test_a_page_without_front_matter_has_none(text: str) -> None:
    assert parse_front_matter(text) is None
    assert merge_front_matter(text, {"meta": {"version": "2"}}) == f"---\nmeta:\n  version: '2'\n---\n{text}"


def test_objects_merge_issues_merge_by_id_and_all_else_is_replaced() -> None:
    page = merge_front_matter(
        HEAD + BODY,
        {
            "project": {"name": "inmind"},
            "current_state": {"next_actions": ["Ship"]},
            "issues": [{"id": "issue-1", "status": "fixed"}, {"id": "issue-2", "title": "slow"}],
        },
    )
    fields = parse_front_matter(page)
    assert fields is not None
    assert fields["project"] == {"name": "inmind", "commands": {"test": "go test ./..."}}
    assert fields["current_state"] == {"task": "Add the index", "next_actions": ["Ship"]}
    assert fields["issues"] == [
        {"id": "issue-1", "title": "overview: stale", "severity": "medium", "status": "fixed"},
        {"id": "issue-2", "title": "slow"},
    ]


def test_unchanged_fields_keep_their_formatting() -> None:
    page = merge_front_matter(HEAD + BODY, {"issues": [{"id": "issue-1", "severity": "low"}]})
    assert page == (HEAD + BODY).replace("severity: medium", "severity: low")


def test_an_update_without_changes_returns_the_same_page() -> None:
    odd = "---\nmeta:   {version:    1}\n---\nbody"
    assert merge_front_matter(odd, {"meta": {"version": 1}}) == odd
    assert merge_front_matter(odd, {}) == odd
    assert merge_front_matter(odd, {"meta": {"version": 1.0}}) != odd


def test_comments_without_a_key_stay() -> None:
    assert merge_front_matter("---\n# {later}\n\n---\n", {"a": 1}) == "---\n# {later}\n\na: 1\n---\n"


@pytest.mark.spec("J3")
@each_row(
    ("yaml", "field", "expected"),
    [
        ("a: [1", "", "line 2: expected ',' or ']'"),
        ("a: b: c", "", "line 1: mapping values are not allowed here"),
        ("a: 1\na: 2", "", 'line 2: found duplicate key "a"'),
        ("a: 2025-13-45", "", "month must be in 1..12"),
        ("a: \x01", "", "special characters are not allowed"),
        ("a: 1\n...\nb: 2", "", "another document"),
        ("a: &x [1]\nb: *x", "", "without anchors and aliases"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]", "", "without anchors and aliases"),
        ("a: !!python/object/apply:os.system [ls]", "", "without tags"),
        ("a: !mine 1", "", "without tags"),
        ("a: " + "[" * 5_000 + "]" * 5_000, "", "at most 16 levels"),
        ("a: " + "x" * MAX_CHARACTERS, "", f"at most {MAX_CHARACTERS}"),
        ("1: one", " (a key)", "a string"),
        ("{a, [b]: c}", " (a key)", "a string"),
        ("meta: soon", ".meta", "an object"),
        ("meta: {version: [1]}", ".meta.version", "a text"),
        ("project: {commands: make}", ".project.commands", "an object"),
        ("current_state: {next_actions: Ship}", ".current_state.next_actions", "a list of texts"),
        ("issues: {id: 1}", ".issues", "a list of objects"),
        ("issues: [slow]", ".issues[0]", "an object"),
        ("issues: [{title: slow}]", ".issues[0].id", "a unique id"),
        ("issues: [{id: 1}, {id: '1'}]", ".issues[1].id", "a unique id"),
        ("issues: [{id: 1, severity: true}]", ".issues[0].severity", "a text"),
    ],
)
def test_invalid_front_matter_is_refused_with_its_path(yaml: str, field: str, expected: str) -> None:
    for call in (lambda: parse_front_matter(head(yaml)), lambda: merge_front_matter(head(yaml), {"x": 1})):
        with pytest.raises(InvalidInput) as refused:
            call()
        assert refused.value.field == f"front_matter{field}"
        assert expected in refused.value.expected


def nested(levels: int) -> dict[str, Any]:
    return {"a": nested(levels - 1)} if levels else {}


@pytest.mark.spec("J3")
@each_row(
    ("values", "field", "expected"),
    [
        ("text", "", "an object"),
        ({1: 2}, " (a key)", "a string"),
        ({"a": object()}, ".a", "a value that JSON can carry"),
        ({"a": [b"bytes"]}, ".a[0]", "a value that JSON can carry"),
        ({"a": {"b": "\ud800"}}, ".a.b", "text without lone surrogates"),
        ({"a": "x" * MAX_CHARACTERS}, "", f"at most {MAX_CHARACTERS}"),
        ({"a": {"\x85": None}}, "", "text without control characters"),
        ({"issues": [{"id": "x", "title": ["y"]}]}, ".issues[1].title", "a text"),
        (nested(30), "", "at most 16 levels"),
    ],
)
def test_invalid_values_are_refused_with_their_path(values: Any, field: str, expected: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        merge_front_matter(HEAD + BODY, values)
    assert refused.value.field == f"front_matter{field}"
    assert expected in refused.value.expected


def test_input_of_a_host_is_neither_changed_nor_kept() -> None:
    values = {"a": {"b": [1]}, "issues": [{"id": "x"}]}
    merge_front_matter(HEAD, values)
    assert values == {"a": {"b": [1]}, "issues": [{"id": "x"}]}


def test_without_the_library_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    assert parse_front_matter(BODY) is None
    for call in (lambda: parse_front_matter(HEAD), lambda: merge_front_matter(HEAD, {"a": 1})):
        with pytest.raises(InvalidInput, match=r'expected the library ruamel\.yaml: pip install "inmind\[yaml\]"'):
            call()
    assert front_matter_error(head("a: [1")) == ""


@pytest.mark.parametrize(
    ("yaml", "line"), [("a: [1", "a: [1"), ("a: 1\nb: {c: [\n", "b: {c: ["), ("a: b: c", "a: b: c")]
)
def test_invalid_yaml_is_refused_with_the_line_of_the_error(yaml: str, line: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_front_matter(head(yaml))
    assert refused.value.value == line
    assert front_matter_error(head(yaml)) == str(refused.value)


@pytest.mark.parametrize(
    ("written", "number"), [(".nan", math.nan), (".inf", math.inf), ("-.inf", -math.inf), ("1e400", math.inf)]
)
def test_a_number_that_is_not_finite_is_refused(written: str, number: float) -> None:
    for call in (
        lambda: parse_front_matter(head(f"a: [{written}]")),
        lambda: merge_front_matter(BODY, {"a": [number]}),
    ):
        with pytest.raises(InvalidInput, match="a finite number") as refused:
            call()
        assert refused.value.field == "front_matter.a[0]"


AMBIGUOUS = [
    "yes",
    "No",
    "on",
    "OFF",
    "y",
    "~",
    "null",
    "012",
    "1_000",
    "12:30:45",
    "2025-01-15",
    ".5",
    "0x1F",
    "=",
    "<<",
]


@each_row("text", AMBIGUOUS)
def test_a_text_that_another_yaml_version_reads_as_another_type_is_quoted(text: str) -> None:
    page = merge_front_matter(BODY, {text: text, "list": [text], "inside": {"a": {text: text}}})
    assert page == f"---\n'{text}': '{text}'\nlist:\n  - '{text}'\ninside:\n  a:\n    '{text}': '{text}'\n---\n{BODY}"


@given(text=st.sampled_from(AMBIGUOUS) | st.from_regex(r"[-+]?[0-9a-fxoby_.:eEnNY]{1,8}", fullmatch=True))
def test_both_yaml_versions_read_the_same_values(text: str) -> None:
    yaml_1_1: Any = YAML(typ="safe", pure=True)
    yaml_1_1.version = (1, 1)
    written = merge_front_matter("", {"a": text}).removeprefix("---\n").removesuffix("---\n")
    assert yaml_1_1.load(written) == {"a": text}


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cn", "Cs")), max_size=20)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
VALUES = st.dictionaries(st.sampled_from(["a", "b c", "#", "---", "null", "1", "关于"]), PLAIN, max_size=3)


@given(values=VALUES, body=st.text() | st.sampled_from([BODY, HEAD + BODY, "---\n# why\n---\nx", "---", "---\n"]))
def test_merged_values_read_back_and_the_rest_of_the_page_stays(values: dict[str, Any], body: str) -> None:
    page = merge_front_matter(body, values)
    _, rest = split_front_matter(body)
    if values:
        fields = parse_front_matter(page)
        assert fields is not None
        assert {key: fields[key] for key in values} == values
        assert split_front_matter(page)[1] == (rest if parse_front_matter(body) is not None else body)
    assert merge_front_matter(page, values) == page
