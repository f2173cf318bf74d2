"""Messages of Anthropic's API.

There are only the roles user and assistant. Results are blocks of a user message, always first in it, and all results
of one assistant message are in the message that follows; nothing else may be in it if the assistant waits for them in
the middle of a turn. Text must not be blank, the user starts, and arguments are an object. Other forms are converted,
always in the same way, so that the same conversation gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NoReturn

from inmind.core.json import check_json, check_text, is_list, is_object, object_at, text_at, typed_parts_at
from inmind.core.messages.cache_control import TailBlock, add_mark_before_tail, own_mark_before, remaining_marks
from inmind.core.messages.conversion import join_paragraphs, system_items
from inmind.core.messages.model import (
    OPENING_TEXT,
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
from inmind.core.text import escape_markup
from inmind.errors import InvalidInput

NAME = "anthropic"
EMPTY_TEXT = "(empty)"

# The single key of an input that was not a JSON object; its value is the text of the model.
RAW_KEY = "_raw"

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
_ID = re.compile(r"[a-zA-Z0-9_-]+")


class AnthropicMessages:
    """The format of Anthropic's messages."""

    name: str = NAME
    rules: FormatRules = FormatRules(
        result_position="together", unique_ids="conversation", user_first=True, uses_cache_marks=True
    )

    def check(self, wire: object, *, field: str) -> None:
        if not is_object(wire):
            raise InvalidInput(field=field, value=wire, expected="a message: an object with a role")
        role, content = wire.get("role"), wire.get("content")
        if len(wire) == 2 and type(content) is str and type(role) is str and role in _ROLES:
            check_text(content, f"{field}.content")
            return
        check_json(wire, field)
        if not isinstance(role, str) or role not in _ROLES:
            raise InvalidInput(field=f"{field}.role", value=role, expected=f"one of {', '.join(_ROLES)}")
        if isinstance(content, str):
            return
        if not is_list(content):
            raise InvalidInput(field=f"{field}.content", value=content, expected="a string or a list of blocks")
        for block, place in typed_parts_at(wire, "content", field):
            _check_block(block, role, place)

    def check_tool(self, tool: object, *, field: str) -> None:
        if not is_object(tool) or not isinstance(tool.get("name", tool.get("type")), str) or "function" in tool:
            expected = 'an Anthropic tool: {"name": …, "input_schema": {…}}'
            raise InvalidInput(field=field, value=tool, expected=expected)

    def strip_local_fields(self, wire: Wire) -> Wire:
        return without_id(wire)

    def is_system(self, wire: Wire) -> bool:
        return wire.get("role") == "system"

    def check_system(self, system: object, *, field: str) -> None:
        for block, place in system_items(system, field, "text blocks"):
            if text_at(block, "type", place) != "text":
                raise InvalidInput(field=f"{place}.type", value=block["type"], expected="text")
            text_at(block, "text", place)

    def system_text(self, system: Sequence[Wire] | str | None) -> str:
        if isinstance(system, str):
            return system
        return join_paragraphs(block["text"] for block in _system_blocks(system) if block["type"] == "text")

    def read(self, wire: Wire) -> Message:
        role, content = wire["role"], wire["content"]
        if isinstance(content, str):
            return Message(_ROLES[role], (Text(content),) if content else ())
        parts = tuple(_read_block(block) for block in content)
        if parts and all(isinstance(part, Result) for part in parts):
            return Message("tool", parts)
        return Message(_ROLES[role], parts)

    def is_sendable(self, wire: Wire, message: Message) -> bool:  # noqa: ARG002 - the parsed message is enough here
        """False for blank text, results after text, and ids that Anthropic refuses as input.

        Anthropic itself returns empty answers, and hosts put results after text.
        """
        only_results = True
        for part in message.parts:
            if isinstance(part, Result):
                if not only_results or not _ID.fullmatch(part.id) or any(_is_blank(inner) for inner in part.parts):
                    return False
                continue
            only_results = False
            if _is_blank(part) or (isinstance(part, Call) and not _ID.fullmatch(part.id)):
                return False
        return bool(message.parts)

    def write(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        turns: list[tuple[str, list[dict[str, Any]]]] = []
        for message in messages:
            role = "assistant" if message.role == "assistant" else "user"
            blocks = [block for part in message.parts for block in _write_block(part, message.role)]
            if not blocks and any(not _is_blank(part) for part in message.parts):
                continue
            if turns and turns[-1][0] == role:
                turns[-1][1].extend(blocks)
            else:
                turns.append((role, blocks))
        if turns and turns[0][0] == "assistant":
            turns.insert(0, ("user", [_text_block(OPENING_TEXT)]))
        return [{"role": role, "content": _content(blocks)} for role, blocks in turns]

    def tail_index(self, wires: Sequence[Wire]) -> int | None:
        place = last_index(wires, lambda wire: wire["role"] == "user")
        # Rather an earlier message than none: without a tail, changes of memory would have to go into the prefix and
        # would invalidate the cache.
        while place is not None and _allows_only_results(wires, place):
            place = last_index(wires[:place], lambda wire: wire["role"] == "user")
        return place

    def add_tail(self, wires: Sequence[Wire], text: str) -> list[Wire] | None:
        place = self.tail_index(wires)
        return None if place is None else _with_block(wires, place, TailBlock(_text_block(text)))

    def add_part(self, wires: Sequence[Wire], place: int, text: str) -> list[Wire]:
        return _with_block(wires, place, _text_block(text))

    def request(self, head: PromptHead, wires: Sequence[Wire], tools: Sequence[Wire] | None) -> dict[str, Any]:
        system = _system_blocks(head.system)
        remaining = remaining_marks(system, tools or (), wires)
        # The mark in the conversation covers everything before it, including memory: it comes first.
        messages = add_mark_before_tail(wires) if remaining else list(wires)
        if head.memory:
            memory = _text_block(head.memory)
            system.append({**memory, "cache_control": own_mark_before(messages)} if remaining > 1 else memory)
        request: dict[str, Any] = {"messages": messages}
        if system:
            request["system"] = system
        if tools:
            request["tools"] = list(tools)
        return request


def _with_block(wires: Sequence[Wire], place: int, block: dict[str, Any]) -> list[Wire]:
    content = wires[place]["content"]
    blocks: list[Any] = content if is_list(content) else [_text_block(content)] if content else []
    return [*wires[:place], {**wires[place], "content": [*blocks, block]}, *wires[place + 1 :]]


def _allows_only_results(wires: Sequence[Wire], place: int) -> bool:
    """True if the provider would refuse any block other than the results in this message.

    That is so if the results go to code that it runs, or if one of its own tools has not run yet.
    """
    content = wires[place]["content"]
    if not is_list(content) or not any(block["type"] == "tool_result" for block in content):
        return False
    turn = takewhile(lambda wire: wire["role"] == "assistant", reversed(wires[:place]))
    blocks = [block for wire in turn if is_list(wire["content"]) for block in wire["content"]]
    awaited = {block.get("id") for block in blocks if block["type"] == "server_tool_use"}
    done = {block.get("tool_use_id") for block in blocks}
    return bool(awaited - done) or any(_is_called_by_code(block) for block in blocks)


def _is_called_by_code(block: Wire) -> bool:
    caller = block.get("caller")
    return block["type"] == "tool_use" and is_object(caller) and caller.get("type") != "direct"


def _check_block(block: dict[str, Any], role: str, field: str) -> None:
    kind = block["type"]
    if kind == "tool_use":
        if role != "assistant":
            raise InvalidInput(field=f"{field}.type", value=kind, expected="tool_use in an assistant message only")
        text_at(block, "id", field)
        text_at(block, "name", field)
        object_at(block, "input", field)
    elif kind == "tool_result":
        if role != "user":
            raise InvalidInput(field=f"{field}.type", value=kind, expected="tool_result in a user message only")
        text_at(block, "tool_use_id", field)
        content = block.get("content")
        if is_list(content):
            for inner, place in typed_parts_at(block, "content", field):
                _check_image(inner, place)
        elif content is not None and not isinstance(content, str):
            raise InvalidInput(field=f"{field}.content", value=content, expected="a string or a list of blocks")
    else:
        _check_image(block, field)


def _check_image(block: dict[str, Any], field: str) -> None:
    if block["type"] != "image":
        return
    source = object_at(block, "source", field)
    kind = text_at(source, "type", f"{field}.source")
    for key in {"base64": ("media_type", "data"), "url": ("url",)}.get(kind, ()):
        text_at(source, key, f"{field}.source")


def _read_block(block: Wire) -> Part:
    kind = block["type"]
    if kind == "tool_use":
        return Call(block["id"], block["name"], _arguments_text(block["input"]))
    if kind == "tool_result":
        content = block.get("content") or ()
        inner = (Text(content),) if isinstance(content, str) else tuple(_read_content(part) for part in content)
        return Result(block["tool_use_id"], inner, error=bool(block.get("is_error")))
    return _read_content(block)


def _read_content(block: Wire) -> Content:
    kind = block["type"]
    if kind == "text":
        return Text(block["text"])
    if kind == "image":
        source = block["source"]
        if source["type"] == "base64" and source["media_type"]:
            return Image(source["data"], source["media_type"])
        if source["type"] == "url":
            return Image.from_url(source["url"])
    # Without content it is a compaction that failed, and Anthropic ignores it.
    return Opaque(NAME, kind, block, is_compaction=kind == "compaction" and bool(block.get("content")))


def _write_block(part: Part, role: Role) -> Iterator[dict[str, Any]]:
    if isinstance(part, Text):
        if part.text.strip():
            yield _text_block(_wrap_system_text(part.text) if role in {"system", "developer"} else part.text)
    elif isinstance(part, Image):
        if role != "assistant":
            yield _image_block(part)
    elif isinstance(part, Call):
        yield {"type": "tool_use", "id": _id(part.id), "name": part.name, "input": parse_input(part.arguments)}
    elif isinstance(part, Result):
        yield _result_block(part)
    elif part.format == NAME:
        yield dict(part.body)


def _wrap_system_text(text: str) -> str:
    """Wrap a system message inside the conversation: the API accepts system text only first."""
    return f"<system_message>{escape_markup(text)}</system_message>"


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image_block(image: Image) -> dict[str, Any]:
    if image.media_type:
        return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.source}}
    return {"type": "image", "source": {"type": "url", "url": image.source}}


