"""What a model answered, as edits: taken at its word where that can be checked, and refused where it cannot.

A model drops numbers, makes up sources, retires everything, talks around the JSON or inside of it. Each edit is looked
at by itself, so one bad one costs nothing but itself; only an answer of which nothing can be used is wrong as a whole.
The page checks edits again when they are carried out. It is done here as well because a note counts as taken in once
an edit is made of it: one that would be refused later must not use it up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.core.text import inert
from inmind.dreams.page.edits import Add, Edit, Retire, Rewrite
from inmind.dreams.page.eviction import PRECIOUS, share
from inmind.dreams.page.fact_checks import invented, lost, quotes
from inmind.dreams.page.guards import ABOUT_PEOPLE
from inmind.dreams.page.pointers import LONGEST_KEYWORDS
from inmind.dreams.page.sections import Section
from inmind.dreams.prompt_labels import Labels, Source
from inmind.dreams.propose_by_rules import from_a_tool
from inmind.errors import short_repr

MOST_ANSWER: Final = 1_000_000
MOST_EDITS: Final = 60
MOST_TEXT: Final = 300
MOST_TOPIC: Final = 80

SECTIONS: Final = (Section.PHENOTYPE, Section.BOND, Section.NICHE, Section.ACTIVE)
"""Those in which a model may write. The others are told by themselves."""

SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "edits": {
            "type": "array",
            "items": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "op": {"type": "string", "enum": ["add"]},
                            "section": {"type": "string", "enum": [*SECTIONS]},
                            "text": {"type": "string"},
                            "sources": {"type": "array", "items": {"type": "string"}},
                        },
                        "required": ["op", "section", "text", "sources"],
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "properties": {
                            "op": {"type": "string", "enum": ["rewrite"]},
                            "lines": {"type": "array", "items": {"type": "string"}},
                            "section": {"type": "string", "enum": [*SECTIONS]},
                            "text": {"type": "string"},
                            "sources": {"type": "array", "items": {"type": "string"}},
                        },
                        "required": ["op", "lines", "section", "text", "sources"],
                        "additionalProperties": False,
                    },
                    {
                        "type": "object",
                        "properties": {
                            "op": {"type": "string", "enum": ["retire"]},
                            "line": {"type": "string"},
                            "topic": {"type": "string"},
                            "keywords": {"type": "string"},
                        },
                        "required": ["op", "line", "topic", "keywords"],
                        "additionalProperties": False,
                    },
                ]
            },
        }
    },
    "required": ["edits"],
    "additionalProperties": False,
}


@frozen(kw_only=True)
class Answer:
    edits: tuple[Edit, ...] = ()
    refused: tuple[str, ...] = ()
    """What cannot be taken, each with the reason."""
    wrong: str = ""
    """Why none of it can be."""


def answered(text: str, labels: Labels) -> Answer:
    """The edits in an answer. Never fails, whatever the text is."""
    try:
        given = _edits_in(text)
    except _Unusable as unusable:
        return Answer(wrong=str(unusable))
    reading = _Reading(labels)
    refused: list[str] = []
    edits: list[Edit] = []
    for number, one in enumerate(given, 1):
        try:
            if number > MOST_EDITS:
                raise _Unusable(f"{MOST_EDITS} edits are taken at most")
            edits.append(reading.edit(one))
        except _Unusable as unusable:
            refused.append(f"edit {number}: {unusable}")
    wrong = "; ".join(refused[:_NAMED]) if refused and not edits else ""
    return Answer(edits=tuple(edits), refused=tuple(refused[:MOST_EDITS]), wrong=wrong)


_NAMED: Final = 5


class _Unusable(Exception):
    """An answer, or an edit, that cannot be taken, and why."""


class _Reading:
    """The edits of one answer, one after the other: no two of them may mean the same line."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._meant: set[str] = set()
        self._retiring = share(len(labels.lines))

    def edit(self, given: object) -> Edit:
        if not isinstance(given, dict):
            raise _Unusable(f"expected an object, got {short_repr(given)}")
        fields = cast(dict[str, Any], given)
        match fields.get("op"):
            case "add":
                return self._add(fields)
            case "rewrite":
                return self._rewrite(fields)
            case "retire":
                return self._retire(fields)
            case other:
                raise _Unusable(f'op: expected "add", "rewrite" or "retire", got {short_repr(other)}')

    def _add(self, fields: Mapping[str, Any]) -> Add:
        section, text, sources = _section(fields), _text(fields, "text", MOST_TEXT), self._sources(fields)
        if not sources:
            raise _Unusable("sources: a new line is made of something")
        trust = min(Trust.AGENT, *(source.trust for source in sources))
        _check_trust(trust, section)
        _check_numbers(text, [source.text for source in sources])
        best = max(sources, key=lambda source: source.importance)
        return Add(
            section=section,
            text=_marked(text, trust),
            sources=_ids(sources),
            importance=best.importance,
            kind=best.kind,
            at=max(source.at for source in sources),
            trust=trust,
        )

    def _rewrite(self, fields: Mapping[str, Any]) -> Rewrite:
        section, text, sources = _section(fields), _text(fields, "text", MOST_TEXT), self._sources(fields)
        labels = _strings(fields, "lines")
        lines = [self._line(label) for label in labels]
        if not lines or len({*labels}) < len(labels):
            raise _Unusable("lines: expected some lines, each once")
        trusts = [source.trust for source in sources] + [Trust(line.trust) for line in lines]
        _check_trust(min(trusts), section)
        text = _marked(text, min(trusts))
        _check_numbers(text, [*(source.text for source in sources), *(line.text for line in lines)])
        gone = [one for line in lines for one in lost(line.text, text)]
        if gone and not any(quotes(text, source.text) for source in sources):
            raise _Unusable(f"text: {', '.join(gone)} would be lost")
        self._meant |= {*labels}
        return Rewrite(
            lines=tuple(line.text for line in lines),
            section=section,
            text=text,
            sources=_ids(sources),
            importance=max((source.importance for source in sources), default=0.0),
            at=max((source.at for source in sources), default=""),
        )

    def _retire(self, fields: Mapping[str, Any]) -> Retire:
        label = fields.get("line")
        line = self._line(label)
        topic, keywords = _text(fields, "topic", MOST_TOPIC), _text(fields, "keywords", LONGEST_KEYWORDS)
        if line.importance >= PRECIOUS:
            raise _Unusable(f"line: {label} is too important to leave")
        if not self._retiring:
            raise _Unusable("line: enough lines leave in this dream")
        self._retiring -= 1
        self._meant.add(cast(str, label))
        return Retire(line=line.text, topic=topic, keywords=keywords)

    def _line(self, label: object) -> PageLine:
        if not isinstance(label, str):
            raise _Unusable(f"expected the label of a line, got {short_repr(label)}")
        if label in self._labels.locked:
            raise _Unusable(f"{label} is locked: {self._labels.locked[label]}")
        if label not in self._labels.lines:
            raise _Unusable(f"there is no line {short_repr(label)}")
        if label in self._meant:
            raise _Unusable(f"{label} is meant by an earlier edit")
        return self._labels.lines[label]

    def _sources(self, fields: Mapping[str, Any]) -> list[Source]:
        labels = dict.fromkeys(_strings(fields, "sources"))
        for label in labels:
            if label not in self._labels.sources:
                raise _Unusable(f"sources: there is no {short_repr(label)}")
        return [self._labels.sources[label] for label in labels]


