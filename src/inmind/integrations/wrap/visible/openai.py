"""Replies of chat completions, as a host is shown them.

A chunk tells of a call by its index: first its name, which a few servers say in pieces, then pieces of its arguments.
Text has no such thing, so the words of several rounds become one text, with a blank line where a call of memory stood.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inmind.core.messages.replies.openai import belongs, is_said_again
from inmind.core.messages.replies.reply import peek
from inmind.integrations.wrap.visible.base import Hidden, changed, summed

GAP = "\n\n"


@dataclass(slots=True)
class _Call:
    """A call as far as it has come. Until its name has, nobody knows whose it is, and what came of it waits.

    The name is there when arguments follow it, another call begins, or the reply ends.
    """

    first: Any
    custom: bool = False
    argued: bool = False
    names: list[str] = field(default_factory=list[str])
    hidden: bool = False
    place: int | None = None
    waiting: list[Any] = field(default_factory=list[Any])

    @property
    def is_settled(self) -> bool:
        return self.hidden or self.place is not None

    @property
    def name(self) -> str:
        return self.names[-1] if is_said_again(self.names) else "".join(self.names)

    def add(self, piece: Any) -> None:
        function, custom = peek(piece, "function"), peek(piece, "custom")
        self.custom = self.custom or bool(custom)
        self.argued = self.argued or bool(peek(function, "arguments") or peek(custom, "input"))
        self.names += filter(None, [_name(piece)])


class ChatShowing:
    def __init__(self, hidden: Hidden, paid: Any = None) -> None:
        self._hidden = hidden
        self.paid = self._earlier = paid
        self._id: Any = None
        self._before: Any = None
        self._choice: Any = None
        self._calls: list[_Call] = []
        self._shown = 0
        self._begun, self._later = False, False
        self._spoken: Counter[str] = Counter()
        self._gaps: set[str] = set()
        self._moved = 0
        self._ending: list[Any] = []

    def is_failure(self, said: Any) -> bool:  # noqa: ARG002 -- here a failure is an error of the client's
        return False

    def whole(self, reply: Any) -> Any:
        self._id = self._id or peek(reply, "id")
        self.paid = summed(self._earlier, peek(reply, "usage"))
        [choice] = peek(reply, "choices")
        message = peek(choice, "message")
        calls: Sequence[Any] = peek(message, "tool_calls") or ()
        kept = [call for call in calls if not self._is_hidden(call)]
        if len(kept) < len(calls):
            message = changed(message, tool_calls=kept or None)
        said, logprobs = peek(self._before, "message"), peek(self._before, "logprobs")
        words: str = peek(said, "content") or ""
        message = _joined(said, _moved(message, len(words + GAP) if words else 0))
        choice = changed(choice, message=message, logprobs=_joined(logprobs, peek(choice, "logprobs")))
        self._choice = _ended(choice, calls=bool(kept))
        return changed(reply, id=self._id, choices=[self._choice], usage=self.paid)

    def take(self, chunk: Any) -> list[Any]:
        self._id = self._id or peek(chunk, "id")
        usage = peek(chunk, "usage")
        if usage is not None:
            self.paid = usage = summed(self._earlier, usage)
        chunk = changed(chunk, id=self._id, usage=usage)
        choices: Sequence[Any] = peek(chunk, "choices") or ()
        if not choices:  # in front of a reply some servers say what their filters found; behind it stands the usage
            if self._begun:
                self._ending.append(chunk)
            return [] if self._begun else [chunk]
        self._begun = True
        choice = choices[0]
        delta: Any = peek(choice, "delta") or {}
        ends = bool(peek(choice, "finish_reason"))
        shown = self._visible(delta, ends=ends)
        if ends:
            self._ending.append(_told(chunk, choice, type(delta)(), likely=not shown))
            chunk, choice = changed(chunk, usage=None), changed(choice, finish_reason=None)
        last = len(shown) - 1
        return [_told(chunk, choice, delta, likely=at == last, paid=at == last) for at, delta in enumerate(shown)]

    def next_round(self) -> None:
        self._earlier, self._before = self.paid, self._choice
        self._calls, self._ending, self._later = [], [], True
        self._gaps = set(self._spoken)
        self._moved = self._spoken["content"] + len(GAP) if "content" in self._spoken else 0

    def end(self) -> list[Any]:
        calls = any(call.place is not None for call in self._calls)
        return [_with_choice(chunk, calls=calls) for chunk in self._ending]

    def _visible(self, delta: Any, *, ends: bool) -> list[Any]:
        """What the host may see with a delta: what has waited until now, each as it came, and what is left of this."""
        said = dict(delta)
        late, now = self._passing(said.get("tool_calls") or (), ends=ends)
        fields: dict[str, Any] = {"tool_calls": now or None} if said.get("tool_calls") else {}
        if self._later and said.get("role"):
            fields["role"] = None
        for name, text in said.items():
            if _is_words(name, text):
                fields[name] = GAP + text if name in self._gaps else text
                self._gaps.discard(name)
                self._spoken[name] += len(fields[name])
        seen = _moved(changed(delta, **fields), self._moved)
        waited = [changed(type(delta)(), tool_calls=[piece]) for piece in late]
        return [*waited, seen] if any(value for _, value in dict(seen).items()) else waited

    def _passing(self, pieces: Sequence[Any], *, ends: bool) -> tuple[list[Any], list[Any]]:
        """Pieces of calls that may be shown now: those that have waited, and those of this delta."""
        late: list[Any] = []
        now: list[Any] = []
        for piece in pieces:
            call = self._call_of(piece)
            for other in self._calls:
                late += self._settled(other) if other is not call else []
            call.add(piece)
            if call.argued:
                late += self._settled(call)
            if not call.is_settled:
                call.waiting.append(piece)
            elif call.place is not None:
                now.append(changed(piece, index=call.place))
        for call in self._calls if ends else ():
            late += self._settled(call)
        return late, now

    def _settled(self, call: _Call) -> list[Any]:
        """Find out whose a call is, by the name it has by now; and what has waited for that, if it is the host's."""
        if call.is_settled or not call.names:
            return []
        waiting, call.waiting = call.waiting, []
        call.hidden = not call.custom and self._hidden(call.name)
        if call.hidden:
            return []
        call.place, self._shown = self._shown, self._shown + 1
        return [changed(piece, index=call.place) for piece in waiting]

    def _is_hidden(self, call: Any) -> bool:
        """A custom call has no function, and is always the host's."""
        return bool(peek(call, "function")) and self._hidden(_name(call))

    def _call_of(self, delta: Any) -> _Call:
        call = next((call for call in reversed(self._calls) if belongs(delta, call.first)), None)
        if call is None:
            call = _Call(delta)
            self._calls.append(call)
        return call


