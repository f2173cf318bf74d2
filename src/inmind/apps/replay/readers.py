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
Omitted parts are counted. Recorders of OpenAI chats differ: flattened calls, arguments as objects, other names of
fields, and extra fields that a provider would reject.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import PurePath
from typing import Any

from inmind.apps.replay.claude_code import is_claude_code, parse_claude_code
from inmind.apps.replay.files import FileContent, LocatedValue, Recording, read_content
from inmind.core.json import is_list, is_object, peek
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire
from inmind.errors import InvalidInput

EXPECTED_FORMATS = (
    "messages: an OpenAI or Anthropic list, a Claude Code session, tau-bench, tau2-bench or SWE-agent runs, BEAM chats"
)

USER_TOOLS = "calls and results of the user's own tools"

_MESSAGE_PATHS = (("messages",), ("traj",), ("traj", "history"), ("history",), ("chat",))
"""Where a recorder keeps the messages of one conversation."""
_NAMES = ("task_id", "user_task_id", "instance_id", "id", "name", "file")
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})
_KEPT_FIELDS = {
    "system": ("name",),
    "developer": ("name",),
    "user": ("name",),
    "assistant": ("name", "function_call", "refusal", "reasoning_content", "reasoning", "reasoning_details"),
    "function": ("name",),
}
"""Fields of a message besides role and content. Others are extensions of the recorder."""


def read_recordings(path: str, *, limit: int | None = None) -> list[Recording]:
    """The first `limit` recordings of a file; "-" is standard input."""
    content = read_content(path)
    recordings = _recordings(content, limit)
    if content.left_out:  # at the end of the file
        last = recordings[-1]
        recordings[-1] = replace(last, left_out={**last.left_out, **content.left_out})
    return recordings


def _recordings(content: FileContent, limit: int | None) -> list[Recording]:
    values, name = content.values, short_name(content.name)
    if is_claude_code(values):
        return [parse_claude_code(values, name)]
    shared: dict[str, Any] = {}
    if not content.by_line:
        (only,) = values
        if is_object(only.value) and is_list(only.value.get("simulations")):
            values, shared = only.child(": simulations", only.value["simulations"]).items, _tau2_policy(only.value)
        elif is_list(only.value):
            values = only.items
    if not shared and (not values or (is_object(values[0].value) and "role" in values[0].value)):
        return [_make_recording(LocatedValue({}, content.name), values, name)]
    return [
        _parse_case(located, shared, name=_recording_name(name, number, located.value))
        for number, located in enumerate(values[:limit], start=1)
    ]


def _tau2_policy(file: dict[str, Any]) -> dict[str, Any]:
    """System prompt and tools that all simulations of a tau2-bench file share."""
    environment = peek(file.get("info"), "environment_info")
    return {"system": peek(environment, "policy"), "tools": peek(environment, "tool_defs")}


def _parse_case(located: LocatedValue, shared: dict[str, Any], *, name: str) -> Recording:
    """One conversation with its metadata."""
    case = located.value
    if is_list(case):
        return _make_recording(LocatedValue({}, located.location), located.items, name)
    for keys in _MESSAGE_PATHS:
        value: Any = reduce(peek, keys, case)
        if is_list(value):
            messages = _flatten_messages(located.child(f": {'.'.join(keys)}", value))
            return _make_recording(replace(located, value={**shared, **case}), messages, name)
    raise InvalidInput(field=located.location, value=case, expected=EXPECTED_FORMATS)


def _flatten_messages(located: LocatedValue) -> list[LocatedValue]:
    """Messages of a list, also of lists of turns or batches."""
    messages: list[LocatedValue] = []
    for item in located.items:
        turns = item.value.get("turns") if is_object(item.value) else None
        if not is_list(turns):
            messages.append(item)
            continue
        for turn in item.child(".turns", turns).items:
            messages += turn.items if is_list(turn.value) else [turn]
    return messages


def _make_recording(case: LocatedValue, messages: Sequence[LocatedValue], name: str) -> Recording:
    format = "anthropic" if _is_anthropic(case.value, messages) else "openai"
    fmt = FORMATS[format]
    system, tools = case.value.get("system"), _tools(case.value)
    if format == "anthropic":
        wires, left_out = [_anthropic_message(located) for located in messages], {}
    else:
        wires, left_out = _chat_messages(messages)
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
    contents = [content for wire in wires if is_list(content := wire.get("content"))]
    if any(is_object(part) and part.get("type") in _ANTHROPIC_BLOCKS for content in contents for part in content):
        return True
    chat = any("tool_calls" in wire or wire.get("role") not in ("user", "assistant") for wire in wires)
    return not chat and case.get("system") is not None


