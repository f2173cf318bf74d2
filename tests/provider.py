"""A provider on loopback with three real protocols, to test client libraries against.

It answers from a script, records requests, and rejects requests that the real provider would reject. Its streams come
in awkward pieces: arguments are cut in the middle of a word, and one write has half an event or two and a half.

    with Provider() as provider:
        provider.will(says("One moment.", asks("get_page", {"id": "page-1"})), says("It is called About Us."))
        client = OpenAI(base_url=provider.openai, api_key="none", max_retries=0)
"""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count, cycle
from typing import Any, Protocol, Self, cast

from provider_rules import faults

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call. Arguments given as text are sent unchanged and need not be JSON."""

    name: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedReply:
    """A reply, in any protocol."""

    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    thinking: str = ""
    also: tuple[Mapping[str, Any], ...] = ()
    """Raw items of Responses or blocks of Anthropic, sent before the calls."""
    reason: str = ""
    """The finish reason or status of the protocol; by default it follows from the calls."""
    torn: bool = False
    """The connection breaks in the middle."""
    short: bool = False
    """The stream ends without its final event, as after a proxy timeout."""
    gate: threading.Event | None = None
    """Nothing after the text is sent until this is set."""


@dataclass(frozen=True, slots=True)
class ScriptedFailure:
    status: int = 500
    message: str = "The server had an error while processing your request."


Answer = ScriptedReply | ScriptedFailure


def reply_with(text: str = "", *calls: ScriptedCall, **more: Any) -> ScriptedReply:
    return ScriptedReply(text=text, calls=calls, **more)


def a_tool_call(name: str, arguments: Mapping[str, Any] | str | None = None, *, id: str = "") -> ScriptedCall:
    return ScriptedCall(name, arguments if isinstance(arguments, str) else json.dumps(arguments or {}), id)


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as it arrived."""

    path: str
    body: Json
    headers: Mapping[str, str]
    """With lowercase names."""

    @property
    def messages(self) -> list[Json]:
        return self.body["input"] if "input" in self.body else self.body["messages"]

    @property
    def tools(self) -> list[str]:
        return [_tool_name(tool) for tool in self.body.get("tools", ())]


