"""Records of tool results that leave the prompt, in place or as lines of a block.

A tool result that is pruned keeps its place, so that the call and the conversation around it still explain it. When
whole messages leave, each of their calls becomes one line, newest first. An answer that the same call gave again later,
or that only repeats the ids of a later answer about the same thing, is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from inmind.core.json import is_list, is_object
from inmind.core.text import escape_markup, shorten
from inmind.core.tokens import Counter
from inmind.entities.extract.tool_name import parse_tool_name
from inmind.entities.ids.keys import key_meaning
from inmind.entities.outcome import is_failure
from inmind.entities.parse_result import parse_result
from inmind.entities.record import STATE_WORDS, Detail, cut_record, parse_for_record, prune, render_record
from inmind.history.turns import TurnCall, TurnMessage, TurnResult

MAX_ARGUMENT_CHARACTERS = 160
MAX_TOOL_CHARACTERS = 60

_TEXT_CHARACTERS = {Detail.FACTS: 240, Detail.TRAITS: 160, Detail.IDS: 100}
"""Characters that stay of a result without fields."""
_MIN_SAVED_CHARACTERS = 60
"""Characters that a record must save, pointer included."""
_AROUND_ID = 30
"""Characters before and after an id that is quoted from a text."""


@dataclass(frozen=True)
class AnsweredCall:
    """A tool call and its result, each parsed once."""

    call: TurnCall
    result: TurnResult

    @cached_property
    def arguments(self) -> Any:
        return parse_result(self.call.arguments)

    @cached_property
    def value(self) -> Any:
        """The result if it has fields or entries; else None."""
        return parse_for_record(self.result.text)

    @cached_property
    def failed(self) -> bool:
        return self.result.error or is_failure(self.result.text)

    @cached_property
    def subject(self) -> str:
        """The thing that the call was about: the argument that the result repeats as a value."""
        own = set(map(str, self.value.values())) if is_object(self.value) else set[str]()
        return next((text for text in _texts_in(self.arguments) if text in own), "")

    @cached_property
    def ids(self) -> set[str]:
        """Ids and names of the result, without states: a newer state replaces an earlier one."""
        return set(_texts_in(prune(self.value, Detail.IDS), without=STATE_WORDS))


def pruned_result(text: str, record: str, pointer: str) -> str:
    """A tool result as its record below a pointer; unchanged if the record is not shorter."""
    return f"{pointer}\n{record}" if len(record) + _MIN_SAVED_CHARACTERS < len(text) else text


def answer_text(
    answered: AnsweredCall,
    detail: Detail,
    known: Callable[[str], bool],
    handled: Callable[[str], str] | None = None,
    repeated: Iterable[tuple[str, Any]] = (),
) -> str:
    """The record of an answer without fields of the call's arguments or in `repeated`.

    A text without fields, or with long ones only, stays by its beginning and the places with known ids.
    """
    value = answered.value
    if is_object(value):
        left_out = {*_id_fields(answered.arguments), *repeated}
        value = {
            key: item for key, item in value.items() if not isinstance(item, str | int) or (key, item) not in left_out
        }
        if not value:
            return "nothing else"
    pruned = prune(value, detail)
    if pruned is None and prune(value) is None:
        return clip_text(answered.result.text, _TEXT_CHARACTERS[detail], known) or "no text"
    return render_record(pruned, handled) or "no other ids"


def clip_text(text: str, max_characters: int, known: Callable[[str], bool]) -> str:
    """The beginning of a text on one line, then the words around each other known id.

    It is cut between words: a part of an id would pass for another id.
    """
    line = " ".join(text.split())
    if len(line) <= max_characters:
        return line
    spaced = line.translate(_SEPARATORS)
    spans = [(0, _end_of_words(spaced, 0, max_characters))]
    in_spans = set[str]()
    for place, word in _words(line):
        end = place + len(word)
        if word in in_spans or not known(word):
            continue
        in_spans.add(word)
        if end > spans[-1][1]:
            start = min(place, max(spans[-1][1], _start_of_words(spaced, place - _AROUND_ID, place)))
            spans.append((start, _end_of_words(spaced, end, place + 2 * _AROUND_ID)))
    head, *quotes = [line[start:end].strip() for start, end in spans]
    return " … ".join([head, *quotes]) + ("" if quotes else "…")


def _start_of_words(spaced: str, place: int, end: int) -> int:
    """The place of the first word that begins between two places; `end` if there is none."""
    return 0 if place <= 0 else (spaced.find(" ", place - 1, end) + 1 or end)


def _end_of_words(spaced: str, start: int, place: int) -> int:
    """The end of the last word that ends between two places; `place` if there is none."""
    return len(spaced) if place >= len(spaced) else max(start, spaced.rfind(" ", start, place + 1)) or place


def possible_ids(text: str) -> set[str]:
    """Return all words of a text that could be an id."""
    return {word for _, word in _words(text)}


def _words(text: str) -> Iterator[tuple[int, str]]:
    """Places and words, with and without a sentence's last character."""
    place = 0
    for word in text.translate(_SEPARATORS).split():
        place = text.index(word, place)
        yield place, word
        if word.endswith(_TRAILING):
            yield place, word.rstrip("".join(_TRAILING))
        place += len(word)


_SEPARATORS = str.maketrans(dict.fromkeys("\"'`(),;:=[]{}<>|\\", " "))
_TRAILING = (".", "!", "?", "…")


def answered_calls(messages: Iterable[TurnMessage]) -> list[AnsweredCall]:
    """Return the calls of messages with their results, in the order of the results."""
    return [answered for one in answers_by_message(messages) for answered in one]


