"""The edits that a dream may apply to MEMORY.md: add, rewrite and retire a line.

Rules and models propose the same edits. They name lines by their text, so a proposal can be applied to a page that was
edited since: either the line is still there, or the edit is refused.
"""

from __future__ import annotations

from inmind.core.events.base import Trust
from inmind.core.events.dreams import ProposedEdit
from inmind.core.frozen import frozen
from inmind.dreams.page.sections import Section


@frozen(kw_only=True)
class Add:
    """Add a new line."""

    section: Section
    text: str
    sources: tuple[str, ...]
    importance: float = 0.5
    kind: str = "general"
    at: str = ""
    trust: Trust = Trust.AGENT


@frozen(kw_only=True)
class Rewrite:
    """Replace lines with one: a better wording, a merge of several, or another section."""

    lines: tuple[str, ...]
    """Their text on the page, without list marks."""
    section: Section
    text: str
    sources: tuple[str, ...] = ()
    """Sources in addition to those of the lines."""
    importance: float = 0.0
    """Minimum importance. It is never lower than that of the lines."""
    at: str = ""


@frozen(kw_only=True)
class Retire:
    """Remove a line from the page and put a pointer in its place.

    Expired gaps, refreshed skills or figures, and pointers whose topic is on the page again need no pointer: nothing is
    lost with them.
    """

    line: str
    topic: str = ""
    keywords: str = ""
    """Keywords that find the sources of the line; with a topic they become a pointer."""


Edit = Add | Rewrite | Retire


@frozen(kw_only=True)
class Proposal:
    """The proposed edits, their proposer and their cost."""

    edits: tuple[Edit, ...]
    by: str = "rules"
    fell_back: str = ""
    """Why rules proposed this instead of the model."""
    refused: tuple[str, ...] = ()
    """Edits of the model that were not accepted, each with the reason."""
    tokens: tuple[int, int] = (0, 0)
    price: float = 0.0


def edit_to_row(edit: Edit) -> ProposedEdit:
    """An edit as the journal stores it."""
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
    """The edit of a stored row. Raises ValueError for an invalid one."""
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
            raise ValueError(f"{row.op[:50]!r} is not an edit")
