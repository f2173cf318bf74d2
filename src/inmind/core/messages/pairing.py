"""One list out of a conversation's messages, such that the provider takes it.

Providers refuse a list where a call has no result or a result no call, and each wants the two together in its own
way. History is cut, interrupted, resumed and mixed from several formats, so this is where it is made whole:
a missing result is stood in for, a late one goes to its call, one that answers nothing is left out by name.

What needs no repair goes out as the very object that came in: the provider's cache, and whoever compares two
prompts, sees the same bytes. Everything else is written anew from its reading, which may cost decoration
(a cache mark, a name) but no words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from inmind.core.frozen import frozen
from inmind.core.messages.model import (
    OPENING,
    Call,
    Demands,
    Format,
    Image,
    Message,
    Opaque,
    Part,
    Result,
    Text,
    Wire,
)

NO_RESULT = "(no result: the call was not answered)"

# The entry of what no entry said.
NOWHERE = -1


@frozen
class Said:
    """A message as the journal has it: how it came, and what it says."""

    format: str
    wire: Wire
    message: Message


@frozen
class LeftOut:
    """Something that could not be sent. `entry` is the place, in the list given, of the message it was part of."""

    what: str
    why: str
    entry: int


@frozen
class Arrangement:
    wires: list[Wire]
    left_out: tuple[LeftOut, ...]
    repaired: tuple[str, ...]


def arrange(messages: Sequence[Said], format: Format, *, begins: bool = True) -> Arrangement:
    """The messages as a list that is valid for the provider. Pure, and valid input comes back as it is.

    `begins` is False for messages that go on from others, which were arranged before and needed no repair.
    """
    demands = format.demands
    if all(_goes_by_itself(said, format) for said in messages) and not (begins and demands.user_begins):
        return Arrangement(wires=[said.wire for said in messages], left_out=(), repaired=())
    items, left_out, repaired = _sayable(messages, format)
    items, unpaired = _with_opaque_pairs(items, demands)
    items, answers, orphans = _without_orphans(items)
    items, renamed = _with_ids_apart(items, answers, demands)
    items, retold = _with_answers_as_asked(items, answers, demands)
    if demands.answers == "anywhere":
        items, answered = _answered_anywhere(items, answers)
    else:
        items, answered = _answered_in_place(items, answers, demands)
    opened: list[str] = []
    if begins and demands.user_begins and items and items[0].message.role == "assistant":
        items = [_Item(NOWHERE, Message("user", (Text(OPENING),))), *items]
        opened.append(f"{format.name} wants a user to begin: {OPENING!r} was put in front")
    return Arrangement(
        wires=_wires(items, format),
        left_out=tuple(sorted([*left_out, *unpaired, *orphans], key=lambda one: one.entry)),
        repaired=(*opened, *repaired, *renamed, *retold, *answered),
    )


def _goes_by_itself(said: Said, format: Format) -> bool:
    """Most messages are words alone, in the provider's own format: nothing about their neighbours matters."""
    return (
        said.format == format.name
        and all(type(part) is Text for part in said.message.parts)
        and format.sendable(said.wire, said.message)
    )


@frozen
class _Item:
    """A message on its way out. With a wire it goes out as it came; any change to the message takes the wire away."""

    entry: int
    message: Message
    wire: Wire | None = None

    def saying(self, parts: Sequence[Part]) -> _Item:
        return _Item(self.entry, Message(self.message.role, tuple(parts)))

    @property
    def rest(self) -> tuple[Part, ...]:
        """What is left when the results have gone to their calls."""
        return tuple(part for part in self.message.parts if not isinstance(part, Result))


# Where a part stands: item, then part.
_Place = tuple[int, int]

# Where each result stands, and the call that it answers. Places hold until the results are moved to their calls.
_Answers = dict[_Place, _Place]

P = TypeVar("P", bound=Part)


