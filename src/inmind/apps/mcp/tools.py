"""Memory's tools as MCP has them: with the handles of a stateless protocol, and answers for models and for programs.

The tools are those of the library's one table, but for the one that compacts a conversation: these are kept by the
client. Beside its own arguments each takes the session that it is about, and its resource where all are open. Where no
connection outlasts a call, those that can overwrite something take what the caller has `seen` of it; otherwise we
remember that by ourselves, and nobody has to hand anything back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from mcp_types import CallToolResult, TextContent, Tool

from inmind.core.frozen import frozen
from inmind.core.text import inert
from inmind.errors import InmindError, InvalidInput
from inmind.memory.session_opener import default_layers
from inmind.session.tools.base import ToolResult
from inmind.session.tools.registry import TOOLS, tool_schemas

WITHIN = "within"
"""What the filter of a search by session is called here, where `session` says whose search it is."""

_NAMES = {"type": "object", "additionalProperties": {"type": "string"}}
_SESSION = {"type": "string", "description": "Which session; by default this project's."}
_RESOURCE = {"type": "string", "description": "Whose a new session is."}
_SEEN = {**_NAMES, "description": "What you overwrite, as `seen` of the last answer about it says."}
_WITHIN = {"type": "string", "description": "Only what was said in this session."}

_HANDLES = frozenset({"session", "resource", "seen"})

_OVERWRITE = frozenset(tool.wire_name for tool in TOOLS if tool.overwrites)
_SHOW = frozenset(tool.wire_name for tool in TOOLS if tool.shows_pages)
_ELSEWHERE = frozenset({"compact_history"})
"""About the conversation, which is the client's."""


@frozen(kw_only=True)
class Asked:
    """A call of a tool, with its handles apart from its arguments."""

    tool: str
    arguments: Mapping[str, Any]
    session: str
    resource: str
    within: str
    """The session that a search is kept to."""
    seen: Mapping[str, str]
    begins: bool
    """It may begin a session that nobody knows yet."""


def tools(*, remembered: bool, everybody: bool) -> tuple[Tool, ...]:
    """`remembered`: we know what the caller has seen; `everybody`: all resources are open."""
    ours = (tool for tool in tool_schemas(default_layers(), "mcp") if tool["name"] not in _ELSEWHERE)
    return tuple(Tool.model_validate(_with_handles(tool, remembered=remembered, everybody=everybody)) for tool in ours)


def read_call(tool: Tool, given: Mapping[str, Any]) -> Asked:
    """A call, its handles checked; its arguments are the tool's own to check."""
    handles = _HANDLES | ({WITHIN} & set(tool.input_schema["properties"]))
    session, resource = _name(given, "session"), _name(given, "resource")
    reads_only = tool.annotations is not None and tool.annotations.read_only_hint is True
    return Asked(
        tool=tool.name,
        arguments={key: value for key, value in given.items() if key not in handles},
        session=session,
        resource=resource,
        within=_name(given, WITHIN) if WITHIN in handles else "",
        seen=_seen(given),
        begins=not reads_only or not session,
    )


def answered(called: ToolResult, *, remembered: bool) -> CallToolResult:
    """What a tool has come to. `remembered`: we know what this caller has seen, so the model need not be told."""
    seen = dict(called.seen)
    said = called.text
    if called.error and called.code:
        said = f"{called.code}: {said}"
    if seen and not remembered:
        said = f"{said}\n[seen: {json.dumps(seen, ensure_ascii=False)}]"
    content = None if called.error else {**called.content, **({"seen": seen} if seen else {})}
    return CallToolResult(
        content=[TextContent(type="text", text=said)], structured_content=content, is_error=called.error
    )


def refused(error: InmindError) -> CallToolResult:
    """What the library refused: the model can read it, and go on."""
    return CallToolResult(content=[TextContent(type="text", text=told(error))], is_error=True)


def told(error: InmindError) -> str:
    """An error as it may stand in a prompt: it has names in it that others have chosen."""
    return inert(f"{error.code}: {error}")


def _with_handles(tool: Mapping[str, Any], *, remembered: bool, everybody: bool) -> dict[str, Any]:
    taken, name = dict(tool["inputSchema"]["properties"]), tool["name"]
    if "session" in taken:
        del taken["session"]
        taken[WITHIN] = _WITHIN
    if name in _OVERWRITE and not remembered:
        taken["seen"] = _SEEN
    taken["session"] = _SESSION
    if everybody:
        taken["resource"] = _RESOURCE
    told = tool["outputSchema"]["properties"] | ({"seen": _NAMES} if name in _SHOW else {})
    return {
        **tool,
        "inputSchema": {**tool["inputSchema"], "properties": taken},
        "outputSchema": {**tool["outputSchema"], "properties": told},
    }


def _name(given: Mapping[str, Any], field: str) -> str:
    """A handle; models fill in an empty text where they mean none."""
    value = given.get(field) or ""
    if not isinstance(value, str):
        raise InvalidInput(field=field, value=value, expected="a name")
    return value


def _seen(given: Mapping[str, Any]) -> Mapping[str, str]:
    value = cast(Mapping[str, Any], given.get("seen") or {})
    if not isinstance(value, Mapping) or not all(isinstance(one, str) for one in value.values()):  # pyright: ignore[reportUnnecessaryIsInstance] -- from outside
        raise InvalidInput(field="seen", value=value, expected="`seen` of an earlier answer")
    return value
