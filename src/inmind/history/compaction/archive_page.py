"""The archive page: messages that left the view, complete and as they were said, where a model can read them again.

A page is read by lines, so each message begins at a line that its stub can name. What is not text (a picture, a
provider's own part) is there as the JSON it came in. A page keeps below the size of a document: the messages of a
long conversation go on in further pages.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Message, Result, Text
from inmind.core.text import counted
from inmind.documents.document import ARCHIVE_PREFIX, MAX_DOCUMENT_BYTES, split_lines
from inmind.history import ConversationEntry

MOST_IN_PAGE = MAX_DOCUMENT_BYTES - 64 * 1024
"""Bytes of messages in one page: a person may still add some words of his own."""

MOST_SLUG = 32

# What was said must not look as if another message began.
_HEADING_ALIKE = re.compile(r"^(?=## \d+: )", re.MULTILINE)
_NUMBERED = re.compile(rf"{ARCHIVE_PREFIX}(\d{{3,}})-")
_GOES_ON = re.compile(r"(# .*\n\nGoes on from )(.+)(?=\.\n)")
_WORDS = re.compile(r"[^\W_]+")


@frozen
class Page:
    """One page of an archive, and the lines that messages take, by their numbers."""

    path: str
    text: str
    lines: dict[int, tuple[int, int]]


def pages(entries: Sequence[ConversationEntry], *, title: str, path: str, before: str = "") -> list[Page]:
    """All pages that hold these messages; the first continues what stands there `before`."""
    title = title.replace("\x00", " ")
    heading = f"# {title}\n\n{_extent(entries)}\n"
    page = _Growing(path, f"{before.rstrip()}\n\n{heading}" if before else heading)
    made: list[_Growing] = []
    for entry in entries:
        for piece in _pieces(_section(entry)):
            if page.lines and page.bytes + len(piece.encode()) > MOST_IN_PAGE:
                made.append(page)
                page = _Growing(_further(path, len(made)), f"# {title}\n\nGoes on from {made[-1].path}.\n")
            page.add(entry.seq, piece)
    return [Page(one.path, "\n".join(one.pieces), one.lines) for one in (*made, page)]


def free_path(title: str, taken: Collection[str]) -> str:
    """A new place in archive/, numbered behind those there are, with the first words of what it is about."""
    numbers = [int(match[1]) for path in taken if (match := _NUMBERED.match(path))]
    words = "-".join(_WORDS.findall(unicodedata.normalize("NFC", title.lower())))
    slug = words[:MOST_SLUG].rstrip("-") or "conversation"
    return f"{ARCHIVE_PREFIX}{max(numbers, default=0) + 1:03}-{slug}.md"


def moved_path(path: str, taken: Collection[str]) -> str:
    """A new place in archive/ for a page whose own is taken: the same words under another number."""
    return free_path(PurePosixPath(_NUMBERED.sub("", path)).stem, taken)


def moved(text: str, places: Mapping[str, str]) -> str:
    """A page as it reads where others have moved: it may go on from one of them. `places`: the new ones by the old."""
    goes_on = _GOES_ON.match(text)
    return f"{goes_on[1]}{places.get(goes_on[2], goes_on[2])}{text[goes_on.end() :]}" if goes_on else text


class _Growing:
    """A page that is being written."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.pieces, self.lines = path, [text], dict[int, tuple[int, int]]()
        self.bytes = len(text.encode())
        self._next = len(split_lines(text)) + 1

    def add(self, seq: int, piece: str) -> None:
        first, _ = self.lines.get(seq, (self._next, 0))
        self.pieces.append(piece)
        self.bytes += len(piece.encode()) + 1
        self._next += len(split_lines(piece))
        self.lines[seq] = (first, self._next - (2 if piece.endswith("\n") else 1))  # without the blank line behind it


def _extent(entries: Sequence[ConversationEntry]) -> str:
    return counted(len(entries), "message")


def _section(entry: ConversationEntry) -> str:
    message = FORMATS[entry.format].read(entry.wire)
    lines = [f"## {entry.seq}: {message.role}", ""]
    beyond = False
    for part in message.parts:
        match part:
            case Text(text=text):
                lines.append(text)
            case Call():
                lines += [f"calls {part.name} ({part.id}):", part.arguments]
            case Result():
                lines.append(f"{'fails' if part.error else 'answers'} ({part.id}):")
                lines += [inner.text for inner in part.parts if isinstance(inner, Text)]
                beyond = beyond or any(not isinstance(inner, Text) for inner in part.parts)
            case _:
                beyond = True
    if beyond or not _says_it_all(entry, message):
        lines += ["as it came:", to_json(entry.wire)]
    said = "\n".join(_HEADING_ALIKE.sub(r"\\\g<0>", line) for line in lines[2:])
    return f"{lines[0]}\n\n{said}\n".replace("\x00", "\\u0000")


def _says_it_all(entry: ConversationEntry, message: Message) -> bool:
    """Is there nothing in a message but what can be read here: no name, no signature, no field of a provider's own?"""
    written = FORMATS[entry.format].write([message])
    # Some formats begin with a user's words, whatever comes.
    if not written or (len(written) > 1 and message.role == "user"):
        return False
    return len(written) <= 2 and (entry.wire == written[-1] or _spelt(entry.wire) == _spelt(written[-1]))


def _spelt(value: Any) -> Any:
    """A message in one spelling: providers take a text for a list with one text in it, and leave out what goes without
    saying."""
    if is_list(value):
        return [_spelt(item) for item in value]
    if not is_object(value):
        return value
    spelt = {key: _spelt(item) for key, item in value.items() if (key, item) not in _GOES_WITHOUT_SAYING}
    match spelt.get("content"):
        case [{"type": "text" | "input_text" | "output_text", "text": text, **more}] if not more:
            return {**spelt, "content": text}
        case _:
            return spelt


_GOES_WITHOUT_SAYING = (("type", "message"), ("is_error", False))


def _pieces(section: str) -> Iterator[str]:
    """A message that is larger than a page goes on in the next one."""
    rest = section
    while len(rest.encode()) > MOST_IN_PAGE:
        head = rest.encode()[:MOST_IN_PAGE].decode(errors="ignore")
        yield head
        rest = rest[len(head) :]
    yield rest


def _further(path: str, number: int) -> str:
    stem, _, ending = path.rpartition(".")
    return path if not number else f"{stem}-{number + 1}.{ending}"