def _ids(sources: Sequence[Source]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id for source in sources for id in source.ids))


def _section(fields: Mapping[str, Any]) -> Section:
    given = fields.get("section")
    if given not in SECTIONS:
        raise _Unusable(f"section: expected one of {', '.join(SECTIONS)}, got {short_repr(given)}")
    return Section(given)


def _strings(fields: Mapping[str, Any], name: str) -> list[str]:
    given = fields.get(name)
    if not isinstance(given, list) or not all(isinstance(one, str) for one in cast("list[object]", given)):
        raise _Unusable(f"{name}: expected a list of labels, got {short_repr(cast(object, given))}")
    return cast("list[str]", given)


def _text(fields: Mapping[str, Any], name: str, most: int) -> str:
    given = fields.get(name)
    if not isinstance(given, str):
        raise _Unusable(f"{name}: expected a text, got {short_repr(given)}")
    text = " ".join(given.split())
    if not text or len(text) > most:
        raise _Unusable(f"{name}: expected 1 to {most} characters, got {len(text)}")
    if inert(text) != text or any("\ud800" <= char <= "\udfff" for char in text):
        raise _Unusable(f"{name}: it holds what no text of a page has: hidden characters, or the delimiters of memory")
    return text


def _check_trust(trust: Trust, section: Section) -> None:
    if trust <= Trust.DATA and section in ABOUT_PEOPLE:
        raise _Unusable(f"{section} is nothing that tools have a say in")


def _marked(text: str, trust: Trust) -> str:
    """The line that a text is; a model that has read the mark of a tool may have put it there itself."""
    return from_a_tool(_MARKED.sub(r"\g<said>", text)) if trust is Trust.DATA else text


_MARKED = re.compile(r'\A\(from a tool\) "?(?P<said>.*?)"?\Z')


def _check_numbers(text: str, sources: Sequence[str]) -> None:
    if unknown := invented(text, *sources):
        raise _Unusable(f"text: no source says {', '.join(unknown)}")


# -- JSON --------------------------------------------------------------------------------------------------

# Where an object may begin: models talk before they come to the point, but not for long.
_MOST_BEGINNINGS: Final = 20
_OBJECT = re.compile(r"\{")


def _edits_in(text: str) -> list[object]:
    """The list of edits, wherever in the answer it stands."""
    if len(text) > MOST_ANSWER:
        raise _Unusable(f"it has {len(text):,} characters")
    reasons: list[str] = []
    for value in _objects(text, reasons):
        if isinstance(edits := value.get("edits"), list):
            return cast("list[object]", edits)
        reasons.append('it has no list of "edits"')
    raise _Unusable(reasons[0] if reasons else "it holds no JSON object")


def _objects(text: str, reasons: list[str]) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(object_pairs_hook=_once_each, parse_constant=_no_number)
    beginnings = (match.start() for match in _OBJECT.finditer(text))
    end = 0
    for begin, _ in zip(beginnings, range(_MOST_BEGINNINGS), strict=False):
        if begin < end:
            continue
        try:
            value, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError) as error:
            reasons.append(f"it is no JSON: {error}")
        else:
            yield value


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return made


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")
