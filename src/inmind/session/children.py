"""Open child sessions.

Of each layer of its parent a child inherits a copy (fork), a view, or nothing. A view is the layer itself, called with
the context of the parent. A copy belongs to the child from its first event on: a child that dies has changed nothing in
its parent, and its changes are in its own stream until they are merged back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from inmind.core.encoding import digest
from inmind.core.events.base import Draft, EventPayload, Origin, Trust
from inmind.core.events.documents import DocumentWritten, ScratchpadStarted
from inmind.core.events.session import EntitiesRestored, Retained, RetainedItem, SessionOpened
from inmind.documents.document import ARCHIVE_PREFIX, OVERVIEW_PATH, Document
from inmind.documents.overview.event_log import with_log_lines
from inmind.entities.serialize import deserialize, serialize
from inmind.errors import InvalidInput
from inmind.prompt.layers.base import Layer, LayerContext, LayerText, Spawn, ViewLayer, unwrap_view
from inmind.prompt.layers.builtin import EntityLayer, RetainedLayer
from inmind.prompt.layers.scratchpad import ScratchpadLayer
from inmind.session.compaction_plan import CompactionPlanner
from inmind.session.context import SessionContext
from inmind.session.state import ResourceState, SessionState
from inmind.store.stream import key_for


def prepare_child(
    context: SessionContext, planner: CompactionPlanner, id: str | None, policy: object, key: str | None
) -> tuple[str, SessionOpened, list[Draft]]:
    """The id of a child, its opening event, and the events that it inherits.

    The same id is the same child. Without an id, it is derived from the key.
    """
    checked_key = key_for(key, "spawn")
    state, resource_state = context.stream.refresh(), context.resource.refresh()
    policies = _inherit_policies(context.config.layers, policy)
    opened = state.opened or SessionOpened(resource="", cwd="")
    suffix = digest(checked_key.value) if checked_key else os.urandom(4).hex()
    child_id = f"{context.id}.{suffix}" if id is None else id
    opening = replace(opened, parent=context.id, inheritance=tuple(policies.items()))
    states = [state, *(ancestor.refresh() for ancestor in context.ancestors)]
    drafts: dict[str, Draft] = {}
    for layer in context.config.layers:
        if policies[layer.name] == "fork":
            own, height = unwrap_view(layer)
            if isinstance(own, RetainedLayer):
                above = states[height::-1]
                items = [(state, item) for state in above for item in planner.retained_items(state.history)]
                drafts |= _copied_items(items)
            else:
                drafts |= _copies(own, states[height], resource_state)
    return child_id, opening, list(drafts.values())


def _inherit_policies(layers: Sequence[Layer], policy: object) -> dict[str, Spawn]:
    """The policy of each layer: from the caller, for all or by name, or else from the layer."""
    own: dict[str, Spawn] = {layer.name: _policy(layer.spawn(), f"{layer.name}.spawn") for layer in layers}
    if policy is None:
        return own
    if isinstance(policy, Mapping):
        policies = cast(Mapping[Any, Any], policy)
        if unknown := [name for name in policies if name not in own]:
            raise InvalidInput(field="policy", value=unknown[0], expected=f"a layer: {', '.join(own)}")
        return {**own, **{name: _policy(value, f"policy[{name!r}]") for name, value in policies.items()}}
    return dict.fromkeys(own, _policy(policy, "policy"))


def child_layers(layers: Sequence[Layer], policies: Mapping[str, str]) -> tuple[Layer, ...]:
    """The layers of a child. A layer that the parent does not have belongs to the child."""
    return tuple(_child_layer(layer, policies.get(layer.name, "none")) for layer in layers)


def copy_draft(payload: EventPayload, sources: Sequence[str], trust: Trust) -> Draft:
    """An event copied from another session, with its sources and its trust."""
    return Draft(payload=payload, origin=Origin.OPERATOR, sources=tuple(filter(None, sources)), trust=trust)


def keeps_documents(layer: Layer) -> bool:
    """True if a layer stores documents. A host's layers do."""
    return not isinstance(layer, ScratchpadLayer | EntityLayer | ViewLayer)


def _copies(layer: Layer, state: SessionState, resource_state: ResourceState) -> dict[str, Draft]:
    """Copies for one layer, keyed by the copied item.

    Layers that store documents share the same copies.
    """
    if isinstance(layer, ScratchpadLayer):
        pads = state.scratchpads if layer.scope == "thread" else resource_state.scratchpads
        pad, content = pads.get(layer.name), layer.current_state(pads)
        source, trust = (pad.source, pad.trust) if pad else ("", Trust.OPERATOR)
        return {layer.name: copy_draft(ScratchpadStarted(layer.name, content), (source,), trust)} if content else {}
    if isinstance(layer, EntityLayer):
        things = deserialize(serialize(state.entities))
        return {layer.name: copy_draft(EntitiesRestored(things), (), Trust.DATA)} if things else {}
    return {
        f"{path} (a page)": _copied_page(path, page, state)
        for path, page in state.documents.by_path.items()
        if not path.startswith(ARCHIVE_PREFIX)
    }


def _copied_items(items: Sequence[tuple[SessionState, RetainedItem]]) -> dict[str, Draft]:
    """Retained items of ancestors, as items that the child's host has declared."""
    return {
        f"{item.text} (an item)": copy_draft(
            Retained(_pinned(item)),
            (f"{state.stream}#{item.seq}" if item.seq else "",),
            Trust.PERSON if item.seq else Trust.OPERATOR,
        )
        for state, item in items
    }


def _pinned(item: RetainedItem) -> RetainedItem:
    """The item as a pinned text.

    The child has its own goal, and no message of the child has this text.
    """
    return RetainedItem("pinned", item.text)


class _RetainedView(ViewLayer):
    """Retained items of the parent, followed by the child's own items."""

    def recall(self, context: LayerContext) -> LayerText | None:
        own, height = unwrap_view(self)
        items, sources, above = list(context.retained), list[str](), context.parent
        for _ in range(height):
            if above is not None and (theirs := own.recall(above)) is not None:
                items[:0] = map(_pinned, above.retained)
                sources += theirs.sources
            above = above.parent if above else None
        recalled = own.recall(replace(context, retained=tuple(dict.fromkeys(items))))
        return replace(recalled, sources=(*sources, *recalled.sources)) if recalled else None


def _copied_page(path: str, page: Document, state: SessionState) -> Draft:
    """A copied page, without memory's lines about archives: the child has none of them."""
    text = (
        with_log_lines(page.text, state.overview_lines.without_compactions(), state.language)
        if path == OVERVIEW_PATH
        else page.text
    )
    return copy_draft(DocumentWritten(path=path, text=text), (page.source,), page.trust)


def _child_layer(layer: Layer, policy: str) -> Layer:
    """A view may be inherited as a view. Otherwise the layer belongs to the child."""
    own, _ = unwrap_view(layer)
    if policy == "view":
        return _RetainedView(layer) if isinstance(own, RetainedLayer) else ViewLayer(layer)
    return own.for_session() if isinstance(own, ScratchpadLayer) else own


def _policy(value: object, field: str) -> Spawn:
    if value not in get_args(Spawn):
        raise InvalidInput(field=field, value=value, expected="fork, view or none")
    return cast(Spawn, value)
