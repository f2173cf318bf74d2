"""Explains a prompt: each part with its size, sources and reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from inmind.core.frozen import frozen
from inmind.core.text import count_noun
from inmind.history import Conversation
from inmind.history.view import View
from inmind.prompt.state import PromptState

Fate = Literal["included", "cut", "left out", "repaired"]


@frozen(kw_only=True)
class PromptPart:
    """One part of a prompt with its sources, and whether it was included or cut."""

    name: str
    fate: Fate
    tokens: int
    why: str
    sources: tuple[str, ...] = ()


@frozen(kw_only=True)
class Explanation:
    """All parts of a prompt, each with tokens, source events and reason."""

    call: int
    parts: tuple[PromptPart, ...]

    @property
    def tokens(self) -> int:
        return sum(part.tokens for part in self.parts)

    def __str__(self) -> str:
        rows = [f"call {self.call}, {self.tokens} tokens"]
        for part in self.parts:
            origin = f" ({format_sources(part.sources)})" if part.sources else ""
            rows.append(f"  {part.tokens:>7}  {part.name:<20} {part.fate}: {part.why}{origin}")
        return "\n".join(rows)


def explain(
    call: int, state: PromptState, conversation: Conversation, view: View, tokens: Mapping[str, int]
) -> Explanation:
    """Explain the parts of one call. `tokens`: tokens by part, as in the report."""
    anchor = state.anchor
    since = f"anchored since call {anchor.call} ({anchor.reason})" if anchor else ""
    parts = [
        PromptPart(name=name, fate="included", tokens=tokens[name], why=why, sources=(state.sources[name],))
        for name, why in _FIXED_PARTS
        if tokens[name]
    ]
    for block in (block for block in state.blocks if block.text or block.left_out):
        name = f"memory:{block.layer}"
        fate: Fate = "included" if not block.left_out else "cut" if block.text else "left out"
        why = f"{count_noun(block.left_out, 'line')} did not fit its budget; {since}" if block.left_out else since
        parts.append(PromptPart(name=name, fate=fate, tokens=tokens[name], why=why, sources=block.sources))
    message_ids = tuple(entry.id for entry in conversation)
    parts.append(
        PromptPart(
            name="history",
            fate="included",
            tokens=tokens["history"],
            why=count_noun(len(conversation), "message"),
            sources=message_ids,
        )
    )
    parts += [
        PromptPart(name=omission.what, fate="left out", tokens=0, why=omission.reason) for omission in view.left_out
    ]
    parts += [PromptPart(name="history", fate="repaired", tokens=0, why=why) for why in view.repaired]
    if tokens["changes"]:
        sources = tuple(dict.fromkeys(state.change_sources))
        parts.append(
            PromptPart(name="changes", fate="included", tokens=tokens["changes"], why=_CHANGES, sources=sources)
        )
    if view.carrier is not None:
        meta = tokens["context_meta"]
        parts.append(PromptPart(name="context_meta", fate="included", tokens=meta, why="how full the window is"))
    else:
        parts.append(
            PromptPart(name="context_meta", fate="left out", tokens=0, why="no user or tool message can carry it")
        )
    return Explanation(call=call, parts=tuple(parts))


_FIXED_PARTS = (
    ("tools", "tools of the host and of layers"),
    ("system", "system prompt of the host, unchanged"),
    ("guide", "explains the memory to the model"),
)
_CHANGES = "memory that changed since the anchor"


def format_sources(sources: tuple[str, ...]) -> str:
    """Format event ids: events of the session as #number, others by their full id."""
    numbers = [f"#{source.rpartition('#')[2]}" if source.startswith("session/") else source for source in sources]
    return numbers[0] if len(numbers) == 1 else f"{numbers[0]} … {numbers[-1]}"
