"""Records of the sent messages, each built once, and the messages of stubs.

Selection asks for the size of a record, and the stubs contain it; a compaction is measured before it is stored. All of
them use the same records, since reducing hundreds of tool results takes most of the time of a compaction.

A stub for whole messages is a block in a user message, which every provider accepts anywhere. A stub for a tool
result is that result pruned to its record, so the call keeps its result. Quoted text is escaped, so that archived text
cannot act as an instruction or delimiter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.events.session import EntityPart
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Message, Part, Result, Text, Wire
from inmind.core.parse_result import parse_result, value_for_record
from inmind.core.text import escape_markup, truncate_middle
from inmind.core.tokens import TOKENS_PER_MESSAGE, Counter
from inmind.documents.document import ARCHIVE_PREFIX
from inmind.entities.record import Detail, fit_record
from inmind.history.compaction.record_lines import record_lines
from inmind.history.compaction.records import (
    AnsweredCall,
    answer_text,
    answered_calls,
    answers_by_message,
    pruned_result,
)
from inmind.history.compaction.select import MIN_REQUEST_TOKENS, CompactionSelection, MessageSizes
from inmind.history.history import ConversationEntry, EntriesByRange, History
from inmind.history.turns import TurnMessage, TurnResult, with_archived
from inmind.history.view import TokenMeter

_USUAL_LOCATION = f"{ARCHIVE_PREFIX}001:1000-1100"


class MessageRecords:
    """The sent messages of a history, with the records of their tool results."""

    def __init__(
        self, history: History, messages: Sequence[TurnMessage], meter: TokenMeter, known_ids: Sequence[EntityPart] = ()
    ) -> None:
        """`messages`: those of `history.sent`.

        `known_ids`: in the order in which a stub should name them.
        """
        self.history, self.messages, self.meter, self.known_ids = history, messages, meter, known_ids
        self.is_known = {part.id for part in known_ids}.__contains__
        self.entries_in = EntriesByRange(history.messages)
        self._answered, self._text, self._pruned = cache(AnsweredCall), cache(self._render), cache(self._count_pruned)

    @cached_property
    def answers(self) -> list[list[AnsweredCall]]:
        """The answered calls of each message, with complete results."""
        return answers_by_message(self._originals, self._answered)

    def answered_calls(self, messages: Iterable[TurnMessage]) -> list[AnsweredCall]:
        """The answered calls of messages that were sent; each is parsed once."""
        return answered_calls(messages, self._answered)

    @cached_property
    def _originals(self) -> list[TurnMessage]:
        originals = with_archived(self.history, self.messages, self.meter)
        return list(map(_with_result, self.messages, originals))

    def pruned_wires(self, place: int, detail: Detail, location: str) -> tuple[Wire, ...]:
        """The message at a place with its tool results pruned, from the original.

        A result that was pruned before keeps its location.
        """
        entry, original = self.history.sent[place], self._original(place)
        pointer = pruned_pointer(location_in(entry, original) or location)
        results = self._pruned_results(place, detail, pointer)
        return prune_outputs(original, pointer, lambda _: next(results))

    def sizes(self, *, record_tokens: int) -> MessageSizes:
        """Sizes of pruned messages, and of their lines in a stub with this room for records."""

        @cache
        def line(place: int) -> int:
            if self.messages[place].is_block:
                return self.messages[place].tokens
            if not self.answers[place]:
                return 0
            count = self.meter.count
            [lines] = record_lines([self.answers[place]], [], self.is_known, budget=record_tokens, count=count).by_run
            return count("\n".join(lines)) if lines else 0

        return MessageSizes(self._pruned, line)

    def without_unprunable(self, selection: CompactionSelection) -> CompactionSelection:
        """The selection without tool results whose record is not shorter."""
        outputs = {
            place: detail
            for place, detail in selection.outputs.items()
            if self._pruned(place, detail) < self.messages[place].tokens
        }
        return replace(selection, outputs=outputs)

    def _original(self, place: int) -> ConversationEntry:
        """The message that was sent before it was shortened."""
        entry = self.history.sent[place]
        return entry if entry.replaced_ranges is None else self.entries_in(entry.replaced_ranges)[-1]

    def _pruned_results(self, place: int, detail: Detail, pointer: str) -> Iterator[str]:
        for number, answered in enumerate(self.answers[place]):
            yield pruned_result(answered.result.text, self._text(place, number, detail), pointer)

    def _count_pruned(self, place: int, detail: Detail) -> int:
        """Tokens of a message after its results are pruned, without writing it."""
        tokens = self._originals[place].tokens
        texts = self._pruned_results(place, detail, pruned_pointer(_USUAL_LOCATION))
        for answered, text in zip(self.answers[place], texts, strict=True):
            if text != answered.result.text:
                tokens += self.meter.count(text) + TOKENS_PER_MESSAGE - answered.result.tokens
        return tokens

    def _render(self, place: int, number: int, detail: Detail) -> str:
        return escape_markup(answer_text(self.answers[place][number], detail, self.is_known))


def _with_result(message: TurnMessage, original: TurnMessage) -> TurnMessage:
    """The original message with its results, also one of an agent without tool calls."""
    if message.stub and message.results and not original.results:
        return replace(original, results=(TurnResult("", original.text, original.tokens),))
    return original


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
        return _write_message(entry, message, _pruned_parts(message.parts, pointer, prune(message.text)))
    parts = [
        replace(part, parts=_pruned_parts(part.parts, pointer, prune(part.text))) if isinstance(part, Result) else part
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
    return FORMATS[entry.format].read(entry.wire).all_text.split("\n")


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
            text = part.text
            record = fit_record(value_for_record(text, parse_result(text)), budget=room + id_tokens, count=count)
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


def _pruned_parts(answer: Sequence[Part], pointer: str, text: str) -> tuple[Text, ...]:
    if all(isinstance(part, Text) for part in answer):
        return (Text(text),)
    pointed = text if text.startswith(pointer) else f"{pointer}\n{text}".rstrip("\n")
    return (Text(pointed), Text("More than text was in it."))


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
