"""Calls to the layers of a session, and the context that they get."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import MessageAdded, RetainedItem, ShownVersions
from inmind.core.messages.format import Format
from inmind.documents.document import NOTES_PAGE_PATH, Document
from inmind.history import History
from inmind.history.compaction.stubs import shown_ids
from inmind.history.turns import ReadMessage
from inmind.prompt.layers.base import Layer, LayerContext, LayerText, ViewLayer, call_layer, check_stored_draft
from inmind.prompt.layers.builtin import DocumentLayer
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, find_scratchpad
from inmind.prompt.plan import PromptPlan
from inmind.session.context import SessionContext
from inmind.session.state import ResourceState, SessionState
from inmind.store.stream import Stream


class LayerCalls:
    """Calls the layers of one session: `recall`, `store` and `tools`."""

    def __init__(
        self,
        context: SessionContext,
        items_in_memory: Callable[[History], Sequence[RetainedItem]],
        read: ReadMessage,
    ) -> None:
        """`items_in_memory` returns the retained items that no sent message contains."""
        self._items_in_memory, self._read = items_in_memory, read
        self._context, self._resource, self._ancestors = context, context.resource, context.ancestors
        self._layers, self._limits = context.config.layers, context.config.limits
        self._ids_by_message: dict[str, frozenset[str]] = {}

    def recall(self, state: SessionState, now: datetime) -> list[tuple[Layer, LayerText]]:
        """The texts of all layers for a prompt.

        An empty one is not rendered, but the tail describes how it changes.
        """
        context = self.layer_context(state, now)
        texts = [(layer, call_layer(layer, partial(layer.recall, context), _RECALLED)) for layer in self._layers]
        return [(layer, text) for layer, text in texts if text is not None]

    def tools(self, fmt: Format) -> list[Any]:
        """The tools that the layers offer to the model, in a provider's format."""
        return [tool for layer in self._layers for tool in call_layer(layer, partial(layer.tools, fmt.name), _LIST)]

    def store_replies(self, state: SessionState, now: datetime, drafts: Sequence[Draft]) -> list[Draft]:
        """Events by which layers store the assistant's messages among these drafts."""
        replies = [
            d.payload.wire for d in drafts if isinstance(d.payload, MessageAdded) and d.origin is Origin.ASSISTANT
        ]
        if not replies:
            return []
        context = self.layer_context(state, now)
        return [
            check_stored_draft(layer, draft)
            for wire in replies
            for layer in self._layers
            for draft in call_layer(layer, partial(layer.store, context, wire), _LIST)
        ]

    def layer_context(
        self, state: SessionState, now: datetime, ancestors: Sequence[Stream[SessionState]] | None = None
    ) -> LayerContext:
        """The values that a layer may read.

        `parent` has the current values of the parent session, and so on.
        """
        is_own = ancestors is None
        streams = self._ancestors if ancestors is None else ancestors
        resource_state = self._resource.state
        return LayerContext(
            session=state.stream.removeprefix("session/"),
            resource=self._context.resource_name,
            now=now,
            documents={**self._resource_pages(resource_state), **state.documents.by_path},
            messages=state.history.sent.wires,
            entities=state.entities,
            scratchpads={"thread": state.scratchpads, "resource": resource_state.scratchpads},
            is_visible=state.history.sent.contains_event if is_own else _contains_nothing,
            visible_ids=self._shown_ids(state.history) if is_own else frozenset(),
            parent=self.layer_context(streams[0].state, now, streams[1:]) if streams else None,
            language=state.language,
            retained=self._items_in_memory(state.history),
            window=self._limits.window,
        )

    def refresh_ancestors(self) -> None:
        """Load changes of the ancestors if a layer is a view of one of them."""
        if any(isinstance(layer, ViewLayer) for layer in self._layers):
            for ancestor in self._ancestors:
                ancestor.refresh()

    def fully_shown_documents(
        self, state: SessionState, planned: PromptPlan, recalled: Sequence[tuple[Layer, LayerText]]
    ) -> ShownVersions | None:
        """Pages, and the scratchpad, that a prompt shows in full.

        None if they are the same as in the prompt before.

        A scratchpad with a schema counts even if it is cut: each of its fields is shown in full or left out.
        """
        cut = {layer for layer, _ in planned.cut}
        pages = state.documents.by_path
        paths = [layer.path for layer, _ in recalled if isinstance(layer, DocumentLayer) and layer.name not in cut]
        seen = {path: pages[path].source for path in paths if path in pages}
        pad = find_scratchpad(self._layers)
        if pad is not None and (pad.schema is not None or pad.name not in cut):
            thread = pad.scope == "thread"
            stream, pads = (
                (state.stream, state.scratchpads) if thread else (self._resource.name, self._resource.state.scratchpads)
            )
            seen[SCRATCHPAD_PATH] = pad.source(stream, pads)
        return None if seen == state.shown_in_prompt else tuple(seen.items())

    def _shown_ids(self, history: History) -> frozenset[str]:
        """Ids in the stubs and calls that are sent; each message is read once."""
        known = self._ids_by_message
        self._ids_by_message = {
            entry.digest: known[entry.digest] if entry.digest in known else shown_ids(entry, self._read(entry))
            for entry in (history.sent if history.compactions else ())
        }
        return frozenset[str]().union(*self._ids_by_message.values())

    def _resource_pages(self, resource_state: ResourceState) -> Mapping[str, Document]:
        """Documents of the resource that layers may read.

        An anonymous session has its own notes page.
        """
        pages = resource_state.documents.by_path
        return (
            {path: page for path, page in pages.items() if path != NOTES_PAGE_PATH}
            if self._context.is_anonymous
            else pages
        )


_LIST = (list, tuple)
_RECALLED = (LayerText, type(None))


def _contains_nothing(_: str) -> bool:
    return False
