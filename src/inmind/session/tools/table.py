"""The table of memory tools: names, parameters, offering layers, and functions."""

from __future__ import annotations

from typing import get_args

from inmind.core.settings import SOURCES
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH, OVERVIEW_PATH, resolve_path
from inmind.entities.references.result import Verdict
from inmind.history.compaction.select import TARGETS
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.builtin import DocumentLayer, EntityLayer
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, ScratchpadLayer, find_visible_scratchpad
from inmind.search.crystal import KINDS
from inmind.session.tools import actions
from inmind.session.tools.base import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    TEXT,
    TEXTS,
    MemoryTool,
    ToolDeclaration,
    choice,
    declares,
    described,
    list_of,
    object_schema,
    record_schema,
)


def _has_pages(layer: Layer) -> bool:
    return isinstance(layer, DocumentLayer) and resolve_path(layer.path)[0] == "thread"


def _has_notes(layer: Layer) -> bool:
    return isinstance(layer, DocumentLayer) and layer.path == NOTES_PAGE_PATH


def _has_entities(layer: Layer) -> bool:
    return isinstance(layer, EntityLayer)


def _declare_update(layer: Layer) -> ToolDeclaration | None:
    if not isinstance(layer, ScratchpadLayer) or layer.read_only:
        return None
    if layer.schema is not None:
        return ToolDeclaration(
            "Update your scratchpad, shown as working_memory. Send only changes: objects merge, others replace.",
            layer.schema.parameters,
            open=True,
        )
    return ToolDeclaration(
        "Write your scratchpad, shown as working_memory: notes for this task. Replaces the text unless append.",
        object_schema("text", text=TEXT, append=BOOLEAN),
    )


_DATE = described(TEXT, "A date like 2026-01-31, or a time.")
_ENTITY = {"type": TEXT, "id": TEXT, "name": TEXT}
_HIT = {
    **dict.fromkeys("id text at by trust kind source session path".split(), TEXT),
    **{"score": NUMBER, "before": TEXT, "after": TEXT},
}

