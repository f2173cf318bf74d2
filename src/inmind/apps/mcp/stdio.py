"""MCP over stdin and stdout, for a client that started this process.

Stdout carries only the protocol: other prints go to stderr. Lines are read in a daemon thread, because a read from a
pipe cannot be cancelled and the server must be able to stop while stdin is open. Every line gets an answer, even an
invalid one: otherwise the client would wait forever. A disconnected client is no error; its last request is still
executed.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import select
import sys
import termios
import threading
from array import array
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import ObjectSendStream
from anyio.from_thread import BlockingPortal
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
        async with BlockingPortal() as portal, anyio.create_task_group() as group:
            pending = _PendingRequests()
            output = _OutputWriter(stdout, pending)
            input = _InputReader(portal, output, pending)
            output.on_disconnect = input.close

            async def stop() -> None:
                await wait_for_shutdown()
                await input.drain()

            group.start_soon(stop)
            await server.run(input.messages, output, server.create_initialization_options())
            group.cancel_scope.cancel()
            await portal.stop(cancel_remaining=True)


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


def split_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Split chunks into lines.

    Lines are cut at MAX_MESSAGE_BYTES + 1 bytes, which marks them as too long.
    """
    line = b""
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        line = (line + first)[: MAX_MESSAGE_BYTES + 1]
        for other in others:
            yield line
            line = other
    if line:
        yield line


class _PendingRequests:
    """Sizes of the unanswered requests."""

    def __init__(self) -> None:
        self._sizes: dict[RequestId, int] = {}
        self._freed = anyio.Event()

    async def reserve(self, id: RequestId, size: int) -> None:
        weight = max(size, MIN_REQUEST_BYTES)
        while self._sizes and sum(self._sizes.values()) + weight > MAX_PENDING_BYTES:
            self._freed = anyio.Event()
            await self._freed.wait()
        self._sizes[id] = weight

    def release(self, id: object) -> None:
        if isinstance(id, int | str):
            self._sizes.pop(id, None)
            self._freed.set()


class _InputClosed(Exception):
    """Input after the shutdown is ignored, even the rest of a line."""


class _InputReader:
    """Reads messages from stdin until it ends or the server stops."""

    def __init__(self, portal: BlockingPortal, output: _OutputWriter, pending: _PendingRequests) -> None:
        self._portal, self._output, self._pending = portal, output, pending
        self._is_waiting = False
        """All available input was read; the next read would block."""
        self._remaining: int | None = None
        """Bytes that were in the pipe at shutdown and are not read yet."""
        self._send, self.messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        threading.Thread(target=self._read, args=(sys.stdin.fileno(),), name="inmind-stdin", daemon=True).start()

    async def drain(self) -> None:
        """Stop reading after what the client has already sent; that is still answered."""
        self._remaining = _bytes_available(sys.stdin.fileno())
        with anyio.move_on_after(DRAIN_SECONDS):
            while not self._is_waiting:
                await anyio.sleep(0.01)
        self.close()

    def close(self) -> None:
        self._send.close()

    def _chunks(self, descriptor: int) -> Iterator[bytes]:
        while (remaining := self._remaining) is None or remaining > 0:
            self._is_waiting = not select.select([descriptor], [], [], 0)[0]
            chunk = os.read(descriptor, _CHUNK_BYTES)
            self._is_waiting = False
            if not chunk:
                return
            if remaining is not None:
                self._remaining = remaining - len(chunk)
            yield chunk
        self._is_waiting = True
        raise _InputClosed

    def _read(self, descriptor: int) -> None:
        try:
            for line in split_lines(self._chunks(descriptor)):
                if line and not line.isspace():
                    self._handle_line(line)
            self._portal.call(self._send.aclose)
        except (_InputClosed, RuntimeError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # the server has stopped

    def _handle_line(self, line: bytes) -> None:
        try:
            message = parse_message(line)
        except InvalidMessage as invalid:
            with suppress(OSError):
                print(f"inmind: invalid message: {invalid}", file=sys.stderr, flush=True)
            error = ErrorData(code=invalid.code, message=str(invalid))
            self._portal.call(self._output.send, _error_message(invalid.id, error))
        else:
            self._portal.call(self._forward, message, len(line))

    async def _forward(self, message: JSONRPCMessage, size: int) -> None:
        if isinstance(message, JSONRPCRequest):
            await self._pending.reserve(message.id, size)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._pending.release((message.params or {}).get("requestId"))  # a cancelled request gets no answer
        await self._send.send(SessionMessage(message))


class _OutputWriter(ObjectSendStream[SessionMessage]):
    """Writes messages to stdout, one per line.

    A started answer is completed even during shutdown.
    """

    on_disconnect: Callable[[], None]

    def __init__(self, descriptor: int, pending: _PendingRequests) -> None:
        self._descriptor, self._pending = descriptor, pending
        self._writing = anyio.Lock()
        self._disconnected = False

    async def send(self, item: SessionMessage) -> None:
        message = item.message
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        with anyio.CancelScope(shield=True):
            async with self._writing:
                await anyio.to_thread.run_sync(self._write, line)
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._pending.release(message.id)
        if self._disconnected:
            self.on_disconnect()

    def _write(self, line: bytes) -> None:
        try:
            while line and not self._disconnected:
                line = line[os.write(self._descriptor, line) :]
        except OSError:
            self._disconnected = True

    async def send_eof(self) -> None:
        """No-op: stdout is not closed here."""

    async def aclose(self) -> None:
        """No-op: stdout is not closed here."""


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


def _error_message(id: RequestId | None, error: ErrorData) -> SessionMessage:
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=error))


def _parse_id(value: str) -> RequestId | None:
    try:
        parsed = json.loads(value)
    except ValueError:
        return None
    return parsed if isinstance(parsed, int | str) and not isinstance(parsed, bool) else None
