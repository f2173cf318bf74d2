"""The result of `Session.record`: messages to send back, and calls for the host to run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from inmind.core.events.base import Event
from inmind.core.events.session import MessageAdded
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Wire
from inmind.core.text import count_noun
from inmind.history.view import deep_copy


@frozen(kw_only=True)
class HostCall:
    """A call for the host to run.

    Its result goes into the host's message list, or to `session.add`.
    """

    id: str
    name: str
    arguments: Any
    """The parsed arguments; None if the model wrote invalid JSON, see `text`."""
    text: str
    """The arguments as the model wrote them."""

    @classmethod
    def of(cls, call: Call) -> HostCall:
        arguments: Any = None
        if not call.custom:
            with suppress(ValueError, RecursionError):
                arguments = json.loads(call.arguments or "{}")
        return cls(id=call.id, name=call.name, arguments=arguments, text=call.arguments)


@frozen(kw_only=True)
class Recorded:
    """A recorded reply and the results of the memory tools that it called."""

    text: str
    """The text of the reply."""
    results: list[Wire]
    """Messages to send back, in the format of the reply: results of memory tools, and errors for unknown tools."""
    host_calls: tuple[HostCall, ...]
    diagnostics: tuple[str, ...] = ()
    """Errors that were dropped without telling the model."""
    complete: bool = True
    """False if the provider cut the reply off, by length or by a filter; its memory tools were not run."""
    repeated: bool = False
    """The reply had been recorded before; nothing was done again."""

    def __str__(self) -> str:
        calls = [f"{call.name}({call.text})" for call in self.host_calls]
        results = [f"[{count_noun(len(self.results), 'result')} to send back]"] if self.results else []
        return "\n".join(filter(None, [self.text, *calls, *results]))


def record_result(
    events: Sequence[Event], *, complete: bool, diagnostics: tuple[str, ...] = (), repeated: bool = False
) -> Recorded:
    """Build the result from the events of the commit, so that a repeated call returns the same."""
    texts: list[str] = []
    results: list[Wire] = []
    calls: list[Call] = []
    answered: Counter[str] = Counter()
    for event in events:
        if not isinstance(event.payload, MessageAdded):
            continue
        message = FORMATS[event.payload.format].read(event.payload.wire)
        if message.results:
            results.append(deep_copy(event.payload.wire))
            answered.update(result.id for result in message.results)
        else:
            calls += message.calls
            texts += [message.text] if message.text else []
    host_calls: list[HostCall] = []
    for call in calls:
        if answered[call.id]:
            answered[call.id] -= 1
        else:
            host_calls.append(HostCall.of(call))
    return Recorded(
        text="\n".join(texts),
        results=results,
        host_calls=tuple(host_calls),
        diagnostics=diagnostics,
        complete=complete,
        repeated=repeated,
    )
