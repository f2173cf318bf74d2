"""An embeddings endpoint on localhost with scripted responses that records its requests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from loopback import QuietHandler, serve_handler

DIMENSIONS = 8


def toy_rows(texts: Sequence[str]) -> list[list[float]]:
    """Meaningless vectors, equal for equal texts."""
    return [[byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]] for text in texts]


@dataclass
class EmbeddingServer:
    url: str
    scripted: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Statuses and bodies of the first responses; later ones are correct."""
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    keys: list[str | None] = field(default_factory=list[str | None])

    def answer(self, body: bytes, key: str | None) -> tuple[int, str]:
        request = json.loads(body)
        self.requests.append(request)
        self.keys.append(key)
        if self.scripted:
            return self.scripted.pop(0)
        rows = [{"index": index, "embedding": row} for index, row in enumerate(toy_rows(request["input"]))]
        return 200, json.dumps({"data": rows[::-1]})  # the order of rows is not guaranteed


@contextmanager
def embedding_server() -> Generator[EmbeddingServer]:
    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 -- as http.server calls it
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, text = server.answer(body, self.headers["Authorization"])
            if self.path != "/v1/embeddings":
                status = 404
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = EmbeddingServer(url="")
    with serve_handler(Handler) as url:
        server.url = url
        yield server
