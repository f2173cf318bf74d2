"""Messages of Anthropic's API.

There are only the roles user and assistant. Results are blocks of a user message, always first in it, and all results
of one assistant message are in the message that follows; nothing else may be in it if the assistant waits for them in
the middle of a turn. Text must not be blank, the user starts, and arguments are an object. Other forms are converted,
always in the same way, so that the same conversation gives the same bytes.

Fields of a reply (id, model, usage, stop reason) are not sent back: the message is its role and its blocks.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NoReturn

from inmind.core.json import check_json, is_count, is_list, is_object, object_at, peek, text_at, to_plain, without_nulls
from inmind.core.messages.cache_control import add_mark_before_tail, own_mark_before, remaining_marks
from inmind.core.messages.format import (
    MAX_MODEL_NAME_CHARS,
    ROLES,
    Format,
    ReplyAssembler,
    check_assistant,
    event_index,
    event_part,
    event_type,
    incomplete_reply,
    join_text,
    not_a_reply,
)
from inmind.core.messages.model import (
    OPENING_TEXT,
    Call,
    Content,
    FormatRules,
    Image,
    Message,
    Opaque,
    Part,
    PromptHead,
    ProviderEdit,
    Reply,
    Result,
    Role,
    Text,
    Wire,
)
from inmind.core.text import escape_markup, join_paragraphs
from inmind.errors import InvalidInput

EMPTY_TEXT = "(empty)"

# The single key of an input that was not a JSON object; its value is the text of the model.
RAW_KEY = "_raw"

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_IMAGE_FIELDS = {"base64": ("media_type", "data"), "url": ("url",)}
_OWN_BLOCKS = ("tool_use", "server_tool_use", "thinking", "redacted_thinking", "compaction")
_INCOMPLETE_REASONS = ("max_tokens", "model_context_window_exceeded", "refusal")


class AnthropicMessages(Format):
    """The format of Anthropic's messages."""

    name = "anthropic"
    rules = FormatRules(result_position="together", unique_ids="conversation", user_first=True, uses_cache_marks=True)
    roles = ("user", "assistant", "system")
    text_roles = frozenset(roles)
    tool_example = 'an Anthropic tool: {"name": …, "input_schema": {…}}'
    tool_fields = ("name", "type")
    foreign_tool_field = "function"
    expected_parts = "blocks"
    expected_system = "text blocks"

    def check_fields(self, wire: dict[str, Any], field: str) -> None:
        role = self.check_role(wire, field)
        for block, place in self.parts_at(wire, "content", field):
            self._check_block(block, role, place)

    def _check_block(self, block: dict[str, Any], role: str, field: str) -> None:
        kind = block["type"]
        if kind == "tool_use":
            if role != "assistant":
                raise InvalidInput(field=f"{field}.type", value=kind, expected="tool_use in an assistant message only")
            text_at(block, "id", field)
            text_at(block, "name", field)
            object_at(block, "input", field)
        elif kind == "tool_result":
            if role != "user":
                raise InvalidInput(field=f"{field}.type", value=kind, expected="tool_result in a user message only")
            text_at(block, "tool_use_id", field)
            for inner, place in self.parts_at(block, "content", field, optional=True):
                _check_image(inner, place)
        else:
            _check_image(block, field)

    def is_system(self, wire: Wire) -> bool:
        return wire.get("role") == "system"

    def check_system_item(self, item: dict[str, Any], field: str) -> None:
        if text_at(item, "type", field) != "text":
            raise InvalidInput(field=f"{field}.type", value=item["type"], expected="text")
        text_at(item, "text", field)

    def system_text(self, system: Sequence[Wire] | str | None) -> str:
        if isinstance(system, str):
            return system
        return join_paragraphs(block["text"] for block in self._system_blocks(system) if block["type"] == "text")

    def _system_blocks(self, system: Sequence[Wire] | str | None) -> list[dict[str, Any]]:
        """The host's system prompt as blocks. System messages are replaced by their content."""
        if not system:
            return []
        if isinstance(system, str):
            return [self.text_part(system)] if system.strip() else []
        blocks: list[dict[str, Any]] = []
        for given in system:
            content = given["content"] if "role" in given else [given]
            blocks += [self.text_part(content)] if isinstance(content, str) else [dict(block) for block in content]
        return [block for block in blocks if block["type"] != "text" or block["text"].strip()]

    def read(self, wire: Wire) -> Message:
        role, content = wire["role"], wire["content"]
        if isinstance(content, str):
            return Message(ROLES[role], (Text(content),) if content else ())
        parts = tuple(self._read_block(block) for block in content)
        if parts and all(isinstance(part, Result) for part in parts):
            return Message("tool", parts)
        return Message(ROLES[role], parts)

    def _read_block(self, block: Wire) -> Part:
        kind = block["type"]
        if kind == "tool_use":
            return Call(block["id"], block["name"], _arguments_text(block["input"]))
        if kind == "tool_result":
            inner = tuple(self.read_content(block.get("content")))
            return Result(block["tool_use_id"], inner, error=bool(block.get("is_error")))
        return self.read_part(block)

    def read_part(self, part: Wire, prefix: str = "") -> Content:
        # Without content it is a compaction that failed, and Anthropic ignores it.
        if part["type"] == "compaction" and part.get("content"):
            return Opaque(self.name, "compaction", part, is_compaction=True)
        return super().read_part(part, prefix)

    def read_image(self, part: Wire) -> Image | None:
        source = part["source"] if part["type"] == "image" else {"type": ""}
        if source["type"] == "base64" and source["media_type"]:
            return Image(source["data"], source["media_type"])
        return Image.from_url(source["url"]) if source["type"] == "url" else None

    def is_sendable(self, wire: Wire, message: Message) -> bool:  # noqa: ARG002 -- the parsed message is enough here
        """False for blank text, results after text, and ids that Anthropic refuses as input.

        Anthropic itself returns empty answers, and hosts put results after text.
        """
        only_results = True
        for part in message.parts:
            if isinstance(part, Result):
                if not only_results or not _ID.fullmatch(part.id) or any(_is_blank(inner) for inner in part.parts):
                    return False
                continue
            only_results = False
            if _is_blank(part) or (isinstance(part, Call) and not _ID.fullmatch(part.id)):
                return False
        return bool(message.parts)

    def write(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        turns: list[tuple[str, list[dict[str, Any]]]] = []
        for message in messages:
            role = "assistant" if message.role == "assistant" else "user"
            blocks = [block for part in message.parts for block in self.write_part(part, message.role)]
            if not blocks and any(not _is_blank(part) for part in message.parts):
                continue
            if turns and turns[-1][0] == role:
                turns[-1][1].extend(blocks)
            else:
                turns.append((role, blocks))
        if turns and turns[0][0] == "assistant":
            turns.insert(0, ("user", [self.text_part(OPENING_TEXT)]))
        return [{"role": role, "content": self._write_content(blocks)} for role, blocks in turns]

    def write_part(self, part: Part, role: Role) -> Iterator[dict[str, Any]]:
        if isinstance(part, Text):
            # The API accepts system text only first, so a system message inside the conversation is wrapped.
            is_system = role in {"system", "developer"}
            if part.text.strip():
                text = f"<system_message>{escape_markup(part.text)}</system_message>" if is_system else part.text
                yield self.text_part(text)
        elif isinstance(part, Call):
            yield {"type": "tool_use", "id": _id(part.id), "name": part.name, "input": parse_input(part.arguments)}
        elif isinstance(part, Result):
            yield self._write_result(part)
        else:
            yield from super().write_part(part, role)

    def _write_result(self, result: Result) -> dict[str, Any]:
        content = [block for part in result.parts for block in self.write_part(part, "tool")]
        written: dict[str, Any] = {"type": "tool_result", "tool_use_id": _id(result.id)}
        if content:
            written["content"] = self.simplest_content(content)
        if result.error:
            written["is_error"] = True
        return written

    def _write_content(self, blocks: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
        if not blocks:
            return EMPTY_TEXT
        return self.simplest_content(sorted(blocks, key=lambda block: block["type"] != "tool_result"))

    def image_part(self, image: Image) -> dict[str, Any]:
        if image.media_type:
            return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": image.source}}
        return {"type": "image", "source": {"type": "url", "url": image.source}}

    def tail_field(self, wire: Wire) -> str | None:
        return "content" if wire["role"] == "user" else None

    def tail_index(self, wires: Sequence[Wire]) -> int | None:
        place = super().tail_index(wires)
        # Rather an earlier message than none: without a tail, changes of memory would have to go into the prefix and
        # would invalidate the cache.
        while place is not None and _allows_only_results(wires, place):
            place = super().tail_index(wires[:place])
        return place

    def declare_tool(self, name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
        return {"name": name, "description": description, "input_schema": parameters}

    def prompt_arguments(self, head: PromptHead, wires: Sequence[Wire], tools: Sequence[Wire]) -> dict[str, Any]:
        system = self._system_blocks(head.system)
        remaining = remaining_marks(system, tools, wires)
        # The mark in the conversation covers everything before it, including memory: it comes first.
        messages = add_mark_before_tail(wires) if remaining else list(wires)
        if head.memory:
            memory = self.text_part(head.memory)
            system.append({**memory, "cache_control": own_mark_before(messages)} if remaining > 1 else memory)
        return {"messages": messages, "system": system} if system else {"messages": messages}

    def is_reply(self, reply: object) -> bool:
        if not is_object(reply):
            return False
        content = reply.get("content")
        marked = is_list(content) and any(peek(block, "type") in _OWN_BLOCKS for block in content)
        return marked or "stop_reason" in reply or (is_list(content) and reply.get("type") == "message")

    def is_chunk(self, chunk: object) -> bool:
        kind = peek(chunk, "type")
        return isinstance(kind, str) and (kind == "ping" or kind.startswith(("message_", "content_block_")))

    def read_reply(self, reply: object, *, field: str) -> Reply:
        if not is_object(reply) or "content" not in reply:
            raise not_a_reply(reply, field=field)
        check_assistant(reply, field)
        reason, content = reply.get("stop_reason", "end_turn"), reply["content"]
        if reason is None:
            raise incomplete_reply(reason, field=f"{field}.stop_reason")
        blocks = [_reply_block(block) for block in content] if is_list(content) else content
        wire = {"role": "assistant", "content": blocks}
        self.check(wire, field=field)
        edits = _edits(reply.get("context_management"))
        return self.make_reply([wire], reply, is_complete=reason not in _INCOMPLETE_REASONS, edits=edits)

    def assembler(self) -> AnthropicAssembler:
        return AnthropicAssembler()

    def token_counts(self, usage: Any) -> tuple[object, object, object]:
        cached = peek(usage, "cache_read_input_tokens")
        sent = (peek(usage, "input_tokens"), peek(usage, "cache_creation_input_tokens") or 0, cached or 0)
        return sum(sent) if all(map(is_count, sent)) else None, cached, peek(usage, "output_tokens")


def _allows_only_results(wires: Sequence[Wire], place: int) -> bool:
    """True if the provider would refuse any block other than the results in this message.

    That is so if the results go to code that it runs, or if one of its own tools has not run yet.
    """
    content = wires[place]["content"]
    if not is_list(content) or not any(block["type"] == "tool_result" for block in content):
        return False
    turn = takewhile(lambda wire: wire["role"] == "assistant", reversed(wires[:place]))
    blocks = [block for wire in turn if is_list(wire["content"]) for block in wire["content"]]
    awaited = {block.get("id") for block in blocks if block["type"] == "server_tool_use"}
    done = {block.get("tool_use_id") for block in blocks}
    callers = (block.get("caller") for block in blocks if block["type"] == "tool_use")
    return bool(awaited - done) or any(is_object(caller) and caller.get("type") != "direct" for caller in callers)


def _check_image(block: dict[str, Any], field: str) -> None:
    if block["type"] != "image":
        return
    source = object_at(block, "source", field)
    for key in _IMAGE_FIELDS.get(text_at(source, "type", f"{field}.source"), ()):
        text_at(source, key, f"{field}.source")


def _is_blank(part: Part) -> bool:
    return isinstance(part, Text) and not part.text.strip()


def _id(given: str) -> str:
    """Return an id that Anthropic accepts.

    It depends only on the given id, so call and result match.
    """
    if _ID.fullmatch(given):
        return given
    digest = hashlib.sha256(given.encode()).hexdigest()[:8]
    return f"{re.sub(r'[^a-zA-Z0-9_-]', '_', given)}_{digest}"


def parse_input(arguments: str) -> dict[str, Any]:
    """Parse the input that a model wrote as text; if it is not a JSON object, keep the text."""
    if not arguments:
        return {}
    given = _parse_object(arguments)
    return {RAW_KEY: arguments} if given is None else given


def _arguments_text(given: Mapping[str, Any]) -> str:
    """The arguments as JSON text, or the original text if it was not JSON."""
    raw = given.get(RAW_KEY)
    if len(given) == 1 and isinstance(raw, str) and raw and _parse_object(raw) is None:
        return raw
    return json.dumps(given, ensure_ascii=False)


def _parse_object(text: str) -> dict[str, Any] | None:
    """Parse a JSON object; None for invalid JSON and for values that cannot be sent."""
    try:
        value = json.loads(text, parse_constant=_refuse)
        check_json(value, "arguments")
    except (ValueError, RecursionError, InvalidInput):
        return None
    return value if is_object(value) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def _reply_block(given: Any) -> Any:
    """A block as it can be sent back.

    Blocks that only Anthropic understands are unchanged: some need their nulls.
    """
    if not is_object(given) or given.get("type") not in ("text", "tool_use"):
        return given
    block = without_nulls(given)
    return block if block.get("citations") != [] else without_nulls(block, "citations")


def _edits(context_management: Any) -> tuple[ProviderEdit, ...]:
    """The edits that Anthropic made to the prompt.

    Fields that cannot be read are no reason to lose the reply.
    """
    applied = peek(context_management, "applied_edits")
    edits: list[ProviderEdit] = []
    for edit in applied if is_list(applied) else ():
        kind, tokens = peek(edit, "type"), peek(edit, "cleared_input_tokens")
        counts = [peek(edit, name) for name in ("cleared_tool_uses", "cleared_thinking_turns")]
        count = next((count for count in counts if is_count(count)), 0)
        if isinstance(kind, str) and kind.isidentifier():
            edits.append(ProviderEdit(kind[:MAX_MODEL_NAME_CHARS], count, tokens if is_count(tokens) else 0))
    return tuple(edits)


class AnthropicAssembler(ReplyAssembler):
    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._deltas: dict[int, list[dict[str, Any]]] = {}
        self._closed: set[object] = set()

    def add(self, chunk: object, field: str) -> None:
        kind = event_type(chunk, field)
        if kind == "message_start":
            self._message = event_part(chunk, "message", field)
        elif kind == "content_block_start":
            index = event_index(chunk, "index", field)
            self._blocks[index], self._deltas[index] = event_part(chunk, "content_block", field), []
        elif kind == "content_block_delta":
            index = event_index(chunk, "index", field)
            if index not in self._blocks:
                raise InvalidInput(field=f"{field}.index", value=index, expected="the index of a started block")
            self._deltas[index].append(event_part(chunk, "delta", field))
        elif kind == "content_block_stop":
            index = peek(chunk, "index")
            if is_count(index):
                self._closed.add(index)
        elif kind == "message_delta":
            usage = to_plain(peek(chunk, "usage"), f"{field}.usage")
            self._message.update(without_nulls(event_part(chunk, "delta", field)))
            before = self._message.get("usage")  # usage in a stream is cumulative: later values replace earlier ones
            if is_object(before) and is_object(usage):
                usage = {**before, **without_nulls(usage)}
            self._message["usage"] = usage or before
            if (edited := to_plain(peek(chunk, "context_management"), f"{field}.context_management")) is not None:
                self._message["context_management"] = edited
        if kind == "message_stop" or self._message.get("stop_reason") is not None:
            self.is_complete = True

    def assemble(self, field: str) -> dict[str, Any] | None:
        usable = [index for index, block in self._blocks.items() if self.is_complete or self._is_usable(index, block)]
        if not self.is_complete and not usable:
            return None
        content = [
            _join_deltas(self._blocks[index], self._deltas[index], f"{field}.content[{place}]")
            for place, index in enumerate(usable)
        ]
        stop = {} if self.is_complete else {"stop_reason": "max_tokens"}
        return {**without_nulls(self._message), **stop, "content": content}

    def _is_usable(self, index: int, block: dict[str, Any]) -> bool:
        """True for a complete block, and for partial text and calls.

        Thinking without its signature would be refused.
        """
        return index in self._closed or block.get("type") in _USABLE_IF_PARTIAL


def _join_deltas(block: dict[str, Any], deltas: Sequence[dict[str, Any]], field: str) -> dict[str, Any]:
    """Return a block with its deltas: texts are appended to the block's field of the same name.

    Two fields have another name in a delta, and its numbers are for display only.
    """
    joined = dict(block)
    for key in dict.fromkeys(key for delta in deltas for key in delta if key != "type"):
        pieces = [delta[key] for delta in deltas if delta.get(key) is not None]
        texts = [piece for piece in pieces if isinstance(piece, str)]
        if key == "citation":
            cited: Any = joined.get("citations") or []
            if not is_list(cited):
                raise InvalidInput(field=f"{field}.citations", value=cited, expected="a list")
            joined["citations"] = [*cited, *pieces]
        elif key == "partial_json":
            joined["input"] = parse_input(join_text(texts))
        elif texts:
            start = "" if joined.get(key) is None else text_at(joined, key, field)
            joined[key] = join_text([start, *texts])
    return joined


_USABLE_IF_PARTIAL = ("text", "tool_use")
