"""What a host is shown: one reply, however many rounds it took, without the calls that memory answers itself.

A host could not answer those calls, and must not have to know of them. So they are taken out of a whole reply, and of
a stream before they are seen in it; what is numbered is numbered again without them; and where one round ends and the
next begins is not shown, since to the host they are one. What was said in any of them is there, and what all of them
have cost; streamed or whole, it is the same.

Chunks and replies are objects of a provider's client, or the same as plain values. They are never changed, only
copied, and what the provider sent is what goes into the journal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from inmind.core.json import is_object
from inmind.core.messages.replies.reply import peek

Hidden = Callable[[str], bool]
"""Is a call of this name answered without the host?"""


class Showing(Protocol):
    """The rounds of one call on their way to the host. A new one for each call."""

    paid: Any
    """What the provider has counted so far, as it says it; None where it has said nothing."""

    def is_failure(self, said: Any) -> bool:
        """Is this, reply or chunk, the provider's word that there will be no reply? The host gets it as it is."""
        ...

    def whole(self, reply: Any) -> Any:
        """The round's reply, where it was not streamed, behind what was shown before it."""
        ...

    def take(self, chunk: Any) -> list[Any]:
        """What the host may see now that this has come. What only ends the round is kept for `end`."""
        ...

    def next_round(self) -> None:
        """The round is over, and another follows."""
        ...

    def end(self) -> list[Any]:
        """The round was the last: how it ended is how the stream ends."""
        ...


def changed(value: Any, **fields: Any) -> Any:
    """A copy with these fields, of the same class; or the very same, where it has them already."""
    if all(peek(value, name) == given for name, given in fields.items()):
        return value
    return {**value, **fields} if is_object(value) else value.model_copy(update=fields)


def summed(before: Any, now: Any) -> Any:
    """What two rounds have cost together, in the form of the later one: numbers add up, at any depth."""
    if before is None or now is None:
        return before if now is None else now
    if isinstance(now, int | float) and isinstance(before, int | float):
        return before + now if not isinstance(now, bool) else now
    if not _has_fields(now) or not _has_fields(before):
        return now
    return changed(now, **{name: summed(value, peek(now, name)) for name, value in dict(before).items()})


def _has_fields(value: object) -> bool:
    return is_object(value) or hasattr(value, "model_copy")
