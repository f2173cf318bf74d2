"""Records of tool results that leave the prompt, in place or as lines of a block.

A tool result that is pruned keeps its place, so that the call and the conversation around it still explain it. When
whole messages leave, each of their calls becomes one line, oldest first as in the conversation. An answer that the same
call gave again later, or that only repeats the ids of a later answer about the same thing, is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.text import escape_markup, shorten
from inmind.core.tokens import Counter
from inmind.entities.extract.tool_name import parse_tool_name
from inmind.entities.ids.keys import has_secret, is_secret_key, key_meaning
from inmind.entities.outcome import is_failure
from inmind.entities.parse_result import parse_result
from inmind.entities.record import (
    STATE_WORDS,
    Detail,
    count_unnamed,
    cut_record,
    parse_for_record,
    prune,
    render_record,
)
from inmind.history.turns import TurnCall, TurnMessage, TurnResult

MAX_ARGUMENT_CHARACTERS = 160
MAX_TOOL_CHARACTERS = 60

_TEXT_CHARACTERS = {Detail.FACTS: 240, Detail.TRAITS: 160, Detail.IDS: 100}
"""Characters that stay of a result without fields."""
_EMPTY_RESULT_TOKENS = 10
"""A result without text has fewer tokens than this, unless it is an image."""
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
    def texts(self) -> set[str]:
        """Values of the result, without states: a newer state replaces an earlier one."""
        return set(_texts_in(prune(self.value), without=STATE_WORDS))


def pruned_result(text: str, record: str, pointer: str) -> str:
    """A tool result as its record below a pointer; unchanged if the record is not shorter."""
    return f"{pointer}\n{record}" if len(record) + _MIN_SAVED_CHARACTERS < len(text) else text


def answer_text(
    answered: AnsweredCall,
    detail: Detail,
    known: Callable[[str], bool],
    handled: Callable[[str], str] | None = None,
    repeated: Iterable[tuple[str, Any]] = (),
    *,
    has_lists: bool = True,
) -> str:
    """The record of an answer without fields of the call's arguments or in `repeated`.

    A text without fields, or with long ones only, stays by its beginning and the places with known ids. `has_lists`:
    with lists of ids that have no names; else they are counted.
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
    return render_record(pruned if has_lists else count_unnamed(pruned), handled) or "no other ids"


def clip_text(text: str, max_characters: int, known: Callable[[str], bool]) -> str:
    """The beginning of a text on one line, then the words around each other known id.

    It is cut between words: a part of an id would pass for another id.
    """
    line = " ".join("[secret]" if has_secret(word) else word for word in _PAIR.sub(_hide_secret, text).split())
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


def _hide_secret(pair: re.Match[str]) -> str:
    return f"{pair[1]}[secret]" if is_secret_key(pair[2]) else pair[0]


_PAIR = re.compile(r"""((?<![\w-])([A-Za-z_][\w-]{2,40})["']?\s{0,2}[:=]\s{0,2})["']?[^\s"',;}\]]{4,}["']?""")
"""A key and its value in a text, as in JSON or YAML."""


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
    removed: Sequence[Sequence[AnsweredCall]],
    kept: Sequence[AnsweredCall],
    known: Callable[[str], bool],
    *,
    budget: int,
    count: Counter,
) -> tuple[list[list[str]], int]:
    """Lines of the removed calls by run, and the number of calls that did not fit.

    They stand in the order of the conversation, and the earliest are left out. As many calls as possible have a line,
    then as many as possible with all of their ids, then the newest have the most detail. A call that stays stands for
    earlier calls that had the same answer.
    """
    records = _CallRecords(kept, known)
    lines: list[tuple[int, _CallLine]] = []
    texts: list[str] = []
    calls = [(run, answered) for run, some in enumerate(removed) for answered in some]
    left_out, used = 0, 0
    for place, (run, answered) in reversed([*enumerate(calls)]):
        line = records.line(answered)
        if line is None:
            continue
        joined = lines[-1][1].joined(line) if lines and lines[-1][0] == run else None
        text = (joined or line).text(*_LEAST)
        added = count(text) - count(texts[-1]) if joined else count(text) + 1
        if used + added > budget:
            left_out = place + 1
            break
        used += added
        start = len(lines) - 1 if joined else len(lines)
        lines[start:], texts[start:] = [(run, joined or line)], [text]
    for levels in (_ALL_IDS, _DETAILS):
        for place, (_, line) in enumerate(lines):
            if budget - used < _MIN_ADDED_TOKENS:
                break
            for level in levels:
                text = line.text(*level)
                added = count(text) - count(texts[place])
                if used + added <= budget:
                    texts[place] = text
                    used += added
                    break
    by_run: list[list[str]] = [[] for _ in removed]
    for (run, _), text in zip(reversed(lines), reversed(texts), strict=True):
        by_run[run].append(text)
    return by_run, left_out


