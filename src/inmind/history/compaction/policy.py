"""Parameters and report of a compaction, and the policy of automatic ones.

Below 75% of the window nothing is compacted unless the model, the host or the policy requests it. Bands named in the
policy are compacted automatically. With rates, an automatic compaction also waits until it pays off, because the
provider has to cache the remaining messages again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from dataclasses import replace
from math import sqrt
from typing import Any

from inmind.core.events.session import Compacted, RetainedItem
from inmind.core.frozen import frozen
from inmind.core.text import count_noun
from inmind.core.tokens import Rates
from inmind.documents.document import ARCHIVE_PREFIX, OVERVIEW_PATH, resolve_path
from inmind.errors import InvalidInput, InvalidPath
from inmind.history.compaction.select import AUTOMATIC_KEEP_RECENT, DEFAULT_KEEP_RECENT, TARGETS
from inmind.history.view import BANDS, EMERGENCY_BAND

Summarizer = Callable[[str], Any]
"""Calls a model with a prompt and returns its text."""

COMPACTION_THRESHOLD = 0.75
"""Share of the window without system prompt, tools and reserve: above it compaction is mandatory."""
PRUNED_TARGET = 0.5
"""Share down to which a mandatory compaction prunes tool results."""
COMPACTION_TARGETS = ((4_000, 0.7), (12_000, 0.5))
"""Shares down to which whole messages leave in it, by tokens of the room; in between in proportion.

In a small room each message counts. In a large one a compaction is rare if it frees much, and the provider's cache is
written again less often.
"""

_BAND_NAMES = (*(name for _, name in BANDS), EMERGENCY_BAND)


@frozen(kw_only=True)
class CompressionPolicy:
    """Bands that are compacted automatically, and how much is kept."""

    automatic: tuple[str, ...] = ()
    """Band names: normal, light_compression, medium_compression, heavy_compression. The emergency band always compacts.
    """
    rates: Rates | None = None
    """Prices by which an automatic compaction must pay off; without them it runs as soon as it frees enough."""
    keep_recent: int = AUTOMATIC_KEEP_RECENT
    """Turns before the active one that an automatic compaction keeps."""

    def __post_init__(self) -> None:
        if not isinstance(self.automatic, list | tuple):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="automatic", value=self.automatic, expected="a tuple of band names")
        object.__setattr__(self, "automatic", tuple(self.automatic))
        if unknown := [name for name in self.automatic if name not in _BAND_NAMES]:
            raise InvalidInput(field="automatic", value=unknown, expected=f"some of {', '.join(_BAND_NAMES)}")
        whole = isinstance(self.keep_recent, int) and not isinstance(self.keep_recent, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not whole or self.keep_recent < 0:
            raise InvalidInput(field="keep_recent", value=self.keep_recent, expected="a whole number, 0 or more")
        if self.rates is not None and not isinstance(self.rates, Rates):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(field="rates", value=self.rates, expected="Rates")

    @classmethod
    def when_it_pays(cls, rates: Rates | None = None) -> CompressionPolicy:
        """Policy that compacts in any band as soon as it is cheaper than to continue."""
        return cls(automatic=_BAND_NAMES, rates=rates or Rates())

    def target_for(self, band: str) -> tuple[str, int] | None:
        """Return target and number of recent units to keep for an automatic band; None for others."""
        if band not in self.automatic:
            return None
        if self.rates is not None or band not in _GENTLE_TARGETS:
            return "all", self.keep_recent
        return _GENTLE_TARGETS[band]


DEFAULT_POLICY = CompressionPolicy()

_GENTLE_TARGETS = {
    "normal": ("tools", DEFAULT_KEEP_RECENT),
    "light_compression": ("tools", DEFAULT_KEEP_RECENT),
    "medium_compression": ("all", DEFAULT_KEEP_RECENT),
}


def compaction_target(room: int) -> float:
    """The share of a room down to which whole messages leave."""
    (small, most), (large, least) = COMPACTION_TARGETS
    return most - (most - least) * min(1.0, max(0.0, (room - small) / (large - small)))


def pays_off(rates: Rates, *, freed: int, rewritten: int, growth: float) -> bool:
    """True if compacting now is cheaper than to continue.

    A history that grows by `growth` tokens per call and is compacted after growing by L tokens costs, per call, the
    reading of L/2 tokens on average plus its share of writing the remaining tokens (`rewritten`) again. The sum is
    minimal if both are equal: L = sqrt(2 · rewritten · growth · (written - cached) / cached). Waiting longer costs
    more.
    """
    if rates.cached <= 0:
        return False
    return freed >= sqrt(2 * rewritten * max(growth, 1.0) * max(0.0, rates.written - rates.cached) / rates.cached)


STRATEGIES = ("archive", "summarize")

MAX_STUB_TOKENS = 800
"""Tokens of a stub for messages without its records; less in a small window."""
MIN_STUB_TOKENS = 120
STUB_SHARE_DIVISOR = 24

MAX_RECORD_TOKENS = 2_000
"""Tokens of records in a stub for messages; less in a small window."""
RECORD_SHARE_DIVISOR = 2

MAX_ID_TOKENS = 1_000
"""Tokens of ids that no record has, so that the model does not guess them; less in a small window."""
ID_SHARE_DIVISOR = 3

MAX_KEEP_RECENT = 2**53
"""Larger numbers are not exact in every JSON parser."""


@frozen(kw_only=True)
class CompactionRequest:
    """Parameters of a compaction."""

    reason: str
    target: str = "all"
    strategy: str = "archive"
    archive_to: str | None = None
    summary: str = ""
    """Summary written by a model; if empty, it is extracted."""
    stub_tokens: int = MAX_STUB_TOKENS
    """Maximum size of a stub for messages, without what follows."""
    record_tokens: int = MAX_RECORD_TOKENS
    """Maximum size of the records in it."""
    detailed_record_tokens: int = MAX_RECORD_TOKENS
    """Size of the records up to which they have more than ids, names and states."""
    id_tokens: int = MAX_ID_TOKENS
    """Maximum size of the ids in it that no record has."""
    last_request: RetainedItem | None = None
    """The user's last request."""

    def with_less(self, tokens: int) -> CompactionRequest:
        """Return the request with shorter stubs: by these tokens, and by a fifth at least."""
        share = min(0.8, 1 - tokens / max(1, self.stub_tokens + self.record_tokens + self.id_tokens))
        return replace(
            self,
            stub_tokens=max(0, int(share * self.stub_tokens)),
            record_tokens=max(0, int(share * self.record_tokens)),
            id_tokens=max(0, int(share * self.id_tokens)),
        )


