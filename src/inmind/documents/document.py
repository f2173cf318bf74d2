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
from inmind.documents.notes_page import with_note
from inmind.errors import InvalidInput, InvalidPath

Scope = Literal["thread", "resource"]

OVERVIEW = "overview.md"
STATE = "MEMORY.md"
SCRATCH = "memory/scratch.md"
RESOURCE_PATHS = (STATE, SCRATCH)
ARCHIVE = "archive/"
FOLDERS = ("detail", "archive")

MOST_BYTES = 1_048_576
"""A document is read by a model; a megabyte of it never is. Larger texts are refused when written."""

LONGEST_LINE = 24_000
"""Characters of a line as it is read to a model; what is longer counts as several lines."""

_MARKS = " .,()+@=&!'-’、，（）《》"
_NAME = re.compile(rf"\w[\w{re.escape(_MARKS)}]{{0,119}}")
NAMES = f"at most 120 letters, digits, spaces, _ and {_MARKS.strip()}, none of these marks first"
"""How a page may be named, in words."""
_DEVICES = frozenset(["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))])


def resolve(path: object, *, alone: bool = False) -> tuple[Scope, str]:
    """Which document a path means. There is one list of places, and everything else is INVALID_PATH.

    A path is a name to look up, never something to walk: no dots, links or encodings can lead outside, since
    nothing outside can be named. `alone`: in a session of nobody in particular, whose notes are its own.
    """
    if isinstance(path, str):
        name = path.removeprefix("working-memory/")
        if name == OVERVIEW:
            return "thread", name
        if name in RESOURCE_PATHS:
            return "thread" if alone and name == SCRATCH else "resource", name
        folder, _, leaf = name.partition("/")
        if folder in FOLDERS and _is_name(leaf):
            return "thread", name
    raise InvalidPath(
        field="path", value=path, expected=f"{OVERVIEW}, detail/<name>, archive/<name>, {' or '.join(RESOURCE_PATHS)}"
    )


def checked_text(text: object, *, field: str = "text") -> str:
    """A text that a document may hold: a string that UTF-8 can carry, without NUL, within the size limit."""
    if not isinstance(text, str):
        raise InvalidInput(field=field, value=text, expected="a text")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput(field=field, value=text, expected="text without lone surrogates") from error
    if "\x00" in text:
        raise InvalidInput(field=field, value=text, expected="text without NUL characters")
    if size > MOST_BYTES:
        raise InvalidInput(field=field, value=f"{size} bytes", expected=f"at most {MOST_BYTES} bytes")
    return text


def lines_read(text: str) -> list[str]:
    """The lines of a text as they are counted and read to a model."""
    return [
        line[start : start + LONGEST_LINE]
        for line in text.split("\n")
        for start in range(0, len(line) or 1, LONGEST_LINE)
    ]


@frozen
class Document:
    text: str
    version: int
    """Sequence number of the event that wrote it."""
    source: str
    """Id of that event."""
    trust: Trust = Trust.PERSON
    written: int = 0
    """Number of the event by which somebody last wrote it: what memory enters by itself since then is no news."""


FOLDED: tuple[type[EventPayload], ...] = (CompactionUndone, DocumentWritten, NoteAdded)
"""What changes documents."""


@frozen
class Documents:
    """All documents of one stream, as folded so far."""

    by_path: Mapping[str, Document] = field(default_factory=dict[str, Document])

    def apply(self, event: Event) -> Documents:
        what = event.payload
        if isinstance(what, CompactionUndone) and what.archives:
            return Documents({path: page for path, page in self.by_path.items() if path not in what.archives})
        if isinstance(what, NoteAdded):
            return self._noted(what, event)
        if not isinstance(what, DocumentWritten):
            return self
        before = self.by_path.get(what.path)
        written = before.written if what.upkeep and before else event.seq
        page = Document(text=what.text, version=event.seq, source=event.id, trust=event.trust, written=written)
        return Documents({**self.by_path, what.path: page})

    def _noted(self, note: NoteAdded, event: Event) -> Documents:
        """A page of notes is trusted no more than the least of them."""
        before = self.by_path.get(SCRATCH)
        page = Document(
            text=with_note(self.text(SCRATCH), note, event.at, most=MOST_BYTES),
            version=event.seq,
            source=event.id,
            trust=min(event.trust, before.trust) if before else event.trust,
            written=event.seq,
        )
        return Documents({**self.by_path, SCRATCH: page})

    def text(self, path: str) -> str:
        document = self.by_path.get(path)
        return document.text if document else ""

    def version(self, path: str) -> int:
        document = self.by_path.get(path)
        return document.version if document else 0

    def is_news(self, path: str, *, since: int) -> bool:
        """Has somebody written a document since it was at some version?"""
        page = self.by_path.get(path)
        return not page.written <= since <= page.version if page else since != 0

    def freeze(self) -> dict[str, Any]:
        return {path: [one.text, one.version, int(one.trust), one.written] for path, one in self.by_path.items()}

    @classmethod
    def thaw(cls, frozen: Mapping[str, Any], stream: str) -> Documents:
        return cls(
            {
                path: Document(text, version, f"{stream}#{version}", Trust(trust), written)
                for path, (text, version, trust, written) in frozen.items()
            }
        )


class Finding(StrEnum):
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
class Judgement:
    finding: Finding
    text: str = ""
    reason: str = ""


def judge(
    found: bytes | None,
    *,
    document: Document | None,
    published: str | None,
    unconfirmed: Collection[str] = (),
    linked: bool = False,
) -> Judgement:
    """What the bytes found in a file mean, given the newest version and the digest that was last published.

    A stale copy is told from a person who restored an old version by what we know to have shown: what we last
    wrote there is stale when the journal has moved on, the same words after we wrote something newer are an edit.
    `unconfirmed` are digests of versions since then: a writer that was killed may have shown one and not said so.
    `linked`: the file has another name as well. What it shows of ours is ours all the same, as in a home that somebody
    backed up by links; but a file from elsewhere must not become a page by being linked here.
    """
    if found is None:
        return Judgement(Finding.MISSING) if document else Judgement(Finding.CURRENT)
    if document is not None and found == document.text.encode():
        return Judgement(Finding.CURRENT)
    text, damage = _read(found)
    if not (damage and found) and digest(text) in (published, *unconfirmed):
        return Judgement(Finding.STALE)
    if damage:
        return Judgement(Finding.DAMAGED if document else Finding.FOREIGN, reason=damage)
    return Judgement(Finding.SHARED) if linked else Judgement(Finding.EDITED, text=text)


def _read(found: bytes) -> tuple[str, str]:
    if not found:
        return "", "the file is empty"
    if len(found) > MOST_BYTES:
        return "", f"it is too large: a page has at most {MOST_BYTES:,} bytes"
    if b"\x00" in found:
        return "", "the file holds NUL bytes"
    try:
        return found.decode(), ""
    except UnicodeDecodeError as error:
        return "", f"the file is not UTF-8 from byte {error.start} on"


def _is_name(leaf: str) -> bool:
    stem = leaf.split(".")[0].lower()
    plain = unicodedata.is_normalized("NFC", leaf) and len(leaf.encode("utf-8", "replace")) <= 200
    return bool(_NAME.fullmatch(leaf)) and plain and leaf[-1] not in " ." and stem not in _DEVICES
