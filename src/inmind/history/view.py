"""The conversation in one provider's format, and the prefix it shares with earlier prompts.

A prefix that ends with an unchanged message is final and is not built again, at any length. Each sent
wire has a digest in a hash chain over the encoded wires, so prompts are compared by the bytes that were sent. The
tokens of messages and views are counted here too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

from inmind.core.encoding import digest, to_json
from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import (
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
from inmind.core.messages.pairing import ProviderList, to_provider_list
from inmind.core.text import largest_that_fits
from inmind.core.tokens import TOKENS_PER_IMAGE, TOKENS_PER_MESSAGE
from inmind.history.history import Conversation, ConversationEntry


@frozen(kw_only=True)
class View:
    """The messages of one prompt in order, without the tail."""

    format: str
    wires: Sequence[Wire]
    prefix_digests: Sequence[str]
    """`prefix_digests[i]` is the digest of the first i + 1 wires: equal digests mean equal bytes."""
    left_out: tuple[OmittedPart, ...]
    repaired: tuple[str, ...]
    is_unchanged: bool
    """The wires are exactly the messages of the conversation."""
    carrier: int | None
    """Index of the wire that carries the tail; None if none can."""

    @property
    def digest(self) -> str:
        return self.prefix_digests[-1] if self.prefix_digests else ""

    @property
    def after_carrier(self) -> int:
        """Number of wires after the tail, for example a prefilled answer."""
        return 0 if self.carrier is None else len(self.wires) - 1 - self.carrier

    def common_prefix(self, earlier: View) -> int:
        """Number of leading wires equal to those of an earlier prompt and before its tail."""
        if self.format != earlier.format:
            return 0
        shorter = min(len(self.wires) - self.after_carrier, len(earlier.wires) - earlier.after_carrier)
        # Digests are a chain: if the n-th is equal, so are all before it.
        return largest_that_fits(
            shorter, lambda length: self.prefix_digests[length - 1] == earlier.prefix_digests[length - 1]
        )


@dataclass
class ViewBuilder:
    """Builds views of a growing conversation and copies their wires for the host.

    New messages rarely change how a final prefix is arranged. A call id that also occurs in the prefix can;
    everything is then arranged again.
    """

    _final: View = field(default_factory=lambda: _empty_view(""))
    """The view of the final prefix."""
    _final_length: int = 0
    _final_digest: str = ""
    _in_thread: bool = False
    _call_ids: set[str] = field(default_factory=set[str])
    _open_calls: set[str] = field(default_factory=set[str])
    _copies: list[Wire] = field(default_factory=list[Wire])
    _messages: dict[str, Message] = field(default_factory=dict[str, Message])

    def read_message(self, entry: ConversationEntry) -> Message:
        """Return the parsed message; each is parsed once."""
        known = self._messages.get(entry.digest)
        if known is None:
            if len(self._messages) >= MAX_CACHED_MESSAGES:
                self._messages.clear()
            known = self._messages[entry.digest] = FORMATS[entry.format].read(entry.wire)
        return known

    def build(self, conversation: Conversation, format: str, *, in_thread: bool = False) -> View:
        """Return the view. `in_thread`: the provider holds the messages before the conversation."""
        is_other = (format, in_thread) != (self._final.format, self._in_thread)
        if is_other or not conversation.begins_with(self._final_length, self._final_digest):
            self._reset(format, in_thread)
        messages = [
            ParsedMessage(entry.format, entry.wire, self.read_message(entry))
            for entry in conversation[self._final_length :]
        ]
        calls = [call.id for one in messages for call in one.message.calls]
        results = {result.id for one in messages for result in one.message.results}
        fresh = to_provider_list(messages, FORMATS[format], is_start=not self._final_length, in_thread=in_thread)
        if self._final_length and self._affects_final(calls, results, fresh):
            self._reset(format, in_thread)
            return self.build(conversation, format, in_thread=in_thread)
        view = self._extend(messages, fresh)
        if messages and not fresh.left_out and fresh.wires and fresh.wires[-1] is messages[-1].wire:
            self._final, self._final_length = view, len(conversation)
            self._final_digest = conversation.prefix_digest()
            self._call_ids.update(calls)
            self._open_calls.update(set(calls) - results)
        return view

    def copy_wires(self, view: View) -> list[Wire]:
        """Return copies that the host may modify.

        Consecutive prompts share the copies; after a modification by the host they are made again.
        """
        known = len(self._copies)
        if self._copies != view.wires[:known]:
            self._copies, known = [], 0
        self._copies += [deep_copy(wire) for wire in view.wires[known:]]
        return list(self._copies)

    def _extend(self, messages: Sequence[ParsedMessage], fresh: ProviderList) -> View:
        final, format = self._final, FORMATS[self._final.format]
        sent = [format.strip_local_fields(wire) for wire in fresh.wires]
        digests = list(final.prefix_digests)
        for wire in sent:
            digests.append(digest(digests[-1] if digests else "", to_json(wire)))
        same = len(sent) == len(messages) and all(wire is one.wire for wire, one in zip(sent, messages, strict=True))
        wires = [*final.wires, *sent]
        return View(
            format=final.format,
            wires=wires,
            prefix_digests=digests,
            left_out=fresh.left_out,
            repaired=final.repaired + fresh.repairs,
            is_unchanged=final.is_unchanged and same,
            carrier=format.tail_index(wires),
        )

    def _affects_final(self, calls: Sequence[str], results: set[str], fresh: ProviderList) -> bool:
        """True if new messages affect the final prefix: an open call, or an id that must be unique."""
        if not self._open_calls.isdisjoint(results) or not self._open_calls.isdisjoint(calls):
            return True
        if len(set(calls)) < len(calls):
            return True
        once = FORMATS[self._final.format].rules.unique_ids == "conversation"
        return once and (bool(fresh.repairs) or not self._call_ids.isdisjoint(calls))

    def _reset(self, format: str, in_thread: bool) -> None:
        self._final, self._final_length, self._final_digest = _empty_view(format), 0, ""
        self._in_thread, self._call_ids, self._open_calls = in_thread, set(), set()


def _empty_view(format: str) -> View:
    return View(format=format, wires=(), prefix_digests=(), left_out=(), repaired=(), is_unchanged=True, carrier=None)


def deep_copy(value: Any) -> Any:
    """Copy containers; strings are shared."""
    if is_object(value):
        return {key: inner if type(inner) is str else deep_copy(inner) for key, inner in value.items()}
    if is_list(value):
        return [deep_copy(inner) for inner in value]
    return value


MAX_CACHED_MESSAGES = 20_000
"""Parsed messages that are cached."""


BANDS = (
    (20, "normal"),
    (40, "light_compression"),
    (60, "medium_compression"),
    (75, "heavy_compression"),
)
EMERGENCY_BAND = "emergency_compression"


def band_for(percent: float) -> str:
    """Return the name of the usage band, which the model reads as `action_hint`."""
    return next((name for below, name in BANDS if percent < below), EMERGENCY_BAND if percent > 75 else BANDS[-1][1])


@dataclass
class TokenMeter:
    """Counts tokens and caches the results: each message is counted once."""

    count: Callable[[str], int]
    _cache: dict[str, int] = field(default_factory=dict[str, int])
    _counted_digest: str = ""
    _sums: list[int] = field(default_factory=lambda: [0])

    def count_history(self, conversation: Conversation, length: int | None = None) -> int:
        """Tokens of the first `length` messages, by default of all."""
        if not conversation.begins_with(len(self._sums) - 1, self._counted_digest):
            self._sums = [0]
        for entry in conversation[len(self._sums) - 1 :]:
            self._sums.append(self._sums[-1] + self.count_message(entry))
        self._counted_digest = conversation.prefix_digest()
        return self._sums[len(conversation) if length is None else length]

    def count_view(self, conversation: Conversation, view: View, length: int | None = None) -> int:
        """Tokens of the first `length` wires of a view of this conversation."""
        if view.is_unchanged:
            return self.count_history(conversation, length)
        named = list(zip(view.prefix_digests, view.wires, strict=True))[:length]
        return sum(self._cached(name, partial(self.count_wire, view.format, wire)) for name, wire in named)

    def largest_message(self, conversation: Conversation) -> int:
        """Tokens of the largest message."""
        self.count_history(conversation)
        return max((after - before for before, after in pairwise(self._sums)), default=0)

    def count_message(self, entry: ConversationEntry) -> int:
        return self._cached(entry.digest, lambda: self.count_wire(entry.format, entry.wire))

    def count_value(self, name: str, value: object) -> int:
        """Tokens of a JSON value (system prompt, tools), cached under `name`."""
        return self._cached(name, lambda: self.count(to_json(value)) if value else 0)

    def _cached(self, name: str, count: Callable[[], int]) -> int:
        known = self._cache.get(name)
        if known is None:
            known = self._cache[name] = count()
        return known

    def count_wire(self, format: str, wire: Mapping[str, Any]) -> int:
        """Tokens of a message of this format."""
        content = wire.get("content")
        if isinstance(content, str) and len(wire) == 2:
            return TOKENS_PER_MESSAGE + self.count(content)
        return TOKENS_PER_MESSAGE + sum(self.count_part(part) for part in FORMATS[format].read(wire).parts)

    def count_part(self, part: Part) -> int:
        match part:
            case Text():
                return self.count(part.text)
            case Image():
                return TOKENS_PER_IMAGE
            case Call():
                return self.count(part.name) + self.count(part.arguments) + TOKENS_PER_MESSAGE
            case Result():
                return sum(self.count_part(inner) for inner in part.parts) + TOKENS_PER_MESSAGE
            case Opaque():
                return self.count(to_json(part.body))
