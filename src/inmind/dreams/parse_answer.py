"""Parse the answer of a model into edits. Everything that can be checked is checked.

Models drop numbers, invent sources, retire everything, or write text around the JSON. Each edit is checked separately,
so one invalid edit does not affect the others; only an answer without any valid edit is an error. The rewrite checks
edits again. The checks are also done here because a note counts as processed after an edit uses it: an edit that would
be refused later must not use a note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.core.text import escape_markup
from inmind.dreams.page.edits import Add, Edit, Retire, Rewrite
from inmind.dreams.page.eviction import MIN_PROTECTED_IMPORTANCE, max_retired
from inmind.dreams.page.fact_checks import invented_facts, is_quote_of, lost_facts
from inmind.dreams.page.guards import IDENTITY_SECTIONS
from inmind.dreams.page.pointers import MAX_KEYWORDS_CHARACTERS
from inmind.dreams.page.sections import Section
from inmind.dreams.prompt_labels import LabelledSource, Labels
from inmind.dreams.propose_by_rules import quote_tool_text
from inmind.errors import short_repr

MAX_ANSWER_CHARACTERS: Final = 1_000_000
MAX_EDITS: Final = 60
MAX_EDIT_CHARACTERS: Final = 300
MAX_TOPIC_CHARACTERS: Final = 80

MODEL_SECTIONS: Final = (Section.PHENOTYPE, Section.BOND, Section.NICHE, Section.ACTIVE)
"""Sections that a model may write. The others are generated."""

ANSWER_SCHEMA: Final[Mapping[str, Any]] = {
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
                            "section": {"type": "string", "enum": [*MODEL_SECTIONS]},
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
                            "section": {"type": "string", "enum": [*MODEL_SECTIONS]},
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
class ParsedAnswer:
    """The valid edits of an answer, and the reasons for the others."""

    edits: tuple[Edit, ...] = ()
    refused: tuple[str, ...] = ()
    """Invalid edits, each with the reason."""
    error: str = ""
    """Why the whole answer is invalid; empty if it is not."""


def parse_answer(text: str, labels: Labels) -> ParsedAnswer:
    """Parse the edits in an answer. Never raises, for any text."""
    try:
        items = _find_edits(text)
    except _InvalidEdit as unusable:
        return ParsedAnswer(error=str(unusable))
    parser = _EditParser(labels)
    refused: list[str] = []
    edits: list[Edit] = []
    for number, item in enumerate(items, 1):
        try:
            if number > MAX_EDITS:
                raise _InvalidEdit(f"at most {MAX_EDITS} edits are accepted")
            edits.append(parser.parse(item))
        except _InvalidEdit as unusable:
            refused.append(f"edit {number}: {unusable}")
    error = "; ".join(refused[:_MAX_NAMED_ERRORS]) if refused and not edits else ""
    return ParsedAnswer(edits=tuple(edits), refused=tuple(refused[:MAX_EDITS]), error=error)


_MAX_NAMED_ERRORS: Final = 5


class _InvalidEdit(Exception):
    """An answer or edit that is not accepted; the message is the reason."""


class _EditParser:
    """Parses the edits of one answer in order. Each line may be used by one edit only."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._used_labels: set[str] = set()
        self._remaining_retires = max_retired(len(labels.lines))

    def parse(self, value: object) -> Edit:
        if not isinstance(value, dict):
            raise _InvalidEdit(f"expected an object, got {short_repr(value)}")
        fields = cast(dict[str, Any], value)
        match fields.get("op"):
            case "add":
                return self._parse_add(fields)
            case "rewrite":
                return self._parse_rewrite(fields)
            case "retire":
                return self._parse_retire(fields)
            case other:
                raise _InvalidEdit(f'op: expected "add", "rewrite" or "retire", got {short_repr(other)}')

    def _parse_add(self, fields: Mapping[str, Any]) -> Add:
        section, text, sources = (
            _parse_section(fields),
            _parse_text(fields, "text", MAX_EDIT_CHARACTERS),
            self._find_sources(fields),
        )
        if not sources:
            raise _InvalidEdit("sources: a new line needs at least one source")
        trust = min(Trust.AGENT, *(source.trust for source in sources))
        _check_trust(trust, section)
        _check_facts(text, [source.text for source in sources])
        best = max(sources, key=lambda source: source.importance)
        return Add(
            section=section,
            text=_mark_tool_text(text, trust),
            sources=_ids(sources),
            importance=best.importance,
            kind=best.kind,
            at=max(source.at for source in sources),
            trust=trust,
        )

    def _parse_rewrite(self, fields: Mapping[str, Any]) -> Rewrite:
        section, text, sources = (
            _parse_section(fields),
            _parse_text(fields, "text", MAX_EDIT_CHARACTERS),
            self._find_sources(fields),
        )
        labels = _parse_labels(fields, "lines")
        lines = [self._find_line(label) for label in labels]
        if not lines or len({*labels}) < len(labels):
            raise _InvalidEdit("lines: expected at least one line, each once")
        trusts = [source.trust for source in sources] + [Trust(line.trust) for line in lines]
        _check_trust(min(trusts), section)
        text = _mark_tool_text(text, min(trusts))
        _check_facts(text, [*(source.text for source in sources), *(line.text for line in lines)])
        lost = [fact for line in lines for fact in lost_facts(line.text, text)]
        if lost and not any(is_quote_of(text, source.text) for source in sources):
            raise _InvalidEdit(f"text: {', '.join(lost)} would be lost")
        self._used_labels |= {*labels}
        return Rewrite(
            lines=tuple(line.text for line in lines),
            section=section,
            text=text,
            sources=_ids(sources),
            importance=max((source.importance for source in sources), default=0.0),
            at=max((source.at for source in sources), default=""),
        )

    def _parse_retire(self, fields: Mapping[str, Any]) -> Retire:
        label = fields.get("line")
        line = self._find_line(label)
        topic, keywords = (
            _parse_text(fields, "topic", MAX_TOPIC_CHARACTERS),
            _parse_text(fields, "keywords", MAX_KEYWORDS_CHARACTERS),
        )
        if line.importance >= MIN_PROTECTED_IMPORTANCE:
            raise _InvalidEdit(f"line: {label} is too important to retire")
        if not self._remaining_retires:
            raise _InvalidEdit("line: too many lines are retired in this dream")
        self._remaining_retires -= 1
        self._used_labels.add(cast(str, label))
        return Retire(line=line.text, topic=topic, keywords=keywords)

    def _find_line(self, label: object) -> PageLine:
        if not isinstance(label, str):
            raise _InvalidEdit(f"expected the label of a line, got {short_repr(label)}")
        if label in self._labels.locked:
            raise _InvalidEdit(f"{label} is locked: {self._labels.locked[label]}")
        if label not in self._labels.lines:
            raise _InvalidEdit(f"there is no line {short_repr(label)}")
        if label in self._used_labels:
            raise _InvalidEdit(f"{label} is used by an earlier edit")
        return self._labels.lines[label]

    def _find_sources(self, fields: Mapping[str, Any]) -> list[LabelledSource]:
        labels = dict.fromkeys(_parse_labels(fields, "sources"))
        for label in labels:
            if label not in self._labels.sources:
                raise _InvalidEdit(f"sources: there is no {short_repr(label)}")
        return [self._labels.sources[label] for label in labels]


