"""What all commands do alike: look into a memory without making one, and print what cannot act."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inmind.core.paths import checked_url, default_place, refuse_database, shown_url
from inmind.core.settings import Settings, settings_of
from inmind.core.text import printable
from inmind.errors import InmindError, InvalidInput, NotFound
from inmind.memory.listing import nearest_resource, nearest_session
from inmind.memory.memory import Memory, existing, meant

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

    from inmind.session.session import Session

_MOST_LINE = 200
"""Characters of a line where each thing has one and no screen says how wide it is; --json has all of it."""

MOST_OFFERED = 1_000
"""Sessions that a shell completes: those last used."""

_MOST_NAMED = 20
"""Resources in one message."""

_named: Path | str | None = None


def look_into(home: Path | None, db: str | None = None) -> None:
    """From now on, commands are about this home, or this database."""
    global _named
    if home is not None and db is not None:
        raise InvalidInput(field="--db", value=shown_url(db), expected="nothing beside --home")
    if home is not None:
        refuse_database(str(home), "--home", "--db")
    _named = home if db is None else checked_url(db, "--db")


def refuse_place(expected: str) -> None:
    """For a command that has one of its own; what the environment names is for all others."""
    if _named is not None:
        field, value = ("--home", str(_named)) if isinstance(_named, Path) else ("--db", shown_url(_named))
        raise InvalidInput(field=field, value=value, expected=expected)


def chosen_place() -> Path | str:
    """A home, or the URL of a database: as it was named, or else the usual one."""
    return _named or default_place()


def named_by() -> str:
    """What has named a database: an option, or the environment."""
    return "$INMIND_DB" if _named is None else "--db"


@contextmanager
def existing_memory(
    settings: Settings | dict[str, Any] | None = None, *, embedder: str | None = "auto"
) -> Generator[Memory]:
    """An existing home: looking into one must not make it. Whoever searches nothing waits for no embedder."""
    place = chosen_place()
    try:
        found = existing(place, settings=settings, embedder=embedder)
    except NotFound as error:
        named = "--home or $INMIND_HOME" if isinstance(place, Path) else "--db or $INMIND_DB"
        hint = f"`inmind demo` shows one, `inmind chat` begins yours, {named} names another"
        raise NotFound(what=error.what, name=error.name, hint=hint) from error
    with found as memory:
        yield memory


def settings_there() -> Settings:
    """Of a memory that need not be there yet."""
    place = chosen_place()
    if isinstance(place, Path):
        return settings_of(place)
    try:
        with existing(place, embedder=None, settings=None) as memory:
            return memory.settings
    except NotFound:
        return Settings()


@contextmanager
def existing_session(id: str) -> Generator[Session]:
    """An existing session: looking at one must not begin it."""
    with existing_memory() as memory:
        yield known_session(memory, id)


def known_session(memory: Memory, id: str) -> Session:
    check_known(memory, session=id)
    return memory.session(id)


def check_known(memory: Memory, *, session: str | None = None, resource: str | None = None) -> None:
    """Whoever names one that is not there has mistyped it: to find nothing of it would say that there is nothing."""
    if session is not None and session not in memory:
        raise unknown("session", session, meant(memory, session, nearest_session))
    if resource is not None and not memory.knows(resource) and not memory.sessions(resource=resource, limit=1):
        raise unknown("resource", resource, meant(memory, resource, nearest_resource))
    if session is not None and resource is not None and (owner := memory.session(session).resource) != resource:
        raise InvalidInput(field="--resource", value=resource, expected=f"{owner!r}, whose session {session!r} is")


def unknown(what: str, name: str, near: str) -> NotFound:
    """What to say of a name that is not among those there are: the nearest of them, and where to read the others."""
    asked = f"did you mean {near!r}? " if near else ""
    return NotFound(what=what, name=name, hint=f"{asked}`inmind sessions` lists those there are")


def known_resource(memory: Memory, name: str | None) -> str:
    """The named one, if there is such a one; unnamed, the only one."""
    if name is not None:
        if not memory.knows(name):
            raise unknown("resource", name, meant(memory, name, nearest_resource))
        return name
    there = memory.resources()
    if len(there) == 1:
        return there[0]
    if there:
        more = f" or {len(there) - _MOST_NAMED:,} more" if len(there) > _MOST_NAMED else ""
        raise InvalidInput(field="RESOURCE", expected=f"one of {', '.join(there[:_MOST_NAMED])}{more}")
    raise NotFound(what="resource in", name=memory.place, hint="no session names one yet")


def say(text: str) -> None:
    print(
        printable(text), flush=True
    )  # whoever reads it from a pipe reads it now: a worker sleeps for an hour behind it


def say_lines(lines: Iterable[str]) -> None:
    for line in lines:
        say(line)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def console() -> Console:
    from rich.console import Console

    class Ours(Console):
        def on_broken_pipe(self) -> None:
            """By itself it would leave, with an exit code of its own."""
            raise BrokenPipeError

    return Ours(highlight=False)


def line_by_line() -> Console:
    """Where each thing has a line, which is cut to the screen; a pipe has no width of its own."""
    wide = console()
    if not wide.is_terminal:
        wide.width = _MOST_LINE
    return wide


def plain_table(*columns: Any, **options: Any) -> Table:
    from rich.segment import Segment
    from rich.table import Table

    class Plain(Table):
        """As wide as the screen, if it is to be. In a pipe as wide as what it says, and no line ends in spaces."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            if console.is_terminal:
                yield from super().__rich_console__(console, options)
                return
            wide, self.expand = self.expand, False
            self.expand = wide and self.__rich_measure__(console, options).maximum >= options.max_width
            for line in Segment.split_lines(super().__rich_console__(console, options)):  # pyright: ignore[reportArgumentType] -- a table draws itself as segments alone
                yield Segment("".join(segment.text for segment in line).rstrip() + "\n")

    return Plain(*columns, box=None, padding=(0, 1, 0, 0), pad_edge=False, **options)


