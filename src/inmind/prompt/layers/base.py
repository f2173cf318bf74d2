"""A layer: one kind of memory that asks for a place in the prompt. Hosts write their own.

A layer says what it would like the model to read; it never decides how much room it gets, never escapes, never
sees the store. That keeps a foreign layer from breaking the budget, the boundary or the provider's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import IntEnum
from typing import Any, Literal, Protocol, TypeVar, cast

from inmind.core.events.base import Draft, Trust
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.prompt import AnchoredBlock
from inmind.core.events.session import RetainedItem
from inmind.core.frozen import frozen
from inmind.core.text import Cut
from inmind.core.tokens import Counter
from inmind.documents.document import Document, Scope, resolve_path, validate_text
from inmind.documents.scratchpad.state import Scratchpads
from inmind.entities.window import Entities
from inmind.errors import InmindError, InvalidInput, LayerFailed, short_repr

Spawn = Literal["fork", "view", "none"]

T = TypeVar("T")


class Slot(IntEnum):
    """Where the built-in layers stand, lowest first; a host's layer may take any number between."""

    STATE = 90
    SCRATCHPAD = 100
    RETAINED = 105
    OVERVIEW = 110
    ENTITIES = 150
    RECALL = 400


@frozen
class Budget:
    """Tokens a layer is promised (`min`) and the most it is ever given (`max`)."""

    min: int = 0
    max: int = 1_500
    reserved: bool = False
    """It gets what it wants before the others get anything, and before what is recent has to leave."""

    def __post_init__(self) -> None:
        whole = isinstance(self.min, int) and isinstance(self.max, int)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not whole or not 0 <= self.min <= self.max:
            raise InvalidInput(field="budget", value=(self.min, self.max), expected="0 <= min <= max")


@frozen
class LayerText:
    """What a layer wants the model to read, and the events it comes from."""

    text: str
    sources: tuple[str, ...] = ()
    pointer: str = "[cut to fit]"
    """Stands in the place of what did not fit: where to find the rest."""
    trust: Trust = Trust.OPERATOR
    """The least of its sources; a text that the host itself provides is the operator's."""
    banner: str = ""
    """A line above the text, of the layer's own and not from memory: it is not escaped."""
    tag: Literal["memory", "working_memory"] = "memory"
    """What the block is called in the prompt; `working_memory` is the scratchpad's."""
    left_out: int = 0
    """Lines that the layer itself has left out, since there is a limit to it that is not of tokens."""
    shorten: Callable[[int, Counter], Cut] | None = None
    """How to say it in so many tokens; without this it is cut at the end."""
    describe_changes: Callable[[AnchoredBlock, Counter], str | None] | None = None
    """What to say beside a block that was shown earlier, which may be nothing; None, or without this, it is the lines
    that differ."""

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
    """All that a layer may look at: values, so that the same moment always recalls the same."""

    session: str
    resource: str
    now: datetime
    documents: Mapping[str, Document]
    """Of the session and of its resource, by path."""
    messages: Sequence[Mapping[str, Any]]
    entities: Entities = field(default_factory=Entities)
    scratchpads: Mapping[Scope, Scratchpads] = field(default_factory=_no_scratchpads)
    """Scratchpads of the session and of its resource."""
    is_visible: Callable[[str], bool] = bool
    """Does the message of this event stand in the conversation that the model is sent?"""
    parent: LayerContext | None = None
    """The moment of the session that this one was spawned from."""
    language: str = "en"
    """That the session began in."""
    retained: Sequence[RetainedItem] = ()
    """What must survive, of messages that are no longer sent as they are, and what the host has declared."""
    window: int = 128_000
    """Tokens that the model takes."""


class Layer(Protocol):
    """Name, place, scope, budget, and four questions. `PlainLayer` answers all but `recall`."""

    @property
    def name(self) -> str: ...
    @property
    def slot(self) -> int: ...
    @property
    def scope(self) -> Scope:
        """Whether what it keeps belongs to the session or to the resource; for sub-agents, with `spawn`."""
        ...

    @property
    def budget(self) -> Budget: ...

    def recall(self, context: LayerContext) -> LayerText | None:
        """The text for the prompt, unescaped and uncut; None for nothing."""
        ...

    def store(self, context: LayerContext, reply: Mapping[str, Any]) -> Sequence[Draft]:
        """What to keep from an assistant's message; committed together with it."""
        ...

    def spawn(self) -> Spawn:
        """What a sub-agent gets of it: a copy, a read-only view, or nothing."""
        ...

    def tools(self, format: str) -> Sequence[Mapping[str, Any]]:
        """Tools to offer beside the host's, in the provider's shape."""
        ...


