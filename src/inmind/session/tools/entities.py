"""The tools resolve_reference and working_memory_observe: entities."""

from __future__ import annotations

from typing import Any, get_args

from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import ToolObserved
from inmind.documents.document import validate_text
from inmind.entities.entity import Entity
from inmind.entities.references.result import Verdict
from inmind.entities.render import render_entity
from inmind.errors import InvalidInput
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.builtin import EntityLayer
from inmind.prompt.layers.scratchpad import parse_bool
from inmind.session.tools.base import (
    BOOLEAN,
    NUMBER,
    TEXT,
    MemoryTool,
    ToolAnswer,
    ToolContext,
    always_offered,
    list_schema,
    object_schema,
    required_object,
    text_argument,
)


def _resolve_reference(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    resolution = context.resolve(validate_text(text_argument(arguments, "text")))
    content = {
        "verdict": resolution.verdict,
        "entities": [_entity_json(entity) for entity in resolution.entities],
        "candidates": [
            {**_entity_json(one.entity), "confidence": one.confidence, "why": one.why} for one in resolution.candidates
        ],
        "confidence": resolution.confidence,
        "question": resolution.question,
        "why": resolution.why,
    }
    records = [f"- {render_entity(entity)}" for entity in resolution.entities if entity.record or entity.parts]
    return ToolAnswer(text="\n".join([str(resolution), *records]), content=content)


def _entity_json(entity: Entity) -> dict[str, Any]:
    return {"type": entity.type, "id": entity.id, "name": entity.name}


def _observe_tool(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    if arguments.get("result") is None:
        raise InvalidInput(field="result", value=None, expected="the output of the tool")
    payload = ToolObserved(
        tool=validate_text(text_argument(arguments, "tool"), field="tool"),
        arguments=arguments.get("arguments"),
        result=arguments["result"],
        error=parse_bool(arguments, "error"),
    )
    id = context.next_id("thread")
    return ToolAnswer(
        text=f"Recorded as {id}.", content={"id": id}, drafts=(Draft(payload=payload, origin=Origin.TOOL),)
    )


_ENTITY = {"type": TEXT, "id": TEXT, "name": TEXT}


RESOLVE_REFERENCE = MemoryTool(
    name="resolve_reference",
    wire_name="resolve_reference",
    title="Resolve a reference",
    read_only=True,
    output=required_object(
        {
            "verdict": {"type": "string", "enum": list(get_args(Verdict))},
            "entities": list_schema(_ENTITY),
            "candidates": list_schema({**_ENTITY, "confidence": NUMBER, "why": TEXT}),
            "confidence": NUMBER,
            "question": TEXT,
            "why": TEXT,
        }
    ),
    offered_by=lambda layer: isinstance(layer, EntityLayer),
    declare=always_offered(
        'Find which entity the user means ("that page", "the other one"), even if it is no longer listed.',
        object_schema({"text": TEXT}, required=("text",)),
    ),
    run=_resolve_reference,
)


OBSERVE_TOOL = MemoryTool(
    name="working_memory_observe",
    wire_name="working_memory_observe",
    title="Report a tool result",
    mcp_only=True,
    uses_pages=True,
    mcp_parameters={"result": {"description": "The tool's output, JSON or text, unchanged."}},
    output=required_object({"id": TEXT}),
    offered_by=lambda layer: isinstance(layer, EntityLayer),
    declare=always_offered(
        "Report the result of another tool that created, changed or found something, so that memory and "
        "resolve_reference know it.",
        object_schema(
            {"tool": TEXT, "arguments": {"type": "object"}, "result": TEXT, "error": BOOLEAN},
            required=("tool", "result"),
        ),
    ),
    run=_observe_tool,
)
