"""What a message says, whichever provider's words it is said in.

The journal keeps every message exactly as it arrived (its *wire* form); this is only a reading of it. So the
same format always goes out byte for byte as it came in, and another format is written from the reading.
What only one provider understands (reasoning, signatures, server tools) is `Opaque`: it goes back to that
provider untouched and is left out, by name, for any other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from inmind.core.frozen import frozen

# A user message that stands before an assistant's first one, for a provider that wants the user to begin.
OPENING = "(The conversation begins with the assistant.)"

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)

Wire = Mapping[str, Any]
Role = Literal["system", "developer", "user", "assistant", "tool"]


@frozen
class Text:
    text: str


@frozen
class Image:
    """A picture by address, or by content when `media_type` is given (then `source` is base64)."""

    source: str
    media_type: str = ""

    @classmethod
    def at(cls, url: str) -> Image:
        """A data URL holds the picture itself; any other address stays an address."""
        match = _DATA_URL.fullmatch(url)
        return cls(match[2], match[1]) if match else cls(url)

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{self.source}" if self.media_type else self.source


@frozen
class Call:
    """The assistant asks for a tool. Arguments stay the JSON text the model wrote: it may be broken, and is evidence.

    A `custom` tool takes free text instead. OpenAI refuses a custom call that is answered, or sent again, as a
    function call, so the two must stay apart.
    """

    id: str
    name: str
    arguments: str
    custom: bool = False


@frozen
class Result:
    """What a tool answered to one call."""

    id: str
    parts: tuple[Content, ...]
    error: bool = False
    custom: bool = False

    @property
    def spoken(self) -> tuple[Content, ...]:
        """The answer for a provider without an error field: a failure is said in words, or it would read as success."""
        if not self.error:
            return self.parts
        for place, part in enumerate(self.parts):
            if isinstance(part, Text):
                told = part if part.text.startswith("Error:") else Text(f"Error: {part.text}")
                return (*self.parts[:place], told, *self.parts[place + 1 :])
        return (Text("Error: (the tool gave no text)"), *self.parts)


@frozen
class Opaque:
    """Something only `format` understands, under the name it has there."""

    format: str
    kind: str
    body: Wire
    asks: str = ""
    """By which name its answer will call it, where it is the host's to answer."""
    answers: str = ""
    """The name of what it answers."""


Content = Text | Image | Opaque
Part = Content | Call | Result


@frozen
class Message:
    role: Role
    parts: tuple[Part, ...]

    @property
    def calls(self) -> tuple[Call, ...]:
        return tuple(part for part in self.parts if isinstance(part, Call))

    @property
    def results(self) -> tuple[Result, ...]:
        return tuple(part for part in self.parts if isinstance(part, Result))

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))


@frozen(kw_only=True)
class Head:
    """What stands before the conversation: the host's own system prompt, untouched, then ours."""

    system: Sequence[Wire] | str | None
    """As the host gave it: leading system messages, Anthropic's `system`, or the `instructions` of responses."""
    memory: str
    """Guide and anchored memory blocks as one text; empty when there is nothing to add."""


@frozen(kw_only=True)
class Demands:
    """What a provider asks of a list as a whole. Pairing reads this, so that it knows no provider by name."""

    answers: Literal["next", "together", "anywhere"]
    """Results stand right after the call's message; there and all in one message; or anywhere after the call."""
    ids_once: Literal["message", "open", "conversation"]
    """No two calls share an id within one message; while the first is still open; or ever."""
    custom_results: bool = False
    """The result of a custom call is of another kind than a function's."""
    user_begins: bool = False
    assistant_images: bool = False
    instructs: bool = False
    """A system prompt has a place of its own, beside system messages that lead the list."""
    opaque_leads: frozenset[str] = frozenset()
    """Opaque kinds that lead to the assistant's next item, and are refused where it does not follow."""
    words: str = "text"
    """What a part of a user's message is called that says words."""
    marked_by_us: bool = False
    """It caches as far as it is told to, so marks of ours go out beside the host's."""
    silence_left_out: bool = False
    """A message that may not go out as it came and says nothing is left out, instead of being written as empty."""


class Format(Protocol):
    """One provider's way of writing a conversation.

    Its promises, each a test in tests/contract/test_formats.py: a checked wire message reads without raising;
    `write(read(w))` says the same in the same format; calls and results keep their ids; nothing given is mutated.
    """

    name: str
    demands: Demands

    def check(self, wire: object, *, field: str) -> None:
        """Raise InvalidInput, naming the exact field below `field`, unless this is a message of this format."""
        ...

    def is_system(self, wire: Wire) -> bool:
        """Does this message belong to the host's system prompt when it leads the list?"""
        ...

    def check_system(self, system: object, *, field: str) -> None:
        """Raise InvalidInput, naming the exact field, unless a host may give this beside its messages.

        None and a string are a system prompt everywhere; what a list of them is made of is the format's own.
        """
        ...

    def system_text(self, system: Sequence[Wire] | str | None) -> str:
        """The words of a system prompt of this format, which any other can say: its texts with blank lines between."""
        ...

    def read(self, wire: Wire) -> Message:
        """What a checked message says. Decoration may be lost; text, calls, results, images and ids may not."""
        ...

    def check_tool(self, tool: object, *, field: str) -> None:
        """Raise InvalidInput unless a tool is in this provider's shape: another's passes every check but the API's."""
        ...

    def outgoing(self, wire: Wire) -> Wire:
        """The message as the provider takes it: without an `id` where that is a name between host and memory only, and
        without what it gives out and does not take back."""
        ...

    def sendable(self, wire: Wire, message: Message) -> bool:
        """May the wire, which reads like this, go out as it came? A few shapes are given out and not taken back."""
        ...

    def write(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """The conversation in this format; what it cannot say (foreign opaque parts) is skipped."""
        ...

    def carrier(self, wires: Sequence[Wire]) -> int | None:
        """The place of the message that `carry` puts its text on; None when there is none."""
        ...

    def carry(self, wires: Sequence[Wire], text: str) -> list[Wire] | None:
        """The same list with `text` as an extra content part on the last message that may carry one.

        That is the last message from the user or a tool, or the last in which the provider takes one; None when there
        is none. The given messages are not changed: the one that carries is a copy.
        """
        ...

    def request(self, head: Head, wires: Sequence[Wire], tools: Sequence[Wire] | None) -> dict[str, Any]:
        """The keyword arguments for the provider's client: messages or input, system or instructions, tools."""
        ...


def last_place(wires: Sequence[Wire], wanted: Callable[[Wire], bool]) -> int | None:
    return next((place for place in range(len(wires) - 1, -1, -1) if wanted(wires[place])), None)


def without_id(wire: Wire) -> Wire:
    """The very same object, unless it has an id that the provider would refuse."""
    return {key: value for key, value in wire.items() if key != "id"} if "id" in wire else wire
