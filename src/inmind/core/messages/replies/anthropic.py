"""Replies of Anthropic's API.

Fields of the reply object (id, model, usage, stop reason) are not sent back: the message is its role and its blocks. A
block is streamed as a start and deltas; a tool's input comes as pieces of JSON text that may be invalid until the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inmind.core.json import is_list, is_object, object_at, text_at, to_plain
from inmind.core.messages import FORMATS
from inmind.core.messages.anthropic import NAME, parse_input
from inmind.core.messages.replies.reply import (
    MAX_MODEL_NAME_CHARS,
    ProviderEdit,
    Reply,
    ReplyUsage,
    event_type,
    incomplete_reply,
    is_count,
    join_text,
    make_usage,
    not_a_reply,
    peek,
    reply_id,
    reply_model,
    without_nulls,
)
from inmind.errors import InvalidInput

_INCOMPLETE_REASONS = ("max_tokens", "model_context_window_exceeded", "refusal")
_USABLE_IF_PARTIAL = ("text", "tool_use")
_OWN_BLOCKS = ("tool_use", "server_tool_use", "thinking", "redacted_thinking", "compaction")
_EVENTS = (
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "ping",
)


class AnthropicReplyReader:
    name: str = NAME

    def is_reply(self, reply: object) -> bool:
        if not is_object(reply):
            return False
        content = reply.get("content")
        marked = is_list(content) and any(peek(block, "type") in _OWN_BLOCKS for block in content)
        return marked or "stop_reason" in reply or (is_list(content) and reply.get("type") == "message")

    def is_chunk(self, chunk: object) -> bool:
        return peek(chunk, "type") in _EVENTS

    def read(self, reply: object, *, field: str) -> Reply:
        if not is_object(reply) or "content" not in reply:
            raise not_a_reply(reply, field=field)
        role, content = reply.get("role") or "assistant", reply["content"]
        if role != "assistant":
            raise InvalidInput(field=f"{field}.role", value=role, expected="assistant")
        reason = reply.get("stop_reason", "end_turn")
        if reason is None:
            raise incomplete_reply(reason, field=f"{field}.stop_reason")
        wire = {"role": role, "content": [_block(block) for block in content] if is_list(content) else content}
        FORMATS[NAME].check(wire, field=field)
        usage = _usage(reply.get("usage"))
        return Reply(
            format=NAME,
            wires=(wire,),
            id=reply_id(reply),
            model=reply_model(reply),
            usage=usage,
            is_complete=reason not in _INCOMPLETE_REASONS,
            edits=_edits(reply.get("context_management")),
        )

    def new_assembler(self) -> AnthropicAssembler:
        return AnthropicAssembler()


class AnthropicAssembler:
    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._deltas: dict[int, list[dict[str, Any]]] = {}
        self._closed: set[object] = set()
        self._stopped = False

    def add(self, chunk: object, field: str) -> None:
        kind = event_type(chunk, field=field)
        if kind == "message_start":
            self._message = _part(chunk, "message", field)
        elif kind == "content_block_start":
            index = _index(chunk, field)
            self._blocks[index], self._deltas[index] = _part(chunk, "content_block", field), []
        elif kind == "content_block_delta":
            index = _index(chunk, field)
            if index not in self._blocks:
                raise InvalidInput(field=f"{field}.index", value=index, expected="the index of a started block")
            self._deltas[index].append(_part(chunk, "delta", field))
        elif kind == "content_block_stop":
            index = peek(chunk, "index")
            if is_count(index):
                self._closed.add(index)
        elif kind == "message_delta":
            usage = to_plain(peek(chunk, "usage"), f"{field}.usage")
            self._message.update(without_nulls(_part(chunk, "delta", field)))
            self._message["usage"] = _merge_usage(self._message.get("usage"), usage)
            if (edited := to_plain(peek(chunk, "context_management"), f"{field}.context_management")) is not None:
                self._message["context_management"] = edited
        elif kind == "message_stop":
            self._stopped = True

    @property
    def is_complete(self) -> bool:
        return self._stopped or self._message.get("stop_reason") is not None

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


def _block(given: Any) -> Any:
    """A block as it can be sent back.

    Blocks that only Anthropic understands are unchanged: some need their nulls.
    """
    if not is_object(given) or given.get("type") not in ("text", "tool_use"):
        return given
    block = without_nulls(given)
    return block if block.get("citations") != [] else without_nulls(block, "citations")


def _part(chunk: object, name: str, field: str) -> dict[str, Any]:
    return object_at({name: to_plain(peek(chunk, name), f"{field}.{name}")}, name, field)


def _index(chunk: object, field: str) -> int:
    index = peek(chunk, "index")
    if not is_count(index):
        raise InvalidInput(field=f"{field}.index", value=index, expected="a whole number")
    return index


def _merge_usage(before: Any, now: Any) -> Any:
    """Usage in a stream is cumulative: later values replace earlier ones."""
    return {**before, **without_nulls(now)} if is_object(before) and is_object(now) else now or before


def _usage(given: Any) -> ReplyUsage | None:
    cached = peek(given, "cache_read_input_tokens")
    sent = (peek(given, "input_tokens"), peek(given, "cache_creation_input_tokens") or 0, cached or 0)
    prompt = sum(sent) if all(is_count(tokens) for tokens in sent) else None
    return make_usage(prompt=prompt, cached=cached, completion=peek(given, "output_tokens"))


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
