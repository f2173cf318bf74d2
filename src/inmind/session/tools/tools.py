"""What the model may call: one table of memory tools, and how a call is carried out.

A tool is declared once, with the names it goes by, what the model is told about it, the schema of its arguments, the
layer that offers it and the function behind it; every provider's shape is made from that. The function decides on
values and answers with what to append and what to say, so a reply with several calls is one decision and one commit.
What goes wrong in a call is said to the model in the call's own answer: an agent must be able to go on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime
from typing import Any, Literal, get_args

from inmind.core.events.base import Draft, Origin
from inmind.core.events.crystals import SearchRecorded
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.prompt import AnchoredBlock
from inmind.core.events.session import ShownVersions, ToolObserved
from inmind.core.frozen import frozen
from inmind.core.messages.model import Call, Message, Opaque
from inmind.core.settings import SOURCES
from inmind.core.streams import ANONYMOUS
from inmind.core.text import counted, cut, inert
from inmind.documents.document import (
    MAX_LINE_CHARACTERS,
    MEMORY_PAGE_PATH,
    NOTES_PAGE_PATH,
    OVERVIEW_PATH,
    Scope,
    resolve_path,
    split_lines,
    validate_text,
)
from inmind.documents.notes_page import format_timestamp
from inmind.documents.overview.content import prompt_text
from inmind.documents.overview.front_matter import front_matter_error
from inmind.documents.overview.maintain import indexed_pages
from inmind.documents.overview.sections import read_section, replace_section
from inmind.documents.scratchpad.merge import appended
from inmind.documents.scratchpad.state import State
from inmind.entities.entity import Entity
from inmind.entities.references.result import Resolution, Verdict
from inmind.errors import Conflict, InmindError, InvalidInput, InvalidPath, NotFound
from inmind.history.compaction.build import Made
from inmind.history.compaction.select import TARGETS
from inmind.prompt.ingest import tool_names
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.builtin import DocumentLayer, EntityLayer
from inmind.prompt.layers.scratchpad import SCRATCHPAD, ScratchpadLayer, scratchpad_in_sight, truth
from inmind.prompt.templates import block_text
from inmind.search.crystal import KINDS
from inmind.search.note import IMPORTANCE, checked_note
from inmind.search.query import Hit, Query, checked_filters, checked_query
from inmind.search.render import told
from inmind.session.state import ResourceState, SessionState

MAX_LINES_READ = 400
MAX_CHARACTERS_READ = MAX_LINE_CHARACTERS
"""What one `memory_read` answers with at most: an answer that fills the window helps nobody."""

MAX_PATHS_LISTED = 100
"""Lines of one `memory_list`; the rest is counted, and listed on demand."""
MAX_PATHS_IN_HINT = 10
"""Paths in the answer to a call that named none of them."""

MAX_CONFLICT_CHARACTERS = 4_000
MAX_LINE_NUMBER = 2**53


@frozen
class MemoryView:
    """All that memory would say in a prompt, layer by layer and inside its budget."""

    blocks: Sequence[AnchoredBlock]
    complete: ShownVersions
    """The pages that stand there in full, and the scratchpad, with the events that wrote them."""


@frozen(kw_only=True)
class ToolContext:
    """What a tool looks at: values, and one question."""

    now: datetime
    state: SessionState
    resource_state: ResourceState
    ancestors: Sequence[SessionState]
    """Of the sessions that this one comes from, the parent first."""
    layers: Sequence[Layer]
    seen: Mapping[str, Sequence[str]]
    """What the model knew all of when it called: pages, and the events that wrote what it was shown of each."""
    page_as_seen: Callable[[str], str]
    """The text of a page as the model knew it; empty where it did not."""
    scratchpad_as_seen: State | None
    """The scratchpad as the model knew it; None where it did not, or only a part of a text."""
    next_id: Callable[[Scope], str]
    """What the next event will be called that happens in the session's stream, or in its resource's."""
    resolve: Callable[[str], Resolution]
    search: Callable[[Query], Sequence[Hit]]
    compact: Callable[[dict[str, Any]], Made]
    memory_view: Callable[[], MemoryView]

    def knows(self, path: str) -> bool:
        """Does the model know all of a page as it is?"""
        page = self.state.documents.by_path.get(path)
        stream = f"{self.state.stream}#"
        seen = (int(id.removeprefix(stream)) for id in self.seen.get(path, ()) if id.startswith(stream))
        return page is not None and any(page.last_edit <= seq <= page.version for seq in seen)

    @property
    def scratchpad_text(self) -> str:
        """The scratchpad as the model reads it: its own, or the one of an ancestor that it has a view of."""
        found = scratchpad_in_sight(self.layers)
        if found is None:
            return ""
        layer, height = found
        state = (self.state, *self.ancestors)[height]
        return layer.text(state.scratchpads if layer.scope == "thread" else self.resource_state.scratchpads)

    @property
    def is_anonymous(self) -> bool:
        """Is it a session of nobody in particular?"""
        return self.state.opened is not None and self.state.opened.resource == ANONYMOUS

    def page_text(self, path: str) -> str | None:
        scope, name = resolve_path(path, anonymous=self.is_anonymous)
        documents = self.state.documents if scope == "thread" else self.resource_state.documents
        return documents.text(name) if name in documents.by_path else None


@frozen(kw_only=True)
class ToolAnswer:
    """What a call comes to: what the model reads, and what happens."""

    text: str
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The same for a program, as the tool's `output` says; of one that went wrong there is none."""
    drafts: tuple[Draft, ...] = ()
    """What happens, each with what it is made of beside the call."""
    scope: Scope = "thread"
    about: str = ""
    """The page that it shows or has written, or the scratchpad."""
    complete: bool = False
    """It shows all of that, or has written all of it."""
    shows: ShownVersions = ()
    """What else it shows all of, with the events that wrote that."""
    tagged: bool = False
    """What it says stands between our own tags, and is inert there."""
    error: bool = False
    code: str = ""
    """Of the error, where it is one."""
    diagnostic: str = ""

    @property
    def refused(self) -> bool:
        """Nothing came of the call; under an older name that is no error."""
        return self.error or bool(self.diagnostic)


