"""Messages of OpenAI's chat completions, and of compatible servers.

An assistant message holds one whole answer, with its calls in a separate field; every result is a separate message.
Fields outside the content (reasoning, a refusal, audio) are `Opaque` with a body {field: value}. Opaque content parts
have a `type`, which distinguishes the two.

The older function calls (`function_call`, answered by the role `function`) have no ids: the name is the id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeGuard

from inmind.core.json import is_list, is_object, object_at, objects_at, peek, text_at, to_plain, without_nulls
from inmind.core.messages.format import (
    ROLES,
    Format,
    ReplyAssembler,
    check_assistant,
    incomplete_reply,
    join_text,
    not_a_reply,
)
from inmind.core.messages.model import (
    Call,
    FormatRules,
    Image,
    Message,
    Opaque,
    Part,
    PromptHead,
    Reply,
    Result,
    Role,
    Text,
    Wire,
    without_id,
)
from inmind.errors import InvalidInput

ONE_CHOICE = "one choice: of several, pass the message that was chosen"

_CALL_ARGUMENTS = {"function": "arguments", "custom": "input"}
_RESULT_IDS = {"tool": "tool_call_id", "function": "name"}
_INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")
_OPAQUE_FIELDS = ("reasoning_content", "reasoning", "reasoning_details", "refusal", "audio")
_REPLY_FIELDS = (*_INSTEAD_OF_CONTENT, "annotations", "reasoning_content", "reasoning", "reasoning_details")
_INCOMPLETE_REASONS = ("length", "content_filter")


class OpenAIChat(Format):
    """The format of OpenAI's chat completions."""

    name = "openai"
    rules = FormatRules(result_position="next", unique_ids="message", assistant_images=True, drops_empty_messages=True)
    roles = ("system", "developer", "user", "assistant", "tool", "function")
    text_roles = frozenset({"system", "developer", "user", "assistant"})
    tool_example = 'a chat tool: {"type": "function", "function": {…}}'
    foreign_tool_field = "input_schema"
    usage_fields = ("prompt_tokens", "prompt_tokens_details", "completion_tokens")

    def check_fields(self, wire: dict[str, Any], field: str) -> None:
        role = self.check_role(wire, field)
        for part, place in self.parts_at(wire, "content", field, optional=role in {"assistant", "function"}):
            if part["type"] == "image_url" and not isinstance(part.get("image_url"), str):
                text_at(object_at(part, "image_url", place), "url", f"{place}.image_url")
        if role == "assistant":
            _check_calls(wire, field)
        elif role in _RESULT_IDS:
            text_at(wire, _RESULT_IDS[role], field)

    def strip_local_fields(self, wire: Wire) -> Wire:
        sent = without_id(wire)
        audio = _audio(sent)
        return sent if audio is None or audio == sent["audio"] else {**sent, "audio": audio}

    def read(self, wire: Wire) -> Message:
        role, content = wire["role"], wire.get("content")
        if role == "user" and type(content) is str:
            return Message("user", (Text(content),) if content else ())
        parts = tuple(self.read_content(content))
        if role == "assistant":
            return Message("assistant", (*self._read_fields(wire), *parts, *_read_calls(wire)))
        if role in _RESULT_IDS:
            return Message("tool", (Result(wire[_RESULT_IDS[role]], parts),))
        return Message(ROLES[role], parts)

    def read_image(self, part: Wire) -> Image | None:
        if part["type"] != "image_url":
            return None
        image = part["image_url"]
        return Image.from_url(image if isinstance(image, str) else image["url"])

    def _read_fields(self, wire: Wire) -> Iterator[Opaque]:
        for key in _OPAQUE_FIELDS:
            if wire.get(key) is not None:
                audio_reference = _audio(wire) if key == "audio" else None
                yield Opaque(self.name, key, {key: wire[key] if audio_reference is None else audio_reference})

    def is_sendable(self, wire: Wire, message: Message) -> bool:
        """False for empty lists of calls and answers without content, which OpenAI refuses.

        Servers return both.
        """
        if message.role != "assistant":
            return True
        if wire.get("tool_calls") == []:
            return False
        return wire.get("content") not in (None, []) or any(map(wire.get, _INSTEAD_OF_CONTENT))

    def write(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        wires: list[dict[str, Any]] = []
        # Results of one turn must be adjacent, so their images are written after the last one.
        pending_images: list[dict[str, Any]] = []
        for message in _join_assistant_messages(messages):
            wires += [self._write_result(result) for result in message.results]
            images = [part for result in message.results for part in self._write_images(result)]
            rest = tuple(part for part in message.parts if not isinstance(part, Result))
            wire = self._write_message(message.role, rest) if rest or not message.parts else None
            if wire is None:
                pending_images += images
                continue
            wires += _image_message(pending_images + images)
            pending_images = []
            wires.append(wire)
        return wires + _image_message(pending_images)

    def _write_message(self, role: Role, parts: Sequence[Part]) -> dict[str, Any] | None:
        """Write one message; None if no part of it exists in this format."""
        fields = [part.body for part in parts if _is_field(part) and self.is_own(part)]
        content = [written for part in parts if not _is_field(part) for written in self.write_part(part, role)]
        calls = [_write_call(part) for part in parts if isinstance(part, Call)]
        if parts and not (content or fields or calls):
            return None
        wire: dict[str, Any] = {"role": "user" if role == "tool" else role, "content": self.simplest_content(content)}
        if role != "assistant":
            return wire
        for body in fields:
            wire.update(body)
        if calls:
            wire["tool_calls"] = calls
        if not content and any(map(wire.get, _INSTEAD_OF_CONTENT)):
            wire["content"] = None
        return wire

    def _write_result(self, result: Result) -> dict[str, Any]:
        parts = (part for part in result.parts_with_error_text if not isinstance(part, Image))
        content = [written for part in parts for written in self.write_part(part, "tool")]
        return {"role": "tool", "tool_call_id": result.id, "content": self.simplest_content(content)}

    def _write_images(self, result: Result) -> list[dict[str, Any]]:
        """A tool message takes text only: its images follow in a user message that names the call."""
        images = [self.image_part(part) for part in result.parts if isinstance(part, Image)]
        return [self.text_part(f"Images in the result of {result.id}:"), *images] if images else []

    def image_part(self, image: Image) -> dict[str, Any]:
        return {"type": "image_url", "image_url": {"url": image.url}}

    def tail_field(self, wire: Wire) -> str | None:
        return "content" if wire["role"] == "user" or wire["role"] in _RESULT_IDS else None

    def with_part(self, wire: Wire, part: dict[str, Any]) -> Wire:
        content = wire.get("content")
        if wire["role"] == "function" and not is_list(content):  # it takes a text only
            return {**wire, "content": f"{content}\n\n{part['text']}" if content else part["text"]}
        return super().with_part(wire, part)

    def declare_tool(self, name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}

    def prompt_arguments(self, head: PromptHead, wires: Sequence[Wire], tools: Sequence[Wire]) -> dict[str, Any]:  # noqa: ARG002
        system: list[Wire] = []
        if isinstance(head.system, str):
            system = [{"role": "system", "content": head.system}]
        elif head.system:
            system = list(head.system)
        if head.memory:
            role = "developer" if system and system[-1].get("role") == "developer" else "system"
            system = [*system, {"role": role, "content": head.memory}]
        return {"messages": [*system, *wires]}

    def is_reply(self, reply: object) -> bool:
        return is_object(reply) and any(key in reply for key in ("choices", *_REPLY_FIELDS))

    def is_chunk(self, chunk: object) -> bool:
        return peek(chunk, "choices") is not None or peek(chunk, "type") == "chunk"

    def read_reply(self, reply: object, *, field: str) -> Reply:
        if not is_object(reply):
            raise not_a_reply(reply, field=field)
        if "choices" not in reply:
            return Reply(format=self.name, wires=(self._reply_message(reply, field),))
        choices = objects_at(reply, "choices", field)
        if len(choices) != 1:
            raise InvalidInput(field=f"{field}.choices", value=f"{len(choices)} choices", expected=ONE_CHOICE)
        choice, place = choices[0]
        reason = choice.get("finish_reason", "stop")
        if not reason or reason == "error":
            raise incomplete_reply(choice.get("error", reason), field=f"{place}.finish_reason")
        message = self._reply_message(object_at(choice, "message", place), f"{place}.message")
        return self.make_reply([message], reply, is_complete=reason not in _INCOMPLETE_REASONS)

    def assembler(self) -> ChatAssembler:
        return ChatAssembler()

    def _reply_message(self, given: dict[str, Any], field: str) -> dict[str, Any]:
        """The message as it can be sent back.

        Empty fields outside the content and values parsed by the client are left out. An empty text stays: some servers
        require empty reasoning.
        """
        if not any(key in given for key in ("role", "content", *_REPLY_FIELDS)):
            raise not_a_reply(given, field=field)
        check_assistant(given, field)
        wire: dict[str, Any] = {"role": "assistant", "content": given.get("content")}
        extra_fields = without_nulls(given, *wire, "parsed")
        wire.update((key, value) for key, value in extra_fields.items() if value != [])
        if is_list(wire.get("tool_calls")):
            wire["tool_calls"] = [_reply_call(call) for call in wire["tool_calls"]]
        self.check(wire, field=field)
        return wire


def _check_calls(wire: dict[str, Any], field: str) -> None:
    if wire.get("tool_calls") is not None:
        for call, place in objects_at(wire, "tool_calls", field):
            text_at(call, "id", place)
            kind = call.get("type", "function")
            if kind not in tuple(_CALL_ARGUMENTS):
                raise InvalidInput(field=f"{place}.type", value=kind, expected="function or custom")
            _check_call(call, kind, _CALL_ARGUMENTS[kind], place)
    if wire.get("function_call") is not None:
        _check_call(wire, "function_call", "arguments", field)


def _check_call(wire: dict[str, Any], key: str, arguments: str, field: str) -> None:
    called = object_at(wire, key, field)
    text_at(called, "name", f"{field}.{key}")
    text_at(called, arguments, f"{field}.{key}")


def _audio(wire: Wire) -> Wire | None:
    """The assistant's audio as it is sent back: only its id."""
    audio = wire.get("audio")
    return {"id": audio["id"]} if is_object(audio) and audio.get("id") else None


def _read_calls(wire: Wire) -> Iterator[Call]:
    for call in wire.get("tool_calls") or ():
        kind = "custom" if call.get("type") == "custom" else "function"
        yield Call(call["id"], call[kind]["name"], call[kind][_CALL_ARGUMENTS[kind]], custom=kind == "custom")
    legacy = wire.get("function_call")
    if legacy is not None:
        yield Call(legacy["name"], legacy["name"], legacy["arguments"])


def _write_call(call: Call) -> dict[str, Any]:
    kind = "custom" if call.custom else "function"
    return {"id": call.id, "type": kind, kind: {"name": call.name, _CALL_ARGUMENTS[kind]: call.arguments}}


def _reply_call(given: Any) -> Any:
    """A call without its index in the stream."""
    if not is_object(given):
        return given
    call = without_nulls(given, "index")
    if is_object(call.get("function")):
        call["function"] = without_nulls(call["function"], "parsed_arguments")
    return call


def _join_assistant_messages(messages: Sequence[Message]) -> Iterator[Message]:
    """Join adjacent assistant messages, unless both have the same field outside the content."""
    joined: Message | None = None
    for message in messages:
        if joined and message.role == "assistant" and not _fields(joined) & _fields(message):
            joined = Message("assistant", joined.parts + message.parts)
            continue
        if joined:
            yield joined
        joined = message if message.role == "assistant" else None
        if joined is None:
            yield message
    if joined:
        yield joined


def _fields(message: Message) -> set[str]:
    return {part.kind for part in message.parts if _is_field(part)}


def _is_field(part: Part) -> TypeGuard[Opaque]:
    """True for a field outside the content."""
    return isinstance(part, Opaque) and "type" not in part.body


def _image_message(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": parts}] if parts else []


class ChatAssembler(ReplyAssembler):
    def __init__(self) -> None:
        self._id: Any = None
        self._model: Any = None
        self._usage: Any = None
        self._deltas: list[dict[str, Any]] = []
        self._reason: Any = None

    def add(self, chunk: object, field: str) -> None:
        if peek(chunk, "choices") is None and peek(chunk, "type") is not None:
            # An event of the client library: it wraps a chunk, or repeats the content of one.
            chunk = peek(chunk, "chunk")
            if chunk is None:
                return
        given = to_plain(chunk, field)
        if not is_object(given):
            raise InvalidInput(field=field, value=given, expected="a chunk: an object")
        self._id = self._id or given.get("id")
        self._model = given.get("model") or self._model
        self._usage = given.get("usage") or self._usage
        for choice, place in objects_at({"choices": given.get("choices") or []}, "choices", field):
            if (choice.get("index") or 0) != 0:
                raise InvalidInput(field=f"{place}.index", value=choice["index"], expected=ONE_CHOICE)
            if choice.get("delta") is not None:
                self._deltas.append(object_at(choice, "delta", place))
            self._reason = choice.get("finish_reason") or self._reason
        self.is_complete = self._reason is not None

    def assemble(self, field: str) -> dict[str, Any] | None:
        message: Any = _join_pieces([{"role": "assistant"}, *self._deltas], f"{field}.choices[0].message")
        if not self.is_complete:
            message = _without_partial_calls(message)
            if not any(value for key, value in message.items() if key != "role"):
                return None
        choice = {"message": message, "finish_reason": self._reason or "length"}
        return {"id": self._id, "model": self._model, "choices": [choice], "usage": self._usage}


def _without_partial_calls(message: dict[str, Any]) -> dict[str, Any]:
    """Drop calls of a truncated message whose name has not arrived completely."""
    calls: Any = message.get("tool_calls") or []
    return {**message, "tool_calls": [call for call in calls if peek(call, "id") and _is_named(call)]}


def _is_named(call: Any) -> bool:
    function, custom = peek(call, "function"), peek(call, "custom")
    return all(isinstance(peek(custom or function, key), str) for key in ("name", "input" if custom else "arguments"))


def _join_pieces(pieces: Sequence[Any], field: str, *, once: bool = False) -> Any:
    """Join the pieces of a value; `once`: for text that is repeated, not sent in pieces."""
    some = [piece for piece in pieces if piece is not None]
    if some and all(isinstance(piece, str) for piece in some):
        return next((piece for piece in reversed(some) if piece), "") if once else join_text(some)
    if some and all(is_object(piece) for piece in some):
        keys = dict.fromkeys(key for piece in some for key in piece)
        fields = {key: [piece.get(key) for piece in some] for key in keys}
        return {
            key: _join_pieces(parts, f"{field}.{key}", once=key in _SENT_ONCE or (key == "name" and is_repeated(parts)))
            for key, parts in fields.items()
        }
    if some and all(is_list(piece) for piece in some):
        entries = _group_by_entry(part for piece in some for part in piece)
        return [_join_pieces(parts, f"{field}[{place}]") for place, parts in enumerate(entries)]
    if any(isinstance(piece, str | list | dict) for piece in some):
        kinds = sorted({type(piece).__name__ for piece in some})
        raise InvalidInput(field=field, value=kinds, expected="pieces of one kind")
    return some[-1] if some else None


def is_repeated(pieces: Sequence[Any]) -> bool:
    """True if each piece is the whole tool name."""
    non_empty = [piece for piece in pieces if piece]
    return all(piece == non_empty[0] for piece in non_empty)


def _group_by_entry(pieces: Iterable[Any]) -> list[list[Any]]:
    """Group the pieces of a list by entry."""
    entries: list[list[Any]] = []
    for piece in pieces:
        started = next((entry for entry in reversed(entries) if belongs_to_entry(piece, entry[0])), None)
        if started is None:
            entries.append([piece])
        else:
            started.append(piece)
    return entries


def belongs_to_entry(piece: Any, first: Any) -> bool:
    """True if a piece belongs to the entry that starts with `first`, by its index.

    Some servers give all calls the same index, or none; then the ids decide. Other pieces without an index are separate
    entries.
    """
    index = peek(piece, "index")
    if index != peek(first, "index") or (index is None and not (_is_call(piece) and _is_call(first))):
        return False
    return all(not (one := peek(piece, key)) or one == (peek(first, key) or one) for key in ("id", "type"))


def _is_call(piece: Any) -> bool:
    return peek(piece, "function") is not None or peek(piece, "custom") is not None


_SENT_ONCE = frozenset({"role", "id", "type", "format"})
