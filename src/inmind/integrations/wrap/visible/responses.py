"""Replies of OpenAI's Responses API, as a host is shown them.

A reply is a row of items, and its stream tells each of them by its place in the row. The stream's own beginning and
end carry the response: the first round's stands at the beginning, so its id stays, and at the end stands the last
round's, with the items of all rounds that were shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inmind.core.messages.replies.reply import peek
from inmind.integrations.wrap.visible.base import Hidden, changed, summed

_BEGINNINGS = ("response.created", "response.queued", "response.in_progress")
_ENDS = ("response.completed", "response.incomplete")
_FAILURES = ("response.failed", "error")


class ResponsesShowing:
    def __init__(self, hidden: Hidden, paid: Any = None) -> None:
        self._hidden = hidden
        self.paid = self._earlier = paid
        self._id: Any = None
        self._number: int | None = None
        self._places: dict[int, int | None] = {}
        self._begun = 0
        self._before: list[Any] = []
        self._done: dict[int, Any] = {}
        self._later = False
        self._ending: list[Any] = []

    def is_failure(self, said: Any) -> bool:
        return peek(said, "type") in _FAILURES or peek(said, "status") == "failed"

    def whole(self, reply: Any) -> Any:
        self._id = self._id or peek(reply, "id")
        items: Sequence[Any] = peek(reply, "output") or ()
        kept = [item for item in items if not self._is_hidden(item)]
        self._done = dict(enumerate(kept))
        self.paid = summed(self._earlier, peek(reply, "usage"))
        return changed(reply, id=self._id, output=[*self._before, *kept], usage=self.paid)

    def take(self, chunk: Any) -> list[Any]:
        kind, index = peek(chunk, "type"), peek(chunk, "output_index")
        if kind in _BEGINNINGS:
            self._id = self._id or peek(peek(chunk, "response"), "id")
            return [] if self._later else [self._numbered(chunk)]
        if kind in _ENDS:
            self.paid = summed(self._earlier, peek(peek(chunk, "response"), "usage"))
            self._ending.append(chunk)
            return []
        if kind in _FAILURES:
            return [self._ended(chunk)]
        if index is None:
            return [self._numbered(chunk)]
        if index not in self._places:
            self._places[index] = self._place(peek(chunk, "item"))
        place = self._places[index]
        if place is None:
            return []
        if kind == "response.output_item.done":
            self._done[place] = peek(chunk, "item")
        return [self._numbered(chunk, output_index=place)]

    def next_round(self) -> None:
        self._before += [self._done[place] for place in sorted(self._done)]
        self._earlier = self.paid
        self._places, self._done, self._ending, self._later = {}, {}, [], True

    def end(self) -> list[Any]:
        return [self._ended(chunk) for chunk in self._ending]

    def _place(self, item: Any) -> int | None:
        if self._is_hidden(item):
            return None
        self._begun += 1
        return self._begun - 1

    def _is_hidden(self, item: Any) -> bool:
        return peek(item, "type") == "function_call" and self._hidden(peek(item, "name"))

    def _ended(self, chunk: Any) -> Any:
        response = peek(chunk, "response")
        return self._numbered(chunk) if response is None else self._numbered(chunk, response=self.whole(response))

    def _numbered(self, chunk: Any, **fields: Any) -> Any:
        """The next event of the stream that the host sees; a few servers do not number theirs."""
        number = peek(chunk, "sequence_number")
        if number is not None:
            self._number = number if self._number is None else self._number + 1
            fields["sequence_number"] = self._number
        return changed(chunk, **fields)
