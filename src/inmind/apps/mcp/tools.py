"""Memory tools as MCP tools, with handles for a stateless protocol.

The tools are those of the library's registry, except compaction: the conversation belongs to the client. Each tool also
takes its session, and its resource if all are open. Without connection state, tools that overwrite something take what
the caller has `seen`; otherwise the server tracks that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from mcp_types import CallToolResult, TextContent, Tool

from inmind.core.frozen import frozen
from inmind.core.text import escape_markup
from inmind.errors import InmindError, InvalidInput
from inmind.memory.session_opener import default_layers
from inmind.session.tools.base import ToolResult
from inmind.session.tools.registry import tool_schemas
from inmind.session.tools.table import TOOLS

WITHIN = "within"
"""Name of the session filter of a search here, because `session` names the caller's session."""

_NAMES = {"type": "object", "additionalProperties": {"type": "string"}}
_SESSION = {"type": "string", "description": "Session; default: this project's."}
_RESOURCE = {"type": "string", "description": "Owner of a new session."}
_SEEN = {**_NAMES, "description": "`seen` of the last answer about what you overwrite."}
_WITHIN = {"type": "string", "description": "Only from this session."}

_HANDLES = frozenset({"session", "resource", "seen"})

_OVERWRITING = frozenset(tool.wire_name for tool in TOOLS if tool.overwrites)
_SHOWING_PAGES = frozenset(tool.wire_name for tool in TOOLS if tool.shows_pages)
_EXCLUDED = frozenset({"compact_history"})
"""Tools about the conversation, which belongs to the client."""


@frozen(kw_only=True)
class ParsedCall:
    """A tool call, with the handles separated from the arguments."""

    tool: str
    arguments: Mapping[str, Any]
    session: str
    resource: str
    search_session: str
    """Session that a search is limited to."""
    seen: Mapping[str, str]
    may_create: bool
    """The call may create an unknown session."""


def mcp_tools(*, tracked: bool, all_resources: bool) -> tuple[Tool, ...]:
    """All tools.

    `tracked`: the server tracks what the caller has seen. `all_resources`: all are open.
    """
    schemas = (tool for tool in tool_schemas(default_layers(), "mcp") if tool["name"] not in _EXCLUDED)
    return tuple(
        Tool.model_validate(_with_handles(tool, tracked=tracked, all_resources=all_resources)) for tool in schemas
    )


def parse_call(tool: Tool, arguments: Mapping[str, Any]) -> ParsedCall:
    """Separate and check the handles; the tool checks its arguments."""
    handles = _HANDLES | ({WITHIN} & set(tool.input_schema["properties"]))
    session, resource = _name_handle(arguments, "session"), _name_handle(arguments, "resource")
    reads_only = tool.annotations is not None and tool.annotations.read_only_hint is True
    return ParsedCall(
        tool=tool.name,
        arguments={key: value for key, value in arguments.items() if key not in handles},
        session=session,
        resource=resource,
        search_session=_name_handle(arguments, WITHIN) if WITHIN in handles else "",
        seen=_seen_handle(arguments),
        may_create=not reads_only or not session,
    )


def tool_result(result: ToolResult, *, tracked: bool) -> CallToolResult:
    """Result of a tool. If `tracked`, `seen` is not printed for the model."""
    seen = dict(result.seen)
    text = result.text
    if result.error and result.code:
        text = f"{result.code}: {text}"
    if seen and not tracked:
        text = f"{text}\n[seen: {json.dumps(seen, ensure_ascii=False)}]"
    content = None if result.error else {**result.content, **({"seen": seen} if seen else {})}
    return CallToolResult(
        content=[TextContent(type="text", text=text)], structured_content=content, is_error=result.error
    )


def error_result(error: InmindError) -> CallToolResult:
    """An error as a tool result, so that the model can read it and continue."""
    return CallToolResult(content=[TextContent(type="text", text=error_text(error))], is_error=True)


def error_text(error: InmindError) -> str:
    """Text of an error, made inert: it may contain names chosen by others."""
    return escape_markup(f"{error.code}: {error}")


def _with_handles(tool: Mapping[str, Any], *, tracked: bool, all_resources: bool) -> dict[str, Any]:
    input_properties, name = dict(tool["inputSchema"]["properties"]), tool["name"]
    if "session" in input_properties:
        del input_properties["session"]
        input_properties[WITHIN] = _WITHIN
    if name in _OVERWRITING and not tracked:
        input_properties["seen"] = _SEEN
    input_properties["session"] = _SESSION
    if all_resources:
        input_properties["resource"] = _RESOURCE
    output_properties = tool["outputSchema"]["properties"] | ({"seen": _NAMES} if name in _SHOWING_PAGES else {})
    return {
        **tool,
        "inputSchema": {**tool["inputSchema"], "properties": input_properties},
        "outputSchema": {**tool["outputSchema"], "properties": output_properties},
    }


def _name_handle(arguments: Mapping[str, Any], field: str) -> str:
    """A handle; models pass an empty text for none."""
    value = arguments.get(field) or ""
    if not isinstance(value, str):
        raise InvalidInput(field=field, value=value, expected="a name")
    return value


def _seen_handle(arguments: Mapping[str, Any]) -> Mapping[str, str]:
    value = cast(Mapping[str, Any], arguments.get("seen") or {})
    if not isinstance(value, Mapping) or not all(isinstance(version, str) for version in value.values()):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise InvalidInput(field="seen", value=value, expected="`seen` of an earlier answer")
    return value
