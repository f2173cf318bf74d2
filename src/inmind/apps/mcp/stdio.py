"""Over stdin and stdout, for a client that has started us.

Stdout is for the protocol alone: whatever else prints goes to stderr. Lines are read by a thread that nobody waits for,
since a read from a pipe cannot be called off, and we have to leave while the client keeps stdin open. Every line is
answered for: a client that gets no answer to what we could not read would wait for one without end. A client that has
gone is not an error; what it asked last is still done.
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

MOST_BYTES = 4 * 1024 * 1024
"""Of one message."""

MOST_AT_ONCE = 8 * MOST_BYTES
"""Of requests that are not answered yet; the next one is read when there is room."""
LEAST_EACH = 64 * 1024
"""What a request counts for at least: it costs more than its bytes."""

LAST_SECONDS = 5.0
"""For what was in the pipe when we were told to leave; what a client goes on sending is not taken."""

_AT_A_TIME = 64 * 1024
_HEAD = 1_024
"""Bytes of a broken message that are searched for its id."""

_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s"{}\[\]:,]+')


async def serve_stdio(server: Server[Any], until_told: Callable[[], Awaitable[None]]) -> None:
    """Answer until the client closes stdin, or is gone, or we are told to leave."""
    with _kept_from_others(sys.stdout.fileno()) as stdout:
        async with BlockingPortal() as portal, anyio.create_task_group() as group:
            room = _Room()
            answers = _Answers(stdout, room)
            lines = _Lines(portal, answers, room)
            answers.when_gone = lines.close

            async def leave() -> None:
                await until_told()
                await lines.end()

            group.start_soon(leave)
            await server.run(lines.messages, answers, server.create_initialization_options())
            group.cancel_scope.cancel()
            await portal.stop(cancel_remaining=True)


class Unreadable(Exception):
    """A line that is no message. `id`: of the request that it was meant to be, where that can be read."""

    def __init__(self, code: int, why: str, id: RequestId | None) -> None:
        super().__init__(why)
        self.code, self.id = code, id


def read_message(line: bytes) -> JSONRPCMessage:
    if len(line) > MOST_BYTES:
        raise Unreadable(PARSE_ERROR, f"a message has at most {MOST_BYTES} bytes", id_in(line))
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        if first["type"] == "json_invalid":
            raise Unreadable(PARSE_ERROR, first["msg"], id_in(line)) from error
        raise Unreadable(INVALID_REQUEST, "no message of the protocol", id_in(line)) from error


def id_in(line: bytes) -> RequestId | None:
    """The id of a request, by the beginning of it; None where it has none there, or is seen to be no request."""
    words = _WORD.findall(line[:_HEAD].decode(errors="replace"))
    depth, found = 0, None
    for word, colon, value in zip(words, [*words[1:], ""], [*words[2:], "", ""], strict=False):
        depth += (word in ("{", "[")) - (word in ("}", "]"))
        if depth == 1 and colon == ":" and words[0] == "{":
            if word in ('"result"', '"error"'):
                return None
            if word == '"id"' and found is None:
                found = _as_id(value)
    return found


def split(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Lines. Of one that is too long so much is kept that it can be seen to be."""
    kept = b""
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        kept = (kept + first)[: MOST_BYTES + 1]
        for other in others:
            yield kept
            kept = other
    if kept:
        yield kept


class _Room:
    """What is asked and not answered yet."""

    def __init__(self) -> None:
        self._asked: dict[RequestId, int] = {}
        self._freed = anyio.Event()

    async def take(self, id: RequestId, size: int) -> None:
        weight = max(size, LEAST_EACH)
        while self._asked and sum(self._asked.values()) + weight > MOST_AT_ONCE:
            self._freed = anyio.Event()
            await self._freed.wait()
        self._asked[id] = weight

    def give_back(self, id: object) -> None:
        if isinstance(id, int | str):
            self._asked.pop(id, None)
            self._freed.set()


class _Left(Exception):
    """What comes now is not for us any more, be it the rest of a line."""