_LEAST = (Detail.IDS, False)
"""The least detail of a line: without lists of ids that have no names."""
_ALL_IDS = ((Detail.IDS, True),)
_DETAILS = ((Detail.FACTS, True), (Detail.TRAITS, True))
_MIN_ADDED_TOKENS = 8
"""Below this many free tokens, no line gets more detail."""


@frozen
class _CallLine:
    """The line of a call, or of several with the same answer, at any detail."""

    answered: AnsweredCall
    arguments: Any
    pairs: str
    """The arguments as text."""
    known: Callable[[str], bool]
    repeated: frozenset[tuple[str, Any]]
    """Fields that a newer line has."""
    verbs: Mapping[str, str]
    """Later calls by id."""
    varied: str = ""
    """The argument that has a list with the values of several calls."""

    def joined(self, older: _CallLine) -> _CallLine | None:
        """One line for calls with the same answer that differ in one argument; else None."""
        newer, other = self.arguments, older.arguments
        if not (is_object(newer) and is_object(other)) or newer.keys() != other.keys() or self._answer != older._answer:
            return None
        differing = [key for key in newer if newer[key] != other[key]]
        if len(differing) != 1 or self.varied not in ("", *differing):
            return None
        [key] = differing
        values = [other[key], *(newer[key] if self.varied else [newer[key]])]
        arguments = {**newer, key: values}
        pairs = _pairs(arguments)
        is_short = len(pairs) <= MAX_ARGUMENT_CHARACTERS and all(isinstance(value, str | int) for value in values)
        return replace(self, arguments=arguments, pairs=pairs, varied=key) if is_short else None

    @property
    def _answer(self) -> tuple[str, str]:
        return self.answered.call.tool, self.answered.result.text

    @property
    def _call(self) -> str:
        tool = self.answered.call.tool
        return f"{_tool_text(tool)}({self.pairs})" if tool else "output"

    def text(self, detail: Detail, has_lists: bool) -> str:
        if self.answered.failed:
            text = clip_text(self.answered.result.text, _TEXT_CHARACTERS[Detail.IDS], self.known)
            return escape_markup(f"- {self._call} failed: {text}")
        answer = answer_text(self.answered, detail, self.known, self._verbs_of, self.repeated, has_lists=has_lists)
        return escape_markup(f"- {self._call}: {answer}")

    def _verbs_of(self, id: str) -> str:
        return self.verbs.get(id, "")


class _CallRecords:
    """Builds the line of each call, given from the newest to the oldest."""

    def __init__(self, kept: Sequence[AnsweredCall], known: Callable[[str], bool]) -> None:
        self._known = known
        self._answered: set[tuple[str, str]] = set()
        self._texts_by_subject: dict[str, set[str]] = {}
        self._verbs: dict[str, list[str]] = {}
        self._ids_given: set[tuple[str, Any]] = set()
        for answered in reversed(kept):
            self._note(answered)

    def line(self, answered: AnsweredCall) -> _CallLine | None:
        """Return the line of a call; None if it says nothing, or a newer message has its answer."""
        line = None
        pairs = _pairs(answered.arguments)
        is_empty = not (pairs or answered.result.text.strip()) and answered.result.tokens < _EMPTY_RESULT_TOKENS
        if not is_empty and (answered.failed or not self._is_repeated(answered)):
            fields = [] if answered.failed else list(_id_fields(answered.value))
            line = _CallLine(
                answered,
                answered.arguments,
                cut_record(pairs, budget=MAX_ARGUMENT_CHARACTERS, count=len)
                if len(pairs) > MAX_ARGUMENT_CHARACTERS
                else pairs,
                self._known,
                frozenset(self._ids_given.intersection(fields)),
                {id: ", ".join(self._verbs[id]) for id in _texts_in(answered.value) if id in self._verbs},
            )
            self._ids_given.update(fields)
        self._note(answered)
        return line

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
            self._texts_by_subject.setdefault(answered.subject, set()).update(answered.texts)

    def _is_repeated(self, answered: AnsweredCall) -> bool:
        """True if a newer call was the same, or newer ones had all values about the thing."""
        if answered.call.tool and (answered.call.tool, answered.call.arguments) in self._answered:
            return True
        known = self._texts_by_subject.get(answered.subject)
        return known is not None and answered.texts <= known


def _pairs(arguments: Any) -> str:
    return render_record(prune(arguments)) if is_object(arguments) else ""


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
    """All texts and numbers in a value, as texts, without those under some keys."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    elif is_object(value):
        for key, item in value.items():
            if key.lower() not in without:
                yield from _texts_in(item, without)
    elif is_list(value):
        for item in value:
            yield from _texts_in(item, without)
