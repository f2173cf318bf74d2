"""The layer protocol: one kind of memory in the prompt. Hosts can write layers.

A layer returns the text it wants in the prompt. It does not decide its budget, does not escape, and does not see the
store, so a layer of a host cannot break the budget, the delimiters or the provider's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import IntEnum
from typing import Any, Literal, Protocol, TypeVar, cast

from inmind.core.events.base import Draft, Trust
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import AnchoredBlock, RetainedItem
from inmind.core.frozen import frozen
from inmind.core.text import TruncatedText
from inmind.core.tokens import Counter
from inmind.documents.document import Document, Scope, resolve_path, validate_text
from inmind.documents.scratchpad.state import Scratchpads
from inmind.entities.window import Entities
from inmind.errors import InmindError, InvalidInput, LayerFailed, short_repr

Spawn = Literal["fork", "view", "none"]

T = TypeVar("T")


class Slot(IntEnum):
    """Positions of the built-in layers, lowest first.

    Layers of a host may use any number between.
    """

    STATE = 90
    SCRATCHPAD = 100
    RETAINED = 105
    OVERVIEW = 110
    ENTITIES = 150
    RECALL = 400


@frozen
class Budget:
    """Guaranteed tokens (`min`) and maximum tokens (`max`) of a layer."""

    min: int = 0
    max: int = 1_500
    reserved: bool = False
    """The layer gets its full demand before all others, and before recent messages are removed."""

    def __post_init__(self) -> None:
        are_integers = isinstance(self.min, int) and isinstance(self.max, int)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not are_integers or not 0 <= self.min <= self.max:
            raise InvalidInput(field="budget", value=(self.min, self.max), expected="0 <= min <= max")


@frozen
class LayerText:
    """The text of a layer for the prompt, and the events it comes from."""

    text: str
    sources: tuple[str, ...] = ()
    pointer: str = "[cut to fit]"
    """Line that replaces text that did not fit; it says how to read the rest."""
    trust: Trust = Trust.OPERATOR
    """Lowest trust of the sources; OPERATOR for a text of the host."""
    banner: str = ""
    """A line above the text, written by the layer and not from memory: it is not escaped."""
    tag: Literal["memory", "working_memory"] = "memory"
    """Tag of the block in the prompt; `working_memory` is the scratchpad's."""
    left_out: int = 0
    """Lines that the layer left out because of a limit other than tokens."""
    shorten: Callable[[int, Counter], TruncatedText] | None = None
    """Returns the text within a number of tokens; without it the end is cut."""
    describe_changes: Callable[[AnchoredBlock, Counter], str | None] | None = None
    """Returns the changes since a shown block, empty for none; without it, or for None, a line diff is used."""

    def __post_init__(self) -> None:
        validate_text(self.text, field="text")
        validate_text(self.pointer, field="pointer")
        validate_text(self.banner, field="banner")
        for source in self.sources:
            validate_text(source, field="sources")
        if self.tag not in ("memory", "working_memory"):
            raise InvalidInput(field="tag", value=self.tag, expected="memory or working_memory")
        if not isinstance(self.trust, Trust):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="trust", value=self.trust, expected="a Trust")


def _no_scratchpads() -> dict[Scope, Scratchpads]:
    return {"thread": Scratchpads(), "resource": Scratchpads()}


@frozen(kw_only=True)
class LayerContext:
    """Everything a layer may read.

    It depends only on the state of the session, so the same state always gives the same text.
    """

    session: str
    resource: str
    now: datetime
    documents: Mapping[str, Document]
    """Documents of the session and of its resource, by path."""
    messages: Sequence[Mapping[str, Any]]
    entities: Entities = field(default_factory=Entities)
    scratchpads: Mapping[Scope, Scratchpads] = field(default_factory=_no_scratchpads)
    """Scratchpads of the session and of its resource."""
    is_visible: Callable[[str], bool] = bool
    """True if the message of this event is in the sent conversation."""
    visible_ids: Collection[str] = frozenset()
    """Ids in the stubs and calls that are sent, once messages are archived."""
    parent: LayerContext | None = None
    """Context of the parent session, for a child session."""
    language: str = "en"
    """Language of the session."""
    retained: Sequence[RetainedItem] = ()
    """Retained items that no sent message has: those of messages that have left the prompt, and those that the host
    has added. `session.retained` has all of them."""
    window: int = 128_000
    """Tokens of the context window."""


