"""Rebuilds a past prompt from its events; refuses a result that differs from the original."""

from __future__ import annotations

from datetime import datetime

from inmind.core.events.prompt import PromptPrepared
from inmind.core.tokens import Counter
from inmind.errors import PromptNotRebuilt
from inmind.history import Conversation
from inmind.history.token_meter import TokenMeter
from inmind.history.view import View, ViewBuilder
from inmind.prompt.explain import Explanation, explain
from inmind.prompt.plan import PromptPlan, count_tokens, count_unchanged_prefix, is_cache_cold
from inmind.prompt.render import CopyCache, render
from inmind.prompt.report import Prompt, build_report
from inmind.prompt.state import PromptState


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
    rendered = render(state, conversation, prepared, view, history.copy_wires(view), CopyCache())
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


def explain_prompt(
    state: PromptState, conversation: Conversation, prepared: PromptPrepared, *, counter: Counter
) -> Explanation:
    view = ViewBuilder().build(conversation, prepared.format, in_thread=bool(prepared.thread))
    correct = state.calibration.correct
    tokens = count_tokens(state, conversation, view, TokenMeter(counter), prepared.room or prepared.window)
    return explain(state.calls + 1, state, conversation, view, {part: correct(size) for part, size in tokens.items()})


def assumed_shared_wires(state: PromptState, conversation: Conversation, view: View) -> int:
    """Leading wires that the previous prompt had, known only from its events.

    If messages were repaired or converted, the events do not show it, and the result is 0.
    """
    return min(state.last_prompt.message_count, len(conversation) - view.after_carrier) if view.is_unchanged else 0
