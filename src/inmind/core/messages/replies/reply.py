"""A model's reply, in one form for all providers.

A stream is first joined into the complete reply and then parsed like one. So there is one parser for each provider, and
a streamed reply cannot be parsed differently.

Client objects are read by their attributes; no client library is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeGuard

from inmind.core.frozen import frozen
from inmind.core.json import is_object, to_plain
from inmind.core.messages import FORMATS, Call, Text, Wire
from inmind.errors import InvalidInput

# The largest whole number that every reader of JSON keeps exact.
_MAX_SAFE_INTEGER = 2**53


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


MAX_MODEL_NAME_CHARS = 200
"""Longer model names are cut."""


class ReplyAssembler(Protocol):
    """Joins the chunks of one provider."""

    def add(self, chunk: object, field: str) -> None:
        """Add a chunk. Events that a client library inserts are skipped."""
        ...

    @property
    def is_complete(self) -> bool:
        """True if the provider has sent the end of the reply."""
        ...

    def assemble(self, field: str) -> dict[str, Any] | None:
        """Return the complete reply as the provider would have sent it; None if it has no content.

        An incomplete one is returned as if the provider had cut it off, without parts that cannot be sent back
        partially. Joining waits for the last chunk: appending each piece would copy a long text every time.
        """
        ...


class ReplyReader(Protocol):
    """Parses the replies of one provider, complete and in chunks."""

    name: str

    def is_reply(self, reply: object) -> bool:
        """True if it has a field that only replies of this provider have.

        A bare message may have none.
        """
        ...

    def is_chunk(self, chunk: object) -> bool: ...

    def read(self, reply: object, *, field: str) -> Reply:
        """Parse a complete reply in plain JSON."""
        ...

    def new_assembler(self) -> ReplyAssembler: ...


def text_and_calls(wires: Iterable[Wire], format: str) -> tuple[Text | Call, ...]:
    """The text and calls of messages, by which two copies of a reply are compared.

    They may differ in everything else: one host appends the client's object with its nulls, parsed values and
    annotations, another the bare text, a third leaves out the reasoning.
    """
    parts: list[Text | Call] = []
    for wire in wires:
        for part in FORMATS[format].read(wire).parts:
            if isinstance(part, Text) and parts and isinstance(before := parts[-1], Text):
                parts[-1] = Text(before.text + part.text)
            elif isinstance(part, Call) or (isinstance(part, Text) and part.text):
                parts.append(part)
    return tuple(parts)


def make_usage(*, prompt: object, cached: object, completion: object) -> ReplyUsage | None:
    """Return the usage; None for inconsistent numbers, which are no reason to lose the reply."""
    cached = 0 if cached is None else cached
    if not (is_count(prompt) and is_count(cached) and is_count(completion)):
        return None
    return ReplyUsage(prompt_tokens=prompt, cached_tokens=min(cached, prompt), completion_tokens=completion)


def is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MAX_SAFE_INTEGER


def reply_id(reply: dict[str, Any]) -> str:
    id = reply.get("id")
    return id if isinstance(id, str) else ""


def reply_model(reply: dict[str, Any]) -> str:
    model = reply.get("model")
    return model[:MAX_MODEL_NAME_CHARS] if isinstance(model, str) and model.isprintable() else ""


def peek(value: object, name: str) -> Any:
    """A field of a dict or object.

    Converting client events completely would be slow: they hold all content.
    """
    return value.get(name) if is_object(value) else getattr(value, name, None)


def event_type(event: object, *, field: str) -> str:
    kind = peek(event, "type")
    if not isinstance(kind, str):
        raise InvalidInput(field=f"{field}.type", value=kind, expected="the type of an event")
    return kind


def without_nulls(fields: dict[str, Any], *left_out: str) -> dict[str, Any]:
    """Drop null fields, which some providers refuse as input, and the named ones."""
    return {key: value for key, value in fields.items() if value is not None and key not in left_out}


def refuse_error(reply: object, *, field: str) -> None:
    """Raise if a provider sent an error instead of a reply or a chunk."""
    if is_error(reply):
        raise incomplete_reply(to_plain(peek(reply, "error") or reply, field), field=field)


def is_error(reply: object) -> bool:
    """True for an error object.

    Items may have an error field too, of a failed tool, but they have a type.
    """
    kind = peek(reply, "type")
    return kind == "error" or (kind is None and bool(peek(reply, "error")))


def incomplete_reply(value: object, *, field: str) -> InvalidInput:
    return InvalidInput(field=field, value=value, expected="a complete reply")


def not_a_reply(value: object, *, field: str) -> InvalidInput:
    return InvalidInput(field=field, value=value, expected="a reply of the model, or an iterable of its chunks")


def join_text(pieces: Iterable[str]) -> str:
    """Join pieces of text. A server may cut between the halves of a surrogate pair."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
