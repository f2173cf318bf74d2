"""Base types of events: payload, origin, trust, draft, event, and the fold protocol."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from inmind.core.frozen import frozen


class Origin(StrEnum):
    """The author of an event's text."""

    OPERATOR = "operator"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    WEB = "web"
    FILE = "file"
    DREAM = "dream"


class Trust(IntEnum):
    """Trust in a text.

    Only people and the operator can set rules; tools and the web deliver data.
    """

    DATA = 0
    AGENT = 1
    PERSON = 2
    OPERATOR = 3


TRUST_BY_ORIGIN = {
    Origin.OPERATOR: Trust.OPERATOR,
    Origin.USER: Trust.PERSON,
    Origin.FILE: Trust.PERSON,
    Origin.ASSISTANT: Trust.AGENT,
    Origin.DREAM: Trust.AGENT,
    Origin.TOOL: Trust.DATA,
    Origin.WEB: Trust.DATA,
}


class EventId(NamedTuple):
    """Stream and sequence number of an event, written as `stream#seq`."""

    stream: str
    seq: int

    @classmethod
    def parse(cls, text: str) -> EventId | None:
        """Return the id that a text spells; None for any other text."""
        stream, _, number = text.rpartition("#")
        is_number = number.isascii() and number.isdecimal() and len(number) <= 18
        return cls(stream, int(number)) if stream and is_number else None

    @classmethod
    def of(cls, event: str) -> EventId:
        """Return the parts of an id that a store has returned."""
        stream, _, number = event.rpartition("#")
        return cls(stream, int(number))

    def __str__(self) -> str:
        return f"{self.stream}#{self.seq}"


@frozen
class EventPayload:
    """Base class of payloads. A payload holds the fields of one kind of event."""

    kind: ClassVar[str]
    stored_names: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Renamed fields, each with its key in the stored JSON: a new name must not change what is on disk."""


@frozen(kw_only=True)
class Draft:
    """An event before it is appended. The store adds its sequence number and its time."""

    payload: EventPayload
    origin: Origin
    sources: tuple[str, ...] = ()
    trust: Trust | None = None
    """For a derived event the lowest trust of its sources. None: the trust of the origin."""

    @property
    def effective_trust(self) -> Trust:
        """The trust of the origin, or `trust` if that is lower."""
        from_origin = TRUST_BY_ORIGIN[self.origin]
        return from_origin if self.trust is None else min(from_origin, self.trust)


@frozen(kw_only=True)
class Event:
    """A stored event at its position in a stream."""

    stream: str
    seq: int
    at: datetime
    payload: EventPayload
    origin: Origin
    trust: Trust
    sources: tuple[str, ...] = ()
    starts_batch: bool = True
    """True for the first of the events that were appended together. `undo` reverts one batch."""

    @property
    def id(self) -> str:
        """Stream and sequence number.

        It is derived, so it takes no space in the store and needs no index.
        """
        return str(EventId(self.stream, self.seq))

    @property
    def kind(self) -> str:
        return self.payload.kind

    def __str__(self) -> str:
        return f"{self.id} {self.at:%Y-%m-%d %H:%M:%S} {self.kind} ({self.origin})"


S = TypeVar("S")


class Fold(Protocol[S]):
    """Computes a state from the events of one stream.

    `apply` is pure: same state and event, same result.
    """

    version: int
    """Raised when the format of the state changes. Snapshots of another version are ignored, not migrated."""

    def initial(self) -> S: ...
    def apply(self, state: S, event: Event) -> S: ...

    def revert(self, past: S, present: S, event: Event) -> S:
        """Return the state after an undo: `past`, but with values that an undo keeps (money spent)."""
        ...

    def freeze(self, state: S) -> dict[str, Any]:
        """Return the state for a snapshot, without the messages, which the journal already holds."""
        ...

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> S: ...
