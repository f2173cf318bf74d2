"""What a model answered, as one value, whichever provider it came from and however it was handed over.

A stream is first put together into what the provider would have sent at once, and then read as that. So there is
one reading for each provider, and a streamed reply cannot come out differently from a whole one.

Objects of a provider's client are taken by what they offer; no client is imported here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeGuard

from inmind.core.frozen import frozen
from inmind.core.json import is_object, to_plain
from inmind.core.messages import FORMATS, Call, Text, Wire
from inmind.errors import InvalidInput

# The largest whole number that every reader of JSON keeps exact.
_MOST = 2**53


@frozen(kw_only=True)
class ReplyUsage:
    """What the provider counted for one call, in its own tokens."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


@frozen(kw_only=True)
class Reply:
    """A reply as it is kept, and what it cost."""

    format: str
    wires: tuple[Wire, ...]
    """As a host would put them into its own list: one message, or the items of a response."""
    id: str = ""
    """The provider's name for it; empty for a bare message."""
    model: str = ""
    """The model that answered, as the provider calls it."""
    usage: ReplyUsage | None = None
    whole: bool = True
    """False where it was cut short, by the provider or on its way; then a call in it may be half a call."""


MOST_MODEL = 200
"""Characters of a model's name."""


class Pieces(Protocol):
    """Chunks of one provider on their way to a whole reply."""

    def add(self, chunk: object, field: str) -> None:
        """One more. What a client puts between the provider's own chunks is passed over."""
        ...

    @property
    def ended(self) -> bool:
        """Has the provider said that this is all?"""
        ...

    def joined(self, field: str) -> dict[str, Any] | None:
        """What the provider would have sent at once. What has not ended is joined as if the provider had cut it short,
        and without what nobody takes back by halves; None where nothing is left.

        Joining waits until the last chunk: adding every piece to what is there would copy a long text once for each.
        """
        ...


class Replies(Protocol):
    """How one provider answers: what its replies look like, whole and in chunks."""

    name: str

    def is_reply(self, reply: object) -> bool:
        """Has this a mark that only replies of this provider have? A bare message need not have one."""
        ...

    def is_chunk(self, chunk: object) -> bool: ...

    def read(self, reply: object, *, field: str) -> Reply:
        """A whole reply that is plain already."""
        ...

    def pieces(self) -> Pieces: ...


def said(wires: Iterable[Wire], format: str) -> tuple[Text | Call, ...]:
    """What messages come down to: their words, and the calls they make.

    Two copies of one reply may differ in all the rest: one host appends the client's object with its nulls, parsed
    values and annotations, another the bare text, a third leaves out the reasoning. They are the same reply if they
    say the same.
    """
    parts: list[Text | Call] = []
    for wire in wires:
        for part in FORMATS[format].read(wire).parts:
            if isinstance(part, Text) and parts and isinstance(before := parts[-1], Text):
                parts[-1] = Text(before.text + part.text)
            elif isinstance(part, Call) or (isinstance(part, Text) and part.text):
                parts.append(part)
    return tuple(parts)


def usage_of(*, prompt: object, cached: object, completion: object) -> ReplyUsage | None:
    """Numbers that make sense together. Any others are no usage, and no reason to lose the reply they came with."""
    cached = 0 if cached is None else cached
    if not (is_count(prompt) and is_count(cached) and is_count(completion)):
        return None
    return ReplyUsage(prompt_tokens=prompt, cached_tokens=min(cached, prompt), completion_tokens=completion)


def is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MOST


def id_of(reply: dict[str, Any]) -> str:
    id = reply.get("id")
    return id if isinstance(id, str) else ""


def model_of(reply: dict[str, Any]) -> str:
    model = reply.get("model")
    return model[:MOST_MODEL] if isinstance(model, str) and model.isprintable() else ""


def peek(value: object, name: str) -> Any:
    """A field of an object that is not plain yet. The events of clients drag everything so far along with them."""
    return value.get(name) if is_object(value) else getattr(value, name, None)


def kind_of(event: object, *, field: str) -> str:
    kind = peek(event, "type")
    if not isinstance(kind, str):
        raise InvalidInput(field=f"{field}.type", value=kind, expected="the type of an event")
    return kind


def without_nothing(fields: dict[str, Any], *left_out: str) -> dict[str, Any]:
    """Without fields that are null, which say nothing and which some providers do not take back; and without these."""
    return {key: value for key, value in fields.items() if value is not None and key not in left_out}


def refuse_error(reply: object, *, field: str) -> None:
    """Providers send an error in the place of a reply, or in the middle of its chunks."""
    if is_error(reply):
        raise unended(to_plain(peek(reply, "error") or reply, field), field=field)


def is_error(reply: object) -> bool:
    """Items have an error of their own, of a tool that failed; what is an error as a whole has no other type."""
    kind = peek(reply, "type")
    return kind == "error" or (kind is None and bool(peek(reply, "error")))


def unended(value: object, *, field: str) -> InvalidInput:
    return InvalidInput(field=field, value=value, expected="a reply that ended")


def no_reply(value: object, *, field: str) -> InvalidInput:
    return InvalidInput(field=field, value=value, expected="a reply of the model, or an iterable of its chunks")


def in_one(pieces: Iterable[str]) -> str:
    """A text out of its pieces. A server that cuts between the halves of a character is forgiven."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