def _sayable(messages: Sequence[Said], format: Format) -> tuple[list[_Item], list[LeftOut], list[str]]:
    """Every message as an item, without what this provider has no words for.

    Neighbouring assistant messages of other formats become one: what Responses says in a row of items is one
    message elsewhere, and parallel calls must stay parallel.
    """
    items: list[_Item] = []
    left_out: list[LeftOut] = []
    repaired: list[str] = []
    joinable = False
    for entry, said in enumerate(messages):
        if said.format == format.name:
            joinable = False
            sendable = format.sendable(said.wire, said.message)
            if not sendable and not said.message.parts and format.demands.silence_left_out:
                left_out.append(LeftOut("a message that says nothing", f"{format.name} would not take it", entry))
                continue
            if not sendable:
                repaired.append(f"message {entry} was written anew: {format.name} would not take it as it came")
            items.append(_Item(entry, said.message, said.wire if sendable else None))
            continue
        message = _without_foreign(said.message, format, entry, left_out)
        if said.message.parts and not message.parts:
            continue
        speaks = message.role == "assistant" and format.demands.answers != "anywhere"
        if speaks and joinable:
            items[-1] = items[-1].saying(items[-1].message.parts + message.parts)
        else:
            items.append(_Item(entry, message))
        joinable = speaks
    return items, left_out, repaired


def _without_foreign(message: Message, format: Format, entry: int, left_out: list[LeftOut]) -> Message:
    kept: list[Part] = []
    for part in message.parts:
        if isinstance(part, Image) and message.role == "assistant" and not format.demands.assistant_images:
            why = f"{format.name} takes no images from an assistant"
            left_out.append(LeftOut("an image in an assistant message", why, entry))
        elif isinstance(part, Result):
            kept.append(replace(part, parts=tuple(_own(part.parts, format, entry, left_out))))
        else:
            kept += _own([part], format, entry, left_out)
    return Message(message.role, tuple(kept))


def _own(parts: Iterable[P], format: Format, entry: int, left_out: list[LeftOut]) -> Iterator[P]:
    for part in parts:
        if isinstance(part, Opaque) and part.format != format.name:
            left_out.append(LeftOut(f"{part.format} {part.kind}", f"only {part.format} understands it", entry))
        else:
            yield part


def _with_opaque_pairs(items: list[_Item], demands: Demands) -> tuple[list[_Item], list[LeftOut]]:
    """What the provider asks of the host and its answer, both or neither: nobody else can write the missing half.

    What led the assistant to one that is left out goes with it, and so does what leads nowhere in the first place.
    """
    lonely = _lonely(items)
    stray: set[int] = set()
    follows = False
    for at in range(len(items) - 1, -1, -1):
        if _leads(items[at].message, demands):
            if not follows:
                stray.add(at)
        else:
            follows = at not in lonely and items[at].message.role == "assistant"
    why = dict.fromkeys(lonely, "its other half is not there")
    why |= dict.fromkeys(stray, "what it led to is not there")
    left_out = [
        LeftOut(f"{part.format} {part.kind}", why[at], items[at].entry)
        for at in sorted(why)
        for part in items[at].message.parts
        if isinstance(part, Opaque)
    ]
    return [item for at, item in enumerate(items) if at not in why], left_out


def _leads(message: Message, demands: Demands) -> bool:
    return any(isinstance(part, Opaque) and part.kind in demands.opaque_leads for part in message.parts)


def _lonely(items: Sequence[_Item]) -> set[int]:
    """Items that ask something of the host and are not answered, or answer what nobody asked."""
    waiting: dict[str, int] = {}
    lonely: set[int] = set()
    for at, item in enumerate(items):
        for part in item.message.parts:
            if not isinstance(part, Opaque):
                continue
            if part.answers and waiting.pop(part.answers, None) is None:
                lonely.add(at)
            if part.asks in waiting:
                lonely.add(waiting[part.asks])
            if part.asks:
                waiting[part.asks] = at
    return lonely | set(waiting.values())


def _matched(items: Sequence[_Item]) -> tuple[_Answers, dict[_Place, str]]:
    """Which result answers which call (result to call), and why the others answer none.

    A result belongs to the last message that still waits for its id; there, to the first such call. Servers that
    number their calls from zero in every turn are understood that way.
    """
    waiting: dict[str, list[_Place]] = {}
    answers: _Answers = {}
    orphans: dict[_Place, str] = {}
    for at, item in enumerate(items):
        for index, part in enumerate(item.message.parts):
            if isinstance(part, Call):
                waiting.setdefault(part.id, []).append((at, index))
            elif isinstance(part, Result):
                calls = waiting.get(part.id)
                if calls:
                    call = next(place for place in calls if place[0] == calls[-1][0])
                    calls.remove(call)
                    answers[at, index] = call
                elif calls is None:
                    orphans[at, index] = "no call before it asks for it"
                else:
                    orphans[at, index] = "its call was answered before"
    return answers, orphans


