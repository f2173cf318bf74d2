"""Time of `import inmind`, and the packages that it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.table import Row, Table
from bench.timing import TimedCall, Timings, format_duration

MAX_IMPORT_SECONDS = 0.120
MAX_FIRST_TURN_SECONDS = 0.200
ALLOWED_PACKAGES = {"apsw"}
"""The required dependencies."""

_SAMPLES = 40
_SOURCE = Path(__file__).parents[1] / "src"


def run() -> list[Table]:
    timings = Timings()
    with TemporaryDirectory() as folder:
        environment = _environment(Path(folder))
        timed_calls = {name: _start_interpreter(code, environment) for name, code in _PROGRAMS.items()}
        timings.run(timed_calls, repetitions=1)  # compiles everything once, as installing a package does
        timings.samples.clear()
        timings.run(timed_calls, repetitions=_SAMPLES)
        foreign = _imported_packages(_IMPORT, environment) - _imported_packages("pass", environment)
    import_seconds = timings.median("inmind") - timings.median("bare")
    first_turn_seconds = timings.median("first turn") - timings.median("bare")
    extra = sorted(foreign - {"inmind", *sys.stdlib_module_names})
    return [
        Table(
            "from inmind import Memory, in a fresh interpreter",
            [
                Row(
                    what="from inmind import Memory, less an interpreter that does nothing",
                    measured=f"{format_duration(import_seconds)} "
                    f"({format_duration(timings.median('inmind'))} - {format_duration(timings.median('bare'))})",
                    bar=f"<= {format_duration(MAX_IMPORT_SECONDS)}",
                    met=import_seconds <= MAX_IMPORT_SECONDS,
                    figures={
                        "seconds": import_seconds,
                        "inmind": timings.median("inmind"),
                        "bare": timings.median("bare"),
                    },
                ),
                Row(
                    what="  and a first turn: open, prepare, record",
                    measured=format_duration(first_turn_seconds),
                    bar=f"<= {format_duration(MAX_FIRST_TURN_SECONDS)}",
                    met=first_turn_seconds <= MAX_FIRST_TURN_SECONDS,
                    figures={"seconds": first_turn_seconds},
                ),
                Row(
                    what="modules of other packages that it imports",
                    measured=", ".join(extra) or "none",
                    bar=f"only {', '.join(sorted(ALLOWED_PACKAGES))}",
                    met=set(extra) <= ALLOWED_PACKAGES,
                    figures={"modules": ", ".join(extra)},
                ),
            ],
            (
                "Compiled beforehand, into a separate folder. Late imports are part of the first turn. "
                "Medians, interleaved.",
            ),
        )
    ]


_IMPORT = "from inmind import Memory"
"""Names are loaded on first use, and nearly every program uses this one."""

_FIRST_TURN = """
import os
from inmind import Memory
with Memory.open() as memory:
    session = memory.session(f"bench-{os.getpid()}")
    session.prepare([{"role": "user", "content": "Hello."}])
    session.record({"role": "assistant", "content": "Hello!"})
"""
_PROGRAMS = {"inmind": _IMPORT, "first turn": _FIRST_TURN, "bare": "pass"}


def _environment(folder: Path) -> dict[str, str]:
    """The current variables, this source, and separate folders for compiled files and memory."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(part for part in (str(_SOURCE), environment.get("PYTHONPATH", "")) if part)
    overrides = {
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
        "INMIND_HOME": str(folder / "home"),
        "PYTHONPATH": path,
    }
    return {**environment, **overrides}


def _start_interpreter(code: str, environment: dict[str, str]) -> TimedCall:
    return TimedCall(lambda: subprocess.run([sys.executable, "-c", code], env=environment, check=True))


def _imported_packages(code: str, environment: dict[str, str]) -> set[str]:
    """Return the top-level names of all modules loaded in a fresh interpreter after `code`."""
    program = f"{code}\nimport sys\nprint(*sys.modules, sep='\\n')"
    process = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, encoding="utf-8"
    )
    return {name.partition(".")[0] for name in process.stdout.split()}
