"""Visible replies of chat completions.

A chunk refers to a call by its index: first its name, which a few servers send in pieces, then pieces of its arguments.
Text has no index, so texts of several rounds are joined with a blank line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inmind.core.messages.format import peek
from inmind.core.messages.replies import belongs_to_entry, is_repeated
from inmind.integrations.wrap.visible import IsHidden, VisibleReply, add_usage, with_fields

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
            call = self._call_of(piece)
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

    def _call_of(self, delta: Any) -> _PartialCall:
        call = next((call for call in reversed(self._calls) if belongs_to_entry(delta, call.first)), None)
        if call is None:
            call = _PartialCall(delta)
            self._calls.append(call)
        return call


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
    citations: Sequence[Any] = peek(message, "annotations") or ()
    return (
        with_fields(message, annotations=[_move_citation(citation, by) for citation in citations])
        if by and citations
        else message
    )


def _move_citation(citation: Any, by: int) -> Any:
    place = peek(citation, "url_citation")
    ends = {end: peek(place, end) for end in ("start_index", "end_index")}
    moved = with_fields(place, **{end: at + by for end, at in ends.items() if isinstance(at, int)})
    return with_fields(citation, url_citation=moved)


def _with_finish_reason(choice: Any, *, calls: bool) -> Any:
    """Replace the finish reason "tool_calls" by "stop" if no call is visible to the host."""
    stopped = peek(choice, "finish_reason") == "tool_calls" and not calls
    return with_fields(choice, finish_reason="stop") if stopped else choice
