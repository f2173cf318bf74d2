"""The tool working_memory_note: save a note."""

from __future__ import annotations

from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.documents.document import NOTES_PAGE_PATH, Scope, resolve_path
from inmind.documents.notes_page import format_timestamp
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.builtin import DocumentLayer
from inmind.search.note import DEFAULT_IMPORTANCE, validate_note
from inmind.session.tools.base import (
    TEXT,
    MemoryTool,
    ToolAnswer,
    ToolContext,
    always_offered,
    number_argument,
    object_schema,
    required_object,
    text_argument,
)


def _add_note(context: ToolContext, layer: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    importance = number_argument(arguments, "importance")
    note = validate_note(
        text_argument(arguments, "note"),
        importance=DEFAULT_IMPORTANCE if importance is None else importance,
        field="note",
    )
    scope = _notes_scope(layer, context.is_anonymous)
    at, id = format_timestamp(context.now), context.next_id(scope)
    return ToolAnswer(
        text=f"Noted at {at} as {id}.",
        content={"id": id, "at": at},
        drafts=(Draft(payload=note, origin=Origin.ASSISTANT),),
        scope=scope,
    )


def _notes_scope(_: Layer, anonymous: bool) -> Scope:
    return resolve_path(NOTES_PAGE_PATH, anonymous=anonymous)[0]


ADD_NOTE = MemoryTool(
    name="working_memory_note",
    wire_name="working_memory_note",
    title="Save a note",
    output=required_object({"id": TEXT, "at": TEXT}),
    scope=_notes_scope,
    offered_by=lambda layer: isinstance(layer, DocumentLayer) and layer.path == NOTES_PAGE_PATH,
    declare=always_offered(
        "Save a fact, preference, decision or deadline for later conversations. Importance is 0 to 1.",
        object_schema({"note": TEXT, "importance": {"type": "number"}}, required=("note",)),
    ),
    run=_add_note,
)
