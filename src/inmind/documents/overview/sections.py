"""Sections of a Markdown page, and the lines that memory generates in them.

A model that rewrites a whole page to change one line loses other lines, so tools accept a section name. A section is a
heading and everything up to the next heading of the same or a higher level. Fenced or commented text and front matter
contain no headings. People number headings, make them bold or add an emoji; a heading is matched without those, unless
another heading matches exactly.

Memory must find its own lines again, to move, count and remove them, and must touch nothing else. So they end in a
mark:

    - wrote src/session.py ·

A dot costs one token, while a comment would cost five in every request, and it has no meaning in Markdown. The mark is
no proof: a model that sees such lines writes similar ones. A line is moved or removed only if it has the mark and
memory knows that it entered this text. Text added after the dot, or a lost dot, makes the line the writer's own; a
text that another writer has already written is not entered again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from inmind.core.text import escape_markup, shorten
from inmind.documents.overview.front_matter import BOM, line_ending, split_front_matter

EditLines = Callable[[Sequence[str]], Sequence[str] | None]

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(.*)", re.DOTALL)
_CLOSING = re.compile(r"(?:\A|(?<=[ \t]))#++\Z")
_FENCE = re.compile(r" {0,3}(?:(```+)([^`]*)|(~~~+)(.*))")
_COMMENT = re.compile(r" {0,3}<!--")
_DECORATION = re.compile(r"\A[\W\d_]+|[\W_]+\Z")


def read_section(text: str, heading: str) -> str:
    """Return the text under a heading; empty if the heading is not found."""
    page = split_front_matter(text)[1]
    lines = page.split(line_ending(page))
    place = _section_span(lines, heading, nested=True)
    return "\n".join(lines[place[0] : place[1]]).strip("\n") if place else ""


def replace_section(text: str, heading: str, body: str) -> str:
    """Return the page with this body under the heading; a missing heading is added at the end.

    Models repeat the heading at the start of the body; it is removed.
    """
    lines = body.replace("\r\n", "\n").strip("\n").split("\n")
    if _HEADING.match(lines[0]) and _heading_key(lines[0]) == _heading_key(heading):
        lines = "\n".join(lines[1:]).strip("\n").split("\n")
    written = ["", *lines, ""] if lines != [""] else [""]
    return edit_section_lines(text, [heading], lambda _: written, nested=True)


def edit_section_lines(
    text: str, headings: Sequence[str], edit: EditLines, *, on_top: bool = False, nested: bool = False
) -> str:
    """Return the page with the lines between a heading and the next one edited.

    `nested`: the subsections of the heading are edited with it. Uses the first of `headings` that the page has. If it
    has none, the first is added at the end, or before all sections (`on_top`), unless there are no lines. `edit`
    returns None to remove the section.
    """
    head, page = split_front_matter(text)
    end = line_ending(page if "\n" in page else head)
    lines = page.split(end)
    spans = (_section_span(lines, heading, nested=nested) for heading in headings)
    if span := next(filter(None, spans), None):
        start, stop = span
        changed = edit(lines[start:stop])
        kept = lines[: start - 1] if changed is None else [*lines[:start], *changed]
        return head + end.join([*kept, *lines[stop:]])
    changed = edit([])
    if not changed:
        return text
    if head.strip(BOM) and not head.endswith("\n"):
        head += end
    section = [f"## {_heading_text(headings[0])}", *changed]
    first = next((line for line, level, _ in find_headings(lines) if level == 2), None) if on_top else None
    if first is not None:
        return head + end.join([*lines[:first], *section, *lines[first:]])
    above = page.rstrip(end)
    return head + end.join([*([above, ""] if above else []), *section])


def text_lines(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield number and text of lines that are neither fenced nor commented out.

    A fence is closed by one of its kind that is at least as long, with nothing after it. An unclosed fence or comment
    hides nothing, otherwise everything appended later would be invisible.
    """
    place = 0
    never_closed: dict[str, int] = {}
    while place < len(lines):
        kind, length = _opening(lines[place])
        if kind and length < never_closed.get(kind, length + 1):
            if kind == "<":
                closing = next((n for n in range(place, len(lines)) if "-->" in lines[n]), None)
            else:
                closes = re.compile(rf" {{0,3}}{kind}{{{length},}}\s*")
                closing = next((n for n in range(place + 1, len(lines)) if closes.fullmatch(lines[n])), None)
            if closing is not None:
                place = closing + 1
                continue
            never_closed[kind] = length
        yield place, lines[place]
        place += 1


