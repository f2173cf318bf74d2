"""Texts that people can edit: which there are, their versions, and what a change on disk means.

A document lives in the journal; the file beside it is a live view. When the two differ, somebody did
something, and the cost of misreading it is a person's work: so the judgement stands here, pure and tested,
apart from the reading and writing of files.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Any, Literal

from inmind.core.encoding import digest
from inmind.core.events.base import Event, EventPayload, Trust
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import CompactionUndone
from inmind.core.frozen import frozen
from inmind.documents.notes_page import append_note
from inmind.errors import InvalidInput, InvalidPath

Scope = Literal["thread", "resource"]

OVERVIEW_PATH = "overview.md"
MEMORY_PAGE_PATH = "MEMORY.md"
NOTES_PAGE_PATH = "memory/scratch.md"
RESOURCE_PATHS = (MEMORY_PAGE_PATH, NOTES_PAGE_PATH)
ARCHIVE_PREFIX = "archive/"
PAGE_FOLDERS = ("detail", "archive")

MAX_DOCUMENT_BYTES = 1_048_576
"""A document is read by a model; a megabyte of it never is. Larger texts are refused when written."""

MAX_LINE_CHARACTERS = 24_000
"""Characters of a line as it is read to a model; what is longer counts as several lines."""

_NAME_PUNCTUATION = " .,()+@=&!'-’、，（）《》"
_PAGE_NAME = re.compile(rf"\w[\w{re.escape(_NAME_PUNCTUATION)}]{{0,119}}")
PAGE_NAME_RULE = f"at most 120 letters, digits, spaces, _ and {_NAME_PUNCTUATION.strip()}, none of these marks first"
"""How a page may be named, in words."""
_WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))]
)


def resolve_path(path: object, *, anonymous: bool = False) -> tuple[Scope, str]:
    """Which document a path means. There is one list of places, and everything else is INVALID_PATH.

    A path is a name to look up, never something to walk: no dots, links or encodings can lead outside, since
    nothing outside can be named. `alone`: in a session of nobody in particular, whose notes are its own.
    """
    if isinstance(path, str):
        name = path.removeprefix("working-memory/")
        if name == OVERVIEW_PATH:
            return "thread", name
        if name in RESOURCE_PATHS:
            return "thread" if anonymous and name == NOTES_PAGE_PATH else "resource", name
        folder, _, leaf = name.partition("/")
        if folder in PAGE_FOLDERS and _is_page_name(leaf):
            return "thread", name
    raise InvalidPath(
        field="path",
        value=path,
        expected=f"{OVERVIEW_PATH}, detail/<name>, archive/<name>, {' or '.join(RESOURCE_PATHS)}",
    )


def validate_text(text: object, *, field: str = "text") -> str:
    """A text that a document may hold: a string that UTF-8 can carry, without NUL, within the size limit."""
    if not isinstance(text, str):
        raise InvalidInput(field=field, value=text, expected="a text")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(field=field, value=text, expected="text without lone surrogates") from error
    if "\x00" in text:
        raise InvalidInput(field=field, value=text, expected="text without NUL characters")
    if size > MAX_DOCUMENT_BYTES:
        raise InvalidInput(field=field, value=f"{size} bytes", expected=f"at most {MAX_DOCUMENT_BYTES} bytes")
    return text


def split_lines(text: str) -> list[str]:
    """The lines of a text as they are counted and read to a model."""
    return [
        line[start : start + MAX_LINE_CHARACTERS]
        for line in text.split("\n")
        for start in range(0, len(line) or 1, MAX_LINE_CHARACTERS)
    ]


@frozen
class Document:
    text: str
    version: int
    """Sequence number of the event that wrote it."""
    source: str
    """Id of that event."""
    trust: Trust = Trust.PERSON
    last_edit: int = 0
    """Number of the event by which somebody last wrote it: what memory enters by itself since then is no news."""


DOCUMENT_EVENTS: tuple[type[EventPayload], ...] = (CompactionUndone, DocumentWritten, NoteAdded)
"""What changes documents."""


@frozen
class Documents:
    """All documents of one stream, as folded so far."""

    by_path: Mapping[str, Document] = field(default_factory=dict[str, Document])

    def apply(self, event: Event) -> Documents:
        payload = event.payload
        if isinstance(payload, CompactionUndone) and payload.archives:
            return Documents({path: page for path, page in self.by_path.items() if path not in payload.archives})
        if isinstance(payload, NoteAdded):
            return self._add_note(payload, event)
        if not isinstance(payload, DocumentWritten):
            return self
        previous = self.by_path.get(payload.path)
        written = previous.last_edit if payload.upkeep and previous else event.seq
        page = Document(text=payload.text, version=event.seq, source=event.id, trust=event.trust, last_edit=written)
        return Documents({**self.by_path, payload.path: page})

    def _add_note(self, note: NoteAdded, event: Event) -> Documents:
        """A page of notes is trusted no more than the least of them."""
        previous = self.by_path.get(NOTES_PAGE_PATH)
        page = Document(
            text=append_note(self.text(NOTES_PAGE_PATH), note, event.at, max_bytes=MAX_DOCUMENT_BYTES),
            version=event.seq,
            source=event.id,
            trust=min(event.trust, previous.trust) if previous else event.trust,
            last_edit=event.seq,
        )
        return Documents({**self.by_path, NOTES_PAGE_PATH: page})

    def text(self, path: str) -> str:
        document = self.by_path.get(path)
        return document.text if document else ""

    def version(self, path: str) -> int:
        document = self.by_path.get(path)
        return document.version if document else 0

    def is_edited_since(self, path: str, *, version: int) -> bool:
        """Has somebody written a document since it was at some version?"""
        page = self.by_path.get(path)
        return not page.last_edit <= version <= page.version if page else version != 0

    def freeze(self) -> dict[str, Any]:
        return {path: [one.text, one.version, int(one.trust), one.last_edit] for path, one in self.by_path.items()}

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any], stream: str) -> Documents:
        return cls(
            {
                path: Document(text, version, f"{stream}#{version}", Trust(trust), written)
                for path, (text, version, trust, written) in frozen.items()
            }
        )


class FileStatus(StrEnum):
    """What a file on disk turned out to be."""

    CURRENT = "current"
    """It shows the newest version."""
    STALE = "stale"
    """It still shows the last published version while the journal has a newer one: publish again."""
    EDITED = "edited"
    """A person or a foreign tool wrote it: their words win."""
    DAMAGED = "damaged"
    """Nobody meant this: keep the bytes aside, show the last good version, say so."""
    MISSING = "missing"
    """It is gone: show the last good version again. A file's absence is not a decision to forget."""
    SHARED = "shared"
    """Somebody's words, in a file that has another name as well, perhaps outside: not taken in until it is alone."""
    FOREIGN = "foreign"
    """Nothing that was ever ours, nor a text that could become a document: a person's business, left alone."""


