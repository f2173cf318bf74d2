"""How the events of a stream add up to a state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from inmind.core.events.base import Event

S = TypeVar("S")


class Fold(Protocol[S]):
    """How one stream's events add up to a state. `apply` is pure: same state, same event, same answer."""

    version: int
    """Raised when the shape of the state changes: snapshots of another version are ignored, not migrated."""

    def initial(self) -> S: ...
    def apply(self, state: S, event: Event) -> S: ...

    def revert(self, past: S, present: S, event: Event) -> S:
        """The state after an undo: the past one, but for what an undo cannot take back (money was spent)."""
        ...

    def freeze(self, state: S) -> dict[str, Any]:
        """The state for a snapshot, without the messages, which the journal already holds."""
        ...

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> S: ...
