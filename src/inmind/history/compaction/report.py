"""Reports of a compaction and of its undo, as values and as a sentence."""

from __future__ import annotations

from collections.abc import Container, Sequence

from inmind.core.events.session import Compacted, RetainedItem
from inmind.core.frozen import frozen
from inmind.core.text import count_noun


@frozen
class KeptItem:
    """A retained item and its location after the compaction."""

    kind: str
    text: str
    location: str
    """`conversation` if a sent message contains it, or `memory` if it is in the memory block before the conversation.
    """


@frozen(kw_only=True)
class CompactionReport:
    """Result of a compaction. If nothing was compacted, `messages` is 0 and `reason` says why."""

    reason: str
    messages: int = 0
    tokens: int = 0
    """Tokens by which the prompt became shorter; negative if it became longer.

    The messages that left, without their stubs and without the tokens that the guide and the blocks of retained items
    and of the overview grew by. It compares prompts whose memory blocks are current and not cut. The size of
    context_meta is left out.
    """
    archives: tuple[str, ...] = ()
    items: tuple[KeptItem, ...] = ()
    """Retained items with their locations."""
    left_out: tuple[RetainedItem, ...] = ()
    """Oldest rules and decisions that did not fit; they are in the archive."""

    @classmethod
    def of(
        cls,
        payload: Compacted,
        *,
        unsent: Container[RetainedItem],
        request: RetainedItem | None,
        left_out: Sequence[RetainedItem],
    ) -> CompactionReport:
        """`unsent`: items that no sent message contains. `request`: the last request."""
        items = [KeptItem(one.kind, one.text, "memory" if one in unsent else "conversation") for one in payload.items]
        is_sent = request is not None and all(one.seq != request.seq for one in payload.items if one.kind == "request")
        requests = [KeptItem(request.kind, request.text, "conversation")] if request and is_sent else []
        return cls(
            reason=payload.reason,
            messages=payload.messages,
            tokens=payload.tokens,
            archives=payload.archives,
            items=(*items, *requests),
            left_out=tuple(left_out),
        )

    def __bool__(self) -> bool:
        return self.messages > 0

    def __str__(self) -> str:
        if not self:
            return f"Nothing was compacted: {self.reason}."
        kept = (
            f" Kept word for word: {', '.join(_count_kinds(self.items))}{self._shortened_note()}." if self.items else ""
        )
        pages = ", ".join(self.archives) or "the journal"
        return (
            f"Compacted {count_noun(self.messages, 'message')}, {self._difference()}. "
            f"All of it is in {pages}.{kept} {describe_left_out(self.left_out)}".rstrip()
        )

    def _difference(self) -> str:
        return f"{abs(self.tokens):,} tokens {'more' if self.tokens < 0 else 'less'} to send"

    def _shortened_note(self) -> str:
        return " (long ones by how they begin)" if any(item.text.endswith("…") for item in self.items) else ""


def describe_left_out(left_out: Sequence[RetainedItem]) -> str:
    """Return the sentence about items that are only in the archive; empty if there are none."""
    return f"There was no room to keep {', '.join(_count_kinds(left_out))}: archive/ has them." if left_out else ""


@frozen(kw_only=True)
class CompactionUndoReport:
    """Result of undoing a compaction."""

    event: int
    """Sequence number of the compaction."""
    messages: int
    """Messages that are sent again, completely or in part."""
    tokens: int
    """Tokens that the compaction had saved."""
    removed: tuple[str, ...] = ()
    """Archive pages that were removed."""
    stay: tuple[str, ...] = ()
    """Pages of the compaction that another writer changed, or another compaction uses."""

    @classmethod
    def of(cls, seq: int, payload: Compacted, removed: Sequence[str]) -> CompactionUndoReport:
        return cls(
            event=seq,
            messages=payload.messages,
            tokens=payload.tokens,
            removed=tuple(removed),
            stay=tuple(path for path in payload.archives if path not in removed),
        )

    def __str__(self) -> str:
        pages = ", ".join((*(f"{path} (removed)" for path in self.removed), *self.stay))
        of = f", of {pages}" if pages else ""
        return f"Restored to the prompt: {count_noun(self.messages, 'message')}, {self.tokens:,} tokens{of}."


def _count_kinds(items: Sequence[KeptItem | RetainedItem]) -> list[str]:
    kinds = dict.fromkeys(item.kind for item in items)
    return [count_noun(sum(item.kind == kind for item in items), _NOUNS.get(kind, kind)) for kind in kinds]


_NOUNS = {"pinned": "pinned item", "earlier_goal": "earlier goal", "open_decision": "open decision"}