@frozen(kw_only=True)
class ToolResult:
    """What one call of a memory tool has come to, without a model's reply around it."""

    text: str
    """What the model reads."""
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The same for a program, as the tool's `outputSchema` says; empty where it is an error."""
    error: bool = False
    code: str = ""
    """Of the error, where it is one."""
    seen: Mapping[str, str] = field(default_factory=dict[str, str])
    """Pages, and the scratchpad, that whoever called knows all of by this; each with the event that wrote it so."""
    repeated: bool = False
    """It had been done under this key before; nothing was done again."""


@frozen
class ToolDeclaration:
    """A tool as it is offered by one layer."""

    description: str
    parameters: Mapping[str, Any]
    open: bool = False
    """It takes other fields too, and is the judge of them."""


@frozen(kw_only=True)
class MemoryTool:
    """One thing that the model may do with its memory."""

    name: str
    wire_name: str
    """The name that providers take: most refuse a slash."""
    legacy_name: str = ""
    """A name of an older convention; what goes wrong under it is dropped, with a diagnostic, instead of told."""
    title: str
    """For people who look on."""
    read_only: bool = False
    """Nothing that anybody reads is changed by it. That it searched is kept all the same: what is found is more lasting
    by that."""
    overwrites: bool = False
    """What it is told can take the place of something that was there; the journal has that. So it is held against what
    was `seen` of it."""
    shows_pages: bool = False
    """Its answer can make all of a page known, or of the scratchpad: then it says so in `seen`."""
    mcp_only: bool = False
    """Only for who is sent no prompt of ours, in which all of it would stand anyway."""
    uses_pages: bool = False
    """It looks at pages, which people may have changed in their files, or changes them."""
    mcp_parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """More about its parameters, by their names, for MCP alone: in a prompt of ours it would be paid for every time."""
    output: Mapping[str, Any]
    """The schema of its `content`."""
    scope: Callable[[Layer, bool], Scope] = lambda _, __: "thread"
    """Whose it is what it changes, by the layer, and by whether the session is nobody's in particular."""
    offered_by: Callable[[Layer], bool]
    """Is it this layer that offers it?"""
    declare: Callable[[Layer], ToolDeclaration | None]
    """How it is offered; None where it is not, though a call is still understood."""
    run: Callable[[ToolContext, Layer, dict[str, Any]], ToolAnswer]


def tool_schemas(layers: Sequence[Layer], format: str) -> list[dict[str, Any]]:
    """The tools that these layers offer, in a provider's shape, or in MCP's."""
    made = _SHAPES.get(format)
    if made is None:
        raise InvalidInput(field="format", value=format, expected=f"one of {', '.join(_SHAPES)}")
    tools = (tool for tool in TOOLS if not tool.mcp_only or format == _UNPROMPTED)
    pairs = ((tool, layer) for tool in tools if (layer := _offering(tool, layers)) is not None)
    return [made(tool, declared) for tool, layer in pairs if (declared := tool.declare(layer)) is not None]


def is_memory_tool(name: str) -> bool:
    return name in _BY_NAME


