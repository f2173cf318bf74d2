"""A prompt as the model reads it, and what would be wrong with it.

All of it is read back from the request. What memory reports about its own prompts is what a replay is there to check:
whether it fits, whether the provider would take it, and whether what must survive is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inmind.apps.replay.truncating_host import Sizes
from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Image, Message, Opaque, Part, Result, Text
from inmind.prompt.report import Prompt


@frozen(kw_only=True)
class Sent:
    text: str
    """Everything in it, from the tools to the meter."""
    tokens: int
    unpaired: int
    """Calls that are not answered where the provider wants the answer, and answers to nothing."""

    @classmethod
    def of(cls, prompt: Prompt, sizes: Sizes) -> Sent:
        spoken, head = FORMATS[prompt.format], (prompt.tools, prompt.system)
        said = [spoken.read(wire) for wire in prompt.messages]
        return cls(
            text="\n".join([*map(to_json, filter(None, head)), *map(words_of, said)]),
            tokens=sum(map(sizes.value, head)) + sum(map(sizes.message, prompt.messages)),
            unpaired=unpaired(said, together=spoken.demands.answers == "together"),
        )


def words_of(message: Message) -> str:
    """All that a message says: words, arguments and answers. The name of a call is between machines."""
    return "\n".join(text for part in message.parts for text in _texts(part))


def unpaired(said: Iterable[Message], *, together: bool) -> int:
    """How many calls and results do not stand together: results follow their calls at once, and where the provider
    wants that, all of them in one message."""
    faults, awaited = 0, set[str]()
    for message in said:
        answered = {result.id for result in message.results}
        faults += len(answered - awaited)
        awaited -= answered
        if together or not answered:
            faults += len(awaited)
            awaited.clear()
        awaited |= {call.id for call in message.calls}
    return faults + len(awaited)


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
