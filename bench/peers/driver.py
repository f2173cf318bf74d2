"""The process of one search system: runs commands from JSON lines and times them.

It runs in the environment of the peers. The time is taken around the system's call, so the pipe does not count; the
memory is that of this process, which holds only the system. Network connections are blocked: telemetry or a model
download fails instead of affecting the measurement.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Any, NoReturn

from bench.peers.systems import SYSTEMS, SearchSystem
from bench.peers.vectors import load_embedder
from bench.question_sets import ChatSession, Turn


class Driver:
    def __init__(self, name: str, embedder: str, cache_path: str) -> None:
        self._create = SYSTEMS[name]
        self._embedder = load_embedder(embedder, cache_path=Path(cache_path) if cache_path else None)
        self._system: SearchSystem | None = None
        self._folder = Path()

    @property
    def system(self) -> SearchSystem:
        if self._system is None:
            raise RuntimeError("no system is open")
        return self._system

    def open(self, *, folder: str) -> None:
        self.close()
        self._folder = Path(folder)
        self._folder.mkdir(parents=True)
        self._system = self._create(self._folder, self._embedder)

    def fill(self, *, chat_sessions: list[Any]) -> None:
        self.system.fill([_parse_session(*chat_session) for chat_session in chat_sessions])

    def wait_until_ready(self) -> None:
        self.system.wait_until_ready()
        gc.collect()

    def search(self, *, query: str, limit: int, at: str) -> list[int]:
        return self.system.search(query, limit, datetime.fromisoformat(at))

    def add(self, *, text: str) -> None:
        self.system.add(text)

    def close(self) -> None:
        if self._system:
            self._system.close()

    def measure_size(self) -> dict[str, int]:
        """Return the bytes in memory and on disk."""
        files = (path.stat().st_size for path in self._folder.rglob("*") if path.is_file())
        return {"memory": _resident(), "disk": sum(files)}


def _parse_session(at: str, turns: list[list[str]]) -> ChatSession:
    return ChatSession(datetime.fromisoformat(at), [Turn(role, text, name) for role, text, name in turns])


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _block_network() -> None:
    def refuse(_: socket.socket, address: object) -> NoReturn:
        raise ConnectionRefusedError(f"network is blocked in benchmarks: {address}")

    socket.socket.connect = refuse
    socket.socket.connect_ex = refuse


def main() -> None:
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # output of the peers must not mix with the responses
    _block_network()
    driver = Driver(*sys.argv[1:])
    for line in sys.stdin:
        request = json.loads(line)
        call: Callable[..., Any] = getattr(driver, request.pop("do"))
        started = perf_counter()
        try:
            response = {"answer": call(**request), "seconds": perf_counter() - started}
        except Exception:
            response = {"error": traceback.format_exc()}
        print(json.dumps(response), file=output, flush=True)
    driver.close()


if __name__ == "__main__":
    main()
