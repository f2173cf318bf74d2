"""Memory tools by name: schemas for providers, routing of calls, and execution.

An error in a call becomes the call's answer, so that the agent can continue.

In a prompt, one tool stands for all of them, working_memory:

    {"command": "search refund of Mei"}
    {"command": "write overview.md Known facts\\n- the refund was paid"}
    {"command": "read archive/0001-x.md 401"}

Tool schemas come first in every request, so those of all memory tools would cost more than the rest of memory. A call
of this one is translated to a call of the tool that its command names; every tool also runs under its own name, and MCP
declares them separately. The text of a page may also be the argument `text`, which is not declared because it would
cost tokens in every request; so may all arguments of the named tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from inmind.core.json import is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Message, Opaque
from inmind.core.text import escape_markup
from inmind.errors import InmindError, InvalidInput, NotFound
from inmind.prompt.ingest import tool_names
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH
from inmind.prompt.templates import COMMAND_TOOL
from inmind.session.tools.base import TEXT, MemoryTool, ToolAnswer, ToolContext, ToolDeclaration, object_schema
from inmind.session.tools.table import TOOLS


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
    return {
        "name": tool.wire_name,
        "title": tool.title,
        "description": declaration.description,
        "inputSchema": dict(declaration.parameters),
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


Arguments = dict[str, Any]


def _text_command(parameter: str) -> Callable[[str, Arguments], Arguments]:
    """Return the translation of a command that takes a text, after it or as `text`."""

    def translate(words: str, given: Arguments) -> Arguments:
        text = given.pop("text", "")
        if not isinstance(text, str):
            return {**given, parameter: text}
        return {**_named(**{parameter: " ".join(filter(None, (words, text)))}), **given}

    return translate


def _read(words: str, given: Arguments) -> Arguments:
    path, lines = _split_path(words)
    return {**_named(path=path), **_line_numbers(lines), **given}


def _write(words: str, given: Arguments) -> Arguments:
    """The text is `text`, else the lines after the first one, else the words after the path.

    In the first two cases the words after the path are the section.
    """
    line, has_lines, lines = words.partition("\n")
    path, rest = _split_path(line)
    text = {"text": lines} if has_lines else {}
    section_or_text = "section" if has_lines or "text" in given else "text"
    return {**_named(path=path, **{section_or_text: rest}), **text, **given}


def _split_path(words: str) -> tuple[str, str]:
    """The path and the words after it. A path that ends in .md may have spaces."""
    first, _, rest = words.partition(" ")
    if not first.endswith(".md") and first.startswith(("detail/", "archive/")) and ".md" in rest:
        name, _, rest = rest.partition(".md")
        first = f"{first} {name}.md"
    return first, rest.strip()


def _compact(words: str, given: Arguments) -> Arguments:
    target, _, number = f"{words} {given.pop('text', None) or ''}".strip().partition(" ")
    return {"target": target or "all", **_named(keep_recent=number.strip()), **given}


def _line_numbers(words: str) -> Arguments:
    return dict(zip(("from_line", "to_line"), re.findall(r"[0-9]+", words)[:2], strict=False))


def _named(**values: str) -> Arguments:
    return {name: value for name, value in values.items() if value}


COMMANDS: Mapping[str, tuple[str, Callable[[str, Arguments], Arguments]]] = {
    "note": ("working_memory_note", _text_command("note")),
    "search": ("memory_search", _text_command("query")),
    "resolve": ("resolve_reference", _text_command("text")),
    "read": ("memory_read", _read),
    "write": ("memory_write", _write),
    "append": ("memory_write", lambda words, given: {**_write(words, given), "append": True}),
    "list": ("memory_list", lambda words, given: {**_line_numbers(words), **given}),
    "update": ("working_memory_update", _text_command("text")),
    "compact": ("compact_history", _compact),
}
"""For each command its tool, and the translation of the words after it and the other arguments."""


def expand_command(name: str, arguments: Any) -> tuple[str, Any]:
    """Return the tool and arguments that a call of working_memory stands for.

    Other calls, and a call without a known command or what it needs, are returned unchanged.
    """
    if name != COMMAND_TOOL or not is_object(arguments):
        return name, arguments
    verb, words = _split_command(arguments)
    if verb not in COMMANDS:
        return name, arguments
    tool, translate = COMMANDS[verb]
    given = {key: value for key, value in arguments.items() if key != "command" and value is not None}
    given = {key: value for key, value in given.items() if value != "" or key == "text"}  # models fill unused arguments
    translated = translate(words.strip(), given)
    if verb in _NEEDS and not translated.keys() - {"append"}:
        return name, arguments
    if tool == "memory_write" and translated.get("path") == SCRATCHPAD_PATH:
        tool = "working_memory_update"
        del translated["path"]
    return tool, translated


_NEEDS = {
    **dict.fromkeys(("note", "search", "resolve", "update"), "TEXT"),
    **dict.fromkeys(("read", "write", "append"), "PATH"),
}
"""What follows a command that cannot stand alone."""


def _split_command(arguments: Mapping[str, Any]) -> tuple[str, str]:
    """The command in small letters, and the words after it."""
    command = arguments.get("command")
    verb, words = [*command.split(None, 1), "", ""][:2] if isinstance(command, str) else ("", "")
    return verb.lower(), words


def declare_command(offered: Collection[str]) -> ToolDeclaration | None:
    """Declare the commands of the offered tools; None if there are none."""
    commands = {command for command, (tool, _) in COMMANDS.items() if tool in offered}
    texts = [command for command in ("note", "search", "resolve") if command in commands]
    writes = ["write", "append"] if commands & {"write", "update"} else []
    pages = [*(["read"] if "read" in commands else []), *writes]
    section = " [SECTION]" if "write" in commands else ""
    named = [path for path, command in (("overview.md", "write"), (SCRATCHPAD_PATH, "update")) if command in commands]
    paths = f": {', '.join(named)}" if named else ""
    usages = [
        f"{', '.join(texts)} TEXT" if texts else "",
        f"{', '.join(pages)} PATH{section}{paths}" if pages else "",
        *(command for command in ("list", "compact") if command in commands),
    ]
    description = "; ".join(filter(None, usages))
    return ToolDeclaration(description, object_schema(command=TEXT)) if commands else None


def _refuse(_: ToolContext, __: Layer, arguments: Arguments) -> ToolAnswer:
    """A call with a known command and what it needs runs the tool of that command instead."""
    verb = _split_command(arguments)[0]
    expected = f"{verb} {_NEEDS[verb]}" if verb in _NEEDS else f"one of {', '.join(COMMANDS)}"
    raise InvalidInput(field="command", value=arguments.get("command"), expected=expected)


WORKING_MEMORY = MemoryTool(
    name=COMMAND_TOOL,
    title="Working memory",
    output=object_schema(),
    offered_by=lambda _: True,
    declare=lambda _: None,
    run=_refuse,
)

_BY_NAME = {
    name: tool for tool in (*TOOLS, WORKING_MEMORY) for name in (tool.name, tool.wire_name, tool.legacy_name) if name
}
