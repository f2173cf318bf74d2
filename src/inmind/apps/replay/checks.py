"""Checks of a prompt: its size, unpaired calls, its text, and the ids in it.

Everything is read from the request and the recording. A replay must not rely on memory's own report, which it is meant
to check. A use of an id is judged by locations only: whether it appeared before, who used it first, and whether it is
in the part that is still sent. Each id is searched once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from inmind.apps.replay.baseline import TokenSizes
from inmind.apps.replay.files import Recording
from inmind.core.encoding import to_json
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Image, Message, Opaque, Part, Result, Text
from inmind.core.text import id_positions
from inmind.prompt.report import Prompt

HEAD = -1
"""Location of the system prompt and the tools, before the conversation."""

_SEPARATOR = "\x00"


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
            text="\n".join([*map(to_json, filter(None, head)), *map(_message_text, messages)]),
            tokens=sum(map(sizes.value, head)) + sum(map(sizes.message, prompt.messages)),
            unpaired=count_unpaired(messages, together=fmt.rules.result_position == "together"),
        )


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


class IdLocations:
    def __init__(self, recording: Recording) -> None:
        fmt = FORMATS[recording.format]
        messages = [fmt.read(wire) for wire in recording.messages]
        texts = [f"{to_json(recording.system)}\n{to_json(recording.tools)}", *map(_message_text, messages)]
        self._text = _SEPARATOR.join(texts)
        self._starts = [0, *accumulate(len(text) + len(_SEPARATOR) for text in texts)]
        self._roles = [message.role for message in messages]
        self._by_id: dict[str, tuple[int, ...]] = {}

    def locations(self, id: str) -> tuple[int, ...]:
        """Indexes of the messages that contain it, in order; `HEAD` comes first."""
        if id not in self._by_id:
            texts = {bisect_right(self._starts, position) - 1 for position in id_positions(id, self._text)}
            self._by_id[id] = tuple(text + HEAD for text in sorted(texts))
        return self._by_id[id]

    def appeared_before(self, id: str, before: int) -> bool:
        """True if it appeared before this message."""
        return any(place < before for place in self.locations(id)[:1])

    def is_sent(self, id: str, start: int, stop: int) -> bool:
        """True if a request with the messages from `start` to `stop` contains it."""
        return any(place == HEAD or start <= place < stop for place in self.locations(id))

    def is_first_from_user(self, id: str) -> bool:
        first = next(iter(self.locations(id)), HEAD)
        return first != HEAD and self._roles[first] == "user"


def _message_text(message: Message) -> str:
    """Text, arguments and results of a message, without the names of calls."""
    return "\n".join(text for part in message.parts for text in _texts(part))


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
