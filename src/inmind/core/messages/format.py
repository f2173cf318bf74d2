"""The base of all message formats: one class with the parts that they share.

A provider's module has the tables of its format and the few methods in which it differs. The guarantees of a format are
tests in tests/contract/test_formats.py: a checked wire message can be read without an error; `write(read(w))` has the
same content in the same format; calls and results keep their ids; arguments are not changed.

Replies are client objects or plain values. They are read by their attributes; no client library is imported here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard, cast

from inmind.core.json import (
    check_json,
    check_text,
    is_count,
    is_list,
    is_object,
    object_at,
    peek,
    to_plain,
    typed_parts_at,
)
from inmind.core.messages.cache_control import TailBlock
from inmind.core.messages.model import (
    Content,
    FormatRules,
    Image,
    Message,
    Opaque,
    Part,
    PromptHead,
    ProviderEdit,
    Reply,
    ReplyUsage,
    Role,
    Text,
    Wire,
    without_id,
)
from inmind.core.text import join_paragraphs
from inmind.errors import InvalidInput

MAX_MODEL_NAME_CHARS = 200
"""Longer model names are cut."""

_SYSTEM_ROLES = ("system", "developer")

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""Speakers by the roles of the providers."""


class Format(ABC):
    """The message format of one provider, and its replies."""

    name: str
    rules: FormatRules
    roles: tuple[str, ...]
    text_roles: frozenset[str]
    """Roles of which a message needs nothing but a text."""
    text_types: frozenset[str] = frozenset({"text"})
    """Types of text parts."""
    tool_example: str
    tool_fields: tuple[str, ...] = ("type",)
    """Fields of a tool, one of which it must have."""
    foreign_tool_field: str
    """A field that only tools of other formats have."""
    expected_wire: str = "a message: an object with a role"
    expected_parts: str = "content parts"
    expected_system: str = "system messages"
    usage_fields: tuple[str, str, str]
    """Fields with the tokens of the prompt, with its details, and with the tokens of the reply."""
    messages_field: str = "messages"
    """Field of a request with the messages."""
    system_field: str = "system"
    """Field of a request with the system prompt, in formats that have one outside of the messages."""

    # -- checking ----------------------------------------------------------------------------------------------

    def check(self, wire: object, *, field: str) -> None:
        """Raise InvalidInput, with the exact field below `field`, unless this is a valid message."""
        if not is_object(wire):
            raise InvalidInput(field=field, value=wire, expected=self.expected_wire)
        role, content = wire.get("role"), wire.get("content")
        if len(wire) == 2 and type(content) is str and type(role) is str and role in self.text_roles:
            check_text(content, f"{field}.content")
            return
        check_json(wire, field)
        self.check_fields(wire, field)

    @abstractmethod
    def check_fields(self, wire: dict[str, Any], field: str) -> None:
        """Raise InvalidInput unless the fields of this object make it a message."""

    def check_role(self, wire: dict[str, Any], field: str) -> str:
        role = wire.get("role")
        if not isinstance(role, str) or role not in self.roles:
            raise InvalidInput(field=f"{field}.role", value=role, expected=f"one of {', '.join(self.roles)}")
        return role

    def parts_at(
        self, wire: dict[str, Any], key: str, field: str, *, optional: bool = False
    ) -> list[tuple[dict[str, Any], str]]:
        """The parts of a content, each with its path; none for a text."""
        content = wire.get(key)
        if isinstance(content, str) or (content is None and optional):
            return []
        if not is_list(content):
            expected = f"a string or a list of {self.expected_parts}"
            raise InvalidInput(field=f"{field}.{key}", value=content, expected=expected)
        return typed_parts_at(wire, key, field)

    def check_tool(self, tool: object, *, field: str) -> None:
        """Raise InvalidInput unless the tool has this provider's format."""
        name = next((tool[key] for key in self.tool_fields if key in tool), None) if is_object(tool) else None
        if not is_object(tool) or not isinstance(name, str) or self.foreign_tool_field in tool:
            raise InvalidInput(field=field, value=tool, expected=self.tool_example)

    def check_system(self, system: object, *, field: str) -> None:
        """Raise InvalidInput, with the exact field, unless this is a valid system prompt.

        None and a string are valid in every format; the items of a list depend on the format.
        """
        if system is None:
            return
        if isinstance(system, str):
            check_text(system, field)
            return
        if not isinstance(system, list | tuple):
            raise InvalidInput(field=field, value=system, expected=f"a string or a list of {self.expected_system}")
        for index, item in enumerate(cast(Sequence[object], system)):
            place = f"{field}[{index}]"
            if not is_object(item):
                raise InvalidInput(field=place, value=item, expected="an object")
            check_json(item, place)
            self.check_system_item(item, place)

    def check_system_item(self, item: dict[str, Any], field: str) -> None:
        role = item.get("role")
        if role not in _SYSTEM_ROLES:
            raise InvalidInput(field=f"{field}.role", value=role, expected="system or developer")
        self.check(item, field=field)

    # -- reading -----------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, wire: Wire) -> Message:
        """Parse a checked message.

        Text, calls, results, images and ids are kept; decoration may be lost.
        """

    def read_content(self, content: Any, prefix: str = "") -> Iterator[Content]:
        """Parse a content: a text, or a list of parts. `prefix`: of the kinds of its opaque parts."""
        if isinstance(content, str):
            if content:
                yield Text(content)
            return
        for part in content or ():
            yield self.read_part(part, prefix)

    def read_part(self, part: Wire, prefix: str = "") -> Content:
        kind = part["type"]
        if kind in self.text_types:
            return Text(part["text"])
        return self.read_image(part) or Opaque(self.name, prefix + kind, part)

    @abstractmethod
    def read_image(self, part: Wire) -> Image | None:
        """Parse a part with an image; None for others."""

    def is_system(self, wire: Wire) -> bool:
        """True if this message belongs to the host's system prompt at the start of the list."""
        return wire.get("role") in _SYSTEM_ROLES

    def system_text(self, system: Sequence[Wire] | str | None) -> str:
        """The text of a system prompt, for use in any other format."""
        if system is None or isinstance(system, str):
            return system or ""
        return join_paragraphs(part.text for wire in system for part in self.read(wire).parts if isinstance(part, Text))

    # -- writing -----------------------------------------------------------------------------------------------

    @abstractmethod
    def write(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Write messages in this format; opaque parts of other formats are skipped."""

    def write_part(self, part: Part, role: Role) -> Iterator[dict[str, Any]]:
        """Write a part of a content; nothing if it does not exist in this format."""
        if isinstance(part, Text):
            yield self.text_part(part.text, role)
        elif isinstance(part, Image):
            if role != "assistant" or self.rules.assistant_images:
                yield self.image_part(part)
        elif self.is_own(part):
            yield dict(part.body)

    def text_part(self, text: str, role: Role = "user") -> dict[str, Any]:  # noqa: ARG002 -- some formats have a type for each role
        return {"type": self.rules.text_type, "text": text}

    @abstractmethod
    def image_part(self, image: Image) -> dict[str, Any]: ...

    def is_own(self, part: Part) -> TypeGuard[Opaque]:
        return isinstance(part, Opaque) and part.format == self.name

    def simplest_content(self, parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
        """The simplest form that reads back the same: an empty text part differs from no text."""
        if not parts:
            return ""
        if len(parts) == 1 and parts[0]["type"] == self.rules.text_type and parts[0]["text"]:
            return str(parts[0]["text"])
        return parts

    # -- sending -----------------------------------------------------------------------------------------------

    def strip_local_fields(self, wire: Wire) -> Wire:
        """Return the message as the provider accepts it.

        Without an `id` that only host and memory use, and without output fields that it does not accept as input.
        """
        return without_id(wire)

    def is_sendable(self, wire: Wire, message: Message) -> bool:  # noqa: ARG002 -- most formats accept what they return
        """True if the wire message can be sent as it came.

        Providers return a few forms that they refuse.
        """
        return True

    @abstractmethod
    def tail_field(self, wire: Wire) -> str | None:
        """The field of this message that takes an extra part; None if there is none."""

    def tail_index(self, wires: Sequence[Wire]) -> int | None:
        """Index of the message that `add_tail` changes; None if there is none."""
        places = range(len(wires) - 1, -1, -1)
        return next((place for place in places if self.tail_field(wires[place]) is not None), None)

    def add_part(self, wires: Sequence[Wire], place: int, text: str) -> list[Wire]:
        """Return the list with `text` as an extra part of the message at `place`.

        The message must be one that `tail_index` returned for the list up to it. The arguments are not changed.
        """
        return self._with_part_at(wires, place, self.text_part(text))

    def add_tail(self, wires: Sequence[Wire], text: str) -> list[Wire] | None:
        """Return the list with `text` as an extra part of one message; None if none takes it.

        That is the last message of the user or a tool in which the provider accepts one. The arguments are not changed.
        """
        place = self.tail_index(wires)
        return None if place is None else self._with_part_at(wires, place, TailBlock(self.text_part(text)))

    def _with_part_at(self, wires: Sequence[Wire], place: int, part: dict[str, Any]) -> list[Wire]:
        return [*wires[:place], self.with_part(wires[place], part), *wires[place + 1 :]]

    def with_part(self, wire: Wire, part: dict[str, Any]) -> Wire:
        key = self.tail_field(wire) or "content"
        content = wire.get(key)
        parts: list[Any] = content if is_list(content) else [self.text_part(content)] if content else []
        return {**wire, key: [*parts, part]}

    def request(self, head: PromptHead, wires: Sequence[Wire], tools: Sequence[Wire] | None) -> dict[str, Any]:
        """Return the keyword arguments for the client: messages, system prompt and tools."""
        request = self.prompt_arguments(head, wires, tools or ())
        return {**request, "tools": list(tools)} if tools else request

    @abstractmethod
    def declare_tool(self, name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """The declaration of a function with these parameters, a JSON schema."""

    @abstractmethod
    def prompt_arguments(self, head: PromptHead, wires: Sequence[Wire], tools: Sequence[Wire]) -> dict[str, Any]:
        """The arguments for the client except tools, which are given to count their cache marks."""

    # -- replies -----------------------------------------------------------------------------------------------

    @abstractmethod
    def is_reply(self, reply: object) -> bool:
        """True if it has a field that only replies of this provider have.

        A bare message may have none.
        """

    @abstractmethod
    def is_chunk(self, chunk: object) -> bool: ...

    @abstractmethod
    def read_reply(self, reply: object, *, field: str) -> Reply:
        """Parse a complete reply in plain JSON."""

    @abstractmethod
    def assembler(self) -> ReplyAssembler:
        """Return an object that joins the chunks of one reply."""

    def make_reply(
        self,
        wires: Sequence[Wire],
        given: Mapping[str, Any],
        *,
        is_complete: bool = True,
        edits: tuple[ProviderEdit, ...] = (),
    ) -> Reply:
        """The reply with these messages, and with id, model and usage of what the provider sent."""
        id, model = given.get("id"), given.get("model")
        return Reply(
            format=self.name,
            wires=tuple(wires),
            id=id if isinstance(id, str) else "",
            model=model[:MAX_MODEL_NAME_CHARS] if isinstance(model, str) and model.isprintable() else "",
            usage=self.read_usage(given.get("usage")),
            is_complete=is_complete,
            edits=edits,
        )

    def read_usage(self, given: Any) -> ReplyUsage | None:
        """The usage; None for inconsistent numbers, which are no reason to lose the reply."""
        prompt, cached, completion = self.token_counts(given)
        cached = 0 if cached is None else cached
        if not (is_count(prompt) and is_count(cached) and is_count(completion)):
            return None
        return ReplyUsage(prompt_tokens=prompt, cached_tokens=min(cached, prompt), completion_tokens=completion)

    def token_counts(self, usage: Any) -> tuple[object, object, object]:
        """Tokens of the prompt, those of it from the cache, and tokens of the reply."""
        prompt, details, completion = self.usage_fields
        return peek(usage, prompt), peek(peek(usage, details), "cached_tokens"), peek(usage, completion)


def check_assistant(given: dict[str, Any], field: str) -> None:
    """Raise InvalidInput if a reply has the role of another speaker."""
    role = given.get("role") or "assistant"
    if role != "assistant":
        raise InvalidInput(field=f"{field}.role", value=role, expected="assistant")


def incomplete_reply(value: object, *, field: str) -> InvalidInput:
    return InvalidInput(field=field, value=value, expected="a complete reply")


def not_a_reply(value: object, *, field: str) -> InvalidInput:
    return InvalidInput(field=field, value=value, expected="a reply of the model, or an iterable of its chunks")


class ReplyAssembler(ABC):
    """Joins the chunks of one provider."""

    is_complete = False
    """True if the provider has sent the end of the reply."""

    @abstractmethod
    def add(self, chunk: object, field: str) -> None:
        """Add a chunk. Events that a client library inserts are skipped."""

    @abstractmethod
    def assemble(self, field: str) -> dict[str, Any] | None:
        """Return the complete reply as the provider would have sent it; None if it has no content.

        An incomplete one is returned as if the provider had cut it off, without parts that cannot be sent back
        partially. Joining waits for the last chunk: appending each piece would copy a long text every time.
        """


def event_type(event: object, field: str) -> str:
    kind = peek(event, "type")
    if not isinstance(kind, str):
        raise InvalidInput(field=f"{field}.type", value=kind, expected="the type of an event")
    return kind


def event_index(event: object, name: str, field: str) -> int:
    index = peek(event, name)
    if not is_count(index):
        raise InvalidInput(field=f"{field}.{name}", value=index, expected="a whole number")
    return index


def event_part(event: object, name: str, field: str) -> dict[str, Any]:
    return object_at({name: to_plain(peek(event, name), f"{field}.{name}")}, name, field)


def join_text(pieces: Iterable[str]) -> str:
    """Join pieces of text. A server may cut between the halves of a surrogate pair."""
    text = "".join(pieces)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
