"""The notes page memory/scratch.md: its format, and adding, parsing and removing notes.

    # Notes since the last dream

    - [2026-03-12T14:30:00Z] (importance: 0.8) Douglas prefers tabs
    - [2026-03-12T14:45:00Z] (importance: 0.7) The order of the release:
      first the API,
      then the pages

People edit this page, so its text is the only source. A note starts with its time at the start of a line; the indented
lines below belong to it. The text of a note cannot look like another note, because its further lines are indented.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

from inmind.core.events.crystals import NoteAdded
from inmind.core.frozen import frozen
from inmind.core.text import TruncatedText, count_noun, truncate
from inmind.core.tokens import Counter

HEADING = "# Notes since the last dream"

_NOTE_SHARE_DIVISOR = 4
"""One note takes at most 1/4 of the notes budget in a prompt."""

_INDENT = "  "
_LINE_END = re.compile(r"\r\n?")

# An editor may have removed the indent of a blank line inside a note.
_NOTE = re.compile(
    r"^- \[(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\] \(importance: (?P<importance>\d(?:\.\d+)?(?:e-\d+)?)\) ?"
    rf"(?P<text>.*(?:\n+{_INDENT}.*)*)",
    re.MULTILINE,
)
_REMOVED_COUNT = re.compile(r"^\[in deep memory alone: (\d+) notes?\]\n", re.MULTILINE)
_SEPARATOR = re.compile(
    rf"{_NOTE.pattern}|{_REMOVED_COUNT.pattern}|^{HEADING}[ \t]*$|\n[ \t]*\n|\n(?=[-*+] )",
    re.MULTILINE,
)
"""Everything that ends a remark between notes. A remark is a paragraph or a list item."""


@frozen
class PageNote:
    """A note as it is on the page."""

    at: str
    importance: float
    text: str


def append_note(page: str, note: NoteAdded, at: datetime, *, max_bytes: int) -> str:
    """Return the page with one more note at its end, in at most `max_bytes`.

    If the page is full, the oldest notes are removed and the page counts them; a note that no page could hold is not
    added. Search still finds them. Remarks between notes stay.
    """
    before = page if page and not page.isspace() else f"{HEADING}\n\n"
    newline = "" if before.endswith("\n") else "\n"
    text = f"{before}{newline}{_format_note(to_page_note(note, at))}\n"
    if _byte_size(text) <= max_bytes:
        return text
    shorter = _drop_oldest(text, max_bytes=max_bytes * 3 // 4)
    return shorter if _byte_size(shorter) <= max_bytes else page


def parse_notes(page: str) -> list[PageNote]:
    """Return the notes of a page in order."""
    return [_parse_note(note) for note in _note_matches(_LINE_END.sub("\n", page))]


def parse_remarks(page: str) -> list[str]:
    """Return the remarks that people wrote between notes: paragraphs and list items."""
    text = _LINE_END.sub("\n", page)
    return [text[piece.start : piece.end] for piece in _split_pieces(text) if piece.kind == "remark"]


def remove_pieces(page: str, notes: Iterable[PageNote], remarks: Iterable[str]) -> str:
    """Return the page without these notes and remarks, each removed once.

    Everything else stays. A piece is only removed as a whole: a piece that was extended since is a different one.
    Pieces that become neighbours get a separator.
    """
    text, pending = _LINE_END.sub("\n", page), Tally[PageNote | str]((*notes, *remarks))

    def is_kept(piece: _PagePiece) -> bool:
        if piece.kind in ("heading", "removed_count"):
            return piece.kind == "heading"
        content = piece.note or text[piece.start : piece.end]
        pending[content] -= 1
        return pending[content] < 0

    pieces = list(_split_pieces(text))
    kept = [number for number, piece in enumerate(pieces) if is_kept(piece)]
    if len(kept) == len(pieces):
        return page
    if all(pieces[number].kind == "heading" for number in kept):
        return f"{HEADING}\n"
    parts, previous = list[str](), -1
    for number in kept:
        piece, end = pieces[number], pieces[previous].end if previous >= 0 else 0
        if number == previous + 1:
            parts.append(text[end : piece.start])
        elif previous >= 0:
            parts.append(_separator_between(pieces[previous], piece, text))
        parts.append(text[piece.start : piece.end])
        previous = number
    parts.append(text[pieces[-1].end :] if previous == len(pieces) - 1 else "\n")
    return "".join(parts).replace("\n", "\r\n" if "\r\n" in page else "\n")


def prepend_notes(page: str, notes: Iterable[PageNote]) -> str:
    """Return the page with these notes before the existing ones."""
    body = strip_heading(page)
    lines = [*map(_format_note, notes), *([body] if body else [])]
    return f"{HEADING}\n\n" + "".join(f"{line}\n" for line in lines)


def to_page_note(note: NoteAdded, at: datetime) -> PageNote:
    """Convert a note event to a page note.

    A carriage return ends a line for some readers, so it becomes a newline.
    """
    return PageNote(format_timestamp(at), note.importance, _LINE_END.sub("\n", note.text))


def strip_heading(page: str) -> str:
    """Return the content of the page without its heading."""
    return _LINE_END.sub("\n", page).strip("\n").removeprefix(HEADING).strip("\n")


def truncate_to_newest(page: str, *, budget: int, count: Counter, pointer: str) -> TruncatedText:
    """Return the newest notes that fit the budget, below a pointer to the others.

    The newest notes are the ones the model has not seen, so the page is cut at its beginning. A long note is
    shortened while there are others, so that it does not push them out.
    """
    empty, note_pointer = count(""), f"{_INDENT}{pointer}"
    shares = len(list(islice(_note_starts(page), _NOTE_SHARE_DIVISOR)))
    share = max(empty + (budget - empty) // shares, 4 * count(note_pointer))

    def join(notes: list[TruncatedText], start: int) -> str:
        return "\n".join([*([pointer] if start else []), *(note.text for note in notes)])

    kept, first, end = list[TruncatedText](), 0, len(page)
    for start in _note_starts(page):
        notes = [truncate(page[start:end], budget=share, count=count, pointer=note_pointer), *kept]
        if count(join(notes, start)) > budget:
            break
        kept, first, end = notes, start, start - 1
    text = join(kept, first)
    if not kept:  # the budget is smaller than one share: cut the first note with a single pointer
        first = next(_note_starts(page))
        kept = [truncate(page[first:], budget=budget, count=count, pointer=pointer)]
        text = kept[0].text
    return TruncatedText(text, page.count("\n", 0, first) + sum(note.lines_left_out for note in kept))


def format_timestamp(at: datetime) -> str:
    """Format a time as in notes: UTC, to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _format_note(note: PageNote) -> str:
    text = note.text.replace("\n", f"\n{_INDENT}")
    return f"- [{note.at}] (importance: {note.importance}) {text}"


