"""From a standing and a view to the exact request, the same way today and for a call of last year.

`prepare` and the rebuilding of an old prompt both end here, so what is explained is what was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inmind.core.encoding import digest, to_json
from inmind.core.events.prompt import PromptPrepared
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.cache_control import marked
from inmind.core.messages.model import Head, Wire
from inmind.history import Conversation
from inmind.history.view import View, deep_copy
from inmind.prompt.meter import describe_message, render_context_meta, take_reading
from inmind.prompt.state import PromptState
from inmind.prompt.templates import changes_text, memory_text

RENDERING_VERSION = "1"
"""Raised when a format's request changes around the same texts and messages, which are named by their bytes."""


@frozen
class RenderedPrompt:
    """A request, ready for the provider's client, and the name of its bytes."""

    request: dict[str, Any]
    digest: str
    memory: str
    """What of it is ours, behind the host's system prompt."""


MAX_COPIES = 8
"""Copies that are kept: a host has a few system prompts and sets of tools at a time, however often it changes them."""


class CopyCache:
    """System prompts and tools as they were handed out: copied once, and again where a host has changed its copy."""

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
    """The request for a prepared call. `wires`: the view's, as copies; nothing of the journal's is handed out."""
    format = FORMATS[prepared.format]
    memory = memory_text(state.wording, state.blocks)
    tail = tail_text(state, conversation, prepared) if view.carrier is not None else ""
    if prepared.cache_marks:
        wires = marked(wires, prepared.cache_marks, words=format.demands.words)
    carried = format.carry(wires, tail) if tail else None
    tools = copies.get(state.tools_digest, state.all_tools)
    head = Head(system=_system(state, prepared.format, copies), memory=memory)
    request = format.request(head, wires if carried is None else carried, tools)
    names = (state.system_digest, state.tools_digest, view.digest, str(view.carrier))
    marks = [to_json(prepared.cache_marks)] if prepared.cache_marks else []
    name = digest(RENDERING_VERSION, prepared.format, memory, *names, tail, *marks)
    return RenderedPrompt(request, digest=name, memory=memory)


def tail_text(state: PromptState, conversation: Conversation, prepared: PromptPrepared) -> str:
    reading = take_reading(state, conversation, prepared.used, prepared.window)
    changes = changes_text(state.wording, state.tail, state.new_blocks)
    meta = render_context_meta(reading, state.wording, _largest_messages(conversation, prepared))
    return f"{changes}\n{meta}" if changes else meta


def _system(state: PromptState, format: str, copies: CopyCache) -> Any:
    """As the host gave it; in another provider's request, as plain text."""
    if state.system_format in ("", format):
        return copies.get(state.system_digest, state.system)
    return FORMATS[state.system_format].system_text(state.system) or None


def _largest_messages(conversation: Conversation, prepared: PromptPrepared) -> list[str]:
    if not prepared.largest:
        return []
    places = {entry.seq: (index, entry) for index, entry in enumerate(conversation)}
    return [describe_message(places[seq][1], tokens, places[seq][0]) for seq, tokens in prepared.largest]
