"""A layer: one kind of memory that asks for a place in the prompt. Hosts write their own.

A layer says what it would like the model to read; it never decides how much room it gets, never escapes, never
sees the store. That keeps a foreign layer from breaking the budget, the boundary or the provider's cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any, Literal, Protocol

from inmind.documents import Document, Scope
from inmind.errors import InvalidInput
from inmind.journal import Draft, Trust

Spawn = Literal["fork", "view", "none"]


class Slot(IntEnum):
    """Where the built-in layers stand, lowest first; a host's layer may take any number between."""

    STATE = 90
    SCRATCHPAD = 100
    OVERVIEW = 110
    ENTITIES = 150
    RECALL = 400


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens a layer is promised (`min`) and the most it is ever given (`max`)."""

    min: int = 0
    max: int = 1_500

    def __post_init__(self) -> None:
        if not 0 <= self.min <= self.max:
            raise InvalidInput(field="budget", value=(self.min, self.max), expected="0 <= min <= max")


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a layer wants the model to read, and the events it comes from."""

    text: str
    sources: tuple[str, ...] = ()
    pointer: str = "[cut to fit]"
    """Stands in the place of what did not fit: where to find the rest."""
    trust: Trust = Trust.OPERATOR
    """The least of its sources; a text that the host itself provides is the operator's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """All that a layer may look at: values, so that the same moment always recalls the same."""

    session: str
    resource: str
    now: datetime
    documents: Mapping[str, Document]
    """Of the session and of its resource, by path."""
    messages: Sequence[Mapping[str, Any]]


class Layer(Protocol):
    """Name, place, scope, budget, and four questions. `PlainLayer` answers all but `recall`."""

    @property
    def name(self) -> str: ...
    @property
    def slot(self) -> int: ...
    @property
    def scope(self) -> Scope:
        """Whether what it keeps belongs to the session or to the resource."""
        ...

    @property
    def budget(self) -> Budget: ...

    def recall(self, moment: Moment) -> Recalled | None:
        """The text for the prompt, unescaped and uncut; None for nothing."""
        ...

    def store(self, moment: Moment, reply: Mapping[str, Any]) -> Sequence[Draft]:
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

    def store(self, moment: Moment, reply: Mapping[str, Any]) -> Sequence[Draft]:  # noqa: ARG002 -- the protocol's
        return ()

    def spawn(self) -> Spawn:
        return "none"

    def tools(self, format: str) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 -- the protocol's
        return ()


@dataclass(frozen=True)
class TextLayer(PlainLayer):
    """A text that the host provides, the same on every call until the host gives another layer."""

    name: str
    text: str
    slot: int = 120
    budget: Budget = Budget()

    def recall(self, moment: Moment) -> Recalled | None:  # noqa: ARG002 -- the protocol's
        return Recalled(self.text) if self.text else None


@dataclass(frozen=True)
class DocumentLayer(PlainLayer):
    """A document, shown whole: overview.md for a session, MEMORY.md for a resource."""

    name: str
    path: str
    slot: int = Slot.OVERVIEW
    budget: Budget = Budget(min=200, max=1_500)
    scope: Scope = "thread"

    def recall(self, moment: Moment) -> Recalled | None:
        document = moment.documents.get(self.path)
        if document is None or not document.text.strip():
            return None
        return Recalled(
            document.text.strip("\n"),
            sources=(document.source,),
            pointer=f"[cut to fit: the rest is in {self.path}]",
            trust=document.trust,
        )
