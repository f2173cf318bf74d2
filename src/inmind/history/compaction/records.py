"""Tool calls with their results, and the record that stays of a result.

A tool result that is pruned keeps its place, so that the call and the conversation around it still explain it. When
whole messages leave, each of their calls becomes one line: `record_lines.py`. A result without fields stays by its
beginning and end, and the words around known ids.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any

from inmind.core.json import is_list, is_object
from inmind.core.language.spans import compile_cached
from inmind.core.parse_result import parse_layers, parse_result, value_for_record
from inmind.core.tool_outcome import reports_failure
from inmind.entities.ids import has_secret, is_credential_key, key_meaning
from inmind.entities.record import STATE_WORDS, Detail, count_unnamed, prune, render_record
from inmind.history.turns import TurnCall, TurnMessage, TurnResult

TEXT_CHARACTERS = {Detail.FACTS: 240, Detail.TRAITS: 160, Detail.IDS: 100}
"""Characters that stay of a result without fields."""
_MAX_NOTHING_TOKENS = 40
"""An answer that says that nothing was found is shorter than this."""
_MIN_SAVED_CHARACTERS = 60
"""Characters that a record must save, pointer included."""


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
        return value_for_record(self.result.text, self._layers[-1])

    @cached_property
    def failed(self) -> bool:
        return self.result.error or any(map(reports_failure, self._layers))

    @cached_property
    def _layers(self) -> list[Any]:
        return parse_layers(self.result.text)

    @cached_property
    def only_reads(self) -> bool:
        return only_reads(self.call.tool, self.arguments if is_object(self.arguments) else {})

    @cached_property
    def found_nothing(self) -> bool:
        """True for a lookup without an answer, such as an empty list."""
        is_short = self.result.tokens < _MAX_NOTHING_TOKENS and self.only_reads and not self.failed
        return is_short and _is_empty(self._layers[-1])

    @cached_property
    def subject(self) -> str:
        """The thing that the call was about: the argument that the result repeats as a value."""
        own = set(map(str, self.value.values())) if is_object(self.value) else set[str]()
        return next((text for text in texts_in(self.arguments) if text in own), "")

    @cached_property
    def texts(self) -> set[str]:
        """Values of the result, without states: a newer state replaces an earlier one."""
        return set(texts_in(self.pruned(Detail.FACTS), without=STATE_WORDS))

    @cached_property
    def pruned(self) -> Callable[[Detail], Any]:
        """Returns the value with the fields of a detail."""
        return cache(partial(prune, self.value))


def _is_empty(value: Any) -> bool:
    """True for nothing, for empty lists, and for counts of 0 beside one."""
    if not (is_object(value) or is_list(value)):
        return value is None or value == ""
    items = list(value.values()) if is_object(value) else value
    has_list = any(item == [] for item in items)
    return all(_is_empty(item) or (has_list and type(item) is int and item == 0) for item in items)


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

    A text without fields, or with long ones only, stays by its beginning, its end and the places with known ids; what
    memory answered, without those. `has_lists`: with lists of ids that have no names; else they are counted.
    """
    if answered.result.from_memory:
        return clip_text(answered.result.text, TEXT_CHARACTERS[detail]) or "no text"
    value, prune_to = answered.value, answered.pruned
    if is_object(value) and (left_out := {*id_fields(answered.arguments), *repeated}):
        value = {
            key: item for key, item in value.items() if not isinstance(item, str | int) or (key, item) not in left_out
        }
        if not value:
            return "nothing else"
        prune_to = prune_to if len(value) == len(answered.value) else partial(prune, value)
    pruned = prune_to(detail)
    if pruned is None and prune_to(Detail.FACTS) is None:
        return clip_text(answered.result.text, TEXT_CHARACTERS[detail], known) or "no text"
    return render_record(pruned if has_lists else count_unnamed(pruned), handled) or "no other ids"


def answered_calls(
    messages: Iterable[TurnMessage], answered: Callable[[TurnCall, TurnResult], AnsweredCall] = AnsweredCall
) -> list[AnsweredCall]:
    """Return the calls of messages with their results, in the order of the results."""
    return list(chain.from_iterable(answers_by_message(messages, answered)))


def answers_by_message(
    messages: Iterable[TurnMessage], answered: Callable[[TurnCall, TurnResult], AnsweredCall] = AnsweredCall
) -> list[list[AnsweredCall]]:
    """Return the answered calls of each message.

    Hosts may use an id again, so a result belongs to the last message with an unanswered call of its id; there, to the
    first such call.
    """
    unanswered: dict[str, list[list[TurnCall]]] = {}
    by_message: list[list[AnsweredCall]] = []
    for message in messages:
        for id in dict.fromkeys(call.id for call in message.calls):
            unanswered.setdefault(id, []).append([call for call in message.calls if call.id == id])
        by_message.append([answered(_take_call(unanswered, result.id), result) for result in message.results])
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


def id_fields(value: object) -> Iterator[tuple[str, Any]]:
    """The fields of an object that refer to other things by their ids."""
    for key, item in value.items() if is_object(value) else ():
        if isinstance(item, str | int) and key_meaning(key).role == "id":
            yield key, item


def texts_in(value: object, without: Container[str] = ()) -> Iterator[str]:
    """All texts and numbers in a value, as texts, without those under some keys."""
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value)
    elif is_object(value):
        for key, item in value.items():
            if key.lower() not in without:
                yield from texts_in(item, without)
    elif is_list(value):
        for item in value:
            yield from texts_in(item, without)