class Layer(Protocol):
    """One kind of memory in the prompt: name, slot, scope, budget and four methods.

    `PlainLayer` implements all methods but `recall`.
    """

    @property
    def name(self) -> str: ...
    @property
    def slot(self) -> int: ...
    @property
    def scope(self) -> Scope:
        """Owner of its data, session or resource.

        With `spawn` it decides what a child session gets.
        """
        ...

    @property
    def budget(self) -> Budget: ...

    def recall(self, context: LayerContext) -> LayerText | None:
        """Return the text for the prompt, not escaped and not cut; None for nothing."""
        ...

    def store(self, context: LayerContext, reply: Mapping[str, Any]) -> Sequence[Draft]:
        """Return events to store with an assistant message, committed together with it."""
        ...

    def spawn(self) -> Spawn:
        """Return how a child session gets the layer: a copy, a read-only view, or nothing."""
        ...

    def tools(self, format: str) -> Sequence[Mapping[str, Any]]:
        """Return tools to offer in addition to the host's, in the provider's format."""
        ...


class PlainLayer:
    """Default methods: stores nothing, offers no tools, is not passed to children."""

    scope: Scope = "thread"

    def store(self, context: LayerContext, reply: Mapping[str, Any]) -> Sequence[Draft]:  # noqa: ARG002 -- the protocol's
        return ()

    def spawn(self) -> Spawn:
        return "none"

    def tools(self, format: str) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 -- the protocol's
        return ()


class ViewLayer(PlainLayer):
    """A parent's layer in a child session, read-only: it reads the parent's context."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.name, self.slot, self.budget = layer.name, layer.slot, layer.budget
        self.scope: Scope = layer.scope

    def recall(self, context: LayerContext) -> LayerText | None:
        return self.layer.recall(context.parent) if context.parent is not None else None

    def spawn(self) -> Spawn:
        return "view"


def unwrap_view(layer: Layer) -> tuple[Layer, int]:
    """Return the layer inside views, and the number of generations up.

    The number is 0 for a layer of the session itself.
    """
    height = 0
    while isinstance(layer, ViewLayer):
        layer, height = layer.layer, height + 1
    return layer, height


def check_layers(layers: object) -> tuple[Layer, ...]:
    """Return validated layers in slot order: unique names, slots, budgets and all four methods."""
    if not isinstance(layers, list | tuple):
        raise InvalidInput(field="layers", value=layers, expected="a list of layers")
    chosen = cast(tuple[Layer, ...], tuple(layers))  # pyright: ignore[reportUnknownArgumentType] -- checked below
    for index, layer in enumerate(chosen):
        for attribute, kind, expected in _ATTRIBUTES:
            value = getattr(layer, attribute, None)
            if not isinstance(value, kind) or isinstance(value, bool) or value == "":
                raise InvalidInput(field=f"layers[{index}].{attribute}", value=value, expected=expected)
        validate_text(layer.name, field=f"layers[{index}].name")
        for method in ("recall", "store", "spawn", "tools"):
            if not callable(getattr(layer, method, None)):
                raise InvalidInput(field=f"layers[{index}].{method}", value=None, expected="a method; see PlainLayer")
    names = [layer.name for layer in chosen]
    if len(set(names)) < len(names):
        raise InvalidInput(field="layers", value=names, expected="unique names")
    return tuple(sorted(chosen, key=lambda layer: layer.slot))


def call_layer(layer: Layer, call: Callable[[], T], kind: type[T] | tuple[type, ...]) -> T:
    """Call a layer method; an exception or wrong result raises LayerFailed with the layer name."""
    try:
        result = call()
    except InmindError:
        raise
    except Exception as error:  # a layer of the host may raise anything
        raise LayerFailed(layer=layer.name, reason=f"{type(error).__name__}: {error}") from error
    if not isinstance(result, kind):
        raise LayerFailed(layer=layer.name, reason=f"it returned {short_repr(result)}")
    return result


def check_stored_draft(layer: Layer, draft: object) -> Draft:
    """Return the draft if a layer may store it: a session document with valid path and text."""
    payload = draft.payload if isinstance(draft, Draft) else None
    if not isinstance(draft, Draft) or not isinstance(payload, DocumentWritten):
        raise LayerFailed(layer=layer.name, reason=f"it may only store documents, not {short_repr(draft)}")
    scope, _ = resolve_path(payload.path)
    if scope != "thread":
        raise LayerFailed(layer=layer.name, reason=f"{payload.path} belongs to the resource, not to the session")
    validate_text(payload.text)
    return draft


_ATTRIBUTES: tuple[tuple[str, type, str], ...] = (
    ("name", str, "a name"),
    ("slot", int, "a whole number"),
    ("budget", Budget, "a Budget"),
)
