"""What a dream may do to MEMORY.md: add a line, say lines anew, retire a line.

Rules and models propose the same few edits, and both name the lines that they mean by their words. So a proposal can be
carried out on a page that somebody has written to meanwhile: what an edit means is still there, or the edit is refused.
"""

from __future__ import annotations

from inmind.core.events.base import Trust
from inmind.core.events.dreams import ProposedEdit
from inmind.core.frozen import frozen
from inmind.dreams.page.sections import Section


@frozen(kw_only=True)
class Add:
    """A line that is not there yet."""

    section: Section
    text: str
    sources: tuple[str, ...]
    importance: float = 0.5
    kind: str = "general"
    at: str = ""
    trust: Trust = Trust.AGENT


@frozen(kw_only=True)
class Rewrite:
    """One line in the place of some: a better word for one, one for several that say the same, or another section."""

    lines: tuple[str, ...]
    """As they stand on the page, without the marks of their list."""
    section: Section
    text: str
    sources: tuple[str, ...] = ()
    """Beside those of the lines."""
    importance: float = 0.0
    """At least; never less than any of the lines had."""
    at: str = ""


@frozen(kw_only=True)
class Retire:
    """A line that leaves the page: for a pointer, or, where nothing is lost with it, for nothing.

    Nothing is lost with a gap that is over, with a skill or a figure that is told anew, and with a pointer whose topic
    is back.
    """

    line: str
    topic: str = ""
    keywords: str = ""
    """What finds again what the line was made of; with a topic, they become a pointer."""


Edit = Add | Rewrite | Retire


@frozen(kw_only=True)
class Proposal:
    """What shall become of the page."""

    edits: tuple[Edit, ...]
    by: str = "rules"
    fell_back: str = ""
    """Why rules propose this and not the model that was asked."""
    refused: tuple[str, ...] = ()
    """What a model proposed and was not taken, each with the reason."""
    tokens: tuple[int, int] = (0, 0)
    price: float = 0.0


def edit_to_row(edit: Edit) -> ProposedEdit:
    """An edit as the journal has it."""
    match edit:
        case Add():
            return ProposedEdit(
                op="add",
                section=str(edit.section),
                text=edit.text,
                sources=edit.sources,
                importance=edit.importance,
                kind=edit.kind,
                at=edit.at,
                trust=int(edit.trust),
            )
        case Rewrite():
            return ProposedEdit(
                op="rewrite",
                lines=edit.lines,
                section=str(edit.section),
                text=edit.text,
                sources=edit.sources,
                importance=edit.importance,
                at=edit.at,
            )
        case Retire():
            return ProposedEdit(op="retire", lines=(edit.line,), topic=edit.topic, keywords=edit.keywords)


def edit_from_row(row: ProposedEdit) -> Edit:
    """The edit that it was; ValueError where it never was one."""
    match row.op:
        case "add":
            return Add(
                section=Section(row.section),
                text=row.text,
                sources=row.sources,
                importance=row.importance,
                kind=row.kind,
                at=row.at,
                trust=Trust(row.trust),
            )
        case "rewrite":
            return Rewrite(
                lines=row.lines,
                section=Section(row.section),
                text=row.text,
                sources=row.sources,
                importance=row.importance,
                at=row.at,
            )
        case "retire":
            (line,) = row.lines
            return Retire(line=line, topic=row.topic, keywords=row.keywords)
        case _:
            raise ValueError(f"{row.op[:50]!r} is no edit")
