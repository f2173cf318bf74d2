"""The content of a message, independent of the provider.

The journal keeps every message exactly as it arrived (its *wire* form); these classes are only parsed from it. So a
message is sent in its own format byte for byte as it came, and is converted for any other format.
Content that only one provider understands (reasoning, signatures, server tools) is `Opaque`: it is sent back to that
provider unchanged and left out, and reported, for any other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from inmind.core.frozen import frozen

# A user message inserted before an assistant's first one, for a provider that requires the user to start.
OPENING_TEXT = "(The conversation begins with the assistant.)"

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)

Wire = Mapping[str, Any]
"""A message in the JSON form of its provider."""
Role = Literal["system", "developer", "user", "assistant", "tool"]


@frozen
class Text:
    text: str


@frozen
class Image:
    """An image by URL, or by content if `media_type` is set (then `source` is base64)."""

    source: str
    media_type: str = ""

    @classmethod
    def from_url(cls, url: str) -> Image:
        """Parse a URL. A data URL contains the image itself."""
        match = _DATA_URL.fullmatch(url)
        return cls(match[2], match[1]) if match else cls(url)

    @property
    def url(self) -> str:
        return f"data:{self.media_type};base64,{self.source}" if self.media_type else self.source


@frozen
class Call:
    """A tool call of the assistant.

    `arguments` is the JSON text that the model wrote, valid or not.

    A `custom` tool takes free text instead. OpenAI refuses a custom call that is answered, or sent again, as a function
    call, so the two must be kept apart.
    """

    id: str
    name: str
    arguments: str
    custom: bool = False


@frozen
class Result:
    """The result of a tool call."""

    id: str
    parts: tuple[Content, ...]
    error: bool = False
    custom: bool = False

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def parts_with_error_text(self) -> tuple[Content, ...]:
        """The parts for a provider without an error field: a failure is marked in the text."""
        if not self.error:
            return self.parts
        for place, part in enumerate(self.parts):
            if isinstance(part, Text):
                marked = part if part.text.startswith("Error:") else Text(f"Error: {part.text}")
                return (*self.parts[:place], marked, *self.parts[place + 1 :])
        return (Text("Error: (the tool gave no text)"), *self.parts)


@frozen
class Opaque:
    """Content that only `format` understands, with its type there as `kind`."""

    format: str
    kind: str
    body: Wire
    request_id: str = ""
    """Id by which its answer refers to it, if the host has to answer it."""
    answered_id: str = ""
    """Id of the request that it answers."""
    is_compaction: bool = False
    """The provider's own compaction: to its model it replaces everything before it."""


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
    def has_compaction(self) -> bool:
        """True if the provider has compacted the conversation up to this message."""
        return any(isinstance(part, Opaque) and part.is_compaction for part in self.parts)

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def all_text(self) -> str:
        """The text, and that of the results."""
        return "\n".join([self.text, *(result.text for result in self.results)])


@frozen(kw_only=True)
class PromptHead:
    """The part of a prompt before the conversation: the host's system prompt, then ours."""

    system: Sequence[Wire] | str | None
    """As the host passed it: leading system messages, Anthropic's `system`, or the `instructions` of responses."""
    memory: str
    """Guide and anchored memory blocks as one text; empty if there is nothing to add."""
    memory_index: int = 0
    """Number of messages before memory, if it is one of the messages."""
    in_thread: bool = False
    """The provider keeps the messages of this request, so memory is outside of them."""


@frozen(kw_only=True)
class FormatRules:
    """Rules of a provider for a list of messages. Pairing uses them instead of provider names."""

    result_position: Literal["next", "together", "anywhere"]
    """Results follow right after the message with the call; there and all in one message; or anywhere after the call.
    """
    unique_ids: Literal["message", "open", "conversation"]
    """Call ids are unique within one message; among unanswered calls; or in the whole conversation."""
    custom_results: bool = False
    """The result of a custom call has another type than that of a function."""
    user_first: bool = False
    assistant_images: bool = False
    has_instructions: bool = False
    """The system prompt has its own field, in addition to leading system messages."""
    has_threads: bool = False
    """A request can continue messages that the provider holds, with a system prompt and tools as in any other."""
    opaque_prefixes: frozenset[str] = frozenset()
    """Opaque kinds that must be followed by an item of the assistant."""
    text_type: str = "text"
    """Type of a text part in a user message."""
    uses_cache_marks: bool = False
    """The provider caches up to explicit marks, so ours are sent in addition to the host's."""
    compaction_keeps_users: bool = False
    """The provider's own compacted window is the messages of the user and its compaction. It must be sent whole."""
    drops_empty_messages: bool = False
    """An empty message that cannot be sent as it came is left out instead of being written as empty."""


@frozen(kw_only=True)
class ReplyUsage:
    """Token counts of the provider for one call."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@frozen
class ProviderEdit:
    """Content that the provider left out of a prompt, and the tokens that this saved."""

    kind: str
    count: int
    tokens: int


@frozen(kw_only=True)
class Reply:
    """A parsed reply and its usage."""

    format: str
    wires: tuple[Wire, ...]
    """As a host appends them to its list: one message, or the items of a response."""
    id: str = ""
    """The provider's id; empty for a bare message."""
    model: str = ""
    """The provider's name of the model."""
    usage: ReplyUsage | None = None
    is_complete: bool = True
    """False if the provider or a lost connection cut it off; then a call in it may be partial."""
    edits: tuple[ProviderEdit, ...] = ()


@frozen
class ParsedMessage:
    """A message of the journal in its wire form and parsed."""

    format: str
    wire: Wire
    message: Message


@frozen
class OmittedPart:
    """Content that could not be sent. `index`: position of its message in the given list."""

    what: str
    reason: str
    index: int


def without_id(wire: Wire) -> Wire:
    """Return the message without its id; the same object if it has none."""
    return {key: value for key, value in wire.items() if key != "id"} if "id" in wire else wire
