"""The table of commands.

A command's module is imported only when the command runs, so that help starts fast.

The help text in the table is the first sentence of the command's docstring; a test compares them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit, NoArgsIsHelpError, NoSuchCommand
from click.shell_completion import CompletionItem, get_completion_class

from inmind.apps.cli.exit_codes import (
    EXIT_CODE_HELP,
    guard_output,
    map_errors_to_exit_codes,
    report_usage_error,
    set_debug,
    show_help,
)
from inmind.errors import InvalidInput

COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("demo.command:demo", "Run a one-minute demonstration."),
        "chat": ("chat.command:chat", "Chat with a model that has working memory."),
        "mcp": ("mcp.command:mcp", "Run an MCP server that gives an agent working memory."),
        "replay": ("cli.replay:replay", "Replay recorded conversations through memory."),
    },
    "Inspect": {
        "sessions": ("cli.session_commands:sessions", "List the sessions, most recently used first."),
        "show": ("cli.show:show", "Show the state of a session or a resource."),
        "search": ("cli.session_commands:search", "Search everything that was said, noted or seen."),
        "affect": ("cli.resource_commands:affect", "Show the affect levels, mood and recent history of a resource."),
        "economics": (
            "cli.resource_commands:economics",
            "Show or record income, spending and offers of a resource.",
        ),
    },
    "Change": {
        "note": ("cli.session_commands:note", "Save a note."),
        "edit": ("cli.session_commands:edit", "Edit a page or config.toml in $EDITOR."),
        "compact": ("cli.session_commands:compact", "Archive old messages of a session."),
        "dream": ("cli.resource_commands:dream", "Update MEMORY.md with a dream, or inspect past dreams."),
        "undo": ("cli.session_commands:undo", "Undo the last change of a session."),
    },
    "Maintain": {
        "doctor": ("cli.home_commands:doctor", "Check a home for problems and print how to fix them."),
        "export": ("cli.home_commands:export", "Export a home, or one resource, into one file."),
        "import": ("cli.home_commands:import_", "Import a file written by `inmind export`, all of it or nothing."),
        "upkeep": ("cli.background:upkeep", "Run the upkeep that is due once: consolidation, dreams, embeddings."),
        "status": ("cli.background:status", "Show running and waiting background work."),
        "worker": ("cli.background:worker", "Run upkeep continuously until Ctrl-C or SIGTERM."),
        "tenant": ("cli.tenant:tenant", "Manage isolated tenants in one database or one folder."),
    },
}
"""Each command with its help, and with its function in this package, or a mapping of names to functions: a group."""

EXAMPLES = """\
inmind demo                              a short demonstration
inmind chat --base-url http://127.0.0.1:8080/v1
inmind note "Ada prefers tabs" --resource ada
inmind search "what does Ada prefer"
inmind sessions                          then: inmind show prompt SESSION
claude mcp add inmind -- inmind mcp      in Claude Code"""


GLOBAL_OPTIONS = ("home", "db", "debugging")
"""Options of `inmind` that are also accepted after a command's name."""


class _WithGlobalOptions(click.Command):
    """A command or group that also accepts the global options.

    The last occurrence of an option wins.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, help = super().get_params(ctx)
        return [*own, *(param for param in ctx.find_root().command.params if param.name in GLOBAL_OPTIONS), help]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        global_params = ctx.find_root().params
        command_params = {name: ctx.params.pop(name) for name in GLOBAL_OPTIONS}
        global_params |= {name: value for name, value in command_params.items() if value not in (None, False)}
        _apply_global_options(**{name: global_params[name] for name in GLOBAL_OPTIONS})
        return rest


class CommandGroup(_WithGlobalOptions, click.Group):
    """A group of commands under one name, such as `inmind show`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- the signature of the base class
        return list(self.commands)


class CliCommand(_WithGlobalOptions):
    """One command.

    Errors about its input name the option as typed: --limit, not limit; TEXT, not text.
    """

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InvalidInput as error:
            option_names = {
                param.name: param.opts[0] if isinstance(param, click.Option) else param.human_readable_name.strip("[]…")
                for param in self.params
            }
            if error.field == "url":
                from inmind.apps.cli.console import database_option

                option_names.setdefault("url", database_option())
            if error.field not in option_names:
                raise
            raise type(error)(field=option_names[error.field], value=error.value, expected=error.expected) from error


