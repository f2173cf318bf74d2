"""The functions of all memory tools."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import SearchRecorded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import ToolObserved
from inmind.core.text import count_noun, truncate
from inmind.documents.document import (
    MAX_LINE_CHARACTERS,
    NOTES_PAGE_PATH,
    OVERVIEW_PATH,
    Scope,
    resolve_path,
    split_lines,
    validate_text,
)
from inmind.documents.notes_page import format_timestamp
from inmind.documents.overview.front_matter import front_matter_error
from inmind.documents.overview.maintain import indexed_pages
from inmind.documents.overview.page import prompt_text
from inmind.documents.overview.sections import read_section, replace_section
from inmind.documents.scratchpad.state import append_text
from inmind.entities.entity import Entity
from inmind.entities.render import render_entity
from inmind.errors import Conflict, InvalidInput, InvalidPath, NotFound
from inmind.history.compaction.stubs import parse_location
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, ScratchpadLayer, parse_bool
from inmind.prompt.templates import block_text
from inmind.search.note import DEFAULT_IMPORTANCE, validate_note
from inmind.search.query import Hit, validate_filters, validate_query
from inmind.search.render import render_hits
from inmind.session.tools.base import ToolAnswer, ToolContext, number_argument, text_argument

MAX_LINES_READ = 400


MAX_CHARACTERS_READ = MAX_LINE_CHARACTERS
"""Limits of one `memory_read`: a longer answer would fill the context window."""


MAX_PATHS_LISTED = 100
"""Paths in one answer of `memory_list`; `from_line` continues."""


MAX_PATHS_IN_HINT = 10
"""Paths named in the error for an unknown path."""


MAX_CONFLICT_CHARACTERS = 4_000


MAX_LINE_NUMBER = 2**53


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
    scope = notes_scope(layer, context.state.is_anonymous)
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


def read_page(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    path, named_lines = parse_location(text_argument(arguments, "path"), context.state.documents.by_path)
    text = context.scratchpad_text if path == SCRATCHPAD_PATH else context.page_text(path)
    if text is None:
        paths = _paths(context)
        more = len(paths) - MAX_PATHS_IN_HINT
        hint = ", ".join(paths[:MAX_PATHS_IN_HINT]) + (f" and {more} more, which list shows" if more > 0 else "")
        raise NotFound(what="document", name=path, hint=f"available: {hint}")
    lines = split_lines(text)
    start, stop = named_lines or (1, len(lines))
    first = _line_number(arguments, "from_line", start, least=1, most=len(lines))
    end = _line_number(arguments, "to_line", stop, least=first, most=max(first, MAX_LINE_NUMBER))
    line_count, size = 0, 0
    for line in lines[first - 1 : min(end, first - 1 + MAX_LINES_READ)]:
        size += len(line) + 1
        if line_count and size > MAX_CHARACTERS_READ:
            break
        line_count += 1
    excerpt = "\n".join(lines[first - 1 : first - 1 + line_count])
    last = first - 1 + line_count
    whole = first == 1 and last == len(lines)
    content = {"path": path, "text": excerpt, "from_line": first, "to_line": last, "lines": len(lines)}
    if not whole:
        more = f"; read on from_line {last + 1}" if last < len(lines) else ""
        excerpt = f"{excerpt}\n[lines {first} to {last} of {len(lines)}{more}]"
    about = path if path == SCRATCHPAD_PATH else resolve_path(path)[1]
    return ToolAnswer(text=excerpt or "(empty)", content=content, about=about, complete=whole)


def _line_number(arguments: Mapping[str, Any], key: str, default: int, *, least: int, most: int) -> int:
    number = number_argument(arguments, key) or default
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise InvalidInput(field=key, value=number, expected=f"a line number from {least} to {most}")
    return number


def write_page(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    path, lines = parse_location(text_argument(arguments, "path"), context.state.documents.by_path)
    path = _writable_path(text_argument(arguments, "path") if lines else path)
    text, section = text_argument(arguments, "text"), arguments.get("section") or ""
    adds, page = parse_bool(arguments, "append"), context.state.documents.by_path.get(path)
    before = page.text if page else ""
    # Stubs refer to the lines of archived messages, and the model has no other copy of the text.
    archived = {path for one in context.state.history.compactions for path in one.payload.archives}
    if path in archived and (section or not adds):
        message = f"Nothing was written: {path} holds archived messages. Append to it, or use another path."
        return ToolAnswer(text=message, error=True, code=InvalidPath.code)
    if section:
        old = read_section(before, text_argument(arguments, "section"))
        unseen = not context.knows(path) and old != read_section(context.page_as_seen(path), section)
        if unseen and not adds and prompt_text(old).strip():
            reason = f"you have not seen the current text under {section}: read {path}, then write again"
            pointer = "[cut: read the page for the rest]"
            now = truncate(old, budget=MAX_CONFLICT_CHARACTERS, count=len, pointer=pointer)
            message = f"Nothing was written: {reason}. It is now:\n{now.text}"
            return ToolAnswer(text=message, error=True, code=Conflict.code)
        text = replace_section(before, section, append_text(old, text) if adds else text)
    elif adds:
        text = append_text(before, text)
    elif page is not None and not context.knows(path):
        pointer = f"[cut: read {path} for the rest; append, or write a section]"
        now = truncate(before, budget=MAX_CONFLICT_CHARACTERS, count=len, pointer=pointer)
        message = f"Nothing was written: you have not seen all of {path} as it is now. It is now:\n{now.text}"
        return ToolAnswer(text=message, about=path, complete=now.whole, error=True, code=Conflict.code)
    written = Draft(payload=DocumentWritten(path=path, text=validate_text(text)), origin=Origin.ASSISTANT)
    whole = not section and not adds
    if page is not None and not whole:  # the part that stays keeps its source and trust
        written = replace(written, sources=(page.source,), trust=page.trust)
    same, size = page is not None and text == before, len(text.encode())
    why = front_matter_error(text) if path == OVERVIEW_PATH else ""  # hosts read it
    warning = f" Its front matter cannot be read: {why}. Fix it." if why else ""
    return ToolAnswer(
        text=f"{path}: {count_noun(size, 'byte')}.{warning}",
        content={"path": path, "bytes": size, "changed": not same},
        drafts=() if same else (written,),
        about=path,
        complete=whole,
    )


def list_pages(context: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    paths = _paths(context)
    first = _line_number(arguments, "from_line", 1, least=1, most=max(1, len(paths)))
    last = min(len(paths), first - 1 + MAX_PATHS_LISTED)
    listed: list[dict[str, Any]] = []
    for path in paths[first - 1 : last]:
        text = (context.scratchpad_text if path == SCRATCHPAD_PATH else context.page_text(path)) or ""
        words = next((line.strip() for line in text.split("\n") if line.strip()), "")
        listed.append({"path": path, "bytes": len(text.encode()), "begins": words[:100]})
    lines = [f"{one['path']} ({count_noun(one['bytes'], 'byte')}): {one['begins']}" for one in listed]
    if len(lines) < len(paths):
        more = f"; list on from_line {last + 1}" if last < len(paths) else ""
        lines.append(f"[{first} to {last} of {len(paths)}, the newest pages first{more}]")
    content = {"documents": listed, "from_line": first, "all": len(paths)}
    return ToolAnswer(text="\n".join(lines) or "There are none.", content=content)


def _paths(context: ToolContext) -> list[str]:
    """Paths of fixed documents first, then pages, newest first."""
    pages = indexed_pages(context.state.documents)
    documents = {**context.resource_state.documents.by_path, **context.state.documents.by_path}
    always = sorted(path for path in documents if path not in pages)
    return [*always, *([SCRATCHPAD_PATH] if context.scratchpad_text else []), *pages]


def _writable_path(path: str) -> str:
    """Check that the model may write a path.

    Documents of the resource are written by people and by dreams.
    """
    with suppress(InvalidPath):
        scope, name = resolve_path(path)
        if scope == "thread":
            return name
    raise InvalidPath(field="path", value=path, expected=f"{OVERVIEW_PATH}, detail/<name> or archive/<name>")
