"""The page of notes: how a note stands in memory/scratch.md, and which notes a page has.

    # Notes since the last dream

    - [2026-03-12T14:30:00Z] (importance: 0.8) Douglas prefers tabs
    - [2026-03-12T14:45:00Z] (importance: 0.7) The order of the release:
      first the API,
      then the pages

People edit this page, so all that is known of it is what it says: a note begins with its time at the beginning of a
line, and the lines below it belong to it as far as they are indented. No text of a note can look like another note,
since every line of it but the first is.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Literal

from inmind.core.events.crystals import NoteAdded
from inmind.core.frozen import frozen
from inmind.core.text import Cut, counted, cut
from inmind.core.tokens import Counter

HEADING = "# Notes since the last dream"

_SHARES = 4
"""Of the room for notes in a prompt: the most that one of them takes is one of so many."""

_INDENT = "  "
_LINE_END = re.compile(r"\r\n?")

# An editor may have taken the indent from a blank line in the middle of a note.
_NOTE = re.compile(
    r"^- \[(?P<at>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\] \(importance: (?P<importance>\d(?:\.\d+)?(?:e-\d+)?)\) ?"
    rf"(?P<text>.*(?:\n+{_INDENT}.*)*)",
    re.MULTILINE,
)
_GONE = re.compile(r"^\[in deep memory alone: (\d+) notes?\]\n", re.MULTILINE)
_PARTED = re.compile(
    rf"{_NOTE.pattern}|{_GONE.pattern}|^{HEADING}[ \t]*$|\n[ \t]*\n|\n(?=[-*+] )",
    re.MULTILINE,
)
"""All that ends what a person wrote between the notes: a paragraph, or a line of a list."""


@frozen
class Jotting:
    """A note as a page has it."""

    at: str
    importance: float
    text: str


def with_note(page: str, note: NoteAdded, at: datetime, *, most: int) -> str:
    """The page with one more note at its end, in at most so many bytes.

    Where they do not suffice the oldest notes leave it, and one that no page could hold does not come. They are found
    in deep memory as before, and the page counts them. What people wrote between the notes stays.
    """
    above = page if page and not page.isspace() else f"{HEADING}\n\n"
    ended = "" if above.endswith("\n") else "\n"
    text = f"{above}{ended}{_line(jotted(note, at))}\n"
    if _size(text) <= most:
        return text
    shorter = _without_the_oldest(text, room=most * 3 // 4)
    return shorter if _size(shorter) <= most else page


def notes_in(page: str) -> list[Jotting]:
    """The notes that a page has, in its order."""
    return [_jotting(note) for note in _notes(_LINE_END.sub("\n", page))]


def remarks_in(page: str) -> list[str]:
    """What people wrote between the notes: each a paragraph, or a line of a list."""
    text = _LINE_END.sub("\n", page)
    return [text[piece.start : piece.end] for piece in _pieces(text) if piece.kind == "remark"]


def without(page: str, notes: Iterable[Jotting], remarks: Iterable[str]) -> str:
    """The page without these, each once; whatever came to it since stays, letter by letter.

    A piece goes whole or not at all: what somebody has written on to is another one. Between two that were not
    neighbours before stands what keeps them apart.
    """
    text, leaving = _LINE_END.sub("\n", page), Tally[Jotting | str]((*notes, *remarks))

    def stays(piece: _Piece) -> bool:
        if piece.kind in ("heading", "gone"):
            return piece.kind == "heading"
        told = piece.note or text[piece.start : piece.end]
        leaving[told] -= 1
        return leaving[told] < 0

    pieces = list(_pieces(text))
    kept = [number for number, piece in enumerate(pieces) if stays(piece)]
    if len(kept) == len(pieces):
        return page
    if all(pieces[number].kind == "heading" for number in kept):
        return f"{HEADING}\n"
    in_page, line_end = _places(page), "\r\n" if "\r\n" in page else "\n"
    said, before = list[str](), -1
    for number in kept:
        piece, end = pieces[number], pieces[before].end if before >= 0 else 0
        if number == before + 1:
            said.append(page[in_page(end) : in_page(piece.start)])
        elif before >= 0:
            said.append(_apart(pieces[before], piece, text).replace("\n", line_end))
        said.append(page[in_page(piece.start) : in_page(piece.end)])
        before = number
    said.append(page[in_page(pieces[-1].end) :] if before == len(pieces) - 1 else line_end)
    return "".join(said)


def with_notes_first(page: str, notes: Iterable[Jotting]) -> str:
    """The page with notes that come back to it, in front of those that are there."""
    body = without_heading(page)
    lines = [*map(_line, notes), *([body] if body else [])]
    return f"{HEADING}\n\n" + "".join(f"{line}\n" for line in lines)


def jotted(note: NoteAdded, at: datetime) -> Jotting:
    """A note as a page will have it. A return is a line's end to some who read the file: it is one here."""
    return Jotting(stamp(at), note.importance, _LINE_END.sub("\n", note.text))


def without_heading(page: str) -> str:
    """What the page says, if it says anything."""
    return _LINE_END.sub("\n", page).strip("\n").removeprefix(HEADING).strip("\n")


