"""Input items of OpenAI's Responses API.

One assistant message of chat is a sequence of items here: reasoning, a message, each call, each result. Every item is
read separately, so one item is one `Message`. Item types that only OpenAI understands are `Opaque` with that type;
opaque parts *inside* a message are named `message.<type>`, which distinguishes the two when they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from inmind.core.json import check_json, check_text, is_list, is_object, text_at, typed_parts_at
from inmind.core.messages.conversion import check_system_role, system_items, system_text
from inmind.core.messages.model import (
    Call,
    Content,
    FormatRules,
    Image,
    Message,
    Opaque,
    Part,
    PromptHead,
    Result,
    Role,
    Text,
    Wire,
    last_index,
)
from inmind.errors import InvalidInput

NAME = "responses"

_ROLES: dict[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}
_MESSAGE_PREFIX = "message."
_REFERENCE = "item_reference"
_TEXT_TYPES = frozenset({"input_text", "output_text", "text"})
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})

# Requests of OpenAI to the host other than calls of the host's tools, with the item type of the answer: the output of a
# tool that the host runs, or an approval.
_HOST_ANSWERS = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "mcp_approval_request": "mcp_approval_response",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
_ANSWERED_REQUESTS = {answer: request for request, answer in _HOST_ANSWERS.items()}
_HOST_ITEM_ROLES: dict[str, Role] = {
    "additional_tools": "developer",
    "compaction_trigger": "developer",
    "configuration_update": "developer",
    _REFERENCE: "user",
    "mcp_approval_response": "user",
}


class OpenAIResponses:
    """The format of OpenAI's Responses API."""

    name: str = NAME
    rules: FormatRules = FormatRules(
        result_position="anywhere",
        unique_ids="open",
        custom_results=True,
        has_instructions=True,
        has_threads=True,
        opaque_prefixes=frozenset({"reasoning"}),
        text_type="input_text",
        compaction_keeps_users=True,
    )

    def check(self, wire: object, *, field: str) -> None:
        if not is_object(wire):
            raise InvalidInput(field=field, value=wire, expected="an input item: an object with a role or a type")
        role, content = wire.get("role"), wire.get("content")
        if len(wire) == 2 and type(content) is str and type(role) is str and role in _ROLES:
            check_text(content, f"{field}.content")
            return
        check_json(wire, field)
        kind = wire.get("type")
        if kind is None and role is None and isinstance(wire.get("id"), str):
            return  # an item_reference may leave its type out
        if kind is None and role is None:
            raise InvalidInput(field=f"{field}.type", value=kind, expected="a type or a role")
        if kind is None or kind == "message":
            _check_message(wire, field)
            return
        if text_at(wire, "type", field) in _CALLS:
            for key in ("call_id", "name", _CALLS[kind]):
                text_at(wire, key, field)
        elif kind in _RESULTS:
            text_at(wire, "call_id", field)
            _check_content(wire, "output", field)

    def check_tool(self, tool: object, *, field: str) -> None:
        if not is_object(tool) or not isinstance(tool.get("type"), str) or "function" in tool:
            expected = 'a responses tool: {"type": "function", "name": …, "parameters": {…}}'
            raise InvalidInput(field=field, value=tool, expected=expected)

    def strip_local_fields(self, wire: Wire) -> Wire:
        return wire  # ids of items are the provider's

    def is_system(self, wire: Wire) -> bool:
        return _is_message(wire) and wire.get("role") in ("system", "developer")

    def check_system(self, system: object, *, field: str) -> None:
        for wire, place in system_items(system, field, "system messages"):
            check_system_role(wire, place)
            if not _is_message(wire):
                raise InvalidInput(field=f"{place}.type", value=wire["type"], expected="message")
            self.check(wire, field=place)

    def system_text(self, system: Sequence[Wire] | str | None) -> str:
        return system_text(system, self.read)

    def read(self, wire: Wire) -> Message:
        if _is_message(wire):
            return Message(_ROLES[wire["role"]], tuple(_read_content(wire.get("content"), _MESSAGE_PREFIX)))
        kind = wire.get("type") or _REFERENCE
        if kind in _CALLS:
            custom = kind == "custom_tool_call"
            return Message("assistant", (Call(wire["call_id"], wire["name"], wire[_CALLS[kind]], custom=custom),))
        if kind in _RESULTS:
            parts = tuple(_read_content(wire["output"], ""))
            return Message("tool", (Result(wire["call_id"], parts, custom=kind == "custom_tool_call_output"),))
        return Message(_role(kind), (_opaque(kind, wire),))

    def is_sendable(self, wire: Wire, message: Message) -> bool:  # noqa: ARG002 - the provider accepts every item that it returns
        return True

    def write(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        custom: dict[str, bool] = {}
        items: list[dict[str, Any]] = []
        for message in messages:
            role: Role = "user" if message.role == "tool" else message.role
            if not message.parts:
                items.append({"role": role, "content": ""})
            content: list[dict[str, Any]] = []
            for part in message.parts:
                if isinstance(part, Call):
                    custom[part.id] = part.custom
                item = _write_item(part, custom)
                if item is None:
                    content += _write_content(part, role, _MESSAGE_PREFIX)
                    continue
                items += _write_message(role, content)
                content = []
                items.append(item)
            items += _write_message(role, content)
        return items

    def tail_index(self, wires: Sequence[Wire]) -> int | None:
        return last_index(wires, lambda wire: _tail_field(wire) is not None)

    def add_tail(self, wires: Sequence[Wire], text: str) -> list[Wire] | None:
        place = self.tail_index(wires)
        return None if place is None else self.add_part(wires, place, text)

    def add_part(self, wires: Sequence[Wire], place: int, text: str) -> list[Wire]:
        key = _tail_field(wires[place]) or "content"
        content = wires[place].get(key)
        parts = content if is_list(content) else [{"type": "input_text", "text": content}] if content else []
        changed = {**wires[place], key: [*parts, {"type": "input_text", "text": text}]}
        return [*wires[:place], changed, *wires[place + 1 :]]

    def request(self, head: PromptHead, wires: Sequence[Wire], tools: Sequence[Wire] | None) -> dict[str, Any]:
        request: dict[str, Any] = {}
        instructions = head.system if isinstance(head.system, str) else None
        if head.in_thread and head.memory:
            instructions = f"{instructions}\n\n{head.memory}" if instructions else head.memory
        if instructions is not None:
            request["instructions"] = instructions
        system = [] if head.system is None or isinstance(head.system, str) else list(head.system)
        before, after = wires[: head.memory_index], wires[head.memory_index :]
        text = {"type": "input_text", "text": head.memory}
        memory = [{"role": "developer", "content": [text]}] if head.memory and not head.in_thread else []
        request["input"] = [*system, *before, *memory, *after]
        if tools:
            request["tools"] = list(tools)
        return request


def _is_message(wire: Wire) -> bool:
    return wire.get("type") == "message" or (wire.get("type") is None and wire.get("role") is not None)


def _role(kind: str) -> Role:
    """The role of an item that has none."""
    return _HOST_ITEM_ROLES.get(kind) or ("tool" if kind.endswith("_output") else "assistant")


def _opaque(kind: str, wire: Wire) -> Opaque:
    """An opaque part with the id that links a request and its answer.

    A tool search that OpenAI runs itself needs no answer. An answer may name its call only by `id`.
    """
    if wire.get("execution") == "server":
        return Opaque(NAME, kind, wire)
    request_kind = _ANSWERED_REQUESTS.get(kind, kind)
    if request_kind not in _HOST_ANSWERS:
        return Opaque(NAME, kind, wire, is_compaction=kind == "compaction")
    id = next((wire[key] for key in ("approval_request_id", "call_id", "id") if wire.get(key)), None)
    name = f"{request_kind} {id}"
    return (
        Opaque(NAME, kind, wire, answered_id=name)
        if kind in _ANSWERED_REQUESTS
        else Opaque(NAME, kind, wire, request_id=name)
    )


def _check_message(wire: dict[str, Any], field: str) -> None:
    role = wire.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise InvalidInput(field=f"{field}.role", value=role, expected=f"one of {', '.join(_ROLES)}")
    _check_content(wire, "content", field)


def _check_content(wire: dict[str, Any], key: str, field: str) -> None:
    content = wire.get(key)
    if isinstance(content, str):
        return
    if not is_list(content):
        raise InvalidInput(field=f"{field}.{key}", value=content, expected="a string or a list of content parts")
    for part, place in typed_parts_at(wire, key, field):
        if part["type"] == "input_image" and part.get("image_url") is not None:
            text_at(part, "image_url", place)


def _read_content(content: Any, prefix: str) -> Iterator[Content]:
    if isinstance(content, str):
        if content:
            yield Text(content)
        return
    for part in content:
        kind = part["type"]
        if kind in _TEXT_TYPES:
            yield Text(part["text"])
        elif kind == "input_image" and part.get("image_url") is not None:
            yield Image.from_url(part["image_url"])
        else:
            yield Opaque(NAME, prefix + kind, part)


def _write_item(part: Part, custom: Mapping[str, bool]) -> dict[str, Any] | None:
    """Write a part that is a separate item; None for parts of a message.

    `custom`: for each call so far, whether its tool is custom.
    """
    if isinstance(part, Call):
        kind = "custom_tool_call" if part.custom else "function_call"
        return {"type": kind, "call_id": part.id, "name": part.name, _CALLS[kind]: part.arguments}
    if isinstance(part, Result):
        kind = "custom_tool_call_output" if custom.get(part.id, part.custom) else "function_call_output"
        content = [written for inner in part.parts_with_error_text for written in _write_content(inner, "user", "")]
        return {"type": kind, "call_id": part.id, "output": _simplest_content(content)}
    if isinstance(part, Opaque) and part.format == NAME and not part.kind.startswith(_MESSAGE_PREFIX):
        return dict(part.body)
    return None


def _write_content(part: Part, role: Role, prefix: str) -> Iterator[dict[str, Any]]:
    """Write a part of a message or result. An assistant message cannot contain images."""
    if isinstance(part, Text):
        yield {"type": "output_text" if role == "assistant" else "input_text", "text": part.text}
    elif isinstance(part, Image) and role != "assistant":
        yield {"type": "input_image", "image_url": part.url}
    elif isinstance(part, Opaque) and part.format == NAME and part.kind.startswith(prefix):
        yield dict(part.body)


def _write_message(role: Role, content: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not content:
        return []
    return [{"role": role, "content": content if role == "assistant" else _simplest_content(content)}]


def _simplest_content(content: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """The simplest form that reads back the same: an empty text part differs from no text."""
    if not content:
        return ""
    if len(content) == 1 and content[0]["type"] == "input_text" and content[0]["text"]:
        return str(content[0]["text"])
    return content


def _tail_field(wire: Wire) -> str | None:
    """The field of this item that takes an extra part, if any.

    Outputs of OpenAI's tools have fixed formats.
    """
    if _is_message(wire):
        return "content" if wire["role"] == "user" else None
    return "output" if wire.get("type") in _RESULTS else None
