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
from inmind.prompt.meter import context_meta, describe, reading_of
from inmind.prompt.state import Standing
from inmind.prompt.templates import changes_text, memory_text

RENDERING = "1"
"""Raised when a format's request changes around the same texts and messages, which are named by their bytes."""


@frozen
class Rendered:
    """A request, ready for the provider's client, and the name of its bytes."""

    request: dict[str, Any]
    name: str
    memory: str
    """What of it is ours, behind the host's system prompt."""


MOST_HANDED = 8
"""Copies that are kept: a host has a few system prompts and sets of tools at a time, however often it changes them."""


class Handed:
    """System prompts and tools as they were handed out: copied once, and again where a host has changed its copy."""

    def __init__(self) -> None:
        self._copies: dict[str, Any] = {}

    def of(self, name: str, value: Any) -> Any:
        copy = self._copies.pop(name, None)
        if copy is None or copy != value:
            copy = deep_copy(value)
        self._copies[name] = copy
        if len(self._copies) > MOST_HANDED:
            del self._copies[next(iter(self._copies))]
        return copy


def render(
    standing: Standing, line: Conversation, prepared: PromptPrepared, view: View, wires: Sequence[Wire], handed: Handed
) -> Rendered:
    """The request for a prepared call. `wires`: the view's, as copies; nothing of the journal's is handed out."""
    format = FORMATS[prepared.format]
    memory = memory_text(standing.wording, standing.blocks)
    tail = tail_text(standing, line, prepared) if view.carrier is not None else ""
    if prepared.cache_marks:
        wires = marked(wires, prepared.cache_marks, words=format.demands.words)
    carried = format.carry(wires, tail) if tail else None
    tools = handed.of(standing.tools_name, standing.all_tools)
    head = Head(system=_system(standing, prepared.format, handed), memory=memory)
    request = format.request(head, wires if carried is None else carried, tools)
    names = (standing.system_name, standing.tools_name, view.digest, str(view.carrier))
    marks = [to_json(prepared.cache_marks)] if prepared.cache_marks else []
    name = digest(RENDERING, prepared.format, memory, *names, tail, *marks)
    return Rendered(request, name=name, memory=memory)


def tail_text(standing: Standing, line: Conversation, prepared: PromptPrepared) -> str:
    reading = reading_of(standing, line, prepared.used, prepared.window)
    changes = changes_text(standing.wording, standing.tail, standing.fresh)
    meta = context_meta(reading, standing.wording, _named(line, prepared))
    return f"{changes}\n{meta}" if changes else meta


def _system(standing: Standing, format: str, handed: Handed) -> Any:
    """As the host gave it; in another provider's request, as plain text."""
    if standing.system_format in ("", format):
        return handed.of(standing.system_name, standing.system)
    return FORMATS[standing.system_format].system_text(standing.system) or None


def _named(line: Conversation, prepared: PromptPrepared) -> list[str]:
    if not prepared.largest:
        return []
    places = {entry.seq: (index, entry) for index, entry in enumerate(line)}
    return [describe(places[seq][1], tokens, places[seq][0]) for seq, tokens in prepared.largest]
