"""Checks of a prompt: its size, unpaired calls, and its text.

Everything is read from the request. A replay must not rely on memory's own report, which it is meant to check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inmind.apps.replay.truncating_host import TokenSizes
from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Image, Message, Opaque, Part, Result, Text
from inmind.prompt.report import Prompt


@frozen(kw_only=True)
class SentPrompt:
    text: str
    """The complete text, from the tools to the context meter."""
    tokens: int
    unpaired: int
    """Calls without a result at the expected place, and results without a call."""

    @classmethod
    def of(cls, prompt: Prompt, sizes: TokenSizes) -> SentPrompt:
        fmt, head = FORMATS[prompt.format], (prompt.tools, prompt.system)
        messages = [fmt.read(wire) for wire in prompt.messages]
        return cls(
            text="\n".join([*map(to_json, filter(None, head)), *map(message_text, messages)]),
            tokens=sum(map(sizes.value, head)) + sum(map(sizes.message, prompt.messages)),
            unpaired=count_unpaired(messages, together=fmt.rules.result_position == "together"),
        )


def message_text(message: Message) -> str:
    """Text, arguments and results of a message, without the names of calls."""
    return "\n".join(text for part in message.parts for text in _texts(part))


def count_unpaired(messages: Iterable[Message], *, together: bool) -> int:
    """Number of calls and results that are not adjacent.

    Results must follow their calls directly; with `together`, all of them in one message.
    """
    faults, pending = 0, set[str]()
    for message in messages:
        answered = {result.id for result in message.results}
        faults += len(answered - pending)
        pending -= answered
        if together or not answered:
            faults += len(pending)
            pending.clear()
        pending |= {call.id for call in message.calls}
    return faults + len(pending)


def _texts(part: Part) -> Iterator[str]:
    match part:
        case Text(text=text):
            yield text
        case Call(arguments=arguments):
            yield arguments
        case Result(parts=parts):
            for inner in parts:
                yield from _texts(inner)
        case Opaque(body=body):
            yield to_json(body)
        case Image():
            pass