class Provider:
    """A running server with one script for all protocols: each request gets the next answer."""

    def __init__(self) -> None:
        self.requests: list[ReceivedRequest] = []
        self.failures: list[BaseException] = []
        """Errors inside of this server, which no client can see."""
        self.threads: dict[str, list[Json]] = {}
        """Items that it holds, by the ids of responses and conversations."""
        self._script: deque[Answer | Callable[[Json], Answer]] = deque()
        self._answered = 0
        self._lock = threading.Lock()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def anthropic(self) -> str:
        """The base URL for Anthropic's clients, which add the version."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai(self) -> str:
        return f"{self.anthropic}/v1"

    @property
    def unused(self) -> int:
        """Answers that were not requested yet."""
        return len(self._script)

    def will(self, *answers: Answer | Callable[[Json], Answer]) -> None:
        """Add to the script; a function computes an answer from the request."""
        self._script.extend(answers)

    def answer(self, body: Json) -> tuple[Answer, int]:
        """The next answer of the script, and its number for ids."""
        with self._lock:
            self._answered += 1
            scripted = (
                self._script.popleft() if self._script else ScriptedFailure(500, "the script has no more answers")
            )
            return (scripted(body) if callable(scripted) else scripted), self._answered

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


# -- the wire ----------------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 -- the base class's
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):  # a client may disconnect at any time
            self.provider.failures.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Otherwise an answer waits for the client to acknowledge its headers, which it does after 40 ms.
    disable_nagle_algorithm = True

    @property
    def _provider(self) -> Provider:
        assert isinstance(self.server, _Server)
        return self.server.provider

    def do_GET(self) -> None:
        self._send(
            200, {"object": "list", "data": [{"id": "model-1", "object": "model", "created": 0, "owned_by": ""}]}
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        protocol = _PROTOCOLS.get(path)
        if hosted := _HOSTED.fullmatch(path):
            protocol = _FORMATS["anthropic"]
            body = {**body, "model": hosted[1], "stream": hosted[2].startswith("stream")}
        if protocol is None:
            self._send(200, {"object": "list", "data": [], "model": "model-1", "input_tokens": 1})
            return
        self._provider.requests.append(
            ReceivedRequest(path, body, {name.lower(): value for name, value in self.headers.items()})
        )
        thread = _thread_of(body)
        held = self._provider.threads.get(thread, [])
        wrong = protocol.faults({**body, "input": [*held, *_as_items(body["input"])]} if thread else body)
        if thread and thread not in self._provider.threads:
            wrong = [f"Previous response with id {thread!r} not found."]
        if wrong:
            self._send(400, protocol.error("invalid_request_error", "; ".join(wrong)))
            return
        answer, number = self._provider.answer(body)
        if isinstance(answer, ScriptedReply) and isinstance(protocol, _Responses) and body.get("store") is not False:
            whole = protocol.whole(answer, number, body)
            items = [*held, *_as_items(body["input"]), *whole["output"]]
            self._provider.threads[thread if "conversation" in body else whole["id"]] = items
        if isinstance(answer, ScriptedFailure):
            self._send(answer.status, protocol.error("server_error", answer.message))
        elif body.get("stream"):
            self._stream(answer, protocol, list(protocol.events(answer, number, body)))
        else:
            self._send(200, protocol.whole(answer, number, body), torn=answer.torn)

    def _send(self, status: int, body: Json, *, torn: bool = False) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name in ("request-id", "x-request-id"):
            self.send_header(name, f"req_{len(self._provider.requests)}")
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if torn else data)
        if torn:
            self._tear()

    def _stream(self, answer: ScriptedReply, protocol: _Protocol, events: Sequence[Json | None]) -> None:
        """Server-sent events in chunks that do not end with events."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        gate = events.index(None) if None in events else len(events)
        before, after = _encode_events(events[:gate]), _encode_events(events[gate:]) + protocol.trailer
        if answer.torn:
            before, after = (before + after)[: len(before + after) // 2], ""
        self._write(before)
        if answer.gate is not None and not answer.gate.wait(timeout=20):
            raise TimeoutError("the gate was not opened: the text before it was held back")
        self._write(after)
        if answer.torn:
            self._tear()
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _write(self, text: str) -> None:
        data, sizes = text.encode(), cycle((37, 211, 5, 90))
        while data:
            size = next(sizes)
            piece, data = data[:size], data[size:]
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    def _tear(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """No output in tests."""


def _pieces(text: str) -> Iterator[str]:
    """Split a text into pieces of a few characters, like a stream."""
    sizes = cycle((1, 4, 2, 7))
    while text:
        size = next(sizes)
        yield text[:size]
        text = text[size:]


def _encode_events(events: Sequence[Json | None]) -> str:
    """Encode server-sent events, named by their types."""
    return "".join(
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
        if event is not None
    )


# -- the protocols -----------------------------------------------------------------------------------------


def chunks(format: str, reply: ScriptedReply, *, number: int = 1, **body: Any) -> list[Json]:
    """A reply as the chunks that a client yields, for tests without a client."""
    events = _FORMATS[format].events(reply, number, {"model": "model-1", **body})
    return [event for event in events if event is not None and event.get("type") != "ping"]


def complete_reply(format: str, reply: ScriptedReply, *, number: int = 1, **body: Any) -> Json:
    """A reply as one complete response."""
    return _FORMATS[format].whole(reply, number, {"model": "model-1", **body})


class _Protocol(Protocol):
    trailer: str
    """Text after the last event."""

    def faults(self, body: Json) -> list[str]: ...
    def error(self, kind: str, message: str) -> Json: ...
    def whole(self, reply: ScriptedReply, number: int, body: Json) -> Json: ...
    def events(self, reply: ScriptedReply, number: int, body: Json) -> Iterator[Json | None]:
        """The reply as a stream; None is the position of the gate."""
        ...


class _Chat:
    trailer: str = "data: [DONE]\n\n"
    roles = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

    def faults(self, body: Json) -> list[str]:
        wrong = ["functions and tools do not go together"] if body.get("functions") and body.get("tools") else []
        return wrong or _faults(
            "openai", body, body.get("messages"), self.roles, lambda tool: tool["function"]["parameters"]
        )

    def error(self, kind: str, message: str) -> Json:
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}

    def whole(self, reply: ScriptedReply, number: int, body: Json) -> Json:
        message: Json = {"role": "assistant", "content": reply.text or None, "refusal": None, "annotations": []}
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        if reply.calls:
            message["tool_calls"] = [
                {"id": id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
                for id, call in _with_ids(reply, number, "call")
            ]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self._reason(reply)}
        return {**self._named(number, body, "chat.completion"), "choices": [choice], "usage": self._usage()}

    def events(self, reply: ScriptedReply, number: int, body: Json) -> Iterator[Json | None]:
        named = self._named(number, body, "chat.completion.chunk")
        options: Json = body.get("stream_options") or {}
        counted = bool(options.get("include_usage"))

        def chunk(delta: Json, reason: str | None = None) -> Json:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
            return {**named, "choices": [choice], **({"usage": None} if counted else {})}

        yield chunk({"role": "assistant", "content": "", "refusal": None})
        for piece in _pieces(reply.thinking):
            yield chunk({"reasoning_content": piece})
        for piece in _pieces(reply.text):
            yield chunk({"content": piece})
        yield None
        for index, (id, call) in enumerate(_with_ids(reply, number, "call")):
            opening = {"index": index, "id": id, "type": "function", "function": {"name": call.name, "arguments": ""}}
            yield chunk({"tool_calls": [opening]})
            for piece in _pieces(call.arguments):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        if not reply.short:
            yield chunk({}, self._reason(reply))
        if counted and not reply.short:
            yield {**named, "choices": [], "usage": self._usage()}

    def _named(self, number: int, body: Json, kind: str) -> Json:
        return {"id": f"chatcmpl-{number}", "object": kind, "created": 1_767_225_600, "model": body["model"]}

    def _reason(self, reply: ScriptedReply) -> str:
        return reply.reason or ("tool_calls" if reply.calls else "stop")

    def _usage(self) -> Json:
        details = {"cached_tokens": 80}
        return {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110, "prompt_tokens_details": details}


class _Responses:
    trailer: str = ""
    roles = frozenset({"system", "developer", "user", "assistant"})

    def faults(self, body: Json) -> list[str]:
        listed = _as_items(body.get("input"))
        messages = [item for item in listed or () if item.get("type", "message") == "message"]
        wrong = [f"input: no role {item.get('role')!r}" for item in messages if item.get("role") not in self.roles]
        ids = Counter(item["id"] for item in listed or () if "id" in item)
        wrong += [f"input: two items share the id {id}" for id, count in ids.items() if count > 1]
        if body.get("store") is False:
            lost = (
                item for item in listed or () if item.get("type") == "reasoning" and not item.get("encrypted_content")
            )
            wrong += [f"Item with id {item['id']!r} not found. Items are not persisted" for item in lost]
        return wrong or _faults("responses", body, listed, None, lambda tool: tool["parameters"])

    error = _Chat.error

    def whole(self, reply: ScriptedReply, number: int, body: Json) -> Json:
        return self._response(number, body, reply.reason or "completed", self._items(reply, number, body))

    def events(self, reply: ScriptedReply, number: int, body: Json) -> Iterator[Json | None]:
        places = count()
        for event in self._unnumbered(reply, number, body):
            yield None if event is None else {**event, "sequence_number": next(places)}

    def _unnumbered(self, reply: ScriptedReply, number: int, body: Json) -> Iterator[Json | None]:
        for kind in ("response.created", "response.in_progress"):
            yield {"type": kind, "response": self._response(number, body, "in_progress", [])}
        items = self._items(reply, number, body)
        for index, item in enumerate(items):
            yield from self._item_events(index, item)
            if item["type"] == "message":
                yield None
        status = reply.reason or "completed"
        if not reply.short:
            yield {"type": f"response.{status}", "response": self._response(number, body, status, items)}

    def _item_events(self, index: int, item: Json) -> Iterator[Json]:
        of: Json = {"output_index": index, "item_id": item["id"]}
        empty: Json = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}
        started = {**item, **empty.get(item["type"], {}), "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": started}
        if item["type"] == "message":
            [part] = item["content"]
            of["content_index"] = 0
            yield {"type": "response.content_part.added", **of, "part": {**part, "text": ""}}
            for piece in _pieces(part["text"]):
                yield {"type": "response.output_text.delta", **of, "delta": piece, "logprobs": []}
            yield {"type": "response.output_text.done", **of, "text": part["text"], "logprobs": []}
            yield {"type": "response.content_part.done", **of, "part": part}
        elif item["type"] == "function_call":
            for piece in _pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **of, "delta": piece}
            whole = {"name": item["name"], "arguments": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **of, **whole}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}

    def _items(self, reply: ScriptedReply, number: int, body: Json) -> list[Json]:
        items: list[Json] = []
        if reply.thinking:
            summary = [{"type": "summary_text", "text": reply.thinking}]
            items.append({"id": f"rs_{number}", "type": "reasoning", "summary": summary})
            if "reasoning.encrypted_content" in body.get("include", ()):
                items[-1]["encrypted_content"] = "c2VjcmV0"
        if reply.text:
            content: list[Json] = [{"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}]
            message = {"type": "message", "role": "assistant", "status": "completed", "content": content}
            items.append({"id": f"msg_{number}", **message})
        items += [dict(item) for item in reply.also]
        for id, call in _with_ids(reply, number, "call"):
            fields = {"call_id": id, "name": call.name, "arguments": call.arguments, "status": "completed"}
            items.append({"id": f"fc_{id}", "type": "function_call", **fields})
        return items

    def _response(self, number: int, body: Json, status: str, output: list[Json]) -> Json:
        details = {"input_tokens_details": {"cached_tokens": 80}, "output_tokens_details": {"reasoning_tokens": 0}}
        usage = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110, **details}
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1_767_225_600,
            "status": status,
            "model": body["model"],
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": usage if status == "completed" else None,
            "error": {"code": "server_error", "message": "It did not work."} if status == "failed" else None,
            **({"previous_response_id": before} if (before := body.get("previous_response_id")) else {}),
        }


