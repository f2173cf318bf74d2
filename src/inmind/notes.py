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
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice

from inmind.frozen import frozen
from inmind.journal import NoteTaken
from inmind.text import Cut, counted, cut
from inmind.tokens import Counter

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
_BLOCK_END = re.compile(r"\n[ \t]*\n|\n(?=[-*+] )")
_BLANKS = re.compile(r"\n{3,}")
_GONE = re.compile(r"^\[in deep memory alone: (\d+) notes?\]\n", re.MULTILINE)


@frozen
class Jotting:
    """A note as a page has it."""

    at: str
    importance: float
    text: str


def with_note(page: str, note: NoteTaken, at: datetime, *, most: int) -> str:
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
    return [_jotting(note) for note in _NOTE.finditer(_LINE_END.sub("\n", page))]


def remarks_in(page: str) -> list[str]:
    """What people wrote between the notes: each a paragraph, or a line of a list."""
    rest = _GONE.sub("", _NOTE.sub("\n\n", _LINE_END.sub("\n", page))).replace(HEADING, "", 1)
    blocks = _BLOCK_END.split(rest)
    return [said for block in blocks if (said := block.strip())]


def without(page: str, notes: Iterable[Jotting], remarks: Iterable[str]) -> str:
    """The page without these, each once; whatever came to it since stays."""
    text, leaving, said = _LINE_END.sub("\n", page), Tally(notes), Tally(remarks)
    kept, end = list[str](), 0
    for note in _NOTE.finditer(text):
        kept.append(_without_remarks(text[end : note.start()], said))
        end = note.end()
        leaving[jotting := _jotting(note)] -= 1
        kept += [note[0]] if leaving[jotting] < 0 else []
    kept.append(_without_remarks(text[end:], said))
    body = _BLANKS.sub("\n\n", "".join(kept).replace(HEADING, "", 1)).strip("\n")
    return f"{HEADING}\n\n{body}\n" if body else f"{HEADING}\n"


def with_notes_first(page: str, notes: Iterable[Jotting]) -> str:
    """The page with notes that come back to it, in front of those that are there."""
    body = without_heading(page)
    lines = [*map(_line, notes), *([body] if body else [])]
    return f"{HEADING}\n\n" + "".join(f"{line}\n" for line in lines)


def jotted(note: NoteTaken, at: datetime) -> Jotting:
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


def _without_remarks(between: str, leaving: Tally[str]) -> str:
    text = _GONE.sub("", between)
    for remark in [remark for remark, times in leaving.items() if times > 0 and remark in text]:
        leaving[remark] -= 1
        text = text.replace(remark, "", 1)
    return text


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
    notes = list(_NOTE.finditer(text))
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
