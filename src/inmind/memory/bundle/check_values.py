"""Checks of payload values beyond types: message formats, document paths, timestamps.

Other input is checked when it enters. Events of a bundle are checked here by the same functions: one message that
cannot be parsed would break every later reader of the conversation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime

from inmind.core.events.base import EventPayload, Trust
from inmind.core.events.crystals import CrystalCreated, NoteAdded, NoteWithdrawn
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
    ProposedEdit,
    TradeRecorded,
)
from inmind.core.events.entities import EntitySighting, EntitySightings
from inmind.core.events.prompt import PromptPrepared
from inmind.core.events.session import Compacted, MessageAdded, SessionOpened, Stub, SystemSet
from inmind.core.messages import get_format
from inmind.core.paths import check_name, working_directory
from inmind.documents.document import resolve_path, validate_text
from inmind.documents.overview import LANGUAGES
from inmind.dreams.page.sections import Section
from inmind.search.crystal import KINDS
from inmind.search.extract import parse_time

_AMOUNT = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?")
"""Exact amounts of limited length."""

_EVENT_ID = re.compile(r".+#[0-9]{1,18}", re.DOTALL)


def check_payload(payload: EventPayload) -> None:
    """Raise ValueError or InvalidInput for an invalid payload."""
    match payload:
        case MessageAdded(wire=wire, format=format):
            get_format(format).check(wire, field="wire")
        case SettingsWritten():
            raise ValueError("settings are not an event of a session or a resource")
        case DocumentWritten(path=path, text=text):
            resolve_path(path)
            validate_text(text)
        case SessionOpened(resource=resource, cwd=cwd, language=language):
            check_name(resource, "resource")
            working_directory(cwd)
            if language not in LANGUAGES:
                raise ValueError(f"language {language[:50]!r} is not one of {', '.join(LANGUAGES)}")
        case ScratchpadWritten(text=text) | ScratchpadStarted(state=str(text)):
            validate_text(text)
        case EntitySightings(sightings=sightings):
            for sighting in sightings:
                _check_entity(sighting)
        case SystemSet(system=system, format=format):
            get_format(format).check_system(system, field="system")
        case Compacted(stubs=stubs):
            _check_stubs(stubs)
        case PromptPrepared(format=format):
            get_format(format)
        case NoteWithdrawn(note=note):
            stream, _, seq = note.rpartition("#")
            if not stream or not seq.isdecimal():
                raise ValueError(f"{note[:50]!r} is not the id of a note")
        case NoteAdded() | CrystalCreated():
            if payload.category not in KINDS:
                raise ValueError(f"kind {payload.category[:50]!r} is not one of {', '.join(KINDS)}")
            _check_range(payload.importance, 0, 1)
            _check_range(payload.valence, -1, 1)
        case TradeRecorded(amount=amount, date=on):
            if not _AMOUNT.fullmatch(amount):
                raise ValueError(f"{amount[:50]!r} is not an amount")
            _check_timestamp(on)
        case DreamProposed(lease_until=until, edits=edits):
            parse_timestamp(until)
            for edit in edits:
                _check_edit(edit)
        case DreamStarted() | DreamResumed() | DreamProgressed() | DreamAnswered() | DreamChecked():
            parse_timestamp(payload.lease_until)
        case DreamGathered(lease_until=until, as_of=at):
            parse_timestamp(until)
            parse_timestamp(at)
        case DreamCommitted() | DreamUndone():
            _check_dream(payload)
        case _:
            pass


def parse_timestamp(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    try:
        return at.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is not a timestamp") from error


def _check_entity(sighting: EntitySighting) -> None:
    """Its texts are shown in prompts."""
    parts = (text for part in sighting.parts for text in (part.type, part.id, part.name))
    for text in (
        sighting.type,
        sighting.id,
        sighting.name,
        sighting.action,
        *sighting.aliases,
        *(sighting.parent or ()),
        *parts,
    ):
        validate_text(text)


def _check_stubs(stubs: Iterable[Stub]) -> None:
    for stub in stubs:
        for wire in stub.messages:
            get_format(stub.format).check(wire, field="stubs")


def _check_edit(edit: ProposedEdit) -> None:
    if edit.op not in ("add", "rewrite", "retire") or (edit.op == "retire" and len(edit.lines) != 1):
        raise ValueError(f"{edit.op[:50]!r} is not an edit")
    if edit.op != "retire":
        Section(edit.section)
        Trust(edit.trust)
    validate_text(edit.topic + edit.keywords)


def _check_dream(dream: DreamCommitted | DreamUndone) -> None:
    for line in dream.lines:
        Section(line.section)
        Trust(line.trust)
        _check_timestamp(line.at)
    for gap in dream.gaps:
        parse_timestamp(gap.since)
        parse_timestamp(gap.last_seen)
    for skill in dream.skills:
        parse_timestamp(skill.last_used)
    for note in dream.notes if isinstance(dream, DreamCommitted) else ():
        if not _EVENT_ID.fullmatch(note):
            raise ValueError(f"{note[:50]!r} is not the id of a note")


def _check_timestamp(text: str) -> None:
    """A timestamp, or empty."""
    if text and parse_time(text) is None:
        raise ValueError(f"{text[:50]!r} is not a timestamp")


def _check_range(number: float, least: int, most: int) -> None:
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least} and {most}")