_AROUND_ID = 30
"""Characters before and after an id that is quoted from a text."""
_MAX_QUOTES = 8
"""More ids are not quoted: a text with many is a listing."""


def never_known(_: str) -> bool:
    return False


def clip_text(text: str, max_characters: int, known: Callable[[str], bool] = never_known) -> str:
    """Beginning and end of a text on one line, and between them the words around known ids.

    The end of an output says how it ended. It is cut between words: a part of an id would pass for another id.
    """
    line = " ".join("[secret]" if has_secret(word) else word for word in _PAIR.sub(_hide_secret, text).split())
    if len(line) <= max_characters:
        return line
    spaced = line.translate(_SEPARATORS)
    tail = max_characters // 3
    last = _start_of_words(spaced, len(line) - tail, len(line))
    spans = [(0, _end_of_words(spaced, 0, max_characters - tail))]
    in_spans = {word for _, word in _words(line[last:])}
    for place, word in _words(line):
        end = place + len(word)
        if len(spans) > _MAX_QUOTES or end > last:
            break
        if word in in_spans or not known(word):
            continue
        in_spans.add(word)
        if end > spans[-1][1]:
            start = min(place, max(spans[-1][1], _start_of_words(spaced, place - _AROUND_ID, place)))
            spans.append((start, min(last, _end_of_words(spaced, end, place + 2 * _AROUND_ID))))
    pieces = [line[start:end].strip() for start, end in (*spans, (last, len(line)))]
    return " … ".join(filter(None, pieces)) + ("" if pieces[-1] else "…")


def _hide_secret(pair: re.Match[str]) -> str:
    """The key with `[secret]` if its value grants access.

    A name in code does not: `token = next(lines)`.
    """
    is_value = pair["quoted"] or any(map(str.isdigit, pair["bare"]))
    return f"{pair['start']}[secret]" if is_value and is_credential_key(pair["key"]) else pair[0]


_PAIR = re.compile(
    r"""(?P<start>(?<![\w-])(?P<key>[^\W\d][\w-]{1,60})\\?["']?\s{0,9}[:=]>?\s{0,9}\[?(?:(?i:bearer|basic)\s)?)"""
    r"""(?:(?P<quoted>\\?"[^"\\]{3,}\\?"|'[^']{3,}')|(?P<bare>[^\s"',;}\])\\]{3,}))"""
)
"""A key and its value in a text, as in JSON or YAML."""


def _start_of_words(spaced: str, place: int, end: int) -> int:
    """The place of the first word that begins between two places; `end` if there is none."""
    return 0 if place <= 0 else (spaced.find(" ", place - 1, end) + 1 or end)


def _end_of_words(spaced: str, start: int, place: int) -> int:
    """The end of the last word that ends between two places; `place` if there is none."""
    return len(spaced) if place >= len(spaced) else max(start, spaced.rfind(" ", start, place + 1)) or place


def possible_ids(text: str) -> set[str]:
    """Return all words of a text that could be an id."""
    words = set(text.translate(_SEPARATORS).split())
    if "://" in text:
        words.update(_LINK.findall(text))
    return words | {word.rstrip(_TRAILING) for word in words if word.endswith(_ENDS)}


def _words(text: str) -> Iterator[tuple[int, str]]:
    """Places and words, with and without a sentence's last character."""
    place = 0
    for word in text.translate(_SEPARATORS).split():
        place = text.index(word, place)
        yield place, word
        if word.endswith(_ENDS):
            yield place, word.rstrip(_TRAILING)
        place += len(word)


_LINK = re.compile(r"""[a-z][a-z0-9+.-]{0,30}://[^\s"'`<>()\[\]{}|\\]+""")
_SEPARATORS = str.maketrans(dict.fromkeys("\"'`(),;:=[]{}<>|\\", " "))
_TRAILING = ".!?…"
_ENDS = tuple(_TRAILING)


def only_reads(tool: str, arguments: Mapping[str, Any]) -> bool:
    """True if a call changes nothing, by the name of its tool or the first word of its command."""
    command = next((arguments[key] for key in _COMMAND_KEYS if isinstance(arguments.get(key), str)), "")
    if command and compile_cached(_READING_COMMAND).match(command):
        return True
    name = tool.rsplit("__", 1)[-1]
    words = [word.lower() for word in compile_cached(_NAME_WORD).findall(name)]
    return not _READ_VERBS.isdisjoint(words[:2])


_NAME_WORD = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])"
_READ_VERBS = frozenset(
    "browse calculate count describe fetch find get glob grep inspect list look lookup peek query read recall retrieve "
    "search show think view".split()
)
_COMMAND_KEYS = ("command", "cmd", "script", "code")
_READING_COMMAND = (
    r"\s*(?:cd\s[^&;|]*(?:&&|;)\s*)?(?:cat|du|echo|env|file|find|git\s+(?:blame|diff|log|show|status)|grep|head|ls|pwd|rg|"
    r"sed\s+-n|stat|tail|tree|type|wc|which)\b(?![^|]*\s-(?:delete|exec))[^>;&|]*"
    r"(?:\|\s*(?:cut|grep|head|sort|tail|uniq|wc)\b[^>;&|]*)*$"
)
