"""What importing `inmind` costs a program that starts, and what it drags in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.table import Row, Table
from bench.timing import Contender, Race, spoken

MOST_SECONDS = 0.120
ALLOWED = {"apsw"}
"""The one dependency that is not optional."""

_SAMPLES = 40
_SOURCE = Path(__file__).parents[1] / "src"


def run() -> list[Table]:
    race = Race()
    with TemporaryDirectory() as folder:
        environment = _environment(Path(folder))
        course = {name: _starting(code, environment) for name, code in _PROGRAMS.items()}
        race.run(course, repetitions=1)  # compiles everything once, as installing a package does
        race.samples.clear()
        race.run(course, repetitions=_SAMPLES)
        foreign = _imported(_IMPORT, environment) - _imported("pass", environment)
    took = race.median("inmind") - race.median("bare")
    begun = race.median("first turn") - race.median("bare")
    extra = sorted(foreign - {"inmind", *sys.stdlib_module_names})
    return [
        Table(
            "from inmind import Memory, in a fresh interpreter",
            [
                Row(
                    what="from inmind import Memory, less an interpreter that does nothing",
                    measured=f"{spoken(took)} ({spoken(race.median('inmind'))} - {spoken(race.median('bare'))})",
                    bar=f"<= {spoken(MOST_SECONDS)}",
                    met=took <= MOST_SECONDS,
                    figures={"seconds": took, "inmind": race.median("inmind"), "bare": race.median("bare")},
                ),
                Row(
                    what="  and a first turn: open, prepare, record",
                    measured=spoken(begun),
                    figures={"seconds": begun},
                ),
                Row(
                    what="modules of other packages that it imports",
                    measured=", ".join(extra) or "none",
                    bar=f"only {', '.join(sorted(ALLOWED))}",
                    met=set(extra) <= ALLOWED,
                    figures={"modules": ", ".join(extra)},
                ),
            ],
            (
                "Compiled beforehand, into a folder of its own. What is imported late is part of the first turn. "
                "Medians, taking turns.",
            ),
        )
    ]


_IMPORT = "from inmind import Memory"
"""Names are loaded when they are asked for, and this is the one that everybody asks for."""

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
    """As ours, but compiled files and memory go elsewhere, and the source beside us is what is imported."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    path = os.pathsep.join(part for part in (str(_SOURCE), environment.get("PYTHONPATH", "")) if part)
    ours = {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "INMIND_HOME": str(folder / "home"), "PYTHONPATH": path}
    return {**environment, **ours}


def _starting(code: str, environment: dict[str, str]) -> Contender:
    return Contender(lambda: subprocess.run([sys.executable, "-c", code], env=environment, check=True))


def _imported(code: str, environment: dict[str, str]) -> set[str]:
    """Top-level names of every module that a fresh interpreter has loaded after this."""
    program = f"{code}\nimport sys\nprint(*sys.modules, sep='\\n')"
    ran = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, encoding="utf-8"
    )
    return {name.partition(".")[0] for name in ran.stdout.split()}
