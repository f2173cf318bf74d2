"""The edits that a dream may apply to MEMORY.md: add, rewrite and retire a line.

Rules and models propose the same edits. They name lines by their text, so a proposal can be applied to a page that was
edited since: either the line is still there, or the edit is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from inmind.core.encoding import decode
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


_EDITS: Mapping[str, type[Edit]] = {"add": Add, "rewrite": Rewrite, "retire": Retire}


def edit_to_row(edit: Edit) -> ProposedEdit:
    """An edit as the journal stores it."""
    op = next(name for name, kind in _EDITS.items() if isinstance(edit, kind))
    values = {one.name: getattr(edit, one.name) for one in fields(edit)}
    if isinstance(edit, Retire):
        values["lines"] = (values.pop("line"),)
    return ProposedEdit(op=op, **values)


def edit_from_row(row: ProposedEdit) -> Edit:
    """The edit of a stored row. Raises ValueError for an invalid one."""
    if row.op not in _EDITS:
        raise ValueError(f"{row.op[:50]!r} is not an edit")
    if row.op == "retire":
        (line,) = row.lines
        return Retire(line=line, topic=row.topic, keywords=row.keywords)
    kind = _EDITS[row.op]
    return decode(kind, {one.name: getattr(row, one.name) for one in fields(kind)})
