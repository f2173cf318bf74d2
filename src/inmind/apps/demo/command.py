"""`inmind demo`: runs five acts in a temporary home; a failed check sets the exit code.

No model is called; its replies are scripted. Everything else is real, so an act can fail: it lists its promises, and
whether each one was kept.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from sysconfig import get_path
from typing import Any

import click
from click.exceptions import Exit
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inmind import Memory, Prompt, Session
from inmind.apps.cli.console import console, json_option, print_json, print_lines, refuse_place
from inmind.apps.cli.exit_codes import FAILED, print_error
from inmind.apps.cli.prompt_view import render_prompt
from inmind.core.frozen import frozen
from inmind.core.text import printable
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.prompt.report import Explanation

ChatMessage = dict[str, Any]
"""A message in the OpenAI chat completions format."""
DemoLine = Text | Table

MAX_WIDTH = 100
"""Maximum width of the output in columns."""

INDENT = 3

PROGRAM = "inmind"


@frozen(kw_only=True)
class DemoContext:
    memory: Memory
    folder: Path
    """Temporary folder for other files of an act."""
    width: int
    """Width of the lines."""


@dataclass(kw_only=True)
class DemoAct:
    """Result of an act: lines for people, facts for programs."""

    lines: list[DemoLine]
    facts: dict[str, Any]
    promises: dict[str, bool]
    """Claims of the act, and whether each one holds."""
    prompt: tuple[Prompt, Explanation] | None = None
    """The prompt of its bar, for --verbose."""

    @property
    def broken(self) -> list[str]:
        return [promise for promise, holds in self.promises.items() if not holds]


def user(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


def assistant(text: str) -> ChatMessage:
    return {"role": "assistant", "content": text}


def call(id: str, name: str, **arguments: Any) -> ChatMessage:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, **content: Any) -> ChatMessage:
    return {"role": "tool", "tool_call_id": id, "content": json.dumps(content)}


class ScriptedAgent:
    """An agent with scripted replies, and tools by name with their descriptions."""

    def __init__(self, system: str, **tools: str) -> None:
        functions = (
            {"name": name, "description": text, "parameters": {"type": "object"}} for name, text in tools.items()
        )
        self._system, self._tools = system, [{"type": "function", "function": one} for one in functions]

    def prepare(self, session: Session, messages: Sequence[ChatMessage] | None = None) -> Prompt:
        return session.prepare(messages, system=self._system, tools=self._tools)

    def run_script(self, session: Session, messages: Iterable[ChatMessage]) -> Iterator[Prompt]:
        """Add the messages, and yield the prompt before each reply of the agent."""
        for message in messages:
            if message["role"] == "assistant":
                yield self.prepare(session)
            session.add([message])


def saved_notes(session: Session) -> list[str]:
    """Notes of the session's resource that wait for a dream."""
    return [note.text for note in parse_notes(session.resource_state.documents.text(NOTES_PAGE_PATH))]


def text_line(text: str, style: str = "") -> Text:
    return Text(printable(text), style)


def label_line(label: str, text: str | Text, style: str = "cyan") -> Table:
    """A line with a label; a long text wraps in its own column."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, width=9)
    grid.add_column()
    grid.add_row(Text(label, style), text_line(text) if isinstance(text, str) else text)
    return grid


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
        print_json({name: {**act.facts, "promises": act.promises} for name, act in results.items()})
    if broken := [f"{name}: {promise}" for name, act in results.items() for promise in act.broken]:
        print_error("FAILED", f"checks of the demo failed ({'; '.join(broken)})")
        raise Exit(FAILED)
    screen.print("\nNext", style="bold")
    for command, purpose in next_steps():
        _print_indented(screen, text_line(f"{purpose}:", "dim"))
        screen.print(f"{' ' * INDENT}{command}", markup=False, soft_wrap=True)


def _run_acts(screen: Console, folder: Path, *, verbose: bool) -> dict[str, DemoAct]:
    from inmind.apps.demo import cost, crash, full_window, references

    acts = {
        "references": (references.TITLE, references.play),
        "compaction": (full_window.TITLE, full_window.play),
        "dream": (references.DREAM_TITLE, references.play_dream),
        "crash": (crash.TITLE, crash.play),
        "price": (cost.TITLE, cost.play),
    }
    results: dict[str, DemoAct] = {}
    screen.print(text_line("The model's replies are scripted; everything else is real.", "dim"))
    # Keyword search is enough here, and the output does not depend on an installed embedder.
    with Memory.open(folder / "home", embedder=None) as memory:
        context = DemoContext(memory=memory, folder=folder, width=screen.width - INDENT)
        for number, (name, (title, play)) in enumerate(acts.items(), start=1):
            screen.print(f"\n{number}  {title}", style="bold", markup=False)
            results[name] = act = play(context)
            for line in (*act.lines, *(text_line(f"FAILED: {promise}", "bold red") for promise in act.broken)):
                _print_indented(screen, line)
            if verbose and act.prompt is not None:
                print_lines(render_prompt(*act.prompt, width=screen.width), screen)
    return results


def _print_indented(screen: Console, line: DemoLine) -> None:
    screen.print(Padding(line, (0, 0, 0, INDENT), expand=False))


def next_steps() -> list[tuple[str, str]]:
    """Commands to try next, each with its purpose."""
    program, on_path = Path(get_path("scripts"), PROGRAM), shutil.which(PROGRAM)
    # The bare name if the shell finds this program by it.
    is_found = not program.exists() or (on_path is not None and program.samefile(on_path))
    command, server = (PROGRAM, PROGRAM) if is_found else (_shortest_path(program), quote(str(program)))
    page = Path(__file__).parents[4] / "docs" / "tutorial.md"
    help = (f"less {_shortest_path(page)}", "a ten-minute tutorial")
    return [
        (f"{command} chat", "chat with a model that has this memory"),
        (f"claude mcp add {PROGRAM} -- {server} mcp", "add it to Claude Code"),
        help if page.exists() else (f"{command} --help", "list all commands"),
    ]


def _shortest_path(path: Path) -> str:
    """The shorter of the absolute and the relative path."""
    return quote(min(str(path), os.path.relpath(path), key=len))
