"""Decides when the anchor moves, and what the tail says about changes until then.

Providers charge a tenth for a prefix that they have cached, byte for byte. A memory block that changes before the
history invalidates the whole cached history; the same change after the last message costs only its own length. So the
blocks are anchored, and a change is written once, after the last message, and stays there: later prompts read it from
the cache. The anchor moves when the changes have grown and reading them has cost as much as moving, or when the cache
is lost anyway. This costs at most twice the optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from inmind.core.events.session import AnchoredBlock
from inmind.core.frozen import frozen
from inmind.core.text import shorten
from inmind.prompt.templates import block_text, changes_text

MAX_CHANGE_RATIO = 0.15
MAX_CALLS_PER_ANCHOR = 50
CACHE_SECONDS = 300.0

REWRITE_COST_FACTOR = 1.15
"""Extra price of writing a cached token again, relative to uncached input: 1.25 (write) - 0.1 (read)."""

READ_COST_FACTOR = 0.1
"""Price of reading a cached token, relative to uncached input."""

MIN_ANCHORED_TOKENS = 200
"""Size that a smaller memory counts as: otherwise the first lines of an empty one would move the anchor."""

CHEAP_REWRITE_TOKENS = 500
"""Cached history below which moving is always cheap: a conversation that has just started."""

MAX_REMOVED_CHARACTERS = 40
"""A removed line is named by its beginning."""

DescribeChanges = Callable[[AnchoredBlock, Callable[[str], int]], str | None]
"""A layer's description of changes since its block was shown; None for a line diff."""


@frozen
class Anchor:
    """The memory blocks in the prefix, and the call and reason for which they were set."""

    blocks: tuple[AnchoredBlock, ...]
    reason: str
    seq: int
    call: int


@frozen
class MemoryChanges:
    """A change of memory in the prompt, after the message that it was first sent with."""

    place: int
    """Index of that message among the sent ones."""
    view_digest: str
    """Digest of the sent messages up to it: the change stays while they do."""
    text: str
    new_blocks: tuple[AnchoredBlock, ...] = ()
    sources: tuple[str, ...] = ()

    def render(self, wording: Mapping[str, str]) -> str:
        return changes_text(wording, self.text, self.new_blocks)


MOVED_IN_THREAD = "memory: the one in the instructions is current, all of it in earlier messages is out of date"
"""Sent when the anchor moves in a thread: the provider keeps earlier messages with the changes in them."""


@frozen
class AnchorDecision:
    """Decision for one call: move the anchor, or send the changes after the last message."""

    move_reason: str
    changes: str = ""
    new_blocks: tuple[AnchoredBlock, ...] = ()
    """Blocks of layers that had none before; they are sent completely."""
    changed_blocks: tuple[AnchoredBlock, ...] = ()
    """The blocks that `changes` is about, as they are now."""
    sources: tuple[str, ...] = ()


@frozen(kw_only=True)
class AnchorCosts:
    """Token counts that decide whether the anchor moves."""

    anchored_tokens: int
    """Memory in the prefix, including the guide."""
    cached_history_tokens: int
    """History in the provider's cache, which would be written again."""
    change_tokens: int = 0
    """Earlier changes that are still in place."""
    tail_tokens_since_anchor: int
    """Sum of the changes in all prompts since the anchor was set."""
    max_memory_tokens: int
    """Limit for memory and changes together."""
    tail_frame_tokens: int = 0
    """Fixed text around new changes."""
    has_tail_carrier: bool = True
    """A message can carry a tail."""
    history_rewritten: bool = False
    """The conversation starts differently than before: nothing after the anchor is cached."""