def parse_request(*, target: object, strategy: object, archive_to: object, reason: str) -> CompactionRequest:
    """Validate the arguments of a model or host."""
    if target not in TARGETS:
        raise InvalidInput(field="target", value=target, expected=f"one of {', '.join(TARGETS)}")
    if strategy not in STRATEGIES:
        raise InvalidInput(field="strategy", value=strategy, expected=f"one of {', '.join(STRATEGIES)}")
    path = None if archive_to is None else check_archive_path(archive_to)
    return CompactionRequest(reason=reason, target=str(target), strategy=str(strategy), archive_to=path)


def check_archive_path(path: object) -> str:
    """Return a valid path for an archive: a page in detail/ or archive/ of this session."""
    with suppress(InvalidPath):
        scope, name = resolve_path(path)
        if scope == "thread" and name != OVERVIEW_PATH and name.endswith(".md"):
            return name
    raise InvalidPath(field="archive_to", value=path, expected=f"{ARCHIVE_PREFIX}<name>.md or detail/<name>.md")


def check_keep_recent(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_KEEP_RECENT:
        raise InvalidInput(field="keep_recent", value=value, expected="a whole number, 0 or more")
    return value


def with_stub_size(request: CompactionRequest, history_tokens: int) -> CompactionRequest:
    """Limit the stub to a share of the tokens available for the conversation."""
    return replace(
        request,
        stub_tokens=max(MIN_STUB_TOKENS, min(MAX_STUB_TOKENS, history_tokens // STUB_SHARE_DIVISOR)),
        record_tokens=min(MAX_RECORD_TOKENS, history_tokens // RECORD_SHARE_DIVISOR),
        id_tokens=min(MAX_ID_TOKENS, history_tokens // ID_SHARE_DIVISOR),
    )


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
        shortened = " (long ones by how they begin)" if any(item.text.endswith("…") for item in self.items) else ""
        kept = f" Kept word for word: {', '.join(_count_kinds(self.items))}{shortened}." if self.items else ""
        difference = f"{abs(self.tokens):,} tokens {'more' if self.tokens < 0 else 'less'} to send"
        pages = ", ".join(self.archives) or "the journal"
        compacted = f"Compacted {count_noun(self.messages, 'message')}, {difference}. All of it is in {pages}."
        return f"{compacted}{kept} {describe_left_out(self.left_out)}".rstrip()


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
