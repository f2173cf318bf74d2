"""Calls to the layers of a session, and the context that they get."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import MessageAdded, ShownVersions
from inmind.core.messages.format import Format
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.history.compaction.stubs import shown_ids
from inmind.history.history import History
from inmind.prompt.layers.base import Layer, LayerContext, LayerText, ViewLayer, call_layer, check_stored_draft
from inmind.prompt.layers.builtin import DocumentLayer
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH, find_scratchpad
from inmind.prompt.plan import PromptPlan
from inmind.session.compaction_plan import CompactionPlanner
from inmind.session.context import SessionContext
from inmind.session.state import SessionState
from inmind.store.stream import Stream


class LayerCalls:
    """Calls the layers of one session: `recall`, `store` and `tools`."""

    def __init__(self, context: SessionContext, planner: CompactionPlanner) -> None:
        self._context, self._resource, self._ancestors = context, context.resource, context.ancestors
        self._layers, self._planner = context.config.layers, planner
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
        resource_pages = {
            path: page
            for path, page in resource_state.documents.by_path.items()
            if not (path == NOTES_PAGE_PATH and self._context.is_anonymous)  # it has its own notes page
        }
        return LayerContext(
            session=state.stream.removeprefix("session/"),
            resource=self._context.resource_name,
            now=now,
            documents={**resource_pages, **state.documents.by_path},
            messages=state.history.sent.wires,
            entities=state.entities,
            scratchpads={"thread": state.scratchpads, "resource": resource_state.scratchpads},
            is_visible=state.history.sent.contains_event if is_own else lambda _: False,
            visible_ids=self._shown_ids(state.history) if is_own else frozenset(),
            parent=self.layer_context(streams[0].state, now, streams[1:]) if streams else None,
            language=state.language,
            retained=self._planner.items_in_memory(state.history),
            window=self._context.config.limits.window,
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
            entry.digest: known[entry.digest]
            if entry.digest in known
            else shown_ids(entry, self._context.view.read_message(entry))
            for entry in (history.sent if history.compactions else ())
        }
        return frozenset[str]().union(*self._ids_by_message.values())


_LIST = (list, tuple)
_RECALLED = (LayerText, type(None))