def _ids(sources: Sequence[LabelledSource]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id for source in sources for id in source.ids))


def _parse_section(fields: Mapping[str, Any]) -> Section:
    value = fields.get("section")
    if value not in MODEL_SECTIONS:
        raise _InvalidEdit(f"section: expected one of {', '.join(MODEL_SECTIONS)}, got {short_repr(value)}")
    return Section(value)


def _parse_labels(fields: Mapping[str, Any], name: str) -> list[str]:
    value = fields.get(name)
    if not isinstance(value, list) or not all(isinstance(label, str) for label in cast("list[object]", value)):
        raise _InvalidEdit(f"{name}: expected a list of labels, got {short_repr(cast(object, value))}")
    return cast("list[str]", value)


def _parse_text(fields: Mapping[str, Any], name: str, max_characters: int) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise _InvalidEdit(f"{name}: expected a text, got {short_repr(value)}")
    text = " ".join(value.split())
    if not text or len(text) > max_characters:
        raise _InvalidEdit(f"{name}: expected 1 to {max_characters} characters, got {len(text)}")
    if escape_markup(text) != text or any("\ud800" <= char <= "\udfff" for char in text):
        raise _InvalidEdit(f"{name}: hidden characters and the <memory> delimiters are not allowed")
    return text


def _check_trust(trust: Trust, section: Section) -> None:
    if trust <= Trust.DATA and section in IDENTITY_SECTIONS:
        raise _InvalidEdit(f"{section} must not contain text from tools")


def _mark_tool_text(text: str, trust: Trust) -> str:
    """Mark text from a tool. The model may have copied the mark from its input."""
    return quote_tool_text(_TOOL_MARK.sub(r"\g<text>", text)) if trust is Trust.DATA else text


_TOOL_MARK = re.compile(r'\A\(from a tool\) "?(?P<text>.*?)"?\Z')


def _check_facts(text: str, sources: Sequence[str]) -> None:
    if unknown := invented_facts(text, *sources):
        raise _InvalidEdit(f"text: not in any source: {', '.join(unknown)}")


# -- JSON --------------------------------------------------------------------------------------------------

# Positions that are tried as the start of the JSON object: models may write text before it.
_MAX_OBJECT_STARTS: Final = 20
_OBJECT_START = re.compile(r"\{")


def _find_edits(text: str) -> list[object]:
    """The list of edits, at any position in the answer."""
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise _InvalidEdit(f"it has {len(text):,} characters")
    reasons: list[str] = []
    for value in _json_objects(text, reasons):
        if isinstance(edits := value.get("edits"), list):
            return cast("list[object]", edits)
        reasons.append('it has no list of "edits"')
    raise _InvalidEdit(reasons[0] if reasons else "it contains no JSON object")


def _json_objects(text: str, reasons: list[str]) -> Iterator[dict[str, Any]]:
    decoder = json.JSONDecoder(object_pairs_hook=_reject_duplicate_keys, parse_constant=_reject_constant)
    beginnings = (match.start() for match in _OBJECT_START.finditer(text))
    end = 0
    for begin, _ in zip(beginnings, range(_MAX_OBJECT_STARTS), strict=False):
        if begin < end:
            continue
        try:
            value, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError) as error:
            reasons.append(f"it is not valid JSON: {error}")
        else:
            yield value


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("duplicate key in an object")
    return result


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")
