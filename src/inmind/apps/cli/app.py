"""The table of commands. Each is loaded when it is run: whoever asks for help, or takes a note, waits for no other.

What stands here beside a name is the first sentence of the command's own help; a test compares them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer._click.core import Command as Parsing
from typer._click.exceptions import ClickException, NoArgsIsHelpError, UsageError
from typer._click.shell_completion import CompletionItem
from typer.core import TyperCommand, TyperGroup

from inmind.apps.cli.exit_codes import MEANINGS, debug, ending, hear_output, helped, misused
from inmind.errors import InvalidInput


class Entry(NamedTuple):
    """A command that is not loaded yet."""

    place: str
    """module:function, or the Typer of a group."""
    help: str


CLI = "inmind.apps.cli"

COMMANDS: Mapping[str, Mapping[str, Entry]] = {
    "Begin": {
        "demo": Entry("inmind.apps.demo.command:demo", "See it work, in under a minute."),
        "chat": Entry("inmind.apps.chat.command:chat", "Talk to an agent that has working memory."),
        "mcp": Entry("inmind.apps.mcp.command:mcp", "Give working memory to an agent that speaks MCP."),
        "replay": Entry(f"{CLI}.replay:replay", "Play recorded conversations through memory."),
    },
    "Look": {
        "sessions": Entry(f"{CLI}.sessions:sessions", "List the sessions of this home, the most recently used first."),
        "show": Entry(f"{CLI}.show:show", "Show what a session or a resource has in mind."),
        "search": Entry(f"{CLI}.search:search", "Find what was ever said, noted or seen."),
        "affect": Entry(f"{CLI}.resources:affect", "How things have been going for a resource."),
        "ledger": Entry(f"{CLI}.resources:ledger", "The books of a resource: what it earned, spent and offers."),
    },
    "Change": {
        "note": Entry(f"{CLI}.note:note", "Keep something for ever."),
        "edit": Entry(f"{CLI}.edit:edit", "Edit a page, or config.toml, in $EDITOR."),
        "compact": Entry(f"{CLI}.compact:compact", "Take what is old out of what the model is sent."),
        "dream": Entry(f"{CLI}.dreams:dream", "Bring MEMORY.md up to date, and look at what was done to it."),
        "undo": Entry(f"{CLI}.undo:undo", "Take back the last change of a session."),
    },
    "Look after": {
        "doctor": Entry(f"{CLI}.doctor:doctor", "Examine a home, and say how to mend what is wrong with it."),
        "export": Entry(f"{CLI}.bundles:export", "Put a whole home into one file, while it is in use."),
        "import": Entry(f"{CLI}.bundles:import_", "Take in a file that `inmind export` made: all of it, or nothing."),
        "upkeep": Entry(f"{CLI}.upkeep:upkeep", "Do once what is due: consolidate, dream, make vectors."),
        "status": Entry(f"{CLI}.status:status", "Show what is being done in the background, and what waits."),
        "worker": Entry(f"{CLI}.worker:worker", "Do the upkeep, round after round, until Ctrl-C or SIGTERM."),
        "tenant": Entry(f"{CLI}.tenant:tenant", "Keep several tenants apart, in one database or in one folder."),
    },
}

EXAMPLES = """\
inmind demo                              see what it does
inmind chat --base-url http://127.0.0.1:8080/v1
inmind note "Ada prefers tabs" --resource ada
inmind search "what does Ada prefer"
inmind sessions                          then: inmind show prompt SESSION
claude mcp add inmind -- inmind mcp      in Claude Code"""


OF_ALL = ("home", "db", "debugging")
"""Options of `inmind` itself that are taken behind a command's name too, where people write them."""


class _TakesThoseOfAll(Parsing):
    """A command or a group of them. Of an option that stands at several places, the last is heeded."""

    def get_params(self, ctx: Any) -> list[Any]:
        *own, help = super().get_params(ctx)
        return [*own, *(param for param in ctx.find_root().command.params if param.name in OF_ALL), help]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        of_all = ctx.find_root().params
        behind = {name: ctx.params.pop(name) for name in OF_ALL}
        of_all |= {name: given for name, given in behind.items() if given not in (None, False)}
        _heed(**{name: of_all[name] for name in OF_ALL})
        return rest


