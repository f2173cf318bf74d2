"""The other end of `process.py`: one finder, told in JSON lines what to do, and timed where the work is done.

It runs in the environment that the peers are installed in. Time is taken around the finder's own call, so that no pipe
counts; memory is that of this process, which holds nothing beside the finder. No connection leaves it: whoever would
phone home, or fetch a model, fails here instead of being measured by it.
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

from bench.peers.systems import FINDERS, Finder
from bench.peers.vectors import embedder
from bench.question_sets import Sitting, Turn


class Driver:
    def __init__(self, name: str, embedding: str, kept: str) -> None:
        self._make = FINDERS[name]
        self._embedder = embedder(embedding, kept=Path(kept) if kept else None)
        self._finder: Finder | None = None
        self._folder = Path()

    @property
    def finder(self) -> Finder:
        if self._finder is None:
            raise RuntimeError("nothing is open yet")
        return self._finder

    def open(self, *, folder: str) -> None:
        self.close()
        self._folder = Path(folder)
        self._folder.mkdir(parents=True)
        self._finder = self._make(self._folder, self._embedder)

    def fill(self, *, sittings: list[Any]) -> None:
        self.finder.fill([_sitting(*each) for each in sittings])

    def ready(self) -> None:
        self.finder.ready()
        gc.collect()

    def search(self, *, query: str, most: int, at: str) -> list[int]:
        return self.finder.search(query, most, datetime.fromisoformat(at))

    def add(self, *, text: str) -> None:
        self.finder.add(text)

    def close(self) -> None:
        if self._finder:
            self._finder.close()

    def weigh(self) -> dict[str, int]:
        """Bytes in memory and on disk."""
        files = (path.stat().st_size for path in self._folder.rglob("*") if path.is_file())
        return {"memory": _resident(), "disk": sum(files)}


def _sitting(at: str, turns: list[list[str]]) -> Sitting:
    return Sitting(datetime.fromisoformat(at), [Turn(role, text, name) for role, text, name in turns])


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _stay_at_home() -> None:
    def refuse(_: socket.socket, address: object) -> NoReturn:
        raise ConnectionRefusedError(f"nothing is reached from a benchmark: {address}")

    socket.socket.connect = refuse
    socket.socket.connect_ex = refuse


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what peers print must not stand between the answers
    _stay_at_home()
    driver = Driver(*sys.argv[1:])
    for line in sys.stdin:
        asked = json.loads(line)
        call: Callable[..., Any] = getattr(driver, asked.pop("do"))
        begun = perf_counter()
        try:
            answer = {"answer": call(**asked), "seconds": perf_counter() - begun}
        except Exception:
            answer = {"error": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)
    driver.close()


if __name__ == "__main__":
    main()
