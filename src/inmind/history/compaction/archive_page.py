"""Archive pages: compacted messages, complete and verbatim, for the model to read again.

A page is read by lines, so each message starts at a line that its stub names. Parts that are not text (images, provider
specific parts) are kept as JSON. A page stays below the size of a document; a long conversation continues on further
pages.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Message, Result, Text
from inmind.core.text import count_noun
from inmind.documents.document import ARCHIVE_PREFIX, MAX_DOCUMENT_BYTES, split_lines
from inmind.history import ConversationEntry

MAX_PAGE_BYTES = MAX_DOCUMENT_BYTES - 64 * 1024
"""Bytes of messages on one page; the rest is left for edits by people."""

MAX_SLUG_CHARACTERS = 32

# Text of a message must not look like the start of another message.
_HEADING_LOOKALIKE = re.compile(r"^(?=## \d+: )", re.MULTILINE)
_NUMBERED_PATH = re.compile(rf"{ARCHIVE_PREFIX}(\d{{3,}})-")
_CONTINUATION = re.compile(r"(# .*\n\nGoes on from )(.+)(?=\.\n)")
_WORDS = re.compile(r"[^\W_]+")


@frozen
class ArchivePage:
    """One archive page, and the line range of each message by sequence number."""

    path: str
    text: str
    lines: dict[int, tuple[int, int]]


def build_pages(
    entries: Sequence[ConversationEntry], *, title: str, path: str, existing: str = ""
) -> list[ArchivePage]:
    """Return the pages with these messages.

    The first page continues the text that exists at `path`.
    """
    title = title.replace("\x00", " ")
    heading = f"# {title}\n\n{count_noun(len(entries), 'message')}\n"
    page = _PageWriter(path, f"{existing.rstrip()}\n\n{heading}" if existing else heading)
    finished: list[_PageWriter] = []
    for entry in entries:
        for piece in _split_section(_message_section(entry)):
            if page.lines and page.bytes + len(piece.encode()) > MAX_PAGE_BYTES:
                finished.append(page)
                stem, _, ending = path.rpartition(".")
                next_path = f"{stem}-{len(finished) + 1}.{ending}"
                page = _PageWriter(next_path, f"# {title}\n\nGoes on from {finished[-1].path}.\n")
            page.add(entry.seq, piece)
    return [ArchivePage(one.path, "\n".join(one.pieces), one.lines) for one in (*finished, page)]


def new_path(title: str, existing_paths: Collection[str]) -> str:
    """Return an unused path in archive/ with the next number and the first words of the title."""
    numbers = [int(match[1]) for path in existing_paths if (match := _NUMBERED_PATH.match(path))]
    words = "-".join(_WORDS.findall(unicodedata.normalize("NFC", title.lower())))
    slug = words[:MAX_SLUG_CHARACTERS].rstrip("-") or "conversation"
    return f"{ARCHIVE_PREFIX}{max(numbers, default=0) + 1:03}-{slug}.md"


def page_name(path: str) -> str:
    """Return the short name of a numbered page, `archive/012`, else the path. Both can be read."""
    match = _NUMBERED_PATH.match(path)
    return match[0].rstrip("-") if match else path


def parse_location(location: str, paths: Iterable[str]) -> tuple[str, tuple[int, int] | None]:
    """Return the page that a location names, `archive/012:5-9`, and its lines if it names them.

    A numbered page is found by its short name; of several, the first that a compaction wrote. A location that is no
    short name is returned as its path.
    """
    name, _, lines = location.partition(":")
    match = _LINES.fullmatch(lines)
    path = min(
        (path for path in paths if page_name(path) == name.removeprefix("working-memory/")), key=len, default=name
    )
    if not match:
        return (location if lines else path), None
    return path, (int(match[1]), int(match[2] or match[1]))


_LINES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


def renumbered_path(path: str, existing_paths: Collection[str]) -> str:
    """Return an unused path with the same words, for a page whose path is in use."""
    return new_path(PurePosixPath(_NUMBERED_PATH.sub("", path)).stem, existing_paths)


def update_continuation(text: str, new_paths: Mapping[str, str]) -> str:
    """Return the page with the link to the page it continues updated.

    `new_paths`: new path by old path.
    """
    link = _CONTINUATION.match(text)
    return f"{link[1]}{new_paths.get(link[2], link[2])}{text[link.end() :]}" if link else text


class _PageWriter:
    """Builds one page."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.pieces, self.lines = path, [text], dict[int, tuple[int, int]]()
        self.bytes = len(text.encode())
        self._next = len(split_lines(text)) + 1

    def add(self, seq: int, piece: str) -> None:
        first, _ = self.lines.get(seq, (self._next, 0))
        self.pieces.append(piece)
        self.bytes += len(piece.encode()) + 1
        self._next += len(split_lines(piece))
        self.lines[seq] = (first, self._next - (2 if piece.endswith("\n") else 1))  # without the blank line after it


def _message_section(entry: ConversationEntry) -> str:
    message = FORMATS[entry.format].read(entry.wire)
    lines = [f"## {entry.seq}: {message.role}", ""]
    incomplete = False
    for part in message.parts:
        match part:
            case Text(text=text):
                lines.append(text)
            case Call():
                lines += [f"calls {part.name} ({part.id}):", part.arguments]
            case Result():
                lines.append(f"{'fails' if part.error else 'answers'} ({part.id}):")
                lines += [inner.text for inner in part.parts if isinstance(inner, Text)]
                incomplete = incomplete or any(not isinstance(inner, Text) for inner in part.parts)
            case _:
                incomplete = True
    if incomplete or not _is_fully_rendered(entry, message):
        lines += ["as it came:", to_json(entry.wire)]
    body = "\n".join(_HEADING_LOOKALIKE.sub(r"\\\g<0>", line) for line in lines[2:])
    return f"{lines[0]}\n\n{body}\n".replace("\x00", "\\u0000")


def _is_fully_rendered(entry: ConversationEntry, message: Message) -> bool:
    """True if the readable form has everything of the message.

    That is: the message has no name, signature or provider specific field.
    """
    written = FORMATS[entry.format].write([message])
    # Some formats require a user message first.
    if not written or (len(written) > 1 and message.role == "user"):
        return False
    return len(written) <= 2 and (entry.wire == written[-1] or _normalize(entry.wire) == _normalize(written[-1]))


def _normalize(value: Any) -> Any:
    """Return a message in one form.

    Providers accept a text as a list with one text, and omit default fields.
    """
    if is_list(value):
        return [_normalize(item) for item in value]
    if not is_object(value):
        return value
    normalized = {key: _normalize(item) for key, item in value.items() if (key, item) not in _DEFAULT_FIELDS}
    match normalized.get("content"):
        case [{"type": "text" | "input_text" | "output_text", "text": text, **more}] if not more:
            return {**normalized, "content": text}
        case _:
            return normalized


_DEFAULT_FIELDS = (("type", "message"), ("is_error", False))


def _split_section(section: str) -> Iterator[str]:
    """Split a message that is larger than a page."""
    rest = section
    while len(rest.encode()) > MAX_PAGE_BYTES:
        head = rest.encode()[:MAX_PAGE_BYTES].decode(errors="ignore")
        yield head
        rest = rest[len(head) :]
    yield rest
