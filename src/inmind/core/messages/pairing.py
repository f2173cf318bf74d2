"""Builds the list of messages that a provider accepts.

Providers refuse a list in which a call has no result or a result has no call, and each requires another order. History
is cut, interrupted, resumed and mixed from several formats, so it is repaired here: a missing result is replaced by a
placeholder, a late one is moved to its call, and one without a call is left out and reported.

A message that needs no repair is sent as the same object that came in, so that the provider's cache, and a comparison
of two prompts, sees the same bytes. All others are written from their parsed form, which may lose decoration (a cache
mark, a name) but no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from inmind.core.frozen import frozen
from inmind.core.messages.conversion import (
    NO_ENTRY,
    OmittedPart,
    OutgoingMessage,
    convert_messages,
    drop_unpaired_opaque,
)
from inmind.core.messages.format import Format
from inmind.core.messages.model import (
    OPENING_TEXT,
    Call,
    FormatRules,
    Image,
    Message,
    ParsedMessage,
    Part,
    Result,
    Text,
    Wire,
)

NO_RESULT_TEXT = "(no result: the call was not answered)"


@frozen
class ProviderList:
    """Messages that the provider accepts, with what was left out and repaired."""

    wires: list[Wire]
    left_out: tuple[OmittedPart, ...]
    repairs: tuple[str, ...]


def to_provider_list(
    messages: Sequence[ParsedMessage], format: Format, *, is_start: bool = True, in_thread: bool = False
) -> ProviderList:
    """Return the messages as a list that the provider accepts. Pure; valid input is unchanged.

    `is_start` is False for messages that continue others, which were processed before and needed no repair. In a thread
    a result may answer a call that only the provider holds.
    """
    demands = format.rules
    if all(_needs_no_repair(one, format) for one in messages) and not (is_start and demands.user_first):
        return ProviderList(wires=[one.wire for one in messages], left_out=(), repairs=())
    items, left_out, repaired = convert_messages(messages, format)
    items, unpaired = drop_unpaired_opaque(items, demands, in_thread=in_thread)
    items, answers, orphans = _drop_orphan_results(items, in_thread=in_thread)
    items, renamed = _make_ids_unique(items, answers, demands)
    items, retyped = _match_result_kinds(items, answers, demands)
    if demands.result_position == "anywhere":
        items, answered = _place_results_anywhere(items, answers)
    else:
        items, answered = _place_results_after_calls(items, answers, demands)
    opened: list[str] = []
    first = items[0].message if items else None
    if is_start and demands.user_first and first and first.role == "assistant" and not first.has_compaction:
        items = [OutgoingMessage(NO_ENTRY, Message("user", (Text(OPENING_TEXT),))), *items]
        opened.append(f"{format.name} requires a user message first: {OPENING_TEXT!r} was inserted")
    return ProviderList(
        wires=_to_wires(items, format),
        left_out=tuple(sorted([*left_out, *unpaired, *orphans], key=lambda one: one.index)),
        repairs=(*opened, *repaired, *renamed, *retyped, *answered),
    )


def _needs_no_repair(message: ParsedMessage, format: Format) -> bool:
    """True for a text message in the provider's own format, which is most of them."""
    return (
        message.format == format.name
        and all(type(part) is Text for part in message.message.parts)
        and format.is_sendable(message.wire, message.message)
    )


# Index of an item and of a part in it.
_Place = tuple[int, int]

# Place of each result and of its call. Valid until the results are moved to their calls.
_ResultToCall = dict[_Place, _Place]


def _match_results(items: Sequence[OutgoingMessage]) -> tuple[_ResultToCall, dict[_Place, str]]:
    """Map results to their calls, and give the reason for each result without a call.

    A result belongs to the last message with an unanswered call of its id; there, to the first such call. This also
    covers servers that number their calls from zero in every turn.
    """
    waiting: dict[str, list[_Place]] = {}
    answers: _ResultToCall = {}
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
                    orphans[at, index] = "no earlier call has this id"
                else:
                    orphans[at, index] = "its call already has a result"
    return answers, orphans


