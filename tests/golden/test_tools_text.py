"""The exact declarations by which a model is told what it may do with its memory. They stand in every request."""

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


def test_the_tools_of_a_session_that_names_no_layers(session: Session) -> None:
    assert session.tools("openai") == [
        tool(
            "working_memory_update",
            "Write your scratchpad, shown as working_memory: what to keep in mind for this task. Replaces, unless "
            "append.",
            {"type": "object", "properties": {"text": TEXT, "append": {"type": "boolean"}}, "required": ["text"]},
        ),
        tool(
            "working_memory_note",
            "Note a fact, preference, decision or deadline that must outlast this conversation. Importance is 0 to 1.",
            {"type": "object", "properties": {"note": TEXT, "importance": {"type": "number"}}, "required": ["note"]},
        ),
        tool(
            "memory_search",
            "Search all that was said, noted or seen, in this and earlier sessions. Days are 2026-01-31.",
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
            "section, only what stands under that heading.",
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
            "Take old conversation, tool outputs (tools) or both (all) out of what you are sent. All of it is "
            "archived, and memory_read reads it.",
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
            'Find which thing a person means ("that page", "the other one"), also one that is no longer listed.',
            {"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
        ),
    ]


def test_a_scratchpad_with_a_schema_is_updated_by_any_of_its_fields(memory: Memory) -> None:
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
            "Update your scratchpad, shown as working_memory. Send only what changes: objects merge, others replace.",
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


def test_the_shape_of_each_provider(memory: Memory) -> None:
    """MCP's is what a server of it would list."""
    session = memory.session("pages", layers=[])
    assert [session.tools(format) for format in ("openai", "responses", "anthropic")] == [[], [], []]
    noting = memory.session("noting", layers=[ScratchpadLayer()])
    name = "working_memory_update"
    description = (
        "Write your scratchpad, shown as working_memory: what to keep in mind for this task. Replaces, unless append."
    )
    schema = {"type": "object", "properties": {"text": TEXT, "append": {"type": "boolean"}}, "required": ["text"]}
    about = {"name": name, "description": description}
    assert noting.tools("responses")[:1] == [{"type": "function", **about, "parameters": schema, "strict": False}]
    assert noting.tools("anthropic")[:1] == [{**about, "input_schema": schema}]
    assert noting.tools("mcp")[:1] == [
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


def test_more_is_said_of_parameters_where_no_prompt_of_ours_pays_for_it(session: Session) -> None:
    """And where nobody is sent a prompt of ours, what other tools do has to be told."""
    said = {tool["name"]: tool for tool in session.tools("mcp")}
    described = {
        name: {
            key: one["description"] for key, one in tool["inputSchema"]["properties"].items() if "description" in one
        }
        for name, tool in said.items()
    }
    day = "A day, as 2026-01-31, or a time."
    assert {name: words for name, words in described.items() if words} == {
        "memory_search": {
            "limit": "10, if nothing is said.",
            "since": day,
            "until": day,
            "as_of": "What was known on that day, and held then.",
        },
        "memory_read": {"path": "Also MEMORY.md: what is known of whom you work for."},
        "memory_write": {"section": "A heading of the page.", "append": "Add to what is there."},
        "compact_history": {
            "keep_recent": "Turns that stay.",
            "archive_to": "A page of archive/; by default a new one.",
        },
        "working_memory_observe": {"result": "What it answered: JSON or text, as it is."},
    }
    kinds = said["memory_search"]["inputSchema"]["properties"]["kinds"]
    assert kinds == {"type": "array", "items": {"type": "string", "enum": list(KINDS)}}
    assert said["working_memory_observe"]["description"] == (
        "Tell what another tool of yours did, where it made, changed or found things that will be spoken of: they come "
        "to mind, and resolve_reference knows them."
    )
    assert said["working_memory_observe"]["inputSchema"]["required"] == ["tool", "result"]