class _Anthropic:
    trailer: str = ""

    def faults(self, body: Json) -> list[str]:
        wrong = [] if isinstance(body.get("max_tokens"), int) else ["max_tokens: field required"]
        roles = frozenset({"user", "assistant"})
        marks = json.dumps(body).count('"cache_control"')
        if marks > 4:
            wrong.append(f"a maximum of 4 blocks with cache_control may be provided, found {marks}")
        top_level = {"cache_control": body.get("cache_control")}
        lifetimes = [
            _ttl(mark) for mark in _marks([body.get("tools"), body.get("system"), body.get("messages"), top_level])
        ]
        if lifetimes != sorted(lifetimes):
            wrong.append(f"a ttl='1h' cache_control block must not come after a ttl='5m' one, found {lifetimes}")
        return wrong or _faults("anthropic", body, body.get("messages"), roles, lambda tool: tool["input_schema"])

    def error(self, kind: str, message: str) -> Json:
        named = {"server_error": "api_error"}.get(kind, kind)
        return {"type": "error", "error": {"type": named, "message": message}, "request_id": "req_1"}

    def whole(self, reply: ScriptedReply, number: int, body: Json) -> Json:
        blocks = [block for block, _ in self._blocks(reply, number)]
        return self._message(number, body, blocks, self._reason(reply))

    def events(self, reply: ScriptedReply, number: int, body: Json) -> Iterator[Json | None]:
        yield {"type": "message_start", "message": self._message(number, body, [], None)}
        yield {"type": "ping"}
        for index, (block, written) in enumerate(self._blocks(reply, number)):
            yield from self._block_events(index, block, written)
            if block["type"] == "text":
                yield None
        if not reply.short:
            delta = {"stop_reason": self._reason(reply), "stop_sequence": None}
            yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}}
            yield {"type": "message_stop"}

    def _block_events(self, index: int, block: Json, written: str) -> Iterator[Json]:
        empty, kind, key = _BLOCKS.get(block["type"], ({}, "", ""))
        yield {"type": "content_block_start", "index": index, "content_block": {**block, **empty}}
        deltas: list[Json] = [{"type": kind, key: piece} for piece in ["", *_pieces(written)] if kind]
        if "signature" in block:
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}

    def _blocks(self, reply: ScriptedReply, number: int) -> list[tuple[Json, str]]:
        """Each block of a reply, with its raw text for streaming."""
        blocks: list[tuple[Json, str]] = []
        if reply.thinking:
            thinking = {"type": "thinking", "thinking": reply.thinking, "signature": f"sig-{number}"}
            blocks.append((thinking, reply.thinking))
        if reply.text:
            blocks.append(({"type": "text", "text": reply.text, "citations": None}, reply.text))
        blocks += [(dict(block), "") for block in reply.also]
        for id, call in _with_ids(reply, number, "toolu"):
            try:
                parsed = json.loads(call.arguments)
            except ValueError:
                parsed = {}
            blocks.append(({"type": "tool_use", "id": id, "name": call.name, "input": parsed}, call.arguments))
        return blocks

    def _message(self, number: int, body: Json, content: list[Json], reason: str | None) -> Json:
        usage = {
            "input_tokens": 20,
            "cache_read_input_tokens": 80,
            "cache_creation_input_tokens": 0,
            "output_tokens": 10 if reason else 1,
        }
        end = {"stop_reason": reason, "stop_sequence": None, "usage": usage}
        named = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"]}
        return {**named, "content": content, **end}

    def _reason(self, reply: ScriptedReply) -> str:
        return reply.reason or ("tool_use" if reply.calls else "end_turn")


