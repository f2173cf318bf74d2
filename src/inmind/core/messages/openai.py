"""Messages of OpenAI's chat completions, and of compatible servers.

An assistant message holds one whole answer, with its calls in a separate field; every result is a separate message.
Fields outside the content (reasoning, a refusal, audio) are `Opaque` with a body {field: value}. Opaque content parts
have a `type`, which distinguishes the two.

The older function calls (`function_call`, answered by the role `function`) have no ids: the name is the id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from inmind.core.json import check_json, check_text, is_list, is_object, object_at, objects_at, text_at, typed_parts_at
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
    without_id,
)
from inmind.errors import InvalidInput

NAME = "openai"

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXT_ROLES = frozenset({"system", "developer", "user", "assistant"})
_TAIL_ROLES = frozenset({"user", "tool", "function"})
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")
_EXTRA_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "refusal", "audio")


class OpenAIChat:
    """The format of OpenAI's chat completions."""

    name: str = NAME
    rules: FormatRules = FormatRules(
        result_position="next", unique_ids="message", assistant_images=True, drops_empty_messages=True
    )

    def check(self, wire: object, *, field: str) -> None:
        if not is_object(wire):
            raise InvalidInput(field=field, value=wire, expected="a message: an object with a role")
        role, content = wire.get("role"), wire.get("content")
        if len(wire) == 2 and type(content) is str and type(role) is str and role in _TEXT_ROLES:
            check_text(content, f"{field}.content")
            return
        check_json(wire, field)
        if not isinstance(role, str) or role not in _ROLES:
            raise InvalidInput(field=f"{field}.role", value=role, expected=f"one of {', '.join(_ROLES)}")
        _check_content(wire, field, may_be_missing=role in {"assistant", "function"})
        if role == "assistant":
            _check_calls(wire, field)
        elif role == "tool":
            text_at(wire, "tool_call_id", field)
        elif role == "function":
            text_at(wire, "name", field)

    def check_tool(self, tool: object, *, field: str) -> None:
        if not is_object(tool) or not isinstance(tool.get("type"), str) or "input_schema" in tool:
            raise InvalidInput(field=field, value=tool, expected='a chat tool: {"type": "function", "function": {…}}')

    def strip_local_fields(self, wire: Wire) -> Wire:
        sent = without_id(wire)
        audio = _audio(sent)
        return sent if audio is None or audio == sent["audio"] else {**sent, "audio": audio}

    def is_system(self, wire: Wire) -> bool:
        return wire.get("role") in ("system", "developer")

    def check_system(self, system: object, *, field: str) -> None:
        for wire, place in system_items(system, field, "system messages"):
            check_system_role(wire, place)
            self.check(wire, field=place)

    def system_text(self, system: Sequence[Wire] | str | None) -> str:
        return system_text(system, self.read)

    def read(self, wire: Wire) -> Message:
        role, content = wire["role"], wire.get("content")
        if role == "user" and type(content) is str:
            return Message("user", (Text(content),) if content else ())
        parts = tuple(_read_content(content))
        if role == "assistant":
            return Message("assistant", (*_read_fields(wire), *parts, *_read_calls(wire)))
        if role in {"tool", "function"}:
            return Message("tool", (Result(wire["tool_call_id" if role == "tool" else "name"], parts),))
        return Message(_ROLES[role], parts)

    def is_sendable(self, wire: Wire, message: Message) -> bool:
        """False for empty lists of calls and answers without content, which OpenAI refuses.

        Servers return both.
        """
        if message.role != "assistant":
            return True
        if wire.get("tool_calls") == []:
            return False
        return wire.get("content") not in (None, []) or any(map(wire.get, _INSTEAD_OF_CONTENT))

    def write(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        wires: list[dict[str, Any]] = []
        # Results of one turn must be adjacent, so their images are written after the last one.
        pending_images: list[dict[str, Any]] = []
        for message in _join_assistant_messages(messages):
            wires += [_write_result(result) for result in message.results]
            images = [part for result in message.results for part in _write_images(result)]
            rest = tuple(part for part in message.parts if not isinstance(part, Result))
            wire = _write_message(message.role, rest) if rest or not message.parts else None
            if wire is None:
                pending_images += images
                continue
            wires += _image_message(pending_images + images)
            pending_images = []
            wires.append(wire)
        return wires + _image_message(pending_images)

    def tail_index(self, wires: Sequence[Wire]) -> int | None:
        return last_index(wires, lambda wire: wire["role"] in _TAIL_ROLES)

    def add_tail(self, wires: Sequence[Wire], text: str) -> list[Wire] | None:
        place = self.tail_index(wires)
        return None if place is None else self.add_part(wires, place, text)

    def add_part(self, wires: Sequence[Wire], place: int, text: str) -> list[Wire]:
        wire = wires[place]
        return [*wires[:place], {**wire, "content": _content_with_tail(wire, text)}, *wires[place + 1 :]]

    def request(self, head: PromptHead, wires: Sequence[Wire], tools: Sequence[Wire] | None) -> dict[str, Any]:
        system: list[Wire] = []
        if isinstance(head.system, str):
            system = [{"role": "system", "content": head.system}]
        elif head.system:
            system = list(head.system)
        if head.memory:
            role = "developer" if system and system[-1].get("role") == "developer" else "system"
            system = [*system, {"role": role, "content": head.memory}]
        request: dict[str, Any] = {"messages": [*system, *wires]}
        if tools:
            request["tools"] = list(tools)
        return request


def _check_content(wire: dict[str, Any], field: str, *, may_be_missing: bool) -> None:
    content = wire.get("content")
    if isinstance(content, str) or (content is None and may_be_missing):
        return
    if not is_list(content):
        raise InvalidInput(field=f"{field}.content", value=content, expected="a string or a list of content parts")
    for part, place in typed_parts_at(wire, "content", field):
        if part["type"] == "image_url" and not isinstance(part.get("image_url"), str):
            text_at(object_at(part, "image_url", place), "url", f"{place}.image_url")


def _check_calls(wire: dict[str, Any], field: str) -> None:
    if wire.get("tool_calls") is not None:
        for call, place in objects_at(wire, "tool_calls", field):
            text_at(call, "id", place)
            kind = call.get("type", "function")
            if kind == "custom":
                custom = object_at(call, "custom", place)
                text_at(custom, "name", f"{place}.custom")
                text_at(custom, "input", f"{place}.custom")
            elif kind == "function":
                _check_function(object_at(call, "function", place), f"{place}.function")
            else:
                raise InvalidInput(field=f"{place}.type", value=kind, expected="function or custom")
    if wire.get("function_call") is not None:
        _check_function(object_at(wire, "function_call", field), f"{field}.function_call")


def _check_function(function: dict[str, Any], field: str) -> None:
    text_at(function, "name", field)
    text_at(function, "arguments", field)


def _read_content(content: Any) -> Iterator[Content]:
    if isinstance(content, str):
        if content:
            yield Text(content)
    elif is_list(content):
        for part in content:
            kind = part["type"]
            if kind == "text":
                yield Text(part["text"])
            elif kind == "image_url":
                image = part["image_url"]
                yield Image.from_url(image if isinstance(image, str) else image["url"])
            else:
                yield Opaque(NAME, kind, part)


def _read_fields(wire: Wire) -> Iterator[Opaque]:
    for key in _EXTRA_FIELDS:
        if wire.get(key) is not None:
            audio_reference = _audio(wire) if key == "audio" else None
            yield Opaque(NAME, key, {key: wire[key] if audio_reference is None else audio_reference})


def _audio(wire: Wire) -> Wire | None:
    """The assistant's audio as it is sent back: only its id."""
    audio = wire.get("audio")
    return {"id": audio["id"]} if is_object(audio) and audio.get("id") else None


def _read_calls(wire: Wire) -> Iterator[Call]:
    for call in wire.get("tool_calls") or ():
        if call.get("type") == "custom":
            yield Call(call["id"], call["custom"]["name"], call["custom"]["input"], custom=True)
        else:
            yield Call(call["id"], call["function"]["name"], call["function"]["arguments"])
    legacy = wire.get("function_call")
    if legacy is not None:
        yield Call(legacy["name"], legacy["name"], legacy["arguments"])


def _join_assistant_messages(messages: Sequence[Message]) -> Iterator[Message]:
    """Join adjacent assistant messages, unless both have the same field outside the content."""
    joined: Message | None = None
    for message in messages:
        if joined and message.role == "assistant" and not _fields(joined) & _fields(message):
            joined = Message("assistant", joined.parts + message.parts)
            continue
        if joined:
            yield joined
        joined = message if message.role == "assistant" else None
        if joined is None:
            yield message
    if joined:
        yield joined


def _fields(message: Message) -> set[str]:
    return {part.kind for part in message.parts if isinstance(part, Opaque) and "type" not in part.body}


def _write_message(role: Role, parts: Sequence[Part]) -> dict[str, Any] | None:
    """Write one message; None if no part of it exists in this format."""
    content = [written for part in parts for written in _write_part(part)]
    fields = [part.body for part in parts if _is_own(part) and "type" not in part.body]
    calls = [_write_call(part) for part in parts if isinstance(part, Call)]
    if parts and not (content or fields or calls):
        return None
    wire: dict[str, Any] = {"role": "user" if role == "tool" else role, "content": _content(content)}
    if role != "assistant":
        return wire
    for body in fields:
        wire.update(body)
    if calls:
        wire["tool_calls"] = calls
    if not content and any(map(wire.get, _INSTEAD_OF_CONTENT)):
        wire["content"] = None
    return wire


def _is_own(part: Part) -> TypeGuard[Opaque]:
    return isinstance(part, Opaque) and part.format == NAME


def _write_part(part: Part) -> Iterator[dict[str, Any]]:
    if isinstance(part, Text):
        yield {"type": "text", "text": part.text}
    elif isinstance(part, Image):
        yield {"type": "image_url", "image_url": {"url": part.url}}
    elif _is_own(part) and "type" in part.body:
        yield dict(part.body)


def _content(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """The simplest form that reads back the same: an empty text part differs from no text."""
    if not parts:
        return ""
    if len(parts) == 1 and parts[0]["type"] == "text" and parts[0]["text"]:
        return str(parts[0]["text"])
    return parts


def _write_call(call: Call) -> dict[str, Any]:
    if call.custom:
        return {"id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments}}
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _write_result(result: Result) -> dict[str, Any]:
    content = [
        written for part in result.parts_with_error_text if not isinstance(part, Image) for written in _write_part(part)
    ]
    return {"role": "tool", "tool_call_id": result.id, "content": _content(content)}


def _write_images(result: Result) -> list[dict[str, Any]]:
    """A tool message takes text only: its images follow in a user message that names the call."""
    images = [written for part in result.parts if isinstance(part, Image) for written in _write_part(part)]
    return [{"type": "text", "text": f"Images in the result of {result.id}:"}, *images] if images else []


def _image_message(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": parts}] if parts else []


def _content_with_tail(wire: Wire, text: str) -> str | list[Any]:
    content, tail = wire.get("content"), {"type": "text", "text": text}
    if is_list(content):
        return [*content, tail]
    if wire["role"] == "function":
        return f"{content}\n\n{text}" if content else text
    return [{"type": "text", "text": content}, tail] if content else [tail]