@frozen
class FileCheck:
    status: FileStatus
    text: str = ""
    reason: str = ""


def check_file(
    content: bytes | None,
    *,
    document: Document | None,
    published_digest: str | None,
    unconfirmed_digests: Collection[str] = (),
    has_other_links: bool = False,
) -> FileCheck:
    """What the bytes found in a file mean, given the newest version and the digest that was last published.

    A stale copy is told from a person who restored an old version by what we know to have shown: what we last
    wrote there is stale when the journal has moved on, the same words after we wrote something newer are an edit.
    `unconfirmed` are digests of versions since then: a writer that was killed may have shown one and not said so.
    `linked`: the file has another name as well. What it shows of ours is ours all the same, as in a home that somebody
    backed up by links; but a file from elsewhere must not become a page by being linked here.
    """
    if content is None:
        return FileCheck(FileStatus.MISSING) if document else FileCheck(FileStatus.CURRENT)
    if document is not None and content == document.text.encode():
        return FileCheck(FileStatus.CURRENT)
    text, damage = _decode(content)
    if not (damage and content) and digest(text) in (published_digest, *unconfirmed_digests):
        return FileCheck(FileStatus.STALE)
    if damage:
        return FileCheck(FileStatus.DAMAGED if document else FileStatus.FOREIGN, reason=damage)
    return FileCheck(FileStatus.SHARED) if has_other_links else FileCheck(FileStatus.EDITED, text=text)


def _decode(content: bytes) -> tuple[str, str]:
    if not content:
        return "", "the file is empty"
    if len(content) > MAX_DOCUMENT_BYTES:
        return "", f"it is too large: a page has at most {MAX_DOCUMENT_BYTES:,} bytes"
    if b"\x00" in content:
        return "", "the file holds NUL bytes"
    try:
        return content.decode(), ""
    except UnicodeDecodeError as error:
        return "", f"the file is not UTF-8 from byte {error.start} on"


def _is_page_name(leaf: str) -> bool:
    stem = leaf.split(".")[0].lower()
    plain = unicodedata.is_normalized("NFC", leaf) and len(leaf.encode("utf-8", "replace")) <= 200
    return bool(_PAGE_NAME.fullmatch(leaf)) and plain and leaf[-1] not in " ." and stem not in _WINDOWS_DEVICES