def _tools(case: dict[str, Any]) -> list[Any] | None:
    tools, functions = case.get("tools"), case.get("functions")
    if is_list(tools) and tools:
        return tools
    return [{"type": "function", "function": function} for function in functions] if is_list(functions) else None


def _anthropic_message(located: LocatedValue) -> Wire:
    """Role and content only: the API returns other fields but does not accept them."""
    wire = located.value
    if is_object(wire):
        wire = {"role": wire.get("role"), "content": "" if wire.get("content") is None else wire["content"]}
    FORMATS["anthropic"].check(wire, field=located.location)
    return wire


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
    task_names = [name for key in _NAMES if (name := peek(case, key)) is not None]
    return f"{file} #{number} ({task_names[0]})" if task_names else f"{file} #{number}"


# -- OpenAI chat -----------------------------------------------------------------------------------------------


def _chat_messages(recorded: Sequence[LocatedValue]) -> tuple[list[Wire], dict[str, int]]:
    """Converted and validated messages, and the number of omitted ones by reason."""
    calls = _CallIds()
    left_out: Counter[str] = Counter()
    wires: list[Wire] = []
    for located in recorded:
        message = located.value
        if is_object(message) and _is_user_tool(message):
            left_out[USER_TOOLS] += 1
            continue
        wire = _convert_message(message, calls) if is_object(message) else message
        FORMATS["openai"].check(wire, field=located.location)
        wires.append(wire)
    return wires, dict(left_out)


class _CallIds:
    """Generates ids for calls recorded without one.

    Their results are assigned in the order of the calls.
    """

    def __init__(self) -> None:
        self._unnamed = 0
        self._waiting: list[str] = []

    def call_id(self, id: object) -> str:
        if not isinstance(id, str) or not id:
            self._unnamed += 1
            id = f"unnamed_call_{self._unnamed}"
        self._waiting.append(id)
        return id

    def result_id(self, id: object) -> object:
        if not id and self._waiting:
            id = self._waiting[0]
        if isinstance(id, str) and id in self._waiting:
            self._waiting.remove(id)
        return id


def _is_user_tool(message: dict[str, Any]) -> bool:
    """True for calls of the simulated user's tools, which some benchmarks have.

    The agent never sees them.
    """
    if message.get("role") == "tool":
        return message.get("requestor") == "user"
    return message.get("role") == "user" and bool(message.get("tool_calls")) and not message.get("content")


def _convert_message(message: dict[str, Any], calls: _CallIds) -> dict[str, Any]:
    role = message.get("role")
    wire: dict[str, Any] = {"role": role, "content": _convert_content(message.get("content"))}
    wire |= {key: message[key] for key in _KEPT_FIELDS.get(str(role), ()) if message.get(key) is not None}
    if role == "tool":
        several = message.get("tool_call_ids")
        first = several[0] if is_list(several) and several else None
        wire["tool_call_id"] = calls.result_id(message.get("tool_call_id") or first or message.get("id"))
        wire["content"] = _with_error(wire["content"], message.get("error"))
    elif role == "assistant" and is_list(message.get("tool_calls")) and message["tool_calls"]:
        wire["tool_calls"] = [_convert_call(call, calls) if is_object(call) else call for call in message["tool_calls"]]
    if role == "assistant" and message.get("content") is None and len(wire) > 2:
        wire["content"] = None
    return wire


def _convert_call(call: dict[str, Any], calls: _CallIds) -> dict[str, Any]:
    """Accepts {function: {name, arguments}}, {name, arguments} and {function: name, args}."""
    id, function = calls.call_id(call.get("id")), call.get("function")
    if call.get("type") == "custom":
        return {"id": id, "type": "custom", "custom": call.get("custom")}
    if is_object(function):
        name, arguments = function.get("name"), function.get("arguments")
    else:
        name = call.get("name") if function is None else function
        arguments = call.get("arguments", call.get("args"))
    function = {"name": name, "arguments": _as_text({} if arguments is None else arguments)}
    return {"id": id, "type": "function", "function": function}


def _with_error(content: Any, error: object) -> Any:
    """The content of a result with its error in words: the format has no field for errors."""
    if not error:
        return content
    text = error if isinstance(error, str) else content
    return text if isinstance(text, str) and text.startswith("Error") else f"Error: {_as_text(text)}"


def _convert_content(content: object) -> Any:
    """Text, or typed parts, whose text may be in {type: text, content: …}."""
    if content is None or isinstance(content, str):
        return content or ""
    if not is_list(content) or not all(is_object(part) and isinstance(part.get("type"), str) for part in content):
        return _as_text(content)
    return [
        {"type": "text", "text": part["content"]}
        if part["type"] == "text" and "text" not in part and "content" in part
        else part
        for part in content
    ]


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
