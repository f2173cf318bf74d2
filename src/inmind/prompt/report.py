"""The result of `prepare`: the request, a report of its parts, and their explanation.

A past prompt is rebuilt from its events; a result that differs from the original is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Literal

from inmind.core.events.session import PromptPrepared
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.text import count_noun
from inmind.core.tokens import Counter
from inmind.errors import PromptNotRebuilt
from inmind.history.compaction.policy import CompactionReport
from inmind.history.history import Conversation
from inmind.history.view import TokenMeter, View, ViewBuilder, band_for
from inmind.prompt.plan import PromptPlan, count_tokens, count_unchanged_prefix, is_cache_cold
from inmind.prompt.render import render, share_of_room
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


def explain_prompt(
    state: PromptState, conversation: Conversation, prepared: PromptPrepared, *, counter: Counter
) -> Explanation:
    """Explain the parts of the prompt prepared on this state."""
    view = ViewBuilder().build(conversation, prepared.format, in_thread=bool(prepared.thread))
    tokens = count_tokens(state, conversation, view, TokenMeter(counter), prepared.room or prepared.window)

    def part(name: str, why: str, sources: Iterable[str] = (), fate: Fate = "included") -> PromptPart:
        size = state.calibration.correct(tokens[name]) if fate in ("included", "cut") else 0
        return PromptPart(name=name, fate=fate, tokens=size, why=why, sources=tuple(sources))

    since = f"anchored since call {state.anchor.call} ({state.anchor.reason})" if state.anchor else ""
    parts = [part(name, why, [state.sources[name]]) for name, why in _FIXED_PARTS if tokens[name]]
    for block in state.blocks:
        if block.left_out:
            why = f"{count_noun(block.left_out, 'line')} did not fit its budget; {since}"
            parts.append(part(f"memory:{block.layer}", why, block.sources, "cut" if block.text else "left out"))
        elif block.text:
            parts.append(part(f"memory:{block.layer}", since, block.sources))
    parts.append(part("history", count_noun(len(conversation), "message"), [entry.id for entry in conversation]))
    parts += [part(omission.what, omission.reason, fate="left out") for omission in view.left_out]
    parts += [part("history", why, fate="repaired") for why in view.repaired]
    if tokens["changes"]:
        parts.append(part("changes", "memory that changed since the anchor", dict.fromkeys(state.change_sources)))
    if view.carrier is not None:
        parts.append(part("context_meta", "how full the window is"))
    else:
        parts.append(part("context_meta", "no user or tool message can carry it", fate="left out"))
    return Explanation(call=state.calls + 1, parts=tuple(parts))


_FIXED_PARTS = (
    ("tools", "tools of the host and of layers"),
    ("system", "system prompt of the host, unchanged"),
    ("guide", "explains the memory to the model"),
)


def format_sources(sources: tuple[str, ...]) -> str:
    """Format event ids: events of the session as #number, others by their full id."""
    numbers = [f"#{source.rpartition('#')[2]}" if source.startswith("session/") else source for source in sources]
    return numbers[0] if len(numbers) == 1 else f"{numbers[0]} … {numbers[-1]}"


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
        return self.request[FORMATS[self.format].messages_field]

    @property
    def tools(self) -> list[dict[str, Any]] | None:
        return self.request.get("tools")

    @property
    def system(self) -> Any:
        """The system prompt outside of the messages (Anthropic `system`, Responses `instructions`)."""
        return self.request.get(FORMATS[self.format].system_field)

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


def rebuild_prompt(
    state: PromptState,
    conversation: Conversation,
    prepared: PromptPrepared,
    *,
    at: datetime,
    counter: Counter,
    cache_seconds: float,
) -> Prompt:
    """Return the prompt prepared on this state, with a report counted by the current counter."""
    call, meter = state.calls + 1, TokenMeter(counter)
    history = ViewBuilder()
    view = history.build(conversation, prepared.format, in_thread=bool(prepared.thread))
    rendered = render(state, conversation, prepared, view, history.copy_wires(view))
    if rendered.digest != prepared.digest:
        raise PromptNotRebuilt(call=call, sent=prepared.digest, rebuilt=rendered.digest)
    tokens = count_tokens(state, conversation, view, meter, prepared.room or prepared.window)
    shared = meter.count_view(conversation, view, assumed_shared_wires(state, conversation, view))
    planned = PromptPlan(
        drafts=(),
        prepared=prepared,
        tokens=tokens,
        cut=tuple((block.layer, block.left_out) for block in state.blocks if block.left_out),
        unchanged_tokens=count_unchanged_prefix(state, tokens, prepared.format, shared),
        cold=is_cache_cold(state, at, cache_seconds),
    )
    report = build_report(call, state, planned, view, ())
    return Prompt(call=call, format=prepared.format, request=rendered.request, report=report, memory=rendered.memory)


def assumed_shared_wires(state: PromptState, conversation: Conversation, view: View) -> int:
    """Leading wires that the previous prompt had, known only from its events.

    If messages were repaired or converted, the events do not show it, and the result is 0.
    """
    return min(state.last_prompt.message_count, len(conversation) - view.after_carrier) if view.is_unchanged else 0
