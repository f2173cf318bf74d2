"""Types of all memory tools (tool, context, answer), and helpers for schemas and arguments.

A tool decides on values: it gets a `ToolContext` and returns the events to append and the text for the model. So a
reply with several tool calls is one decision and one commit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any

from inmind.core.events.base import Draft
from inmind.core.events.session import AnchoredBlock, ShownVersions
from inmind.core.frozen import frozen
from inmind.documents.document import Scope, resolve_path
from inmind.documents.scratchpad.state import ScratchpadState
from inmind.entities.references.result import Resolution
from inmind.errors import InvalidInput
from inmind.history.compaction.build import CompactionPlan
from inmind.prompt.layers.base import Layer
from inmind.prompt.layers.scratchpad import find_visible_scratchpad
from inmind.search.query import Hit, Query
from inmind.session.state import ResourceState, SessionState


@frozen
class MemoryView:
    """The memory blocks that a prompt would contain now, within their budgets."""

    blocks: Sequence[AnchoredBlock]
    complete: ShownVersions
    """Pages, and the scratchpad, that are shown in full, with the events that wrote them."""


@frozen(kw_only=True)
class ToolContext:
    """Everything that a tool may read."""

    now: datetime
    state: SessionState
    resource_state: ResourceState
    ancestors: Sequence[SessionState]
    """States of the parent session, its parent, and so on."""
    layers: Sequence[Layer]
    seen: Mapping[str, Sequence[str]]
    """Pages that the model had seen in full when it called, with the ids of the events that wrote the versions it saw.
    """
    page_as_seen: Callable[[str], str]
    """Returns the text of a page as the model saw it; empty if it did not see it."""
    scratchpad_as_seen: ScratchpadState | None
    """The scratchpad as the model saw it; None if it did not see it, or saw only a part of a text."""
    next_ids: Mapping[Scope, str]
    """Ids of the next event in the session's stream and in the resource's stream."""
    resolve: Callable[[str], Resolution]
    search: Callable[[Query], Sequence[Hit]]
    compact: Callable[[dict[str, Any]], CompactionPlan]
    memory_view: Callable[[], MemoryView]

    def knows(self, path: str) -> bool:
        """True if the model has seen the current version of a page in full."""
        page = self.state.documents.by_path.get(path)
        stream = f"{self.state.stream}#"
        seen = (int(id.removeprefix(stream)) for id in self.seen.get(path, ()) if id.startswith(stream))
        return page is not None and any(page.last_edit <= seq <= page.version for seq in seen)

    @property
    def scratchpad_text(self) -> str:
        """The scratchpad as the model reads it.

        It belongs to the session, or to an ancestor that the session has a view of.
        """
        visible = find_visible_scratchpad(self.layers)
        if visible is None:
            return ""
        layer, height = visible
        state = (self.state, *self.ancestors)[height]
        return layer.text(state.scratchpads if layer.scope == "thread" else self.resource_state.scratchpads)

    def page_text(self, path: str) -> str | None:
        scope, name = resolve_path(path, anonymous=self.state.is_anonymous)
        documents = self.state.documents if scope == "thread" else self.resource_state.documents
        return documents.text(name) if name in documents.by_path else None


@frozen(kw_only=True)
class ToolAnswer:
    """The outcome of a tool call: the text for the model and the events to append."""

    text: str
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The same as JSON, in the schema of the tool's `output`; empty for an error."""
    drafts: tuple[Draft, ...] = ()
    """Events to append. Their sources do not include the call itself; the caller adds it."""
    scope: Scope = "thread"
    about: str = ""
    """Path of the page that the answer shows or the call has written, or `SCRATCHPAD`."""
    complete: bool = False
    """True if the answer shows all of that page, or the call has written all of it."""
    shows: ShownVersions = ()
    """Other pages that the answer shows in full, with the events that wrote them."""
    tagged: bool = False
    """The text has memory's tags around it and is already inert."""
    error: bool = False
    code: str = ""
    """Code of the error, if `error` is set."""
    diagnostic: str = ""

    @property
    def refused(self) -> bool:
        """True if the call had no effect.

        Under a tool's legacy name a refusal is not an error, only a diagnostic.
        """
        return self.error or bool(self.diagnostic)


@frozen
class ToolDeclaration:
    """A tool as one layer offers it."""

    description: str
    parameters: Mapping[str, Any]
    open: bool = False
    """Accepts fields outside the schema; the tool checks them itself."""


@frozen(kw_only=True)
class MemoryTool:
    """One memory tool, declared once; the schemas of all providers are made from it."""

    name: str
    legacy_name: str = ""
    """A name from an older convention. Errors under it are dropped with a diagnostic instead of shown to the model."""
    title: str
    """Human-readable title, for MCP clients."""
    run: Callable[[ToolContext, Layer, dict[str, Any]], ToolAnswer]
    offered_by: Callable[[Layer], bool]
    """True if a layer offers this tool."""
    declare: Callable[[Layer], ToolDeclaration | None]
    """Returns the declaration for a layer, or None if the tool is not advertised there. A call is still executed."""
    output: Mapping[str, Any]
    """JSON schema of `content`."""
    scope: Callable[[Layer, bool], Scope] = lambda _, __: "thread"
    """Returns the stream that the tool writes to, given the layer and whether the session is anonymous."""
    read_only: bool = False
    """Changes nothing that can be read. A search is still recorded, because a hit makes a crystal last longer."""
    overwrites: bool = False
    """Can replace existing text. The call is therefore checked against what the caller has `seen`."""
    shows_pages: bool = False
    """The answer can show a page, or the scratchpad, in full; `seen` then names it."""
    uses_pages: bool = False
    """Reads or writes pages, so edits in live files have to be read first."""

    @property
    def wire_name(self) -> str:
        """The name sent to providers. Most of them reject a slash."""
        return self.name.replace("-", "_").replace("/", "_")


TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}


def choice(values: Iterable[str]) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def described(schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {**schema, "description": text}


def list_of(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def object_schema(*required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with these properties, of which some are required."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def record_schema(**properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object that always has all of its properties."""
    return object_schema(*properties, **properties)


def declares(
    description: str, *required: str, **parameters: Mapping[str, Any]
) -> Callable[[Layer], ToolDeclaration | None]:
    """The same declaration for every layer that offers the tool."""
    declaration = ToolDeclaration(description, object_schema(*required, **parameters))
    return lambda _: declaration


def text_argument(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments.get(key)
    if not isinstance(value, str):
        raise InvalidInput(field=key, value=value, expected="a string")
    return value


def number_argument(arguments: Mapping[str, Any], key: str) -> Any:
    """A number as the model wrote it; the caller checks its range.

    Some models write numbers as text or with a decimal point. `parse_bool` does the same for booleans.
    """
    value = arguments.get(key)
    if isinstance(value, str) and _NUMERAL.fullmatch(value):
        value = float(value) if "." in value else int(value)
    return None if value == "" else int(value) if isinstance(value, float) and value.is_integer() else value


_NUMERAL = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")


@frozen(kw_only=True)
class ToolResult:
    """The result of a memory tool that was called with `Session.call_tool`."""

    text: str
    """The text for the model."""
    content: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The same as JSON, in the schema of the tool's `outputSchema`; empty for an error."""
    error: bool = False
    code: str = ""
    """Code of the error, if `error` is set."""
    seen: Mapping[str, str] = field(default_factory=dict[str, str])
    """Pages, and the scratchpad, that the caller now knows in full, with the ids of the events that wrote them."""
    repeated: bool = False
    """The same call was made before with this key; nothing was done again."""

    def __str__(self) -> str:
        return self.text
