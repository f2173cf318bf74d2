"""Shared by all commands: open an existing memory, print escaped text, complete names."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import click

from inmind.core.paths import check_database_url, default_place, redact_url, refuse_database
from inmind.core.settings import Settings, load_settings
from inmind.core.text import printable
from inmind.errors import InmindError, InvalidInput, NotFound
from inmind.memory.listing import nearest_resource, nearest_session
from inmind.memory.memory import Memory, open_existing, suggest_name

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Column, Table
    from rich.text import Text

    from inmind.session.session import Session

Line: TypeAlias = "str | Text | Table"
CommandResult: TypeAlias = "tuple[object, str | Iterable[Line]]"
"""Data for --json, and the lines that are printed without it."""

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])
Completer = Callable[[click.Context, click.Parameter, str], list[str]]

MAX_LINE_CHARS = 200
"""Line width of list output in a pipe, in characters; --json is not cut."""

MAX_COMPLETIONS = 1_000
"""Maximum number of sessions that shell completion offers, most recently used first."""

_MAX_NAMES = 20
"""Maximum number of resource names in one message."""

_selected: Path | str | None = None


def select_place(home: Path | None, db: str | None = None) -> None:
    """Set the home or database that the following commands use."""
    global _selected
    if home is not None and db is not None:
        raise InvalidInput(field="--db", value=redact_url(db), expected="no --home: the two cannot be combined")
    if home is not None:
        refuse_database(str(home), "--home", "--db")
    _selected = home if db is None else check_database_url(db, "--db")


def refuse_place(expected: str) -> None:
    """Raise if --home or --db was given.

    For commands that do not use them; the environment is ignored.
    """
    if _selected is not None:
        field, value = ("--home", str(_selected)) if isinstance(_selected, Path) else ("--db", redact_url(_selected))
        raise InvalidInput(field=field, value=value, expected=expected)


def selected_place() -> Path | str:
    """The home or database URL: as given, or the default."""
    return _selected or default_place()


def database_option() -> str:
    """Name of the option or environment variable that holds the database URL."""
    return "$INMIND_DB" if _selected is None else "--db"


@contextmanager
def open_existing_memory(
    settings: Settings | dict[str, Any] | None = None, *, embedder: str | None = "auto", create: bool = False
) -> Generator[Memory]:
    """Open the selected memory; raise NotFound if it does not exist, unless `create`.

    Pass `embedder=None` if the command does not search: loading an embedder takes time.
    """
    place = selected_place()
    try:
        open_memory = Memory.open if create else open_existing
        opened = open_memory(place, settings=settings, embedder=embedder)
    except NotFound as error:
        option = "--home or $INMIND_HOME" if isinstance(place, Path) else "--db or $INMIND_DB"
        hint = f"create one with `inmind chat`, or name another with {option}; `inmind demo` shows an example"
        raise NotFound(what=error.what, name=error.name, hint=hint) from error
    with opened as memory:
        yield memory


def read_settings() -> Settings:
    """Settings of the selected memory; the defaults if it does not exist yet."""
    place = selected_place()
    if isinstance(place, Path):
        return load_settings(place)
    try:
        with open_existing(place, embedder=None, settings=None) as memory:
            return memory.settings
    except NotFound:
        return Settings()


def get_session(memory: Memory, id: str) -> Session:
    check_exists(memory, session=id)
    return memory.session(id)


def last_used_session(memory: Memory) -> str:
    """Id of the session last used in the current folder."""
    info = memory.latest()
    if info is None:
        hint = "pass --session or --resource; `inmind sessions` lists all"
        raise NotFound(what="session in", name=str(Path.cwd()), hint=hint)
    return info.id


def check_exists(memory: Memory, *, session: str | None = None, resource: str | None = None) -> None:
    """Raise NotFound for an unknown session or resource: an empty result would hide a typo."""
    if session is not None and session not in memory:
        raise not_found_error("session", session, suggest_name(memory, session, nearest_session))
    if resource is not None and not memory.has_resource(resource) and not memory.sessions(resource=resource, limit=1):
        raise _unknown_resource(memory, resource)
    if session is not None and resource is not None and (owner := memory.session(session).resource) != resource:
        raise InvalidInput(field="--resource", value=resource, expected=f"{owner!r}, the owner of session {session!r}")


def not_found_error(kind: str, name: str, near: str, known: str = "`inmind sessions` lists all") -> NotFound:
    """NotFound with the nearest existing name as a suggestion."""
    suggestion = f"did you mean {near!r}? " if near else ""
    return NotFound(what=kind, name=name, hint=f"{suggestion}{known}")


def _unknown_resource(memory: Memory, name: str) -> NotFound:
    known = f"there is {_list_names(memory.resources()) or 'none'}"
    return not_found_error("resource", name, suggest_name(memory, name, nearest_resource), known)


def _list_names(names: Sequence[str]) -> str:
    more = f" or {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{more}"


def resolve_resource(memory: Memory, name: str | None) -> str:
    """The named resource if it exists; without a name, the only resource of the memory."""
    if name is not None:
        if not memory.has_resource(name):
            raise _unknown_resource(memory, name)
        return name
    names = memory.resources()
    if len(names) == 1:
        return names[0]
    if names:
        raise InvalidInput(field="RESOURCE", expected=f"the name of a resource: {_list_names(names)}")
    raise NotFound(what="resource in", name=memory.location, hint="no session names one yet")


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def prints_result(command: Callable[..., CommandResult]) -> Callable[..., None]:
    """A command that prints the returned data as JSON with --json, else the returned lines."""

    @json_option
    @wraps(command)
    def run(*args: Any, as_json: bool = False, **kwargs: Any) -> None:
        data, lines = command(*args, **kwargs)
        if as_json:
            print_json(data)
        else:
            print_lines([lines] if isinstance(lines, str) else lines)

    return run


def session_command(command: Callable[..., CommandResult]) -> Callable[..., None]:
    """A command that gets the named session, opened, and prints what it returns."""

    @session_argument
    @prints_result
    @wraps(command)
    def run(session: str, *args: Any, **options: Any) -> CommandResult:
        with open_existing_memory() as memory:
            return command(get_session(memory, session), *args, **options)

    return run


def resource_command(command: Callable[..., CommandResult]) -> Callable[..., None]:
    """A command that gets the named resource, or the only one, and prints what it returns."""

    @prints_result
    @wraps(command)
    def run(resource: str | None, **options: Any) -> CommandResult:
        with open_existing_memory() as memory:
            return command(memory.resource(resolve_resource(memory, resource)), **options)

    return run


def print_text(text: str) -> None:
    print(printable(text), flush=True)  # a reader of a pipe sees it now: a worker may sleep for an hour afterwards


def print_lines(lines: Iterable[Line], screen: Console | None = None) -> None:
    """Print plain lines, which are escaped, styled lines, which are not wrapped, and tables."""
    for line in lines:
        if isinstance(line, str):
            print_text(line)
        else:
            screen = screen or console()
            screen.print(line, soft_wrap=not hasattr(line, "columns"), crop=False)


def print_json(value: Any) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2, default=_to_json_value))


def _to_json_value(value: object) -> object:
    if isinstance(value, Iterator):
        return list(cast(Iterator[object], value))
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            """Raise; rich would exit with an exit code of its choice."""
            raise BrokenPipeError

    return PipeConsole(stderr=stderr, highlight=False)


def table(
    columns: Iterable[str | Column], rows: Iterable[Iterable[object]], *, wide: bool = False, **options: Any
) -> Table:
    """The table of every command.

    Cells are escaped, in one line; in a named column they are cut to fit.

    In a pipe it is only as wide as its content, without trailing spaces. `wide`: for lists with one line per item.
    """
    from rich.segment import Segment
    from rich.table import Column, Table
    from rich.text import Text

    class PlainTable(Table):
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            if console.is_terminal:
                yield from super().__rich_console__(console, options)
                return
            options = options.update(width=MAX_LINE_CHARS) if wide else options
            expand, self.expand = self.expand, False
            self.expand = expand and self.__rich_measure__(console, options).maximum >= options.max_width
            for line in Segment.split_lines(super().__rich_console__(console, options)):  # pyright: ignore[reportArgumentType] -- a table renders only segments
                yield Segment("".join(segment.text for segment in line).rstrip() + "\n")

    headings = (Column(column, no_wrap=True) if isinstance(column, str) else column for column in columns)
    drawn = PlainTable(*headings, box=None, padding=(0, 1, 0, 0), pad_edge=False, **options)
    for row in rows:  # a plain string would be parsed as markup
        drawn.add_row(
            *(cell if isinstance(cell, Text) else Text(printable(collapse_whitespace(str(cell)))) for cell in row)
        )
    return drawn


def right_aligned(*names: str) -> list[Column]:
    """Columns of numbers."""
    from rich.table import Column

    return [Column(name, justify="right", no_wrap=True) for name in names]


def collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


@contextmanager
def progress_bar(description: str) -> Generator[Callable[..., None]]:
    """A progress bar on stderr, updated with `(done, total)` and optionally the step.

    Each step gets a bar of its own. No output if stderr is not a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None)

        def update(done: int, total: int, step: str = description) -> None:
            nonlocal task
            if step != bar.tasks[0].description:
                bar.remove_task(task)
                task = bar.add_task(step, total=None)
            if total:
                bar.update(task, completed=done, total=total)

        yield update


