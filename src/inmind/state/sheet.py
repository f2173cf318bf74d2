"""MEMORY.md while a dream rewrites it: all seven sections in their order, and around them what people wrote.

The one thing here that changes. Lines come and go by their words, and whatever nobody names stays where it stood.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from inmind.journal import StateLine
from inmind.state.page import TITLE, Block, Page, Part, blocks_of, level_of, parts_of, read, said
from inmind.state.sections import Section
from inmind.state.seed import FOLLOWS, with_dreams_below


class Sheet:
    def __init__(self, text: str, lines: Mapping[str, StateLine]) -> None:
        page = read(text)
        standing = {entry for _, entry in page.everything()}
        self.lines = {line: made for line, made in lines.items() if line in standing}
        """Those that dreams wrote, of all that stands here."""
        self.untouched = not (page.title or page.header or self.lines)
        """No dream has written here yet: what stands here is not to be changed."""
        if self.untouched:
            page = Page(above=text)
        self._above = page.above
        self._places = _arranged(page.parts)
        self._where: dict[str, Section | None] = {}
        self._index()

    def __contains__(self, text: object) -> bool:
        return text in self._where

    def __iter__(self) -> Iterator[str]:
        return iter(self._where)

    def section_of(self, text: str) -> Section | None:
        """Where it stands; None for what stands under no heading of ours."""
        return self._where.get(text)

    @property
    def theirs(self) -> list[str]:
        """What people wrote, in the order of the page."""
        return [text for text in self._where if text not in self.lines]

    def entries(self, section: Section) -> list[str]:
        return [text for text, where in self._where.items() if where is section]

    def pointers(self) -> list[str]:
        """Lines of ours under Crystal Pointers, the oldest first."""
        return [text for text, line in self.lines.items() if line.section == Section.POINTERS and text in self]

    def write(self, line: StateLine, *, instead_of: Iterable[str] = ()) -> None:
        """A line of ours: in the place of the first of these that is in its section, or at the end of that."""
        section, gone = Section(line.section), {*instead_of, line.text}
        entries = self._place(section).entries
        at = next((n for n, (text, _) in enumerate(entries) if text in gone), len(entries))
        for text in gone:
            self.strike(text)
        self._place(section).entries.insert(at, (line.text, f"- {line.text}"))
        self.lines[line.text] = line
        self._where[line.text] = section

    def attach(self, section: Section, entry: str) -> None:
        """Somebody's entry, as it stood."""
        self._place(section).entries.append((said(entry), entry))
        self._where[said(entry)] = section

    def strike(self, text: str) -> None:
        """It stands here no more, however often it did."""
        if text not in self:
            return
        for place in self._places:
            place.entries = [entry for entry in place.entries if entry[0] != text]
        if text.partition("\n")[0] in self._above:
            self._above = without(self._above, text)
        self.lines.pop(text, None)
        self._where.pop(text, None)

    def page(self, header: str) -> Page:
        above = with_dreams_below(self._above) if self.untouched else self._above
        parts = (Part(place.heading, tuple(raw for _, raw in place.entries)) for place in self._places)
        return Page(above=above, title=TITLE, header=header, parts=tuple(parts))

    def _place(self, section: Section) -> _Place:
        return next(place for place in self._places if place.section is section)

    def _index(self) -> None:
        above = (text for part in parts_of(self._above) for text in part.said)
        self._where = dict.fromkeys(above)
        for place in self._places:
            self._where |= {text: place.section for text, _ in place.entries if text}


class _Place:
    def __init__(self, part: Part) -> None:
        self.heading, self.section = part.heading, part.section
        self.entries = [(said(entry), entry) for entry in part.entries]


def _arranged(parts: Iterable[Part]) -> list[_Place]:
    """Our sections in their order, each once, and people's headings behind whichever they stood behind."""
    groups: dict[Section | None, list[_Place]] = {None: [], **{section: [] for section in Section}}
    behind: Section | None = None
    for part in parts:
        place = _Place(part)
        behind = part.section or behind
        if part.section and groups[behind]:
            groups[behind][0].entries += place.entries
        else:
            groups[behind].append(place)
    for section in Section:
        groups[section] = groups[section] or [_Place(Part(f"## {section}"))]
    return [place for group in groups.values() for place in group]


def without(above: str, text: str) -> str:
    """People's text without one entry, without the headings that had nothing else to stand over, and at last without
    the line that parts it from the state."""
    lines = above.split("\n")
    blocks = list(blocks_of(lines))
    gone = [block for block in blocks if block.what != "heading" and _says(lines, block) == text]
    if not gone:
        return above
    gone += _bared(lines, blocks, gone)
    kept = [lines[block.begin] for block in blocks if block not in gone]
    if all(line in ("---", FOLLOWS) for line in kept):
        return ""
    for block in sorted(gone, reverse=True):
        end = block.end
        apart = block.begin == 0 or not lines[block.begin - 1].strip()
        while apart and end < len(lines) - 1 and not lines[end].strip():
            end += 1
        del lines[block.begin : end]
    return "\n".join(lines)


def _bared(lines: Sequence[str], blocks: Iterable[Block], gone: Collection[Block]) -> list[Block]:
    """Headings that stood over something which is gone, and over nothing else that says anything."""
    over: list[tuple[Block, list[Block]]] = []
    path: list[tuple[Block, list[Block]]] = []
    for block in blocks:
        if block.what == "heading":
            level = level_of(lines[block.begin])
            path = [(heading, below) for heading, below in path if level_of(lines[heading.begin]) < level]
            path.append((block, []))
            over.append(path[-1])
        else:
            for _, below in path:
                below.append(block)
    return [
        heading
        for heading, below in over
        if any(block in gone for block in below)
        and not any(_says(lines, block) for block in below if block not in gone)
    ]


def _says(lines: Sequence[str], block: Block) -> str:
    return said("\n".join(line.rstrip("\r") for line in lines[block.begin : block.end]))
