"""Documents: editable texts, their paths and versions, and the status of their files.

A document is stored in the journal; its file on disk is a live file. If the two differ, another writer changed
the file, and a wrong classification destroys that writer's work. The classification is therefore pure and separate from
file access.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Literal

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
"""Larger texts are refused on write: models read documents, and never a megabyte."""

MAX_LINE_CHARACTERS = 24_000
"""A longer line is counted and shown to the model as several lines."""

_NAME_PUNCTUATION = " .,()+@=&!'-’、，（）《》"
_PAGE_NAME = re.compile(rf"\w[\w{re.escape(_NAME_PUNCTUATION)}]{{0,119}}")
PAGE_NAME_RULE = f"at most 120 letters, digits, spaces, _ and {_NAME_PUNCTUATION.strip()}, none of these marks first"
"""The rule for page names, for error messages."""
_WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))]
)


def resolve_path(path: object, *, anonymous: bool = False) -> tuple[Scope, str]:
    """Return scope and name of the document at a path; raises InvalidPath for any other path.

    A path is looked up in a fixed list and never opened on a file system, so dots, links or encodings cannot lead
    outside. `anonymous`: the session has no resource, so its notes page belongs to the session.
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
    """Return a text that a document may hold: valid UTF-8, no NUL, within the size limit."""
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
    """Split a text into lines as they are numbered for the model."""
    return [
        line[start : start + MAX_LINE_CHARACTERS]
        for line in text.split("\n")
        for start in range(0, len(line) or 1, MAX_LINE_CHARACTERS)
    ]


@frozen
class Document:
    """One version of a document."""

    text: str
    version: int
    """Sequence number of the event that wrote it."""
    source: str
    """Id of that event."""
    trust: Trust = Trust.PERSON
    last_edit: int = 0
    """Sequence number of the last write by a person or model. Updates by memory itself do not count as edits."""


DOCUMENT_EVENTS: tuple[type[EventPayload], ...] = (CompactionUndone, DocumentWritten, NoteAdded)
"""Payload types that change documents."""


@frozen
class Documents:
    """All documents of one stream: a fold of its events."""

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
        """Add a note to the notes page, whose trust is the lowest trust of its notes."""
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
        """True if a person or model wrote the document after `version`."""
        page = self.by_path.get(path)
        return not page.last_edit <= version <= page.version if page else version != 0


class FileStatus(StrEnum):
    """Result of comparing a live file with its document."""

    CURRENT = "current"
    """The file holds the newest version."""
    STALE = "stale"
    """The file holds the last published version and the journal has a newer one: publish again."""
    EDITED = "edited"
    """A person or another tool wrote the file: its text becomes the new version."""
    DAMAGED = "damaged"
    """The content cannot be an edit: keep the bytes aside, restore the last good version, report it."""
    MISSING = "missing"
    """The file is gone: restore the last good version. A missing file does not mean "forget"."""
    SHARED = "shared"
    """The file was edited but has another hard link, perhaps outside the home: not imported while linked."""
    FOREIGN = "foreign"
    """The file was never a document and cannot become one: left alone."""


@frozen
class FileCheck:
    """Status of a live file, with the edited text or the reason for damage."""

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
    """Classify the content of a live file by the newest version and the last published digest.

    A stale copy and a person restoring an old version differ in the published digest: content that we published last is
    stale once the journal has moved on; the same content after a newer publication is an edit. `unconfirmed_digests`:
    versions since then; a killed writer may have published one without recording it. `has_other_links`: the file has
    another hard link. Content that we published is still ours, as in a home backed up with hard links; a file from
    outside must not become a page by being linked into the home.
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
    if has_other_links:
        return FileCheck(FileStatus.SHARED, reason="it has a second name (a hard link)")
    return FileCheck(FileStatus.EDITED, text=text)


def _decode(content: bytes) -> tuple[str, str]:
    if not content:
        return "", "the file is empty"
    if len(content) > MAX_DOCUMENT_BYTES:
        return "", f"the file is too large: a page has at most {MAX_DOCUMENT_BYTES:,} bytes"
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
