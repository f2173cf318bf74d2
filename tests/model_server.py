"""A model API on loopback with scripted replies, also broken ones, that records requests."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from loopback import QuietHandler, serve_handler

Json = dict[str, Any]


@dataclass(frozen=True)
class HttpReply:
    """One scripted reply."""

    body: str | bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    promised: int = 0
    """Bytes that Content-Length adds to the real length."""
    gate: Event | None = None
    """Nothing is sent until this is set."""


@dataclass(frozen=True)
class HttpRequest:
    path: str
    body: Json
    headers: Mapping[str, str]


@dataclass
class ModelServer:
    url: str
    script: list[HttpReply] = field(default_factory=list[HttpReply])
    requests: list[HttpRequest] = field(default_factory=list[HttpRequest])

    def will(self, *answers: HttpReply) -> None:
        self.script += answers


def chat(text: str | None = "hello", *, finish_reason: str = "stop", **message: Any) -> HttpReply:
    """A reply of OpenAI."""
    choice = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": finish_reason}
    return HttpReply(json.dumps({"choices": [choice], "usage": {"prompt_tokens": 12, "completion_tokens": 3}}))


def message(*blocks: Json, stop_reason: str = "end_turn") -> HttpReply:
    """A reply of Anthropic."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 2, "output_tokens": 3}
    return HttpReply(json.dumps({"type": "message", "content": blocks, "stop_reason": stop_reason, "usage": usage}))


def fails(status: int, text: str = "not now", **headers: str) -> HttpReply:
    return HttpReply(text, status, {name.replace("_", "-"): value for name, value in headers.items()})


@contextmanager
def model_server() -> Generator[ModelServer]:
    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 -- as http.server calls it
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.requests.append(
                HttpRequest(self.path, json.loads(body), {k.lower(): v for k, v in self.headers.items()})
            )
            reply = server.script.pop(0)
            content = reply.body.encode() if isinstance(reply.body, str) else reply.body
            if reply.gate:
                reply.gate.wait(10)
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content) + reply.promised))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                """The client has disconnected, as some tests do."""

    server = ModelServer(url="")
    with serve_handler(Handler) as url:
        server.url = url
        yield server
