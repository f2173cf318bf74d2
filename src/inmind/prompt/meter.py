"""Renders `context_meta`, which reports the use of the context window to the model.

Its share is the one that the bands and the mandatory compaction use: memory and history, as they are sent, of the room
that the window has for both.
It is an extra content part at the end of the prompt: it changes on every call, and text after it could not be cached.
It is never stored in the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest

from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.text import escape_markup
from inmind.history import Conversation, ConversationEntry
from inmind.history.compaction.select import DEFAULT_KEEP_RECENT, select_requested
from inmind.history.token_meter import TokenMeter, band_for
from inmind.history.turns import TurnMessage
from inmind.prompt.state import PromptState

STRONG_REMINDER_PERCENT = 50

LARGEST_COUNT = 3
MIN_NAMED_TOKENS = 200
MIN_NAMED_SHARE = 0.05
"""Share of the room below which a message is not worth naming."""

_MAX_CHECKED_MESSAGES = 60
"""A longer conversation has something to compact."""

MAX_META_TOKENS = 150
"""Tokens of a context_meta that names the largest messages."""


@frozen(kw_only=True)
class MeterReading:
    """Numbers of context_meta for one call."""

    tokens_used: int
    """Memory and history as they are sent."""
    tokens_max: int
    """The room for both."""
    messages: int
    memory_size: int

    @property
    def percent(self) -> float:
        return share_of_room(self.tokens_used, self.tokens_max)


def take_reading(state: PromptState, conversation: Conversation, used: int, room: int) -> MeterReading:
    """Return the reading for these counts, corrected by calibration."""
    return MeterReading(
        tokens_used=state.calibration.correct(used),
        tokens_max=state.calibration.correct(room),
        messages=len(conversation),
        memory_size=sum(len(block.text.encode()) for block in state.blocks),
    )


def share_of_room(used: int, room: int) -> float:
    """Percent of the room for memory and history that both take."""
    return 100 * used / max(1, room)


def min_named_tokens(room: int) -> int:
    return max(MIN_NAMED_TOKENS, int(MIN_NAMED_SHARE * room))


def name_largest(messages: Sequence[TurnMessage], room: int) -> tuple[tuple[int, int], ...]:
    """Sequence number and tokens of the largest messages that compact_history can archive.

    A request that is being answered and a result that the model has not read are not among them.
    """
    archivable = select_requested(messages, target="all", keep_recent=0).changed
    least = min_named_tokens(room)
    worth = (messages[place] for place in archivable if not messages[place].stub and messages[place].tokens >= least)
    return tuple((one.seq, one.tokens) for one in nlargest(LARGEST_COUNT, worth, key=lambda one: one.tokens))


def can_compact(conversation: Conversation, turn_messages: Callable[[], Sequence[TurnMessage]], room: int) -> bool:
    """True if compact_history would archive something: by its defaults, or a large message."""
    if len(conversation) > _MAX_CHECKED_MESSAGES:
        return True
    messages = turn_messages()
    selection = select_requested(messages, target="all", keep_recent=DEFAULT_KEEP_RECENT)
    return any(not messages[place].stub for place in selection.changed) or bool(name_largest(messages, room))


def render_context_meta(reading: MeterReading, wording: Mapping[str, str], largest: Sequence[str]) -> str:
    band = band_for(reading.percent)
    numbers = {
        "tokens_used": reading.tokens_used,
        "tokens_max": reading.tokens_max,
        "tokens_percent": round(reading.percent),
        "messages_in_history": reading.messages,
        "working_memory_size": reading.memory_size,
        "action_hint": band,
    }
    reminders = [
        wording.get(band, ""),
        wording["reminder_strong" if reading.percent > STRONG_REMINDER_PERCENT else "reminder"],
        f"{wording['largest']}{escape_markup('; '.join(largest))}." if largest else "",
    ]
    lines = ["<context_meta>", to_json(numbers), " ".join(filter(None, reminders)), "</context_meta>"]
    return "\n".join(filter(None, lines))


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
    names_largest = full.percent > STRONG_REMINDER_PERCENT and bool(wording["largest"])
    largest = ["assistant message 9999 (99999 tokens)"] * LARGEST_COUNT if names_largest else []
    return meter.count(render_context_meta(full, wording, largest))
