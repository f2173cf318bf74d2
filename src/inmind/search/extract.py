"""Extracts the crystals of an event: each message, note, page section and evicted entity.

Texts are neither summarised nor judged, and stay in the journal. Text that memory itself has shown is not indexed
(see `echo`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.crystals import CrystalCreated, NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import AnchorMoved, EntitiesEvicted, EntitySighting, MessageAdded, TailChanged
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Text
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH, OVERVIEW_PATH
from inmind.search.crystal import KINDS

CONVERSATION_SERIES, NOTE_SERIES, ENTITY_SERIES = "", "notes", "things"
"""Names of the series that order the crystals of a stream: messages, notes, entities. Each page is a series too."""

MESSAGE_IMPORTANCE, TOOL_IMPORTANCE, ENTITY_IMPORTANCE, DOCUMENT_IMPORTANCE = 0.3, 0.1, 0.3, 0.5
"""Default importance of messages, tool results, entities and documents.

Tool results expire in a month unless accessed."""

MAX_CALL_CHARS = 2_000
MAX_SPEAKER_CHARS = 200
MAX_LISTED_PARTS = 20


@frozen(kw_only=True)
class SearchableMessage:
    """A message, independent of the provider's format."""

    role: str
    name: str = ""
    text: str = ""
    calls: Sequence[tuple[str, str]] = ()
    """Tool calls, as name and raw arguments."""


MessageReader = Callable[[MessageAdded], SearchableMessage]
"""Parses a message of any provider."""


@frozen(kw_only=True)
class CrystalDraft:
    """A crystal before indexing, without the fields its event already has."""

    text: str
    series: str = CONVERSATION_SERIES
    """Series it belongs to."""
    part: int = 0
    """Number of the part of its event; 0 for the whole."""
    subject: str = ""
    """Subject it is the latest version of: earlier crystals with the same subject are hidden."""
    kind: str = "general"
    source: str = "memory"
    importance: float = DOCUMENT_IMPORTANCE
    valence: float = 0.0
    role: str = ""
    speaker: str = ""
    speaker_declared: bool = False
    """True if the message's name field has the speaker.

    A name at the start of the text can be searched but does not identify the speaker."""
    at: datetime | None = None
    """Time of the message, if it declares one."""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    consolidated: bool = False


def extract_crystals(event: Event, parsed: SearchableMessage | None = None) -> list[CrystalDraft]:
    """Return the crystals of an event, in order. `parsed` is its parsed message."""
    match event.payload:
        case MessageAdded() as message:
            return _from_message(message, parsed, event.trust) if parsed and not message.from_memory else []
        case NoteAdded() as note:
            return [_from_note(note)]
        case CrystalCreated() as crystal:
            return [_from_note(crystal, consolidated=crystal.consolidated)]
        case DocumentWritten(path=path) if path == MEMORY_PAGE_PATH and event.origin is Origin.DREAM:
            return []  # its content is already in the crystals it was made from
        case DocumentWritten(path=path, text=text, upkeep=False) if path not in (OVERVIEW_PATH, NOTES_PAGE_PATH):
            return [
                CrystalDraft(text=part, series=path, part=number, subject=path)
                for number, part in enumerate(_split_sections(text), 1)
            ]
        case EntitiesEvicted(sightings=sightings):
            return [_from_entity(sighting, number) for number, sighting in enumerate(sightings, 1)]
        case _:
            return []


def subjects_of(event: Event) -> list[tuple[str, str]]:
    """Return (series, subject) pairs that an event replaces; earlier crystals are hidden."""
    match event.payload:
        case DocumentWritten(path=path, upkeep=False) if path not in (OVERVIEW_PATH, NOTES_PAGE_PATH):
            return [(path, path)]
        case EntitiesEvicted(sightings=sightings):
            return [(ENTITY_SERIES, _entity_subject(sighting)) for sighting in sightings]
        case _:
            return []


def _entity_subject(sighting: EntitySighting) -> str:
    return f"{ENTITY_SERIES}/{sighting.type}/{sighting.id}"


def _from_message(message: MessageAdded, parsed: SearchableMessage, trust: Trust) -> list[CrystalDraft]:
    if parsed.role not in ("user", "assistant", "tool"):
        return []
    if not parsed.text.strip() and not any(arguments.strip(_NO_ARGUMENTS) for _, arguments in parsed.calls):
        return []
    calls = (f"{name} {arguments[:MAX_CALL_CHARS]}" for name, arguments in parsed.calls)
    return [
        CrystalDraft(
            text="\n".join((*([parsed.text] if parsed.text.strip() else []), *calls)),
            kind="episode",
            source="sessions",
            importance=TOOL_IMPORTANCE if trust is Trust.DATA else MESSAGE_IMPORTANCE,
            role=parsed.role,
            speaker=_speaker(parsed),
            speaker_declared=bool(parsed.name),
            at=_declared_time(message.wire),
        )
    ]


def _speaker(parsed: SearchableMessage) -> str:
    """Return the name field, or a name before a colon at the start of the text."""
    if parsed.name or parsed.role == "tool":
        return parsed.name.replace("\0", "")[:MAX_SPEAKER_CHARS]  # a host may send any text, and it is a lookup key
    prefix = _SPEAKER_PREFIX.match(parsed.text)
    return prefix[1] if prefix and _is_name(prefix[1].split(" ")) else ""


def _is_name(words: Sequence[str]) -> bool:
    return all(word[0].isupper() for word in words) and words[0].lower() not in _NOT_SPEAKERS


