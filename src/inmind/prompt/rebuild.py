"""A prompt of the past, made again from the events before it, and refused if it is not what was sent."""

from __future__ import annotations

from datetime import datetime

from inmind.core.events.prompt import PromptPrepared
from inmind.core.tokens import Counter
from inmind.errors import PromptNotRebuilt
from inmind.history import Conversation
from inmind.history.token_meter import TokenMeter
from inmind.history.view import View, ViewBuilder
from inmind.prompt.explain import Explanation, explain
from inmind.prompt.plan import Plan, is_cold, measure, unchanged_prefix
from inmind.prompt.render import Handed, render
from inmind.prompt.report import Prompt, report_on
from inmind.prompt.state import Standing


def rebuilt(
    standing: Standing,
    line: Conversation,
    prepared: PromptPrepared,
    *,
    at: datetime,
    counter: Counter,
    cache_seconds: float,
) -> Prompt:
    """The prompt that was prepared on this state: the request of then, and a report that counts as we count today."""
    call, meter = standing.calls + 1, TokenMeter(counter)
    history = ViewBuilder()
    view = history.build(line, prepared.format)
    rendered = render(standing, line, prepared, view, history.copy_wires(view), Handed())
    if rendered.name != prepared.digest:
        raise PromptNotRebuilt(call=call, sent=prepared.digest, rebuilt=rendered.name)
    tokens = measure(standing, line, view, meter, prepared.window)
    shared = meter.count_view(line, view, presumably_shared(standing, line, view))
    planned = Plan(
        drafts=(),
        prepared=prepared,
        tokens=tokens,
        cut=tuple((block.layer, block.left_out) for block in standing.blocks if block.left_out),
        unchanged=unchanged_prefix(standing, tokens, prepared.format, shared),
        cold=is_cold(standing, at, cache_seconds),
    )
    report = report_on(call, standing, planned, view, ())
    return Prompt(call=call, format=prepared.format, request=rendered.request, report=report, memory=rendered.memory)


def explained(standing: Standing, line: Conversation, prepared: PromptPrepared, *, counter: Counter) -> Explanation:
    view = ViewBuilder().build(line, prepared.format)
    correct = standing.calibration.correct
    tokens = measure(standing, line, view, TokenMeter(counter), prepared.window)
    return explain(standing.calls + 1, standing, line, view, {part: correct(size) for part, size in tokens.items()})


def presumably_shared(standing: Standing, line: Conversation, view: View) -> int:
    """Leading wires that the prompt before had too, when only its events are known and not its view.

    Where messages were mended or converted that cannot be told from events, and nothing is presumed.
    """
    return min(standing.sent.messages, len(line) - view.after_carrier) if view.is_unchanged else 0
