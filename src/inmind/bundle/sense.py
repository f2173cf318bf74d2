"""Does a payload make sense? What types cannot say: a message is one of its format, a path means a page, a time is one.

Everybody else who hands something in is asked the same at the edge where it comes in, and past that nobody asks again.
So what comes in as an event is asked here, by the same rooms: one message that nobody can read would stop whoever goes
through all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from inmind.crystals.crystal import KINDS
from inmind.crystals.glean import moment_in
from inmind.documents import checked_text, resolve
from inmind.home import checked_name, working_directory
from inmind.journal import (
    Compacted,
    Configured,
    Crystallised,
    DocumentWritten,
    DreamAnswered,
    DreamBegun,
    DreamChecked,
    DreamGathered,
    DreamProposed,
    Dreamt,
    DreamTaken,
    DreamUndone,
    DreamWent,
    Happened,
    MessageAdded,
    NoteTaken,
    PadBegun,
    PadWritten,
    PromptPrepared,
    SessionOpened,
    Stub,
    SystemSet,
    Things,
    ThingSeen,
    Traded,
    Trust,
)
from inmind.overview import LANGUAGES
from inmind.prompt.formats import format_named
from inmind.state.edits import of_row
from inmind.state.sections import Section

_AMOUNT = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?")
"""As amounts are entered: exact, and no longer than somebody could mean."""

_EVENT = re.compile(r".+#[0-9]{1,18}", re.DOTALL)


def refuse_nonsense(what: Happened) -> None:
    """ValueError, or InvalidInput of whichever room knows better."""
    match what:
        case MessageAdded(wire=wire, format=format):
            format_named(format).check(wire, field="wire")
        case Configured():
            raise ValueError("settings do not happen to a session or a resource")
        case DocumentWritten(path=path, text=text):
            resolve(path)
            checked_text(text)
        case SessionOpened(resource=resource, cwd=cwd, language=language):
            checked_name(resource, "resource")
            working_directory(cwd)
            if language not in LANGUAGES:
                raise ValueError(f"{language[:50]!r} is none of the languages {', '.join(LANGUAGES)}")
        case PadWritten(text=text) | PadBegun(state=str(text)):
            checked_text(text)
        case Things(things=things):
            for thing in things:
                _check_thing(thing)
        case SystemSet(system=system, format=format):
            format_named(format).check_system(system, field="system")
        case Compacted(stubs=stubs):
            _check_stubs(stubs)
        case PromptPrepared(format=format):
            format_named(format)
        case NoteTaken() | Crystallised():
            if what.about not in KINDS:
                raise ValueError(f"{what.about[:50]!r} is none of the kinds {', '.join(KINDS)}")
            _check_between(what.importance, 0, 1)
            _check_between(what.valence, -1, 1)
        case Traded(amount=amount, on=on):
            if not _AMOUNT.fullmatch(amount):
                raise ValueError(f"{amount[:50]!r} is no amount")
            _check_moment(on)
        case DreamBegun() | DreamTaken() | DreamWent() | DreamAnswered() | DreamChecked():
            moment_with_zone(what.until)
        case DreamGathered(until=until, at=at):
            moment_with_zone(until)
            moment_with_zone(at)
        case DreamProposed(until=until, edits=edits):
            moment_with_zone(until)
            for edit in edits:
                of_row(edit)
                _check_moment(edit.at)
                checked_text(edit.topic + edit.keywords)
        case Dreamt() | DreamUndone():
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


def _check_thing(thing: ThingSeen) -> None:
    """What it is called is shown in prompts, and what it has to do with."""
    parts = (text for part in thing.parts for text in (part.type, part.id, part.name))
    for text in (thing.type, thing.id, thing.name, thing.action, *thing.aliases, *(thing.parent or ()), *parts):
        checked_text(text)


def _check_stubs(stubs: Iterable[Stub]) -> None:
    for stub in stubs:
        for wire in stub.wires:
            format_named(stub.format).check(wire, field="stubs")


def _check_dreamt(what: Dreamt | DreamUndone) -> None:
    for line in what.lines:
        Section(line.section)
        Trust(line.trust)
        _check_moment(line.at)
    for gap in what.gaps:
        moment_with_zone(gap.since)
        moment_with_zone(gap.renewed)
    for skill in what.skills:
        moment_with_zone(skill.last)
    for note in what.notes if isinstance(what, Dreamt) else ():
        if not _EVENT.fullmatch(note):
            raise ValueError(f"{note[:50]!r} is no note")


def _check_moment(text: str) -> None:
    """Where there may be none."""
    if text and moment_in(text) is None:
        raise ValueError(f"{text[:50]!r} is no time")


def _check_between(number: float, least: int, most: int) -> None:
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least} and {most}")
