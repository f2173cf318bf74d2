"""Reads recordings from files; the format is detected by the content.

    a list of messages, or one message per line        OpenAI chat
    such lists in a list, or on lines                  one conversation each
    {messages, tools} alone, in a list, or on lines    OpenAI chat (also AgentDojo), or Anthropic
    {type, message, uuid, parentUuid} on lines         a session of Claude Code
    [{task_id, traj: [...]}]                           tau-bench
    {info, simulations: [{messages}]}                  tau2-bench
    [{traj: {history: [...]}}]                         SWE-agent
    [{chat: [{turns: [[...]]}]}]                       BEAM

Everything is validated here: a file is either replayed completely, or refused with the location and the expected value.
Omitted parts are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from inmind.apps.replay.chat import chat_messages
from inmind.apps.replay.claude_code import is_claude_code, parse_claude_code
from inmind.apps.replay.files import FileContent, LocatedValue, Recording, read_content
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire
from inmind.errors import InvalidInput

EXPECTED_FORMATS = (
    "messages: an OpenAI or Anthropic list, a Claude Code session, tau-bench, tau2-bench or SWE-agent runs, BEAM chats"
)

_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_NAMES = ("task_id", "user_task_id", "instance_id", "id", "name", "file")


def read_recordings(path: str, *, limit: int | None = None) -> list[Recording]:
    """The first `limit` recordings of a file; "-" is standard input."""
    return parse_recordings(read_content(path), limit=limit)


def parse_recordings(content: FileContent, *, limit: int | None = None) -> list[Recording]:
    recordings = _recordings(content, limit)
    if content.left_out:  # at the end of the file
        last = recordings.pop()
        recordings.append(replace(last, left_out={**last.left_out, **content.left_out}))
    return recordings


def _recordings(content: FileContent, limit: int | None) -> list[Recording]:
    values = content.values
    name = short_name(content.name)
    if is_claude_code(values):
        return [parse_claude_code(values, name)]
    if not content.by_line:
        (only,) = values
        if is_object(only.value) and is_list(only.value.get("simulations")):
            return _parse_tau2(only, name, limit)
        if is_list(only.value):
            values = _items(only)
    if not values or _is_message(values[0].value):
        return [_make_recording(LocatedValue({}, content.name), values, name)]
    return [
        _parse_case(located, name=_recording_name(name, number, located.value))
        for number, located in enumerate(values[:limit], start=1)
    ]


def _parse_case(located: LocatedValue, *, name: str) -> Recording:
    """One conversation with its metadata."""
    case = located.value
    if is_list(case):
        return _make_recording(LocatedValue({}, located.location), _items(located), name)
    for keys in (("messages",), ("traj",), ("traj", "history"), ("history",), ("chat",)):
        value = case
        for key in keys:
            value = value.get(key) if is_object(value) else None
        if is_list(value):
            messages = _flatten_messages(LocatedValue(value, f"{located.location}: {'.'.join(keys)}"))
            return _make_recording(located, list(messages), name)
    raise InvalidInput(field=located.location, value=case, expected=EXPECTED_FORMATS)


def _parse_tau2(whole: LocatedValue, name: str, limit: int | None) -> list[Recording]:
    """Simulations of a tau2-bench file, which share one policy."""
    info = whole.value.get("info")
    environment = info.get("environment_info") if is_object(info) else None
    around = environment if is_object(environment) else {}
    shared = {"system": around.get("policy"), "tools": around.get("tool_defs")}
    simulations = _items(LocatedValue(whole.value["simulations"], f"{whole.location}: simulations"))[:limit]
    return [
        _parse_case(
            LocatedValue({**shared, **one.value} if is_object(one.value) else one.value, one.location),
            name=_recording_name(name, n, one.value),
        )
        for n, one in enumerate(simulations, start=1)
    ]


def _make_recording(case: LocatedValue, messages: Sequence[LocatedValue], name: str) -> Recording:
    format = "anthropic" if _is_anthropic(case.value, messages) else "openai"
    fmt = FORMATS[format]
    system, tools = case.value.get("system"), _tools(case.value)
    if format == "anthropic":
        wires, left_out = [_anthropic_message(located) for located in messages], {}
    else:
        wires, left_out = chat_messages(messages)
        first = next((place for place, wire in enumerate(wires) if not fmt.is_system(wire)), len(wires))
        system_messages: list[Wire] = [{"role": "system", "content": system}] if system else []
        system, wires = [*system_messages, *wires[:first]] or None, wires[first:]
    fmt.check_system(system, field=f"{case.location}: system")
    for index, tool in enumerate(tools or ()):
        fmt.check_tool(tool, field=f"{case.location}: tools[{index}]")
    return Recording(name=name, format=format, messages=wires, system=system, tools=tools, left_out=left_out)


def _is_anthropic(case: dict[str, Any], messages: Sequence[LocatedValue]) -> bool:
    """Detect Anthropic messages by parts that only they have, or by a separate system prompt."""
    if any(is_object(tool) and "input_schema" in tool for tool in _tools(case) or ()):
        return True
    wires = [located.value for located in messages if is_object(located.value)]
    for wire in wires:
        content = wire.get("content")
        if is_list(content) and any(is_object(part) and part.get("type") in _ANTHROPIC_BLOCKS for part in content):
            return True
    chat = any("tool_calls" in wire or wire.get("role") not in ("user", "assistant") for wire in wires)
    return not chat and case.get("system") is not None


def _anthropic_message(located: LocatedValue) -> Wire:
    """Role and content only: the API returns other fields but does not accept them."""
    wire = located.value
    if is_object(wire):
        wire = {"role": wire.get("role"), "content": "" if wire.get("content") is None else wire["content"]}
    FORMATS["anthropic"].check(wire, field=located.location)
    return wire


def _tools(case: dict[str, Any]) -> list[Any] | None:
    tools, functions = case.get("tools"), case.get("functions")
    if is_list(tools) and tools:
        return tools
    return [{"type": "function", "function": function} for function in functions] if is_list(functions) else None


def _flatten_messages(located: LocatedValue) -> Iterator[LocatedValue]:
    """Messages of a list, also of lists of turns or batches."""
    for item in _items(located):
        turns = item.value.get("turns") if is_object(item.value) else None
        if is_list(turns):
            for turn in _items(LocatedValue(turns, f"{item.location}.turns")):
                yield from _items(turn) if is_list(turn.value) else [turn]
        else:
            yield item


def _items(located: LocatedValue) -> list[LocatedValue]:
    return [LocatedValue(item, f"{located.location}[{index}]") for index, item in enumerate(located.value)]


def _is_message(value: object) -> bool:
    return is_object(value) and "role" in value


def short_name(path: str) -> str:
    """File name without extensions for compression and JSON."""
    name = PurePath(path).name
    for ending in (".gz", ".zst", ".json", ".jsonl"):
        name = name.removesuffix(ending)
    return name


def _recording_name(file: str, number: int, case: object) -> str:
    """File name, number, and the recorder's name of the task.

    The number is needed because tasks can repeat.
    """
    task_name = next((case[key] for key in _NAMES if case.get(key) is not None), None) if is_object(case) else None
    return f"{file} #{number}" if task_name is None else f"{file} #{number} ({task_name})"
