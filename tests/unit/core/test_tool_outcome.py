"""Failed calls are recognised from their result."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.json import is_object
from inmind.core.tool_outcome import is_failure

pytestmark = pytest.mark.spec("B4", "F5")

FAILURES: list[Any] = [
    {"error": "permission denied"},
    {"error": {"message": "quota", "code": 7}},
    {"success": False},
    {"ok": False, "reason": "locked"},
    {"isError": True, "content": [{"type": "text", "text": "EACCES"}]},
    {"status": "error", "message": "no"},
    {"exit_code": 1, "stdout": "", "stderr": "boom"},
    {"returncode": 2},
    {"output": "context not found", "metadata": {"exit_code": 1}},
]
SUCCESSES: list[Any] = [
    {"exit_code": 0, "stderr": "warning: error: is a word"},
    {"exit_code": False},
    {"error": None, "id": "page-1"},
    {"orders": [{"id": "o-1", "status": "error"}, {"id": "o-2", "error": "declined"}]},
    [{"id": "o-1", "status": "error", "exit_code": 1}],
    {"id": "build-7", "branch": "main", "status": "failed", "exit_code": 1},
    {"page": {"id": "p-1", "ok": False}},
    {"data": {"page": {"id": "p-1"}}, "errors": [{"message": "no author"}]},
]


def as_content(value: Any) -> Any:
    return [{"type": "text", "text": json.dumps(value)}]


def as_mcp(value: Any) -> Any:
    return json.dumps({"content": as_content(value)})


ENCODINGS: list[Callable[[Any], Any]] = [lambda value: value, json.dumps, repr, as_content, as_mcp]
"""The encodings of one tool result."""


@each_row("encode", ENCODINGS)
@each_row("answer", FAILURES)
def test_a_failure_is_recognised_in_every_encoding(answer: Any, encode: Callable[[Any], Any]) -> None:
    assert is_failure(encode(answer))


@each_row("encode", ENCODINGS)
@each_row("answer", SUCCESSES)
def test_a_failed_item_in_a_result_is_not_a_failed_call(answer: Any, encode: Callable[[Any], Any]) -> None:
    assert not is_failure(encode(answer))


@each_row(
    "text",
    [
        "Exit code 1\nFAILED tests/x.py::y",
        "Exit code: 127",
        "Command exited with code 2",
        "Process failed with exit status 1: no such file",
        "<tool_use_error>String to replace not found in file.</tool_use_error>",
        "<error>locked</error>",
        "HTTP 500",
        "HTTP/1.1 403 Forbidden",
        "npm ERR! missing script: build",
        "success: false\nmessage: disk full",
    ],
)
def test_a_failure_in_prose_is_recognised_by_its_beginning(text: str) -> None:
    assert is_failure(text)


@each_row(
    "text",
    [
        "Exit code 0\nerror: a word in the output",
        "Exit code: 0",
        "exit codes 1 to 3 mean trouble",
        "Status 3 of 4 is done",
        "The code 1 stands for red.",
        "HTTP 200",
        "HTTP 404 pages are in errors.md",
        "- <error> is the root of such a document",
        "12 passed, 1 failed",
    ],
)
def test_prose_about_failures_is_not_a_failure(text: str) -> None:
    assert not is_failure(text)


@given(st.sampled_from([*FAILURES, *SUCCESSES]), st.lists(st.sampled_from([json.dumps, as_content]), max_size=3))
def test_wrapping_a_result_does_not_change_its_outcome(answer: Any, wrappings: list[Callable[[Any], Any]]) -> None:
    wrapped = answer
    for encode in wrappings:
        wrapped = encode(wrapped)
    assert is_failure(wrapped) == is_failure(answer)


@each_row("answer", [one for one in (*FAILURES, *SUCCESSES) if is_object(one)])
def test_yaml_gives_the_same_outcome_as_its_object(answer: dict[str, Any]) -> None:
    plain = {key: value for key, value in answer.items() if not isinstance(value, dict | list)} | {"at": "noon"}
    text = "\n".join(f"{key}: {value if isinstance(value, str) else json.dumps(value)}" for key, value in plain.items())
    assert is_failure(text) == is_failure(plain)
