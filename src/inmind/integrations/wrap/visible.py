"""The reply that a host sees: all rounds combined, without the calls that memory answers.

The host could not answer those calls, so they are removed from complete replies and from streams, and indexes are
renumbered. The boundary between rounds is not visible. Texts of all rounds are kept, and usage is added up; streamed or
not, the result is the same.

Chunks and replies are objects of a provider's client or plain values. They are copied, never changed; the journal
stores the values of the provider.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from inmind.core.json import is_object, peek
from inmind.core.messages.openai import belongs_to_entry, is_repeated

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
    if not all(is_object(value) or hasattr(value, "model_copy") for value in (before, now)):
        return now
    return with_fields(now, **{name: add_usage(value, peek(now, name)) for name, value in dict(before).items()})


def _latest_usage(start: Any, latest: Any) -> Any:
    """Usage in a stream is cumulative: later values replace earlier ones."""
    if start is None or latest is None:
        return start if latest is None else latest
    return with_fields(start, **{name: value for name, value in dict(latest).items() if value is not None})


GAP = "\n\n"


@dataclass(slots=True)
class _PartialCall:
    """A call that is being streamed. Until its name is complete its pieces are held back.

    The name is complete when arguments follow, another call starts, or the reply ends.
    """

    first: Any
    custom: bool = False
    has_arguments: bool = False
    names: list[str] = field(default_factory=list[str])
    hidden: bool = False
    index: int | None = None
    pending: list[Any] = field(default_factory=list[Any])

    @property
    def is_settled(self) -> bool:
        return self.hidden or self.index is not None

    @property
    def name(self) -> str:
        return self.names[-1] if is_repeated(self.names) else "".join(self.names)

    def add(self, piece: Any) -> None:
        function, custom = peek(piece, "function"), peek(piece, "custom")
        self.custom = self.custom or bool(custom)
        self.has_arguments = self.has_arguments or bool(peek(function, "arguments") or peek(custom, "input"))
        self.names += filter(None, [_name(piece)])


class OpenAIVisibleReply(VisibleReply):
    """Visible replies of chat completions.

    A chunk refers to a call by its index: first its name, which a few servers send in pieces, then pieces of its
    arguments. Text has no index, so texts of several rounds are joined with a blank line.
    """

    def __init__(self, hidden: IsHidden, earlier_usage: Any = None) -> None:
        super().__init__(hidden, earlier_usage)
        self._earlier_choice: Any = None
        self._choice: Any = None
        self._calls: list[_PartialCall] = []
        self._visible_call_count = 0
        self._has_started = False
        self._text_lengths: Counter[str] = Counter()
        self._gap_fields: set[str] = set()
        self._citation_offset = 0

    def complete_reply(self, reply: Any) -> Any:
        self._id = self._id or peek(reply, "id")
        self.usage = add_usage(self._earlier_usage, peek(reply, "usage"))
        [choice] = peek(reply, "choices")
        message = peek(choice, "message")
        calls: Sequence[Any] = peek(message, "tool_calls") or ()
        visible_calls = [call for call in calls if not self._is_hidden(call)]
        if len(visible_calls) < len(calls):
            message = with_fields(message, tool_calls=visible_calls or None)
        earlier_message, logprobs = peek(self._earlier_choice, "message"), peek(self._earlier_choice, "logprobs")
        earlier_text: str = peek(earlier_message, "content") or ""
        message = _join_rounds(
            earlier_message, _move_citations(message, len(earlier_text + GAP) if earlier_text else 0)
        )
        choice = with_fields(choice, message=message, logprobs=_join_rounds(logprobs, peek(choice, "logprobs")))
        self._choice = _with_finish_reason(choice, calls=bool(visible_calls))
        return with_fields(reply, id=self._id, choices=[self._choice], usage=self.usage)

    def add_chunk(self, chunk: Any) -> list[Any]:
        self._id = self._id or peek(chunk, "id")
        usage = peek(chunk, "usage")
        if usage is not None:
            self.usage = usage = add_usage(self._earlier_usage, usage)
        chunk = with_fields(chunk, id=self._id, usage=usage)
        choices: Sequence[Any] = peek(chunk, "choices") or ()
        if not choices:  # before a reply: results of content filters; after it: the usage
            if self._has_started:
                self._final_chunks.append(chunk)
            return [] if self._has_started else [chunk]
        self._has_started = True
        choice = choices[0]
        delta: Any = peek(choice, "delta") or {}
        ends = bool(peek(choice, "finish_reason"))
        deltas = self._visible(delta, ends=ends)
        if ends:
            self._final_chunks.append(_chunk_with(chunk, choice, type(delta)(), with_logprobs=not deltas))
            chunk, choice = with_fields(chunk, usage=None), with_fields(choice, finish_reason=None)
        last = len(deltas) - 1
        return [
            _chunk_with(chunk, choice, delta, with_logprobs=at == last, with_usage=at == last)
            for at, delta in enumerate(deltas)
        ]

    def next_round(self) -> None:
        super().next_round()
        self._calls, self._earlier_choice = [], self._choice
        self._gap_fields = set(self._text_lengths)
        self._citation_offset = self._text_lengths["content"] + len(GAP) if "content" in self._text_lengths else 0

    def _final_chunk(self, chunk: Any) -> Any:
        choices = peek(chunk, "choices")
        calls = any(call.index is not None for call in self._calls)
        return with_fields(chunk, choices=[_with_finish_reason(choices[0], calls=calls)]) if choices else chunk

    def _visible(self, delta: Any, *, ends: bool) -> list[Any]:
        """Deltas that the host may see now.

        These are the pieces held back so far, each in its own delta, and the rest of this delta.
        """
        delta_fields = dict(delta)
        held, current = self._visible_pieces(delta_fields.get("tool_calls") or (), ends=ends)
        fields: dict[str, Any] = {"tool_calls": current or None} if delta_fields.get("tool_calls") else {}
        if self._is_later_round and delta_fields.get("role"):
            fields["role"] = None
        for name, text in delta_fields.items():
            if _is_text_field(name, text):
                fields[name] = GAP + text if name in self._gap_fields else text
                self._gap_fields.discard(name)
                self._text_lengths[name] += len(fields[name])
        visible_delta = _move_citations(with_fields(delta, **fields), self._citation_offset)
        held_deltas = [with_fields(type(delta)(), tool_calls=[piece]) for piece in held]
        return [*held_deltas, visible_delta] if any(value for _, value in dict(visible_delta).items()) else held_deltas

    def _visible_pieces(self, pieces: Sequence[Any], *, ends: bool) -> tuple[list[Any], list[Any]]:
        """Pieces of calls that may be shown now: those held back, and those of this delta."""
        held: list[Any] = []
        current: list[Any] = []
        for piece in pieces:
            call = next((call for call in reversed(self._calls) if belongs_to_entry(piece, call.first)), None)
            if call is None:
                call = _PartialCall(piece)
                self._calls.append(call)
            for other in self._calls:
                held += self._settle(other) if other is not call else []
            call.add(piece)
            if call.has_arguments:
                held += self._settle(call)
            if not call.is_settled:
                call.pending.append(piece)
            elif call.index is not None:
                current.append(with_fields(piece, index=call.index))
        for call in self._calls if ends else ():
            held += self._settle(call)
        return held, current

    def _settle(self, call: _PartialCall) -> list[Any]:
        """Decide by its name whether a call is hidden.

        Returns the pieces held back if it is visible.
        """
        if call.is_settled or not call.names:
            return []
        waiting, call.pending = call.pending, []
        call.hidden = not call.custom and self._hidden(call.name)
        if call.hidden:
            return []
        call.index, self._visible_call_count = self._visible_call_count, self._visible_call_count + 1
        return [with_fields(piece, index=call.index) for piece in waiting]

    def _is_hidden(self, item: Any) -> bool:
        """True if a call is hidden. A custom call is always the host's."""
        return bool(peek(item, "function")) and self._hidden(_name(item))


