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
    rules = format.rules
    if all(_needs_no_repair(one, format) for one in messages) and not (is_start and rules.user_first):
        return ProviderList(wires=[one.wire for one in messages], left_out=(), repairs=())
    pairing = _Pairing(format, in_thread=in_thread)
    pairing.convert(messages)
    pairing.drop_unpaired_opaque()
    pairing.drop_orphan_results()
    pairing.make_ids_unique()
    pairing.match_result_kinds()
    if rules.result_position == "anywhere":
        pairing.place_results_anywhere()
    else:
        pairing.place_results_after_calls()
    items, repairs = pairing.items, pairing.repairs
    first = items[0].message if items else None
    if is_start and rules.user_first and first and first.role == "assistant" and not first.has_compaction:
        items = [OutgoingMessage(NO_ENTRY, Message("user", (Text(OPENING_TEXT),))), *items]
        repairs = [f"{format.name} requires a user message first: {OPENING_TEXT!r} was inserted", *repairs]
    left_out = tuple(sorted(pairing.left_out, key=lambda one: one.index))
    return ProviderList(wires=_to_wires(items, format), left_out=left_out, repairs=tuple(repairs))


def _needs_no_repair(message: ParsedMessage, format: Format) -> bool:
    """True for a text message in the provider's own format, which is most of them."""
    return (
        message.format == format.name
        and all(type(part) is Text for part in message.message.parts)
        and format.is_sendable(message.wire, message.message)
    )


P = TypeVar("P", bound=Part)

# Index of an item and of a part in it.
_Place = tuple[int, int]


