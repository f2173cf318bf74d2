"""The exact schemas of the memory tools. Those of a provider are in every request."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Field

from inmind import Memory, Session
from inmind.layers import ScratchpadLayer
from inmind.search.crystal import KINDS

pytestmark = pytest.mark.spec("C5", "F2", "G2")

TEXT = {"type": "string"}


def tool(name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def test_the_default_tool(session: Session) -> None:
    assert session.tools("openai") == [
        tool(
            "working_memory",
            "note, search, resolve TEXT; read, write, append PATH [SECTION]: overview.md, scratchpad; list; compact",
            {"type": "object", "properties": {"command": TEXT}},
        )
    ]


def test_the_update_tool_has_the_fields_of_the_scratchpad_schema(memory: Memory) -> None:
    class Owner(BaseModel):
        name: str
        email: str = ""

    class Task(BaseModel):
        """What you are doing."""

        goal: str = Field(description="In one sentence.")
        steps: list[str]
        owner: Owner

    session = memory.session("task", layers=[ScratchpadLayer(schema=Task)])
    assert session.tools("openai")[:1] == [
        tool(
            "working_memory_update",
            "Update your scratchpad, shown as working_memory. Send only changes: objects merge, others replace.",
            {
                "description": "What you are doing.",
                "properties": {
                    "goal": {"description": "In one sentence.", "type": "string"},
                    "steps": {"items": TEXT, "type": "array"},
                    "owner": {"$ref": "#/$defs/PartialOwner"},
                    "delete": {
                        "type": "array",
                        "items": TEXT,
                        "description": "Paths of fields to remove, like owner.name.",
                    },
                },
                "type": "object",
                "$defs": {"PartialOwner": {"properties": {"name": TEXT, "email": TEXT}, "type": "object"}},
            },
        )
    ]


def test_the_schema_format_of_each_provider(memory: Memory) -> None:
    session = memory.session("pages", layers=[])
    assert [session.tools(format) for format in ("openai", "responses", "anthropic")] == [[], [], []]
    with_scratchpad = memory.session("noting", layers=[ScratchpadLayer()])
    about = {"name": "working_memory", "description": "read, write, append PATH: scratchpad"}
    schema = {"type": "object", "properties": {"command": TEXT}}
    assert with_scratchpad.tools("responses") == [{"type": "function", **about, "parameters": schema, "strict": False}]
    assert with_scratchpad.tools("anthropic") == [{**about, "input_schema": schema}]
    schema = {"type": "object", "properties": {"text": TEXT, "append": {"type": "boolean"}}, "required": ["text"]}
    assert with_scratchpad.tools("mcp")[:1] == [
        {
            "name": "working_memory_update",
            "description": "Write your scratchpad, shown as working_memory: notes for this task. Replaces the text "
            "unless append.",
            "title": "Update the scratchpad",
            "inputSchema": schema,
            "outputSchema": {"type": "object", "properties": {"changed": {"type": "boolean"}}, "required": ["changed"]},
            "annotations": {
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": False,
                "openWorldHint": False,
            },
        }
    ]


def test_mcp_schemas_describe_parameters(session: Session) -> None:
    """They are not in our prompts, so their length costs nothing there."""
    tools = {tool["name"]: tool for tool in session.tools("mcp")}
    described = {
        name: {
            key: one["description"] for key, one in tool["inputSchema"]["properties"].items() if "description" in one
        }
        for name, tool in tools.items()
    }
    day = "A date like 2026-01-31, or a time."
    assert {name: words for name, words in described.items() if words} == {
        "memory_search": {
            "limit": "Default: 10.",
            "since": day,
            "until": day,
            "as_of": "Only what was known and valid on this date.",
        },
        "memory_read": {"path": "Also MEMORY.md: what is known about the user."},
        "memory_write": {"section": "A heading of the page.", "append": "Add to the existing text."},
        "compact_history": {
            "keep_recent": "Turns to keep.",
            "archive_to": "A page of archive/; by default a new one.",
        },
        "working_memory_observe": {"result": "The tool's output, JSON or text, unchanged."},
    }
    kinds = tools["memory_search"]["inputSchema"]["properties"]["kinds"]
    assert kinds == {"type": "array", "items": {"type": "string", "enum": list(KINDS)}}
    assert tools["working_memory_observe"]["description"] == (
        "Report the result of another tool that created, changed or found something, so that memory and "
        "resolve_reference know it."
    )
    assert tools["working_memory_observe"]["inputSchema"]["required"] == ["tool", "result"]