class _Lines:
    """What comes in on stdin, until it ends or we leave."""

    def __init__(self, portal: BlockingPortal, answers: _Answers, room: _Room) -> None:
        self._portal, self._answers, self._room = portal, answers, room
        self._waits = False
        """All that is to be taken has been, and the next read will wait."""
        self._left: int | None = None
        """Bytes that were in the pipe when we were told to leave, and are not taken yet."""
        self._put, self.messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        threading.Thread(target=self._read, args=(sys.stdin.fileno(),), name="inmind-stdin", daemon=True).start()

    async def end(self) -> None:
        """As if the client had closed it, behind what it has sent so far: that is answered too."""
        self._left = _bytes_in(sys.stdin.fileno())
        with anyio.move_on_after(LAST_SECONDS):
            while not self._waits:
                await anyio.sleep(0.01)
        self.close()

    def close(self) -> None:
        self._put.close()

    def _chunks(self, descriptor: int) -> Iterator[bytes]:
        while (left := self._left) is None or left > 0:
            self._waits = not select.select([descriptor], [], [], 0)[0]
            chunk = os.read(descriptor, _AT_A_TIME)
            self._waits = False
            if not chunk:
                return
            if left is not None:
                self._left = left - len(chunk)
            yield chunk
        self._waits = True
        raise _Left

    def _read(self, descriptor: int) -> None:
        try:
            for line in split(self._chunks(descriptor)):
                if line and not line.isspace():
                    self._take(line)
            self._portal.call(self._put.aclose)
        except (_Left, RuntimeError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            return  # nobody listens any more

    def _take(self, line: bytes) -> None:
        try:
            message = read_message(line)
        except Unreadable as unreadable:
            with suppress(OSError):
                print(f"inmind: a message could not be read: {unreadable}", file=sys.stderr, flush=True)
            told = ErrorData(code=unreadable.code, message=str(unreadable))
            self._portal.call(self._answers.send, _error(unreadable.id, told))
        else:
            self._portal.call(self._hand_on, message, len(line))

    async def _hand_on(self, message: JSONRPCMessage, size: int) -> None:
        if isinstance(message, JSONRPCRequest):
            await self._room.take(message.id, size)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._room.give_back((message.params or {}).get("requestId"))  # that one is never answered
        await self._put.send(SessionMessage(message))


class _Answers(ObjectSendStream[SessionMessage]):
    """What goes out on stdout, line by line. An answer that was begun when we left is still given."""

    when_gone: Callable[[], None]

    def __init__(self, descriptor: int, room: _Room) -> None:
        self._descriptor, self._room = descriptor, room
        self._writing = anyio.Lock()
        self._gone = False

    async def send(self, item: SessionMessage) -> None:
        message = item.message
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        with anyio.CancelScope(shield=True):
            async with self._writing:
                await anyio.to_thread.run_sync(self._write, line)
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._room.give_back(message.id)
        if self._gone:
            self.when_gone()

    def _write(self, line: bytes) -> None:
        try:
            while line and not self._gone:
                line = line[os.write(self._descriptor, line) :]
        except OSError:
            self._gone = True

    async def send_eof(self) -> None:
        """It is not ours to close."""

    async def aclose(self) -> None:
        """It is not ours to close."""


@contextmanager
def _kept_from_others(descriptor: int) -> Generator[int]:
    """Another descriptor for the same, while whoever writes to this one writes to stderr."""
    sys.stdout.flush()
    ours = os.dup(descriptor)
    elsewhere = (
        os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else os.dup(sys.stderr.fileno())
    )  # None where it was closed
    os.dup2(elsewhere, descriptor)
    os.close(elsewhere)
    try:
        yield ours
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(ours, descriptor)
        os.close(ours)


def _bytes_in(pipe: int) -> int:
    count = array("i", [0])
    with suppress(OSError):  # it may be no pipe; whatever else it is has told its end by now
        fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def _error(id: RequestId | None, error: ErrorData) -> SessionMessage:
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=error))


def _as_id(value: str) -> RequestId | None:
    try:
        read = json.loads(value)
    except ValueError:
        return None
    return read if isinstance(read, int | str) and not isinstance(read, bool) else None