def _thread_of(body: Json) -> str:
    """The id of the response or conversation that a request continues."""
    given: Any = body.get("previous_response_id") or body.get("conversation") or ""
    return given if isinstance(given, str) else given["id"]


def _as_items(given: Any) -> list[Json]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _marks(value: Any) -> Iterator[Json]:
    """The cache marks in a part of a request, in order."""
    if isinstance(value, dict):
        mapping = cast(Json, value)
        yield from _marks([inner for name, inner in mapping.items() if name != "cache_control"])
        if mapping.get("cache_control"):
            yield mapping["cache_control"]
    elif isinstance(value, list):
        for inner in cast(list[Any], value):
            yield from _marks(inner)


def _ttl(mark: Json) -> str:
    """The lifetime of a mark, sorted as allowed: an hour before five minutes."""
    return mark.get("ttl", "5m")


_BLOCKS: dict[str, tuple[Json, str, str]] = {
    "text": ({"text": ""}, "text_delta", "text"),
    "thinking": ({"thinking": "", "signature": ""}, "thinking_delta", "thinking"),
    "tool_use": ({"input": {}}, "input_json_delta", "partial_json"),
}
"""Empty start and delta of each kind of block; other kinds are sent at once."""

_FORMATS: dict[str, _Protocol] = {"openai": _Chat(), "responses": _Responses(), "anthropic": _Anthropic()}

