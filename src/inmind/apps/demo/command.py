"""`inmind demo`: five acts in a home that is thrown away, and an exit code that says whether they kept their word."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inmind.apps.cli.console import JsonOption, console, print_json, refuse_place
from inmind.apps.cli.exit_codes import FAILED, print_error
from inmind.memory.memory import Memory

if TYPE_CHECKING:
    from rich.console import Console

    from inmind.apps.demo.script import Act

MOST_WIDTH = 100
"""Columns of a wide screen that the acts take."""


def demo(
    verbose: Annotated[
        bool, typer.Option("--verbose", help="With the prompts that are drawn, in full and with reasons.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """See it work, in under a minute. Five acts: references, a full window, a dream, a crash, the price.

    The replies of the model are written beforehand; everything else happens. Nothing is fetched, and nothing is left
    behind. Where an act does not keep what it promises, the exit code is 1.
    """
    refuse_place("none here: the demonstration plays in a folder of its own")
    screen = console()
    screen.quiet = as_json
    screen.width = min(screen.width, MOST_WIDTH)
    with tempfile.TemporaryDirectory(prefix="inmind-demo-") as folder:
        played = _played(screen, Path(folder), verbose=verbose)
    if as_json:
        print_json({name: {**act.facts, "promises": dict(act.promises)} for name, act in played.items()})
    if broken := [f"{name}: {promise}" for name, act in played.items() for promise in act.broken]:
        print_error("FAILED", f"the demonstration has not kept its word ({'; '.join(broken)})")
        raise typer.Exit(FAILED)
    _say_what_is_next(screen)


def _played(screen: Console, folder: Path, *, verbose: bool) -> dict[str, Act]:
    from inmind.apps.cli.prompt_view import print_prompt
    from inmind.apps.demo import cost, crash, dream, full_window, references
    from inmind.apps.demo.script import INDENT, Stage, indented, line

    acts = {"references": references, "compaction": full_window, "dream": dream, "crash": crash, "price": cost}
    played: dict[str, Act] = {}
    screen.print(line("The model's replies are written beforehand; everything else happens.", "dim"))
    # Words find all that is looked for here, and whoever has no vectors sees the same as whoever has.
    with Memory.open(folder / "home", embedder=None) as memory:
        stage = Stage(memory=memory, folder=folder, width=screen.width - INDENT)
        for number, (name, module) in enumerate(acts.items(), start=1):
            screen.print(f"\n{number}  {module.TITLE}", style="bold", markup=False)
            played[name] = act = module.play(stage)
            for one in act.lines:
                screen.print(indented(one))
            for promise in act.broken:
                screen.print(indented(line(f"NOT SO: {promise}", "bold red")))
            if verbose and act.prompt is not None:
                print_prompt(screen, *act.prompt)
    return played


def _say_what_is_next(screen: Console) -> None:
    from inmind.apps.demo.next_steps import steps
    from inmind.apps.demo.script import INDENT, indented, line

    screen.print("\nNext", style="bold")
    for step in steps():
        screen.print(indented(line(f"{step.why}:", "dim")))
        screen.print(f"{' ' * INDENT}{step.do}", markup=False, soft_wrap=True)
