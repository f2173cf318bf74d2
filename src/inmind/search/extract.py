"""What of an event can be found again: each message, note, page and thing becomes a crystal as it is.

Nothing is distilled here, and nothing is judged: a crystal holds the words of its event, and the words stay in the
journal. What memory itself has shown is no news and becomes none (see `echo`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.crystals import CrystalCreated, NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.entities import EntitiesEvicted, EntitySighting
from inmind.core.events.prompt import AnchorMoved, TailChanged
from inmind.core.events.session import MessageAdded
from inmind.core.frozen import frozen
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH, OVERVIEW_PATH
from inmind.search.crystal import KINDS

TALK, NOTES, THINGS = "", "notes", "things"
"""What a stream's crystals are kept in order by: what was said, noted, seen; and each of its pages by its path."""

SAID, SHOWN_BY_TOOLS, SEEN, WRITTEN = 0.3, 0.1, 0.3, 0.5
"""Importance of what nobody has declared one for. What tools answer fades in a month unless somebody looks it up."""

MOST_OF_A_CALL = 2_000
MOST_OF_A_SPEAKER = 200
MOST_PARTS = 20


@frozen(kw_only=True)
class Said:
    """A message, read: in which words it came from its provider is no concern of deep memory."""

    role: str
    name: str = ""
    text: str = ""
    calls: Sequence[tuple[str, str]] = ()
    """Tools that it asks for, with the arguments as they were written."""


@frozen(kw_only=True)
class Gleaned:
    """A crystal to be, without what its event says already."""

    text: str
    series: str = TALK
    """What it stands in order with."""
    part: int = 0
    """Which part of its event it is, where there are several; 0 for the whole."""
    about: str = ""
    """What it is the newest word on: an earlier one about the same is found no more."""
    kind: str = "general"
    source: str = "memory"
    importance: float = WRITTEN
    valence: float = 0.0
    role: str = ""
    speaker: str = ""
    named: bool = False
    """The message's own field has that name. A text that only begins with one can be found by it, and is nobody's word
    on who has spoken."""
    at: datetime | None = None
    """When it was said, where the message tells it."""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    consolidated: bool = False


def gleaned(event: Event, said: Said | None = None) -> list[Gleaned]:
    """The crystals of an event, in their order. `said`: its message, read."""
    match event.payload:
        case MessageAdded() as message:
            return _message(message, said, event.trust) if said and not message.from_memory else []
        case NoteAdded() as note:
            return [_written(note, NOTES)]
        case CrystalCreated() as crystal:
            return [_written(crystal, NOTES, consolidated=crystal.consolidated)]
        case DocumentWritten(path=path) if path == MEMORY_PAGE_PATH and event.origin is Origin.DREAM:
            return []  # what it says is said by what it was made of
        case DocumentWritten(path=path, text=text, upkeep=False) if path not in (OVERVIEW_PATH, NOTES_PAGE_PATH):
            return [
                Gleaned(text=part, series=path, part=number, about=path)
                for number, part in enumerate(_sections(text), 1)
            ]
        case EntitiesEvicted(sightings=things):
            return [_thing(thing, number) for number, thing in enumerate(things, 1)]
        case _:
            return []


def subjects(event: Event) -> list[tuple[str, str]]:
    """What an event is the newest word on, and among what: the earlier ones are found no more, whatever it says."""
    match event.payload:
        case DocumentWritten(path=path, upkeep=False) if path not in (OVERVIEW_PATH, NOTES_PAGE_PATH):
            return [(path, path)]
        case EntitiesEvicted(sightings=things):
            return [(THINGS, _of(thing)) for thing in things]
        case _:
            return []


def _of(thing: EntitySighting) -> str:
    return f"{THINGS}/{thing.type}/{thing.id}"


def _message(message: MessageAdded, said: Said, trust: Trust) -> list[Gleaned]:
    if said.role not in ("user", "assistant", "tool"):
        return []
    if not said.text.strip() and not any(arguments.strip(_NO_ARGUMENTS) for _, arguments in said.calls):
        return []
    asked_for = (f"{name} {arguments[:MOST_OF_A_CALL]}" for name, arguments in said.calls)
    return [
        Gleaned(
            text="\n".join((*([said.text] if said.text.strip() else []), *asked_for)),
            kind="episode",
            source="sessions",
            importance=SHOWN_BY_TOOLS if trust is Trust.DATA else SAID,
            role=said.role,
            speaker=_speaker(said),
            named=bool(said.name),
            at=_told_time(message.wire),
        )
    ]