def decide_anchor(
    anchor: Anchor | None,
    known: Sequence[AnchoredBlock] | None,
    blocks: Sequence[AnchoredBlock],
    *,
    call: int,
    cold: bool,
    count: Callable[[str], int],
    costs: AnchorCosts,
    describe_changes: Mapping[str, DescribeChanges | None] = {},
) -> AnchorDecision:
    """Move the anchor, or describe the changes.

    `known`: the blocks as the model knows them from the anchor and the changes in place; None if messages that carried
    changes are gone. `describe_changes`: layers with their own description. A layer may describe nothing because the
    conversation shows the change; its block is still updated when the anchor moves.
    """
    if anchor is None:
        return AnchorDecision(move_reason="first call")
    if known is None:
        return AnchorDecision(move_reason="the history was rewritten")
    if not costs.change_tokens and _texts(anchor.blocks) == _texts(known) == _texts(blocks):
        return AnchorDecision(move_reason="")
    changes, changed_blocks = changes_between(known, blocks, describe_changes, count)
    known_layers = {block.layer for block in known}
    new_blocks = tuple(block for block in blocks if block.layer not in known_layers and block.text)
    has_changes = bool(changes or new_blocks)
    if has_changes and not costs.has_tail_carrier:
        return AnchorDecision(move_reason="no message carries changes")
    if cold:
        return AnchorDecision(move_reason="the provider's cache is cold")
    if costs.history_rewritten:
        return AnchorDecision(move_reason="the history was rewritten")
    if call - anchor.call >= MAX_CALLS_PER_ANCHOR:
        return AnchorDecision(move_reason=f"{MAX_CALLS_PER_ANCHOR} calls")
    size = costs.change_tokens + count(changes) + sum(count(block_text(block)) for block in new_blocks)
    cost = REWRITE_COST_FACTOR * (costs.anchored_tokens + costs.cached_history_tokens)
    reading_cost = READ_COST_FACTOR * (costs.tail_tokens_since_anchor + size)
    if size > MAX_CHANGE_RATIO * max(costs.anchored_tokens, MIN_ANCHORED_TOKENS) and (
        costs.cached_history_tokens <= CHEAP_REWRITE_TOKENS or reading_cost >= cost
    ):
        return AnchorDecision(move_reason=f"changes exceed {MAX_CHANGE_RATIO:.0%}")
    if costs.anchored_tokens + size + (costs.tail_frame_tokens if has_changes else 0) > costs.max_memory_tokens:
        return AnchorDecision(move_reason="no room for changes")
    sources = tuple(dict.fromkeys(source for block in (*changed_blocks, *new_blocks) for source in block.sources))
    return AnchorDecision("", changes, new_blocks, changed_blocks, sources)


def changes_between(
    before: Sequence[AnchoredBlock],
    after: Sequence[AnchoredBlock],
    describe_changes: Mapping[str, DescribeChanges | None] = {},
    count: Callable[[str], int] = len,
) -> tuple[str, tuple[AnchoredBlock, ...]]:
    """Describe the changes of existing blocks for the model; also return the described blocks."""
    old = {block.layer: block for block in before}
    new = {block.layer: block for block in after}
    descriptions: list[str] = []
    changed: list[AnchoredBlock] = []
    for layer in dict.fromkeys([*(layer for layer in new if layer in old), *old]):
        now = new.get(layer)
        if description := _describe_layer(old[layer], now, describe_changes.get(layer), count):
            descriptions.append(description)
            changed.append(now or AnchoredBlock(layer, ""))
    return "\n".join(descriptions), tuple(changed)


def _describe_layer(
    before: AnchoredBlock, now: AnchoredBlock | None, describe: DescribeChanges | None, count: Callable[[str], int]
) -> str:
    """Describe the change of one layer; empty if there is none or the layer reports none."""
    if now is None:
        return f"{before.layer}: now empty" if before.text else ""
    if now.text == before.text:
        return ""
    description = describe(before, count) if describe is not None else None
    if description is None:
        return _line_diff(before.layer, before.text, now.text)
    return description and f"{before.layer}, newest first: {description}"


def _texts(blocks: Sequence[AnchoredBlock]) -> dict[str, str]:
    return {block.layer: block.text for block in blocks if block.text}


def _shorten_removed(line: str, lines: Sequence[str]) -> str:
    """Name a removed line by its beginning, unless another line begins like it.

    The prompt still shows the whole line.
    """
    start = shorten(line, MAX_REMOVED_CHARACTERS)
    is_unique = sum(other.startswith(start.rstrip("…")) for other in lines) == 1
    return start if is_unique else line


@lru_cache(maxsize=64)
def _line_diff(layer: str, before: str, now: str) -> str:
    """Return added and removed lines under headings, or the full text if that is shorter."""
    from difflib import SequenceMatcher  # imported here because it is slow and rarely needed

    old, new = before.split("\n"), now.split("\n")
    lines = [f"{layer}:"]
    heading = ""
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        above = next((line for line in reversed(new[:j1]) if line.startswith("#")), "")
        if above and above != heading:
            lines.append(f"  {above}")
            heading = above
        lines += [f"- {_shorten_removed(line, old)}" for line in old[i1:i2] if line.strip()]
        lines += [f"+ {line}" for line in new[j1:j2] if line.strip()]
    diff = "\n".join(lines)
    full_text = f"{layer}, now in full:\n{now}"
    return diff if len(diff) < len(full_text) else full_text
