"""The reference of public names, generated from their docstrings.

PAGES says which names each page has. A public name without a page, or without a docstring, fails the tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from docs.building.entry import code, declaration, entry, field_line, prose
from docs.building.source import HOST_OBJECTS, docstring_of, fields_of, members_of, module, names_of, public

ASYNC = "inmind.memory.aio"

PUBLIC = ("inmind", "inmind.layers", "inmind.types")
"""The modules whose names the reference has. A name of several is documented under the first."""


class Page(NamedTuple):
    title: str
    about: str
    names: tuple[str, ...] = ()
    """Names of the modules in PUBLIC."""
    module: str = ""
    """A module whose public names follow, under their own heading."""


PAGES: Mapping[str, Page] = {
    "memory": Page(
        "Memory and resources",
        "An open memory, and its resources.",
        (
            *("Memory", "Resource", "SessionInfo", "Page", "ResourceState", "SessionState", "Event", "Settings"),
            *("Exported", "Imported", "Clock"),
        ),
    ),
    "session": Page(
        "Session",
        "One conversation and its working memory.",
        ("Session", "Scratchpad", "SetAside", "MergeReport", "MergeConflict", "Origin", "Trust"),
    ),
    "prompt": Page(
        "Prompt types",
        "The prompt, the recorded reply, and their cost.",
        (
            *("Prompt", "PromptPreview", "Report", "Explanation", "Usage", "Rates", "Recorded", "HostCall"),
            *("ToolResult", "Wire", "Counter", "wrap"),
        ),
    ),
    "layers": Page(
        "Layers",
        "Parts of memory that take a place in the prompt.",
        (
            *("Layer", "PlainLayer", "TextLayer", "DocumentLayer", "ScratchpadLayer", "EntityLayer", "NotesLayer"),
            *("StateLayer", "default_layers", "Slot", "Budget", "LayerContext", "LayerText", "Draft"),
            "DocumentWritten",
        ),
    ),
    "entities": Page(
        "Entities",
        "Things that the conversation refers to.",
        ("Entities", "Entity", "EntityPart", "EntityRules", "ToolObserved", "Resolution", "CallCheck"),
    ),
    "compaction": Page(
        "Compaction",
        "Messages that leave a long conversation, and items that are kept.",
        ("CompressionPolicy", "CompactionReport", "KeptItem", "CompactionUndoReport", "RetainedItem", "Summarizer"),
    ),
    "deep-memory": Page(
        "Notes, hits, crystals",
        "Search results, and the embedders.",
        ("Note", "Hit", "Crystal", "Consolidation", "Embedder"),
        "inmind.search.embedders",
    ),
    "dreams": Page(
        "Dreams, affect, economics",
        "Updates of MEMORY.md, affect levels, income and spending.",
        ("Dream", "Upkeep", "Affect", "Levels", "Economics", "CurrencyTotals", "Model"),
        "inmind.dreams.models",
    ),
    "async": Page(
        "Async",
        "The same names, awaited.",
        ("AsyncMemory", "AsyncResource", "AsyncSession", "AsyncScratchpad", "AsyncAffect", "AsyncEconomics"),
    ),
    "errors": Page("Error classes", "Every error with its code.", ("InmindError",), "inmind.errors"),
    "settings": Page("Settings", "The settings of a home or a database.", (), "inmind.core.settings"),
    "testing": Page("Testing", "For the tests of hosts.", (), "inmind.testing"),
}


def names_page(page: Page) -> str:
    parts = [f"# {page.title}", page.about if page.names else prose(docstring_of(module(page.module)))]
    parts += [entry(public(path), path) for path in map(public_path, page.names)]
    if page.module and page.names:
        parts += [f"# `{page.module}`", prose(docstring_of(module(page.module)))]
    for name in names_of(page.module) if page.module else ():
        if name not in page.names:
            parts.append(entry(public(f"{page.module}.{name}"), f"{page.module}.{name}"))
    return "\n\n".join(part for part in parts if part) + "\n"


def async_page() -> str:
    """The async classes: common names, the sync class of each, and which names are awaited."""
    wrapper = public(f"{ASYNC}.wrapper.AsyncWrapper")
    parts = ["# Async", prose(docstring_of(module(ASYNC))), "## Every async class"]
    parts += [field_line(name, field) for name, field in fields_of(wrapper)]
    for name, member in members_of(wrapper):
        parts += [f"### `await {name}(…)`", code(declaration(member, name)), prose(docstring_of(member))]
    for name in PAGES["async"].names:
        sync = name.removeprefix("Async")
        parts += [f"## `{name}`", f"As [`{sync}`]({page_of(sync)}.md#{sync.lower()}), awaited."]
        parts.append("\n".join(f"- `{call}`" for call in _calls(public(public_path(name)))))
    return "\n\n".join(parts) + "\n"


def undocumented() -> list[str]:
    """Public names, and members of the objects that hosts hold, without a docstring."""
    listed = [public_path(name) for page in PAGES.values() for name in page.names]
    listed += [f"{page.module}.{name}" for page in PAGES.values() if page.module for name in names_of(page.module)]
    missing = [path for path in listed if not public(path).docstring]
    members = [
        (holder, name, member) for holder in HOST_OBJECTS for name, member in members_of(public(public_path(holder)))
    ]
    return missing + [f"{holder}.{name}" for holder, name, member in members if not docstring_of(member)]


def page_of(name: str) -> str:
    return next(file for file, page in PAGES.items() if name in page.names)


def public_path(name: str) -> str:
    """The name with the public module that it is imported from."""
    return next(f"{path}.{name}" for path in PUBLIC if name in names_of(path))


def _calls(node: Any) -> Iterator[str]:
    for name, member in node.members.items():
        if name.startswith("_"):
            continue
        reads_store = member.is_attribute and str(member.value).startswith("awaited_property(")
        immediate = "property" in member.labels
        if node.name == "AsyncMemory" and name == "resource":
            yield f"{name}(…)"
        else:
            yield name if immediate else f"await {name}" if reads_store else f"await {name}(…)"