def _speaker(said: Said) -> str:
    """By the message's own field, or by a name in front, as transcripts have it; the text stays as it was said."""
    if said.name or said.role == "tool":
        return said.name.replace("\0", "")[:MOST_OF_A_SPEAKER]  # hosts name them as they like, and it is looked up
    named = _NAME_IN_FRONT.match(said.text)
    return named[1] if named and _is_name(named[1].split(" ")) else ""


def _is_name(words: Sequence[str]) -> bool:
    return all(word[0].isupper() for word in words) and words[0].lower() not in _NO_NAMES


def _written(what: NoteAdded | CrystalCreated, series: str, *, consolidated: bool = False) -> Gleaned:
    """A kind that a later version knows, and this one does not, is found as no kind in particular."""
    if not (0 <= what.importance <= 1 and -1 <= what.valence <= 1):
        raise ValueError(f"importance {what.importance} or valence {what.valence} is beyond all bounds")
    return Gleaned(
        text=what.text,
        series=series,
        kind=what.category if what.category in KINDS else "general",
        importance=what.importance,
        valence=what.valence,
        valid_from=moment_in(what.valid_from),
        valid_to=moment_in(what.valid_to),
        consolidated=consolidated,
    )


def _thing(thing: EntitySighting, number: int) -> Gleaned:
    called = f'{thing.type} "{thing.name}" ({thing.id})' if thing.name else f"{thing.type} {thing.id}"
    more = [f"also called {', '.join(thing.aliases)}"] if thing.aliases else []
    if thing.how == "deleted":
        more.append("deleted")
    parts = [f"{part.type} {part.name} ({part.id})" if part.name else f"{part.type} {part.id}" for part in thing.parts]
    if parts:
        more.append(f"with {', '.join(parts[:MOST_PARTS])}")
    return Gleaned(
        text="; ".join((called, *more)),
        series=THINGS,
        part=number,
        about=_of(thing),
        kind="fact",
        importance=SEEN,
    )


def _sections(text: str) -> list[str]:
    """A page by its headings: what stands under one is about one thing.

    A heading with nothing under it answers nothing by itself. It belongs to what follows, and the last ones to what
    stands before them; a page of headings alone is an outline, and is found as one.
    """
    found: list[str] = []
    above: list[str] = []
    for part in filter(None, map(str.strip, _HEADING.split(text))):
        above.append(part)
        if not _BARE_HEADING.fullmatch(part):
            found.append("\n".join(above))
            above = []
    if found or len(above) > 1:
        found[-1:] = ["\n".join((*found[-1:], *above))]
    return found


def _told_time(wire: Mapping[str, Any]) -> datetime | None:
    """When a message was really said, as hosts that bring old conversations along write it."""
    for field in ("timestamp", "created_at", "date", "time"):
        value = wire.get(field)
        if isinstance(value, str) and (moment := moment_in(value)):
            return moment
        if isinstance(value, int | float) and 1e8 < value < 1e14:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
    return None


def moment_in(text: str) -> datetime | None:
    """A moment as ISO text; None for anything else, and for what lies before or behind all dates in our own time."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def words_shown(event: Event, said: Said | None = None) -> Iterable[str]:
    """Texts by which memory has shown the model something: its blocks in prompts, and its answers to calls."""
    match event.payload:
        case MessageAdded(from_memory=True) if said is not None:
            yield said.text
        case AnchorMoved(blocks=blocks):
            yield from (block.text for block in blocks)
        case TailChanged(text=text, new_blocks=fresh):
            yield text
            yield from (block.text for block in fresh)
        case _:
            pass


def may_echo(event: Event) -> bool:
    """Can these be words that memory has put in somebody's mouth? People speak for themselves.

    So does what is written down: whoever takes a note or rewrites a page has read what was there, and means it.
    """
    return isinstance(event.payload, MessageAdded) and event.origin in (Origin.ASSISTANT, Origin.TOOL, Origin.WEB)


_HEADING = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
_BARE_HEADING = re.compile(r"#{1,6} .*")
_NO_ARGUMENTS = " \t\r\n{}"
_NAME_IN_FRONT = re.compile(r"([^\W\d_][\w.'’-]{1,24}(?: [^\W\d_][\w.'’-]{0,24}){0,2}): (?=\S)")
_NO_NAMES = frozenset(
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
"""What people begin a line with, and a colon behind it, that nobody is called."""