_PROTOCOLS = {
    "/v1/chat/completions": _FORMATS["openai"],
    "/v1/responses": _FORMATS["responses"],
    "/v1/messages": _FORMATS["anthropic"],
}

# On cloud providers the URL has the model of Anthropic, and whether to stream.
_HOSTED = re.compile(r".*/models?/([^/:]+)[/:](invoke|rawPredict|streamRawPredict)")

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def _faults(
    format: str,
    body: Json,
    messages: Any,
    roles: frozenset[str] | None,
    schema: Callable[[Json], Json],
) -> list[str]:
    """Errors that every protocol finds in a request, then those of this one."""
    if not isinstance(body.get("model"), str):
        return ["model: field required"]
    if not isinstance(body.get("stream", False), bool):
        return ["stream: a boolean"]
    if not isinstance(messages, list) or not messages:
        return ["messages: at least one is required"]
    listed = cast(list[Json], messages)
    wrong = [f"messages: no role {wire.get('role')!r}" for wire in listed if roles and wire.get("role") not in roles]
    names = Counter(_tool_name(tool) for tool in body.get("tools", ()))
    wrong += [f"tools: {name!r} is not a name" for name in names if not _NAME.fullmatch(name)]
    wrong += [f"tools: {name!r} is listed twice" for name, count in names.items() if count > 1]
    for tool in body.get("tools", ()):
        if tool.get("type", "function") == "function" and schema(tool).get("type") != "object":
            wrong.append(f"tools: the schema of {_tool_name(tool)!r} is not of type object")
    return wrong or faults(format, listed)


def _tool_name(tool: Mapping[str, Any]) -> str:
    """Built-in tools of the provider are named by their type."""
    return tool.get("name") or tool.get("function", {}).get("name") or tool["type"]


def _with_ids(reply: ScriptedReply, number: int, prefix: str) -> list[tuple[str, ScriptedCall]]:
    return [(call.id or f"{prefix}_{number}_{place}", call) for place, call in enumerate(reply.calls)]
