"""Converts recorded messages to the OpenAI chat completions format.

Recorders differ: flattened calls, arguments as objects, other names of fields, and extra fields that a provider would
reject.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from inmind.apps.replay.files import LocatedValue
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire

CHAT = FORMATS["openai"]

USER_TOOLS = "calls and results of the user's own tools"

# Fields of a message besides role and content. Others are extensions of the recorder.
_KEPT_FIELDS = {
    "system": ("name",),
    "developer": ("name",),
    "user": ("name",),
    "assistant": ("name", "function_call", "refusal", "reasoning_content", "reasoning", "reasoning_details"),
    "function": ("name",),
}


def chat_messages(recorded: Sequence[LocatedValue]) -> tuple[list[Wire], dict[str, int]]:
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
        CHAT.check(wire, field=located.location)
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
        wire["tool_call_id"] = calls.result_id(_recorded_call_id(message))
        wire["content"] = _with_error(wire["content"], message.get("error"))
    elif role == "assistant" and is_list(message.get("tool_calls")) and message["tool_calls"]:
        wire["tool_calls"] = [_convert_call(call, calls) if is_object(call) else call for call in message["tool_calls"]]
    if role == "assistant" and message.get("content") is None and len(wire) > 2:
        wire["content"] = None
    return wire


def _convert_call(call: dict[str, Any], calls: _CallIds) -> dict[str, Any]:
    """Accepts {function: {name, arguments}}, {name, arguments} and {function: name, args}."""
    if call.get("type") == "custom":
        return {"id": calls.call_id(call.get("id")), "type": "custom", "custom": call.get("custom")}
    function = call.get("function")
    if is_object(function):
        name, arguments = function.get("name"), function.get("arguments")
    else:
        name = call.get("name") if function is None else function
        arguments = call.get("arguments", call.get("args"))
    function = {"name": name, "arguments": _as_text({} if arguments is None else arguments)}
    return {"id": calls.call_id(call.get("id")), "type": "function", "function": function}


def _recorded_call_id(message: dict[str, Any]) -> object:
    several = message.get("tool_call_ids")
    first = several[0] if is_list(several) and several else None
    return message.get("tool_call_id") or first or message.get("id")


def _with_error(content: Any, error: object) -> Any:
    """The content of a result with its error in words: the format has no field for errors."""
    if not error:
        return content
    text = error if isinstance(error, str) else content
    return text if isinstance(text, str) and text.startswith("Error") else f"Error: {_as_text(text)}"


def _convert_content(content: object) -> Any:
    if content is None or isinstance(content, str):
        return content or ""
    if is_list(content) and all(is_object(part) and isinstance(part.get("type"), str) for part in content):
        return [_convert_part(part) for part in content]
    return _as_text(content)


def _convert_part(part: dict[str, Any]) -> dict[str, Any]:
    """Accepts {type: text, content: …}."""
    if part["type"] == "text" and "text" not in part and "content" in part:
        return {"type": "text", "text": part["content"]}
    return part


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
