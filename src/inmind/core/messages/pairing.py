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
    Role,
    Text,
    Wire,
)

P = TypeVar("P", bound=Part)

NO_RESULT_TEXT = "(no result: the call was not answered)"

# The index of a message that was inserted.
NO_ENTRY = -1


class _OutgoingPart:
    """A part on the way to a provider, with its call or its result."""

    def __init__(self, value: Part, message: _OutgoingMessage) -> None:
        self.value, self.message = value, message
        self.partner: _OutgoingPart | None = None

    def change(self, value: Part) -> None:
        self.value = value
        self.message.wire = None


class _OutgoingMessage:
    """A message to send: as `wire` if it is set, otherwise written from its parts."""

    def __init__(self, index: int, role: Role, parts: Iterable[Part], wire: Wire | None = None) -> None:
        self.index, self.wire = index, wire
        self.role: Role = role
        self.parts = [_OutgoingPart(part, self) for part in parts]

    def parts_of(self, kind: type[P]) -> list[P]:
        return [part.value for part in self.parts if isinstance(part.value, kind)]

    @property
    def parts_without_results(self) -> list[Part]:
        """The remaining parts when the results have been moved to their calls."""
        return [part.value for part in self.parts if not isinstance(part.value, Result)]

    @property
    def content(self) -> Message:
        return Message(self.role, tuple(part.value for part in self.parts))


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
    pairing.pair_results()
    pairing.make_ids_unique()
    pairing.match_result_kinds()
    if rules.result_position == "anywhere":
        pairing.place_results_anywhere()
    else:
        pairing.place_results_after_calls()
    first = pairing.items[0].content if pairing.items else None
    if is_start and rules.user_first and first and first.role == "assistant" and not first.has_compaction:
        pairing.items.insert(0, _OutgoingMessage(NO_ENTRY, "user", [Text(OPENING_TEXT)]))
        pairing.repairs.insert(0, f"{format.name} requires a user message first: {OPENING_TEXT!r} was inserted")
    left_out = tuple(sorted(pairing.left_out, key=lambda one: one.index))
    return ProviderList(wires=_to_wires(pairing.items, format), left_out=left_out, repairs=tuple(pairing.repairs))


def _needs_no_repair(message: ParsedMessage, format: Format) -> bool:
    """True for a text message in the provider's own format, which is most of them."""
    return (
        message.format == format.name
        and all(type(part) is Text for part in message.message.parts)
        and format.is_sendable(message.wire, message.message)
    )


