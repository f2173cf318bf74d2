"""The reply that a host sees: all rounds combined, without the calls that memory answers.

The host could not answer those calls, so they are removed from complete replies and from streams, and indexes are
renumbered. The boundary between rounds is not visible. Texts of all rounds are kept, and usage is added up; streamed or
not, the result is the same.

Chunks and replies are objects of a provider's client or plain values. They are copied, never changed; the journal
stores the values of the provider.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from inmind.core.json import is_object
from inmind.core.messages.format import peek

IsHidden = Callable[[str], bool]
"""True if calls of a tool are answered without the host."""


class VisibleReply:
    """The visible reply to one call of the host. A new object for each call."""

    usage: Any
    """Usage of all rounds so far, in the provider's form; None if there is none."""
    items_field: str
    """The field of a reply with its items: blocks or output items."""
    call_type: str
    """The type of an item that calls a tool."""

    def __init__(self, hidden: IsHidden, earlier_usage: Any = None) -> None:
        self._hidden = hidden
        self.usage = self._earlier_usage = earlier_usage
        self._id: Any = None
        self._earlier_items: list[Any] = []
        self._items: dict[int, Any] = {}
        self._places: dict[int, int | None] = {}
        self._item_count = 0
        self._has_calls, self._is_later_round = False, False
        self._final_chunks: list[Any] = []

    def is_failure(self, reply: Any) -> bool:  # noqa: ARG002 -- most clients raise failures
        """True if this reply or chunk reports that the request failed. The host gets it unchanged."""
        return False

    def complete_reply(self, reply: Any) -> Any:
        """The combined reply after a round that was not streamed."""
        self._id = self._id or peek(reply, "id")
        items = peek(reply, self.items_field) or ()
        self._items = dict(enumerate(item for item in items if not self._is_hidden(item)))
        self.usage = add_usage(self._earlier_usage, peek(reply, "usage"))
        visible_items = [*self._earlier_items, *self._items.values()]
        self._has_calls = any(map(self._is_call, visible_items))
        return with_fields(reply, **{"id": self._id, self.items_field: visible_items, "usage": self.usage})

    def add_chunk(self, chunk: Any) -> list[Any]:
        """Chunks that the host may see now. Chunks that end the round are kept for `end`."""
        raise NotImplementedError

    def next_round(self) -> None:
        """The round is over and another one follows."""
        self._earlier_usage = self.usage
        self._earlier_items += [self._items[place] for place in sorted(self._items)]
        self._items, self._places, self._final_chunks, self._is_later_round = {}, {}, [], True

    def end(self) -> list[Any]:
        """The final chunks, after the last round."""
        return [self._final_chunk(chunk) for chunk in self._final_chunks]

    def _final_chunk(self, chunk: Any) -> Any:
        return chunk

    def _place(self, item: Any) -> int | None:
        """The index of an item for the host; None if it is hidden."""
        if self._is_hidden(item):
            return None
        self._has_calls = self._has_calls or self._is_call(item)
        self._item_count += 1
        return self._item_count - 1

    def _is_call(self, item: Any) -> bool:
        return peek(item, "type") == self.call_type

    def _is_hidden(self, item: Any) -> bool:
        return self._is_call(item) and self._hidden(peek(item, "name"))


class AnthropicVisibleReply(VisibleReply):
    """Visible replies of Anthropic's API.

    A reply is a list of blocks, and every event of a block has its index. So whole blocks are shown or hidden, and
    blocks of several rounds are concatenated. A stream reports input tokens at its start and output tokens at its end;
    for several rounds, the end reports both.
    """

    items_field, call_type = "content", "tool_use"
    _start_usage: Any = None

    def complete_reply(self, reply: Any) -> Any:
        return self._with_stop_reason(super().complete_reply(reply))

    def add_chunk(self, chunk: Any) -> list[Any]:
        kind, index = peek(chunk, "type"), peek(chunk, "index")
        if kind in ("message_delta", "message_stop"):
            if kind == "message_delta":
                self.usage = add_usage(self._earlier_usage, _latest_usage(self._start_usage, peek(chunk, "usage")))
            self._final_chunks.append(chunk)
            return []
        if kind == "message_start":
            self._start_usage = peek(peek(chunk, "message"), "usage")
            return [] if self._is_later_round else [chunk]
        if kind == "content_block_start":
            self._places[index] = self._place(peek(chunk, "content_block"))
        if index is None:
            return [chunk]
        place = self._places.get(index)
        return [] if place is None else [with_fields(chunk, index=place)]

    def _final_chunk(self, chunk: Any) -> Any:
        usage = peek(chunk, "usage")
        if usage is not None and self._earlier_usage is not None:
            usage = with_fields(usage, **dict(self.usage))
        return with_fields(chunk, delta=self._with_stop_reason(peek(chunk, "delta")), usage=usage)

    def _with_stop_reason(self, value: Any) -> Any:
        """Replace the stop reason "tool_use" by "end_turn" if no call is visible to the host."""
        stopped = peek(value, "stop_reason") == "tool_use" and not self._has_calls
        return with_fields(value, stop_reason="end_turn") if stopped else value


