"""Input items of OpenAI's Responses API.

One assistant message of chat is a sequence of items here: reasoning, a message, each call, each result. Every item is
read separately, so one item is one `Message`. Item types that only OpenAI understands are `Opaque` with that type;
opaque parts *inside* a message are named `message.<type>`, which distinguishes the two when they are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inmind.core.json import is_count, is_list, is_object, peek, text_at, to_plain, without_nulls
from inmind.core.messages.format import (
    ROLES,
    Format,
    ReplyAssembler,
    event_index,
    event_part,
    event_type,
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
    Wire,
    without_id,
)
from inmind.errors import InvalidInput

SELF_CONTAINED = ("message", "function_call", "custom_tool_call")
"""Items that are complete without their id. Others are references to items that the provider has stored."""

# Types with an equivalent at other providers. The rest is specific to OpenAI, and some of it needs its nulls when it is
# sent back.
_COMMON_KINDS = ("reasoning", *SELF_CONTAINED)
_MESSAGE_PREFIX = "message."
_REFERENCE = "item_reference"
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})

# Requests of OpenAI to the host other than calls of the host's tools, with the item type of the answer: the output of a
# tool that the host runs, or an approval.
_HOST_ANSWERS = {
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "mcp_approval_request": "mcp_approval_response",
    "shell_call": "shell_call_output",
    "tool_search_call": "tool_search_output",
}
_ANSWERED_REQUESTS = {answer: request for request, answer in _HOST_ANSWERS.items()}
_HOST_ITEM_ROLES: dict[str, Role] = {
    "additional_tools": "developer",
    "compaction_trigger": "developer",
    "configuration_update": "developer",
    _REFERENCE: "user",
    "mcp_approval_response": "user",
}


class OpenAIResponses(Format):
    """The format of OpenAI's Responses API."""

    name = "responses"
    rules = FormatRules(
        result_position="anywhere",
        unique_ids="open",
        custom_results=True,
        has_instructions=True,
        has_threads=True,
        opaque_prefixes=frozenset({"reasoning"}),
        text_type="input_text",
        compaction_keeps_users=True,
    )

    roles = ("system", "developer", "user", "assistant")
    text_roles = frozenset(roles)
    text_types = frozenset({"input_text", "output_text", "text"})
    tool_example = 'a responses tool: {"type": "function", "name": …, "parameters": {…}}'
    foreign_tool_field = "function"
    expected_wire = "an input item: an object with a role or a type"
    usage_fields = ("input_tokens", "input_tokens_details", "output_tokens")
    messages_field = "input"
    system_field = "instructions"

    def check_fields(self, wire: dict[str, Any], field: str) -> None:
        kind, role = wire.get("type"), wire.get("role")
        if kind is None and role is None and isinstance(wire.get("id"), str):
            return  # an item_reference may leave its type out
        if kind is None and role is None:
            raise InvalidInput(field=f"{field}.type", value=kind, expected="a type or a role")
        if kind is None or kind == "message":
            self.check_role(wire, field)
            self._check_content(wire, "content", field)
        elif text_at(wire, "type", field) in _CALLS:
            for key in ("call_id", "name", _CALLS[kind]):
                text_at(wire, key, field)
        elif kind in _RESULTS:
            text_at(wire, "call_id", field)
            self._check_content(wire, "output", field)

    def _check_content(self, wire: dict[str, Any], key: str, field: str) -> None:
        for part, place in self.parts_at(wire, key, field):
            if part["type"] == "input_image" and part.get("image_url") is not None:
                text_at(part, "image_url", place)

    def strip_local_fields(self, wire: Wire) -> Wire:
        return wire  # ids of items are the provider's

    def is_system(self, wire: Wire) -> bool:
        return _is_message(wire) and wire.get("role") in ("system", "developer")

    def check_system_item(self, item: dict[str, Any], field: str) -> None:
        if item.get("role") in ("system", "developer") and not _is_message(item):
            raise InvalidInput(field=f"{field}.type", value=item["type"], expected="message")
        super().check_system_item(item, field)

    def read(self, wire: Wire) -> Message:
        if _is_message(wire):
            return Message(ROLES[wire["role"]], tuple(self.read_content(wire.get("content"), _MESSAGE_PREFIX)))
        kind = wire.get("type") or _REFERENCE
        if kind in _CALLS:
            custom = kind == "custom_tool_call"
            return Message("assistant", (Call(wire["call_id"], wire["name"], wire[_CALLS[kind]], custom=custom),))
        if kind in _RESULTS:
            parts = tuple(self.read_content(wire["output"]))
            return Message("tool", (Result(wire["call_id"], parts, custom=kind == "custom_tool_call_output"),))
        role = _HOST_ITEM_ROLES.get(kind) or ("tool" if kind.endswith("_output") else "assistant")
        return Message(role, (self._read_item(kind, wire),))

    def _read_item(self, kind: str, wire: Wire) -> Opaque:
        """An opaque part with the id that links a request and its answer.

        A tool search that OpenAI runs itself needs no answer. An answer may name its call only by `id`.
        """
        if wire.get("execution") == "server":
            return Opaque(self.name, kind, wire)
        request_kind = _ANSWERED_REQUESTS.get(kind, kind)
        if request_kind not in _HOST_ANSWERS:
            return Opaque(self.name, kind, wire, is_compaction=kind == "compaction")
        id = next((wire[key] for key in ("approval_request_id", "call_id", "id") if wire.get(key)), None)
        link, is_answer = f"{request_kind} {id}", kind in _ANSWERED_REQUESTS
        ids = ("", link) if is_answer else (link, "")
        return Opaque(self.name, kind, wire, *ids)

    def read_image(self, part: Wire) -> Image | None:
        is_image = part["type"] == "input_image" and part.get("image_url") is not None
        return Image.from_url(part["image_url"]) if is_image else None

    def write(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        custom: dict[str, bool] = {}
        items: list[dict[str, Any]] = []
        for message in messages:
            role: Role = "user" if message.role == "tool" else message.role
            if not message.parts:
                items.append({"role": role, "content": ""})
            content: list[dict[str, Any]] = []
            for part in message.parts:
                if isinstance(part, Call):
                    custom[part.id] = part.custom
                item = self._write_item(part, custom)
                if item is None:
                    content += self.write_part(part, role)
                    continue
                items += self._write_message(role, content)
                content = []
                items.append(item)
            items += self._write_message(role, content)
        return items

    def _write_item(self, part: Part, custom: Mapping[str, bool]) -> dict[str, Any] | None:
        """Write a part that is a separate item; None for parts of a message.

        `custom`: for each call so far, whether its tool is custom.
        """
        if isinstance(part, Call):
            kind = "custom_tool_call" if part.custom else "function_call"
            return {"type": kind, "call_id": part.id, "name": part.name, _CALLS[kind]: part.arguments}
        if isinstance(part, Result):
            kind = "custom_tool_call_output" if custom.get(part.id, part.custom) else "function_call_output"
            content = [written for inner in part.parts_with_error_text for written in self.write_part(inner, "user")]
            return {"type": kind, "call_id": part.id, "output": self.simplest_content(content)}
        if self.is_own(part) and not part.kind.startswith(_MESSAGE_PREFIX):
            return dict(part.body)
        return None

    def _write_message(self, role: Role, content: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not content:
            return []
        return [{"role": role, "content": content if role == "assistant" else self.simplest_content(content)}]

    def text_part(self, text: str, role: Role = "user") -> dict[str, Any]:
        return {"type": "output_text" if role == "assistant" else "input_text", "text": text}

    def image_part(self, image: Image) -> dict[str, Any]:
        return {"type": "input_image", "image_url": image.url}

    def tail_field(self, wire: Wire) -> str | None:
        """Messages of the user and results; outputs of OpenAI's tools have fixed formats."""
        if _is_message(wire):
            return "content" if wire["role"] == "user" else None
        return "output" if wire.get("type") in _RESULTS else None

    def declare_tool(self, name: str, description: str, parameters: dict[str, Any]) -> dict[str, Any]:
        declared = {"type": "function", "name": name, "description": description, "parameters": parameters}
        return {**declared, "strict": False}

    def prompt_arguments(self, head: PromptHead, wires: Sequence[Wire], tools: Sequence[Wire]) -> dict[str, Any]:  # noqa: ARG002
        instructions = head.system if isinstance(head.system, str) else None
        if head.in_thread and head.memory:
            instructions = f"{instructions}\n\n{head.memory}" if instructions else head.memory
        system = [] if head.system is None or isinstance(head.system, str) else list(head.system)
        before, after = wires[: head.memory_index], wires[head.memory_index :]
        is_message = head.memory and not head.in_thread
        memory = [{"role": "developer", "content": [self.text_part(head.memory)]}] if is_message else []
        given = {} if instructions is None else {"instructions": instructions}
        return {**given, "input": [*system, *before, *memory, *after]}

    def is_reply(self, reply: object) -> bool:
        if is_list(reply):
            return any(_is_item(item) for item in reply)
        return is_object(reply) and (_is_response(reply) or _is_item(reply))

    def is_chunk(self, chunk: object) -> bool:
        kind = peek(chunk, "type")
        return isinstance(kind, str) and kind.startswith("response.")

    def read_reply(self, reply: object, *, field: str) -> Reply:
        if is_list(reply) and reply:
            return self._make_reply(self._reply_items(reply, field), {})
        if not is_object(reply):
            raise not_a_reply(reply, field=field)
        if not _is_response(reply):
            return self._make_reply([self._reply_item(reply, field)], {})
        status, output = reply.get("status") or "completed", reply.get("output")
        if status not in ("completed", "incomplete"):
            raise incomplete_reply(status, field=f"{field}.status")
        if not is_list(output):
            raise InvalidInput(field=f"{field}.output", value=output, expected="a list")
        if reply.get("object") == "response.compaction":  # it repeats the messages of the user before its item
            output = [item for item in output if peek(item, "type") == "compaction"]
        return self._make_reply(self._reply_items(output, f"{field}.output"), reply)

    def assembler(self) -> ResponsesAssembler:
        return ResponsesAssembler()

    def _make_reply(self, wires: Sequence[Wire], given: Mapping[str, Any]) -> Reply:
        is_complete = "incomplete" not in (given.get("status"), *(wire.get("status") for wire in wires))
        return self.make_reply(wires, given, is_complete=is_complete)

    def _reply_items(self, given: Sequence[Any], field: str) -> list[Wire]:
        return [self._reply_item(item, f"{field}[{place}]") for place, item in enumerate(given)]

    def _reply_item(self, given: Any, field: str) -> Wire:
        """The item as it can be sent back, without values parsed by the client."""
        item = given
        if is_object(given) and (kind := given.get("type") or "message") in _COMMON_KINDS:
            item = without_nulls(given, "parsed_arguments")
            if kind == "message" and item.get("role") != "assistant":
                raise InvalidInput(field=f"{field}.role", value=item.get("role"), expected="assistant")
            if kind == "message" and is_list(item.get("content")):
                parts: list[Any] = item["content"]
                item["content"] = [without_nulls(part, "parsed") if is_object(part) else part for part in parts]
        self.check(item, field=field)
        return item


def _is_message(wire: Wire) -> bool:
    return wire.get("type") == "message" or (wire.get("type") is None and wire.get("role") is not None)


def _is_response(given: dict[str, Any]) -> bool:
    """True for a response. Items have a type, and some also an output."""
    return "output" in given and "type" not in given


def _is_item(given: Any) -> bool:
    if not is_object(given):
        return False
    kind, content = given.get("type"), given.get("content")
    if kind in (None, "message"):
        return "status" in given or (is_list(content) and any(peek(part, "type") == "output_text" for part in content))
    return kind in ("reasoning", "compaction") or (isinstance(kind, str) and kind.endswith("_call"))


class ResponsesAssembler(ReplyAssembler):
    def __init__(self) -> None:
        self._items: dict[int, Any] = {}
        self._words: dict[int, list[str]] = {}
        self._response: dict[str, Any] | None = None

    def add(self, chunk: object, field: str) -> None:
        kind, place = event_type(chunk, field), peek(chunk, "output_index")
        if kind == "response.output_item.done":
            self._items[event_index(chunk, "output_index", field)] = to_plain(peek(chunk, "item"), f"{field}.item")
        elif kind == "response.output_text.delta" and is_count(place) and isinstance(peek(chunk, "delta"), str):
            self._words.setdefault(place, []).append(peek(chunk, "delta"))
        elif kind in _END_EVENTS:
            self._response = {"status": kind.removeprefix("response."), **event_part(chunk, "response", field)}
            self.is_complete = True

    def assemble(self, field: str) -> dict[str, Any] | None:  # noqa: ARG002 -- required by the protocol
        if self._response is None:
            items_by_place: dict[int, Any] = {}
            for place, words in self._words.items():
                text = {"type": "output_text", "text": join_text(words)}
                items_by_place[place] = {"type": "message", "role": "assistant", "content": [text]}
            items_by_place |= self._items
            items = [item for _, item in sorted(items_by_place.items())]
            output = [without_id(item) for item in items if (peek(item, "type") or "message") in SELF_CONTAINED]
            return {"status": "incomplete", "output": output} if output else None
        # Some servers leave the items out of the last event, since each was sent before.
        output = self._response.get("output") or [self._items[place] for place in sorted(self._items)]
        return {**self._response, "output": output}


_END_EVENTS = ("response.completed", "response.incomplete", "response.failed")
