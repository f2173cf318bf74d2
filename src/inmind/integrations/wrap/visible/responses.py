"""Visible replies of OpenAI's Responses API.

A reply is a list of items, and its stream refers to each by its index. Start and end events of the stream carry the
response: the start is that of the first round, so its id stays; the end is that of the last round, with the visible
items of all rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inmind.core.messages.format import peek
from inmind.integrations.wrap.visible.base import IsHidden, add_usage, with_fields

_START_EVENTS = ("response.created", "response.queued", "response.in_progress")
_END_EVENTS = ("response.completed", "response.incomplete")
_FAILURE_EVENTS = ("response.failed", "error")


class ResponsesVisibleReply:
    def __init__(self, hidden: IsHidden, earlier_usage: Any = None) -> None:
        self._hidden = hidden
        self.usage = self._earlier_usage = earlier_usage
        self._id: Any = None
        self._previous_id: Any = None
        self._sequence_number: int | None = None
        self._places: dict[int, int | None] = {}
        self._item_count = 0
        self._earlier_items: list[Any] = []
        self._finished_items: dict[int, Any] = {}
        self._is_later_round = False
        self._final_chunks: list[Any] = []

    def is_failure(self, reply: Any) -> bool:
        return peek(reply, "type") in _FAILURE_EVENTS or peek(reply, "status") == "failed"

    def complete_reply(self, reply: Any) -> Any:
        if self._id is None:
            self._id, self._previous_id = peek(reply, "id"), peek(reply, "previous_response_id")
        items: Sequence[Any] = peek(reply, "output") or ()
        visible_items = [item for item in items if not self._is_hidden(item)]
        self._finished_items = dict(enumerate(visible_items))
        self.usage = add_usage(self._earlier_usage, peek(reply, "usage"))
        # A later round continues the thread from a reply that the host does not know.
        previous = {"previous_response_id": self._previous_id} if self._previous_id else {}
        output = [*self._earlier_items, *visible_items]
        return with_fields(reply, id=self._id, output=output, usage=self.usage, **previous)

    def add_chunk(self, chunk: Any) -> list[Any]:
        kind, index = peek(chunk, "type"), peek(chunk, "output_index")
        if kind in _START_EVENTS:
            if self._id is None:
                response = peek(chunk, "response")
                self._id, self._previous_id = peek(response, "id"), peek(response, "previous_response_id")
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
            self._finished_items[place] = peek(chunk, "item")
        return [self._numbered(chunk, output_index=place)]

    def next_round(self) -> None:
        self._earlier_items += [self._finished_items[place] for place in sorted(self._finished_items)]
        self._earlier_usage = self.usage
        self._places, self._finished_items, self._final_chunks, self._is_later_round = {}, {}, [], True

    def end(self) -> list[Any]:
        return [self._final_chunk(chunk) for chunk in self._final_chunks]

    def _place(self, item: Any) -> int | None:
        if self._is_hidden(item):
            return None
        self._item_count += 1
        return self._item_count - 1

    def _is_hidden(self, item: Any) -> bool:
        return peek(item, "type") == "function_call" and self._hidden(peek(item, "name"))

    def _final_chunk(self, chunk: Any) -> Any:
        response = peek(chunk, "response")
        return (
            self._numbered(chunk) if response is None else self._numbered(chunk, response=self.complete_reply(response))
        )

    def _numbered(self, chunk: Any, **fields: Any) -> Any:
        """The next event of the visible stream, numbered if the server numbers its events."""
        number = peek(chunk, "sequence_number")
        if number is not None:
            self._sequence_number = number if self._sequence_number is None else self._sequence_number + 1
            fields["sequence_number"] = self._sequence_number
        return with_fields(chunk, **fields)