class RootGroup(click.Group):
    """All commands of the table. Every command exits through it."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        guard_output()
        try:
            code = super().main(*args, standalone_mode=False, **extra)
        except NoArgsIsHelpError as error:
            code = show_help(error)
        except click.ClickException as error:
            code = report_usage_error(error)
        if not standalone_mode:
            return code
        sys.exit(code)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with map_errors_to_exit_codes():  # help and version are printed here
            return super().make_context(*args, **extra)
        raise AssertionError  # the block returns or exits

    def invoke(self, ctx: click.Context) -> Any:
        with map_errors_to_exit_codes():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- the signature of the base class
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- as above
        return load_command(cmd_name) if cmd_name in ENTRIES else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:  # the base class only suggests commands that are already loaded
            raise NoSuchCommand(error.command_name, possibilities=ENTRIES, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- as above
        for subject, commands in COMMANDS.items():
            with formatter.section(subject):
                formatter.write_dl([(f"{name:<8}", help) for name, (_, help) in commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- as above
        with formatter.section("Try"):
            for line in EXAMPLES.splitlines():
                formatter.write(f"{' ' * formatter.current_indent}{line}\n")
        codes = ", ".join(f"{code} {meaning}" for code, meaning in EXIT_CODE_HELP.items())
        with formatter.section("Exit codes"):
            formatter.write_text(codes)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in ENTRIES if name.startswith(incomplete)]
        return [CompletionItem(name, help=ENTRIES[name][1]) for name in names] or super().shell_complete(
            ctx, incomplete
        )


ENTRIES = {name: entry for commands in COMMANDS.values() for name, entry in commands.items()}


@cache
def load_command(name: str) -> click.Command:
    """Import a command of the table; a mapping of functions becomes a group."""
    target, help = ENTRIES[name]
    module, _, attribute = target.partition(":")
    loaded: Callable[..., Any] | dict[str, Callable[..., Any]] = getattr(
        import_module(f"inmind.apps.{module}"), attribute
    )
    if callable(loaded):
        return _make_command(name, loaded)
    commands = {child: _make_command(child, function) for child, function in loaded.items()}
    return CommandGroup(name, commands, help=help)


def _make_command(name: str, function: Callable[..., Any]) -> click.Command:
    command = click.command(name, cls=CliCommand)(function)
    for param in command.params:
        if isinstance(param, click.Option):
            param.show_default = bool(param.default)
    return command


def _print_version(_context: click.Context, _param: click.Parameter, enabled: bool) -> None:
    if enabled:
        from importlib.metadata import version

        import apsw

        print(f"inmind {version('inmind')}, SQLite {apsw.sqlite_lib_version()}")
        raise Exit


STARTUP_FILES = {
    "bash": (".bashrc", 'eval "$(inmind --show-completion bash)"'),
    "zsh": (".zshrc", 'eval "$(inmind --show-completion zsh)"'),
    "fish": (".config/fish/config.fish", "inmind --show-completion fish | source"),
}
"""File and line that turn on completion, by shell."""


def _show_completion(context: click.Context, _param: click.Parameter, shell: str | None) -> None:
    if shell is not None and (completion := get_completion_class(shell)) is not None:
        print(completion(context.command, {}, "inmind", "_INMIND_COMPLETE").source())
        raise Exit


def _install_completion(context: click.Context, _param: click.Parameter, enabled: bool) -> None:
    """Add a line to the startup file of the user's shell, once."""
    if not enabled:
        return
    shell = os.path.basename(os.environ.get("SHELL", ""))
    if shell not in STARTUP_FILES:
        raise click.UsageError(f"$SHELL is {shell!r}: only {', '.join(STARTUP_FILES)} can be completed", context)
    name, line = STARTUP_FILES[shell]
    file = Path.home() / name
    if not file.exists() or line not in file.read_text().splitlines():
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as opened:
            opened.write(f"\n{line}\n")
    print(f"Completion is installed in {file}; restart the shell.")
    raise Exit


def _given_once(context: click.Context, param: click.Parameter, values: tuple[Any, ...]) -> Any:
    """Reject a repeated option: the last would silently win over the first."""
    if len(values) > 1 and not context.resilient_parsing:
        raise click.UsageError(f"{param.opts[0]} is given twice: pass it once", context)
    return values[0] if values else None


_place_option = partial(click.option, multiple=True, callback=_given_once)
_eager_option = partial(click.option, is_eager=True, expose_value=False)


@click.group("inmind", cls=RootGroup, context_settings={"help_option_names": ["-h", "--help"]})
@_place_option("--home", type=Path, metavar="DIR", help="The home folder; default: $INMIND_HOME or ~/.inmind.")
@_place_option("--db", metavar="URL", help="A PostgreSQL database instead of a home; default: $INMIND_DB.")
@click.option("--debug", "debugging", is_flag=True, help="Show tracebacks and debug logs.")
@_eager_option("--version", is_flag=True, callback=_print_version, help="Print the version and exit.")
@_eager_option(
    "--install-completion", is_flag=True, callback=_install_completion, help="Install completion for the current shell."
)
@_eager_option(
    "--show-completion",
    type=click.Choice(list(STARTUP_FILES)),
    metavar="SHELL",
    callback=_show_completion,
    help="Print the completion script of bash, zsh or fish.",
)
def app(home: Path | None, db: str | None, debugging: bool) -> None:
    """Working memory for LLM agents: inspect it, chat with it, maintain it."""
    _apply_global_options(home, db, debugging)


def _apply_global_options(home: Path | None, db: str | None, debugging: bool) -> None:
    from inmind.apps.cli.console import select_place

    set_debug(debugging)
    select_place(home, db)
