"""A model whose moves are written down, behind a server on the loopback that speaks chat completions.

It cannot think, but it can read: an id that a move gives to a tool is looked up in what it was sent. So a script only
plays to its end where the prompts really said what a model would have had to know.
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
    """A prompt does not say what the next move needs."""


@dataclass(frozen=True)
class Sent:
    """A request, as somebody reads it who reads everything."""

    body: Json

    @cached_property
    def text(self) -> str:
        return "\n".join(_texts(self.body["messages"]))

    def id_of(self, name: str) -> str:
        """By which id a thing goes: as memory lists it, or as a tool has answered with it; the last word counts."""
        said = json.dumps(name, ensure_ascii=False)
        return self.find(rf'(?:"id": "(?=[^"]+", "\w+": {re.escape(said)})|{re.escape(said)} \()([^")]+)')

    def find(self, pattern: str) -> str:
        """The last thing that fits: a group of the pattern, or all of it."""
        found = [match[match.re.groups] for match in re.finditer(pattern, self.text)]
        if not found:
            raise Missing(f"the prompt says nothing like {pattern}")
        return found[-1]


Move = Callable[[Sent], Json]
"""What the model answers to a request: a message of an assistant."""


def says(text: str | Callable[[Sent], str]) -> Move:
    """A reply without calls; a function of what the model was sent makes one."""
    return lambda sent: {"role": "assistant", "content": text(sent) if callable(text) else text}


def calls(tool: str, **arguments: Any) -> Move:
    """A call of a tool. Arguments that are functions are asked, with what the model was sent."""

    def move(sent: Sent) -> Json:
        known = {name: value(sent) if callable(value) else value for name, value in arguments.items()}
        function = {"name": tool, "arguments": json.dumps(known, ensure_ascii=False)}
        return {"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": function}]}

    return move


def id_of(name: str) -> Callable[[Sent], str]:
    return lambda sent: sent.id_of(name)


def found(pattern: str) -> Callable[[Sent], str]:
    return lambda sent: sent.find(pattern)


@contextmanager
def scripted(script: Sequence[Move]) -> Generator[str]:
    """Serves the moves one after another, at the address that this answers with; all of them have to be asked for."""
    moves = enumerate(script, start=1)
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(moves)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()
    if left := sum(1 for _ in moves):
        raise ModelFailed(reason=f"{left} of its {len(script)} moves were never asked for")


def _handler(moves: Iterator[tuple[int, Move]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = _answer(moves, Sent(body))
            said = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the story is told elsewhere."""

    return Handler


def _answer(moves: Iterator[tuple[int, Move]], sent: Sent) -> tuple[int, Json]:
    number, move = next(moves, (0, None))
    if move is None:
        return 422, {"error": {"message": "the script has no move left"}}
    try:
        message = move(sent)
    except Missing as error:
        return 422, {"error": {"message": f"move {number}: {error}"}}
    asked = [{"id": f"call_{number}_{place}", **call} for place, call in enumerate(message.get("tool_calls", ()), 1)]
    message = {**message, "tool_calls": asked} if asked else message
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if asked else "stop"}
    return 200, {"id": f"chatcmpl-{number:016}", "object": "chat.completion", "choices": [choice]}


def _texts(messages: Sequence[Json]) -> Iterator[str]:
    for message in messages:
        content: str | list[Json] | None = message.get("content")
        yield from [content] if isinstance(content, str) else (part.get("text", "") for part in content or ())
