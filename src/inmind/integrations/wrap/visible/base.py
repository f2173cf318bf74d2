"""The reply that a host sees: all rounds combined, without the calls that memory answers.

The host could not answer those calls, so they are removed from complete replies and from streams, and indexes are
renumbered. The boundary between rounds is not visible. Texts of all rounds are kept, and usage is added up; streamed or
not, the result is the same.

Chunks and replies are objects of a provider's client or plain values. They are copied, never changed; the journal
stores the values of the provider.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from inmind.core.json import is_object
from inmind.core.messages.format import peek

IsHidden = Callable[[str], bool]
"""True if calls of a tool are answered without the host."""


class VisibleReply(Protocol):
    """The visible reply to one call of the host. A new object for each call."""

    usage: Any
    """Usage of all rounds so far, in the provider's form; None if there is none."""

    def is_failure(self, reply: Any) -> bool:
        """True if this reply or chunk reports that the request failed. The host gets it unchanged."""
        ...

    def complete_reply(self, reply: Any) -> Any:
        """The combined reply after a round that was not streamed."""
        ...

    def add_chunk(self, chunk: Any) -> list[Any]:
        """Chunks that the host may see now. Chunks that end the round are kept for `end`."""
        ...

    def next_round(self) -> None:
        """The round is over and another one follows."""
        ...

    def end(self) -> list[Any]:
        """The final chunks, after the last round."""
        ...


def with_fields(value: Any, **fields: Any) -> Any:
    """A copy with these fields, of the same class; the same object if nothing changes."""
    if all(peek(value, name) == new_value for name, new_value in fields.items()):
        return value
    return {**value, **fields} if is_object(value) else value.model_copy(update=fields)


def add_usage(before: Any, now: Any) -> Any:
    """The usage of two rounds, in the form of the later one. Numbers are added at any depth."""
    if before is None or now is None:
        return before if now is None else now
    if isinstance(now, int | float) and isinstance(before, int | float):
        return before + now if not isinstance(now, bool) else now
    if not _has_fields(now) or not _has_fields(before):
        return now
    return with_fields(now, **{name: add_usage(value, peek(now, name)) for name, value in dict(before).items()})


def _has_fields(value: object) -> bool:
    return is_object(value) or hasattr(value, "model_copy")
