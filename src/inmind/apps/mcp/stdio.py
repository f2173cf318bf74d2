"""MCP over stdin and stdout, for a client that started this process.

Stdout carries only the protocol: other prints go to stderr. The SDK's own transport is not used (ADR 0071): it reads in
a thread that cannot be stopped while stdin is open, does not answer an invalid line, on which the client would wait
forever, and has no limits. A disconnected client is no error; its last request is still executed.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import sys
import termios
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import ObjectSendStream
from mcp.server import Server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
"""Maximum size of one message."""

MAX_PENDING_BYTES = 8 * MAX_MESSAGE_BYTES
"""Maximum size of all unanswered requests; reading pauses above it."""
MIN_REQUEST_BYTES = 64 * 1024
"""Minimum size that a request counts for: it costs more than its bytes."""

DRAIN_SECONDS = 5.0
"""Time to read what was in the pipe at shutdown; later input is ignored."""

_CHUNK_BYTES = 64 * 1024
_HEAD_BYTES = 1_024
"""Bytes of an invalid message that are searched for its id."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+')


async def serve_stdio(server: Server[Any], wait_for_shutdown: Callable[[], Awaitable[None]]) -> None:
    """Serve until the client closes stdin, disconnects, or the server shuts down."""
    with _redirect_to_stderr(sys.stdout.fileno()) as stdout:
        stream = _StdioStream(sys.stdin.fileno(), stdout)

        async def stop() -> None:
            await wait_for_shutdown()
            await stream.drain()

        async with anyio.create_task_group() as group:
            group.start_soon(stream.read)
            group.start_soon(stop)
            await server.run(stream.messages, stream, server.create_initialization_options())
            group.cancel_scope.cancel()


class InvalidMessage(Exception):
    """A line that is not a message. `id` is that of the intended request, if it can be read."""

    def __init__(self, code: int, why: str, id: RequestId | None) -> None:
        super().__init__(why)
        self.code, self.id = code, id


def parse_message(line: bytes) -> JSONRPCMessage:
    if len(line) > MAX_MESSAGE_BYTES:
        raise InvalidMessage(PARSE_ERROR, f"message too long: at most {MAX_MESSAGE_BYTES} bytes", find_id(line))
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        if first["type"] == "json_invalid":
            raise InvalidMessage(PARSE_ERROR, first["msg"], find_id(line)) from error
        raise InvalidMessage(INVALID_REQUEST, "not a JSON-RPC message", find_id(line)) from error


def find_id(line: bytes) -> RequestId | None:
    """Request id in the first bytes of a line.

    None if there is none, or the line is a response.
    """
    words = _TOKEN.findall(line[:_HEAD_BYTES].decode(errors="replace"))
    depth, request_id = 0, None
    for word, colon, value in zip(words, [*words[1:], ""], [*words[2:], "", ""], strict=False):
        depth += (word in ("{", "[")) - (word in ("}", "]"))
        if depth == 1 and colon == ":" and words[0] == "{":
            if word in ('"result"', '"error"'):
                return None
            if word == '"id"' and request_id is None:
                request_id = _parse_id(value)
    return request_id


async def split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Split chunks into lines.

    Lines are cut at MAX_MESSAGE_BYTES + 1 bytes, which marks them as too long.
    """
    line = b""
    async for chunk in chunks:
        first, *others = chunk.split(b"\n")
        line = (line + first)[: MAX_MESSAGE_BYTES + 1]
        for other in others:
            yield line
            line = other
    if line:
        yield line


class _StdioStream(ObjectSendStream[SessionMessage]):
    """Messages of the client, and the stream of messages to it."""

    def __init__(self, input: int, output: int) -> None:
        self._input, self._output = input, output
        self._send, self.messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        self._reading, self._writing = anyio.CancelScope(), anyio.Lock()
        self._is_waiting = False
        """All available input was read and handled."""
        self._remaining: int | None = None
        """Bytes that were in the pipe at shutdown and are not handled yet."""
        self._pending: dict[RequestId, int] = {}
        """Sizes of the unanswered requests."""
        self._freed = anyio.Event()
        self._disconnected = False

    async def read(self) -> None:
        """Forward messages until stdin ends, the client disconnects, or the server stops."""
        with self._send, self._reading:
            async for line in split_lines(self._chunks()):
                if line and not line.isspace():
                    await self._handle_line(line)

    async def drain(self) -> None:
        """Stop reading after what the client has already sent; that is still answered."""
        self._remaining = _bytes_available(self._input)
        with anyio.move_on_after(DRAIN_SECONDS):
            while not self._is_waiting or self._remaining > 0:
                await anyio.sleep(0.01)
        self._reading.cancel()

    async def send(self, item: SessionMessage) -> None:
        """Write a message. A started answer is completed even during shutdown."""
        message = item.message
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        with anyio.CancelScope(shield=True):
            async with self._writing:
                await anyio.to_thread.run_sync(self._write, line)
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._release(message.id)
        if self._disconnected:
            self._reading.cancel()

    async def aclose(self) -> None:
        """No-op: stdout is not closed here."""

    async def send_eof(self) -> None:
        """No-op: stdout is not closed here."""

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            self._is_waiting = True
            if self._remaining is not None and self._remaining <= 0:
                await anyio.sleep_forever()  # until `drain` stops this
            with suppress(PermissionError):  # not a pipe: a file can always be read
                await anyio.wait_readable(self._input)
            self._is_waiting = False
            chunk = os.read(self._input, _CHUNK_BYTES)
            if not chunk:
                return
            yield chunk
            if self._remaining is not None:
                self._remaining -= len(chunk)

    async def _handle_line(self, line: bytes) -> None:
        try:
            message = parse_message(line)
        except InvalidMessage as invalid:
            with suppress(OSError):
                print(f"inmind: invalid message: {invalid}", file=sys.stderr, flush=True)
            error = ErrorData(code=invalid.code, message=str(invalid))
            await self.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=invalid.id, error=error)))
            return
        if isinstance(message, JSONRPCRequest):
            weight = max(len(line), MIN_REQUEST_BYTES)
            while self._pending and sum(self._pending.values()) + weight > MAX_PENDING_BYTES:
                self._freed = anyio.Event()
                await self._freed.wait()
            self._pending[message.id] = weight
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._release((message.params or {}).get("requestId"))  # a cancelled request gets no answer
        await self._send.send(SessionMessage(message))

    def _release(self, id: object) -> None:
        if isinstance(id, int | str):
            self._pending.pop(id, None)
            self._freed.set()

    def _write(self, line: bytes) -> None:
        try:
            while line and not self._disconnected:
                line = line[os.write(self._output, line) :]
        except OSError:
            self._disconnected = True


@contextmanager
def _redirect_to_stderr(descriptor: int) -> Generator[int]:
    """Yield a private duplicate of the descriptor; writes to the original go to stderr."""
    sys.stdout.flush()
    private = os.dup(descriptor)
    target = (
        os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else os.dup(sys.stderr.fileno())
    )  # None if stderr is closed
    os.dup2(target, descriptor)
    os.close(target)
    try:
        yield private
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(private, descriptor)
        os.close(private)


def _bytes_available(pipe: int) -> int:
    count = array("i", [0])
    with suppress(OSError):  # not a pipe: a file has reached its end by now
        fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def _parse_id(value: str) -> RequestId | None:
    try:
        parsed = json.loads(value)
    except ValueError:
        return None
    return parsed if isinstance(parsed, int | str) and not isinstance(parsed, bool) else None
