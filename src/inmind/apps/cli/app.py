"""The table of commands.

A command's module is imported only when the command runs, so that help starts fast.

The help text in the table is the first sentence of the command's docstring; a test compares them.
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
from typer._click.core import Command as ClickCommand
from typer._click.exceptions import ClickException, NoArgsIsHelpError, UsageError
from typer._click.shell_completion import CompletionItem
from typer.core import TyperCommand, TyperGroup

from inmind.apps.cli.exit_codes import (
    EXIT_CODE_HELP,
    guard_output,
    map_errors_to_exit_codes,
    report_usage_error,
    set_debug,
    show_help,
)
from inmind.errors import InvalidInput


class CommandEntry(NamedTuple):
    """A command that is not imported yet."""

    target: str
    """`module:function`, or `module:name` of the `Typer` of a command group."""
    help: str


CLI = "inmind.apps.cli"

COMMANDS: Mapping[str, Mapping[str, CommandEntry]] = {
    "Start": {
        "demo": CommandEntry("inmind.apps.demo.command:demo", "Run a one-minute demonstration."),
        "chat": CommandEntry("inmind.apps.chat.command:chat", "Chat with an agent that has working memory."),
        "mcp": CommandEntry("inmind.apps.mcp.command:mcp", "Run an MCP server that gives an agent working memory."),
        "replay": CommandEntry(f"{CLI}.replay:replay", "Replay recorded conversations through memory."),
    },
    "Inspect": {
        "sessions": CommandEntry(f"{CLI}.sessions:sessions", "List the sessions, most recently used first."),
        "show": CommandEntry(f"{CLI}.show:show", "Show the state of a session or a resource."),
        "search": CommandEntry(f"{CLI}.search:search", "Search everything that was said, noted or seen."),
        "affect": CommandEntry(
            f"{CLI}.resource_commands:affect", "Show the affect levels, mood and recent history of a resource."
        ),
        "economics": CommandEntry(
            f"{CLI}.resource_commands:economics", "Show or record the income, spending and offers of a resource."
        ),
    },
    "Change": {
        "note": CommandEntry(f"{CLI}.note:note", "Save a note."),
        "edit": CommandEntry(f"{CLI}.edit:edit", "Edit a page or config.toml in $EDITOR."),
        "compact": CommandEntry(f"{CLI}.compact:compact", "Archive old messages of a session."),
        "dream": CommandEntry(f"{CLI}.dreams:dream", "Update MEMORY.md with a dream, or inspect past dreams."),
        "undo": CommandEntry(f"{CLI}.undo:undo", "Undo the last change of a session."),
    },
    "Maintain": {
        "doctor": CommandEntry(f"{CLI}.doctor:doctor", "Check a home for problems and print how to fix them."),
        "export": CommandEntry(f"{CLI}.export_import:export", "Export a home, or one resource, into one file."),
        "import": CommandEntry(
            f"{CLI}.export_import:import_", "Import a file written by `inmind export`, all of it or nothing."
        ),
        "upkeep": CommandEntry(
            f"{CLI}.upkeep:upkeep", "Run the upkeep that is due once: consolidation, dreams, embeddings."
        ),
        "status": CommandEntry(f"{CLI}.status:status", "Show running and waiting background work."),
        "worker": CommandEntry(f"{CLI}.worker:worker", "Run upkeep continuously until Ctrl-C or SIGTERM."),
        "tenant": CommandEntry(f"{CLI}.tenant:tenant", "Manage isolated tenants in one database or one folder."),
    },
}

EXAMPLES = """\
inmind demo                              a short demonstration
inmind chat --base-url http://127.0.0.1:8080/v1
inmind note "Ada prefers tabs" --resource ada
inmind search "what does Ada prefer"
inmind sessions                          then: inmind show prompt SESSION
claude mcp add inmind -- inmind mcp      in Claude Code"""


GLOBAL_OPTIONS = ("home", "db", "debugging")
"""Options of `inmind` that are also accepted after a command's name."""


