"""Renders `context_meta`, which reports the use of the context window to the model.

It is an extra content part at the end of the prompt: it changes on every call, and text after it could not be cached.
It is never stored in the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.text import escape_markup
from inmind.history import Conversation, ConversationEntry
from inmind.history.token_meter import LARGEST_COUNT, TokenMeter, band_for
from inmind.prompt.state import PromptState

STRONG_REMINDER_PERCENT = 50


MAX_META_TOKENS = 150
"""Tokens of a context_meta that names the largest messages."""


@frozen(kw_only=True)
class MeterReading:
    """Numbers of context_meta for one call."""

    tokens_used: int
    tokens_max: int
    messages: int
    memory_size: int

    @property
    def percent(self) -> float:
        return 100 * self.tokens_used / self.tokens_max


def take_reading(state: PromptState, conversation: Conversation, counted_tokens: int, window: int) -> MeterReading:
    """Return the reading for this many tokens, corrected by calibration."""
    return MeterReading(
        tokens_used=state.calibration.correct(counted_tokens),
        tokens_max=window,
        messages=len(conversation),
        memory_size=sum(len(block.text.encode()) for block in state.blocks),
    )


def render_context_meta(reading: MeterReading, wording: Mapping[str, str], largest: Sequence[str]) -> str:
    numbers = {
        "tokens_used": reading.tokens_used,
        "tokens_max": reading.tokens_max,
        "tokens_percent": round(reading.percent),
        "messages_in_history": reading.messages,
        "working_memory_size": reading.memory_size,
        "action_hint": band_for(reading.percent),
    }
    reminder = wording["reminder_strong" if reading.percent > STRONG_REMINDER_PERCENT else "reminder"]
    if largest:
        reminder += f" {wording['largest']}{escape_markup('; '.join(largest))}."
    return f"<context_meta>\n{to_json(numbers)}\n{reminder}\n</context_meta>"


def describe_message(entry: ConversationEntry, tokens: int, position: int) -> str:
    """Describe a message, for example "tool result 3 (1200 tokens)"."""
    message = FORMATS[entry.format].read(entry.wire)
    label = "tool result" if message.results else f"{message.role} message"
    return f"{label} {position + 1} ({tokens} tokens)"


def reserved_meta_tokens(meter: TokenMeter, reading: MeterReading, wording: Mapping[str, str]) -> int:
    """Tokens to reserve for context_meta, given a reading of everything else.

    It contains the count that it is part of, and may name messages, so slightly more is reserved.
    """
    full = replace(reading, tokens_used=reading.tokens_used + MAX_META_TOKENS)
    largest = (
        ["assistant message 9999 (99999 tokens)"] * LARGEST_COUNT if full.percent > STRONG_REMINDER_PERCENT else []
    )
    return meter.count(render_context_meta(full, wording, largest))
