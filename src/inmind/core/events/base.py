"""What every event has: payload, origin, trust, sources, and its place in a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any, ClassVar, TypeVar

from inmind.core.encoding import decode_fields
from inmind.core.frozen import frozen


class Origin(StrEnum):
    """Whose words these are."""

    OPERATOR = "operator"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    WEB = "web"
    FILE = "file"
    DREAM = "dream"


class Trust(IntEnum):
    """How far a text may reach: only people and the operator can make a rule; tools and the web deliver data."""

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


@frozen
class EventPayload:
    """A payload: what one kind of event carries. Subclasses are the vocabulary."""

    kind: ClassVar[str]


def coerce_pairs(payload: EventPayload, *names: str) -> None:
    """JSON has lists for them."""
    for name in names:
        if (pairs := getattr(payload, name)) is not None:
            object.__setattr__(payload, name, tuple((first, second) for first, second in pairs))


@frozen(kw_only=True)
class Draft:
    """An event that has not happened yet: the store gives it its number and its time."""

    payload: EventPayload
    origin: Origin
    sources: tuple[str, ...] = ()
    trust: Trust | None = None
    """Least of the sources, where it is derived; the origin's own where it is not given."""

    @property
    def effective_trust(self) -> Trust:
        from_origin = TRUST_BY_ORIGIN[self.origin]
        return from_origin if self.trust is None else min(from_origin, self.trust)


@frozen(kw_only=True)
class Event:
    """Something that happened, once, at its place in its stream."""

    stream: str
    seq: int
    at: datetime
    payload: EventPayload
    origin: Origin
    trust: Trust
    sources: tuple[str, ...] = ()
    starts_batch: bool = True
    """The first of the events that were appended together: what `undo` takes back as one step."""

    @property
    def id(self) -> str:
        """Where it stands is what it is called, so an id costs no bytes and needs no index."""
        return f"{self.stream}#{self.seq}"

    @property
    def kind(self) -> str:
        return self.payload.kind


V = TypeVar("V")


def nested_value(kind: type[V], value: V | Mapping[str, Any]) -> V:
    """A nested value as it was given, or as it comes out of the journal."""
    return decode_fields(kind, value) if isinstance(value, Mapping) else value  # pyright: ignore[reportUnknownArgumentType] -- a JSON object


def named_tuple(kind: type[V], values: Sequence[Any]) -> V:
    """A named tuple out of the journal, where tuples within are lists."""
    return kind(*(tuple(value) if isinstance(value, list) else value for value in values))  # pyright: ignore[reportUnknownArgumentType] -- a JSON list
