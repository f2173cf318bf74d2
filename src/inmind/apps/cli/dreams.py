"""Dreams in the terminal: `inmind dream run`, and what there is to see of those that were."""

from __future__ import annotations

import dataclasses
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any

import typer
from rich.table import Column
from rich.text import Text

from inmind.apps.cli.console import (
    AsJson,
    OnlyResource,
    Resource,
    console,
    existing_memory,
    known_resource,
    line_by_line,
    on_one_line,
    plain_table,
    print_json,
    say,
    say_lines,
)
from inmind.apps.cli.diffs import coloured
from inmind.apps.cli.exit_codes import leave
from inmind.apps.signals import signals_go_to
from inmind.core.text import counted, printable
from inmind.documents.notes_page import stamp
from inmind.dreams.page.page import read
from inmind.dreams.state import LIMITED
from inmind.errors import DreamOvertaken, NotFound
from inmind.jobs.dreaming.history import Dream

BY_RULES = {"model.name": ""}
"""The setting with which no model is asked, whatever config.toml says."""

Number = Annotated[int | None, typer.Argument(metavar="N", help="Which dream; the newest by default.")]

dream = typer.Typer(
    help="Bring MEMORY.md up to date, and look at what was done to it.",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@dream.command("run")
def run(
    resource: OnlyResource = None,
    by_rules: Annotated[bool, typer.Option("--rules", help="Ask no model, even if config.toml names one.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take the notes, and all that is new, into MEMORY.md. Ctrl-C calls it off, and nothing has changed."""
    with existing_memory(BY_RULES if by_rules else None) as memory:
        name = known_resource(memory, resource)
        with _until_signalled() as called_off, nullcontext() if as_json else _phases() as watch:
            dreamt = memory.dream(name, watch=watch, cancelled=called_off)
            stopped = called_off()
        if as_json:
            print_json(in_full(dreamt))
        if dreamt.status != "done":
            reason = dreamt.reason or f"somebody else has taken it over: {' '.join(told(dreamt))}"
            leave("INTERRUPTED" if stopped else dreamt.code or DreamOvertaken.code, reason)
        if not as_json:
            say_lines(told(dreamt))


@dream.command("list")
def list_dreams(resource: Resource, as_json: AsJson = False) -> None:
    """The dreams so far, the newest first."""
    with existing_memory() as memory:
        found = memory.dreams(known_resource(memory, resource))
        if as_json:
            return print_json([in_short(one) for one in found])
        if not found:
            say(f"{resource} has not dreamt yet.")
            return None
        whole = ("dream", "began (UTC)", "status", "by", "trigger", "notes", "lines", "seconds")
        table = plain_table(*(Column(name, no_wrap=True) for name in whole), Column("why", no_wrap=True, ratio=1))
        for one in found:
            row = (
                str(one.id),
                f"{one.began:%Y-%m-%d %H:%M:%S}",
                one.status,
                one.by,
                one.trigger,
                str(len(one.notes)),
                str(len(one.lines)),
                f"{one.seconds:.2f}",
                on_one_line(one.reason),
            )
            table.add_row(*(Text(printable(cell)) for cell in row))
        line_by_line().print(table)
    return None


@dream.command("show")
def show_dream(resource: Resource, number: Number = None, as_json: AsJson = False) -> None:
    """What one dream was made of, what it did, and what its guards said."""
    with existing_memory() as memory:
        one = _one(memory.dreams(known_resource(memory, resource)), resource, number)
        if as_json:
            return print_json(in_full(one))
        say_lines(told(one))
        say_lines(_background(one))
    return None


@dream.command("diff")
def diff_dream(resource: Resource, number: Number = None, as_json: AsJson = False) -> None:
    """What one dream did to MEMORY.md, as a diff."""
    with existing_memory() as memory:
        one = _one(memory.dreams(known_resource(memory, resource)), resource, number)
        if as_json:
            return print_json({"id": one.id, "before": one.before, "after": one.after, "diff": one.diff})
        if not one.diff:
            say(f"Dream {one.id} changed nothing on MEMORY.md.")
        for line in coloured(one.diff):
            console().print(line, soft_wrap=True)
    return None


@dream.command("undo")
def undo_dream(resource: Resource, number: Number = None, as_json: AsJson = False) -> None:
    """Take back the last dream: MEMORY.md as before it, with what people wrote since; its notes wait again."""
    with existing_memory() as memory:
        undone = memory.undo_dream(known_resource(memory, resource), number)
        if as_json:
            return print_json(in_full(undone))
        wait = "waits" if len(undone.notes) == 1 else "wait"
        notes = f", and its {counted(len(undone.notes), 'note')} {wait} again" if undone.notes else ""
        say(f"Dream {undone.id} of {undone.resource} is undone: MEMORY.md is as before it{notes}.")
    return None


def told(dream: Dream) -> Iterator[str]:
    """What became of it, in one line; below it what it wrote, what left the page, and what it was refused."""
    name = f"Dream {dream.id} of {dream.resource}"
    match dream.status:
        case "running":
            yield f"{name} is going on since {stamp(dream.began)}: {dream.phase}."
        case "abandoned":
            yield f"{name} was left in the middle at {dream.phase}, and changed nothing."
        case "failed":
            yield f"{name} changed nothing ({dream.code} at {dream.phase}): {on_one_line(dream.reason)}"
        case "done" | "undone":
            undone = ", and undone since" if dream.status == "undone" else ""
            new, gone = _new(dream.before, dream.after), _new(dream.after, dream.before)
            yield (
                f"{name} is done, by {dream.by} in {dream.seconds:.2f} s{undone}: {counted(len(dream.notes), 'note')} "
                f"taken in, {counted(len(new), 'line')} new on MEMORY.md, {len(gone)} gone from it."
            )
            yield from (f"+ {line}" for line in new)
            yield from (f"- {line}" for line in gone)
            if dream.reason.startswith(LIMITED):
                yield f"By rules, and no model was asked: {on_one_line(dream.reason)}"
            elif dream.reason:
                yield f"By rules, since the model was of no use: {on_one_line(dream.reason)}"
    yield from (f"Guard {one.guard}: {on_one_line(one.detail)}" for one in dream.verdicts if not one.passed)
    yield from (f"Not done: {on_one_line(reason)}" for reason in dream.refused)
    if any(dream.tokens):
        asked, answered = dream.tokens
        yield f"The model read {asked:,} tokens and wrote {answered:,}: ${dream.price:.4f}."


def in_full(dream: Dream) -> dict[str, Any]:
    return {**in_short(dream), "before": dream.before, "after": dream.after, "diff": dream.diff}


def in_short(dream: Dream) -> dict[str, Any]:
    fields = {one.name: getattr(dream, one.name) for one in dataclasses.fields(dream)}
    del fields["before"], fields["after"]
    return {
        **fields,
        "began": dream.began.isoformat(),
        "ended": dream.ended.isoformat() if dream.ended else None,
        "lines": [line._asdict() for line in dream.lines],
        "verdicts": [verdict._asdict() for verdict in dream.verdicts],
    }


def _background(dream: Dream) -> Iterator[str]:
    ended = f", ended {stamp(dream.ended)}" if dream.ended else ""
    yield f"Began {stamp(dream.began)} ({dream.trigger}){ended}."
    inputs = dream.inputs or {}
    if crystals := {kind: count for kind, count in inputs.get("crystals", {}).items() if count}:
        yield f"New crystals: {', '.join(f'{count} {kind}' for kind, count in crystals.items())}."
    if levels := inputs.get("levels"):
        yield f"Mood: {dream.mood} ({', '.join(f'{name} {level:.2f}' for name, level in levels.items())})."
    if inputs.get("rebased"):
        yield "Something was written meanwhile, and the dream was carried out on top of it."
    if dream.verdicts and all(verdict.passed for verdict in dream.verdicts):
        yield f"Guards passed: {', '.join(verdict.guard for verdict in dream.verdicts)}."


def _new(before: str, after: str) -> list[str]:
    """What a page says and another does not, each with its section."""
    known = {entry for _, entry in read(before).everything()}
    return [
        f"{section}: {on_one_line(entry)}" if section else on_one_line(entry)
        for section, entry in read(after).everything()
        if entry not in known
    ]


def _one(dreams: list[Dream], resource: str, number: int | None) -> Dream:
    found = next((one for one in dreams if number is None or one.id == number), None)
    if found is None:
        hint = f"`inmind dream list {resource}` lists those there are" if dreams else f"{resource} has not dreamt yet"
        raise NotFound(what="dream", name=resource if number is None else number, hint=hint)
    return found


@contextmanager
def _phases() -> Generator[Callable[[str, str], None]]:
    """Which phase it is in: a line that moves on a terminal, a line for each in a pipe."""
    screen = console()
    if not screen.is_terminal:
        yield lambda phase, detail: say(f"{phase}: {detail}" if detail else phase)
        return
    with screen.status("dreaming") as status:
        yield lambda phase, detail: status.update(Text(printable(f"{phase}  {detail}")))


@contextmanager
def _until_signalled() -> Generator[Callable[[], bool]]:
    """Says whether somebody wants it to end. The first signal lets it end where it can say why, the second does not."""
    asked = threading.Event()

    def end(*_: object) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    with signals_go_to(end, signal.SIGINT, signal.SIGTERM):
        yield asked.is_set
