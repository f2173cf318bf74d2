"""The reference of names, in the words of their docstrings.

What a page is about, and which names it has, stands in PAGES: a public name without a place there, or without a
docstring, fails the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from docs.building.entry import code, declared, entry, field_line, prose
from docs.building.source import HELD, fields_of, members_of, module, names_of, public, said_of

TWINS = "inmind.memory.aio"


class Page(NamedTuple):
    title: str
    about: str
    names: tuple[str, ...] = ()
    """Of `inmind`."""
    module: str = ""
    """Whose public names follow, under a heading of its own."""


PAGES: Mapping[str, Page] = {
    "memory": Page(
        "Memory",
        "A home, opened.",
        ("Memory", "SessionInfo", "Page", "Mind", "Event", "Appended", "Settings", "Exported", "Imported"),
    ),
    "session": Page(
        "Session",
        "What a host talks to.",
        ("Session", "Scratchpad", "SetAside", "MergeReport", "Clash", "Origin", "Trust"),
    ),
    "prompt": Page(
        "Prompts",
        "What the model is sent, what came back, what it cost.",
        ("Prompt", "Preview", "Report", "Explanation", "Ledger", "Rates", "Recorded", "HostCall", "Called", "wrap"),
    ),
    "layers": Page(
        "Layers",
        "Kinds of memory that ask for a place in the prompt.",
        (
            *("Layer", "PlainLayer", "TextLayer", "DocumentLayer", "ScratchpadLayer", "EntityLayer", "NotesLayer"),
            *("StateLayer", "default_layers", "Slot", "Budget", "Moment", "Recalled", "Draft", "DocumentWritten"),
        ),
    ),
    "entities": Page(
        "Things",
        "What is being talked about.",
        ("Entities", "Entity", "Part", "EntityRules", "ToolObserved", "Resolution", "CallCheck"),
    ),
    "compaction": Page(
        "Compaction",
        "What leaves a long conversation, and what survives.",
        ("CompressionPolicy", "CompactionReport", "KeptItem", "Lifted", "Item"),
    ),
    "deep-memory": Page(
        "Notes, hits, crystals",
        "What can be found again, and by what.",
        ("Note", "Hit", "Crystal", "Consolidation", "Embedder"),
        "inmind.search.embedders",
    ),
    "dreams": Page(
        "Dreams, moods, books",
        "What becomes of MEMORY.md, how it has been going, what was earned.",
        ("Dream", "Upkeep", "Affect", "Books"),
        "inmind.dreams.models",
    ),
    "errors": Page("Every error", "Every way a call can fail.", ("InmindError",), "inmind.errors"),
    "settings": Page("Settings", "What a home can be told to do otherwise.", (), "inmind.core.settings"),
    "testing": Page("Testing", "For the tests of hosts.", (), "inmind.store.in_memory"),
}


def names_page(page: Page) -> str:
    parts = [f"# {page.title}", page.about if page.names else prose(said_of(module(page.module)))]
    parts += [entry(public(f"inmind.{name}"), f"inmind.{name}") for name in page.names]
    if page.module and page.names:
        parts += [f"# `{page.module}`", prose(said_of(module(page.module)))]
    for name in names_of(page.module) if page.module else ():
        if name not in page.names:
            parts.append(entry(public(f"{page.module}.{name}"), f"{page.module}.{name}"))
    return "\n\n".join(part for part in parts if part) + "\n"


def twins_page() -> str:
    """The async facade: what all twins have, whose twin each class is, and how each of its names is asked for."""
    twin = public(f"{TWINS}.twin.Twin")
    parts = ["# Async", prose(said_of(module(TWINS))), "## Every twin"]
    parts += [field_line(name, field) for name, field in fields_of(twin)]
    for name, member in members_of(twin):
        parts += [f"### `await {name}(…)`", code(declared(member, name)), prose(said_of(member))]
    for name in names_of(TWINS):
        parts += [f"## `{name}`", f"As [`{name}`]({page_of(name)}.md#{name.lower()}), awaited."]
        parts.append("\n".join(f"- `{asked}`" for asked in _asked(public(f"{TWINS}.{name}"))))
    return "\n\n".join(parts) + "\n"


def undocumented() -> list[str]:
    """Public names, and what can be called on the objects that hosts hold, that say nothing about themselves."""
    listed = [f"inmind.{name}" for page in PAGES.values() for name in page.names]
    listed += [f"{page.module}.{name}" for page in PAGES.values() if page.module for name in names_of(page.module)]
    silent = [path for path in listed if not public(path).docstring]
    held = [(holder, name, one) for holder in HELD for name, one in members_of(public(f"inmind.{holder}"))]
    return silent + [f"inmind.{holder}.{name}" for holder, name, one in held if not said_of(one)]


def page_of(name: str) -> str:
    return next(page for page, told in PAGES.items() if name in told.names)


def _asked(twin: Any) -> Iterator[str]:
    for name, member in twin.members.items():
        if name.startswith("_"):
            continue
        looked_up = member.is_attribute and str(member.value).startswith("attribute(")
        known = "property" in member.labels
        yield name if known else f"await {name}" if looked_up else f"await {name}(…)"
