"""Events of prompts: wording, the anchored prefix, the tail, what was sent and what it used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inmind.core.events.base import EventPayload, coerce_pairs, nested_value
from inmind.core.events.session import ShownVersions
from inmind.core.frozen import frozen


@frozen
class WordingSet(EventPayload):
    """The sentences that inmind itself says in prompts, so that an old prompt keeps the words it was sent with."""

    kind = "wording"
    wording: Mapping[str, str]


@frozen
class AnchoredBlock:
    """One layer's text as it stands in the anchored prefix."""

    layer: str
    text: str
    left_out: int = 0
    sources: tuple[str, ...] = ()
    banner: str = ""
    """A line of ours above the text."""
    tag: str = "memory"
    """What the block is called in the prompt."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))


@frozen
class AnchorMoved(EventPayload):
    """The memory blocks of the prefix, from now on sent byte for byte like this."""

    kind = "anchor"
    reason: str
    blocks: tuple[AnchoredBlock, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(nested_value(AnchoredBlock, block) for block in self.blocks))


@frozen
class TailChanged(EventPayload):
    """What the tail says of changes since the anchor, until it says something else."""

    kind = "tail"
    text: str
    new_blocks: tuple[AnchoredBlock, ...] = ()
    """Blocks of layers that had nothing to say when the anchor was set."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "new_blocks", tuple(nested_value(AnchoredBlock, block) for block in self.new_blocks))


@frozen
class PromptPrepared(EventPayload):
    """A call to the model is about to be made. With the state before it, this is the whole prompt.

    Only numbers that cannot be computed again stand here: what the counter said that day, what was cached.
    """

    kind = "prompt"
    digest: str
    used: int
    cached: int
    written: int
    changes: int = 0
    """Tokens of the tail that say what changed since the anchor."""
    messages_after_tail: int = 0
    """Messages that stood behind the tail."""
    format: str = "openai"
    window: int = 128_000
    reserve: int = 4_096
    largest: tuple[tuple[int, int], ...] = ()
    """Message sequence number and tokens of the largest messages, when the meter named them."""
    cache_marks: tuple[tuple[int, tuple[int | str, ...], Any], ...] = ()
    """Where the host has told the provider to cache up to: a message of those sent, the way to the mark, the mark."""
    shown_versions: ShownVersions | None = None
    """What of memory it shows whole; None where that is the same as in the prompt before."""

    def __post_init__(self) -> None:
        coerce_pairs(self, "largest", "shown_versions")
        if self.cache_marks:
            object.__setattr__(self, "cache_marks", tuple((at, tuple(path), mark) for at, path, mark in self.cache_marks))

    @property
    def uncached(self) -> int:
        """The tail: it differs on every call."""
        return self.used - self.cached - self.written


@frozen
class UsageReported(EventPayload):
    kind = "usage"
    call: int
    counted: int
    """What we had counted for that call."""
    prompt_tokens: int
    cached_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""
    """The model that answered, as the provider calls it."""
