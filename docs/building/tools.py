"""The reference of memory tools, and of the resources and prompts of the MCP server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docs.building.entry import prose
from inmind import default_layers
from inmind.apps.mcp import resources
from inmind.session.tools.registry import tool_schemas

HINTS = {
    "readOnlyHint": "reads only",
    "destructiveHint": "can overwrite",
    "idempotentHint": "idempotent",
    "openWorldHint": "uses the network",
}

OVER_MCP = (
    "Each tool also takes `session` and `resource`: the session of the call, and the resource of a new session. The "
    "session filter of a search is `within`. Tools that overwrite take `seen`, which is part of results with pages."
)


def tools_page() -> str:
    """Each memory tool with its arguments, then the resources and prompts of `inmind mcp`."""
    parts = ["# Tools", "The tools that a model is offered by the default layers of a session."]
    for tool in tool_schemas(default_layers(), "mcp"):
        parts += tool_entry(tool)
    parts += ["# Over MCP", OVER_MCP]
    attached = [(one.uri_template, one.description or "") for one in resources.list_templates()]
    parts.append(_table("Resource", [(resources.SESSIONS, "Every session of this home, as JSON."), *attached]))
    parts.append(_table("Prompt", [(one.name, one.description or "") for one in resources.list_prompts()]))
    return "\n\n".join(parts) + "\n"


def tool_entry(tool: Mapping[str, Any]) -> Iterator[str]:
    yield f"## `{tool['name']}`"
    yield prose(str(tool["description"]))
    if hints := [text for hint, text in HINTS.items() if tool.get("annotations", {}).get(hint)]:
        yield f"*{', '.join(hints).capitalize()}.*"
    properties: dict[str, Any] = tool["inputSchema"].get("properties", {})
    required = tool["inputSchema"].get("required", ())
    if properties:
        arguments = [
            (name, _kind(one) + (", required" if name in required else "")) for name, one in properties.items()
        ]
        yield _table("Argument", arguments)


def _kind(schema: Mapping[str, Any]) -> str:
    values = schema.get("enum") or schema.get("items", {}).get("enum")
    return ", ".join(f"`{value}`" for value in values) if values else str(schema.get("type", "any"))


def _table(head: str, rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join([f"| {head} | |", "| --- | --- |", *(f"| `{name}` | {prose(text)} |" for name, text in rows)])
