"""Memory tools by name: schemas for providers, routing of calls, and execution.

An error in a call becomes the call's answer, so that the agent can continue.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Message, Opaque
from inmind.core.text import escape_markup
from inmind.errors import InmindError, InvalidInput, NotFound
from inmind.prompt.ingest import tool_names
from inmind.prompt.layers.base import Layer
from inmind.session.tools.base import MemoryTool, ToolAnswer, ToolContext, ToolDeclaration
from inmind.session.tools.command import WORKING_MEMORY, declare_command, expand_command
from inmind.session.tools.table import TOOLS

_BY_NAME = {
    name: tool for tool in (*TOOLS, WORKING_MEMORY) for name in (tool.name, tool.wire_name, tool.legacy_name) if name
}


def tool_schemas(layers: Sequence[Layer], format: str) -> list[dict[str, Any]]:
    """Schemas of the tools that these layers offer, in a provider's format or for MCP.

    A provider's request declares one tool with commands, and the update of a scratchpad that has a schema. MCP clients
    load tools when they need them, and get each one.
    """
    if format not in _FORMATS:
        raise InvalidInput(field="format", value=format, expected=f"one of {', '.join(_FORMATS)}")
    offering = ((tool, _offering_layer(tool, layers)) for tool in TOOLS)
    offered = [(tool, one) for tool, layer in offering if layer is not None and (one := tool.declare(layer))]
    if format != "mcp":
        command = declare_command([tool.wire_name for tool, one in offered if not one.open])
        offered = [*(pair for pair in offered if pair[1].open), *([(WORKING_MEMORY, command)] if command else [])]
    return [_as_provider_tool(tool, declaration, format) for tool, declaration in offered]


def is_memory_tool(name: str) -> bool:
    return name in _BY_NAME


def route_call(
    name: str,
    host_tools: Sequence[Mapping[str, Any]] | None,
    tools_added: Callable[[], bool],
    *,
    layer_tools: Sequence[Mapping[str, Any]] = (),
    memory_tools: bool = True,
) -> Literal["host", "memory", "unknown"]:
    """Decide who answers a tool call. Names of the host's tools take precedence over memory's.

    Tools in `layer_tools`, offered by the host's layers, are the host's too.

    A name that is in none of these lists may still be a host tool. It is "unknown" only if the host passed a list of
    tools, all of them are plain functions, and no message added tools. `memory_tools`: whether this session has memory
    tools.
    """
    if name in tool_names(host_tools or ()):
        return "host"
    if memory_tools and is_memory_tool(name):
        return "memory"
    if name in tool_names(layer_tools):
        return "host"
    return "unknown" if host_tools is not None and all(map(_is_function, host_tools)) and not tools_added() else "host"


def adds_tools(messages: Iterable[Message]) -> bool:
    """True if messages of the conversation add tools to those passed with the request."""
    parts = (part for message in messages for part in message.parts)
    return any(isinstance(part, Opaque) and part.kind in _TOOL_ADDING_PARTS for part in parts)


def find_tool(name: str, layers: Sequence[Layer]) -> tuple[MemoryTool, Layer]:
    """Return a tool by any of its names, and the layer that offers it. Raises NotFound."""
    tool = _BY_NAME.get(name)
    if tool is not None and (layer := _offering_layer(tool, layers)) is not None:
        return tool, layer
    known = ", ".join(one.wire_name for one in TOOLS if _offering_layer(one, layers) is not None)
    hint = f"available: {known}" if known else "this session has no memory tools"
    raise NotFound(what="memory tool", name=name, hint=hint)


def run_tool(call: Call, context: ToolContext) -> ToolAnswer:
    """Run one call of a memory tool. An error becomes the answer, and nothing is changed."""
    name, tool = call.name, _BY_NAME[call.name]
    try:
        name, arguments = expand_command(name, _parse_arguments(call))
        tool = _BY_NAME[name]
        layer = _offering_layer(tool, context.layers)
        if layer is None:
            raise NotFound(what="memory tool", name=name, hint="not offered in this session")
        declaration = None if name == tool.legacy_name else tool.declare(layer)
        answer = tool.run(context, layer, _known_arguments(arguments, declaration))
    except InmindError as error:
        message = str(error) if tool.read_only else f"Nothing was changed. {error}"
        answer = ToolAnswer(text=message, error=True, code=error.code)
    if answer.error and name == tool.legacy_name:
        answer = ToolAnswer(text=f"Dropped. {answer.text}", diagnostic=f"{name}: {answer.text}")
    text = answer.text if answer.tagged else escape_markup(answer.text)
    return replace(answer, text=text, content=_inert_values(answer.content))


def _inert_values(value: Any) -> Any:
    """Make all strings inert: a client may show this content to its model instead of the text."""
    if isinstance(value, str):
        return escape_markup(value)
    if isinstance(value, Mapping):
        return {key: _inert_values(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType] -- JSON of our own
    return [_inert_values(one) for one in value] if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType]


CUT_OFF_ANSWER = ToolAnswer(text="Nothing was changed. The reply was cut off: call again.", error=True)
"""The answer to a call in a reply that the provider cut off. The call may be incomplete."""


def unknown_tool_answer(call: Call, known: Sequence[str]) -> ToolAnswer:
    """The answer to a call of a tool that does not exist."""
    tool_list = f"There are: {', '.join(known)}." if known else "There are none."
    return ToolAnswer(text=f"There is no tool named {call.name}. {tool_list}", error=True)


def _as_provider_tool(tool: MemoryTool, declaration: ToolDeclaration, format: str) -> dict[str, Any]:
    if format in FORMATS:
        return FORMATS[format].declare_tool(tool.wire_name, declaration.description, dict(declaration.parameters))
    fields = declaration.parameters["properties"]
    described = {name: {**schema, **tool.mcp_parameters.get(name, {})} for name, schema in fields.items()}
    return {
        "name": tool.wire_name,
        "title": tool.title,
        "description": declaration.description,
        "inputSchema": {**declaration.parameters, "properties": described},
        "outputSchema": dict(tool.output),
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.overwrites,
            "idempotentHint": tool.read_only,
            "openWorldHint": False,
        },
    }


_FORMATS = (*FORMATS, "mcp")
_TOOL_ADDING_PARTS = frozenset({"additional_tools", "tool_addition"})


def _is_function(tool: Mapping[str, Any]) -> bool:
    """True if a tool definition, in any provider's format, is a single named function."""
    return tool.get("type", "function") in ("function", "custom") and bool(tool_names([tool]))


