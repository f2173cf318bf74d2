"""Events of prompts: wording, the anchored prefix, the tail, each prompt and its usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inmind.core.events.base import EventPayload
from inmind.core.events.session import ShownVersions
from inmind.core.frozen import frozen


@frozen
class WordingSet(EventPayload):
    """The fixed sentences of prompts. An old prompt is rebuilt with the words it was sent with."""

    kind = "wording"
    wording: Mapping[str, str]


@frozen
class AnchoredBlock:
    """The text of one layer in the anchored prefix."""

    layer: str
    text: str
    left_out: int = 0
    sources: tuple[str, ...] = ()
    banner: str = ""
    """A line that is placed above the text."""
    tag: str = "memory"
    """The name of the block in the prompt."""


@frozen
class AnchorMoved(EventPayload):
    """New memory blocks of the prefix.

    They are sent byte for byte like this until the next anchor.
    """

    kind = "anchor"
    reason: str
    blocks: tuple[AnchoredBlock, ...]


@frozen
class TailChanged(EventPayload):
    """Changes of memory since the anchor and the changes before, as the model reads them.

    The text stays with the message that carries it, until the anchor moves or the message changes. An empty text only
    drops earlier ones whose message has changed.
    """

    kind = "tail"
    stored_names = (("new_blocks", "fresh"),)
    text: str
    new_blocks: tuple[AnchoredBlock, ...] = ()
    """Blocks of layers that had none; the text is followed by them."""
    place: int | None = None
    """Index of the carrier among the sent messages.

    None in older events: there the text is all changes since the anchor, at the end of each prompt until the next one.
    """
    view_digest: str = ""
    """Digest of the sent messages up to the carrier."""
    changed_blocks: tuple[AnchoredBlock, ...] = ()
    """The blocks that the text is about, as they are now."""
    kept: int = 0
    """Number of earlier texts that are still in place."""


@frozen
class PromptPrepared(EventPayload):
    """A prompt was prepared.

    Together with the state before it, this event is the complete prompt.

    It holds only numbers that cannot be computed again: token counts at that time and what was cached.
    """

    kind = "prompt"
    stored_names = (("messages_after_tail", "behind"), ("cache_marks", "marks"), ("shown_versions", "shown"))
    digest: str
    used: int
    cached: int
    written: int
    changes: int = 0
    """Tokens of the part of the tail that reports changes since the anchor."""
    messages_after_tail: int = 0
    """The number of messages after the tail."""
    format: str = "openai"
    window: int = 128_000
    reserve: int = 4_096
    largest: tuple[tuple[int, int], ...] = ()
    """Sequence number and tokens of the largest messages, if the meter named them."""
    cache_marks: tuple[tuple[int, tuple[int | str, ...], Any], ...] = ()
    """Cache marks set by the host: index of the message sent, path to the mark, and the mark."""
    shown_versions: ShownVersions | None = None
    """Documents that this prompt shows in full. None: the same as in the prompt before."""
    memory_index: int = 0
    """The number of messages before memory, if the provider's compaction is among the messages."""
    room: int = 0
    """Tokens that the window had for memory and history; 0 in older prompts, whose meter compares all with the window.
    """
    room_used: int = 0
    thread: str = ""
    """The reply or conversation that the prompt continues, if the provider holds the messages before."""

    @property
    def uncached(self) -> int:
        """Tokens of the tail, which differs on every call."""
        return self.used - self.cached - self.written


@frozen
class UsageReported(EventPayload):
    """Token usage that the provider reported for a call."""

    kind = "usage"
    call: int
    counted: int
    """The tokens that inmind had counted for that call."""
    prompt_tokens: int
    cached_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""
    """The provider's name of the model."""
