"""`inmind doctor`: findings by subject, each with the step that fixes it."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit
from rich.text import Text

from inmind.apps.cli.console import json_option, print_json, print_lines, progress_bar, selected_place
from inmind.apps.cli.exit_codes import STORAGE
from inmind.core.text import count_noun, printable

if TYPE_CHECKING:
    from inmind.apps.doctor import DoctorReport

_MAX_SIMILAR = 5
"""Findings of one check that are printed; --json has all of them."""

_COLOURS = {"ok": "dim", "warning": "yellow", "trouble": "bold red"}
_INDENT = " " * 11


@click.option("--offline", is_flag=True, help="Make no network requests.")
@json_option
def doctor(offline: bool, as_json: bool) -> None:
    """Check a home for problems and print how to fix them. Changes nothing.

    Works even if the home cannot be opened. Exits with 0 if there are no problems or only warnings, and with 5 if
    something cannot be opened, stored or trusted.
    """
    from inmind.apps.doctor import Verdict, run_checks

    with progress_bar("checking") as update, _mute_log_warnings():
        report = run_checks(
            selected_place(), online=not offline, watch=lambda step, done, total: update(done, total, step)
        )
    if as_json:
        findings = [
            {"subject": one.subject, "check": one.check, "verdict": one.verdict, "seen": one.message, "fix": one.fix}
            for one in report.findings
        ]
        print_json({"home": str(report.home), "verdict": report.verdict, "findings": findings})
    else:
        print_lines(Text(printable(line), style) for line, style in _report_lines(report))
    if report.verdict is Verdict.TROUBLE:
        raise Exit(STORAGE)


def _report_lines(report: DoctorReport) -> Iterator[tuple[str, str]]:
    """Each line with its style."""
    for subject, about in groupby(report.findings, key=lambda finding: finding.subject):
        yield f"{subject}", "bold"
        for _, similar in groupby(about, key=lambda finding: (finding.check, finding.verdict)):
            findings = list(similar)
            for one in findings[:_MAX_SIMILAR]:
                yield f"  {one.verdict:<8} {one.check:<12} {one.message}", _COLOURS[one.verdict]
                if one.fix:
                    yield f"{_INDENT}fix: {one.fix}", ""
            if more := len(findings[_MAX_SIMILAR:]):
                yield f"{_INDENT}and {more} more of this kind; --json lists all", "dim"
        yield "", ""
    counts = {verdict: sum(one.verdict == verdict for one in report.findings) for verdict in ("trouble", "warning")}
    summary = ", ".join(count_noun(count, verdict) for verdict, count in counts.items() if count)
    yield f"{report.home}: {summary or 'no problems found'}.", _COLOURS[report.verdict] if summary else "green"


@contextmanager
def _mute_log_warnings() -> Generator[None]:
    """Hide log warnings that repeat a finding, unless debug logs are on."""
    log = logging.getLogger("inmind")
    before = log.level
    if not log.isEnabledFor(logging.DEBUG):
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
