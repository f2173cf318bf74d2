"""Texts and messages of stubs: records of the archived messages, and their location.

A stub for whole messages is a block in a user message, which every provider accepts anywhere. A stub for a tool
result is that result pruned to its record, so the call keeps its result. Quoted text is escaped, so that archived text
cannot act as an instruction or delimiter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Message, Part, Result, Text, Wire
from inmind.core.text import escape_markup, truncate_middle
from inmind.core.tokens import Counter
from inmind.entities.parse_result import parse_for_record
from inmind.entities.record_text import fit_record
from inmind.history import ConversationEntry
from inmind.history.compaction.select import MIN_REQUEST_TOKENS

BLOCK_START = "<compacted_history>"
BLOCK_END = "</compacted_history>"

MAX_CUT_ARGUMENT_CHARACTERS = 80
"""Characters of an argument that stay in a cut message."""


RECORDS_HEADING = "Calls:"


def block_text(
    *, description: str, summary: str = "", records: Sequence[str] = (), more: str = "", ids: str = ""
) -> str:
    """Return the block for messages.

    `description`: their number and location; `more`: the number of calls without a record; `ids`: ids that no
    record has.
    """
    lines = [description]
    if summary:
        lines.append(escape_markup(summary))
    if records:
        lines.append(RECORDS_HEADING)
    if more:
        lines.append(more)
    lines += records
    if ids:
        lines.append(f"Also mentioned: {escape_markup(ids)}")
    return "\n".join([BLOCK_START, *lines, BLOCK_END])


def block_wires(text: str, format: str) -> tuple[Wire, ...]:
    """Return the block as messages of a provider."""
    return tuple(FORMATS[format].write([Message("user", (Text(text),))]))


def prune_outputs(entry: ConversationEntry, pointer: str, prune: Callable[[str], str]) -> tuple[Wire, ...]:
    """Return the message with each tool result pruned. `prune`: returns a result's new text.

    `pointer` stands above a result that had more than text, also if its text stays.
    """
    message = FORMATS[entry.format].read(entry.wire)
    if message.calls:
        return (entry.wire,)
    if not message.results:  # command output of an agent without tool calls
        return _write_message(entry, message, _pruned_parts(message.parts, pointer, prune))
    parts = [
        replace(part, parts=_pruned_parts(part.parts, pointer, prune)) if isinstance(part, Result) else part
        for part in message.parts
    ]
    return _write_message(entry, message, parts)


def pruned_pointer(location: str) -> str:
    """Return the line above a pruned result."""
    return f"[pruned: {location}]"


def location_in(entry: ConversationEntry, original: ConversationEntry) -> str:
    """Return the location that a shortened message names; empty if it is the original.

    A line of the original is no pointer, even if it looks like one.
    """
    if entry.digest == original.digest:
        return ""
    own_lines = set(_text_lines(original))
    pointers = (_POINTER.fullmatch(line) for line in _text_lines(entry) if line not in own_lines)
    return next((match[1] for match in pointers if match), "")


_POINTER = re.compile(r"\[(?:pruned: |cut: all of it is in )(.+)\]")


def _text_lines(entry: ConversationEntry) -> list[str]:
    message = FORMATS[entry.format].read(entry.wire)
    texts = [message.text, *(_joined_text(result.parts) for result in message.results)]
    return "\n".join(texts).split("\n")


def cut_message(
    entry: ConversationEntry,
    archive_location: str,
    name_ids: Callable[[str, int], str],
    *,
    tokens: int,
    id_tokens: int,
    count: Counter,
) -> tuple[Wire, ...]:
    """Return the message cut to `tokens`, with a pointer to the full text.

    Beginning and end stay of a text, and the record of a result with fields. `name_ids`: returns the ids in a removed
    text within a number of tokens, each with its name. `id_tokens`: the room for them.
    """
    message = FORMATS[entry.format].read(entry.wire)
    pointer = f"[cut: all of it is in {archive_location}]"

    def cut(text: str, room: int, least: int = 0) -> str:
        budget = max(room, count(pointer)) + 2
        head, left_out, tail = truncate_middle(text, budget=budget, count=count, pointer=pointer, least_head=least)
        ids = name_ids(left_out, id_tokens) if left_out else ""
        named = f"In the rest: {escape_markup(ids)}" if ids else ""
        return "\n".join(filter(None, (head or pointer, named, tail)))

    if message.calls:
        return (_cut_content(_shorten_arguments(entry.wire, pointer), lambda text: cut(text, tokens)),)
    parts: list[Part] = []
    room = tokens
    for part in message.parts:
        if isinstance(part, Text):
            shortened = cut(part.text, room, MIN_REQUEST_TOKENS if message.role == "user" else 0)
            parts.append(Text(shortened))
        elif isinstance(part, Result):
            text = _joined_text(part.parts)
            record = fit_record(parse_for_record(text), budget=room + id_tokens, count=count)
            is_cut = count(text) > max(room, count(pointer)) + 2
            shortened = f"{pointer}\n{escape_markup(record)}" if record and is_cut else cut(text, room)
            parts.append(replace(part, parts=(Text(shortened),)))
        else:
            continue
        room = max(0, room - count(shortened))
    if len(parts) < len(message.parts):  # an image or a provider specific part
        parts.append(Text(pointer))
    return _write_message(entry, message, parts)


def _cut_content(wire: Any, cut: Callable[[str], str]) -> Any:
    """Return a message with calls, with its texts cut."""
    content = wire.get("content")
    if isinstance(content, str):
        return {**wire, "content": cut(content)}
    if is_list(content):
        texts = [{**part, "text": cut(part["text"])} if part.get("type") == "text" else part for part in content]
        return {**wire, "content": texts}
    return wire


def _pruned_parts(answer: Sequence[Part], pointer: str, prune: Callable[[str], str]) -> tuple[Part, ...]:
    text = prune(_joined_text(answer))
    if all(isinstance(part, Text) for part in answer):
        return (Text(text),)
    pointed = text if text.startswith(pointer) else f"{pointer}\n{text}".rstrip("\n")
    return (Text(pointed), Text("More than text was in it."))


def _joined_text(parts: Sequence[Part]) -> str:
    return "\n".join(part.text for part in parts if isinstance(part, Text))


def _write_message(entry: ConversationEntry, message: Message, parts: Sequence[Part]) -> tuple[dict[str, Any], ...]:
    """Write a message in the provider's format, with the original call ids."""
    ids = iter([result.id for result in message.results])
    return tuple(_restore_ids(wire, ids) for wire in FORMATS[entry.format].write([Message(message.role, tuple(parts))]))


def _shorten_arguments(value: Any, pointer: str) -> Any:
    """Return a message with calls, with long arguments replaced; the calls stay valid."""
    if is_list(value):
        return [_shorten_arguments(item, pointer) for item in value]
    if not is_object(value):
        return value
    short = {key: _shorten_arguments(item, pointer) for key, item in value.items()}
    for key in ("arguments", "input"):
        if isinstance(argument := value.get(key), str) and len(argument) > MAX_CUT_ARGUMENT_CHARACTERS:
            short[key] = json.dumps({"cut": pointer}) if key == "arguments" else pointer
        elif is_object(argument) and len(to_json(argument)) > MAX_CUT_ARGUMENT_CHARACTERS:
            short[key] = {"cut": pointer}
    return short


def _restore_ids(value: Any, ids: Iterator[str]) -> Any:
    if is_list(value):
        return [_restore_ids(item, ids) for item in value]
    if not is_object(value):
        return value
    return {key: next(ids, item) if key in _RESULT_ID_KEYS else _restore_ids(item, ids) for key, item in value.items()}


_RESULT_ID_KEYS = ("tool_use_id", "tool_call_id", "call_id")
