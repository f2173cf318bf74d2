"""The tools working_memory_update and working_memory_show."""

from __future__ import annotations

from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.documents.document import Scope
from inmind.errors import Conflict, NotFound
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, ScratchpadLayer
from inmind.prompt.templates import block_text
from inmind.session.tools.base import (
    BOOLEAN,
    INTEGER,
    TEXT,
    MemoryTool,
    ToolAnswer,
    ToolContext,
    ToolDeclaration,
    always_offered,
    list_schema,
    object_schema,
    required_object,
)

UPDATE = "working-memory/update"


def _update_scratchpad(context: ToolContext, layer: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    if not isinstance(layer, ScratchpadLayer):
        raise NotFound(what="scratchpad", name=layer.name)
    pads = context.state.scratchpads if layer.scope == "thread" else context.resource_state.scratchpads
    revision = layer.revise_by_model(pads, arguments, context.scratchpad_as_seen)
    text = f"Nothing was changed. {revision.message}" if revision.stale else revision.message
    return ToolAnswer(
        text=text,
        content={"changed": bool(revision.payloads)},
        drafts=tuple(Draft(payload=payload, origin=Origin.ASSISTANT) for payload in revision.payloads),
        scope=layer.scope,
        about=SCRATCHPAD_PATH,
        complete=revision.is_complete,
        error=revision.stale,
        code=Conflict.code if revision.stale else "",
    )


def _scratchpad_scope(layer: Layer, anonymous: bool) -> Scope:  # noqa: ARG001 -- the layer of an anonymous session already has thread scope
    return layer.scope


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
        object_schema({"text": {"type": "string"}, "append": {"type": "boolean"}}, required=("text",)),
    )


UPDATE_SCRATCHPAD = MemoryTool(
    name=UPDATE,
    wire_name="working_memory_update",
    legacy_name="updateWorkingMemory",
    title="Update the scratchpad",
    overwrites=True,
    shows_pages=True,
    output=required_object({"changed": BOOLEAN}),
    scope=_scratchpad_scope,
    offered_by=lambda layer: isinstance(layer, ScratchpadLayer),
    declare=_declare_update,
    run=_update_scratchpad,
)


def _show_memory(context: ToolContext, _: Layer, __: dict[str, Any]) -> ToolAnswer:
    view = context.memory_view()
    blocks = [block for block in view.blocks if block.text]
    content = {"layers": [{"layer": one.layer, "text": one.text, "left_out": one.left_out} for one in blocks]}
    text = "\n\n".join(map(block_text, blocks)) or "Working memory is empty."
    return ToolAnswer(text=text, content=content, shows=view.complete, tagged=True)


SHOW_MEMORY = MemoryTool(
    name="working_memory_show",
    wire_name="working_memory_show",
    title="Show working memory",
    read_only=True,
    shows_pages=True,
    mcp_only=True,
    uses_pages=True,
    output=required_object({"layers": list_schema({"layer": TEXT, "text": TEXT, "left_out": INTEGER})}),
    offered_by=lambda _: True,
    declare=always_offered(
        "Show your whole working memory: state, notes, scratchpad, overview, and the entities in use with their ids.",
        object_schema({}),
    ),
    run=_show_memory,
)
