"""The command line as a person and as a script meet it: in a process of its own, in a pipe or on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from typer.testing import CliRunner, Result

from inmind.doors.cli.app import app
from inmind.doors.cli.endings import exit_code


def command(*arguments: str, home: Path | None = None) -> list[str]:
    where = ["--home", str(home)] if home else []
    return [sys.executable, "-c", "from inmind.doors.cli import main; main()", *where, *arguments]


def inmind(*arguments: str, home: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments, home=home), input=stdin, capture_output=True, text=True, timeout=60, check=False
    )


def at_once(*arguments: str, home: Path) -> Result:
    """The same without a process of its own, where it is only about what is said."""
    return CliRunner().invoke(app, ["--home", str(home), *arguments])


def on_a_screen(*arguments: str, home: Path, terminal: str = "dumb") -> list[str]:
    """What a command prints on a terminal of 80 columns, line by line."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": terminal, "COLUMNS": "80"}
    with subprocess.Popen(command(*arguments, home=home), stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        said = b""
        with suppress(OSError):  # how a terminal says that nobody writes any more
            while more := os.read(ours, 4_096):
                said += more
    os.close(ours)
    return said.decode().splitlines()


def fitting(complaint: str | bytes) -> int:
    """The exit code that fits what was said, which has to begin as all complaints do."""
    said = complaint if isinstance(complaint, str) else complaint.decode()
    name, code, _ = said.split(": ", 2)
    assert name == "inmind"
    return exit_code(code)