class PlainLayer:
    """The quiet answers: keeps nothing from replies, offers no tools, is not handed on."""

    scope: Scope = "thread"

    def store(self, context: LayerContext, reply: Mapping[str, Any]) -> Sequence[Draft]:  # noqa: ARG002 -- the protocol's
        return ()

    def spawn(self) -> Spawn:
        return "none"

    def tools(self, format: str) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 -- the protocol's
        return ()


class ViewLayer(PlainLayer):
    """A parent's layer in a child that may look at it and not change it: it is asked about the parent's moment."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.name, self.slot, self.budget = layer.name, layer.slot, layer.budget
        self.scope: Scope = layer.scope

    def recall(self, context: LayerContext) -> LayerText | None:
        return self.layer.recall(context.parent) if context.parent is not None else None

    def spawn(self) -> Spawn:
        return "view"


def unwrap_view(layer: Layer) -> tuple[Layer, int]:
    """The layer that a view shows, and how many generations up that is kept; 0 for a session's own."""
    height = 0
    while isinstance(layer, ViewLayer):
        layer, height = layer.layer, height + 1
    return layer, height


def check_layers(layers: object) -> tuple[Layer, ...]:
    """Layers that can be asked: names of their own, places, budgets, and an answer to each of the four questions."""
    if not isinstance(layers, list | tuple):
        raise InvalidInput(field="layers", value=layers, expected="a list of layers")
    chosen = cast(tuple[Layer, ...], tuple(layers))  # pyright: ignore[reportUnknownArgumentType] -- checked below
    for index, layer in enumerate(chosen):
        for attribute, kind, expected in _ATTRIBUTES:
            value = getattr(layer, attribute, None)
            if not isinstance(value, kind) or isinstance(value, bool) or value == "":
                raise InvalidInput(field=f"layers[{index}].{attribute}", value=value, expected=expected)
        validate_text(layer.name, field=f"layers[{index}].name")
        for question in ("recall", "store", "spawn", "tools"):
            if not callable(getattr(layer, question, None)):
                raise InvalidInput(field=f"layers[{index}].{question}", value=None, expected="a method; see PlainLayer")
    names = [layer.name for layer in chosen]
    if len(set(names)) < len(names):
        raise InvalidInput(field="layers", value=names, expected="names of their own, since blocks go by them")
    return tuple(sorted(chosen, key=lambda layer: layer.slot))


def call_layer(layer: Layer, call: Callable[[], T], kind: type[T] | tuple[type, ...]) -> T:
    """One question to a layer. Its code is the host's, so whatever it does wrong is said with its name."""
    try:
        result = call()
    except InmindError:
        raise
    except Exception as error:  # a foreign layer may raise anything
        raise LayerFailed(layer=layer.name, reason=f"{type(error).__name__}: {error}") from error
    if not isinstance(result, kind):
        raise LayerFailed(layer=layer.name, reason=f"it answered with {short_repr(result)}")
    return result


def check_stored_draft(layer: Layer, draft: object) -> Draft:
    """What a layer wants to keep: a document of the session, under a path and with a text that a document may have."""
    what = draft.payload if isinstance(draft, Draft) else None
    if not isinstance(draft, Draft) or not isinstance(what, DocumentWritten):
        raise LayerFailed(layer=layer.name, reason=f"it may keep documents, not {short_repr(draft)}")
    scope, _ = resolve_path(what.path)
    if scope != "thread":
        raise LayerFailed(layer=layer.name, reason=f"{what.path} belongs to the resource, not to the session")
    validate_text(what.text)
    return draft


_ATTRIBUTES: tuple[tuple[str, type, str], ...] = (
    ("name", str, "a name"),
    ("slot", int, "a whole number"),
    ("budget", Budget, "a Budget"),
)
