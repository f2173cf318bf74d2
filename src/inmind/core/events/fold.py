"""The protocol of folds: how the events of a stream add up to a state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from inmind.core.events.base import Event

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