def _completer(names: Callable[[Memory], Iterable[str]]) -> Completer:
    """Completions for a shell; empty if the memory cannot be opened.

    No error can be shown there. The shell inserts a completion as is, so names with shell syntax are left out: names
    come from outside, and `$(…)` in one would be executed.
    """

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        params = context.find_root().params
        with suppress(InmindError, OSError):
            select_place(params.get("home"), params.get("db"))
            with open_existing_memory(embedder=None) as memory:
                matching = [name for name in names(memory) if name.startswith(incomplete)]
                return [name for name in matching if shlex.quote(name) == name and not name.startswith("-")]
        return []

    return complete


def _session_ids(memory: Memory) -> list[str]:
    return [info.id for info in memory.sessions(limit=MAX_COMPLETIONS)]


complete_sessions = _completer(_session_ids)
complete_resources = _completer(lambda memory: memory.resources())
complete_owners = _completer(lambda memory: [*memory.resources(), *_session_ids(memory)])


def complete_choices(choices: Iterable[str]) -> Completer:
    """Completion function for fixed choices."""
    return lambda _context, _param, incomplete: [choice for choice in choices if choice.startswith(incomplete)]


def choice_option(
    *names: str, choices: Iterable[str], **attributes: Any
) -> Callable[[CommandFunction], CommandFunction]:
    """An option that completes to fixed values; the library checks the value."""
    return click.option(*names, metavar="|".join(choices), shell_complete=complete_choices(choices), **attributes)


session_argument = click.argument(
    "session", help="Session id, as listed by `inmind sessions`.", shell_complete=complete_sessions
)
session_option = click.option(
    "--session", metavar="SESSION", help="Use this session.", shell_complete=complete_sessions
)
resource_argument = click.argument("resource", help="Name of a resource.", shell_complete=complete_resources)
optional_resource_argument = click.argument(
    "resource",
    required=False,
    help="Resource; optional if the home has only one.",
    shell_complete=complete_resources,
)
resource_option = click.option(
    "--resource", metavar="RESOURCE", help="Use this resource.", shell_complete=complete_resources
)
