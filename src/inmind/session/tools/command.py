"""The tool working_memory: one declaration for all memory tools, in a prompt.

    {"command": "search refund of Mei"}
    {"command": "write overview.md Known facts\\n- the refund was paid"}
    {"command": "read archive/0001-x.md 401"}

Tool schemas come first in every request, so eight of them cost more than the rest of memory. This one is translated to
a call of the tool that its command names; every tool also runs under its own name, and MCP declares them separately.

The text of a page may also be the argument `text`, which is not declared because it would cost tokens in every request;
so may all arguments of the named tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from inmind.core.json import is_object
from inmind.errors import InvalidInput
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH
from inmind.prompt.templates import COMMAND_TOOL
from inmind.session.tools.base import TEXT, MemoryTool, ToolAnswer, ToolContext, ToolDeclaration, object_schema

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