def _without_orphans(items: list[_Item]) -> tuple[list[_Item], _Answers, list[LeftOut]]:
    answers, orphans = _matched(items)
    if not orphans:
        return items, answers, []
    left_out: list[LeftOut] = []
    kept: list[_Item] = []
    for at, item in enumerate(items):
        parts = [part for index, part in enumerate(item.message.parts) if (at, index) not in orphans]
        for index, result in enumerate(item.message.parts):
            if isinstance(result, Result) and (at, index) in orphans:
                left_out.append(LeftOut(f"the result of call {result.id!r}", orphans[at, index], item.entry))
        if len(parts) == len(item.message.parts):
            kept.append(item)
        elif parts:
            kept.append(item.saying(parts))
    return kept, _matched(kept)[0], left_out


def _with_ids_apart(items: list[_Item], answers: _Answers, demands: Demands) -> tuple[list[_Item], list[str]]:
    """A call whose id the provider would confuse with another's gets a new one, and so does its result.

    A new id depends only on what came before it, so a growing conversation keeps its beginning.
    """
    result_of = {call: result for result, call in answers.items()}
    in_use: dict[str, _Place] = {}
    uses: dict[str, int] = {}
    new_ids: dict[_Place, str] = {}
    repaired: list[str] = []
    for at, item in enumerate(items):
        for index, part in enumerate(item.message.parts):
            if not isinstance(part, Call):
                continue
            id = part.id
            while _confused(in_use.get(id), at, result_of, demands):
                uses[part.id] = uses.get(part.id, 1) + 1
                id = f"{part.id}_{uses[part.id]}"
            in_use[id] = (at, index)
            if id != part.id:
                new_ids[at, index] = id
                repaired.append(f"call id {part.id!r} was used before: the call to {part.name} goes out as {id!r}")
                if (at, index) in result_of:
                    new_ids[result_of[at, index]] = id
    return _renamed(items, new_ids), repaired


def _confused(earlier: _Place | None, at: int, result_of: _Answers, demands: Demands) -> bool:
    """Would the provider take a call in this item for the earlier one with the same id?"""
    if earlier is None:
        return False
    if demands.ids_once == "message":
        return earlier[0] == at
    if demands.ids_once == "conversation":
        return True
    answered = result_of.get(earlier)
    return answered is None or answered[0] > at


def _renamed(items: list[_Item], new_ids: dict[_Place, str]) -> list[_Item]:
    if not new_ids:
        return items
    changed = {at for at, _ in new_ids}
    return [
        item.saying([_with_id(part, new_ids.get((at, index))) for index, part in enumerate(item.message.parts)])
        if at in changed
        else item
        for at, item in enumerate(items)
    ]


def _with_id(part: Part, id: str | None) -> Part:
    return replace(part, id=id) if id is not None and isinstance(part, Call | Result) else part


def _with_answers_as_asked(items: list[_Item], answers: _Answers, demands: Demands) -> tuple[list[_Item], list[str]]:
    """A custom call gets a custom result, where the provider has such a thing; chat does not tell them apart."""
    arranged = list(items)
    retold: list[str] = []
    for (at, index), (caller, place) in answers.items() if demands.custom_results else ():
        call, parts = items[caller].message.parts[place], arranged[at].message.parts
        result = parts[index]
        if isinstance(call, Call) and isinstance(result, Result) and result.custom != call.custom:
            if arranged[at].wire is not None:
                retold.append(f"the result of call {call.id!r} was written as the kind that its call asks for")
            told = replace(result, custom=call.custom)
            arranged[at] = arranged[at].saying([*parts[:index], told, *parts[index + 1 :]])
    return arranged, retold


def _stand_in(call: Call) -> Result:
    return Result(call.id, (Text(NO_RESULT),), error=True, custom=call.custom)


def _not_answered(call: Call) -> str:
    return f"call {call.id!r} to {call.name} was not answered: a result that says so stands in"