def on_one_line(text: str) -> str:
    return " ".join(text.split())


@contextmanager
def progress(doing: str) -> Generator[Callable[[int, int], None]]:
    """A bar on the terminal of whoever waits, told by `(done, total)`; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _completed(context: typer.Context, names: Callable[[Memory], Iterable[str]], begun: str) -> list[str]:
    """What a shell may complete to; nothing where a home cannot be looked into, since nobody would read why.

    A shell puts it on the command line as it is. So what would mean something there is not offered: names come from
    wherever sessions come from, and `$(…)` in one would be run.
    """
    given = context.find_root().params
    home = given.get("home")
    with suppress(InmindError, OSError):
        look_into(Path(home) if home else None, given.get("db"))
        with existing_memory(embedder=None) as memory:
            return [name for name in names(memory) if name.startswith(begun) and _is_plain(name)]
    return []


def _is_plain(name: str) -> bool:
    return shlex.quote(name) == name and not name.startswith("-")


def complete_sessions(context: typer.Context, incomplete: str) -> list[str]:
    return _completed(context, lambda memory: [info.id for info in memory.sessions(limit=MOST_OFFERED)], incomplete)


def complete_resources(context: typer.Context, incomplete: str) -> list[str]:
    return _completed(context, lambda memory: memory.resources(), incomplete)


def complete_owners(context: typer.Context, incomplete: str) -> list[str]:
    """Where either may stand."""
    return [*complete_resources(context, incomplete), *complete_sessions(context, incomplete)]


def one_of(choices: Sequence[str]) -> Callable[[str], list[str]]:
    """What completes an option that takes one of these."""

    def complete(incomplete: str) -> list[str]:
        return [choice for choice in choices if choice.startswith(incomplete)]

    return complete


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SessionId = Annotated[
    str, typer.Argument(metavar="SESSION", help="As listed by `inmind sessions`.", autocompletion=complete_sessions)
]
OfSession = Annotated[
    str | None, typer.Option("--session", metavar="SESSION", help="Of this session.", autocompletion=complete_sessions)
]
Resource = Annotated[
    str,
    typer.Argument(
        metavar="RESOURCE", help="Whose it is, as listed by `inmind sessions`.", autocompletion=complete_resources
    ),
]
OnlyResource = Annotated[
    str | None,
    typer.Argument(
        metavar="RESOURCE", help="Whose it is; where a home has only one, that one.", autocompletion=complete_resources
    ),
]
OfResource = Annotated[
    str | None,
    typer.Option("--resource", metavar="RESOURCE", help="Of this resource.", autocompletion=complete_resources),
]
