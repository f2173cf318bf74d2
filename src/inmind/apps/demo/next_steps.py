"""What to do next, in commands that work as they are printed, from wherever somebody has come."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from shlex import quote
from sysconfig import get_path

from inmind.core.frozen import frozen

NAME = "inmind"


@frozen
class Step:
    do: str
    why: str


def steps() -> tuple[Step, ...]:
    program = Path(get_path("scripts"), NAME)
    return (
        Step(f"{_called(program)} chat", "talk to an agent that has this memory"),
        Step(f"claude mcp add {NAME} -- {_named(program) or quote(str(program))} mcp", "give it to Claude Code"),
        _tutorial(program),
    )


def _tutorial(program: Path) -> Step:
    """The page, where the source is at hand; else what there is without it."""
    page = Path(__file__).parents[4] / "docs" / "tutorial.md"
    if page.exists():
        return Step(f"less {_from_here(page)}", "ten minutes, from an empty folder to an agent that dreams")
    return Step(f"{_called(program)} --help", "all that it can do")


def _called(program: Path) -> str:
    return _named(program) or (_from_here(program) if program.exists() else NAME)


def _named(program: Path) -> str:
    """Its bare name, if a shell would find this very one by it."""
    found = shutil.which(NAME)
    return NAME if found and program.exists() and Path(found).samefile(program) else ""


def _from_here(path: Path) -> str:
    """The shorter way to write it."""
    return quote(min(str(path), os.path.relpath(path), key=len))