def _answered_anywhere(items: list[_Item], answers: _Answers) -> tuple[list[_Item], list[str]]:
    """Results stay where they are; a stand-in follows when the assistant has finished speaking."""
    answered = set(answers.values())
    placed: list[_Item] = []
    repaired: list[str] = []
    missing: list[_Item] = []
    for at, item in enumerate(items):
        if item.message.role != "assistant":
            placed += missing
            missing = []
        placed.append(item)
        for index, part in enumerate(item.message.parts):
            if isinstance(part, Call) and (at, index) not in answered:
                missing.append(_Item(NOWHERE, Message("tool", (_stand_in(part),))))
                repaired.append(_not_answered(part))
    return placed + missing, repaired


def _answered_in_place(items: list[_Item], answers: _Answers, demands: Demands) -> tuple[list[_Item], list[str]]:
    """Every message with calls, followed at once by all of their results."""
    result_of = {call: result for result, call in answers.items()}
    placed: list[_Item] = []
    repaired: list[str] = []
    taken: set[int] = set()
    for at, item in enumerate(items):
        if at in taken:
            continue
        # Results that are met here, and not taken with their call, have been moved to it before.
        speaker = item.saying(item.rest) if item.message.results else item
        if item.message.parts and not speaker.message.parts:
            continue
        calls = [(index, part) for index, part in enumerate(item.message.parts) if isinstance(part, Call)]
        if not calls:
            placed.append(speaker)
            continue
        in_place = _in_place(items, at, answers)
        taken.update(in_place)
        added: list[Result] = []
        for index, call in calls:
            place = result_of.get((at, index))
            if place is None:
                added.append(_stand_in(call))
                repaired.append(_not_answered(call))
            elif place[0] not in in_place:
                added += [part for part in [items[place[0]].message.parts[place[1]]] if isinstance(part, Result)]
                repaired.append(f"the result of call {call.id!r} came late and was moved to its call")
        run = [items[place] for place in in_place]
        group = [speaker, *_grouped(run, added, demands)]
        if len(group) <= len(run) and any(one.wire is not None for one in run):
            repaired.append(f"the results for message {item.entry} were put into one message")
        placed += _of_one_form(group, [call for _, call in calls])
    return placed, repaired


def _of_one_form(group: list[_Item], calls: Sequence[Call]) -> list[_Item]:
    """Calls that go by their name have an older form, which stands with answers of the same form or not at all."""
    if any(call.id == call.name for call in calls) and any(one.wire is None for one in group):
        return [replace(one, wire=None) for one in group]
    return group


def _in_place(items: Sequence[_Item], at: int, answers: _Answers) -> list[int]:
    """The items right after a call that answer it and nothing else. One that goes on to say more is the last."""
    found: list[int] = []
    for place in range(at + 1, len(items)):
        parts = items[place].message.parts
        results = [index for index, part in enumerate(parts) if isinstance(part, Result)]
        if not results or any(answers[place, index][0] != at for index in results):
            break
        found.append(place)
        if len(results) < len(parts):
            break
    return found


def _grouped(run: list[_Item], added: list[Result], demands: Demands) -> list[_Item]:
    """The answers to one message: those in place, and those that were moved to it or stand in."""
    if not added and len(run) < 2:
        return run
    extra = [_Item(NOWHERE, Message("tool", tuple(added)))] if added else []
    group = [*run[:-1], *extra, run[-1]] if run and run[-1].rest else [*run, *extra]
    pictures = any(one.wire is None and _has_pictures(one.message.results) for one in group)
    # Pictures of a result that is written anew may need a message behind all the results: then all are written.
    if len(group) > 1 and (demands.answers == "together" or pictures):
        results = [result for one in group for result in one.message.results]
        rest = run[-1].rest if run else ()
        return [_Item(NOWHERE, Message("user" if rest else "tool", (*results, *rest)))]
    return group


def _has_pictures(results: Iterable[Result]) -> bool:
    return any(isinstance(part, Image) for result in results for part in result.parts)


def _wires(items: list[_Item], format: Format) -> list[Wire]:
    """Wires as they came, and between them runs of messages written together."""
    wires: list[Wire] = []
    run: list[Message] = []
    for item in items:
        if item.wire is None:
            run.append(item.message)
            continue
        wires += _written(run, format)
        run = []
        wires.append(item.wire)
    return wires + _written(run, format)


def _written(run: list[Message], format: Format) -> list[Wire]:
    if not run:
        return []
    wires: list[Wire] = [*format.write(run)]
    # A run that begins with the assistant stands behind other messages: it does not open the conversation.
    return wires[1:] if format.demands.user_begins and run[0].role == "assistant" else wires
