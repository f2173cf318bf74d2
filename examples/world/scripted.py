"""A scripted model on a local server with the chat completions API.

Ids in scripted calls are looked up in the request, so a script only runs to its end if the prompts contain what a model
needs to know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from inmind.errors import ModelFailed

Json = dict[str, Any]


class Missing(LookupError):
    """The prompt does not contain what the next scripted reply needs."""


@dataclass(frozen=True)
class Request:
    """A request, and searches in its text."""

    body: Json

    @cached_property
    def text(self) -> str:
        return "\n".join(_texts(self.body["messages"]))

    def id_of(self, name: str) -> str:
        """Return the last id of a thing in the prompt, as memory lists it or as a tool returned it."""
        quoted = json.dumps(name, ensure_ascii=False)
        return self.find(rf'(?:"id": "(?=[^"]+", "\w+": {re.escape(quoted)})|{re.escape(quoted)} \()([^")]+)')

    def find(self, pattern: str) -> str:
        """Return the last match: a group of the pattern, or all of it."""
        matches = [match[match.re.groups] for match in re.finditer(pattern, self.text)]
        if not matches:
            raise Missing(f"the prompt has no match of {pattern}")
        return matches[-1]


Move = Callable[[Request], Json]
"""Returns the assistant message for a request."""


def says(text: str | Callable[[Request], str]) -> Move:
    """A reply without tool calls; a function gets the request and returns the text."""
    return lambda request: {"role": "assistant", "content": text(request) if callable(text) else text}


def calls(tool: str, **arguments: Any) -> Move:
    """A tool call. Arguments that are functions get the request."""

    def move(request: Request) -> Json:
        known = {name: value(request) if callable(value) else value for name, value in arguments.items()}
        function = {"name": tool, "arguments": json.dumps(known, ensure_ascii=False)}
        return {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": function}]}

    return move


def id_of(name: str) -> Callable[[Request], str]:
    return lambda request: request.id_of(name)


def match(pattern: str) -> Callable[[Request], str]:
    return lambda request: request.find(pattern)


@contextmanager
def serve_script(script: Sequence[Move]) -> Generator[str]:
    """Serve the replies one after another, at the returned address.

    All of them have to be requested.
    """
    moves = enumerate(script, start=1)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(moves)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()
    if remaining := sum(1 for _ in moves):
        raise ModelFailed(reason=f"{remaining} of its {len(script)} moves were not requested")


def _handler(moves: Iterator[tuple[int, Move]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = _answer(moves, Request(body))
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    return Handler


def _answer(moves: Iterator[tuple[int, Move]], request: Request) -> tuple[int, Json]:
    number, move = next(moves, (0, None))
    if move is None:
        return 422, {"error": {"message": "the script has no more moves"}}
    try:
        message = move(request)
    except Missing as error:
        return 422, {"error": {"message": f"move {number}: {error}"}}
    tool_calls = [
        {"id": f"call_{number}_{place}", **call} for place, call in enumerate(message.get("tool_calls", ()), 1)
    ]
    message = {**message, "tool_calls": tool_calls} if tool_calls else message
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tool_calls else "stop"}
    return 200, {"id": f"chatcmpl-{number:016}", "object": "chat.completion", "choices": [choice]}


def _texts(messages: Sequence[Json]) -> Iterator[str]:
    for message in messages:
        content: str | list[Json] | None = message.get("content")
        yield from [content] if isinstance(content, str) else (part.get("text", "") for part in content or ())