def find_headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Yield line number, level and text of each heading."""
    for number, line in text_lines(lines):
        if match := _HEADING.match(line):
            yield number, len(match[1]), _heading_text(line)


def _opening(line: str) -> tuple[str, int]:
    """Return kind and length of the comment or fence that a line opens; ("", 0) if none."""
    if _COMMENT.match(line):
        return "<", 0
    if match := _FENCE.fullmatch(line):
        marks = match[1] or match[3]
        return marks[0], len(marks)
    return "", 0


def _section_span(lines: Sequence[str], heading: str, *, nested: bool) -> tuple[int, int] | None:
    """Line range under a heading, up to the next one; `nested`: with its subsections."""
    headings = list(find_headings(lines))
    number = _find_heading(headings, heading)
    if number is None:
        return None
    line, level, _ = headings[number]
    ends = (at for at, other, _ in headings[number + 1 :] if other <= level or not nested)
    return line + 1, next(ends, len(lines))


def _find_heading(headings: Sequence[tuple[int, int, str]], heading: str) -> int | None:
    key = _heading_key(heading)
    titles = [words.casefold() for _, _, words in headings]
    spellings = (titles, [_DECORATION.sub("", title) for title in titles])
    return next((spelling.index(key) for spelling in spellings if key in spelling), None)


def _heading_text(heading: str) -> str:
    """Return the words of a heading, given with or without its # marks."""
    match = _HEADING.match(heading.strip())
    return " ".join((_CLOSING.sub("", match[2].rstrip()) if match else heading).split())


def _heading_key(heading: str) -> str:
    return _heading_text(heading).casefold()


MARK = "·"
MAX_LINE_CHARACTERS = 180

IsKnown = Callable[[str], bool]
"""True for a line that memory entered."""

_BULLET = re.compile(r"\A\s*(?:(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?)?")
_WORD = re.compile(r"[^\W_]")
# Starts a heading or a fence at the start of a line, also in a list.
_BLOCK_START = re.compile(r"#|```|~~~")
_COMMENT_ESCAPES = {"<!--": "&lt;!--", "-->": "--&gt;"}


def generated_line(text: str, *, max_characters: int = MAX_LINE_CHARACTERS) -> str:
    """Return a marked list item on one line.

    No heading, comment or fence begins or ends in it.
    """
    line = escape_markup(" ".join(text.split())).rstrip(f" {MARK}")
    for mark, escaped in _COMMENT_ESCAPES.items():
        line = line.replace(mark, escaped)
    line = _BLOCK_START.sub(r"\\\g<0>", line, count=1) if _BLOCK_START.match(line) else line
    return f"- {shorten(line, max_characters)} {MARK}"


def is_generated(line: str) -> bool:
    """True if the line has the form of a generated line."""
    line = line.strip()
    return line.startswith(("- ", "* ", "+ ")) and line.endswith(f" {MARK}")


def line_text(line: str) -> str:
    """Return the text of a line without bullet and mark."""
    text = _BULLET.sub("", line, count=1).strip()
    return text.removesuffix(MARK).rstrip() if is_generated(line) else text


def has_no_words(line: str) -> bool:
    """True for rules, empty bullets and blank lines."""
    return _WORD.search(line_text(line)) is None


@lru_cache(maxsize=1_024)
def comparison_key(line: str) -> str:
    """Return a key that is equal for lines with the same words.

    It is cached, since pages are compared often.
    """
    return " ".join(line_text(line).split()).casefold()


def split_generated(lines: Sequence[str], is_known: IsKnown) -> tuple[list[str], list[str]]:
    """Split lines into known generated ones and all others, in order.

    Fenced or commented lines are others.
    """
    own = {number for number, line in text_lines(lines) if is_generated(line) and is_known(line)}
    return (
        [line.strip() for number, line in enumerate(lines) if number in own],
        [line for number, line in enumerate(lines) if number not in own],
    )


def insert_generated(others: Sequence[str], generated: Sequence[str]) -> list[str]:
    """Insert generated lines at the top of a section, after its template comment."""
    top = _end_of_guide_comment(others)
    # Markdown reads a paragraph right below a list as part of its last item.
    separator = [""] if generated and others[top:] and _is_paragraph(others[top]) else []
    return [*others[:top], *generated, *separator, *(others[top:] or ([""] if generated else []))]


def _end_of_guide_comment(lines: Sequence[str]) -> int:
    top = place = 0
    while place < len(lines):
        if lines[place].lstrip().startswith("<!--"):
            place = next((n for n in range(place, len(lines)) if "-->" in lines[n]), len(lines))
            if place == len(lines):
                break
            top = place + 1
        elif lines[place].strip():
            break
        place += 1
    return top


def _is_paragraph(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(("- ", "* ", "+ ", "#"))
