"""Does a payload make sense? What types cannot say: a message is one of its format, a path means a page, a time is one.

Everybody else who hands something in is asked the same at the edge where it comes in, and past that nobody asks again.
So what comes in as an event is asked here, by the same rooms: one message that nobody can read would stop whoever goes
through all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from inmind.core.events.base import EventPayload, Trust
from inmind.core.events.crystals import CrystalCreated, NoteAdded
from inmind.core.events.documents import DocumentWritten, ScratchpadStarted, ScratchpadWritten, SettingsWritten
from inmind.core.events.dreams import (
    DreamAnswered,
    DreamChecked,
    DreamCommitted,
    DreamGathered,
    DreamProgressed,
    DreamProposed,
    DreamResumed,
    DreamStarted,
    DreamUndone,
    TradeRecorded,
)
from inmind.core.events.entities import EntitySighting, EntitySightings
from inmind.core.events.prompt import PromptPrepared
from inmind.core.events.session import Compacted, MessageAdded, SessionOpened, Stub, SystemSet
from inmind.core.messages import format_named
from inmind.core.paths import checked_name, working_directory
from inmind.documents.document import resolve_path, validate_text
from inmind.documents.overview import LANGUAGES
from inmind.dreams.page.edits import edit_from_row
from inmind.dreams.page.sections import Section
from inmind.search.crystal import KINDS
from inmind.search.extract import moment_in

_AMOUNT = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?")
"""As amounts are entered: exact, and no longer than somebody could mean."""

_EVENT = re.compile(r".+#[0-9]{1,18}", re.DOTALL)


def refuse_nonsense(what: EventPayload) -> None:
    """ValueError, or InvalidInput of whichever room knows better."""
    match what:
        case MessageAdded(wire=wire, format=format):
            format_named(format).check(wire, field="wire")
        case SettingsWritten():
            raise ValueError("settings do not happen to a session or a resource")
        case DocumentWritten(path=path, text=text):
            resolve_path(path)
            validate_text(text)
        case SessionOpened(resource=resource, cwd=cwd, language=language):
            checked_name(resource, "resource")
            working_directory(cwd)
            if language not in LANGUAGES:
                raise ValueError(f"{language[:50]!r} is none of the languages {', '.join(LANGUAGES)}")
        case ScratchpadWritten(text=text) | ScratchpadStarted(state=str(text)):
            validate_text(text)
        case EntitySightings(sightings=things):
            for thing in things:
                _check_thing(thing)
        case SystemSet(system=system, format=format):
            format_named(format).check_system(system, field="system")
        case Compacted(stubs=stubs):
            _check_stubs(stubs)
        case PromptPrepared(format=format):
            format_named(format)
        case NoteAdded() | CrystalCreated():
            if what.category not in KINDS:
                raise ValueError(f"{what.category[:50]!r} is none of the kinds {', '.join(KINDS)}")
            _check_between(what.importance, 0, 1)
            _check_between(what.valence, -1, 1)
        case TradeRecorded(amount=amount, date=on):
            if not _AMOUNT.fullmatch(amount):
                raise ValueError(f"{amount[:50]!r} is no amount")
            _check_moment(on)
        case DreamStarted() | DreamResumed() | DreamProgressed() | DreamAnswered() | DreamChecked():
            moment_with_zone(what.lease_until)
        case DreamGathered(lease_until=until, as_of=at):
            moment_with_zone(until)
            moment_with_zone(at)
        case DreamProposed(lease_until=until, edits=edits):
            moment_with_zone(until)
            for edit in edits:
                edit_from_row(edit)
                _check_moment(edit.at)
                validate_text(edit.topic + edit.keywords)
        case DreamCommitted() | DreamUndone():
            _check_dreamt(what)
        case _:
            pass


def moment_with_zone(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text!r} has no zone")
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is no time") from error


def _check_thing(thing: EntitySighting) -> None:
    """What it is called is shown in prompts, and what it has to do with."""
    parts = (text for part in thing.parts for text in (part.type, part.id, part.name))
    for text in (thing.type, thing.id, thing.name, thing.action, *thing.aliases, *(thing.parent or ()), *parts):
        validate_text(text)


def _check_stubs(stubs: Iterable[Stub]) -> None:
    for stub in stubs:
        for wire in stub.messages:
            format_named(stub.format).check(wire, field="stubs")


def _check_dreamt(what: DreamCommitted | DreamUndone) -> None:
    for line in what.lines:
        Section(line.section)
        Trust(line.trust)
        _check_moment(line.at)
    for gap in what.gaps:
        moment_with_zone(gap.since)
        moment_with_zone(gap.last_seen)
    for skill in what.skills:
        moment_with_zone(skill.last_used)
    for note in what.notes if isinstance(what, DreamCommitted) else ():
        if not _EVENT.fullmatch(note):
            raise ValueError(f"{note[:50]!r} is no note")


def _check_moment(text: str) -> None:
    """Where there may be none."""
    if text and moment_in(text) is None:
        raise ValueError(f"{text[:50]!r} is no time")


def _check_between(number: float, least: int, most: int) -> None:
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least} and {most}")