def _offering_layer(tool: MemoryTool, layers: Sequence[Layer]) -> Layer | None:
    return next((layer for layer in layers if tool.offered_by(layer)), None)


def _parse_arguments(call: Call) -> dict[str, Any]:
    """The arguments as an object. Models often write invalid JSON."""
    try:
        parsed: Any = json.loads(call.arguments or "{}")
        if isinstance(parsed, str):  # some models encode the object as a string
            parsed = json.loads(parsed)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(field="arguments", value=call.arguments, expected=f"a JSON object ({error})") from error
    if not isinstance(parsed, dict):
        raise InvalidInput(field="arguments", value=parsed, expected="a JSON object")
    return parsed  # pyright: ignore[reportUnknownVariableType] -- keys of a JSON object are texts


def _known_arguments(arguments: dict[str, Any], declaration: ToolDeclaration | None) -> dict[str, Any]:
    """Arguments that the tool declares. An unknown name raises InvalidInput.

    A misspelt name must not be ignored: with `apend` dropped, a write would overwrite instead of append. A null
    is ignored, because some models fill unused parameters with it.
    """
    if declaration is None or declaration.open:
        return arguments
    known = declaration.parameters["properties"]
    for name, value in arguments.items():
        if name not in known and value is not None:
            raise InvalidInput(field="arguments", value=name, expected=", ".join(known) or "none")
    return {name: value for name, value in arguments.items() if name in known}