def _drop_orphan_results(
    items: list[OutgoingMessage], *, in_thread: bool
) -> tuple[list[OutgoingMessage], _ResultToCall, list[OmittedPart]]:
    answers, orphans = _match_results(items)
    if not orphans or in_thread:
        return items, answers, []
    left_out: list[OmittedPart] = []
    kept: list[OutgoingMessage] = []
    for at, item in enumerate(items):
        parts = [part for index, part in enumerate(item.message.parts) if (at, index) not in orphans]
        for index, result in enumerate(item.message.parts):
            if isinstance(result, Result) and (at, index) in orphans:
                left_out.append(OmittedPart(f"the result of call {result.id!r}", orphans[at, index], item.index))
        if len(parts) == len(item.message.parts):
            kept.append(item)
        elif parts:
            kept.append(item.with_parts(parts))
    return kept, _match_results(kept)[0], left_out


def _make_ids_unique(
    items: list[OutgoingMessage], answers: _ResultToCall, demands: FormatRules
) -> tuple[list[OutgoingMessage], list[str]]:
    """Give a call, and its result, a new id if the provider would confuse it with another.

    A new id depends only on earlier messages, so a growing conversation keeps its beginning.
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
            while _is_ambiguous(in_use.get(id), at, result_of, demands):
                uses[part.id] = uses.get(part.id, 1) + 1
                id = f"{part.id}_{uses[part.id]}"
            in_use[id] = (at, index)
            if id != part.id:
                new_ids[at, index] = id
                repaired.append(f"call id {part.id!r} is not unique: the call to {part.name} is sent as {id!r}")
                if (at, index) in result_of:
                    new_ids[result_of[at, index]] = id
    return _apply_new_ids(items, new_ids), repaired


def _is_ambiguous(earlier: _Place | None, at: int, result_of: _ResultToCall, demands: FormatRules) -> bool:
    """True if the provider would confuse a call in this item with the earlier one."""
    if earlier is None:
        return False
    if demands.unique_ids == "message":
        return earlier[0] == at
    if demands.unique_ids == "conversation":
        return True
    answered = result_of.get(earlier)
    return answered is None or answered[0] > at


def _apply_new_ids(items: list[OutgoingMessage], new_ids: dict[_Place, str]) -> list[OutgoingMessage]:
    if not new_ids:
        return items
    changed = {at for at, _ in new_ids}
    return [
        item.with_parts([_with_id(part, new_ids.get((at, index))) for index, part in enumerate(item.message.parts)])
        if at in changed
        else item
        for at, item in enumerate(items)
    ]


def _with_id(part: Part, id: str | None) -> Part:
    return replace(part, id=id) if id is not None and isinstance(part, Call | Result) else part


def _match_result_kinds(
    items: list[OutgoingMessage], answers: _ResultToCall, demands: FormatRules
) -> tuple[list[OutgoingMessage], list[str]]:
    """Give a custom call a custom result, for providers that distinguish them."""
    arranged = list(items)
    repaired: list[str] = []
    for (at, index), (caller, place) in answers.items() if demands.custom_results else ():
        call, parts = items[caller].message.parts[place], arranged[at].message.parts
        result = parts[index]
        if isinstance(call, Call) and isinstance(result, Result) and result.custom != call.custom:
            if arranged[at].wire is not None:
                repaired.append(f"the result of call {call.id!r} was rewritten with the type of its call")
            retyped = replace(result, custom=call.custom)
            arranged[at] = arranged[at].with_parts([*parts[:index], retyped, *parts[index + 1 :]])
    return arranged, repaired


def _placeholder_result(call: Call) -> Result:
    return Result(call.id, (Text(NO_RESULT_TEXT),), error=True, custom=call.custom)


def _missing_result_note(call: Call) -> str:
    return f"call {call.id!r} to {call.name} has no result: a placeholder was inserted"


def _place_results_anywhere(
    items: list[OutgoingMessage], answers: _ResultToCall
) -> tuple[list[OutgoingMessage], list[str]]:
    """Keep results in place; a placeholder follows after the last item of the assistant."""
    answered = set(answers.values())
    placed: list[OutgoingMessage] = []
    repaired: list[str] = []
    missing: list[OutgoingMessage] = []
    for at, item in enumerate(items):
        if item.message.role != "assistant":
            placed += missing
            missing = []
        placed.append(item)
        for index, part in enumerate(item.message.parts):
            if isinstance(part, Call) and (at, index) not in answered:
                missing.append(OutgoingMessage(NO_ENTRY, Message("tool", (_placeholder_result(part),))))
                repaired.append(_missing_result_note(part))
    return placed + missing, repaired


def _place_results_after_calls(
    items: list[OutgoingMessage], answers: _ResultToCall, demands: FormatRules
) -> tuple[list[OutgoingMessage], list[str]]:
    """Put all results right after the message with their calls."""
    result_of = {call: result for result, call in answers.items()}
    placed: list[OutgoingMessage] = []
    repaired: list[str] = []
    taken: set[int] = set()
    for at, item in enumerate(items):
        if at in taken:
            continue
        # Results found here that were not taken with their call have already been moved to it.
        speaker = item.with_parts(item.parts_without_results) if item.message.results else item
        if item.message.parts and not speaker.message.parts:
            continue
        calls = [(index, part) for index, part in enumerate(item.message.parts) if isinstance(part, Call)]
        if not calls:
            placed.append(speaker)
            continue
        in_place = _results_after(items, at, answers)
        taken.update(in_place)
        added: list[Result] = []
        for index, call in calls:
            place = result_of.get((at, index))
            if place is None:
                added.append(_placeholder_result(call))
                repaired.append(_missing_result_note(call))
            elif place[0] not in in_place:
                added += [part for part in [items[place[0]].message.parts[place[1]]] if isinstance(part, Result)]
                repaired.append(f"the late result of call {call.id!r} was moved to its call")
        run = [items[place] for place in in_place]
        group = [speaker, *_group_results(run, added, demands)]
        if len(group) <= len(run) and any(one.wire is not None for one in run):
            repaired.append(f"the results for message {item.index} were joined into one message")
        placed += _with_same_form(group, [call for _, call in calls])
    return placed, repaired


def _with_same_form(group: list[OutgoingMessage], calls: Sequence[Call]) -> list[OutgoingMessage]:
    """Rewrite the group if needed: older function calls need results of the same form."""
    if any(call.id == call.name for call in calls) and any(one.wire is None for one in group):
        return [replace(one, wire=None) for one in group]
    return group


def _results_after(items: Sequence[OutgoingMessage], at: int, answers: _ResultToCall) -> list[int]:
    """Indexes of the items right after a call that hold its results.

    An item that also has other parts is the last of them.
    """
    indexes: list[int] = []
    for place in range(at + 1, len(items)):
        parts = items[place].message.parts
        results = [index for index, part in enumerate(parts) if isinstance(part, Result)]
        if not results or any(answers[place, index][0] != at for index in results):
            break
        indexes.append(place)
        if len(results) < len(parts):
            break
    return indexes


def _group_results(run: list[OutgoingMessage], added: list[Result], demands: FormatRules) -> list[OutgoingMessage]:
    """The results of one message: those in place, and those that were moved or inserted."""
    if not added and len(run) < 2:
        return run
    extra = [OutgoingMessage(NO_ENTRY, Message("tool", tuple(added)))] if added else []
    group = [*run[:-1], *extra, run[-1]] if run and run[-1].parts_without_results else [*run, *extra]
    pictures = any(one.wire is None and _has_images(one.message.results) for one in group)
    # Images of a rewritten result may need a message after all results: then all are rewritten.
    if len(group) > 1 and (demands.result_position == "together" or pictures):
        results = [result for one in group for result in one.message.results]
        rest = run[-1].parts_without_results if run else ()
        return [OutgoingMessage(NO_ENTRY, Message("user" if rest else "tool", (*results, *rest)))]
    return group


def _has_images(results: Iterable[Result]) -> bool:
    return any(isinstance(part, Image) for result in results for part in result.parts)


def _to_wires(items: list[OutgoingMessage], format: Format) -> list[Wire]:
    """Original wires, and between them runs of messages that are written together."""
    wires: list[Wire] = []
    run: list[Message] = []
    for item in items:
        if item.wire is None:
            run.append(item.message)
            continue
        wires += _write_run(run, format)
        run = []
        wires.append(item.wire)
    return wires + _write_run(run, format)


def _write_run(run: list[Message], format: Format) -> list[Wire]:
    if not run:
        return []
    wires: list[Wire] = [*format.write(run)]
    # A run that starts with the assistant follows other messages, so it needs no opening user message.
    return wires[1:] if format.rules.user_first and run[0].role == "assistant" else wires