class Group(_TakesThoseOfAll, TyperGroup):
    """Commands behind a name of their own, as those of `inmind show`."""


class Command(_TakesThoseOfAll, TyperCommand):
    """One command. What the library refuses is named here as it was typed: --limit and not limit, TEXT and not text."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _check_one_place(ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InvalidInput as error:
            typed = {
                param.name: param.opts[0] if param.opts[0].startswith("-") else _bare(param) for param in self.params
            }
            if error.field == "url":
                from inmind.apps.cli.console import named_by

                typed.setdefault("url", named_by())
            if error.field not in typed:
                raise
            raise type(error)(field=typed[error.field], value=error.value, expected=error.expected) from error


class Commands(TyperGroup):
    """The commands of the table, and the one place where they end."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        hear_output()
        try:
            code = super().main(*args, standalone_mode=False, **extra)
        except NoArgsIsHelpError as error:
            code = helped(error)
        except ClickException as error:
            code = misused(error)
        if not standalone_mode:
            return code
        sys.exit(code)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        commands = self.list_commands(ctx)
        _check_one_place(ctx, takewhile(lambda one: one not in commands, args))
        return super().parse_args(ctx, args)

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with ending():  # help and version are printed here
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        with ending():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 -- as its base has it
        return [name for name, _ in _listed()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 -- as its base has it
        entry = dict(_listed()).get(cmd_name)
        return None if entry is None else _loaded(cmd_name, entry)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:  # its base looks for what is near among commands that are loaded
            if near := get_close_matches(args[0], self.list_commands(ctx)):
                error.message = f"{error.message} Did you mean {', '.join(map(repr, near))}?"
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- as its base has it
        for subject, commands in COMMANDS.items():
            with formatter.section(subject):
                formatter.write_dl([(f"{name:<8}", entry.help) for name, entry in commands.items()])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- as its base has it
        with formatter.section("Try"):
            for line in EXAMPLES.splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line}\n")
        codes = ", ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items())
        with formatter.section("Exit codes"):
            formatter.write_text(codes)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[CompletionItem]:
        named = [CompletionItem(name, help=one.help) for name, one in _listed() if name.startswith(incomplete)]
        return named or super().shell_complete(ctx, incomplete)


app = typer.Typer(
    name="inmind",
    cls=Commands,
    help="Working memory for LLM agents: look at it, talk to it, look after it.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        import apsw

        print(f"inmind {version('inmind')}, SQLite {apsw.sqlite_lib_version()}")
        raise typer.Exit


@app.callback()
def options(
    home: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", readable=False, help="Where memory is kept; by default $INMIND_HOME, else ~/.inmind."
        ),
    ] = None,
    db: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The database that memory is kept in instead; by default $INMIND_DB, if set."),
    ] = None,
    debugging: Annotated[bool, typer.Option("--debug", help="Show what leads to a failure, and what goes on.")] = False,
    show_version: Annotated[  # noqa: ARG001 -- its callback has done the work
        bool, typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    _heed(home, db, debugging)


def _check_one_place(ctx: Any, args: Iterable[str]) -> None:
    """A second one would be heeded and the first forgotten, which nobody means who writes both side by side."""
    said = [one.partition("=")[0] for one in takewhile(lambda one: one != "--", args)]
    for option in ("--home", "--db"):
        if said.count(option) > 1:
            raise UsageError(f"{option} stands twice: a command is about one memory", ctx)


def _heed(home: Path | str | None, db: str | None, debugging: bool) -> None:
    from inmind.apps.cli.console import look_into

    debug(debugging)
    look_into(None if home is None else Path(home), db)


def _listed() -> Iterator[tuple[str, Entry]]:
    for commands in COMMANDS.values():
        yield from commands.items()


def _loaded(name: str, entry: Entry) -> Any:
    module, _, attribute = entry.place.partition(":")
    found = getattr(import_module(module), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    found.info.cls = Group
    for one in found.registered_commands:
        one.cls = Command
    command = typer.main.get_command(found)
    command.name = name
    return command


def _bare(argument: Any) -> str:
    """An argument as the help calls it, without what says how often it may come."""
    return str(argument.metavar or argument.name).strip("[]…")
