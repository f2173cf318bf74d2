"""What `prepare` hands to the host: the request, and what it is made of in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.text import counted
from inmind.history.compaction.report import CompactionReport
from inmind.history.token_meter import band_for
from inmind.history.view import View
from inmind.prompt.explain import Explanation
from inmind.prompt.plan import PromptPlan
from inmind.prompt.state import PromptState


@frozen(kw_only=True)
class Report:
    """What a prepared prompt is made of, in numbers, corrected by what the provider has reported so far.

    `tokens` is by part and adds up to `tokens_used`, give or take the rounding of the correction.
    """

    call: int
    tokens: Mapping[str, int]
    tokens_used: int
    tokens_max: int
    band: str
    cached_prefix_tokens: int
    """Leading tokens that equal the previous prompt's: what a provider can serve from its cache."""
    cold: bool
    """So much time has passed that the provider has dropped its cache: the equal prefix is paid for again."""
    anchor_moved: str
    """Why the memory in the prefix was sent anew; empty when it was not."""
    cut: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    compactions: tuple[CompactionReport, ...] = ()
    """What memory has compacted by itself since the call before, item by item; most of the time nothing."""

    @property
    def compacted(self) -> str:
        """Why the history was compacted for this call; empty when it was not."""
        return self.compactions[-1].reason if self.compactions else ""

    @property
    def tokens_percent(self) -> float:
        return 100 * self.tokens_used / self.tokens_max


@frozen(kw_only=True)
class Prompt:
    """Ready to send: `client.chat.completions.create(model=…, **prompt.request)`."""

    call: int
    format: str
    request: dict[str, Any] = field(repr=False)
    report: Report
    memory: str = field(default="", repr=False)
    """What of the request is ours in front of the conversation: the guide and the layers, as they stand in it."""

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.request["input" if self.format == "responses" else "messages"]

    @property
    def tools(self) -> list[dict[str, Any]] | None:
        return self.request.get("tools")

    @property
    def system(self) -> Any:
        """What goes beside the messages: Anthropic's `system`, the `instructions` of responses."""
        return self.request.get("instructions" if self.format == "responses" else "system")


@frozen(kw_only=True)
class PromptPreview(Prompt):
    """A prompt that nobody has asked for yet: nothing of it is stored, so it brings its own explanation along."""

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
    return Report(
        call=call,
        tokens={part: correct(tokens) for part, tokens in plan.tokens.items()},
        tokens_used=used,
        tokens_max=prepared.window,
        band=band_for(100 * used / prepared.window),
        cached_prefix_tokens=correct(plan.unchanged_tokens),
        cold=plan.cold,
        anchor_moved=anchor.reason if anchor and anchor.call == call else "",
        cut=tuple(f"{layer}: {counted(lines, 'line')}" for layer, lines in plan.cut),
        left_out=tuple(f"{left.what}: {left.why}" for left in view.left_out),
        repaired=view.repaired,
        notices=notices,
        compactions=compactions,
    )
