"""An embeddings endpoint on the loopback, which answers as it is told and remembers what it was asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

DIMENSIONS = 8


def toy_rows(texts: Sequence[str]) -> list[list[float]]:
    """Vectors that mean nothing, the same for the same text."""
    return [[byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]] for text in texts]


@dataclass
class EmbeddingServer:
    url: str
    scripted: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Statuses and bodies to answer with, one request after the other, before it answers as it should."""
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[str | None] = field(default_factory=list[str | None])

    def answer(self, body: bytes, key: str | None) -> tuple[int, str]:
        request = json.loads(body)
        self.asked.append(request)
        self.keys.append(key)
        if self.scripted:
            return self.scripted.pop(0)
        rows = [{"index": place, "embedding": row} for place, row in enumerate(toy_rows(request["input"]))]
        return 200, json.dumps({"data": rows[::-1]})  # the order of the rows is nobody's promise


@contextmanager
def embedding_server() -> Generator[EmbeddingServer]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, text = server.answer(body, self.headers["Authorization"])
            if self.path != "/v1/embeddings":
                status = 404
            answer = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: a test's output is its own."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server = EmbeddingServer(url=f"http://127.0.0.1:{listening.server_port}/v1")
        thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()
