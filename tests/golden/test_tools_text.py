"""The exact schemas of the memory tools. They are in every request."""

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


def test_the_default_tools(session: Session) -> None:
    assert session.tools("openai") == [
        tool(
            "working_memory_update",
            "Write your scratchpad, shown as working_memory: notes for this task. Replaces the text unless append.",
            {"type": "object", "properties": {"text": TEXT, "append": {"type": "boolean"}}, "required": ["text"]},
        ),
        tool(
            "working_memory_note",
            "Save a fact, preference, decision or deadline for later conversations. Importance is 0 to 1.",
            {"type": "object", "properties": {"note": TEXT, "importance": {"type": "number"}}, "required": ["note"]},
        ),
        tool(
            "memory_search",
            "Search messages, notes and results of this and earlier sessions. Dates: 2026-01-31.",
            {
                "type": "object",
                "properties": {
                    "query": TEXT,
                    "limit": {"type": "integer"},
                    "kinds": {"type": "array", "items": TEXT},
                    "sources": {"type": "array", "items": {"type": "string", "enum": ["memory", "sessions"]}},
                    "since": TEXT,
                    "until": TEXT,
                    "session": TEXT,
                    "as_of": TEXT,
                },
                "required": ["query"],
            },
        ),
        tool(
            "memory_read",
            "Read overview.md, detail/<name>, archive/<name>, memory/scratch.md or scratchpad.",
            {
                "type": "object",
                "properties": {"path": TEXT, "from_line": {"type": "integer"}, "to_line": {"type": "integer"}},
                "required": ["path"],
            },
        ),
        tool(
            "memory_write",
            "Write overview.md, shown in every request, or detail/<name> and archive/<name>, which are not. With a "
            "section, only the text under that heading.",
            {
                "type": "object",
                "properties": {"path": TEXT, "text": TEXT, "section": TEXT, "append": {"type": "boolean"}},
                "required": ["path", "text"],
            },
        ),
        tool(
            "memory_list",
            "List what memory_read can read.",
            {"type": "object", "properties": {"from_line": {"type": "integer"}}},
        ),
        tool(
            "compact_history",
            "Remove old conversation, tool outputs (tools) or both (all) from your context. All of it is archived, and "
            "memory_read reads it.",
            {
                "type": "object",
                "properties": {
                    "target": {"type": "string", "enum": ["conversation", "tools", "all"]},
                    "strategy": {"type": "string", "enum": ["archive", "summarize"]},
                    "keep_recent": {"type": "integer"},
                    "archive_to": TEXT,
                },
                "required": ["target"],
            },
        ),
        tool(
            "resolve_reference",
            'Find which entity the user means ("that page", "the other one"), even if it is no longer listed.',
            {"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
        ),
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
    name = "working_memory_update"
    description = (
        "Write your scratchpad, shown as working_memory: notes for this task. Replaces the text unless append."
    )
    schema = {"type": "object", "properties": {"text": TEXT, "append": {"type": "boolean"}}, "required": ["text"]}
    about = {"name": name, "description": description}
    assert with_scratchpad.tools("responses")[:1] == [
        {"type": "function", **about, "parameters": schema, "strict": False}
    ]
    assert with_scratchpad.tools("anthropic")[:1] == [{**about, "input_schema": schema}]
    assert with_scratchpad.tools("mcp")[:1] == [
        {
            **about,
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