def newest(page: str, *, budget: int, count: Counter, pointer: str) -> Cut:
    """The last notes of a page that is too long, as many as fit below a line that says where the others are.

    What was noted last is what nobody has been told yet; so a page of notes is cut at its beginning. Of a long note
    only the beginning is shown while there are others: what was noted beside a protocol must not vanish behind it.
    """
    empty, cut_here = count(""), f"{_INDENT}{pointer}"
    shares = len(list(islice(_beginnings(page), _SHARES)))
    share = max(empty + (budget - empty) // shares, 4 * count(cut_here))

    def said(notes: list[Cut], start: int) -> str:
        return "\n".join([*([pointer] if start else []), *(note.text for note in notes)])

    kept, first, end = list[Cut](), 0, len(page)
    for start in _beginnings(page):
        notes = [cut(page[start:end], budget=share, count=count, pointer=cut_here), *kept]
        if count(said(notes, start)) > budget:
            break
        kept, first, end = notes, start, start - 1
    text = said(kept, first)
    if not kept:  # not even a share is there: one pointer has to do for all
        first = next(_beginnings(page))
        kept = [cut(page[first:], budget=budget, count=count, pointer=pointer)]
        text = kept[0].text
    return Cut(text, page.count("\n", 0, first) + sum(note.lines_left_out for note in kept))


def stamp(at: datetime) -> str:
    """A time as notes are dated: to the second, in UTC."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _line(note: Jotting) -> str:
    text = note.text.replace("\n", f"\n{_INDENT}")
    return f"- [{note.at}] (importance: {note.importance}) {text}"


def _jotting(note: re.Match[str]) -> Jotting:
    return Jotting(note["at"], float(note["importance"]), note["text"].replace(f"\n{_INDENT}", "\n"))


@frozen
class _Piece:
    """A part of a page; between two of them there is nothing but space."""

    kind: Literal["heading", "gone", "note", "remark"]
    start: int
    end: int
    note: Jotting | None = None


def _notes(text: str) -> Iterator[re.Match[str]]:
    return (note for note in _NOTE.finditer(text) if _is_time(note["at"]))


def _is_time(at: str) -> bool:
    """The thirtieth of February is one that a person has typed, and no time of a note."""
    try:
        return bool(datetime.fromisoformat(at))
    except ValueError:
        return False


def _pieces(text: str) -> Iterator[_Piece]:
    end = 0
    for parted in _PARTED.finditer(text):
        yield from _remark(text, end, parted.start())
        end = parted.end()
        if parted["at"] and _is_time(parted["at"]):
            yield _Piece("note", parted.start(), end, _jotting(parted))
        elif parted["at"]:
            yield from _remark(text, parted.start(), end)
        elif parted[0].startswith(HEADING):
            yield _Piece("heading", parted.start(), end)
        elif not parted[0].isspace():
            yield _Piece("gone", parted.start(), end)
    yield from _remark(text, end, len(text))


def _remark(text: str, start: int, end: int) -> Iterator[_Piece]:
    said = text[start:end]
    if stripped := said.strip():
        start += len(said) - len(said.lstrip())
        yield _Piece("remark", start, start + len(stripped))


def _apart(one: _Piece, other: _Piece, text: str) -> str:
    """What stands between two pieces that have become neighbours, so that they are two: they keep their indents, but
    for one by which a remark would belong to the line with a time above it."""
    indent = text[text.rfind("\n", 0, other.start) + 1 : other.start]
    if not indent and one.kind != "heading" and text.startswith(("- ", "* ", "+ "), other.start):
        return "\n"
    return "\n\n" + (" " if indent and _NOTE.match(text, one.start) else indent)


def _places(page: str) -> Callable[[int], int]:
    """Where in a page a place is, which is given for the page with its line ends made one."""
    ends = [end.start() - number for number, end in enumerate(re.finditer("\r\n", page))]
    return lambda place: place + bisect_left(ends, place)


def _beginnings(page: str) -> Iterator[int]:
    """Where lines begin that may begin a note, the last first, and the page itself, whatever that begins with."""
    end = len(page)
    while (end := page.rfind("\n- ", 0, end)) >= 0:
        yield end + 1
    yield 0


def _without_the_oldest(text: str, *, room: int) -> str:
    """The page in so much room, if its notes are what takes it. More leaves than has to, not to do this every time."""
    gone = sum(int(said[1]) for said in _GONE.finditer(text))
    text = _GONE.sub("", text)
    notes = list(_notes(text))
    sizes = [_size(note[0]) + 1 for note in notes]
    leaving = {number for number, size in enumerate(sizes) if size > room}
    over = _size(text) - room - sum(sizes[number] for number in leaving)
    for number, size in enumerate(sizes):
        if over > 0 and number not in leaving:
            leaving.add(number)
            over -= size
    kept, end = list[str](), 0
    for number in sorted(leaving):
        kept.append(text[end : notes[number].start()])
        end = notes[number].end() + 1
    kept.insert(1, f"[in deep memory alone: {counted(gone + len(leaving), 'note')}]\n")
    return "".join([*kept, text[end:]])


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
