"""Renders a state and a view to the exact request.

Both `prepare` and the rebuilding of past prompts use it, so an explanation shows what was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from inmind.core.encoding import digest, to_json
from inmind.core.events.prompt import PromptPrepared
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.cache_control import apply_marks
from inmind.core.messages.model import PromptHead, Wire
from inmind.history import Conversation
from inmind.history.view import View, deep_copy
from inmind.prompt.meter import MeterReading, describe_message, render_context_meta, take_reading
from inmind.prompt.state import PromptState
from inmind.prompt.templates import changes_text, memory_text

RENDERING_VERSION = "1"
"""Increase it when the request of a format changes although texts and messages stay the same."""


@frozen
class RenderedPrompt:
    """A request for the provider's client, and its digest."""

    request: dict[str, Any]
    digest: str
    memory: str
    """The part added by memory after the host's system prompt."""


MAX_COPIES = 8
"""Cached copies: a host uses few system prompts and sets of tools at a time."""


class CopyCache:
    """Copies of system prompts and tools for the host.

    A value is copied once, and again if the host modified its copy.
    """

    def __init__(self) -> None:
        self._copies: dict[str, Any] = {}

    def get(self, name: str, value: Any) -> Any:
        copy = self._copies.pop(name, None)
        if copy is None or copy != value:
            copy = deep_copy(value)
        self._copies[name] = copy
        if len(self._copies) > MAX_COPIES:
            del self._copies[next(iter(self._copies))]
        return copy


def render(
    state: PromptState,
    conversation: Conversation,
    prepared: PromptPrepared,
    view: View,
    wires: Sequence[Wire],
    copies: CopyCache,
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
    tools = copies.get(state.tools_digest, state.all_tools)
    system = copies.get(state.system_digest, state.system_in(prepared.format))
    in_thread = bool(prepared.thread)
    head = PromptHead(system=system, memory=memory, memory_index=prepared.memory_index, in_thread=in_thread)
    request = format.request(head, wires if carried is None else carried, tools)
    names = (state.system_digest, state.tools_digest, view.digest, str(view.carrier))
    marks = [to_json(prepared.cache_marks)] if prepared.cache_marks else []
    marks += [str(prepared.memory_index)] if prepared.memory_index else []
    marks += ["in a thread"] if in_thread else []
    changes = [to_json(added)] if added else []
    name = digest(RENDERING_VERSION, prepared.format, memory, *names, tail, *marks, *changes)
    return RenderedPrompt(request, digest=name, memory=memory)


def tail_text(state: PromptState, conversation: Conversation, prepared: PromptPrepared) -> str:
    reading = _meter_reading(state, conversation, prepared)
    changes = changes_text(state.wording, state.tail, state.new_blocks)
    meta = render_context_meta(reading, state.wording, _largest_messages(conversation, prepared))
    return f"{changes}\n{meta}" if changes else meta


def _meter_reading(state: PromptState, conversation: Conversation, prepared: PromptPrepared) -> MeterReading:
    if prepared.room:
        return take_reading(state, conversation, prepared.room_used, prepared.room)
    return replace(take_reading(state, conversation, prepared.used, 0), tokens_max=prepared.window)


def _largest_messages(conversation: Conversation, prepared: PromptPrepared) -> list[str]:
    if not prepared.largest:
        return []
    entries_by_seq = {entry.seq: (index, entry) for index, entry in enumerate(conversation)}
    return [
        describe_message(entries_by_seq[seq][1], tokens, entries_by_seq[seq][0]) for seq, tokens in prepared.largest
    ]
