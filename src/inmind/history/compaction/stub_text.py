"""Texts and messages of stubs: size, beginning and location of the archived messages.

A stub for whole messages is a block in a user message, which every provider accepts anywhere. A stub for a tool
result is that result reduced to one line, so the call keeps its result. Quoted text is escaped, so that archived text
cannot act as an instruction or delimiter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Message, Part, Result, Text, Wire
from inmind.core.text import escape_markup, shorten, truncate_middle
from inmind.core.tokens import Counter
from inmind.history import ConversationEntry
from inmind.history.compaction.select import MIN_REQUEST_TOKENS

BLOCK_START = "<compacted_history>"
BLOCK_END = "</compacted_history>"

MAX_QUOTE_CHARACTERS = 80
"""Characters quoted from the start of a tool result."""


def block_text(*, description: str, pages: Sequence[str], summary: str = "", ids: Sequence[str] = ()) -> str:
    """Return the block for messages. `description`: their number; `pages`: their location."""
    lines = [f"{description} All of it is in {', '.join(pages)}."]
    if summary:
        lines += ["Summary:", escape_markup(summary)]
    if ids:
        lines.append(f"Ids in them: {escape_markup(', '.join(ids))}")
    return "\n".join([BLOCK_START, *lines, BLOCK_END])


def block_wires(text: str, format: str) -> tuple[Wire, ...]:
    """Return the block as messages of a provider."""
    return tuple(FORMATS[format].write([Message("user", (Text(text),))]))


def replace_outputs(
    entry: ConversationEntry, archive_location: str, pick_ids: Callable[[str], Sequence[str]]
) -> tuple[Wire, ...]:
    """Return the message with each tool result replaced by one line.

    `archive_location`: page and lines of the message. `pick_ids`: ids in the result that the line must name.
    """
    message = FORMATS[entry.format].read(entry.wire)
    if message.calls:
        return (entry.wire,)
    if not message.results:  # command output of an agent without tool calls
        return _write_message(entry, message, [_output_line(message.parts, archive_location, pick_ids)])
    parts = [
        replace(part, parts=(_output_line(part.parts, archive_location, pick_ids),))
        if isinstance(part, Result)
        else part
        for part in message.parts
    ]
    return _write_message(entry, message, parts)


def cut_message(
    entry: ConversationEntry,
    archive_location: str,
    pick_ids: Callable[[str], Sequence[str]],
    *,
    tokens: int,
    count: Counter,
) -> tuple[Wire, ...]:
    """Return the message cut to `tokens`: beginning, end, and a pointer to the full text.

    `pick_ids`: ids in the removed text that the line must name.
    """
    message = FORMATS[entry.format].read(entry.wire)
    pointer = f"[cut: all of it is in {archive_location}]"
    if message.calls:
        return (_shorten_arguments(entry.wire, pointer),)
    parts: list[Part] = []
    room = tokens
    for part in message.parts:
        if isinstance(part, Result | Text):
            text = part.text if isinstance(part, Text) else _joined_text(part.parts)
            budget = max(room, count(pointer)) + 2
            least = MIN_REQUEST_TOKENS if message.role == "user" and isinstance(part, Text) else 0
            head, left_out, tail = truncate_middle(text, budget=budget, count=count, pointer=pointer, least_head=least)
            room = max(0, room - count(head) - count(tail))
            ids = pick_ids(left_out) if left_out else ()
            named = f"Ids in the rest: {escape_markup(', '.join(ids))}" if ids else ""
            shortened = Text("\n".join(filter(None, (head or pointer, named, tail))))
            parts.append(shortened if isinstance(part, Text) else replace(part, parts=(shortened,)))
    if len(parts) < len(message.parts):  # an image or a provider specific part
        parts.append(Text(pointer))
    return _write_message(entry, message, parts)


def _output_line(answer: Sequence[Part], archive_location: str, pick_ids: Callable[[str], Sequence[str]]) -> Text:
    text = _joined_text(answer)
    other = "" if all(isinstance(part, Text) for part in answer) else ", with more than text"
    start = shorten(text[: 4 * MAX_QUOTE_CHARACTERS], MAX_QUOTE_CHARACTERS)
    start_note = f"; it began: {json.dumps(escape_markup(start), ensure_ascii=False)}" if start else ""
    ids = pick_ids(text)
    named = f"; ids in it: {escape_markup(', '.join(ids))}" if ids else ""
    return Text(f"[archived, {len(text):,} characters{other}: {archive_location}{start_note}{named}]")


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
        if isinstance(argument := value.get(key), str) and len(argument) > MAX_QUOTE_CHARACTERS:
            short[key] = json.dumps({"cut": pointer}) if key == "arguments" else pointer
        elif is_object(argument) and len(to_json(argument)) > MAX_QUOTE_CHARACTERS:
            short[key] = {"cut": pointer}
    return short


def _restore_ids(value: Any, ids: Iterator[str]) -> Any:
    if is_list(value):
        return [_restore_ids(item, ids) for item in value]
    if not is_object(value):
        return value
    return {key: next(ids, item) if key in _RESULT_ID_KEYS else _restore_ids(item, ids) for key, item in value.items()}


_RESULT_ID_KEYS = ("tool_use_id", "tool_call_id", "call_id")
