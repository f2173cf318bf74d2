"""What a host hands in, checked once, and the events that bring the journal up to it.

Everything from outside passes here: messages of any provider, as plain objects or as the provider's client gives
them out, system prompts, tools. Only what is new is copied and checked; what is known costs one comparison. Past
this line nobody checks again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from inmind.documents import checked_text
from inmind.errors import InvalidInput, KeyReused
from inmind.history import Line, added_to, match
from inmind.journal import Draft, HistorySpliced, MessageAdded, Origin, SystemSet, ToolsSet, Trust
from inmind.prompt.assemble import Own
from inmind.prompt.formats.parts import Format, Wire
from inmind.prompt.formats.values import check_json, is_object, plain
from inmind.prompt.standing import Standing, System


@dataclass(frozen=True, slots=True)
class Given:
    """What a host handed to `prepare`, in its own objects."""

    system: Any
    tools: Any
    lead: int
    """How many messages at the beginning of its list are its system prompt."""
    wires: Sequence[Any] | None
    """The messages behind those; None when the journal's own history is meant."""

    @classmethod
    def of(cls, messages: Any, system: Any, tools: Any, spoken: Format) -> Given:
        if messages is None:
            return cls(system, tools, 0, None)
        wires = _listed(messages, "messages")
        leading = (i for i, wire in enumerate(wires) if not (is_object(wire) and spoken.is_system(wire)))
        lead = next(leading, len(wires))
        if lead and system is not None:
            raise InvalidInput(field="system", value=system, expected="none, since messages begin with a system prompt")
        return cls(wires[:lead] if lead else system, tools, lead, wires[lead:] if lead else wires)


def taken_in(
    standing: Standing, line: Line, given: Given, offered: Sequence[Any], spoken: Format
) -> tuple[list[Draft], Own]:
    """The events that bring the journal up to what the host has, and what of its own objects can go out again.

    With the journal's own history, a system prompt or tools that are not given stay as they were.
    """
    drafts, wires = _said_since(line, given, spoken)
    owned = given.wires is None
    system = standing.system if owned and given.system is None else given.system
    if system != standing.system and (plainly := _system(given, spoken)) != standing.system:
        drafts.append(Draft(what=SystemSet(system=plainly), origin=Origin.OPERATOR))
    tools = standing.tools if owned and given.tools is None else given.tools
    if tools is not None:
        for index, tool in enumerate(_listed(tools, "tools")):
            spoken.check_tool(tool if is_object(tool) else plain(tool, "tools"), field=f"tools[{index}]")
    if (tools or None) != standing.tools or offered != standing.offered:
        what = ToolsSet(tools=_objects(tools, "tools"), offered=_objects(offered, "offered") or ())
        if (what.tools, what.offered) != (standing.tools, standing.offered):
            drafts.append(Draft(what=what, origin=Origin.OPERATOR))
    return drafts, Own(given.system, given.tools, wires)


def checked_messages(messages: Any, spoken: Format, *, at: int = 0) -> list[Wire]:
    """Messages as our own plain copies, each known to be one of this format."""
    wires: list[Wire] = []
    for index, message in enumerate(_listed(messages, "messages"), start=at):
        wire = plain(message, f"messages[{index}]")
        spoken.check(wire, field=f"messages[{index}]")
        wires.append(wire)
    return wires


def checked_json(value: Any, field: str) -> Any:
    value = plain(value, field)
    check_json(value, field)
    return value


def message_added(wire: Wire, spoken: Format) -> Draft:
    """A message as an event: whose words it is, and how far to trust it."""
    message = spoken.read(wire)
    origin = Origin.TOOL if message.results else _ORIGINS[message.role]
    mixed = bool(message.results) and len(message.results) < len(message.parts)
    what = MessageAdded(wire=wire, format=spoken.name)
    return Draft(what=what, origin=origin, trust=Trust.DATA if mixed else None)


def not_yet_in(line: Line, wires: Sequence[Wire]) -> list[Wire]:
    """Messages whose id is not in the line; the same id with other content is refused, not guessed at."""
    if not any("id" in wire for wire in wires):
        return list(wires)
    known = {entry.wire["id"]: entry.wire for entry in line if "id" in entry.wire}
    fresh: list[Wire] = []
    for wire in wires:
        id = wire.get("id")
        if id is not None and id in known:
            if known[id] != wire:
                raise KeyReused(key=str(id), what="message id")
            continue
        if id is not None:
            known[id] = wire
        fresh.append(wire)
    return fresh


_ORIGINS = {
    "system": Origin.OPERATOR,
    "developer": Origin.OPERATOR,
    "user": Origin.USER,
    "assistant": Origin.ASSISTANT,
    "tool": Origin.TOOL,
}


def _said_since(line: Line, given: Given, spoken: Format) -> tuple[list[Draft], Sequence[Wire] | None]:
    """Messages that the journal does not have yet, and the host's list where it is plainly the same as ours."""
    if given.wires is None:
        return [], None
    added = added_to(line, given.wires)
    if added is not None:
        fresh = checked_messages(added, spoken, at=given.lead + len(line))
        return [message_added(wire, spoken) for wire in fresh], given.wires if fresh == list(added) else None
    sync = match(line, checked_messages(given.wires, spoken, at=given.lead))  # an edit, or a client's own objects
    drafts = [message_added(wire, spoken) for wire in sync.new]
    if sync.spliced:
        spliced = HistorySpliced(sync.start, sync.stop, len(sync.new))
        drafts.append(Draft(what=spliced, origin=Origin.OPERATOR))
    return drafts + [message_added(wire, spoken) for wire in sync.added], None


def _system(given: Given, spoken: Format) -> System:
    if given.system is None or isinstance(given.system, str):
        return checked_text(given.system, field="system") if given.system else None
    if given.lead:
        return checked_messages(given.system, spoken)
    return _objects(given.system, "system")


def _listed(value: Any, field: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(field=field, value=value, expected="a list")
    return cast(Sequence[Any], value)


def _objects(value: Any, field: str) -> list[dict[str, Any]] | None:
    if value is None:
        return None
    objects = [plain(item, f"{field}[{index}]") for index, item in enumerate(_listed(value, field))]
    for index, item in enumerate(objects):
        if not is_object(item):
            raise InvalidInput(field=f"{field}[{index}]", value=item, expected="an object")
        check_json(item, f"{field}[{index}]")
    return objects or None
