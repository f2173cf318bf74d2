"""Renders a state and a view to the exact request, with `context_meta` at its end.

Both `prepare` and the rebuilding of past prompts use it, so an explanation shows what was sent.

`context_meta` reports the use of the context window to the model. Its share is the one that the bands and the mandatory
compaction use: memory and history, as they are sent, of the room that the window has for both. It is an extra content
part at the end of the prompt: it changes on every call, and text after it could not be cached. It is never stored in
the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from typing import Any

from inmind.core.encoding import digest, to_json
from inmind.core.events.session import PromptPrepared
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.cache_control import apply_marks
from inmind.core.messages.model import PromptHead, Wire
from inmind.core.text import escape_markup
from inmind.history.compaction.select import DEFAULT_KEEP_RECENT, select_requested
from inmind.history.history import Conversation, ConversationEntry
from inmind.history.turns import TurnMessage
from inmind.history.view import TokenMeter, View, band_for, deep_copy
from inmind.prompt.state import PromptState
from inmind.prompt.templates import changes_text, memory_text

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


RENDERING_VERSION = "1"
"""Increase it when the request of a format changes although texts and messages stay the same."""


@frozen
class RenderedPrompt:
    """A request for the provider's client, and its digest."""

    request: dict[str, Any]
    digest: str
    memory: str
    """The part added by memory after the host's system prompt."""


def render(
    state: PromptState,
    conversation: Conversation,
    prepared: PromptPrepared,
    view: View,
    wires: Sequence[Wire],
) -> RenderedPrompt:
    """Render the request of a prepared call.

    `wires`: copies of the view's, which the host may modify.
    """
    format = FORMATS[prepared.format]
    memory = memory_text(state.wording, state.blocks)
    tail = tail_text(state, conversation, prepared) if view.carrier is not None else ""
    if prepared.cache_marks:
        wires = apply_marks(wires, prepared.cache_marks, text_type=format.rules.text_type)
    added = [(one.place, one.render(state.wording)) for one in state.changes]
    for place, text in added:
        wires = format.add_part(wires, place, text)
    carried = format.add_tail(wires, tail) if tail else None
    in_thread = bool(prepared.thread)
    system = deep_copy(state.system_in(prepared.format))
    head = PromptHead(system=system, memory=memory, memory_index=prepared.memory_index, in_thread=in_thread)
    request = format.request(head, wires if carried is None else carried, deep_copy(state.all_tools))
    names = (state.system_digest, state.tools_digest, view.digest, str(view.carrier))
    marks = [to_json(prepared.cache_marks)] if prepared.cache_marks else []
    marks += [str(prepared.memory_index)] if prepared.memory_index else []
    marks += ["in a thread"] if in_thread else []
    changes = [to_json(added)] if added else []
    name = digest(RENDERING_VERSION, prepared.format, memory, *names, tail, *marks, *changes)
    return RenderedPrompt(request, digest=name, memory=memory)


def tail_text(state: PromptState, conversation: Conversation, prepared: PromptPrepared) -> str:
    reading = take_reading(state, conversation, prepared.room_used, prepared.room)
    if not prepared.room:  # a prompt from before the room was counted
        reading = replace(take_reading(state, conversation, prepared.used, 0), tokens_max=prepared.window)
    changes = changes_text(state.wording, state.tail, state.new_blocks)
    meta = render_context_meta(reading, state.wording, _largest_messages(conversation, prepared))
    return f"{changes}\n{meta}" if changes else meta


def _largest_messages(conversation: Conversation, prepared: PromptPrepared) -> list[str]:
    if not prepared.largest:
        return []
    entries_by_seq = {entry.seq: (index, entry) for index, entry in enumerate(conversation)}
    return [
        describe_message(entries_by_seq[seq][1], tokens, entries_by_seq[seq][0]) for seq, tokens in prepared.largest
    ]
