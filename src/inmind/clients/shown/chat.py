"""Replies of chat completions, as a host is shown them.

A chunk tells of a call by its index: first its name, then pieces of its arguments. Text has no such thing, so the
words of several rounds become one text, with a blank line where a call of memory stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from inmind.clients.shown.showing import Hidden, changed
from inmind.prompt.replies.reply import peek

GAP = "\n\n"


@dataclass(slots=True)
class _Call:
    """A call as far as it has come. Until its name has, nobody knows whose it is, and what came of it waits."""

    index: int | None
    id: str | None
    hidden: bool = False
    place: int | None = None
    waiting: list[Any] = field(default_factory=list[Any])


class ChatShowing:
    def __init__(self, hidden: Hidden) -> None:
        self._hidden = hidden
        self._id: Any = None
        self._calls: list[_Call] = []
        self._shown = 0
        self._begun, self._later = False, False
        self._spoke, self._gap = False, ""
        self._ending: list[Any] = []

    def is_failure(self, said: Any) -> bool:  # noqa: ARG002 -- here a failure is an error of the client's
        return False

    def whole(self, reply: Any) -> Any:
        [choice] = peek(reply, "choices")
        message = peek(choice, "message")
        calls: Sequence[Any] = peek(message, "tool_calls") or ()
        kept = [call for call in calls if not self._is_hidden(call)]
        if len(kept) == len(calls):
            return reply
        message = changed(message, tool_calls=kept or None)
        return changed(reply, choices=[_ended(changed(choice, message=message), calls=bool(kept))])

    def take(self, chunk: Any) -> list[Any]:
        self._id = self._id or peek(chunk, "id")
        chunk = changed(chunk, id=self._id)
        choices: Sequence[Any] = peek(chunk, "choices") or ()
        if not choices:  # in front of a reply some servers say what their filters found; behind it stands the usage
            if self._begun:
                self._ending.append(chunk)
            return [] if self._begun else [chunk]
        self._begun = True
        choice = choices[0]
        delta: Any = peek(choice, "delta") or {}
        shown = self._visible(delta)
        if peek(choice, "finish_reason"):
            self._ending.append(changed(chunk, choices=[changed(choice, delta=type(delta)())]))
            choice = changed(choice, finish_reason=None)
        return [] if shown is None else [changed(chunk, choices=[changed(choice, delta=shown)])]

    def next_round(self) -> None:
        self._calls, self._ending, self._later = [], [], True
        self._gap = GAP if self._spoke else ""

    def end(self) -> list[Any]:
        calls = any(call.place is not None for call in self._calls)
        return [_with_choice(chunk, calls=calls) for chunk in self._ending]

    def _visible(self, delta: Any) -> Any:
        """A delta as the host may see it; None where nothing is left of it."""
        said = dict(delta)
        fields: dict[str, Any] = {}
        if said.get("tool_calls"):
            fields["tool_calls"] = self._passing(said["tool_calls"]) or None
        if self._later and said.get("role"):
            fields["role"] = None
        if said.get("content"):
            fields["content"] = self._gap + said["content"]
            self._gap, self._spoke = "", True
        return changed(delta, **fields) if any({**said, **fields}.values()) else None

    def _passing(self, deltas: Sequence[Any]) -> list[Any]:
        shown: list[Any] = []
        for delta in deltas:
            call = self._call_of(delta)
            call.waiting.append(delta)
            if _name(delta) and call.place is None and not call.hidden:
                call.hidden = self._is_hidden(delta)
                if not call.hidden:
                    call.place, self._shown = self._shown, self._shown + 1
            if call.place is not None:
                shown += [changed(piece, index=call.place) for piece in call.waiting]
            if call.place is not None or call.hidden:
                call.waiting = []
        return shown

    def _is_hidden(self, call: Any) -> bool:
        """A custom call has no function, and is always the host's."""
        return bool(peek(call, "function")) and self._hidden(_name(call))

    def _call_of(self, delta: Any) -> _Call:
        """The call that a piece belongs to. A few servers give all calls the same index, or none."""
        index, id = peek(delta, "index"), peek(delta, "id")
        for call in reversed(self._calls):
            if call.index == index and (not id or not call.id or id == call.id):
                return call
        self._calls.append(_Call(index, id))
        return self._calls[-1]


def _name(call: Any) -> str:
    return peek(peek(call, "function") or peek(call, "custom"), "name") or ""


def _with_choice(chunk: Any, *, calls: bool) -> Any:
    choices = peek(chunk, "choices")
    return changed(chunk, choices=[_ended(choices[0], calls=calls)]) if choices else chunk


def _ended(choice: Any, *, calls: bool) -> Any:
    """A choice that did not end for a tool, as far as the host can see, did simply end."""
    stopped = peek(choice, "finish_reason") == "tool_calls" and not calls
    return changed(choice, finish_reason="stop") if stopped else choice
