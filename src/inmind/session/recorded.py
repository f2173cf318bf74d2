"""What recording a reply answers with: what to send back, and which calls are left for the host."""

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
from inmind.history.view import deep_copy


@frozen(kw_only=True)
class HostCall:
    """A call that is the host's to run. Its answer goes into the host's own list, or to `session.add`."""

    id: str
    name: str
    arguments: Any
    """What the arguments say; None where the model wrote no JSON, which `text` then shows."""
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
    """A reply that is in the journal, with what the memory tools among its calls did."""

    text: str
    """What the model said."""
    results: list[Wire]
    """Messages to send back, in the reply's format: answers of memory tools, and to calls of tools that nobody has."""
    host_calls: tuple[HostCall, ...]
    diagnostics: tuple[str, ...] = ()
    """What was dropped without telling the model."""
    complete: bool = True
    """False where the provider has cut it off, by its length or for what it says: memory tools were not carried out."""
    repeated: bool = False
    """It had been recorded before; nothing was done again."""


def record_result(
    events: Sequence[Event], *, complete: bool, diagnostics: tuple[str, ...] = (), repeated: bool = False
) -> Recorded:
    """The answer, out of the events of the commit: the same when it is asked for again."""
    said: list[str] = []
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
            said += [message.text] if message.text else []
    left: list[HostCall] = []
    for call in calls:
        if answered[call.id]:
            answered[call.id] -= 1
        else:
            left.append(HostCall.of(call))
    return Recorded(
        text="\n".join(said),
        results=results,
        host_calls=tuple(left),
        diagnostics=diagnostics,
        complete=complete,
        repeated=repeated,
    )