def answers_by_message(messages: Iterable[TurnMessage]) -> list[list[AnsweredCall]]:
    """Return the answered calls of each message.

    Hosts may use an id again, so a result belongs to the last message with an unanswered call of its id; there, to the
    first such call.
    """
    unanswered: dict[str, list[list[TurnCall]]] = {}
    by_message: list[list[AnsweredCall]] = []
    for message in messages:
        for id in dict.fromkeys(call.id for call in message.calls):
            unanswered.setdefault(id, []).append([call for call in message.calls if call.id == id])
        by_message.append([AnsweredCall(_take_call(unanswered, result.id), result) for result in message.results])
    return by_message


def _take_call(unanswered: dict[str, list[list[TurnCall]]], id: str) -> TurnCall:
    calls_by_message = unanswered.get(id)
    if not calls_by_message:
        return _NO_CALL
    call = calls_by_message[-1].pop(0)
    if not calls_by_message[-1]:
        calls_by_message.pop()
    return call


_NO_CALL = TurnCall("", "", "")
"""The call of an agent that writes its commands as text."""


def record_lines(
    removed: Sequence[AnsweredCall],
    kept: Sequence[AnsweredCall],
    known: Callable[[str], bool],
    *,
    budget: int,
    count: Counter,
) -> tuple[list[str], int]:
    """Lines of the removed calls, newest first, and the number of calls that did not fit.

    All lines have the same detail, the most that fits. If not all fit with ids only, the oldest are left out. A call
    that stays stands for earlier calls that had the same answer.
    """
    lines: list[str] = []
    for detail in reversed(Detail):
        lines, used, records = [], 0, _CallRecords(kept, known)
        for place, answered in enumerate(reversed(removed)):
            line = records.line(answered, detail)
            used += count(line) + 1 if line else 0
            if used > budget:
                if detail == Detail.IDS:
                    return lines, len(removed) - place
                break
            lines += [line] if line else []
        else:
            return lines, 0
    return lines, 0


class _CallRecords:
    """Builds the line of each call, given from the newest to the oldest."""

    def __init__(self, kept: Sequence[AnsweredCall], known: Callable[[str], bool]) -> None:
        self._known = known
        self._answered: set[tuple[str, str]] = set()
        self._ids_by_subject: dict[str, set[str]] = {}
        self._verbs: dict[str, list[str]] = {}
        self._ids_given: set[tuple[str, Any]] = set()
        for answered in reversed(kept):
            self._note(answered)

    def line(self, answered: AnsweredCall, detail: Detail) -> str:
        """Return the line of a call; empty if a newer message has its answer."""
        result, call = answered.result, self._call_text(answered)
        if result.error:
            line = f"- {call} failed: {clip_text(result.text, _TEXT_CHARACTERS[Detail.IDS], self._known)}"
        elif self._is_repeated(answered):
            line = ""
        else:
            line = f"- {call}: {answer_text(answered, detail, self._known, self._handled, self._ids_given)}"
            self._ids_given.update(_id_fields(answered.value))
        self._note(answered)
        return escape_markup(line)

    def _handled(self, id: str) -> str:
        """The verbs of later calls with an id of a list."""
        return ", ".join(self._verbs.get(id, ()))

    def _call_text(self, answered: AnsweredCall) -> str:
        call, arguments = answered.call, answered.arguments
        if not call.tool:
            return "output"
        pairs = render_record(prune(arguments)) if is_object(arguments) else ""
        if len(pairs) > MAX_ARGUMENT_CHARACTERS:
            pairs = cut_record(pairs, budget=MAX_ARGUMENT_CHARACTERS, count=len)
        return f"{_tool_text(call.tool)}({pairs})"

    def _note(self, answered: AnsweredCall) -> None:
        """Note the answer, and for which ids the tool was called, unless the call failed."""
        call = answered.call
        if answered.failed:
            return
        verb = parse_tool_name(call.tool).verb or _tool_text(call.tool)
        for text in _texts_in(answered.arguments):
            verbs = self._verbs.setdefault(text, [])
            if verb not in verbs:
                verbs.insert(0, verb)
        self._answered.add((call.tool, call.arguments))
        if answered.subject:
            self._ids_by_subject.setdefault(answered.subject, set()).update(answered.ids)

    def _is_repeated(self, answered: AnsweredCall) -> bool:
        """True if a newer call was the same, or was about the same thing and had all of its ids."""
        if answered.call.tool and (answered.call.tool, answered.call.arguments) in self._answered:
            return True
        known_ids = self._ids_by_subject.get(answered.subject)
        return known_ids is not None and answered.ids <= known_ids


def _tool_text(name: str) -> str:
    """The name of a tool, quoted if it could pass for more than that."""
    line = shorten(name, MAX_TOOL_CHARACTERS)
    return line if _TOOL.fullmatch(line) else json.dumps(line, ensure_ascii=False)


_TOOL = re.compile(r"[\w.:/…-]+")


def _id_fields(value: object) -> Iterator[tuple[str, Any]]:
    """The fields of an object that refer to other things by their ids."""
    for key, item in value.items() if is_object(value) else ():
        if isinstance(item, str | int) and key_meaning(key).role == "id":
            yield key, item


def _texts_in(value: object, without: Container[str] = ()) -> Iterator[str]:
    """All texts in a value, without those under some keys."""
    if isinstance(value, str):
        yield value
    elif is_object(value):
        for key, item in value.items():
            if key.lower() not in without:
                yield from _texts_in(item, without)
    elif is_list(value):
        for item in value:
            yield from _texts_in(item, without)