def _chunk_with(chunk: Any, choice: Any, delta: Any, *, with_logprobs: bool, with_usage: bool = True) -> Any:
    """The chunk with this delta.

    If one chunk becomes several, log probabilities and usage are sent once.
    """
    choice = with_fields(choice if with_logprobs else with_fields(choice, logprobs=None), delta=delta)
    return with_fields(chunk if with_usage else with_fields(chunk, usage=None), choices=[choice])


def _name(call: Any) -> str:
    return peek(peek(call, "function") or peek(call, "custom"), "name") or ""


def _is_text_field(name: str, value: Any) -> bool:
    """True if a field is text: content, a refusal, or reasoning."""
    return isinstance(value, str) and bool(value) and name != "role"


def _join_rounds(before: Any, now: Any) -> Any:
    """Join two rounds: texts with a blank line, lists in order, the rest from the later one."""
    if before is None or now is None:
        return before if now is None else now
    fields: dict[str, Any] = {}
    for name, value in dict(before).items():
        more = peek(now, name)
        if not more:
            fields[name] = value
        elif _is_text_field(name, value):
            fields[name] = f"{value}{GAP}{more}"
        elif isinstance(value, list):
            fields[name] = [*value, *more]
    return with_fields(now, **fields)


def _move_citations(message: Any, by: int) -> Any:
    """Shift citations by the length of the text before."""
    moved: list[Any] = []
    for citation in peek(message, "annotations") or ():
        place = peek(citation, "url_citation")
        ends = {end: peek(place, end) for end in ("start_index", "end_index")}
        place = with_fields(place, **{end: at + by for end, at in ends.items() if isinstance(at, int)})
        moved.append(with_fields(citation, url_citation=place))
    return with_fields(message, annotations=moved) if by and moved else message


def _with_finish_reason(choice: Any, *, calls: bool) -> Any:
    """Replace the finish reason "tool_calls" by "stop" if no call is visible to the host."""
    stopped = peek(choice, "finish_reason") == "tool_calls" and not calls
    return with_fields(choice, finish_reason="stop") if stopped else choice
