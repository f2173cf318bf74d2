"""The tool memory_search: search crystals."""

from __future__ import annotations

from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import SearchRecorded
from inmind.core.settings import SOURCES
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.builtin import DocumentLayer
from inmind.search.crystal import KINDS
from inmind.search.query import Hit, validate_filters, validate_query
from inmind.search.render import render_hits
from inmind.session.tools.base import (
    INTEGER,
    NUMBER,
    TEXT,
    TEXTS,
    MemoryTool,
    ToolAnswer,
    ToolContext,
    always_offered,
    list_schema,
    number_argument,
    object_schema,
    required_object,
    text_argument,
)


def _search_memory(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    query = text_argument(arguments, "query")
    filters = validate_filters({key: value for key, value in arguments.items() if key != "query" and value is not None})
    if "limit" in filters:
        filters["limit"] = number_argument(filters, "limit")
    checked_query = validate_query(query, **filters)
    hits = context.search(checked_query)
    content = {"hits": [_hit_json(hit) for hit in hits]}
    record = SearchRecorded(checked_query.text, tuple(hit.crystal.id for hit in hits), checked_query.limit)
    text = render_hits(hits) if hits else "Nothing was found."
    return ToolAnswer(text=text, content=content, drafts=(Draft(payload=record, origin=Origin.ASSISTANT),))


def _hit_json(hit: Hit) -> dict[str, Any]:
    crystal = hit.crystal
    return {
        "id": crystal.id,
        "text": hit.passage,
        "at": crystal.at.isoformat(),
        "by": crystal.speaker or crystal.origin.value,
        "trust": crystal.trust.name.lower(),
        "kind": crystal.kind,
        "source": crystal.source,
        "session": crystal.session,
        "path": crystal.path,
        "score": hit.score,
        "before": hit.before,
        "after": hit.after,
    }


_DATE = {"description": "A date like 2026-01-31, or a time."}


_HIT = {
    **dict.fromkeys("id text at by trust kind source session path".split(), TEXT),
    "score": NUMBER,
    "before": TEXT,
    "after": TEXT,
}


SEARCH_MEMORY = MemoryTool(
    name="memory_search",
    wire_name="memory_search",
    title="Search memory",
    read_only=True,
    mcp_parameters={
        "limit": {"description": "Default: 10."},
        "kinds": {"items": {"type": "string", "enum": list(KINDS)}},
        "since": _DATE,
        "until": _DATE,
        "as_of": {"description": "Only what was known and valid on this date."},
    },
    output=required_object({"hits": list_schema(_HIT)}),
    offered_by=lambda layer: isinstance(layer, DocumentLayer) and layer.path == NOTES_PAGE_PATH,
    declare=always_offered(
        "Search messages, notes and results of this and earlier sessions. Dates: 2026-01-31.",
        object_schema(
            {
                "query": TEXT,
                "limit": INTEGER,
                "kinds": TEXTS,
                "sources": {"type": "array", "items": {"type": "string", "enum": list(SOURCES)}},
                "since": TEXT,
                "until": TEXT,
                "session": TEXT,
                "as_of": TEXT,
            },
            required=("query",),
        ),
    ),
    run=_search_memory,
)
