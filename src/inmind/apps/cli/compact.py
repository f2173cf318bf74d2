"""`inmind compact`, and how a compaction is told wherever one is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from inmind.apps.cli.console import AsJson, SessionId, existing_session, on_one_line, one_of, print_json, say
from inmind.errors import InvalidInput
from inmind.history.compaction.limits import KEEP_ASKED
from inmind.history.compaction.report import CompactionReport, KeptItem
from inmind.history.compaction.request import STRATEGIES
from inmind.history.compaction.select import TARGETS


def compact(
    given: typer.Context,
    session: SessionId,
    target: Annotated[
        str,
        typer.Option(
            metavar="|".join(TARGETS), help="What leaves: old turns, old outputs.", autocompletion=one_of(TARGETS)
        ),
    ] = "all",
    strategy: Annotated[
        str,
        typer.Option(
            metavar="|".join(STRATEGIES),
            help="Say only where it is, or tell it in short too.",
            autocompletion=one_of(STRATEGIES),
        ),
    ] = "archive",
    keep_recent: Annotated[
        int, typer.Option(help="Turns, rounds of the active one, and outputs of tools that stay.")
    ] = KEEP_ASKED,
    archive_to: Annotated[
        str | None, typer.Option(metavar="PATH", help="The page for it: archive/<name>.md or detail/<name>.md.")
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Instead, send again what the last compaction took out.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Take what is old out of what the model is sent. All of it is archived, and --undo brings it back."""
    with existing_session(session) as opened:
        if undo:
            _check_alone(given, "--undo")
            lifted = opened.undo_compaction()
            if as_json:
                return print_json({**asdict(lifted), "version": opened.mind.seq})
            say(str(lifted))
            return None
        report = opened.compact(target, strategy=strategy, keep_recent=keep_recent, archive_to=archive_to)
        if as_json:
            return print_json({**in_full(report), "version": opened.mind.seq})
        say_compaction(report)
    return None


def _check_alone(given: typer.Context, option: str) -> None:
    """Beside this option the others of a command mean nothing, and whoever gives one expects something of it."""
    for name in ("target", "strategy", "keep_recent", "archive_to"):
        source = given.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            field = f"--{name.replace('_', '-')}"
            raise InvalidInput(field=field, value=given.params[name], expected=f"nothing beside {option}")


def say_compaction(report: CompactionReport) -> None:
    say(str(report))
    for line in listed(report.items):
        say(line)
    for item in report.left_out:
        say(f"- {item.kind}, in the archive alone: {on_one_line(item.text)}")


def listed(items: Sequence[KeptItem]) -> Iterator[str]:
    for item in items:
        where = "in memory" if item.where == "memory" else "in the conversation"
        yield f"- {item.kind}, {where}: {on_one_line(item.text)}"


def in_full(report: CompactionReport) -> dict[str, Any]:
    return {**asdict(report), "left_out": [item._asdict() for item in report.left_out]}
