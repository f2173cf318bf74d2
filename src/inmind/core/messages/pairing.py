"""Builds the list of messages that a provider accepts.

Content that the provider does not know is left out. Providers refuse a list in which a call has no result or a result
has no call, and each requires another order. History is cut, interrupted, resumed and mixed from several formats, so it
is repaired here: a missing result is replaced by a placeholder, a late one is moved to its call, and one without a call
is left out and reported.

A message that needs no repair is sent as the same object that came in, so that the provider's cache, and a comparison
of two prompts, sees the same bytes. All others are written from their parsed form, which may lose decoration (a cache
mark, a name) but no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeVar

from inmind.core.frozen import frozen
from inmind.core.messages.format import Format
from inmind.core.messages.model import (
    OPENING_TEXT,
    Call,
    FormatRules,
    Image,
    Message,
    OmittedPart,
    Opaque,
    ParsedMessage,
    Part,
    Result,
    Text,
    Wire,
)

NO_RESULT_TEXT = "(no result: the call was not answered)"

# The index of a message that was inserted.
NO_ENTRY = -1


@frozen
class OutgoingMessage:
    """A message to send: as `wire` if it is set, otherwise written from `message`."""

    index: int
    message: Message
    wire: Wire | None = None

    def with_parts(self, parts: Iterable[Part]) -> OutgoingMessage:
        return OutgoingMessage(self.index, Message(self.message.role, tuple(parts)))

    @property
    def parts_without_results(self) -> tuple[Part, ...]:
        """The remaining parts when the results have been moved to their calls."""
        return tuple(part for part in self.message.parts if not isinstance(part, Result))


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


P = TypeVar("P", bound=Part)


def convert_messages(
    messages: Sequence[ParsedMessage], format: Format
) -> tuple[list[OutgoingMessage], list[OmittedPart], list[str]]:
    """Return the messages without content that this provider does not know.

    Adjacent assistant messages of other formats are joined: a sequence of items in Responses is one message elsewhere,
    and parallel calls must stay parallel.
    """
    items: list[OutgoingMessage] = []
    left_out: list[OmittedPart] = []
    repaired: list[str] = []
    joinable = False
    for entry, parsed in enumerate(messages):
        if parsed.format == format.name:
            joinable = False
            sendable = format.is_sendable(parsed.wire, parsed.message)
            if not sendable and not parsed.message.parts and format.rules.drops_empty_messages:
                left_out.append(OmittedPart("an empty message", f"{format.name} refuses it", entry))
                continue
            if not sendable:
                repaired.append(f"message {entry} was rewritten: {format.name} would refuse it")
            items.append(OutgoingMessage(entry, parsed.message, parsed.wire if sendable else None))
            continue
        message = _without_foreign_parts(parsed.message, format, entry, left_out)
        if parsed.message.parts and not message.parts:
            continue
        is_assistant = message.role == "assistant" and format.rules.result_position != "anywhere"
        if is_assistant and joinable:
            items[-1] = items[-1].with_parts(items[-1].message.parts + message.parts)
        else:
            items.append(OutgoingMessage(entry, message))
        joinable = is_assistant
    return items, left_out, repaired


def _without_foreign_parts(message: Message, format: Format, entry: int, left_out: list[OmittedPart]) -> Message:
    kept: list[Part] = []
    for part in message.parts:
        if isinstance(part, Image) and message.role == "assistant" and not format.rules.assistant_images:
            reason = f"{format.name} accepts no images in assistant messages"
            left_out.append(OmittedPart("an image in an assistant message", reason, entry))
        elif isinstance(part, Result):
            kept.append(replace(part, parts=tuple(_keep_own_parts(part.parts, format, entry, left_out))))
        else:
            kept += _keep_own_parts([part], format, entry, left_out)
    return Message(message.role, tuple(kept))


def _keep_own_parts(parts: Iterable[P], format: Format, entry: int, left_out: list[OmittedPart]) -> Iterator[P]:
    for part in parts:
        if isinstance(part, Opaque) and part.format != format.name:
            left_out.append(OmittedPart(f"{part.format} {part.kind}", f"only {part.format} understands it", entry))
        else:
            yield part


def drop_unpaired_opaque(
    items: list[OutgoingMessage], demands: FormatRules, *, in_thread: bool = False
) -> tuple[list[OutgoingMessage], list[OmittedPart]]:
    """Keep an opaque request and its answer only together: neither half can be written by us.

    Items that lead to a dropped one are dropped too, and so are those that lead to nothing. In a thread, an answer is
    kept: the provider holds its request.
    """
    unpaired = _unpaired(items, in_thread=in_thread)
    prefixes = demands.opaque_prefixes
    stray: set[int] = set()
    follows = False
    for at in range(len(items) - 1, -1, -1):
        if any(isinstance(part, Opaque) and part.kind in prefixes for part in items[at].message.parts):
            if not follows:
                stray.add(at)
        else:
            follows = at not in unpaired and items[at].message.role == "assistant"
    reasons = dict.fromkeys(unpaired, "its request or answer is missing")
    reasons |= dict.fromkeys(stray, "the item after it is missing")
    left_out = [
        OmittedPart(f"{part.format} {part.kind}", reasons[at], items[at].index)
        for at in sorted(reasons)
        for part in items[at].message.parts
        if isinstance(part, Opaque)
    ]
    return [item for at, item in enumerate(items) if at not in reasons], left_out


def _unpaired(items: Sequence[OutgoingMessage], *, in_thread: bool) -> set[int]:
    """Indexes of items with a request that is not answered, or an answer without a request."""
    waiting: dict[str, int] = {}
    unpaired: set[int] = set()
    for at, item in enumerate(items):
        for part in item.message.parts:
            if not isinstance(part, Opaque):
                continue
            if part.answered_id and waiting.pop(part.answered_id, None) is None and not in_thread:
                unpaired.add(at)
            if part.request_id in waiting:
                unpaired.add(waiting[part.request_id])
            if part.request_id:
                waiting[part.request_id] = at
    return unpaired | set(waiting.values())


# Index of an item and of a part in it.
_Place = tuple[int, int]

# Place of each result and of its call. Valid until the results are moved to their calls.
_ResultToCall = dict[_Place, _Place]


def _match_results(items: Sequence[OutgoingMessage]) -> tuple[_ResultToCall, dict[_Place, tuple[str, str]]]:
    """Map results to their calls, and give id and reason for each result without a call.

    A result belongs to the last message with an unanswered call of its id; there, to the first such call. This also
    covers servers that number their calls from zero in every turn.
    """
    waiting: dict[str, list[_Place]] = {}
    answers: _ResultToCall = {}
    orphans: dict[_Place, tuple[str, str]] = {}
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
                    orphans[at, index] = part.id, "no earlier call has this id"
                else:
                    orphans[at, index] = part.id, "its call already has a result"
    return answers, orphans


def _drop_orphan_results(
    items: list[OutgoingMessage], *, in_thread: bool
) -> tuple[list[OutgoingMessage], _ResultToCall, list[OmittedPart]]:
    answers, orphans = _match_results(items)
    if not orphans or in_thread:
        return items, answers, []
    left_out = [
        OmittedPart(f"the result of call {id!r}", reason, items[at].index) for (at, _), (id, reason) in orphans.items()
    ]
    kept: list[OutgoingMessage] = []
    for at, item in enumerate(items):
        parts = [part for index, part in enumerate(item.message.parts) if (at, index) not in orphans]
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
    changed = {at for at, _ in new_ids}
    renamed = [
        item.with_parts(_with_ids(item, at, new_ids)) if at in changed else item for at, item in enumerate(items)
    ]
    return renamed, repaired


def _with_ids(item: OutgoingMessage, at: int, new_ids: dict[_Place, str]) -> Iterator[Part]:
    for index, part in enumerate(item.message.parts):
        is_renamed = isinstance(part, Call | Result) and (at, index) in new_ids
        yield replace(part, id=new_ids[at, index]) if is_renamed else part


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
        # Older function calls need results of the same form.
        is_rewritten = any(call.id == call.name for _, call in calls) and any(one.wire is None for one in group)
        placed += [replace(one, wire=None) for one in group] if is_rewritten else group
    return placed, repaired


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
    rewritten = [result for one in group if one.wire is None for result in one.message.results]
    pictures = any(isinstance(part, Image) for result in rewritten for part in result.parts)
    # Images of a rewritten result may need a message after all results: then all are rewritten.
    if len(group) > 1 and (demands.result_position == "together" or pictures):
        results = [result for one in group for result in one.message.results]
        rest = run[-1].parts_without_results if run else ()
        return [OutgoingMessage(NO_ENTRY, Message("user" if rest else "tool", (*results, *rest)))]
    return group


def _to_wires(items: list[OutgoingMessage], format: Format) -> list[Wire]:
    """Original wires, and between them runs of messages that are written together."""
    wires: list[Wire] = []
    for is_original, group in groupby(items, key=lambda item: item.wire is not None):
        if is_original:
            wires += [item.wire for item in group if item.wire is not None]
            continue
        run = [item.message for item in group]
        written = format.write(run)
        # A run that starts with the assistant follows other messages, so it needs no opening user message.
        wires += written[1:] if format.rules.user_first and run[0].role == "assistant" else written
    return wires