class _Pairing:
    """Messages on the way to one provider, with what was left out and repaired."""

    def __init__(self, format: Format, *, in_thread: bool) -> None:
        self.items: list[_OutgoingMessage] = []
        self.left_out: list[OmittedPart] = []
        self.repairs: list[str] = []
        self._format, self._rules, self._in_thread = format, format.rules, in_thread

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
                self.items[-1].parts += [_OutgoingPart(part, self.items[-1]) for part in message.parts]
            else:
                self.items.append(_OutgoingMessage(entry, message.role, message.parts))
            joinable = is_assistant

    def _add_own(self, parsed: ParsedMessage, entry: int) -> None:
        name = self._format.name
        sendable = self._format.is_sendable(parsed.wire, parsed.message)
        if not sendable and not parsed.message.parts and self._rules.drops_empty_messages:
            self.left_out.append(OmittedPart("an empty message", f"{name} refuses it", entry))
            return
        if not sendable:
            self.repairs.append(f"message {entry} was rewritten: {name} would refuse it")
        wire = parsed.wire if sendable else None
        self.items.append(_OutgoingMessage(entry, parsed.message.role, parsed.message.parts, wire))

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
        for item in reversed(self.items):
            if any(part.kind in self._rules.opaque_prefixes for part in item.parts_of(Opaque)):
                if not follows:
                    reasons[item] = "the item after it is missing"
            else:
                follows = item not in unpaired and item.role == "assistant"
        self.left_out += [
            OmittedPart(f"{part.format} {part.kind}", reasons[item], item.index)
            for item in self.items
            if item in reasons
            for part in item.parts_of(Opaque)
        ]
        self.items = [item for item in self.items if item not in reasons]

    def _unpaired(self) -> set[_OutgoingMessage]:
        """Messages with a request that is not answered, or an answer without a request."""
        waiting: dict[str, _OutgoingMessage] = {}
        unpaired: set[_OutgoingMessage] = set()
        for outgoing in self._parts():
            part, item = outgoing.value, outgoing.message
            if not isinstance(part, Opaque):
                continue
            if part.answered_id and waiting.pop(part.answered_id, None) is None and not self._in_thread:
                unpaired.add(item)
            if part.request_id in waiting:
                unpaired.add(waiting[part.request_id])
            if part.request_id:
                waiting[part.request_id] = item
        return unpaired | set(waiting.values())

    def _parts(self) -> list[_OutgoingPart]:
        return [part for item in self.items for part in item.parts]

    def pair_results(self) -> None:
        """Find the call of each result, and leave out results without one.

        A result belongs to the last message with an unanswered call of its id; there, to the first such call. This also
        covers servers that number their calls from zero in every turn.
        """
        waiting: dict[str, list[_OutgoingPart]] = {}
        orphans: list[_OutgoingPart] = []
        for part in self._parts():
            if isinstance(part.value, Call):
                waiting.setdefault(part.value.id, []).append(part)
            elif isinstance(part.value, Result):
                calls = waiting.get(part.value.id)
                if calls:
                    call = next(one for one in calls if one.message is calls[-1].message)
                    calls.remove(call)
                    part.partner, call.partner = call, part
                elif not self._in_thread:
                    reason = "no earlier call has this id" if calls is None else "its call already has a result"
                    what = f"the result of call {part.value.id!r}"
                    self.left_out.append(OmittedPart(what, reason, part.message.index))
                    orphans.append(part)
        for part in orphans:
            part.message.parts.remove(part)
            part.message.wire = None
        emptied = {part.message for part in orphans if not part.message.parts}
        self.items = [item for item in self.items if item not in emptied]

    def make_ids_unique(self) -> None:
        """Give a call, and its result, a new id if the provider would confuse it with another.

        A new id depends only on earlier messages, so a growing conversation keeps its beginning.
        """
        in_use: dict[str, _OutgoingPart] = {}
        uses: dict[str, int] = {}
        for part in self._parts():
            call = part.value
            if not isinstance(call, Call):
                continue
            id = call.id
            while (earlier := in_use.get(id)) is not None and self._is_ambiguous(earlier, part):
                uses[call.id] = uses.get(call.id, 1) + 1
                id = f"{call.id}_{uses[call.id]}"
            in_use[id] = part
            if id != call.id:
                self.repairs.append(f"call id {call.id!r} is not unique: the call to {call.name} is sent as {id!r}")
                part.change(replace(call, id=id))
                if part.partner is not None and isinstance(result := part.partner.value, Result):
                    part.partner.change(replace(result, id=id))

    def _is_ambiguous(self, earlier: _OutgoingPart, later: _OutgoingPart) -> bool:
        """True if the provider would confuse the later call with the earlier one."""
        if self._rules.unique_ids == "message":
            return earlier.message is later.message
        result = earlier.partner
        is_open = result is None or result.message.index > later.message.index
        return is_open or self._rules.unique_ids == "conversation"

    def match_result_kinds(self) -> None:
        """Give a custom call a custom result, for providers that distinguish them."""
        for part in self._parts() if self._rules.custom_results else ():
            result, call = part.value, part.partner and part.partner.value
            if isinstance(result, Result) and isinstance(call, Call) and result.custom != call.custom:
                if part.message.wire is not None:
                    self.repairs.append(f"the result of call {call.id!r} was rewritten with the type of its call")
                part.change(replace(result, custom=call.custom))

    def _placeholder_result(self, call: Call) -> Result:
        self.repairs.append(f"call {call.id!r} to {call.name} has no result: a placeholder was inserted")
        return Result(call.id, (Text(NO_RESULT_TEXT),), error=True, custom=call.custom)

    def place_results_anywhere(self) -> None:
        """Keep results in place; a placeholder follows after the last item of the assistant."""
        placed: list[_OutgoingMessage] = []
        missing: list[_OutgoingMessage] = []
        for item in self.items:
            if item.role != "assistant":
                placed += missing
                missing = []
            placed.append(item)
            for part in item.parts:
                if isinstance(part.value, Call) and part.partner is None:
                    missing.append(_OutgoingMessage(NO_ENTRY, "tool", [self._placeholder_result(part.value)]))
        self.items = placed + missing

    def place_results_after_calls(self) -> None:
        """Put all results right after the message with their calls."""
        placed: list[_OutgoingMessage] = []
        taken: set[_OutgoingMessage] = set()
        for at, item in enumerate(self.items):
            # Results that were not taken with their call have already been moved to it.
            rest = item.parts_without_results
            if item in taken or (item.parts and not rest):
                continue
            speaker = item if len(rest) == len(item.parts) else _OutgoingMessage(item.index, item.role, rest)
            if not item.parts_of(Call):
                placed.append(speaker)
                continue
            run = self._results_after(at)
            taken.update(run)
            group = [speaker, *self._group_results(run, list(self._results_elsewhere(item, run)))]
            if len(group) <= len(run) and any(one.wire is not None for one in run):
                self.repairs.append(f"the results for message {item.index} were joined into one message")
            # Older function calls need results of the same form.
            if any(call.id == call.name for call in item.parts_of(Call)) and any(one.wire is None for one in group):
                for one in group:
                    one.wire = None
            placed += group
        self.items = placed

    def _results_after(self, at: int) -> list[_OutgoingMessage]:
        """The messages right after a call that hold its results.

        A message that also has other parts is the last of them.
        """
        run: list[_OutgoingMessage] = []
        for item in self.items[at + 1 :]:
            calls = [part.partner for part in item.parts if isinstance(part.value, Result)]
            if not calls or any(call is None or call.message is not self.items[at] for call in calls):
                break
            run.append(item)
            if len(calls) < len(item.parts):
                break
        return run

    def _results_elsewhere(self, item: _OutgoingMessage, run: list[_OutgoingMessage]) -> Iterator[Part]:
        """Results of the calls of a message that are not in these messages, or missing."""
        for part in item.parts:
            if not isinstance(call := part.value, Call):
                continue
            if part.partner is None:
                yield self._placeholder_result(call)
            elif part.partner.message not in run:
                self.repairs.append(f"the late result of call {call.id!r} was moved to its call")
                yield part.partner.value

    def _group_results(self, run: list[_OutgoingMessage], added: list[Part]) -> list[_OutgoingMessage]:
        """The results of one message: those in place, and those that were moved or inserted."""
        if not added and len(run) < 2:
            return run
        rest = run[-1].parts_without_results if run else []
        extra = [_OutgoingMessage(NO_ENTRY, "tool", added)] if added else []
        group = [*run[:-1], *extra, run[-1]] if rest else [*run, *extra]
        rewritten = [result for one in group if one.wire is None for result in one.parts_of(Result)]
        pictures = any(isinstance(part, Image) for result in rewritten for part in result.parts)
        # Images of a rewritten result may need a message after all results: then all are rewritten.
        if len(group) > 1 and (self._rules.result_position == "together" or pictures):
            results = [result for one in group for result in one.parts_of(Result)]
            return [_OutgoingMessage(NO_ENTRY, "user" if rest else "tool", [*results, *rest])]
        return group


def _to_wires(items: list[_OutgoingMessage], format: Format) -> list[Wire]:
    """Original wires, and between them runs of messages that are written together."""
    wires: list[Wire] = []
    for is_original, group in groupby(items, key=lambda item: item.wire is not None):
        if is_original:
            wires += [item.wire for item in group if item.wire is not None]
            continue
        run = [item.content for item in group]
        written = format.write(run)
        # A run that starts with the assistant follows other messages, so it needs no opening user message.
        wires += written[1:] if format.rules.user_first and run[0].role == "assistant" else written
    return wires