def _told(chunk: Any, choice: Any, delta: Any, *, likely: bool, paid: bool = True) -> Any:
    """The chunk with this of what it said. Where one becomes several, each thing is told once: how likely its words
    were in the last that tells of them, and what was paid in the last of all."""
    choice = changed(choice if likely else changed(choice, logprobs=None), delta=delta)
    return changed(chunk if paid else changed(chunk, usage=None), choices=[choice])


def _name(call: Any) -> str:
    return peek(peek(call, "function") or peek(call, "custom"), "name") or ""


def _is_words(name: str, said: Any) -> bool:
    """Content, a refusal, or the reasoning that a few servers tell of."""
    return isinstance(said, str) and bool(said) and name != "role"


def _joined(before: Any, now: Any) -> Any:
    """What two rounds say as one: texts a blank line apart, lists one behind the other, of the rest what came last."""
    if before is None or now is None:
        return before if now is None else now
    fields: dict[str, Any] = {}
    for name, said in dict(before).items():
        more = peek(now, name)
        if not more:
            fields[name] = said
        elif _is_words(name, said):
            fields[name] = f"{said}{GAP}{more}"
        elif isinstance(said, list):
            fields[name] = [*said, *more]
    return changed(now, **fields)


def _moved(said: Any, by: int) -> Any:
    """With its citations at the places where its words now stand."""
    cited: Sequence[Any] = peek(said, "annotations") or ()
    return changed(said, annotations=[_moved_citation(one, by) for one in cited]) if by and cited else said


def _moved_citation(cited: Any, by: int) -> Any:
    place = peek(cited, "url_citation")
    ends = {end: peek(place, end) for end in ("start_index", "end_index")}
    moved = changed(place, **{end: at + by for end, at in ends.items() if isinstance(at, int)})
    return changed(cited, url_citation=moved)


def _with_choice(chunk: Any, *, calls: bool) -> Any:
    choices = peek(chunk, "choices")
    return changed(chunk, choices=[_ended(choices[0], calls=calls)]) if choices else chunk


def _ended(choice: Any, *, calls: bool) -> Any:
    """A choice that did not end for a tool, as far as the host can see, did simply end."""
    stopped = peek(choice, "finish_reason") == "tool_calls" and not calls
    return changed(choice, finish_reason="stop") if stopped else choice