def route_call(
    name: str,
    host_tools: Sequence[Mapping[str, Any]] | None,
    tools_added: Callable[[], bool],
    *,
    layer_tools: Sequence[Mapping[str, Any]] = (),
    memory_tools: bool = True,
) -> Literal["host", "memory", "nobody"]:
    """Who is to answer a call of a tool, given the host's own: its names come first, and memory's after them.

    A tool that a layer of the host's has `offered` is the host's as well.

    What a host did not name may still be its own, unless it has named some, or none at all, all of them are plain
    functions, and none were `added` by messages. `remembers`: whether memory has tools in this session.
    """
    if name in tool_names(host_tools or ()):
        return "host"
    if memory_tools and is_memory_tool(name):
        return "memory"
    if name in tool_names(layer_tools):
        return "host"
    return "nobody" if host_tools is not None and all(map(_is_function, host_tools)) and not tools_added() else "host"


def adds_tools(messages: Iterable[Message]) -> bool:
    """Do messages of the conversation itself bring in tools, beside those that were given with the call?"""
    parts = (part for message in messages for part in message.parts)
    return any(isinstance(part, Opaque) and part.kind in _ADDING for part in parts)


def find_tool(name: str, layers: Sequence[Layer]) -> tuple[MemoryTool, Layer]:
    """A tool by any of its names, and the layer that offers it; NotFound where none does."""
    tool = _BY_NAME.get(name)
    layer = _offering(tool, layers) if tool else None
    if tool is None or layer is None:
        known = ", ".join(one.wire_name for one in TOOLS if _offering(one, layers) is not None)
        raise NotFound(what="memory tool", name=name, hint=f"there are: {known}" if known else "there are none here")
    return tool, layer


def run_tool(call: Call, reach: ToolContext) -> ToolAnswer:
    """Run one call of a memory tool. Whatever is wrong with it becomes its answer; nothing is then changed."""
    answer = _run(_BY_NAME[call.name], call, reach)
    said = answer.text if answer.tagged else inert(answer.text)
    return replace(answer, text=said, content=_inert_values(answer.content))


