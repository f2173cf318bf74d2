"""What a child gets of each of its parent's layers: a copy, a view, or nothing.

A view is the layer itself, asked about the parent's moment. A copy is the child's own from its first event on: a child
that dies has changed nothing of its parent's, and what it did is in its own stream for whoever brings it home.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast, get_args

from inmind.core.events.base import Draft, EventPayload, Origin, Trust
from inmind.core.events.documents import DocumentWritten, ScratchpadStarted
from inmind.core.events.entities import EntitiesRestored
from inmind.core.events.session import Retained, RetainedItem
from inmind.documents.document import ARCHIVE_PREFIX, OVERVIEW_PATH, Document
from inmind.documents.overview.event_log import with_log_lines
from inmind.entities.serialize import deserialize, serialize
from inmind.errors import InvalidInput
from inmind.prompt.layers.base import Layer, LayerContext, LayerText, Spawn, ViewLayer, unwrap_view
from inmind.prompt.layers.builtin import EntityLayer
from inmind.prompt.layers.retained import RetainedLayer
from inmind.prompt.layers.scratchpad import ScratchpadLayer
from inmind.session.state import ResourceState, SessionState

RetainedItems = Callable[[SessionState], Sequence[RetainedItem]]
"""What must survive of a session, as far as its conversation has come."""


def inherit_policies(layers: Sequence[Layer], asked: object) -> dict[str, Spawn]:
    """How each layer is handed on: as the caller says, for all or by name, and else as the layer itself says."""
    own: dict[str, Spawn] = {layer.name: _policy(layer.spawn(), f"{layer.name}.spawn") for layer in layers}
    if asked is None:
        return own
    if isinstance(asked, Mapping):
        told = cast(Mapping[Any, Any], asked)
        if strangers := [name for name in told if name not in own]:
            raise InvalidInput(field="policy", value=strangers[0], expected=f"a layer: {', '.join(own)}")
        return {**own, **{name: _policy(policy, f"policy[{name!r}]") for name, policy in told.items()}}
    return dict.fromkeys(own, _policy(asked, "policy"))


def child_layers(layers: Sequence[Layer], handed: Mapping[str, str]) -> tuple[Layer, ...]:
    """The layers of a child. One that its parent did not have is the child's own."""
    return tuple(_child_layer(layer, handed.get(layer.name, "none")) for layer in layers)


def inherited_events(
    states: Sequence[SessionState],
    resource_state: ResourceState,
    layers: Sequence[Layer],
    handed: Mapping[str, Spawn],
    kept: RetainedItems,
) -> list[Draft]:
    """What a child begins with, as events of its own. `minds`: its parent's, and those of its parent's ancestors."""
    drafts: dict[str, Draft] = {}
    for layer in layers:
        if handed[layer.name] == "fork":
            own, height = unwrap_view(layer)
            if isinstance(own, RetainedLayer):
                drafts |= _copied_items([(state, item) for state in states[height::-1] for item in kept(state)])
            else:
                drafts |= _copies(own, states[height], resource_state)
    return list(drafts.values())


def copy_draft(what: EventPayload, sources: Sequence[str], trust: Trust) -> Draft:
    """What one session takes over from another: it says where it comes from, and is trusted no more than there."""
    return Draft(payload=what, origin=Origin.OPERATOR, sources=tuple(filter(None, sources)), trust=trust)


def keeps_documents(layer: Layer) -> bool:
    """What any other layer keeps, a host's own among them, it keeps in documents."""
    return not isinstance(layer, ScratchpadLayer | EntityLayer | ViewLayer)


def _copies(layer: Layer, state: SessionState, resource_state: ResourceState) -> dict[str, Draft]:
    """By what they are copies of: two layers that keep documents have the same ones."""
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
    """What must survive of some sessions, as their child has it: whoever has said it, there its host declares it."""
    return {
        f"{item.text} (an item)": copy_draft(
            Retained(_pinned(item)),
            (f"{state.stream}#{item.seq}" if item.seq else "",),
            Trust.PERSON if item.seq else Trust.OPERATOR,
        )
        for state, item in items
    }


def _pinned(item: RetainedItem) -> RetainedItem:
    """A child's goal is its own, and no message of its says this."""
    return RetainedItem("pinned", item.text)


class _RetainedView(ViewLayer):
    """What must survive of a parent, in front of what must of the child's own conversation: no view may hide that."""

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
    """What memory has entered about archives stays out: the child has none of them."""
    text = (
        with_log_lines(page.text, state.overview_lines.without_compactions(), state.language)
        if path == OVERVIEW_PATH
        else page.text
    )
    return copy_draft(DocumentWritten(path=path, text=text), (page.source,), page.trust)


def _child_layer(layer: Layer, policy: str) -> Layer:
    """A view may be handed on as a view; anything else is the child's own, whoever has what is copied."""
    kept, _ = unwrap_view(layer)
    if policy == "view":
        return _RetainedView(layer) if isinstance(kept, RetainedLayer) else ViewLayer(layer)
    return kept.for_session() if isinstance(kept, ScratchpadLayer) else kept


def _policy(value: object, field: str) -> Spawn:
    if value not in get_args(Spawn):
        raise InvalidInput(field=field, value=value, expected="fork, view or none")
    return cast(Spawn, value)
