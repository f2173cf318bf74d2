"""`inmind demo`: runs five acts in a temporary home; a failed check sets the exit code."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from shlex import quote
from sysconfig import get_path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from inmind.apps.cli.console import console, json_option, print_json, refuse_place
from inmind.apps.cli.exit_codes import FAILED, print_error
from inmind.core.frozen import frozen
from inmind.memory.memory import Memory

if TYPE_CHECKING:
    from rich.console import Console

    from inmind.apps.demo.script import DemoAct

MAX_WIDTH = 100
"""Maximum width of the output in columns."""


@click.option("--verbose", is_flag=True, help="Print the prompts in full, with reasons.")
@json_option
def demo(verbose: bool = False, as_json: bool = False) -> None:
    """Run a one-minute demonstration.

    It has five acts: references, a full window, a dream, a crash, the price. The replies of the model are scripted;
    everything else is real. Makes no network requests and leaves no files. If a check fails, the exit code is 1.
    """
    refuse_place("no --home or --db: the demo uses a temporary folder")
    screen = console()
    screen.quiet = as_json
    screen.width = min(screen.width, MAX_WIDTH)
    with tempfile.TemporaryDirectory(prefix="inmind-demo-") as folder:
        results = _run_acts(screen, Path(folder), verbose=verbose)
    if as_json:
        print_json({name: {**act.facts, "promises": dict(act.promises)} for name, act in results.items()})
    if broken := [f"{name}: {promise}" for name, act in results.items() for promise in act.broken]:
        print_error("FAILED", f"checks of the demo failed ({'; '.join(broken)})")
        raise Exit(FAILED)
    _print_next_steps(screen)


def _run_acts(screen: Console, folder: Path, *, verbose: bool) -> dict[str, DemoAct]:
    from inmind.apps.cli.prompt_view import print_prompt
    from inmind.apps.demo import cost, crash, dream, full_window, references
    from inmind.apps.demo.script import INDENT, DemoContext, indent, text_line

    acts = {"references": references, "compaction": full_window, "dream": dream, "crash": crash, "price": cost}
    results: dict[str, DemoAct] = {}
    screen.print(text_line("The model's replies are scripted; everything else is real.", "dim"))
    # Keyword search is enough here, and the output does not depend on an installed embedder.
    with Memory.open(folder / "home", embedder=None) as memory:
        context = DemoContext(memory=memory, folder=folder, width=screen.width - INDENT)
        for number, (name, module) in enumerate(acts.items(), start=1):
            screen.print(f"\n{number}  {module.TITLE}", style="bold", markup=False)
            results[name] = act = module.play(context)
            for one in act.lines:
                screen.print(indent(one))
            for promise in act.broken:
                screen.print(indent(text_line(f"FAILED: {promise}", "bold red")))
            if verbose and act.prompt is not None:
                print_prompt(screen, *act.prompt)
    return results


def _print_next_steps(screen: Console) -> None:
    from inmind.apps.demo.script import INDENT, indent, text_line

    screen.print("\nNext", style="bold")
    for step in next_steps():
        screen.print(indent(text_line(f"{step.purpose}:", "dim")))
        screen.print(f"{' ' * INDENT}{step.command}", markup=False, soft_wrap=True)


PROGRAM = "inmind"


@frozen
class NextStep:
    command: str
    purpose: str


def next_steps() -> tuple[NextStep, ...]:
    program = Path(get_path("scripts"), PROGRAM)
    return (
        NextStep(f"{_command(program)} chat", "chat with an agent that has this memory"),
        NextStep(
            f"claude mcp add {PROGRAM} -- {_bare_name(program) or quote(str(program))} mcp", "add it to Claude Code"
        ),
        _tutorial(program),
    )


def _tutorial(program: Path) -> NextStep:
    """The tutorial if the source is available, otherwise the help."""
    page = Path(__file__).parents[4] / "docs" / "tutorial.md"
    if page.exists():
        return NextStep(f"less {_shortest_path(page)}", "a ten-minute tutorial")
    return NextStep(f"{_command(program)} --help", "list all commands")


def _command(program: Path) -> str:
    return _bare_name(program) or (_shortest_path(program) if program.exists() else PROGRAM)


def _bare_name(program: Path) -> str:
    """The bare name of the program, if the shell finds this one by it."""
    path = shutil.which(PROGRAM)
    return PROGRAM if path and program.exists() and Path(path).samefile(program) else ""


def _shortest_path(path: Path) -> str:
    """The shorter of the absolute and the relative path."""
    return quote(min(str(path), os.path.relpath(path), key=len))