TOOLS: tuple[MemoryTool, ...] = (
    MemoryTool(
        name="working-memory/update",
        legacy_name="updateWorkingMemory",
        title="Update the scratchpad",
        run=actions.update_scratchpad,
        offered_by=lambda layer: isinstance(layer, ScratchpadLayer),
        declare=_declare_update,
        output=record_schema(changed=BOOLEAN),
        scope=lambda layer, _: layer.scope,  # the layer of an anonymous session already has thread scope
        overwrites=True,
        shows_pages=True,
    ),
    MemoryTool(
        name="working_memory_note",
        title="Save a note",
        run=actions.add_note,
        offered_by=_has_notes,
        declare=declares(
            "Save a fact, preference, decision or deadline for later conversations. Importance is 0 to 1.",
            "note",
            note=TEXT,
            importance=NUMBER,
        ),
        output=record_schema(id=TEXT, at=TEXT),
        scope=actions.notes_scope,
    ),
    MemoryTool(
        name="memory_search",
        title="Search memory",
        run=actions.search_memory,
        offered_by=_has_notes,
        declare=declares(
            "Search messages, notes and results of this and earlier sessions. Dates: 2026-01-31.",
            "query",
            query=TEXT,
            limit=described(INTEGER, "Default: 10."),
            kinds=list_of(choice(KINDS)),
            sources=list_of(choice(SOURCES)),
            since=_DATE,
            until=_DATE,
            session=TEXT,
            as_of=described(TEXT, "Only what was known and valid on this date."),
        ),
        output=record_schema(hits=list_of(record_schema(**_HIT))),
        read_only=True,
    ),
    MemoryTool(
        name="memory_read",
        title="Read a page of memory",
        run=actions.read_page,
        offered_by=lambda layer: _has_pages(layer) or find_visible_scratchpad([layer]) is not None,
        declare=declares(
            f"Read {OVERVIEW_PATH}, detail/<name>, archive/<name>, {NOTES_PAGE_PATH} or {SCRATCHPAD_PATH}.",
            "path",
            path=described(TEXT, f"Also {MEMORY_PAGE_PATH}: what is known about the user."),
            from_line=INTEGER,
            to_line=INTEGER,
        ),
        output=record_schema(path=TEXT, text=TEXT, from_line=INTEGER, to_line=INTEGER, lines=INTEGER),
        read_only=True,
        shows_pages=True,
        uses_pages=True,
    ),
    MemoryTool(
        name="memory_write",
        title="Write a page of memory",
        run=actions.write_page,
        offered_by=_has_pages,
        declare=declares(
            f"Write {OVERVIEW_PATH}, shown in every request, or detail/<name> and archive/<name>, which are not. With "
            "a section, only the text under that heading.",
            "path",
            "text",
            path=TEXT,
            text=TEXT,
            section=described(TEXT, "A heading of the page."),
            append=described(BOOLEAN, "Add to the existing text."),
        ),
        output=record_schema(path=TEXT, bytes=INTEGER, changed=BOOLEAN),
        overwrites=True,
        shows_pages=True,
        uses_pages=True,
    ),
    MemoryTool(
        name="memory_list",
        title="List the pages of memory",
        run=actions.list_pages,
        offered_by=_has_pages,
        declare=declares("List what memory_read can read.", from_line=INTEGER),
        output=record_schema(
            documents=list_of(record_schema(path=TEXT, bytes=INTEGER, begins=TEXT)),
            from_line=INTEGER,
            all=INTEGER,
        ),
        read_only=True,
        uses_pages=True,
    ),
    MemoryTool(
        name="compact_history",
        title="Compact the history",
        run=actions.compact_history,
        offered_by=_has_pages,
        declare=declares(
            "Remove old conversation, tool outputs (tools) or both (all) from your context. All of it is archived, and "
            "memory_read reads it.",
            "target",
            target=choice(TARGETS),
            strategy=choice(("archive", "summarize")),
            keep_recent=described(INTEGER, "Turns to keep."),
            archive_to=described(TEXT, "A page of archive/; by default a new one."),
        ),
        output=record_schema(messages=INTEGER, tokens=INTEGER, archives=TEXTS, reason=TEXT),
        shows_pages=True,
        uses_pages=True,
    ),
    MemoryTool(
        name="resolve_reference",
        title="Resolve a reference",
        run=actions.resolve_reference,
        offered_by=_has_entities,
        declare=declares(
            'Find which entity the user means ("that page", "the other one"), even if it is no longer listed.',
            "text",
            text=TEXT,
        ),
        output=record_schema(
            verdict=choice(get_args(Verdict)),
            entities=list_of(record_schema(**_ENTITY)),
            candidates=list_of(record_schema(**_ENTITY, confidence=NUMBER, why=TEXT)),
            confidence=NUMBER,
            question=TEXT,
            why=TEXT,
        ),
        read_only=True,
    ),
    MemoryTool(
        name="working_memory_show",
        title="Show working memory",
        run=actions.show_memory,
        offered_by=lambda _: True,
        declare=declares(
            "Show your whole working memory: state, notes, scratchpad, overview, and the entities in use with their "
            "ids."
        ),
        output=record_schema(layers=list_of(record_schema(layer=TEXT, text=TEXT, left_out=INTEGER))),
        read_only=True,
        shows_pages=True,
        uses_pages=True,
    ),
    MemoryTool(
        name="working_memory_observe",
        title="Report a tool result",
        run=actions.observe_tool,
        offered_by=_has_entities,
        declare=declares(
            "Report the result of another tool that created, changed or found something, so that memory and "
            "resolve_reference know it.",
            "tool",
            "result",
            tool=TEXT,
            arguments={"type": "object"},
            result=described(TEXT, "The tool's output, JSON or text, unchanged."),
            error=BOOLEAN,
        ),
        output=record_schema(id=TEXT),
        uses_pages=True,
    ),
)
