"""The reference of the command line, generated from the table of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docs.building.entry import prose
from inmind.apps.cli.app import COMMANDS, load_command


def commands_page() -> str:
    """Every command with its arguments and options, in the order of `inmind --help`."""
    parts = ["# Every option", "The text of `--help`. [Commands](../commands.md) describes output and exit codes."]
    for subject, commands in COMMANDS.items():
        parts.append(f"## {subject}")
        for name in commands:
            parts += [part for path, command in walk(name, load_command(name)) for part in command_entry(path, command)]
    return "\n\n".join(parts) + "\n"


def options_by_path() -> dict[str, set[str]]:
    """Return the options of each command by its full name, with groups expanded: `dream run`."""
    names = [name for commands in COMMANDS.values() for name in commands]
    leaves = [one for name in names for one in walk(name, load_command(name)) if not subcommands(one[1])]
    return {path: {option for one in command.params for option in one.opts} for path, command in leaves}


def walk(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, child in subcommands(command).items():
        yield from walk(f"{path} {name}", child)


def subcommands(command: Any) -> dict[str, Any]:
    return dict(getattr(command, "commands", {}))


def command_entry(path: str, command: Any) -> Iterator[str]:
    if subcommands(command):
        yield f"### `inmind {path}`"
        yield prose(command.help or "")
        return
    positional = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not one.hidden]
    arguments = " ".join(_argument(one) for one in positional)
    yield f"### `inmind {path}{' ' + arguments if arguments else ''}`"
    yield prose(command.help or "")
    rows = [_row(_argument(one), one) for one in positional if getattr(one, "help", None)]
    rows += [_row(_option(one), one) for one in options if one.name != "help"]
    if rows:
        yield "\n".join(["| | |", "| --- | --- |", *rows])


def _argument(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    name += "…" if argument.nargs == -1 and "…" not in name and "..." not in name else ""
    return name if argument.required or name.startswith("[") else f"[{name}]"


def _option(option: Any) -> str:
    return " ".join([", ".join([*option.opts, *option.secondary_opts]), *([option.metavar] if option.metavar else [])])


def _row(name: str, parameter: Any) -> str:
    return f"| `{_cell(name)}` | {_cell(prose(parameter.help or ''))} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
