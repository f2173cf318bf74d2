"""The command line as a person and as a script meet it: in a process of its own, in a pipe or on a terminal."""

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
from fork_server import ForkServer, text
from typer.testing import CliRunner, Result

import inmind as package
from inmind.apps.cli.app import app
from inmind.apps.cli.exit_codes import exit_code

INMIND = "from inmind.apps.cli import main; main()"


def command(*arguments: str, home: Home | None = None) -> list[str]:
    return [sys.executable, "-c", INMIND, *where(home), *arguments]


def where(home: Home | None) -> list[str]:
    """How a command is told where memory is."""
    if home is None:
        return []
    return ["--db", home] if isinstance(home, str) else ["--home", str(home)]


def inmind(*arguments: str, home: Home | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    ran = warm_inmind().run(INMIND, *where(home), *arguments, stdin=stdin.encode())
    return subprocess.CompletedProcess(ran.args, ran.returncode, text(ran.stdout), text(ran.stderr))


@cache
def warm_inmind() -> ForkServer:
    return ForkServer("terminal:get_ready", env={**os.environ, "PYTHONUTF8": "1"})


def get_ready() -> None:
    """All that any command imports has been imported, and the first use of the command line is behind it."""
    for module in pkgutil.walk_packages(package.__path__, "inmind."):
        importlib.import_module(module.name)
    for client in ("anthropic", "openai"):
        importlib.import_module(client)
    CliRunner().invoke(app, ["unheard-of"])


def at_once(*arguments: str, home: Home) -> Result:
    """The same without a process of its own, where it is only about what is said."""
    return CliRunner().invoke(app, [*where(home), *arguments])


def on_a_screen(*arguments: str, home: Home, terminal: str = "dumb") -> list[str]:
    """What a command prints on a terminal of 80 columns, line by line."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": terminal, "COLUMNS": "80"}
    with open(os.devnull, "rb") as nothing:
        streams = [nothing.fileno(), theirs, theirs]
        process = warm_inmind().start(INMIND, *where(home), *arguments, streams=streams, env=environment)
    os.close(theirs)
    said = b""
    with suppress(OSError):  # how a terminal says that nobody writes any more
        while more := os.read(ours, 4_096):
            said += more
    os.close(ours)
    process.wait()
    return said.decode().splitlines()


def fitting(complaint: str | bytes) -> int:
    """The exit code that fits what was said, which has to begin as all complaints do."""
    said = complaint if isinstance(complaint, str) else complaint.decode()
    name, code, _ = said.split(": ", 2)
    assert name == "inmind"
    return exit_code(code)
