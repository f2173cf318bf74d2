"""The functions of all memory tools, except those for pages."""

from __future__ import annotations

from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import SearchRecorded
from inmind.core.events.session import ToolObserved
from inmind.documents.document import NOTES_PAGE_PATH, OVERVIEW_PATH, Scope, resolve_path, validate_text
from inmind.documents.notes_page import format_timestamp
from inmind.entities.entity import Entity
from inmind.entities.render import render_entity
from inmind.errors import Conflict, InvalidInput, NotFound
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, ScratchpadLayer, parse_bool
from inmind.prompt.templates import block_text
from inmind.search.note import DEFAULT_IMPORTANCE, validate_note
from inmind.search.query import Hit, validate_filters, validate_query
from inmind.search.render import render_hits
from inmind.session.tools.base import ToolAnswer, ToolContext, number_argument, text_argument


def update_scratchpad(context: ToolContext, layer: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    if not isinstance(layer, ScratchpadLayer):
        raise NotFound(what="scratchpad", name=layer.name)
    pads = context.state.scratchpads if layer.scope == "thread" else context.resource_state.scratchpads
    revision = layer.revise_by_model(pads, arguments, context.scratchpad_as_seen)
    return ToolAnswer(
        text=f"Nothing was changed. {revision.message}" if revision.stale else revision.message,
        content={"changed": bool(revision.payloads)},
        drafts=tuple(Draft(payload=payload, origin=Origin.ASSISTANT) for payload in revision.payloads),
        scope=layer.scope,
        about=SCRATCHPAD_PATH,
        complete=revision.is_complete,
        error=revision.stale,
        code=Conflict.code if revision.stale else "",
    )


def add_note(context: ToolContext, layer: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    importance = number_argument(arguments, "importance")
    note = validate_note(
        text_argument(arguments, "note"),
        importance=DEFAULT_IMPORTANCE if importance is None else importance,
        field="note",
    )
    scope = notes_scope(layer, context.is_anonymous)
    at, id = format_timestamp(context.now), context.next_ids[scope]
    drafts = (Draft(payload=note, origin=Origin.ASSISTANT),)
    return ToolAnswer(text=f"Noted at {at} as {id}.", content={"id": id, "at": at}, drafts=drafts, scope=scope)


def notes_scope(_: Layer, anonymous: bool) -> Scope:
    return resolve_path(NOTES_PAGE_PATH, anonymous=anonymous)[0]


def search_memory(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    query = text_argument(arguments, "query")
    filters = validate_filters({key: value for key, value in arguments.items() if key != "query" and value is not None})
    if "limit" in filters:
        filters["limit"] = number_argument(filters, "limit")
    checked_query = validate_query(query, **filters)
    hits = context.search(checked_query)
    record = SearchRecorded(checked_query.text, tuple(hit.crystal.id for hit in hits), checked_query.limit)
    return ToolAnswer(
        text=render_hits(hits) if hits else "Nothing was found.",
        content={"hits": [_hit_json(hit) for hit in hits]},
        drafts=(Draft(payload=record, origin=Origin.ASSISTANT),),
    )


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


def compact_history(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    plan = context.compact({**arguments, "keep_recent": number_argument(arguments, "keep_recent")})
    report = plan.report
    content = {
        "messages": report.messages,
        "tokens": report.tokens,
        "archives": report.archives,
        "reason": report.reason,
    }
    return ToolAnswer(text=str(report), content=content, drafts=tuple(plan.drafts), about=OVERVIEW_PATH)


def resolve_reference(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
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


def show_memory(context: ToolContext, _: Layer, __: dict[str, Any]) -> ToolAnswer:
    view = context.memory_view()
    blocks = [block for block in view.blocks if block.text]
    content = {"layers": [{"layer": one.layer, "text": one.text, "left_out": one.left_out} for one in blocks]}
    text = "\n\n".join(map(block_text, blocks)) or "Working memory is empty."
    return ToolAnswer(text=text, content=content, shows=view.complete, tagged=True)


def observe_tool(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    if arguments.get("result") is None:
        raise InvalidInput(field="result", value=None, expected="the output of the tool")
    payload = ToolObserved(
        tool=validate_text(text_argument(arguments, "tool"), field="tool"),
        arguments=arguments.get("arguments"),
        result=arguments["result"],
        error=parse_bool(arguments, "error"),
    )
    id, drafts = context.next_ids["thread"], (Draft(payload=payload, origin=Origin.TOOL),)
    return ToolAnswer(text=f"Recorded as {id}.", content={"id": id}, drafts=drafts)
