"""Recordings out of files, in whichever form they were recorded; the form is told by the content.

    a list of messages, or a message a line            OpenAI chat
    such lists in a list, or on lines                  a conversation each
    {messages, tools} alone, in a list, or on lines    OpenAI chat (AgentDojo's too), or Anthropic where it says so
    {type, message, uuid, parentUuid} on lines         a session of Claude Code
    [{task_id, traj: [...]}]                           tau-bench
    {info, simulations: [{messages}]}                  tau2-bench
    [{traj: {history: [...]}}]                         SWE-agent
    [{chat: [{turns: [[...]]}]}]                       BEAM

Everything is checked here, so that a file is either played whole or refused with the place and what was expected;
what is left out is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from inmind.apps.replay.chat import chat_messages
from inmind.apps.replay.claude_code import claude_code, is_claude_code
from inmind.apps.replay.files import Content, Placed, content_of
from inmind.apps.replay.recording import Recording
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire
from inmind.errors import InvalidInput

EXPECTED = (
    "messages: an OpenAI or Anthropic list, a Claude Code session, tau-bench, tau2-bench or SWE-agent runs, BEAM chats"
)

_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_NAMES = ("task_id", "user_task_id", "instance_id", "id", "name", "file")


def read(path: str, *, limit: int | None = None) -> list[Recording]:
    """The recordings in a file, the first `limit` of them; "-" is standard input."""
    return recordings_in(content_of(path), limit=limit)


def recordings_in(content: Content, *, limit: int | None = None) -> list[Recording]:
    recordings = _recordings(content, limit)
    if content.left_out:  # at the end of the file
        last = recordings.pop()
        recordings.append(replace(last, left_out={**last.left_out, **content.left_out}))
    return recordings


def _recordings(content: Content, limit: int | None) -> list[Recording]:
    values = content.values
    name = short(content.name)
    if is_claude_code(values):
        return [claude_code(values, name)]
    if not content.by_line:
        (only,) = values
        if is_object(only.value) and is_list(only.value.get("simulations")):
            return _tau2(only, name, limit)
        if is_list(only.value):
            values = _items(only)
    if not values or _is_message(values[0].value):
        return [_conversation(Placed({}, content.name), values, name)]
    return [
        _case(placed, name=_named(name, number, placed.value)) for number, placed in enumerate(values[:limit], start=1)
    ]


def _case(placed: Placed, *, name: str) -> Recording:
    """One conversation with what was recorded around it."""
    case = placed.value
    if is_list(case):
        return _conversation(Placed({}, placed.place), _items(placed), name)
    for keys in (("messages",), ("traj",), ("traj", "history"), ("history",), ("chat",)):
        found = case
        for key in keys:
            found = found.get(key) if is_object(found) else None
        if is_list(found):
            said = _said(Placed(found, f"{placed.place}: {'.'.join(keys)}"))
            return _conversation(placed, list(said), name)
    raise InvalidInput(field=placed.place, value=case, expected=EXPECTED)


def _tau2(whole: Placed, name: str, limit: int | None) -> list[Recording]:
    """Its simulations share the agent's policy, which is recorded once, beside them."""
    info = whole.value.get("info")
    environment = info.get("environment_info") if is_object(info) else None
    around = environment if is_object(environment) else {}
    shared = {"system": around.get("policy"), "tools": around.get("tool_defs")}
    simulations = _items(Placed(whole.value["simulations"], f"{whole.place}: simulations"))[:limit]
    return [
        _case(
            Placed({**shared, **one.value} if is_object(one.value) else one.value, one.place),
            name=_named(name, n, one.value),
        )
        for n, one in enumerate(simulations, start=1)
    ]


def _conversation(case: Placed, messages: Sequence[Placed], name: str) -> Recording:
    format = "anthropic" if _speaks_anthropic(case.value, messages) else "openai"
    spoken = FORMATS[format]
    system, tools = case.value.get("system"), _tools(case.value)
    if format == "anthropic":
        wires, left_out = [_anthropic(placed) for placed in messages], {}
    else:
        wires, left_out = chat_messages(messages)
        lead = next((place for place, wire in enumerate(wires) if not spoken.is_system(wire)), len(wires))
        given: list[Wire] = [{"role": "system", "content": system}] if system else []
        system, wires = [*given, *wires[:lead]] or None, wires[lead:]
    spoken.check_system(system, field=f"{case.place}: system")
    for index, tool in enumerate(tools or ()):
        spoken.check_tool(tool, field=f"{case.place}: tools[{index}]")
    return Recording(name=name, format=format, messages=wires, system=system, tools=tools, left_out=left_out)


def _speaks_anthropic(case: dict[str, Any], messages: Sequence[Placed]) -> bool:
    """By what only one of the two has; a plain conversation with the system prompt beside it is Anthropic's too."""
    if any(is_object(tool) and "input_schema" in tool for tool in _tools(case) or ()):
        return True
    wires = [placed.value for placed in messages if is_object(placed.value)]
    for wire in wires:
        content = wire.get("content")
        if is_list(content) and any(is_object(part) and part.get("type") in _ANTHROPIC_BLOCKS for part in content):
            return True
    chat = any("tool_calls" in wire or wire.get("role") not in ("user", "assistant") for wire in wires)
    return not chat and case.get("system") is not None


def _anthropic(placed: Placed) -> Wire:
    """Role and content: the rest is what the API says about a message and does not take back."""
    wire = placed.value
    if is_object(wire):
        wire = {"role": wire.get("role"), "content": "" if wire.get("content") is None else wire["content"]}
    FORMATS["anthropic"].check(wire, field=placed.place)
    return wire


def _tools(case: dict[str, Any]) -> list[Any] | None:
    tools, functions = case.get("tools"), case.get("functions")
    if is_list(tools) and tools:
        return tools
    return [{"type": "function", "function": function} for function in functions] if is_list(functions) else None


def _said(placed: Placed) -> Iterator[Placed]:
    """The messages of a list, also where they stand in turns, and those in batches."""
    for item in _items(placed):
        turns = item.value.get("turns") if is_object(item.value) else None
        if is_list(turns):
            for turn in _items(Placed(turns, f"{item.place}.turns")):
                yield from _items(turn) if is_list(turn.value) else [turn]
        else:
            yield item


def _items(placed: Placed) -> list[Placed]:
    return [Placed(item, f"{placed.place}[{index}]") for index, item in enumerate(placed.value)]


def _is_message(value: object) -> bool:
    return is_object(value) and "role" in value


def short(path: str) -> str:
    """A file's name without what only says how it is packed."""
    name = PurePath(path).name
    for ending in (".gz", ".zst", ".json", ".jsonl"):
        name = name.removesuffix(ending)
    return name


def _named(file: str, number: int, case: object) -> str:
    """By its number, since a task is often played more than once, and by what the recorder called it."""
    own = next((case[key] for key in _NAMES if case.get(key) is not None), None) if is_object(case) else None
    return f"{file} #{number}" if own is None else f"{file} #{number} ({own})"
