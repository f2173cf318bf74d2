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

    Once a beginning ends with a message that went out as it came, hardly anything that follows can change how it
    is arranged, so an unchanged history costs nothing however long it is. What can is the id of a call: when one
    comes that meets a settled one, everything is arranged anew.
    """

    _format: str = ""
    _settled: int = 0
    _name: str = ""
    _wires: list[Wire] = field(default_factory=list[Wire])
    _repaired: tuple[str, ...] = ()
    _altered: bool = False
    _ids: set[str] = field(default_factory=set[str])
    _open: set[str] = field(default_factory=set[str])
    _handed: list[Wire] = field(default_factory=list[Wire])

    def of(self, line: Line, format: str) -> Arrangement:
        if format != self._format or not line.begins_with(self._settled, self._name):
            self._start_over(format)
        said = [_said(entry) for entry in line[self._settled :]]
        calls = [call.id for one in said for call in one.message.calls]
        results = {result.id for one in said for result in one.message.results}
        fresh = arrange(said, FORMATS[format], begins=not self._settled)
        if self._settled and self._concerned(calls, results, fresh):
            self._start_over(format)
            return self.of(line, format)
        sent = [FORMATS[format].outgoing(wire) for wire in fresh.wires]
        whole = Arrangement([*self._wires, *sent], fresh.left_out, self._repaired + fresh.repaired)
        if said and not fresh.left_out and fresh.wires[-1] is said[-1].wire:
            self._settled, self._name, self._wires = len(line), line.name(), whole.wires
            self._repaired = whole.repaired
            self._altered |= bool(fresh.repaired) or any(a is not b.wire for a, b in zip(sent, said, strict=False))
            self._ids.update(calls)
            self._open.update(set(calls) - results)
        return whole

    def goes_as_it_came(self, line: Line) -> bool:
        """Is the arrangement just made the very messages of the line?"""
        return self._settled == len(line) and not self._altered

    def copies(self, arranged: Sequence[Wire]) -> list[Wire]:
        """The same messages as objects that the host may do with as it likes.

        Consecutive prompts share them, as they would share the host's own; one that was changed is made anew.
        """
        known = len(self._handed)
        if self._handed != arranged[:known]:
            self._handed, known = [], 0
        self._handed += [_copied(wire) for wire in arranged[known:]]
        return list(self._handed)

    def _concerned(self, calls: Sequence[str], results: set[str], fresh: Arrangement) -> bool:
        """Does what came meet something settled: an open call, or an id that must not be used again?"""
        if not self._open.isdisjoint(results) or not self._open.isdisjoint(calls):
            return True
        if len(set(calls)) < len(calls):
            return True
        once = FORMATS[self._format].demands.ids_once == "conversation"
        return once and (bool(fresh.repaired) or not self._ids.isdisjoint(calls))

    def _start_over(self, format: str) -> None:
        self.__init__(_format=format, _handed=self._handed)


@dataclass(frozen=True, slots=True)
class Own:
    """What the host handed in, to be handed back as the same objects where it says the same as the journal."""

    system: System = None
    tools: Tools = None
    wires: Sequence[Wire] | None = None
    """Its messages; None when they are not, one by one, those of the line."""


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
    own = own or Own()
    arranged = view.of(line, prepared.format)
    as_it_came = own.wires is not None and view.goes_as_it_came(line)
    wires = own.wires if own.wires is not None and as_it_came else view.copies(arranged.wires)
    tail = tail_text(standing, line, prepared)
    carried = format.carry(wires, tail)
    memory = memory_text(standing.wording, standing.blocks)
    head = Head(system=_own_or_copy(own.system, standing.system), memory=memory)
    tools = [*(_own_or_copy(own.tools, standing.tools) or ()), *_copied(standing.offered)] or None
    request = format.request(head, wires if carried is None else carried, tools)
    return Rendered(request, memory, tail, carried is not None, arranged.left_out, arranged.repaired)


def tail_text(standing: Standing, line: Line, prepared: PromptPrepared) -> str:
    reading = Reading(
        tokens_used=standing.calibration.correct(prepared.used),
        tokens_max=prepared.window,
        messages=len(line),
        memory_size=sum(len(block.text.encode()) for block in standing.blocks),
        largest=prepared.largest,
    )
    changes = changes_text(standing.wording, standing.tail)
    meta = context_meta(reading, standing.wording, _named(line, prepared))
    return f"{changes}\n{meta}" if changes else meta


def name_of(standing: Standing, line: Line, prepared: PromptPrepared, tail: str) -> str:
    """The digest that stands for a prompt's bytes, without writing out a history that has a name already."""
    return digest(RENDERING, *standing.parts(prepared.format), line.name(), str(len(line)), tail)


def _named(line: Line, prepared: PromptPrepared) -> list[str]:
    if not prepared.largest:
        return []
    places = {entry.seq: (index, entry) for index, entry in enumerate(line)}
    return [describe(places[seq][1], tokens, places[seq][0]) for seq, tokens in prepared.largest]


def _said(entry: Entry) -> Said:
    return Said(format=entry.format, wire=entry.wire, message=FORMATS[entry.format].read(entry.wire))


def _own_or_copy(own: Any, ours: Any) -> Any:
    return own if own is not None and own == ours else _copied(ours)


def _copied(value: Any) -> Any:
    """A copy that the host may do with as it likes; texts are shared, containers are not."""
    if is_object(value):
        return {key: inner if type(inner) is str else _copied(inner) for key, inner in value.items()}
    if is_list(value):
        return [_copied(inner) for inner in value]
    return value
