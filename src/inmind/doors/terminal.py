"""What all commands do alike: look into a home without making one, print what cannot act, fail in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from inmind import InmindError, Memory, Session
from inmind.errors import InvalidInput, NotFound
from inmind.memory import DATABASE, default_home
from inmind.text import printable

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="As listed by `inmind sessions`.")]
Resource = Annotated[str, typer.Argument(metavar="RESOURCE", help="Whose it is, as listed by `inmind sessions`.")]
OnlyResource = Annotated[
    str | None, typer.Argument(metavar="RESOURCE", help="Whose it is; where a home has only one, that one.")
]

_MOST_LINE = 200
"""Characters of a line where each thing has one and no screen says how wide it is; --json has all of it."""

_home: Path | None = None


class Failed(Exception):
    """Several things went wrong at once, each with a line of its own."""

    def __init__(self, *errors: InmindError) -> None:
        super().__init__(*errors)
        self.errors = errors


def look_into(home: Path | None) -> None:
    """From now on, commands are about this home."""
    global _home
    _home = home


@contextmanager
def existing_memory(settings: dict[str, Any] | None = None) -> Generator[Memory]:
    """An existing home: looking into one must not make it."""
    home = _home or default_home()
    if not (home / DATABASE).exists():
        raise NotFound(what="memory at", name=str(home), hint="`inmind demo` shows one, README.md how to begin yours")
    with Memory.open(home, settings=settings) as memory:
        yield memory


@contextmanager
def existing_session(id: str) -> Generator[Session]:
    """An existing session: looking at one must not begin it."""
    with existing_memory() as memory:
        yield known_session(memory, id)


def known_session(memory: Memory, id: str) -> Session:
    if id not in memory:
        raise NotFound(what="session", name=id, hint="`inmind sessions` lists those there are")
    return memory.session(id)


def known_resource(memory: Memory, name: str | None) -> str:
    """The named one, if there is such a one; unnamed, the only one."""
    there = memory.resources()
    if name is None:
        if len(there) == 1:
            return there[0]
        if there:
            raise InvalidInput(field="RESOURCE", value=name, expected=f"one of {', '.join(there)}")
        raise NotFound(what="resource in", name=str(memory.home), hint="no session names one yet")
    if name not in there:
        raise NotFound(what="resource", name=name, hint="`inmind sessions` lists those there are")
    return name


@contextmanager
def failing_in_one_line() -> Generator[None]:
    try:
        yield
    except InmindError as error:
        _fail(error)
    except Failed as several:
        _fail(*several.errors)
    except BrokenPipeError:
        _leave_quietly()


def complain(code: str, message: str) -> None:
    text = printable(f"inmind: {code}: {message}")
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


def _fail(*errors: InmindError) -> NoReturn:
    for error in errors:
        complain(error.code, str(error))
    raise typer.Exit(1)


def _leave_quietly() -> NoReturn:
    """The reader of the pipe has gone; what is left in the buffer must not raise again at exit."""
    sys.stderr.close()
    raise typer.Exit(1)


def say(text: str) -> None:
    console().print(printable(text), markup=False, highlight=False, soft_wrap=True)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def console() -> Console:
    return Console(highlight=False)


def line_by_line() -> Console:
    """Where each thing has a line, which is cut to the screen; a pipe has no width of its own."""
    wide = console()
    if not wide.is_terminal:
        wide.width = _MOST_LINE
    return wide


def plain_table(*columns: Any, **options: Any) -> Table:
    return Table(*columns, box=None, padding=(0, 1, 0, 0), pad_edge=False, **options)


def on_one_line(text: str) -> str:
    return " ".join(text.split())
