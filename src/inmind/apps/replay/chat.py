"""A recorded message in the words of OpenAI's chat completions.

Recorders write what was handy to them: calls flattened, arguments as objects, results named by another field, and
beside each message fields of their own that a provider would refuse. All of them mean the same few things.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from inmind.apps.replay.files import Placed
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire

CHAT = FORMATS["openai"]

USERS_OWN_TOOLS = "calls and results of the user's own tools"

# What a message may have beside role and content. The rest is the recorder's own.
_KEPT = {
    "system": ("name",),
    "developer": ("name",),
    "user": ("name",),
    "assistant": ("name", "function_call", "refusal", "reasoning_content", "reasoning", "reasoning_details"),
    "function": ("name",),
}


def chat_messages(recorded: Sequence[Placed]) -> tuple[list[Wire], dict[str, int]]:
    """The messages, each known to be one, and how many were left out and why."""
    calls = _Calls()
    left_out: Counter[str] = Counter()
    wires: list[Wire] = []
    for placed in recorded:
        message = placed.value
        if is_object(message) and _is_users_own(message):
            left_out[USERS_OWN_TOOLS] += 1
            continue
        wire = _message(message, calls) if is_object(message) else message
        CHAT.check(wire, field=placed.place)
        wires.append(wire)
    return wires, dict(left_out)


class _Calls:
    """Ids for calls that were recorded without one; their results then follow in the order of the calls."""

    def __init__(self) -> None:
        self._unnamed = 0
        self._waiting: list[str] = []

    def asked(self, id: object) -> str:
        if not isinstance(id, str) or not id:
            self._unnamed += 1
            id = f"unnamed_call_{self._unnamed}"
        self._waiting.append(id)
        return id

    def answered(self, id: object) -> object:
        if not id and self._waiting:
            id = self._waiting[0]
        if isinstance(id, str) and id in self._waiting:
            self._waiting.remove(id)
        return id


def _is_users_own(message: dict[str, Any]) -> bool:
    """In some benchmarks the simulated user has tools too. The agent never sees those calls."""
    if message.get("role") == "tool":
        return message.get("requestor") == "user"
    return message.get("role") == "user" and bool(message.get("tool_calls")) and not message.get("content")


def _message(message: dict[str, Any], calls: _Calls) -> dict[str, Any]:
    role = message.get("role")
    wire: dict[str, Any] = {"role": role, "content": _content(message.get("content"))}
    wire |= {key: message[key] for key in _KEPT.get(str(role), ()) if message.get(key) is not None}
    if role == "tool":
        wire["tool_call_id"] = calls.answered(_answers(message))
        wire["content"] = _told(wire["content"], message.get("error"))
    elif role == "assistant" and is_list(message.get("tool_calls")) and message["tool_calls"]:
        wire["tool_calls"] = [_call(call, calls) if is_object(call) else call for call in message["tool_calls"]]
    if role == "assistant" and message.get("content") is None and len(wire) > 2:
        wire["content"] = None
    return wire


def _call(call: dict[str, Any], calls: _Calls) -> dict[str, Any]:
    """{function: {name, arguments}}, {name, arguments} or {function: name, args}."""
    if call.get("type") == "custom":
        return {"id": calls.asked(call.get("id")), "type": "custom", "custom": call.get("custom")}
    function = call.get("function")
    if is_object(function):
        name, arguments = function.get("name"), function.get("arguments")
    else:
        name = call.get("name") if function is None else function
        arguments = call.get("arguments", call.get("args"))
    function = {"name": name, "arguments": _as_text({} if arguments is None else arguments)}
    return {"id": calls.asked(call.get("id")), "type": "function", "function": function}


def _answers(message: dict[str, Any]) -> object:
    several = message.get("tool_call_ids")
    first = several[0] if is_list(several) and several else None
    return message.get("tool_call_id") or first or message.get("id")


def _told(content: Any, error: object) -> Any:
    """A result for a provider without a field for errors: a failure is said in words, or it would read as success."""
    if not error:
        return content
    said = error if isinstance(error, str) else content
    return said if isinstance(said, str) and said.startswith("Error") else f"Error: {_as_text(said)}"


def _content(content: object) -> Any:
    if content is None or isinstance(content, str):
        return content or ""
    if is_list(content) and all(is_object(part) and isinstance(part.get("type"), str) for part in content):
        return [_part(part) for part in content]
    return _as_text(content)


def _part(part: dict[str, Any]) -> dict[str, Any]:
    """Some write {type: text, content: …}."""
    if part["type"] == "text" and "text" not in part and "content" in part:
        return {"type": "text", "text": part["content"]}
    return part


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
