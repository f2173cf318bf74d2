"""Builders of dream material. Each takes only the values that a test is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any

from inmind.core.events.base import Origin, Trust
from inmind.core.events.dreams import PageLine
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.affect import Levels
from inmind.dreams.material import DreamMaterial, LineSource
from inmind.dreams.page.draft import RewriteContext
from inmind.dreams.page.edits import Proposal
from inmind.dreams.page.page import Section, parse_page
from inmind.dreams.page.rewrite import RewriteResult, rewrite_page
from inmind.search.crystal import Crystal

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)

_NUMBERS = count(1)


def a_note(text: str, importance: float = 0.7, **more: Any) -> LineSource:
    fields: dict[str, Any] = {"ids": (f"resource/ada#{next(_NUMBERS)}",), "at": "2026-03-19T10:00:00Z", **more}
    return LineSource(text=text, importance=importance, **fields)


def a_user_crystal(text: str, **more: Any) -> Crystal:
    """The crystal of a user message."""
    defaults = {
        "kind": "episode",
        "source": "sessions",
        "origin": Origin.USER,
        "trust": Trust.PERSON,
        "speaker": "user",
    }
    fields: dict[str, Any] = {"id": f"session/s#{next(_NUMBERS)}", "at": NOW, **defaults, **more}
    return Crystal(text=text, **fields)


def a_crystal(text: str, **more: Any) -> Crystal:
    fields: dict[str, Any] = {
        "id": f"resource/ada#{next(_NUMBERS)}",
        "at": NOW,
        "importance": 0.6,
        "origin": Origin.OPERATOR,
    }
    fields |= more
    return Crystal(text=text, **fields)


def an_insight(text: str, *sources: str, **more: Any) -> LineSource:
    fields: dict[str, Any] = {"importance": 0.5, "kind": "insight", "at": NOW.isoformat(), "key": text, **more}
    return LineSource(ids=sources, text=text, **fields)


def a_line(text: str, section: Section = Section.ACTIVE, **more: Any) -> PageLine:
    fields: dict[str, Any] = {"sources": (f"resource/ada#{next(_NUMBERS)}",), "at": "2026-03-01T10:00:00Z", **more}
    return PageLine(section, text, **fields)


def a_page(lines: Iterable[PageLine] = (), *, theirs: Mapping[Section, str] | None = None, above: str = "") -> str:
    """MEMORY.md with these lines of dreams and of users."""
    text = f"{above}# Working Memory State\n\n_Last dream: 2026-03-18T10:00:00Z | Mood: calm_\n"
    for section in Section:
        entries = [line.text for line in lines if line.section == section]
        entries += [(theirs or {})[section]] if section in (theirs or {}) else []
        text += f"\n## {section}\n" + "".join(f"\n- {entry}" for entry in entries) + "\n"
    return text


def a_material(lines: Iterable[PageLine] = (), *, page: str | None = None, **more: Any) -> DreamMaterial:
    lines = list(lines)
    crystals: tuple[Crystal, ...] = more.get("crystals", ())
    known = {crystal.id: crystal for crystal in crystals}
    fields: dict[str, Any] = {"levels": Levels(), "search": _find_nothing, "get_crystal": known.get, **more}
    return DreamMaterial(
        now=NOW,
        page=parse_page(a_page(lines) if page is None else page),
        dream_lines={line.text: line for line in lines},
        **fields,
    )


def _find_nothing(_: str) -> frozenset[str]:
    return frozenset()


def apply_proposal(proposal: Proposal, material: DreamMaterial, page: str) -> RewriteResult:
    """Apply a proposal to the page."""
    texts = {note.ids[0]: note.text for note in material.notes} | {one.id: one.text for one in material.crystals}
    texts |= {source: line.text for line in material.dream_lines.values() for source in line.sources}
    trusts = {note.ids[0]: note.trust for note in material.notes} | {one.id: one.trust for one in material.crystals}
    return rewrite_page(
        page,
        proposal.edits,
        RewriteContext(
            now=NOW,
            dream_lines=material.dream_lines,
            user_lines={},
            adopted_entries=material.adopted,
            weights={},
            search=material.search,
            source_text=lambda id: texts.get(id, ""),
            source_trust=lambda id: trusts.get(id, Trust.AGENT),
        ),
    )


def days_ago(days: int) -> str:
    return format_timestamp(NOW.replace(day=NOW.day - days))
