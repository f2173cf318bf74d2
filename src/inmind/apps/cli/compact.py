"""`inmind compact`, and the text of a compaction report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click

from inmind.apps.cli.console import (
    choice_option,
    collapse_whitespace,
    json_option,
    open_existing_session,
    print_json,
    print_text,
    session_argument,
)
from inmind.errors import InvalidInput
from inmind.history.compaction.build import CompactionReport, KeptItem
from inmind.history.compaction.policy import STRATEGIES
from inmind.history.compaction.select import DEFAULT_KEEP_RECENT, TARGETS


@session_argument
@choice_option("--target", choices=TARGETS, default="all", help="What to archive: turns, tool outputs, or all.")
@choice_option("--strategy", choices=STRATEGIES, default="archive", help="archive (pointer only) or summarize.")
@click.option(
    "--keep-recent", default=DEFAULT_KEEP_RECENT, help="How many recent turns, rounds and tool outputs to keep."
)
@click.option("--archive-to", metavar="PATH", help="Target page: archive/<name>.md or detail/<name>.md.")
@click.option("--undo", is_flag=True, help="Undo the last compaction instead.")
@json_option
def compact(
    session: str, target: str, strategy: str, keep_recent: int, archive_to: str | None, undo: bool, as_json: bool
) -> None:
    """Archive old messages of a session.

    They are no longer sent to the model; --undo restores them.
    """
    with open_existing_session(session) as opened:
        if undo:
            _check_no_other_options("--undo")
            undone = opened.undo_compaction()
            if as_json:
                return print_json({**asdict(undone), "version": opened.state.seq})
            print_text(str(undone))
            return None
        report = opened.compact(target, strategy=strategy, keep_recent=keep_recent, archive_to=archive_to)
        if as_json:
            return print_json({**compaction_json(report), "version": opened.state.seq})
        print_compaction(report)
    return None


def _check_no_other_options(option: str) -> None:
    """Reject options that have no effect together with this one."""
    context = click.get_current_context()
    for name in ("target", "strategy", "keep_recent", "archive_to"):
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            field = f"--{name.replace('_', '-')}"
            raise InvalidInput(
                field=field, value=context.params[name], expected=f"no {option}: the two cannot be combined"
            )


def print_compaction(report: CompactionReport) -> None:
    print_text(str(report))
    for line in format_items(report.items):
        print_text(line)
    for item in report.left_out:
        print_text(f"- {item.kind}, only in the archive: {collapse_whitespace(item.text)}")


def format_items(items: Sequence[KeptItem]) -> Iterator[str]:
    for item in items:
        place = "in memory" if item.location == "memory" else "in the conversation"
        yield f"- {item.kind}, {place}: {collapse_whitespace(item.text)}"


def compaction_json(report: CompactionReport) -> dict[str, Any]:
    return {**asdict(report), "left_out": [item._asdict() for item in report.left_out]}