class ResponsesVisibleReply(VisibleReply):
    """Visible replies of OpenAI's Responses API.

    A reply is a list of items, and its stream refers to each by its index. Start and end events of the stream carry the
    response: the start is that of the first round, so its id stays; the end is that of the last round, with the visible
    items of all rounds.
    """

    items_field, call_type = "output", "function_call"
    _previous_id: Any = None
    _sequence_number: int | None = None

    def is_failure(self, reply: Any) -> bool:
        return peek(reply, "type") in _FAILURE_EVENTS or peek(reply, "status") == "failed"

    def complete_reply(self, reply: Any) -> Any:
        self._set_id(reply)
        # A later round continues the thread from a reply that the host does not know.
        previous = {"previous_response_id": self._previous_id} if self._previous_id else {}
        return with_fields(super().complete_reply(reply), **previous)

    def add_chunk(self, chunk: Any) -> list[Any]:
        kind, index = peek(chunk, "type"), peek(chunk, "output_index")
        if kind in _START_EVENTS:
            self._set_id(peek(chunk, "response"))
            return [] if self._is_later_round else [self._numbered(chunk)]
        if kind in _END_EVENTS:
            self.usage = add_usage(self._earlier_usage, peek(peek(chunk, "response"), "usage"))
            self._final_chunks.append(chunk)
            return []
        if kind in _FAILURE_EVENTS:
            return [self._final_chunk(chunk)]
        if index is None:
            return [self._numbered(chunk)]
        if index not in self._places:
            self._places[index] = self._place(peek(chunk, "item"))
        place = self._places[index]
        if place is None:
            return []
        if kind == "response.output_item.done":
            self._items[place] = peek(chunk, "item")
        return [self._numbered(chunk, output_index=place)]

    def _set_id(self, response: Any) -> None:
        if self._id is None:
            self._id, self._previous_id = peek(response, "id"), peek(response, "previous_response_id")

    def _final_chunk(self, chunk: Any) -> Any:
        response = peek(chunk, "response")
        fields = {} if response is None else {"response": self.complete_reply(response)}
        return self._numbered(chunk, **fields)

    def _numbered(self, chunk: Any, **fields: Any) -> Any:
        """The next event of the visible stream, numbered if the server numbers its events."""
        number = peek(chunk, "sequence_number")
        if number is not None:
            self._sequence_number = number if self._sequence_number is None else self._sequence_number + 1
            fields["sequence_number"] = self._sequence_number
        return with_fields(chunk, **fields)


_START_EVENTS = ("response.created", "response.queued", "response.in_progress")
_END_EVENTS = ("response.completed", "response.incomplete")
_FAILURE_EVENTS = ("response.failed", "error")


def with_fields(value: Any, **fields: Any) -> Any:
    """A copy with these fields, of the same class; the same object if nothing changes."""
    if all(peek(value, name) == new_value for name, new_value in fields.items()):
        return value
    return {**value, **fields} if is_object(value) else value.model_copy(update=fields)


def add_usage(before: Any, now: Any) -> Any:
    """The usage of two rounds, in the form of the later one. Numbers are added at any depth."""
    if before is None or now is None:
        return before if now is None else now
    if isinstance(now, int | float) and isinstance(before, int | float):
        return before + now if not isinstance(now, bool) else now
    if not _has_fields(now) or not _has_fields(before):
        return now
    return with_fields(now, **{name: add_usage(value, peek(now, name)) for name, value in dict(before).items()})


def _has_fields(value: object) -> bool:
    return is_object(value) or hasattr(value, "model_copy")


def _latest_usage(start: Any, latest: Any) -> Any:
    """Usage in a stream is cumulative: later values replace earlier ones."""
    if start is None or latest is None:
        return start if latest is None else latest
    return with_fields(start, **{name: value for name, value in dict(latest).items() if value is not None})
