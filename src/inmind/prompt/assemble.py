"""From a standing and a line to the exact request, the same way today and for a call of last year.

`prepare` and the rebuilding of an old prompt both end here, so what is explained is what was sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inmind.history import Entry, Line
from inmind.journal import PromptPrepared, digest
from inmind.prompt.formats import FORMATS
from inmind.prompt.formats.pairing import Arrangement, LeftOut, Said, arrange
from inmind.prompt.formats.parts import Head, Wire
from inmind.prompt.formats.values import is_list, is_object
from inmind.prompt.meter import Reading, context_meta, describe
from inmind.prompt.standing import Standing, System, Tools
from inmind.prompt.wording import changes_text, memory_text

RENDERING = "1"
"""Raised when the same events would render to other bytes; part of every prompt's name."""


@dataclass
class HistoryView:
    """The line as one provider takes it: paired, ordered, converted where it must be.

    A beginning that went out just as it came, with every call answered, is settled: nothing that follows can
    change how it is arranged, so an unchanged history costs nothing however long it is. The exception is a
    provider that takes an id only once in a conversation, when a later call uses a settled one or gets a new one.
    """

    _format: str = ""
    _settled: int = 0
    _name: str = ""
    _wires: list[Wire] = field(default_factory=list[Wire])
    _ids: set[str] = field(default_factory=set[str])

    def of(self, line: Line, format: str) -> Arrangement:
        if format != self._format or not line.begins_with(self._settled, self._name):
            self._start_over(format)
        said = [_said(entry) for entry in line[self._settled :]]
        calls = {call.id for one in said for call in one.message.calls}
        fresh = arrange(said, FORMATS[format], begins=not self._settled)
        ids_once = FORMATS[format].demands.ids_once == "conversation"
        if ids_once and self._settled and (fresh.repaired or calls & self._ids):
            self._start_over(format)
            return self.of(line, format)
        whole = Arrangement(wires=[*self._wires, *fresh.wires], left_out=fresh.left_out, repaired=fresh.repaired)
        if _went_out_as_they_came(said, fresh):
            self._settled, self._name, self._wires = len(line), line.name(), whole.wires
            self._ids |= calls
        return whole

    def _start_over(self, format: str) -> None:
        self._format, self._settled, self._name, self._wires, self._ids = format, 0, "", [], set()


@dataclass(frozen=True, slots=True)
class Own:
    """What the host handed in, to be handed back as the same objects where it says the same as the journal."""

    system: System
    tools: Tools
    wires: Sequence[Wire] | None


@dataclass(frozen=True, slots=True)
class Rendered:
    """A request, ready for the provider's client, and what was done to make it valid."""

    request: dict[str, Any]
    memory: str
    tail: str
    tail_carried: bool
    left_out: tuple[LeftOut, ...]
    repaired: tuple[str, ...]


def render(
    standing: Standing, line: Line, prepared: PromptPrepared, view: HistoryView, *, own: Own | None = None
) -> Rendered:
    """The request for a prepared call. Nothing of the journal's is handed out: the host's own objects, or copies."""
    format = FORMATS[prepared.format]
    own = own or Own(None, None, None)
    arranged = view.of(line, prepared.format)
    wires = _own_or_copy(own.wires, arranged.wires)
    tail = tail_text(standing, line, prepared)
    carried = format.carry(wires, tail)
    memory = memory_text(standing.wording, standing.blocks)
    head = Head(system=_own_or_copy(own.system, standing.system), memory=memory)
    tools = _own_or_copy(own.tools, standing.tools)
    request = format.request(head, wires if carried is None else carried, tools)
    return Rendered(request, memory, tail, carried is not None, arranged.left_out, arranged.repaired)


def tail_text(standing: Standing, line: Line, prepared: PromptPrepared) -> str:
    reading = Reading(
        tokens_used=standing.calibration.correct(prepared.used),
        tokens_max=prepared.window,
        messages=prepared.messages,
        memory_size=prepared.memory,
        largest=prepared.largest,
    )
    changes = changes_text(standing.wording, standing.tail)
    meta = context_meta(reading, standing.wording, _named(line, prepared))
    return f"{changes}\n{meta}" if changes else meta


def name_of(standing: Standing, line: Line, prepared: PromptPrepared, tail: str) -> str:
    """The digest that stands for a prompt's bytes, without writing out a history that has a name already."""
    return digest(RENDERING, *standing.parts(prepared.format), line.name(), str(prepared.messages), tail)


def _named(line: Line, prepared: PromptPrepared) -> list[str]:
    if not prepared.largest:
        return []
    places = {entry.seq: (index, entry) for index, entry in enumerate(line)}
    return [describe(places[seq][1], tokens, places[seq][0]) for seq, tokens in prepared.largest]


def _said(entry: Entry) -> Said:
    return Said(format=entry.format, wire=entry.wire, message=FORMATS[entry.format].read(entry.wire))


def _went_out_as_they_came(said: Sequence[Said], arranged: Arrangement) -> bool:
    """Then every call among them is answered too: an open one would have needed a stand-in."""
    if arranged.repaired or arranged.left_out or len(said) != len(arranged.wires):
        return False
    return all(one.wire is wire for one, wire in zip(said, arranged.wires, strict=True))


def _own_or_copy(own: Any, ours: Any) -> Any:
    return own if own is not None and own == ours else _copied(ours)


def _copied(value: Any) -> Any:
    """A copy that the host may do with as it likes; texts are shared, containers are not."""
    if is_object(value):
        return {key: inner if type(inner) is str else _copied(inner) for key, inner in value.items()}
    if is_list(value):
        return [_copied(inner) for inner in value]
    return value
