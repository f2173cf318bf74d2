"""The result of `prepare`: the request, and a report of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.text import count_noun
from inmind.history.compaction.build import CompactionReport
from inmind.history.token_meter import band_for
from inmind.history.view import View
from inmind.prompt.explain import Explanation
from inmind.prompt.meter import share_of_room
from inmind.prompt.plan import PromptPlan
from inmind.prompt.state import PromptState


@frozen(kw_only=True)
class Report:
    """Token counts of a prepared prompt, corrected by the usage that the provider reported.

    `tokens` is by part; its sum is `tokens_used`, except for rounding.
    """

    call: int
    tokens: Mapping[str, int]
    tokens_used: int
    """Tokens of the whole prompt."""
    tokens_max: int
    """The context window of the model."""
    room_used: int
    """Tokens of memory and history: the prompt without system prompt and tools."""
    room: int
    """The most that memory and history may take: the window without system prompt, tools, reserve and margin."""
    band: str
    """Name of the band for `tokens_percent`, which the model reads as `action_hint`."""
    cached_prefix_tokens: int
    """Leading tokens equal to the previous prompt, which a provider can serve from its cache."""
    cold: bool
    """The provider's cache has expired: the equal prefix is charged in full again."""
    anchor_moved: str
    """Why the memory in the prefix was replaced; empty if it was not."""
    cut: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    compactions: tuple[CompactionReport, ...] = ()
    """Automatic compactions since the previous call; usually none."""

    @property
    def compacted(self) -> str:
        """Why the history was compacted for this call; empty if it was not."""
        return self.compactions[-1].reason if self.compactions else ""

    @property
    def tokens_percent(self) -> float:
        """Share of the room that memory and history take; above 75 memory compacts."""
        return share_of_room(self.room_used, self.room)

    def __str__(self) -> str:
        size = f"{self.tokens_used:,} tokens, {self.tokens_percent:.0f}% of the room used ({self.band})"
        return f"call {self.call}: {size}, {self.cached_prefix_tokens:,} in the cached prefix"


@frozen(kw_only=True)
class Prompt:
    """A prompt ready to send: `client.chat.completions.create(model=…, **prompt.request)`."""

    call: int
    format: str
    request: dict[str, Any] = field(repr=False)
    report: Report
    memory: str = field(default="", repr=False)
    """The part of the request added by memory before the conversation: guide and layers."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.request["input" if self.format == "responses" else "messages"]

    @property
    def tools(self) -> list[dict[str, Any]] | None:
        return self.request.get("tools")

    @property
    def system(self) -> Any:
        """The system prompt outside of the messages (Anthropic `system`, Responses `instructions`)."""
        return self.request.get("instructions" if self.format == "responses" else "system")

    def __str__(self) -> str:
        return f"{self.format} request of {count_noun(len(self.messages), 'message')}, {self.report}"


@frozen(kw_only=True)
class PromptPreview(Prompt):
    """A prompt that is not stored; it contains its explanation."""

    explanation: Explanation = field(repr=False)


def build_report(
    call: int,
    state: PromptState,
    plan: PromptPlan,
    view: View,
    notices: tuple[str, ...],
    compactions: tuple[CompactionReport, ...] = (),
) -> Report:
    correct, prepared, anchor = state.calibration.correct, plan.prepared, state.anchor
    used = correct(prepared.used)
    room_used, room = correct(prepared.room_used), correct(prepared.room)
    if not prepared.room:  # a prompt from before the room was counted
        room_used, room = used, prepared.window
    return Report(
        call=call,
        tokens={part: correct(tokens) for part, tokens in plan.tokens.items()},
        tokens_used=used,
        tokens_max=prepared.window,
        room_used=room_used,
        room=room,
        band=band_for(share_of_room(room_used, room)),
        cached_prefix_tokens=correct(plan.unchanged_tokens),
        cold=plan.cold,
        anchor_moved=anchor.reason if anchor and anchor.call == call else "",
        cut=tuple(f"{layer}: {count_noun(lines, 'line')}" for layer, lines in plan.cut),
        left_out=tuple(f"{omission.what}: {omission.reason}" for omission in view.left_out),
        repaired=view.repaired,
        notices=notices,
        compactions=compactions,
    )
