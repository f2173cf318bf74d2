"""The edits of a model: labels for what it may refer to, and its answer parsed into edits.

The model reads the material with labels: L1 is a line of the page, N1 a note. It can refer to lines and sources only by
these labels, so an invented one is detected by lookup. The size is bounded, each text is on one line, and lines that
the model must not change are marked as locked. Rules handle the material that does not fit.

Models drop numbers, invent sources, retire everything, or write text around the JSON. Each edit is checked separately,
so one invalid edit does not affect the others; only an answer without any valid edit is an error. The rewrite checks
edits again. The checks are also done here because a note counts as processed after an edit uses it: an edit that would
be refused later must not use a note.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Final, cast

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.text import escape_markup
from inmind.core.tokens import estimator
from inmind.dreams.material import DreamMaterial, LineSource
from inmind.dreams.page.edits import Add, Edit, Retire, Rewrite, invented_facts, is_quote_of, lost_facts
from inmind.dreams.page.eviction import MIN_PROTECTED_IMPORTANCE, is_derived, max_retired
from inmind.dreams.page.guards import IDENTITY_SECTIONS
from inmind.dreams.page.page import Section
from inmind.dreams.page.pointers import MAX_KEYWORDS_CHARACTERS
from inmind.dreams.propose_by_rules import quote_tool_text, to_line
from inmind.errors import short_repr

MAX_TEXT_CHARACTERS: Final = 300
"""Characters of one text in the prompt."""

MAX_PART_TOKENS: Final = {"page": 3_000, "notes": 4_500, "crystals": 2_500, "insights": 700}
"""Parts of the prompt, each with its token limit."""

MAX_ANSWER_CHARACTERS: Final = 1_000_000
MAX_EDITS: Final = 60
MAX_EDIT_CHARACTERS: Final = 300
MAX_TOPIC_CHARACTERS: Final = 80

MODEL_SECTIONS: Final = (Section.PHENOTYPE, Section.BOND, Section.NICHE, Section.ACTIVE)
"""Sections that a model may write. The others are generated."""


def _object_schema(**properties: object) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_TEXT: Final = {"type": "string"}
_TEXTS: Final = {"type": "array", "items": _TEXT}
_LINE: Final = {"section": {"type": "string", "enum": [*MODEL_SECTIONS]}, "text": _TEXT, "sources": _TEXTS}

ANSWER_SCHEMA: Final[Mapping[str, Any]] = _object_schema(
    edits={
        "type": "array",
        "items": {
            "anyOf": [
                _object_schema(op={"type": "string", "enum": ["add"]}, **_LINE),
                _object_schema(op={"type": "string", "enum": ["rewrite"]}, lines=_TEXTS, **_LINE),
                _object_schema(op={"type": "string", "enum": ["retire"]}, line=_TEXT, topic=_TEXT, keywords=_TEXT),
            ]
        },
    }
)

# -- labels ------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Labels:
    """Labels with what they refer to."""

    lines: Mapping[str, PageLine]
    """Lines that may be rewritten or retired."""
    locked: Mapping[str, str]
    """Lines that must not change, each with the reason."""
    sources: Mapping[str, LineSource]
    parts: Mapping[str, str]
    """The text of each part."""


def label_material(material: DreamMaterial) -> Labels:
    page_lines = {f"L{number}": entry for number, entry in enumerate(material.page.all_entries(), 1)}
    locked = {
        label: reason
        for label, (section, text) in page_lines.items()
        if (reason := _lock_reason(section, material.dream_lines.get(text)))
    }
    sources = {
        part: {f"{part[0].upper()}{number}": source for number, source in enumerate(part_sources, 1)}
        for part, part_sources in _sources_by_part(material).items()
    }
    texts = {"page": {label: _format_line(*entry, locked.get(label, "")) for label, entry in page_lines.items()}}
    texts |= {part: {label: _format_source(one) for label, one in part_.items()} for part, part_ in sources.items()}
    fitted = {part: _fit(labelled, MAX_PART_TOKENS[part]) for part, labelled in texts.items()}
    return Labels(
        lines={label: material.dream_lines[page_lines[label][1]] for label in fitted["page"] if label not in locked},
        locked=locked,
        sources={label: sources[part][label] for part in sources for label in fitted[part]},
        parts={part: "\n".join(f"{label} {text}" for label, text in texts.items()) for part, texts in fitted.items()},
    )


def _lock_reason(section: Section | None, line: PageLine | None) -> str:
    """Why the model must not change a line; empty if it may."""
    if line is None:
        return "written by a person"
    return "generated" if section is Section.POINTERS or is_derived(line) else ""


def _sources_by_part(material: DreamMaterial) -> dict[str, list[LineSource]]:
    """Sources in the order of their labels; the last ones may not fit.

    Notes begin with the most important, crystals with the newest. Tool results are left out: they are long and say
    nothing about people.
    """
    crystals = [crystal for crystal in material.other_crystals() if crystal.trust is not Trust.DATA]
    return {
        "notes": sorted(material.notes, key=lambda note: (-note.importance, note.at, note.ids)),
        "crystals": [
            LineSource.of(one) for one in sorted(crystals, key=lambda one: (-one.trust, -one.at.timestamp(), one.id))
        ],
        "insights": list(material.insights),
    }


def _format_line(section: Section | None, text: str, locked: str) -> str:
    return f"[{section or 'no section'}{f'; locked: {locked}' if locked else ''}] {_one_line(text)}"


def _format_source(source: LineSource) -> str:
    suffix = {Trust.DATA: ", from a tool", Trust.PERSON: ", by a person"}.get(source.trust, "")
    return f"({source.kind}, {source.importance:g}, {source.at[:10]}{suffix}) {_one_line(source.text)}"


def _one_line(text: str) -> str:
    """The text on one line, so that it cannot imitate a label."""
    return escape_markup(to_line(text, MAX_TEXT_CHARACTERS))


def _fit(texts: Mapping[str, str], budget: int) -> dict[str, str]:
    """The first texts that fit the budget."""
    count = estimator()
    fitting: dict[str, str] = {}
    for label, text in texts.items():
        budget -= count(f"{label} {text}\n")
        if budget < 0:
            break
        fitting[label] = text
    return fitting


# -- answers -----------------------------------------------------------------------------------------------


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

    def parse(self, fields: object) -> Edit:
        if not is_object(fields):
            raise _InvalidEdit(f"expected an object, got {short_repr(fields)}")
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
        section, text, sources, trust = self._parse_line(fields, [])
        if not sources:
            raise _InvalidEdit("sources: a new line needs at least one source")
        best = max(sources, key=lambda source: source.importance)
        at = max(source.at for source in sources)
        return Add(section, text, _ids(sources), best.importance, best.kind, at, trust)

    def _parse_rewrite(self, fields: Mapping[str, Any]) -> Rewrite:
        labels = _parse_labels(fields, "lines")
        lines = [self._find_line(label) for label in labels]
        if not lines or len({*labels}) < len(labels):
            raise _InvalidEdit("lines: expected at least one line, each once")
        section, text, sources, _ = self._parse_line(fields, lines)
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
        topic = _parse_text(fields, "topic", MAX_TOPIC_CHARACTERS)
        keywords = _parse_text(fields, "keywords", MAX_KEYWORDS_CHARACTERS)
        if line.importance >= MIN_PROTECTED_IMPORTANCE:
            raise _InvalidEdit(f"line: {label} is too important to retire")
        if not self._remaining_retires:
            raise _InvalidEdit("line: too many lines are retired in this dream")
        self._remaining_retires -= 1
        self._used_labels.add(cast(str, label))
        return Retire(line=line.text, topic=topic, keywords=keywords)

    def _parse_line(
        self, fields: Mapping[str, Any], replaced: Sequence[PageLine]
    ) -> tuple[Section, str, list[LineSource], Trust]:
        """Section, text, sources and trust of a line that replaces others or is new."""
        section = fields.get("section")
        if section not in MODEL_SECTIONS:
            raise _InvalidEdit(f"section: expected one of {', '.join(MODEL_SECTIONS)}, got {short_repr(section)}")
        text = _parse_text(fields, "text", MAX_EDIT_CHARACTERS)
        labels = dict.fromkeys(_parse_labels(fields, "sources"))
        if unknown := next((label for label in labels if label not in self._labels.sources), None):
            raise _InvalidEdit(f"sources: there is no {short_repr(unknown)}")
        sources = [self._labels.sources[label] for label in labels]
        trust = Trust(min([Trust.AGENT, *(source.trust for source in sources), *(line.trust for line in replaced)]))
        if trust is Trust.DATA:
            if section in IDENTITY_SECTIONS:
                raise _InvalidEdit(f"{section} must not contain text from tools")
            # The model may have copied the mark from its input.
            text = quote_tool_text(_TOOL_MARK.sub(r"\g<text>", text))
        if invented := invented_facts(text, *(source.text for source in sources), *(line.text for line in replaced)):
            raise _InvalidEdit(f"text: not in any source: {', '.join(invented)}")
        return Section(section), text, sources, trust

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


_TOOL_MARK = re.compile(r'\A\(from a tool\) "?(?P<text>.*?)"?\Z')


def _ids(sources: Sequence[LineSource]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id for source in sources for id in source.ids))


def _parse_labels(fields: Mapping[str, Any], name: str) -> list[str]:
    value: object = fields.get(name)
    if not is_list(value) or not all(isinstance(label, str) for label in value):
        raise _InvalidEdit(f"{name}: expected a list of labels, got {short_repr(value)}")
    return value


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


# Positions that are tried as the start of the JSON object: models may write text before it.
_MAX_OBJECT_STARTS: Final = 20


def _find_edits(text: str) -> list[Any]:
    """The list of edits, at any position in the answer."""
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise _InvalidEdit(f"it has {len(text):,} characters")
    decoder = json.JSONDecoder()
    reasons: list[str] = []
    end = 0
    for match in islice(re.finditer(r"\{", text), _MAX_OBJECT_STARTS):
        if match.start() < end:
            continue
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError) as error:
            reasons.append(f"it is not valid JSON: {error}")
            continue
        if is_list(edits := value.get("edits")):
            return edits
        reasons.append('it has no list of "edits"')
    raise _InvalidEdit(reasons[0] if reasons else "it contains no JSON object")
