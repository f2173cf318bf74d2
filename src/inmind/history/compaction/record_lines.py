"""One line for each call of the messages that leave, oldest first as in the conversation.

An answer that the same call gave again later, or that only repeats the ids of a later answer about the same thing, is
left out. Which calls were made later with an id stands after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.text import escape_markup, shorten
from inmind.core.tokens import Counter
from inmind.entities.extract.identity import parse_tool_name
from inmind.entities.ids import handle_kind, has_secret, key_meaning
from inmind.entities.record import MIN_ID_DIGITS, Detail, cut_record, is_aside, names_secret, prune, render_record
from inmind.history.compaction.records import (
    TEXT_CHARACTERS,
    AnsweredCall,
    answer_text,
    clip_text,
    id_fields,
    never_known,
    texts_in,
)

MAX_ARGUMENT_CHARACTERS = 160
MAX_TEXT_CHARACTERS = 80
"""Characters of a link, or of a long text, in the arguments."""
MAX_TOOL_CHARACTERS = 60

_EMPTY_RESULT_TOKENS = 10
"""A result without text has fewer tokens than this, unless it is an image."""


def record_lines(
    removed: Sequence[Sequence[AnsweredCall]],
    kept: Sequence[AnsweredCall],
    known: Callable[[str], bool],
    *,
    budget: int,
    count: Counter,
    detail_budget: int | None = None,
) -> RecordLines:
    """Lines of the removed calls by run.

    The earliest calls are left out, and before them those that found nothing. As many calls as possible have a line
    within `budget`. Within `detail_budget`, by default the same, as many as possible have all of their ids, and then
    the newest have the most detail. A call that stays stands for earlier calls that had the same answer.
    """
    detail_budget = budget if detail_budget is None else min(detail_budget, budget)
    calls = [(run, answered) for run, some in enumerate(removed) for answered in some]
    records = _CallRecords(kept, known, shared_fields=_shared_fields(answered for _, answered in calls))
    lines: list[_ChosenLine] = []
    left_out: list[AnsweredCall] = []
    used = 0
    for place, (run, answered) in reversed([*enumerate(calls)]):
        line = records.line(answered)
        if line is None:
            continue
        joined = lines[-1].line.joined(line) if lines and lines[-1].run == run else None
        last = lines.pop() if joined else None
        text = _least_text(joined or line, budget // 2, count)
        one = _ChosenLine(run, joined or line, [*(last.calls if last else ()), answered], text, count)
        added = one.tokens - (last.tokens if last else 0)
        if not answered.found_nothing and (not text or used + added > budget):
            lines += [last] if last else []
            left_out = [answered, *(earlier for _, earlier in reversed(calls[:place]) if records.line(earlier))]
            break
        used += 0 if answered.found_nothing else added
        records.note_shared_fields(answered, text)
        lines.append(one)
    used += _add_detail([one for one in lines if not one.found_nothing], _ALL_IDS, detail_budget - used)
    for one in lines[:]:
        if one.found_nothing and used + one.tokens > budget:
            lines.remove(one)
            left_out += one.calls
        used += one.tokens if one.found_nothing and one in lines else 0
    _add_detail(lines, _DETAILS, detail_budget - used)
    return RecordLines(lines[::-1], left_out, runs=len(removed))


def describe_call(answered: AnsweredCall) -> str:
    """The tool and its arguments: `write_file(path shop.py)`."""
    return _call_text(answered, _short_pairs(answered))


def describe_failure(answered: AnsweredCall, known: Callable[[str], bool] = never_known) -> str:
    text = clip_text(answered.result.text, TEXT_CHARACTERS[Detail.IDS], known)
    return f" failed: {text or 'no text'}"


def _call_text(answered: AnsweredCall, pairs: str) -> str:
    tool = answered.call.tool
    return f"{_tool_text(tool)}({pairs})" if tool else "output"


@frozen
class RecordLines:
    """The lines of calls that leave, in the order of the conversation."""

    lines: list[_ChosenLine]
    left_out: list[AnsweredCall]
    """Calls whose line did not fit."""
    runs: int

    @property
    def by_run(self) -> list[list[str]]:
        return [[one.text for one in self.lines if one.run == run] for run in range(self.runs)]

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.lines]

    def add_lists(self, room: int) -> int:
        """Show lists of ids that were counted, the newest first, and return the added tokens."""
        return _add_detail([one for one in reversed(self.lines) if not one.has_lists], _ALL_IDS, room)


class _ChosenLine:
    """A line and its text, which gets more detail if there is room."""

    def __init__(self, run: int, line: _CallLine, calls: list[AnsweredCall], text: str, count: Counter) -> None:
        self.run, self.line, self.calls, self.text, self._count = run, line, calls, text, count
        self.tokens = count(text) + 1
        self.has_lists = False

    @property
    def found_nothing(self) -> bool:
        return self.line.answered.found_nothing

    def add_detail(self, level: tuple[Detail, bool], room: int) -> int | None:
        """Return the tokens that are added; None if they do not fit."""
        text = self.line.text(*level)
        added = self._count(text) + 1 - self.tokens
        if added > room:
            return None
        self.text, self.tokens, self.has_lists = text, self.tokens + added, True
        return added


def _add_detail(lines: Iterable[_ChosenLine], levels: Sequence[tuple[Detail, bool]], room: int) -> int:
    """Give each line the first of these levels that fits, and return the added tokens."""
    used = 0
    for line in lines:
        if room - used < _MIN_ADDED_TOKENS:
            break
        used += next((added for level in levels if (added := line.add_detail(level, room - used)) is not None), 0)
    return used


def _least_text(line: _CallLine, budget: int, count: Counter) -> str:
    """The shortest text of a line, cut to the budget if it is very long.

    It is empty if nothing of the answer fits.
    """
    text = line.text(Detail.IDS, False)
    if len(text) <= _LONG_LINE_CHARACTERS or count(text) <= budget:
        return text
    cut = cut_record(text, budget=budget, count=count)
    return cut if cut.startswith("- ") else ""


_LONG_LINE_CHARACTERS = 600
"""A longer line may take half of the room, so that it does not push out all others."""
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
        """One line for lookups with the same answer that differ in one argument; else None.

        The answer must not be about one of them.
        """
        newer, other = self.arguments, older.arguments
        if not (is_object(newer) and is_object(other)) or newer.keys() != other.keys() or self._answer != older._answer:
            return None
        if not self.answered.only_reads:
            return None
        differing = [key for key in newer if newer[key] != other[key]]
        if len(differing) != 1 or self.varied not in ("", *differing):
            return None
        [key] = differing
        values = [other[key], *(newer[key] if self.varied else [newer[key]])]
        is_told = any(str(value) in self.answered.result.text for value in values)
        if is_told or not all(value and isinstance(value, str | int) for value in values):
            return None
        arguments = {**newer, key: values}
        pairs = _pairs(arguments)
        fits = len(pairs) <= MAX_ARGUMENT_CHARACTERS
        return replace(self, arguments=arguments, pairs=pairs, varied=key) if fits else None

    @property
    def _answer(self) -> tuple[str, str]:
        return self.answered.call.tool, self.answered.result.text

    def text(self, detail: Detail, has_lists: bool) -> str:
        call = _call_text(self.answered, self.pairs)
        if self.answered.failed:
            return escape_markup(f"- {call}{describe_failure(self.answered, self.known)}")
        handled: Callable[[str], str] | None = (lambda id: self.verbs.get(id, "")) if self.verbs else None
        answer = answer_text(self.answered, detail, self.known, handled, self.repeated, has_lists=has_lists)
        return escape_markup(f"- {call}: {answer}")


class _LaterCall(NamedTuple):
    verb: str
    is_first: bool
    """The id is the first one of its arguments."""
    ids: frozenset[str]


class _CallRecords:
    """Builds the line of each call, given from the newest to the oldest."""

    def __init__(
        self,
        kept: Sequence[AnsweredCall],
        known: Callable[[str], bool],
        shared_fields: Container[tuple[str, Any]],
    ) -> None:
        """`shared_fields`: fields with one value in all answers, which one line tells for all."""
        self._known, self._shared_fields = known, shared_fields
        self._answered: set[tuple[str, str]] = set()
        self._texts_by_subject: dict[str, set[str]] = {}
        self._calls_by_id: dict[str, list[_LaterCall]] = {}
        self._ids_given: set[tuple[str, Any]] = set()
        for answered in reversed(kept):
            self._note(answered)

    def line(self, answered: AnsweredCall) -> _CallLine | None:
        """Return the line of a call; None if it says nothing that is needed.

        A newer message may have its answer, or memory gave it.
        """
        if answered.result.from_memory:
            return None
        line = None
        pairs = _short_pairs(answered)
        is_thought = answered.only_reads and prune(answered.arguments) is None and "://" not in pairs
        has_text = answered.failed or (pairs and not is_thought) or answered.result.text.strip()
        is_empty = not has_text and answered.result.tokens < _EMPTY_RESULT_TOKENS
        if not is_empty and (answered.failed or not self._is_repeated(answered)):
            fields = [] if answered.failed else list(id_fields(answered.value))
            line = _CallLine(
                answered,
                answered.arguments,
                pairs,
                self._known,
                frozenset(self._ids_given.intersection(fields)),
                {id: verbs for id in texts_in(answered.value) if (verbs := self._verbs(id, answered))},
            )
        self._note(answered)
        return line

    def note_shared_fields(self, answered: AnsweredCall, text: str) -> None:
        """Note the shared fields that a line has: older lines need not repeat them."""
        fields = id_fields(answered.value) if not answered.failed else ()
        self._ids_given.update(one for one in fields if one in self._shared_fields and str(one[1]) in text)

    def _note(self, answered: AnsweredCall) -> None:
        """Note the answer, and for which ids the tool was called, unless the call failed."""
        call = answered.call
        if answered.failed:
            return
        verb = parse_tool_name(call.tool).verb or _tool_text(call.tool)
        ids = list(dict.fromkeys(_ids_in(answered.arguments)))
        for place, id in enumerate(ids):
            self._calls_by_id.setdefault(id, []).append(_LaterCall(verb, place == 0, frozenset(ids)))
        if answered.only_reads:
            self._answered.add((call.tool, call.arguments))
        if answered.subject:
            self._texts_by_subject.setdefault(answered.subject, set()).update(answered.texts)

    def _verbs(self, id: str, answered: AnsweredCall) -> str:
        """Later calls about an id in an answer.

        It is their first id, or they are about the same thing as the answer. An item that was exchanged in one order
        may be in others too.
        """
        calls = self._calls_by_id.get(id)
        if not calls:
            return ""
        about = set(_ids_in(answered.arguments))
        verbs = (one.verb for one in reversed(calls) if one.is_first or not about.isdisjoint(one.ids))
        return ", ".join(dict.fromkeys(verbs))

    def _is_repeated(self, answered: AnsweredCall) -> bool:
        """True if a newer call was the same, or newer ones had all values about the thing."""
        if answered.call.tool and (answered.call.tool, answered.call.arguments) in self._answered:
            return True
        known = self._texts_by_subject.get(answered.subject)
        return known is not None and answered.texts <= known


def _short_pairs(answered: AnsweredCall) -> str:
    pairs = _pairs(answered.arguments)
    fits = len(pairs) <= MAX_ARGUMENT_CHARACTERS
    return pairs if fits else cut_record(pairs, budget=MAX_ARGUMENT_CHARACTERS, count=len)


def _pairs(arguments: Any) -> str:
    """The arguments as text, with links.

    The first long text is told by its beginning and its end if there is nothing else but numbers.
    """
    if not is_object(arguments):
        return ""
    kept = prune(arguments)
    if kept is not None and not is_object(kept):
        return render_record(kept)
    short = kept or {}
    texts = {
        key: text
        for key, text in ({} if names_secret(arguments) else arguments).items()
        if isinstance(text, str) and key not in short and any(map(str.isalpha, text)) and not is_aside(key)
    }
    links = {key: _link_text(text) for key, text in texts.items() if handle_kind(text) == "url"}
    has_words = any(isinstance(item, str) or is_object(item) or is_list(item) for item in short.values())
    first = {} if has_words or links else dict(list(texts.items())[:1])
    first = {key: clip_text(text, MAX_TEXT_CHARACTERS) for key, text in first.items()}
    return render_record({**short, **links, **first})


def _link_text(link: str) -> str:
    """Scheme, host and path of a link; the rest may have secrets."""
    address = link.strip().partition("?")[0].partition("#")[0]
    scheme, _, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    steps = ("[secret]" if has_secret(step) else step for step in path.split("/"))
    return shorten(f"{scheme}://{host.rpartition('@')[2]}{slash}{'/'.join(steps)}", MAX_TEXT_CHARACTERS)


def _tool_text(name: str) -> str:
    """The name of a tool, quoted if it could pass for more than that."""
    line = shorten(name, MAX_TOOL_CHARACTERS)
    return line if _TOOL.fullmatch(line) else json.dumps(line, ensure_ascii=False)


_TOOL = re.compile(r"[\w.:/…-]+")


def _shared_fields(calls: Iterable[AnsweredCall]) -> set[tuple[str, Any]]:
    """Id fields whose key has the same value in all answers."""
    values: dict[str, set[Any]] = {}
    for key, item in (field for answered in calls for field in id_fields(answered.value)):
        values.setdefault(key, set()).add(item)
    return {(key, *some) for key, some in values.items() if len(some) == 1}


def _ids_in(value: object, key: str = "") -> Iterator[str]:
    """Arguments that are ids, by their key or their form; a page number is none."""
    if is_object(value):
        for name, item in value.items():
            yield from _ids_in(item, name)
    elif is_list(value):
        for item in value:
            yield from _ids_in(item, key)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        text = str(value)
        if key_meaning(key).role in _ID_ROLES or handle_kind(text) or _MANY_DIGITS.fullmatch(text):
            yield text


_ID_ROLES = frozenset({"own", "id", "code", "key", "path", "person"})
_MANY_DIGITS = re.compile(rf"\d{{{MIN_ID_DIGITS},}}")