class _WithGlobalOptions(ClickCommand):
    """A command or group that also accepts the global options.

    The last occurrence of an option wins.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        *own, help = super().get_params(ctx)
        return [*own, *(param for param in ctx.find_root().command.params if param.name in GLOBAL_OPTIONS), help]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        global_params = ctx.find_root().params
        command_params = {name: ctx.params.pop(name) for name in GLOBAL_OPTIONS}
        global_params |= {name: value for name, value in command_params.items() if value not in (None, False)}
        _apply_global_options(**{name: global_params[name] for name in GLOBAL_OPTIONS})
        return rest


class CommandGroup(_WithGlobalOptions, TyperGroup):
    """A group of commands under one name, such as `inmind show`."""


class CliCommand(_WithGlobalOptions, TyperCommand):
    """One command.

    Errors about its input name the option as typed: --limit, not limit; TEXT, not text.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _check_place_given_once(ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except InvalidInput as error:
            option_names = {
                param.name: param.opts[0] if param.opts[0].startswith("-") else _argument_name(param)
                for param in self.params
            }
            if error.field == "url":
                from inmind.apps.cli.console import database_option

                option_names.setdefault("url", database_option())
            if error.field not in option_names:
                raise
            raise type(error)(field=option_names[error.field], value=error.value, expected=error.expected) from error


class RootGroup(TyperGroup):
    """All commands of the table. Every command exits through it."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        guard_output()
        try:
            code = super().main(*args, standalone_mode=False, **extra)
        except NoArgsIsHelpError as error:
            code = show_help(error)
        except ClickException as error:
            code = report_usage_error(error)
        if not standalone_mode:
            return code
        sys.exit(code)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        commands = self.list_commands(ctx)
        _check_place_given_once(ctx, takewhile(lambda arg: arg not in commands, args))
        return super().parse_args(ctx, args)

    def make_context(self, *args: Any, **extra: Any) -> Any:
        with map_errors_to_exit_codes():  # help and version are printed here
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        with map_errors_to_exit_codes():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 -- the signature of the base class
        return [name for name, _ in _all_entries()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 -- the signature of the base class
        entry = dict(_all_entries()).get(cmd_name)
        return None if entry is None else _load_command(cmd_name, entry)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:  # the base class only suggests commands that are already loaded
            if near := get_close_matches(args[0], self.list_commands(ctx)):
                error.message = f"{error.message} Did you mean {', '.join(map(repr, near))}?"
            raise

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- the signature of the base class
        for subject, commands in COMMANDS.items():
            with formatter.section(subject):
                formatter.write_dl([(f"{name:<8}", entry.help) for name, entry in commands.items()])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- the signature of the base class
        with formatter.section("Try"):
            for line in EXAMPLES.splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line}\n")
        codes = ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODE_HELP.items())
        with formatter.section("Exit codes"):
            formatter.write_text(codes)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[CompletionItem]:
        items = [CompletionItem(name, help=entry.help) for name, entry in _all_entries() if name.startswith(incomplete)]
        return items or super().shell_complete(ctx, incomplete)


app = typer.Typer(
    name="inmind",
    cls=RootGroup,
    help="Working memory for LLM agents: inspect it, chat with it, maintain it.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(enabled: bool) -> None:
    if enabled:
        from importlib.metadata import version

        import apsw

        print(f"inmind {version('inmind')}, SQLite {apsw.sqlite_lib_version()}")
        raise typer.Exit


@app.callback()
def options(
    home: Annotated[
        Path | None,
        typer.Option(metavar="DIR", readable=False, help="The home folder; default: $INMIND_HOME or ~/.inmind."),
    ] = None,
    db: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A PostgreSQL database instead of a home; default: $INMIND_DB."),
    ] = None,
    debugging: Annotated[bool, typer.Option("--debug", help="Show tracebacks and debug logs.")] = False,
    show_version: Annotated[  # noqa: ARG001 -- handled by its callback
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    _apply_global_options(home, db, debugging)


def _check_place_given_once(ctx: Any, args: Iterable[str]) -> None:
    """Reject a repeated --home or --db: the last would silently win over the first."""
    options = [arg.partition("=")[0] for arg in takewhile(lambda arg: arg != "--", args)]
    for option in ("--home", "--db"):
        if options.count(option) > 1:
            raise UsageError(f"{option} is given twice: pass it once", ctx)


def _apply_global_options(home: Path | str | None, db: str | None, debugging: bool) -> None:
    from inmind.apps.cli.console import select_place

    set_debug(debugging)
    select_place(None if home is None else Path(home), db)


def _all_entries() -> Iterator[tuple[str, CommandEntry]]:
    for commands in COMMANDS.values():
        yield from commands.items()


def _load_command(name: str, entry: CommandEntry) -> Any:
    module, _, attribute = entry.target.partition(":")
    loaded = getattr(import_module(module), attribute)
    if not isinstance(loaded, typer.Typer):
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(name)(loaded)
        loaded = single
    loaded.info.cls = CommandGroup
    for info in loaded.registered_commands:
        info.cls = CliCommand
    command = typer.main.get_command(loaded)
    command.name = name
    return command


def _argument_name(argument: Any) -> str:
    """Name of an argument as the help shows it, without brackets and dots."""
    return str(argument.metavar or argument.name).strip("[]…")