def _result_block(result: Result) -> dict[str, Any]:
    content = [block for part in result.parts for block in _write_block(part, "tool")]
    written: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(result.id)}
    if content:
        written["content"] = _simplest_content(content)
    if result.error:
        written["is_error"] = True
    return written


def _content(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    if not blocks:
        return EMPTY_TEXT
    return _simplest_content(sorted(blocks, key=lambda block: block["type"] != "tool_result"))


def _simplest_content(blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    return str(blocks[0]["text"]) if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks


def _is_blank(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _id(given: str) -> str:
    """Return an id that Anthropic accepts.

    It depends only on the given id, so call and result match.
    """
    if _ID.fullmatch(given):
        return given
    digest = hashlib.sha256(given.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^a-zA-Z0-9_-]', '_', given)}_{digest}"


def parse_input(arguments: str) -> dict[str, Any]:
    """Parse the input that a model wrote as text; if it is not a JSON object, keep the text."""
    if not arguments:
        return {}
    given = _parse_object(arguments)
    return {RAW_KEY: arguments} if given is None else given


def _arguments_text(given: Mapping[str, Any]) -> str:
    """The arguments as JSON text, or the original text if it was not JSON."""
    raw = given.get(RAW_KEY)
    if len(given) == 1 and isinstance(raw, str) and raw and _parse_object(raw) is None:
        return raw
    return json.dumps(given, ensure_ascii=False)


def _parse_object(text: str) -> dict[str, Any] | None:
    """Parse a JSON object; None for invalid JSON and for values that cannot be sent."""
    try:
        value = json.loads(text, parse_constant=_refuse)
        check_json(value, "arguments")
    except (ValueError, RecursionError, InvalidInput):
        return None
    return value if is_object(value) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _system_blocks(system: Sequence[Wire] | str | None) -> list[dict[str, Any]]:
    """The host's system prompt as blocks. System messages are replaced by their content."""
    if not system:
        return []
    if isinstance(system, str):
        return [_text_block(system)] if system.strip() else []
    blocks: list[dict[str, Any]] = []
    for given in system:
        content = given["content"] if "role" in given else [given]
        blocks += [_text_block(content)] if isinstance(content, str) else [dict(block) for block in content]
    return [block for block in blocks if block["type"] != "text" or block["text"].strip()]