def _from_note(note: NoteAdded | CrystalCreated, *, consolidated: bool = False) -> CrystalDraft:
    """Draft of a note or dream crystal. A kind of a later version becomes "general"."""
    if not (0 <= note.importance <= 1 and -1 <= note.valence <= 1):
        raise ValueError(f"importance {note.importance} or valence {note.valence} is out of range")
    return CrystalDraft(
        text=note.text,
        series=NOTE_SERIES,
        kind=note.category if note.category in KINDS else "general",
        importance=note.importance,
        valence=note.valence,
        valid_from=parse_time(note.valid_from),
        valid_to=parse_time(note.valid_to),
        consolidated=consolidated,
    )


def _from_entity(sighting: EntitySighting, number: int) -> CrystalDraft:
    label = f'{sighting.type} "{sighting.name}" ({sighting.id})' if sighting.name else f"{sighting.type} {sighting.id}"
    details = [f"also called {', '.join(sighting.aliases)}"] if sighting.aliases else []
    if sighting.how == "deleted":
        details.append("deleted")
    parts = [
        f"{part.type} {part.name} ({part.id})" if part.name else f"{part.type} {part.id}" for part in sighting.parts
    ]
    if parts:
        details.append(f"with {', '.join(parts[:MAX_LISTED_PARTS])}")
    return CrystalDraft(
        text="; ".join((label, *details)),
        series=ENTITY_SERIES,
        part=number,
        subject=_entity_subject(sighting),
        kind="fact",
        importance=ENTITY_IMPORTANCE,
    )


def _split_sections(text: str) -> list[str]:
    """Split a page at its headings.

    A heading without text is joined to the section after it, and trailing headings to the section before. A page of
    headings only is one section.
    """
    sections: list[str] = []
    pending_headings: list[str] = []
    for part in filter(None, map(str.strip, _HEADING.split(text))):
        pending_headings.append(part)
        if not _BARE_HEADING.fullmatch(part):
            sections.append("\n".join(pending_headings))
            pending_headings = []
    if sections or len(pending_headings) > 1:
        sections[-1:] = ["\n".join((*sections[-1:], *pending_headings))]
    return sections


def _declared_time(wire: Mapping[str, Any]) -> datetime | None:
    """Return the time that a message declares, for imported messages."""
    for field in ("timestamp", "created_at", "date", "time"):
        value = wire.get(field)
        if isinstance(value, str) and (moment := parse_time(value)):
            return moment
        if isinstance(value, int | float) and 1e8 < value < 1e14:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    return None


def parse_time(text: str) -> datetime | None:
    """Parse ISO 8601 as UTC; None for other text and for dates out of range."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def shown_texts(event: Event, parsed: SearchableMessage | None = None) -> Iterable[str]:
    """Yield the texts that memory has shown the model: prompt blocks and tool results."""
    match event.payload:
        case MessageAdded(from_memory=True) if parsed is not None:
            yield parsed.text
        case AnchorMoved(blocks=blocks):
            yield from (block.text for block in blocks)
        case TailChanged(text=text, new_blocks=blocks):
            yield text
            yield from (block.text for block in blocks)
        case _:
            pass


def can_echo(event: Event) -> bool:
    """Return True if the event may repeat text of memory.

    Users and written notes or pages are never treated as echoes.
    """
    return isinstance(event.payload, MessageAdded) and event.origin in (Origin.ASSISTANT, Origin.TOOL, Origin.WEB)


_HEADING = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
_BARE_HEADING = re.compile(r"#{1,6} .*")
_NO_ARGUMENTS = " \t\r\n{}"
_SPEAKER_PREFIX = re.compile(r"([^\W\d_][\w.'’-]{1,24}(?: [^\W\d_][\w.'’-]{0,24}){0,2}): (?=\S)")
_NOT_SPEAKERS = frozenset(
    """
    a ai an answer assistant attention background caution commit conclusion context correction date decision done
    edit error example expected fact feedback file final fix from fyi fwd goal hello here hey hi hint however http
    https human idea important in input instructions issue it key listen log look my name next no note notes ok okay
    option options or our output part please plan problem progress prompt pros cons ps question re reason remember
    reminder request response result results rule rules so solution source sorry status step steps subject summary
    system task test thanks that the then these this time tip title to todo traceback translation update url usage user
    warning we well what when where which who why yes your
    """.split()
)
"""Words before a colon at the start of a line that are not names."""


def message_reader(is_memory_tool: Callable[[str], bool]) -> MessageReader:
    """Return a function that parses messages for indexing.

    Calls of memory tools are skipped, because their effect is indexed. Writes to the overview are kept: the
    overview itself is not indexed, and its earlier versions would not be found.
    """

    def is_indexed(name: str, arguments: str) -> bool:
        return not is_memory_tool(name) or (
            OVERVIEW_PATH in arguments and (name == "memory_write" or _WRITE_COMMAND.search(arguments) is not None)
        )

    def read(message: MessageAdded) -> SearchableMessage:
        parsed = FORMATS[message.format].read(message.wire)
        results = (part.text for result in parsed.results for part in result.parts if isinstance(part, Text))
        name = message.wire.get("name")
        return SearchableMessage(
            role=parsed.role if parsed.text or not parsed.results else "tool",
            name=name if isinstance(name, str) and parsed.role != "tool" else "",
            text="\n".join((*([parsed.text] if parsed.text else []), *results)),
            calls=[(call.name, call.arguments) for call in parsed.calls if is_indexed(call.name, call.arguments)],
        )

    return read


_WRITE_COMMAND = re.compile(r'"command"\s*:\s*"(?:write|append)\b')
