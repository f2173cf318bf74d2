"""The commands: parse, one call, present. An error is one line and an exit code."""

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
from inmind.doors.demo import play
from inmind.errors import NotFound
from inmind.journal import encode
from inmind.text import printable

app = typer.Typer(
    name="inmind",
    help="Working memory for LLM agents: look at it, and see it work.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
show = typer.Typer(help="Show what a session has in mind.", no_args_is_help=True)
app.add_typer(show, name="show")

_home: Path | None = None

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="As listed by `inmind sessions`.")]


@app.callback()
def options(
    home: Annotated[
        Path | None, typer.Option(help="Where memory is kept. [default: $INMIND_HOME or ~/.inmind]")
    ] = None,
) -> None:
    global _home
    _home = home


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Play a short conversation and show what the model would be sent, what it costs, and what came from cache."""
    with _failing_in_one_line():
        play(_console(), as_json=as_json)


@app.command()
def sessions(as_json: AsJson = False) -> None:
    """List the sessions of this home, the most recently used first."""
    with _failing_in_one_line(), Memory.open(_home) as memory:
        found = memory.sessions()
        if as_json:
            return _print_json([{**_fields(info), "folder": str(info.folder)} for info in found])
        table = Table("session", "resource", "messages", "calls", "last used", "working directory", box=None)
        for info in found:
            row = (info.id, info.resource, str(info.messages), str(info.calls), info.updated, info.cwd)
            table.add_row(*(printable(cell) for cell in row))
        nothing = f"No sessions in {memory.home} yet: `inmind demo` shows how one goes."
        _console().print(table if found else nothing, soft_wrap=not found)
    return None


@show.command("prompt")
def show_prompt(
    session: SessionId,
    call: Annotated[int | None, typer.Option(help="Which call; the last by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """The exact request of a call, byte for byte as it was sent, and why each part is in it."""
    with _failing_in_one_line(), _session(session) as opened:
        number = opened.mind.standing.calls if call is None else call
        prompt = opened.prompt(number)
        if as_json:
            return _print_json({"call": prompt.call, "format": prompt.format, "request": prompt.request})
        console = _console()
        console.print(printable(str(opened.explain(number))), markup=False, highlight=False, soft_wrap=True)
        console.print()
        text = json.dumps(prompt.request, ensure_ascii=False, indent=2)
        console.print(printable(text), markup=False, highlight=False, soft_wrap=True)
    return None


@show.command("overview")
def show_overview(session: SessionId, as_json: AsJson = False) -> None:
    """overview.md, as the next prompt will have it."""
    with _failing_in_one_line(), _session(session) as opened:
        text = opened.overview
        if as_json:
            return _print_json({"overview": text})
        _console().print(printable(text), markup=False, highlight=False, end="", soft_wrap=True)
    return None


@show.command("journal")
def show_journal(
    session: SessionId,
    after: Annotated[int, typer.Option(help="Only events with a higher number.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Everything that happened, one event a line."""
    with _failing_in_one_line(), _session(session) as opened:
        events = opened.journal(after=after)
        if as_json:
            rows = [
                {
                    "seq": event.seq,
                    "id": event.id,
                    "at": event.at.isoformat(),
                    "kind": event.kind,
                    "origin": event.origin.value,
                    "trust": event.trust.name.lower(),
                    "sources": list(event.sources),
                    "payload": json.loads(encode(event.what)),
                }
                for event in events
            ]
            return _print_json(rows)
        for event in events:
            body = printable(encode(event.what)).replace("\n", " ")
            line = f"{event.seq:>5}  {event.at:%Y-%m-%d %H:%M:%S}  {event.kind:<9} {event.origin:<9} {body}"
            _console().print(line, markup=False, highlight=False, overflow="ellipsis", no_wrap=True)
    return None


@app.command()
def undo(session: SessionId, as_json: AsJson = False) -> None:
    """Take back the last change of a session. Nothing is deleted: the change stays in the journal."""
    with _failing_in_one_line(), _session(session) as opened:
        went_to = opened.undo()
        if as_json:
            return _print_json({"reverted_to": went_to, "version": opened.mind.seq})
        _console().print(f"Back to how it was after event {went_to}; the reversal is event {opened.mind.seq}.")
    return None


@contextmanager
def _session(id: str) -> Generator[Session]:
    """An existing session: looking at one must not begin it."""
    with Memory.open(_home) as memory:
        if id not in {info.id for info in memory.sessions()}:
            raise NotFound(what="session", name=id, hint="`inmind sessions` lists those there are")
        yield memory.session(id)


@contextmanager
def _failing_in_one_line() -> Generator[None]:
    try:
        yield
    except InmindError as error:
        _fail(f"{error.code}: {error}")
    except BrokenPipeError:
        _leave_quietly()


def _fail(message: str) -> NoReturn:
    Console(stderr=True).print(f"inmind: {printable(message)}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(1)


def _leave_quietly() -> NoReturn:
    """The reader of the pipe has gone; what is left in the buffer must not raise again at exit."""
    sys.stderr.close()
    raise typer.Exit(1)


def _console() -> Console:
    return Console(highlight=False)


def _print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def _fields(info: Any) -> dict[str, Any]:
    return {name: getattr(info, name) for name in info.__slots__}