def _inert_values(value: Any) -> Any:
    """A client may well show these to its model instead of what is said."""
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, Mapping):
        return {key: _inert_values(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType] -- JSON of our own
    return [_inert_values(one) for one in value] if isinstance(value, list | tuple) else value  # pyright: ignore[reportUnknownVariableType]


def _run(tool: MemoryTool, call: Call, reach: ToolContext) -> ToolAnswer:
    layer = _offering(tool, reach.layers)
    try:
        if layer is None:
            raise NotFound(what="memory tool", name=call.name, hint="it is not offered here")
        declared = None if call.name == tool.legacy_name else tool.declare(layer)
        answer = tool.run(reach, layer, _taken(_arguments(call), declared))
    except InmindError as error:
        said = str(error) if tool.read_only else f"Nothing was changed. {error}"
        answer = ToolAnswer(text=said, error=True, code=error.code)
    if answer.error and call.name == tool.legacy_name:
        return ToolAnswer(text=f"Dropped. {answer.text}", diagnostic=f"{call.name}: {answer.text}")
    return answer


def cut_off_answer() -> ToolAnswer:
    """The answer to a call in a reply that the provider has cut: it may be half of what was meant."""
    return ToolAnswer(text="Nothing was changed. The reply was cut off: call again.", error=True)


def unknown_tool_answer(call: Call, known: Sequence[str]) -> ToolAnswer:
    """The answer to a call of a tool that nobody has."""
    there = f"There are: {', '.join(known)}." if known else "There are none."
    return ToolAnswer(text=f"There is no tool named {call.name}. {there}", error=True)


# -- working-memory/update ---------------------------------------------------------------------------------

UPDATE = "working-memory/update"


def _update(reach: ToolContext, layer: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    if not isinstance(layer, ScratchpadLayer):
        raise NotFound(what="scratchpad", name=layer.name)
    pads = reach.state.scratchpads if layer.scope == "thread" else reach.resource_state.scratchpads
    revision = layer.revised_by_model(pads, arguments, reach.scratchpad_as_seen)
    said = f"Nothing was changed. {revision.told}" if revision.stale else revision.told
    return ToolAnswer(
        text=said,
        content={"changed": bool(revision.happened)},
        drafts=tuple(Draft(payload=what, origin=Origin.ASSISTANT) for what in revision.happened),
        scope=layer.scope,
        about=SCRATCHPAD,
        complete=revision.whole,
        error=revision.stale,
        code=Conflict.code if revision.stale else "",
    )


def _pads_scope(layer: Layer, alone: bool) -> Scope:  # noqa: ARG001 -- a session of nobody has a pad of its own already
    return layer.scope


def _declare_update(layer: Layer) -> ToolDeclaration | None:
    if not isinstance(layer, ScratchpadLayer) or layer.read_only:
        return None
    if layer.shape is not None:
        return ToolDeclaration(
            "Update your scratchpad, shown as working_memory. Send only what changes: objects merge, others replace.",
            layer.shape.parameters,
            open=True,
        )
    return ToolDeclaration(
        "Write your scratchpad, shown as working_memory: what to keep in mind for this task. Replaces, unless append.",
        _object({"text": {"type": "string"}, "append": {"type": "boolean"}}, required=("text",)),
    )


# -- working_memory_note -----------------------------------------------------------------------------------


def _note(reach: ToolContext, layer: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    given = _number(arguments, "importance")
    note = checked_note(_text(arguments, "note"), importance=IMPORTANCE if given is None else given, field="note")
    scope = _notes_scope(layer, reach.is_anonymous)
    at, id = format_timestamp(reach.now), reach.next_id(scope)
    return ToolAnswer(
        text=f"Noted at {at} as {id}.",
        content={"id": id, "at": at},
        drafts=(Draft(payload=note, origin=Origin.ASSISTANT),),
        scope=scope,
    )


def _notes_scope(_: Layer, alone: bool) -> Scope:
    return resolve_path(NOTES_PAGE_PATH, anonymous=alone)[0]


# -- memory_search -----------------------------------------------------------------------------------------


def _search(reach: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    query = _text(arguments, "query")
    filters = checked_filters({key: value for key, value in arguments.items() if key != "query" and value is not None})
    if "limit" in filters:
        filters["limit"] = _number(filters, "limit")
    asked = checked_query(query, **filters)
    hits = reach.search(asked)
    content = {"hits": [_as_found(hit) for hit in hits]}
    found = SearchRecorded(asked.text, tuple(hit.crystal.id for hit in hits), asked.limit)
    said = told(hits) if hits else "Nothing was found."
    return ToolAnswer(text=said, content=content, drafts=(Draft(payload=found, origin=Origin.ASSISTANT),))


def _as_found(hit: Hit) -> dict[str, Any]:
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


# -- memory_read, memory_write, memory_list ----------------------------------------------------------------


def _read(reach: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    path = _text(arguments, "path")
    text = reach.scratchpad_text if path == SCRATCHPAD else reach.page_text(path)
    if text is None:
        raise NotFound(what="document", name=path, hint=f"there are: {_named(_paths(reach))}")
    lines = split_lines(text)
    first = _line_number(arguments, "from_line", 1, least=1, most=len(lines))
    end = _line_number(arguments, "to_line", len(lines), least=first, most=max(first, MAX_LINE_NUMBER))
    shown, size = 0, 0
    for line in lines[first - 1 : min(end, first - 1 + MAX_LINES_READ)]:
        size += len(line) + 1
        if shown and size > MAX_CHARACTERS_READ:
            break
        shown += 1
    said = "\n".join(lines[first - 1 : first - 1 + shown])
    last = first - 1 + shown
    whole = first == 1 and last == len(lines)
    content = {"path": path, "text": said, "from_line": first, "to_line": last, "lines": len(lines)}
    if not whole:
        more = f"; read on from_line {last + 1}" if last < len(lines) else ""
        said = f"{said}\n[lines {first} to {last} of {len(lines)}{more}]"
    about = path if path == SCRATCHPAD else resolve_path(path)[1]
    return ToolAnswer(text=said or "(empty)", content=content, about=about, complete=whole)


def _line_number(arguments: Mapping[str, Any], key: str, default: int, *, least: int, most: int) -> int:
    given = _number(arguments, key) or default
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise InvalidInput(field=key, value=given, expected=f"a line number from {least} to {most}")
    return given


def _write(reach: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    path = _own_page(_text(arguments, "path"))
    text, section = _text(arguments, "text"), arguments.get("section") or ""
    adds, page = truth(arguments, "append"), reach.state.documents.by_path.get(path)
    before = page.text if page else ""
    if path in _archives(reach.state) and (section or not adds):
        said = f"Nothing was written: {path} has messages that are no longer sent. Append to it, or take another path."
        return ToolAnswer(text=said, error=True, code=InvalidPath.code)
    if section:
        old = read_section(before, _text(arguments, "section"))
        unseen = not reach.knows(path) and old != read_section(reach.page_as_seen(path), section)
        if unseen and not adds and prompt_text(old).strip():
            asking = f"you have not seen what is under {section} now: memory_read {path}, and write again"
            said = f"Nothing was written: {asking}. It reads:\n{_shortened(old)}"
            return ToolAnswer(text=said, error=True, code=Conflict.code)
        text = replace_section(before, section, appended(old, text) if adds else text)
    elif adds:
        text = appended(before, text)
    elif page is not None and not reach.knows(path):
        pointer = f"[cut: memory_read {path} shows the rest; append, or name a section, to write a part]"
        now = cut(before, budget=MAX_CONFLICT_CHARACTERS, count=len, pointer=pointer)
        said = f"Nothing was written: you have not seen all of {path} as it is now. It reads:\n{now.text}"
        return ToolAnswer(text=said, about=path, complete=now.whole, error=True, code=Conflict.code)
    written = Draft(payload=DocumentWritten(path=path, text=validate_text(text)), origin=Origin.ASSISTANT)
    whole = not section and not adds
    if page is not None and not whole:  # what stays of it is from there, and is trusted no more than that
        written = replace(written, sources=(page.source,), trust=page.trust)
    same, size = page is not None and text == before, len(text.encode())
    return ToolAnswer(
        text=f"{path}: {counted(size, 'byte')}.{_misread(path, text)}",
        content={"path": path, "bytes": size, "changed": not same},
        drafts=() if same else (written,),
        about=path,
        complete=whole,
    )


def _archives(state: SessionState) -> set[str]:
    """Pages that stand for messages. Stubs name their lines, and the model has those words nowhere else."""
    return {path for one in state.history.compactions for path in one.what.archives}


def _misread(path: str, text: str) -> str:
    """Hosts read the front matter of the overview. Whoever has broken it knows what was meant, and can mend it."""
    why = front_matter_error(text) if path == OVERVIEW_PATH else ""
    return f" Its front matter cannot be read: {why}. Mend it." if why else ""


def _shortened(text: str) -> str:
    return cut(text, budget=MAX_CONFLICT_CHARACTERS, count=len, pointer="[cut: memory_read shows the rest]").text


def _list(reach: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    paths = _paths(reach)
    first = _line_number(arguments, "from_line", 1, least=1, most=max(1, len(paths)))
    last = min(len(paths), first - 1 + MAX_PATHS_LISTED)
    listed: list[dict[str, Any]] = []
    for path in paths[first - 1 : last]:
        text = (reach.scratchpad_text if path == SCRATCHPAD else reach.page_text(path)) or ""
        words = next((line.strip() for line in text.split("\n") if line.strip()), "")
        listed.append({"path": path, "bytes": len(text.encode()), "begins": words[:100]})
    lines = [f"{one['path']} ({counted(one['bytes'], 'byte')}): {one['begins']}" for one in listed]
    if len(lines) < len(paths):
        more = f"; list on from_line {last + 1}" if last < len(paths) else ""
        lines.append(f"[{first} to {last} of {len(paths)}, the newest pages first{more}]")
    content = {"documents": listed, "from_line": first, "all": len(paths)}
    return ToolAnswer(text="\n".join(lines) or "There are none.", content=content)


def _paths(reach: ToolContext) -> list[str]:
    """What is always there, and then the pages, the newest first."""
    pages = indexed_pages(reach.state.documents)
    documents = {**reach.resource_state.documents.by_path, **reach.state.documents.by_path}
    always = sorted(path for path in documents if path not in pages)
    return [*always, *([SCRATCHPAD] if reach.scratchpad_text else []), *pages]


def _named(paths: Sequence[str]) -> str:
    more = len(paths) - MAX_PATHS_IN_HINT
    return ", ".join(paths[:MAX_PATHS_IN_HINT]) + (f" and {more} more, which memory_list shows" if more > 0 else "")


def _own_page(path: str) -> str:
    """A page that the model may write. What belongs to the resource is written by people and dreams."""
    with suppress(InvalidPath):
        scope, name = resolve_path(path)
        if scope == "thread":
            return name
    raise InvalidPath(field="path", value=path, expected=f"{OVERVIEW_PATH}, detail/<name> or archive/<name>")


def _has_pages(layer: Layer) -> bool:
    return isinstance(layer, DocumentLayer) and resolve_path(layer.path)[0] == "thread"


# -- compact_history ---------------------------------------------------------------------------------------


def _compact(reach: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    made = reach.compact({**arguments, "keep_recent": _number(arguments, "keep_recent")})
    report = made.report
    content = {
        "messages": report.messages,
        "tokens": report.tokens,
        "archives": report.archives,
        "reason": report.reason,
    }
    return ToolAnswer(text=str(report), content=content, drafts=tuple(made.drafts), about=OVERVIEW_PATH)


# -- resolve_reference -------------------------------------------------------------------------------------


def _resolve(reach: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    resolution = reach.resolve(validate_text(_text(arguments, "text")))
    content = {
        "verdict": resolution.verdict,
        "entities": [_as_named(entity) for entity in resolution.entities],
        "candidates": [
            {**_as_named(one.entity), "confidence": one.confidence, "why": one.why} for one in resolution.candidates
        ],
        "confidence": resolution.confidence,
        "question": resolution.question,
        "why": resolution.why,
    }
    return ToolAnswer(text=str(resolution), content=content)


def _as_named(entity: Entity) -> dict[str, Any]:
    return {"type": entity.type, "id": entity.id, "name": entity.name}


# -- working_memory_show -----------------------------------------------------------------------------------


def _show(reach: ToolContext, _: Layer, __: dict[str, Any]) -> ToolAnswer:
    seen = reach.memory_view()
    blocks = [block for block in seen.blocks if block.text]
    content = {"layers": [{"layer": one.layer, "text": one.text, "left_out": one.left_out} for one in blocks]}
    said = "\n\n".join(map(block_text, blocks)) or "Nothing is in mind yet."
    return ToolAnswer(text=said, content=content, shows=seen.complete, tagged=True)


# -- working_memory_observe --------------------------------------------------------------------------------


def _observe(reach: ToolContext, _: Layer, arguments: dict[str, Any]) -> ToolAnswer:
    if arguments.get("result") is None:
        raise InvalidInput(field="result", value=None, expected="what the tool answered")
    what = ToolObserved(
        tool=validate_text(_text(arguments, "tool"), field="tool"),
        arguments=arguments.get("arguments"),
        result=arguments["result"],
        error=truth(arguments, "error"),
    )
    id = reach.next_id("thread")
    return ToolAnswer(text=f"Kept as {id}.", content={"id": id}, drafts=(Draft(payload=what, origin=Origin.TOOL),))


# -- the table ---------------------------------------------------------------------------------------------


def _object(properties: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        **({"required": list(required)} if required else {}),
    }


def _always(description: str, parameters: Mapping[str, Any]) -> Callable[[Layer], ToolDeclaration | None]:
    return lambda _: ToolDeclaration(description, parameters)


_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}
_TEXTS = {"type": "array", "items": _TEXT}
_SHARE = {"type": "number"}
_YES_OR_NO = {"type": "boolean"}
_DAY = {"description": "A day, as 2026-01-31, or a time."}
_THING = {"type": _TEXT, "id": _TEXT, "name": _TEXT}
_HIT = {
    **dict.fromkeys("id text at by trust kind source session path".split(), _TEXT),
    "score": _SHARE,
    "before": _TEXT,
    "after": _TEXT,
}


def _all_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    return _object(properties, required=tuple(properties))


def _list_of(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": _all_of(properties)}


TOOLS: tuple[MemoryTool, ...] = (
    MemoryTool(
        name=UPDATE,
        wire_name="working_memory_update",
        legacy_name="updateWorkingMemory",
        title="Update the scratchpad",
        overwrites=True,
        shows_pages=True,
        output=_all_of({"changed": _YES_OR_NO}),
        scope=_pads_scope,
        offered_by=lambda layer: isinstance(layer, ScratchpadLayer),
        declare=_declare_update,
        run=_update,
    ),
    MemoryTool(
        name="working_memory_note",
        wire_name="working_memory_note",
        title="Take a note",
        output=_all_of({"id": _TEXT, "at": _TEXT}),
        scope=_notes_scope,
        offered_by=lambda layer: isinstance(layer, DocumentLayer) and layer.path == NOTES_PAGE_PATH,
        declare=_always(
            "Note a fact, preference, decision or deadline that must outlast this conversation. Importance is 0 to 1.",
            _object({"note": _TEXT, "importance": {"type": "number"}}, required=("note",)),
        ),
        run=_note,
    ),
    MemoryTool(
        name="memory_search",
        wire_name="memory_search",
        title="Search memory",
        read_only=True,
        mcp_parameters={
            "limit": {"description": "10, if nothing is said."},
            "kinds": {"items": {"type": "string", "enum": list(KINDS)}},
            "since": _DAY,
            "until": _DAY,
            "as_of": {"description": "What was known on that day, and held then."},
        },
        output=_all_of({"hits": _list_of(_HIT)}),
        offered_by=lambda layer: isinstance(layer, DocumentLayer) and layer.path == NOTES_PAGE_PATH,
        declare=_always(
            "Search all that was said, noted or seen, in this and earlier sessions. Days are 2026-01-31.",
            _object(
                {
                    "query": _TEXT,
                    "limit": _NUMBER,
                    "kinds": _TEXTS,
                    "sources": {"type": "array", "items": {"type": "string", "enum": list(SOURCES)}},
                    "since": _TEXT,
                    "until": _TEXT,
                    "session": _TEXT,
                    "as_of": _TEXT,
                },
                required=("query",),
            ),
        ),
        run=_search,
    ),
    MemoryTool(
        name="memory_read",
        wire_name="memory_read",
        title="Read a page of memory",
        read_only=True,
        shows_pages=True,
        uses_pages=True,
        mcp_parameters={"path": {"description": f"Also {MEMORY_PAGE_PATH}: what is known of whom you work for."}},
        output=_all_of({"path": _TEXT, "text": _TEXT, "from_line": _NUMBER, "to_line": _NUMBER, "lines": _NUMBER}),
        offered_by=lambda layer: _has_pages(layer) or scratchpad_in_sight([layer]) is not None,
        declare=_always(
            f"Read {OVERVIEW_PATH}, detail/<name>, archive/<name>, {NOTES_PAGE_PATH} or {SCRATCHPAD}.",
            _object({"path": _TEXT, "from_line": _NUMBER, "to_line": _NUMBER}, required=("path",)),
        ),
        run=_read,
    ),
    MemoryTool(
        name="memory_write",
        wire_name="memory_write",
        title="Write a page of memory",
        overwrites=True,
        shows_pages=True,
        uses_pages=True,
        mcp_parameters={
            "section": {"description": "A heading of the page."},
            "append": {"description": "Add to what is there."},
        },
        output=_all_of({"path": _TEXT, "bytes": _NUMBER, "changed": _YES_OR_NO}),
        offered_by=_has_pages,
        declare=_always(
            f"Write {OVERVIEW_PATH}, shown in every request, or detail/<name> and archive/<name>, which are not. With a "
            "section, only what stands under that heading.",
            _object(
                {
                    "path": _TEXT,
                    "text": _TEXT,
                    "section": _TEXT,
                    "append": {"type": "boolean"},
                },
                required=("path", "text"),
            ),
        ),
        run=_write,
    ),
    MemoryTool(
        name="memory_list",
        wire_name="memory_list",
        title="List the pages of memory",
        read_only=True,
        uses_pages=True,
        output=_all_of(
            {
                "documents": _list_of({"path": _TEXT, "bytes": _NUMBER, "begins": _TEXT}),
                "from_line": _NUMBER,
                "all": _NUMBER,
            }
        ),
        offered_by=_has_pages,
        declare=_always("List what memory_read can read.", _object({"from_line": _NUMBER})),
        run=_list,
    ),
    MemoryTool(
        name="compact_history",
        wire_name="compact_history",
        title="Compact the history",
        shows_pages=True,
        uses_pages=True,
        mcp_parameters={
            "keep_recent": {"description": "Turns that stay."},
            "archive_to": {"description": "A page of archive/; by default a new one."},
        },
        output=_all_of({"messages": _NUMBER, "tokens": _NUMBER, "archives": _TEXTS, "reason": _TEXT}),
        offered_by=_has_pages,
        declare=_always(
            "Take old conversation, tool outputs (tools) or both (all) out of what you are sent. All of it is "
            "archived, and memory_read reads it.",
            _object(
                {
                    "target": {"type": "string", "enum": list(TARGETS)},
                    "strategy": {"type": "string", "enum": ["archive", "summarize"]},
                    "keep_recent": _NUMBER,
                    "archive_to": _TEXT,
                },
                required=("target",),
            ),
        ),
        run=_compact,
    ),
    MemoryTool(
        name="resolve_reference",
        wire_name="resolve_reference",
        title="Resolve a reference",
        read_only=True,
        output=_all_of(
            {
                "verdict": {"type": "string", "enum": list(get_args(Verdict))},
                "entities": _list_of(_THING),
                "candidates": _list_of({**_THING, "confidence": _SHARE, "why": _TEXT}),
                "confidence": _SHARE,
                "question": _TEXT,
                "why": _TEXT,
            }
        ),
        offered_by=lambda layer: isinstance(layer, EntityLayer),
        declare=_always(
            'Find which thing a person means ("that page", "the other one"), also one that is no longer listed.',
            _object({"text": _TEXT}, required=("text",)),
        ),
        run=_resolve,
    ),
    MemoryTool(
        name="working_memory_show",
        wire_name="working_memory_show",
        title="Show what is in mind",
        read_only=True,
        shows_pages=True,
        mcp_only=True,
        uses_pages=True,
        output=_all_of({"layers": _list_of({"layer": _TEXT, "text": _TEXT, "left_out": _NUMBER})}),
        offered_by=lambda _: True,
        declare=_always(
            "Show all that you have in mind: state, notes, scratchpad, overview, and the things that were spoken of, "
            "with their ids.",
            _object({}),
        ),
        run=_show,
    ),
    MemoryTool(
        name="working_memory_observe",
        wire_name="working_memory_observe",
        title="Tell what a tool did",
        mcp_only=True,
        uses_pages=True,
        mcp_parameters={"result": {"description": "What it answered: JSON or text, as it is."}},
        output=_all_of({"id": _TEXT}),
        offered_by=lambda layer: isinstance(layer, EntityLayer),
        declare=_always(
            "Tell what another tool of yours did, where it made, changed or found things that will be spoken of: they "
            "come to mind, and resolve_reference knows them.",
            _object(
                {"tool": _TEXT, "arguments": {"type": "object"}, "result": _TEXT, "error": _YES_OR_NO},
                required=("tool", "result"),
            ),
        ),
        run=_observe,
    ),
)

_BY_NAME = {name: tool for tool in TOOLS for name in (tool.name, tool.wire_name, tool.legacy_name) if name}


def _as_openai(tool: MemoryTool, declared: ToolDeclaration) -> dict[str, Any]:
    function = {"name": tool.wire_name, "description": declared.description, "parameters": dict(declared.parameters)}
    return {"type": "function", "function": function}


def _as_responses(tool: MemoryTool, declared: ToolDeclaration) -> dict[str, Any]:
    return {"type": "function", **_as_openai(tool, declared)["function"], "strict": False}


def _as_anthropic(tool: MemoryTool, declared: ToolDeclaration) -> dict[str, Any]:
    return {"name": tool.wire_name, "description": declared.description, "input_schema": dict(declared.parameters)}


def _as_mcp(tool: MemoryTool, declared: ToolDeclaration) -> dict[str, Any]:
    return {
        "name": tool.wire_name,
        "title": tool.title,
        "description": declared.description,
        "inputSchema": _in_words(declared.parameters, tool.mcp_parameters),
        "outputSchema": dict(tool.output),
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.overwrites,
            "idempotentHint": tool.read_only,
            "openWorldHint": False,
        },
    }


def _in_words(parameters: Mapping[str, Any], words: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    properties = {name: {**one, **words.get(name, {})} for name, one in parameters["properties"].items()}
    return {**parameters, "properties": properties}


_SHAPES: dict[str, Callable[[MemoryTool, ToolDeclaration], dict[str, Any]]] = {
    "openai": _as_openai,
    "responses": _as_responses,
    "anthropic": _as_anthropic,
    "mcp": _as_mcp,
}
_UNPROMPTED = "mcp"
"""Its clients are sent no prompt of ours."""


_ADDING = frozenset({"additional_tools", "tool_addition"})


def _is_function(tool: Mapping[str, Any]) -> bool:
    """A tool with a name of its own that stands for one function, in any provider's shape."""
    return tool.get("type", "function") in ("function", "custom") and bool(tool_names([tool]))


def _offering(tool: MemoryTool, layers: Sequence[Layer]) -> Layer | None:
    return next((layer for layer in layers if tool.offered_by(layer)), None)


def _arguments(call: Call) -> dict[str, Any]:
    """The object that a model meant. It is text that a model wrote: broken JSON is an everyday matter."""
    try:
        given: Any = json.loads(call.arguments or "{}")
        if isinstance(given, str):  # some models write the object as text once more
            given = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(field="arguments", value=call.arguments, expected=f"a JSON object ({error})") from error
    if not isinstance(given, dict):
        raise InvalidInput(field="arguments", value=given, expected="a JSON object")
    return given  # pyright: ignore[reportUnknownVariableType] -- keys of a JSON object are texts


def _taken(arguments: dict[str, Any], declared: ToolDeclaration | None) -> dict[str, Any]:
    """Those that the tool has. A name that it does not know was misspelt: passed over, `apend` would overwrite what it
    was to add to. A null says nothing, and some models pad with it."""
    if declared is None or declared.open:
        return arguments
    known = declared.parameters["properties"]
    for name in arguments:
        if name not in known and arguments[name] is not None:
            raise InvalidInput(field="arguments", value=name, expected=", ".join(known) or "none")
    return {name: value for name, value in arguments.items() if name in known}


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments.get(key)
    if not isinstance(value, str):
        raise InvalidInput(field=key, value=value, expected="a text")
    return value


def _number(arguments: Mapping[str, Any], key: str) -> Any:
    """A number as a model has written it, checked by whoever takes it. Some write it as text, or with a point; `truth`
    does the same for yes and no."""
    value = arguments.get(key)
    if isinstance(value, str) and _NUMERAL.fullmatch(value):
        value = float(value) if "." in value else int(value)
    return None if value == "" else int(value) if isinstance(value, float) and value.is_integer() else value


_NUMERAL = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