def _parse_note(note: re.Match[str]) -> PageNote:
    return PageNote(note["at"], float(note["importance"]), note["text"].replace(f"\n{_INDENT}", "\n"))


@frozen
class _PagePiece:
    """A part of a page; between two pieces there is only white space."""

    kind: Literal["heading", "removed_count", "note", "remark"]
    start: int
    end: int
    note: PageNote | None = None


def _note_matches(text: str) -> Iterator[re.Match[str]]:
    return (note for note in _NOTE.finditer(text) if _is_valid_time(note["at"]))


def _is_valid_time(at: str) -> bool:
    """False for dates that do not exist, like 30 February.

    A person typed the line, so it is not a note.
    """
    try:
        return bool(datetime.fromisoformat(at))
    except ValueError:
        return False


def _split_pieces(text: str) -> Iterator[_PagePiece]:
    end = 0
    for separator in _SEPARATOR.finditer(text):
        yield from _remark_piece(text, end, separator.start())
        end = separator.end()
        if separator["at"] and _is_valid_time(separator["at"]):
            yield _PagePiece("note", separator.start(), end, _parse_note(separator))
        elif separator["at"]:
            yield from _remark_piece(text, separator.start(), end)
        elif separator[0].startswith(HEADING):
            yield _PagePiece("heading", separator.start(), end)
        elif not separator[0].isspace():
            yield _PagePiece("removed_count", separator.start(), end)
    yield from _remark_piece(text, end, len(text))


def _remark_piece(text: str, start: int, end: int) -> Iterator[_PagePiece]:
    content = text[start:end]
    if stripped := content.strip():
        start += len(content) - len(content.lstrip())
        yield _PagePiece("remark", start, start + len(stripped))


def _separator_between(first: _PagePiece, second: _PagePiece, text: str) -> str:
    """Return the separator between two pieces that become neighbours.

    Pieces keep their indent, except one that would attach a remark to the note above.
    """
    indent = text[text.rfind("\n", 0, second.start) + 1 : second.start]
    if not indent and first.kind != "heading" and text.startswith(("- ", "* ", "+ "), second.start):
        return "\n"
    return "\n\n" + (" " if indent and _NOTE.match(text, first.start) else indent)


def _note_starts(page: str) -> Iterator[int]:
    """Yield the offsets of lines that may start a note, last first, then 0."""
    end = len(page)
    while (end := page.rfind("\n- ", 0, end)) >= 0:
        yield end + 1
    yield 0


def _drop_oldest(text: str, *, max_bytes: int) -> str:
    """Drop the oldest notes until the page fits.

    It drops more than necessary, so that it does not run again for every note.
    """
    removed = sum(int(count[1]) for count in _REMOVED_COUNT.finditer(text))
    text = _REMOVED_COUNT.sub("", text)
    notes = list(_note_matches(text))
    sizes = [_byte_size(note[0]) + 1 for note in notes]
    dropped = {number for number, size in enumerate(sizes) if size > max_bytes}
    over = _byte_size(text) - max_bytes - sum(sizes[number] for number in dropped)
    for number, size in enumerate(sizes):
        if over > 0 and number not in dropped:
            dropped.add(number)
            over -= size
    kept, end = list[str](), 0
    for number in sorted(dropped):
        kept.append(text[end : notes[number].start()])
        end = notes[number].end() + 1
    kept.insert(1, f"[in deep memory alone: {count_noun(removed + len(dropped), 'note')}]\n")
    return "".join([*kept, text[end:]])


def _byte_size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
