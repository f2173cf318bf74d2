"""The conversation as one provider takes it, and how much of it the provider has seen before.

Arranging is worked out once: a beginning that ends with a message that went out as it came is settled, and an
unchanged history costs nothing however long it is. Every wire that goes out has a name in a hash chain over the
encoded wires, so two prompts are compared, and a prompt is named, by what was really sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inmind.core.encoding import digest, to_json
from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Message, Wire
from inmind.core.messages.pairing import Arrangement, LeftOut, Said, arrange
from inmind.history import Conversation, ConversationEntry


@frozen(kw_only=True)
class View:
    """The messages of one prompt, in order, before the tail is put on."""

    format: str
    wires: Sequence[Wire]
    names: Sequence[str]
    """`names[i]` stands for the first i + 1 wires: equal names, equal bytes."""
    left_out: tuple[LeftOut, ...]
    repaired: tuple[str, ...]
    as_it_came: bool
    """The wires are the messages of the line, one by one."""
    carrier: int | None
    """Which of them carries the tail; None when none can."""

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else ""

    @property
    def behind(self) -> int:
        """Wires behind the tail, as when the beginning of an answer is given."""
        return 0 if self.carrier is None else len(self.wires) - 1 - self.carrier

    def shared_with(self, earlier: View) -> int:
        """Leading wires that stood at the same place in an earlier prompt and before its tail."""
        if self.format != earlier.format:
            return 0
        low, high = 0, min(len(self.wires) - self.behind, len(earlier.wires) - earlier.behind)
        while low < high:  # names are a chain: if the first n agree, so do all before
            middle = (low + high + 1) // 2
            if self.names[middle - 1] == earlier.names[middle - 1]:
                low = middle
            else:
                high = middle - 1
        return low


@dataclass
class HistoryView:
    """Makes views of a growing line, and hands out copies of their wires.

    Hardly anything that follows can change how a settled beginning is arranged. What can is the id of a call:
    when one comes that meets a settled one, everything is arranged anew.
    """

    _format: str = ""
    _settled: int = 0
    _name: str = ""
    _wires: list[Wire] = field(default_factory=list[Wire])
    _names: list[str] = field(default_factory=list[str])
    _repaired: tuple[str, ...] = ()
    _as_it_came: bool = True
    _ids: set[str] = field(default_factory=set[str])
    _open: set[str] = field(default_factory=set[str])
    _handed: list[Wire] = field(default_factory=list[Wire])
    _read: dict[str, Message] = field(default_factory=dict[str, Message])

    def message(self, entry: ConversationEntry) -> Message:
        """What a message says; each is read once."""
        known = self._read.get(entry.digest)
        if known is None:
            if len(self._read) >= MOST_READ:
                self._read.clear()
            known = self._read[entry.digest] = FORMATS[entry.format].read(entry.wire)
        return known

    def of(self, line: Conversation, format: str) -> View:
        if format != self._format or not line.begins_with(self._settled, self._name):
            self._start_over(format)
        said = [Said(entry.format, entry.wire, self.message(entry)) for entry in line[self._settled :]]
        calls = [call.id for one in said for call in one.message.calls]
        results = {result.id for one in said for result in one.message.results}
        fresh = arrange(said, FORMATS[format], begins=not self._settled)
        if self._settled and self._concerned(calls, results, fresh):
            self._start_over(format)
            return self.of(line, format)
        view = self._extended(said, fresh)
        if said and not fresh.left_out and fresh.wires and fresh.wires[-1] is said[-1].wire:
            self._settled, self._name = len(line), line.name()
            self._wires, self._names = list(view.wires), list(view.names)
            self._repaired, self._as_it_came = view.repaired, view.as_it_came
            self._ids.update(calls)
            self._open.update(set(calls) - results)
        return view

    def copies(self, view: View) -> list[Wire]:
        """The wires as objects that the host may do with as it likes.

        Consecutive prompts share them; one that the host has changed is made anew.
        """
        known = len(self._handed)
        if self._handed != view.wires[:known]:
            self._handed, known = [], 0
        self._handed += [copied(wire) for wire in view.wires[known:]]
        return list(self._handed)

    def _extended(self, said: Sequence[Said], fresh: Arrangement) -> View:
        sent = [FORMATS[self._format].outgoing(wire) for wire in fresh.wires]
        names = list(self._names)
        for wire in sent:
            names.append(digest(names[-1] if names else "", to_json(wire)))
        same = len(sent) == len(said) and all(wire is one.wire for wire, one in zip(sent, said, strict=True))
        wires = [*self._wires, *sent]
        return View(
            format=self._format,
            wires=wires,
            names=names,
            left_out=fresh.left_out,
            repaired=self._repaired + fresh.repaired,
            as_it_came=self._as_it_came and same,
            carrier=FORMATS[self._format].carrier(wires),
        )

    def _concerned(self, calls: Sequence[str], results: set[str], fresh: Arrangement) -> bool:
        """Does what came meet something settled: an open call, or an id that must not be used again?"""
        if not self._open.isdisjoint(results) or not self._open.isdisjoint(calls):
            return True
        if len(set(calls)) < len(calls):
            return True
        once = FORMATS[self._format].demands.ids_once == "conversation"
        return once and (bool(fresh.repaired) or not self._ids.isdisjoint(calls))

    def _start_over(self, format: str) -> None:
        self._format, self._settled, self._name, self._wires, self._names = format, 0, "", [], []
        self._repaired, self._as_it_came, self._ids, self._open = (), True, set(), set()


def copied(value: Any) -> Any:
    """A copy that the host may do with as it likes; texts are shared, containers are not."""
    if is_object(value):
        return {key: inner if type(inner) is str else copied(inner) for key, inner in value.items()}
    if is_list(value):
        return [copied(inner) for inner in value]
    return value


MOST_READ = 20_000
"""Messages whose reading is remembered."""
