"""A call of working_memory stands for a call of the tool that its command names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values

from inmind.session.tools.registry import COMMANDS, expand_command, is_memory_tool

pytestmark = pytest.mark.spec("D11")


@pytest.mark.parametrize(
    ("arguments", "tool", "expanded"),
    [
        ({"command": "note Mei prefers tea"}, "working_memory_note", {"note": "Mei prefers tea"}),
        ({"command": "note", "text": "tea", "importance": 1}, "working_memory_note", {"note": "tea", "importance": 1}),
        ({"command": "Search refund of Mei", "limit": 3}, "memory_search", {"query": "refund of Mei", "limit": 3}),
        ({"command": "search", "query": "refund", "text": ""}, "memory_search", {"query": "refund"}),
        ({"command": "resolve that page"}, "resolve_reference", {"text": "that page"}),
        ({"command": "read overview.md"}, "memory_read", {"path": "overview.md"}),
        ({"command": "read", "path": "overview.md"}, "memory_read", {"path": "overview.md"}),
        (
            {"command": "read archive/1.md from_line 401 to 500"},
            "memory_read",
            {"path": "archive/1.md", "from_line": "401", "to_line": "500"},
        ),
        ({"command": "write detail/a.md all of it"}, "memory_write", {"path": "detail/a.md", "text": "all of it"}),
        (
            {"command": "write overview.md Known facts\n- one\n- two"},
            "memory_write",
            {"path": "overview.md", "section": "Known facts", "text": "- one\n- two"},
        ),
        (
            {"command": "write overview.md Known facts", "text": ""},
            "memory_write",
            {"path": "overview.md", "section": "Known facts", "text": ""},
        ),
        (
            {"command": "append", "path": "overview.md", "section": "", "text": "- three"},
            "memory_write",
            {"path": "overview.md", "text": "- three", "append": True},
        ),
        ({"command": "write scratchpad\nhero next"}, "working_memory_update", {"text": "hero next"}),
        ({"command": "append scratchpad done"}, "working_memory_update", {"text": "done", "append": True}),
        ({"command": "update", "text": "hero next"}, "working_memory_update", {"text": "hero next"}),
        ({"command": "list"}, "memory_list", {}),
        ({"command": "list from_line 101"}, "memory_list", {"from_line": "101"}),
        ({"command": "compact"}, "compact_history", {"target": "all"}),
        ({"command": "compact tools 3"}, "compact_history", {"target": "tools", "keep_recent": "3"}),
        ({"command": "compact", "target": "tools"}, "compact_history", {"target": "tools"}),
    ],
)
def test_a_command_names_a_tool_and_its_arguments(arguments: Any, tool: str, expanded: dict[str, Any]) -> None:
    assert expand_command("working_memory", arguments) == (tool, expanded)


@pytest.mark.parametrize("arguments", [{}, {"command": "forget"}, {"command": 7}, {"command": ""}, [], "note x", None])
def test_without_a_known_command_the_call_stays_as_it_is(arguments: Any) -> None:
    assert expand_command("working_memory", arguments) == ("working_memory", arguments)


def test_calls_of_other_tools_stay_as_they_are() -> None:
    assert expand_command("memory_read", {"command": "list"}) == ("memory_read", {"command": "list"})


@given(
    command=st.tuples(st.sampled_from([*COMMANDS, "x"]), st.text()).map(" ".join),
    others=st.dictionaries(st.sampled_from(["text", "path", "section", "append", "limit"]), json_values()),
)
def test_any_command_becomes_a_call_of_a_memory_tool(command: str, others: dict[str, Any]) -> None:
    tool, arguments = expand_command("working_memory", {"command": command, **others})
    assert is_memory_tool(tool)
    assert tool == "working_memory" or "command" not in arguments