class _Pairing:
    """Messages on the way to one provider, with what was left out and repaired."""

    def __init__(self, format: Format, *, in_thread: bool) -> None:
        self.items: list[OutgoingMessage] = []
        self.left_out: list[OmittedPart] = []
        self.repairs: list[str] = []
        self._format, self._rules, self._in_thread = format, format.rules, in_thread
        self._answers: dict[_Place, _Place] = {}
        """Place of each result and of its call. Valid until the results are moved to their calls."""

    def convert(self, messages: Sequence[ParsedMessage]) -> None:
        """Add the messages without content that this provider does not know.

        Adjacent assistant messages of other formats are joined: a sequence of items in Responses is one message
        elsewhere, and parallel calls must stay parallel.
        """
        joinable = False
        for entry, parsed in enumerate(messages):
            if parsed.format == self._format.name:
                joinable = False
                self._add_own(parsed, entry)
                continue
            message = self._without_foreign_parts(parsed.message, entry)
            if parsed.message.parts and not message.parts:
                continue
            is_assistant = message.role == "assistant" and self._rules.result_position != "anywhere"
            if is_assistant and joinable:
                self.items[-1] = self.items[-1].with_parts(self.items[-1].message.parts + message.parts)
            else:
                self.items.append(OutgoingMessage(entry, message))
            joinable = is_assistant

    def _add_own(self, parsed: ParsedMessage, entry: int) -> None:
        name = self._format.name
        sendable = self._format.is_sendable(parsed.wire, parsed.message)
        if not sendable and not parsed.message.parts and self._rules.drops_empty_messages:
            self.left_out.append(OmittedPart("an empty message", f"{name} refuses it", entry))
            return
        if not sendable:
            self.repairs.append(f"message {entry} was rewritten: {name} would refuse it")
        self.items.append(OutgoingMessage(entry, parsed.message, parsed.wire if sendable else None))

    def _without_foreign_parts(self, message: Message, entry: int) -> Message:
        kept: list[Part] = []
        for part in message.parts:
            if isinstance(part, Image) and message.role == "assistant" and not self._rules.assistant_images:
                reason = f"{self._format.name} accepts no images in assistant messages"
                self.left_out.append(OmittedPart("an image in an assistant message", reason, entry))
            elif isinstance(part, Result):
                kept.append(replace(part, parts=tuple(self._known_parts(part.parts, entry))))
            else:
                kept += self._known_parts([part], entry)
        return Message(message.role, tuple(kept))

    def _known_parts(self, parts: Iterable[P], entry: int) -> Iterator[P]:
        for part in parts:
            if isinstance(part, Opaque) and part.format != self._format.name:
                what, reason = f"{part.format} {part.kind}", f"only {part.format} understands it"
                self.left_out.append(OmittedPart(what, reason, entry))
            else:
                yield part

    def drop_unpaired_opaque(self) -> None:
        """Keep an opaque request and its answer only together: neither half can be written by us.

        Items that lead to a dropped one are dropped too, and so are those that lead to nothing. In a thread, an answer
        is kept: the provider holds its request.
        """
        unpaired, follows = self._unpaired(), False
        reasons = dict.fromkeys(unpaired, "its request or answer is missing")
        for at in range(len(self.items) - 1, -1, -1):
            message = self.items[at].message
            if any(isinstance(part, Opaque) and part.kind in self._rules.opaque_prefixes for part in message.parts):
                if not follows:
                    reasons[at] = "the item after it is missing"
            else:
                follows = at not in unpaired and message.role == "assistant"
        self.left_out += [
            OmittedPart(f"{part.format} {part.kind}", reasons[at], self.items[at].index)
            for at in sorted(reasons)
            for part in self.items[at].message.parts
            if isinstance(part, Opaque)
        ]
        self.items = [item for at, item in enumerate(self.items) if at not in reasons]

    def _unpaired(self) -> set[int]:
        """Indexes of items with a request that is not answered, or an answer without a request."""
        waiting: dict[str, int] = {}
        unpaired: set[int] = set()
        opaque = ((at, part) for at, item in enumerate(self.items) for part in item.message.parts)
        for at, part in opaque:
            if not isinstance(part, Opaque):
                continue
            if part.answered_id and waiting.pop(part.answered_id, None) is None and not self._in_thread:
                unpaired.add(at)
            if part.request_id in waiting:
                unpaired.add(waiting[part.request_id])
            if part.request_id:
                waiting[part.request_id] = at
        return unpaired | set(waiting.values())

    def drop_orphan_results(self) -> None:
        orphans = self._match_results()
        if not orphans or self._in_thread:
            return
        for (at, _), (id, reason) in orphans.items():
            self.left_out.append(OmittedPart(f"the result of call {id!r}", reason, self.items[at].index))
        kept: list[OutgoingMessage] = []
        for at, item in enumerate(self.items):
            parts = [part for index, part in enumerate(item.message.parts) if (at, index) not in orphans]
            if len(parts) == len(item.message.parts):
                kept.append(item)
            elif parts:
                kept.append(item.with_parts(parts))
        self.items = kept
        self._match_results()

    def _match_results(self) -> dict[_Place, tuple[str, str]]:
        """Map results to their calls, and return id and reason for each result without a call.

        A result belongs to the last message with an unanswered call of its id; there, to the first such call. This also
        covers servers that number their calls from zero in every turn.
        """
        waiting: dict[str, list[_Place]] = {}
        orphans: dict[_Place, tuple[str, str]] = {}
        self._answers = {}
        for at, item in enumerate(self.items):
            for index, part in enumerate(item.message.parts):
                if isinstance(part, Call):
                    waiting.setdefault(part.id, []).append((at, index))
                elif isinstance(part, Result):
                    calls = waiting.get(part.id)
                    if calls:
                        call = next(place for place in calls if place[0] == calls[-1][0])
                        calls.remove(call)
                        self._answers[at, index] = call
                    else:
                        reason = "no earlier call has this id" if calls is None else "its call already has a result"
                        orphans[at, index] = part.id, reason
        return orphans

    def make_ids_unique(self) -> None:
        """Give a call, and its result, a new id if the provider would confuse it with another.

        A new id depends only on earlier messages, so a growing conversation keeps its beginning.
        """
        result_of = {call: result for result, call in self._answers.items()}
        in_use: dict[str, _Place] = {}
        uses: dict[str, int] = {}
        new_ids: dict[_Place, str] = {}
        for at, index, part in self._calls():
            id = part.id
            while (earlier := in_use.get(id)) is not None and self._is_ambiguous(earlier, at, result_of.get(earlier)):
                uses[part.id] = uses.get(part.id, 1) + 1
                id = f"{part.id}_{uses[part.id]}"
            in_use[id] = (at, index)
            if id != part.id:
                new_ids[at, index] = id
                self.repairs.append(f"call id {part.id!r} is not unique: the call to {part.name} is sent as {id!r}")
                if (at, index) in result_of:
                    new_ids[result_of[at, index]] = id
        for at in {at for at, _ in new_ids}:
            parts = enumerate(self.items[at].message.parts)
            self.items[at] = self.items[at].with_parts(
                replace(part, id=new_ids.get((at, index), part.id)) if isinstance(part, Call | Result) else part
                for index, part in parts
            )

    def _calls(self) -> Iterator[tuple[int, int, Call]]:
        for at, item in enumerate(self.items):
            for index, part in enumerate(item.message.parts):
                if isinstance(part, Call):
                    yield at, index, part

    def _is_ambiguous(self, earlier: _Place, at: int, answered: _Place | None) -> bool:
        """True if the provider would confuse a call in item `at` with the earlier one."""
        if self._rules.unique_ids == "message":
            return earlier[0] == at
        return self._rules.unique_ids == "conversation" or answered is None or answered[0] > at

    def match_result_kinds(self) -> None:
        """Give a custom call a custom result, for providers that distinguish them."""
        for (at, index), (caller, place) in self._answers.items() if self._rules.custom_results else ():
            call, parts = self.items[caller].message.parts[place], self.items[at].message.parts
            result = parts[index]
            if isinstance(call, Call) and isinstance(result, Result) and result.custom != call.custom:
                if self.items[at].wire is not None:
                    self.repairs.append(f"the result of call {call.id!r} was rewritten with the type of its call")
                retyped = replace(result, custom=call.custom)
                self.items[at] = self.items[at].with_parts([*parts[:index], retyped, *parts[index + 1 :]])

    def _placeholder_result(self, call: Call) -> Result:
        self.repairs.append(f"call {call.id!r} to {call.name} has no result: a placeholder was inserted")
        return Result(call.id, (Text(NO_RESULT_TEXT),), error=True, custom=call.custom)

    def place_results_anywhere(self) -> None:
        """Keep results in place; a placeholder follows after the last item of the assistant."""
        answered = set(self._answers.values())
        placed: list[OutgoingMessage] = []
        missing: list[OutgoingMessage] = []
        for at, item in enumerate(self.items):
            if item.message.role != "assistant":
                placed += missing
                missing = []
            placed.append(item)
            for index, part in enumerate(item.message.parts):
                if isinstance(part, Call) and (at, index) not in answered:
                    missing.append(OutgoingMessage(NO_ENTRY, Message("tool", (self._placeholder_result(part),))))
        self.items = placed + missing

    def place_results_after_calls(self) -> None:
        """Put all results right after the message with their calls."""
        result_of = {call: result for result, call in self._answers.items()}
        placed: list[OutgoingMessage] = []
        taken: set[int] = set()
        for at, item in enumerate(self.items):
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
            in_place = self._results_after(at)
            taken.update(in_place)
            added: list[Result] = []
            for index, call in calls:
                place = result_of.get((at, index))
                if place is None:
                    added.append(self._placeholder_result(call))
                elif place[0] not in in_place:
                    added += [
                        part for part in [self.items[place[0]].message.parts[place[1]]] if isinstance(part, Result)
                    ]
                    self.repairs.append(f"the late result of call {call.id!r} was moved to its call")
            run = [self.items[place] for place in in_place]
            group = [speaker, *self._group_results(run, added)]
            if len(group) <= len(run) and any(one.wire is not None for one in run):
                self.repairs.append(f"the results for message {item.index} were joined into one message")
            # Older function calls need results of the same form.
            is_rewritten = any(call.id == call.name for _, call in calls) and any(one.wire is None for one in group)
            placed += [replace(one, wire=None) for one in group] if is_rewritten else group
        self.items = placed

    def _results_after(self, at: int) -> list[int]:
        """Indexes of the items right after a call that hold its results.

        An item that also has other parts is the last of them.
        """
        indexes: list[int] = []
        for place in range(at + 1, len(self.items)):
            parts = self.items[place].message.parts
            results = [index for index, part in enumerate(parts) if isinstance(part, Result)]
            if not results or any(self._answers[place, index][0] != at for index in results):
                break
            indexes.append(place)
            if len(results) < len(parts):
                break
        return indexes

    def _group_results(self, run: list[OutgoingMessage], added: list[Result]) -> list[OutgoingMessage]:
        """The results of one message: those in place, and those that were moved or inserted."""
        if not added and len(run) < 2:
            return run
        extra = [OutgoingMessage(NO_ENTRY, Message("tool", tuple(added)))] if added else []
        group = [*run[:-1], *extra, run[-1]] if run and run[-1].parts_without_results else [*run, *extra]
        rewritten = [result for one in group if one.wire is None for result in one.message.results]
        pictures = any(isinstance(part, Image) for result in rewritten for part in result.parts)
        # Images of a rewritten result may need a message after all results: then all are rewritten.
        if len(group) > 1 and (self._rules.result_position == "together" or pictures):
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
