"""Runs the command line in a separate process, in a pipe or on a terminal."""

from __future__ import annotations

import importlib
import os
import pkgutil
import pty
import subprocess
import sys
from contextlib import suppress
from functools import cache

from builders import Home
from click.testing import CliRunner, Result
from fork_server import ForkServer, text

import inmind as package
from inmind.apps.cli.app import app
from inmind.apps.cli.exit_codes import exit_code

INMIND = "from inmind.apps.cli import main; main()"


def command(*arguments: str, home: Home | None = None) -> list[str]:
    return [sys.executable, "-c", INMIND, *location_options(home), *arguments]


def location_options(home: Home | None) -> list[str]:
    """The options that select a home or a database."""
    if home is None:
        return []
    return ["--db", home] if isinstance(home, str) else ["--home", str(home)]


def inmind(*arguments: str, home: Home | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    ran = warm_inmind().run(INMIND, *location_options(home), *arguments, stdin=stdin.encode())
    return subprocess.CompletedProcess(ran.args, ran.returncode, text(ran.stdout), text(ran.stderr))


@cache
def warm_inmind() -> ForkServer:
    return ForkServer("terminal:preload", env={**os.environ, "PYTHONUTF8": "1"})


def preload() -> None:
    """Import everything that commands need, and use the command line once."""
    for module in pkgutil.walk_packages(package.__path__, "inmind."):
        importlib.import_module(module.name)
    for client in ("anthropic", "openai"):
        importlib.import_module(client)
    CliRunner().invoke(app, ["unheard-of"])


def run_in_process(*arguments: str, home: Home) -> Result:
    """Run a command in this process, if only its output matters."""
    return CliRunner().invoke(app, [*location_options(home), *arguments])


def run_on_terminal(*arguments: str, home: Home, terminal: str = "dumb") -> list[str]:
    """Return the lines that a command prints on a terminal of 80 columns."""
    controller, terminal_end = pty.openpty()
    environment = {**os.environ, "TERM": terminal, "COLUMNS": "80"}
    with open(os.devnull, "rb") as empty_input:
        streams = [empty_input.fileno(), terminal_end, terminal_end]
        process = warm_inmind().start(INMIND, *location_options(home), *arguments, streams=streams, env=environment)
    os.close(terminal_end)
    output = b""
    with suppress(OSError):  # the other end of the terminal is closed
        while more := os.read(controller, 4_096):
            output += more
    os.close(controller)
    process.wait()
    return output.decode().splitlines()


def exit_code_for(complaint: str | bytes) -> int:
    """Return the exit code for an error message, which must start with "inmind: CODE: "."""
    line = complaint if isinstance(complaint, str) else complaint.decode()
    name, code, _ = line.split(": ", 2)
    assert name == "inmind"
    return exit_code(code)
