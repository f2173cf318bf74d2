"""When the memory in the prefix is sent anew, and what the tail says until then.

Providers charge a tenth for a prefix they have seen, byte for byte. A memory block that changes in front of the
history makes the whole history new; the same change said at the end costs its own length, on every call. So the
blocks are anchored, changes ride in the tail, and the anchor moves when the changes have grown and riding has cost
what moving will, or when the cache is lost anyway. Whatever comes next, that pays at most twice the best choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from inmind.core.events.prompt import AnchoredBlock
from inmind.core.frozen import frozen
from inmind.prompt.templates import block_text

MAX_CHANGE_RATIO = 0.15
MAX_CALLS_PER_ANCHOR = 50
CACHE_SECONDS = 300.0

REWRITE_COST_FACTOR = 1.15
"""Price of a token that was in the cache and is written again, over reading it: 1.25 less 0.1."""

CHEAP_REWRITE_TOKENS = 500
"""Tokens behind the anchor that are written anew without a second thought: a conversation that has just begun."""

DescribeChanges = Callable[[AnchoredBlock, Callable[[str], int]], str | None]
"""A layer's own way of saying what changed since a block of it was shown; None to have the lines said that differ."""


@frozen
class Anchor:
    """The blocks as the model has them in its prefix, since which call and why."""

    blocks: tuple[AnchoredBlock, ...]
    reason: str
    seq: int
    call: int


@frozen
class AnchorDecision:
    """The decision for one call: the anchor moves for a reason, or the tail says what changed."""

    move_reason: str
    changes: str
    new_blocks: tuple[AnchoredBlock, ...] = ()
    """Blocks of layers that had none when the anchor was set: the tail has them whole."""
    sources: tuple[str, ...] = ()


@frozen(kw_only=True)
class AnchorCosts:
    """What is at stake in moving the anchor, in tokens."""

    anchored_tokens: int
    """Memory in the prefix, guide included."""
    cached_history_tokens: int
    """Of the history, what the provider has seen at its place: it would be written anew."""
    tail_tokens_since_anchor: int
    """Changes that were said in tails since the anchor was set, added up over the calls."""
    max_memory_tokens: int
    """What memory and changes may take together."""
    tail_frame_tokens: int = 0
    """What the tail says around changes."""
    has_tail_carrier: bool = True
    """There is a message that can carry a tail."""
    history_rewritten: bool = False
    """The conversation begins otherwise than before: nothing behind the anchor is in the cache."""


def decide_anchor(
    anchor: Anchor | None,
    blocks: Sequence[AnchoredBlock],
    *,
    call: int,
    cold: bool,
    count: Callable[[str], int],
    costs: AnchorCosts,
    describe_changes: Mapping[str, DescribeChanges] = {},
) -> AnchorDecision:
    """Move the anchor, or say the changes in the tail. `own`: layers that have their own way of saying theirs.

    One that has nothing to say, since the conversation shows it, still comes along when the anchor moves.
    """
    if anchor is None:
        return AnchorDecision(move_reason="first call", changes="")
    if _texts(anchor.blocks) == _texts(blocks):
        return AnchorDecision(move_reason="", changes="")
    changes, sources = changes_between(anchor.blocks, blocks, describe_changes, count)
    known = {block.layer for block in anchor.blocks}
    new_blocks = tuple(block for block in blocks if block.layer not in known and block.text)
    has_changes = bool(changes or new_blocks)
    if has_changes and not costs.has_tail_carrier:
        return AnchorDecision(move_reason="no message carries changes", changes="")
    if cold:
        return AnchorDecision(move_reason="the provider's cache is cold", changes="")
    if costs.history_rewritten:
        return AnchorDecision(move_reason="the history was rewritten", changes="")
    if call - anchor.call >= MAX_CALLS_PER_ANCHOR:
        return AnchorDecision(move_reason=f"{MAX_CALLS_PER_ANCHOR} calls", changes="")
    size = count(changes) + sum(count(block_text(block)) for block in new_blocks)
    cost = REWRITE_COST_FACTOR * (costs.anchored_tokens + costs.cached_history_tokens)
    if size > MAX_CHANGE_RATIO * costs.anchored_tokens and (
        costs.cached_history_tokens <= CHEAP_REWRITE_TOKENS or costs.tail_tokens_since_anchor + size >= cost
    ):
        return AnchorDecision(move_reason=f"changes exceed {MAX_CHANGE_RATIO:.0%}", changes="")
    if costs.anchored_tokens + (costs.tail_frame_tokens + size if has_changes else 0) > costs.max_memory_tokens:
        return AnchorDecision(move_reason="no room for changes", changes="")
    sources = tuple(dict.fromkeys([*sources, *(source for block in new_blocks for source in block.sources)]))
    return AnchorDecision(move_reason="", changes=changes, new_blocks=new_blocks, sources=sources)


def changes_between(
    before: Sequence[AnchoredBlock],
    after: Sequence[AnchoredBlock],
    describe_changes: Mapping[str, DescribeChanges] = {},
    count: Callable[[str], int] = len,
) -> tuple[str, tuple[str, ...]]:
    """What differs in blocks that were there before, in words that a model can apply, and the events it comes from."""
    old = {block.layer: block for block in before}
    new = {block.layer: block for block in after}
    descriptions: list[str] = []
    sources: list[str] = []
    for layer in dict.fromkeys([*(layer for layer in new if layer in old), *old]):
        now = new.get(layer)
        if told := _describe_layer(old[layer], now, describe_changes.get(layer), count):
            descriptions.append(told)
            sources.extend(now.sources if now else ())
    return "\n".join(descriptions), tuple(dict.fromkeys(sources))


def _describe_layer(
    before: AnchoredBlock, now: AnchoredBlock | None, describe: DescribeChanges | None, count: Callable[[str], int]
) -> str:
    """What is said of one layer; nothing where it is the same, or where it has itself nothing to say."""
    if now is None:
        return f"{before.layer}: nothing any more"
    if now.text == before.text:
        return ""
    said = describe(before, count) if describe is not None else None
    if said is None:
        return _line_diff(before.layer, before.text, now.text)
    return said and f"{before.layer}, the most recent first: {said}"


def _texts(blocks: Sequence[AnchoredBlock]) -> dict[str, str]:
    return {block.layer: block.text for block in blocks if block.text}


@lru_cache(maxsize=64)
def _line_diff(layer: str, before: str, now: str) -> str:
    """The lines that went and came, each group under the heading it stands below; or all of it, if that is shorter."""
    from difflib import SequenceMatcher  # only a change needs it, and it takes its time to import

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
        lines += [f"- {line}" for line in old[i1:i2] if line.strip()]
        lines += [f"+ {line}" for line in new[j1:j2] if line.strip()]
    said = "\n".join(lines)
    whole = f"{layer}, now in full:\n{now}"
    return said if len(said) < len(whole) else whole
