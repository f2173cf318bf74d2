"""`inmind doctor`: findings by subject, each with the step that fixes it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from itertools import groupby
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from inmind.apps.cli.console import console, json_option, print_json, progress_bar, selected_place
from inmind.apps.cli.exit_codes import STORAGE
from inmind.core.text import count_noun, printable

if TYPE_CHECKING:
    from inmind.apps.doctor import DoctorFinding, DoctorReport

_MAX_SIMILAR = 5
"""Findings of one check that are printed; --json has all of them."""

_COLOURS = {"ok": "dim", "warning": "yellow", "trouble": "bold red"}
_FIX_PREFIX = " " * 11 + "fix: "


@click.option("--offline", is_flag=True, help="Make no network requests.")
@json_option
def doctor(offline: bool, as_json: bool) -> None:
    """Check a home for problems and print how to fix them. Changes nothing.

    Works even if the home cannot be opened. Exits with 0 if there are no problems or only warnings, and with 5 if
    something cannot be opened, stored or trusted.
    """
    from inmind.apps.doctor import Verdict, run_checks

    with _StepProgress() as watch, _mute_log_warnings():
        report = run_checks(selected_place(), online=not offline, watch=watch)
    if as_json:
        print_json(
            {
                "home": str(report.home),
                "verdict": report.verdict,
                "findings": [_finding_json(finding) for finding in report.findings],
            }
        )
    else:
        screen = console()
        for line, style in _report_lines(report):
            screen.print(printable(line), style=style, markup=False, soft_wrap=True)
    if report.verdict is Verdict.TROUBLE:
        raise Exit(STORAGE)


def _finding_json(finding: DoctorFinding) -> dict[str, str]:
    return {
        "subject": finding.subject,
        "check": finding.check,
        "verdict": finding.verdict,
        "seen": finding.message,
        "fix": finding.fix,
    }


def _report_lines(report: DoctorReport) -> Iterator[tuple[str, str]]:
    """Each line with its style."""
    for subject, about in groupby(report.findings, key=lambda finding: finding.subject):
        yield f"{subject}", "bold"
        for _, similar in groupby(about, key=lambda finding: (finding.check, finding.verdict)):
            first, *others = list(similar)
            for finding in (first, *others[: _MAX_SIMILAR - 1]):
                yield from _finding_lines(finding)
            if more := len(others[_MAX_SIMILAR - 1 :]):
                yield f"{' ' * 11}and {more} more of this kind; --json lists all", "dim"
        yield "", ""
    yield _summary(report), _COLOURS[report.verdict] if report.verdict != "ok" else "green"


def _finding_lines(finding: DoctorFinding) -> Iterator[tuple[str, str]]:
    yield f"  {finding.verdict:<8} {finding.check:<12} {finding.message}", _COLOURS[finding.verdict]
    if finding.fix:
        yield f"{_FIX_PREFIX}{finding.fix}", ""


def _summary(report: DoctorReport) -> str:
    from inmind.apps.doctor import Verdict

    troubles, warnings = len(report.with_verdict(Verdict.TROUBLE)), len(report.with_verdict(Verdict.WARNING))
    if not troubles and not warnings:
        return f"{report.home}: no problems found."
    counts = [count_noun(troubles, "trouble")] if troubles else []
    counts += [count_noun(warnings, "warning")] if warnings else []
    return f"{report.home}: {', '.join(counts)}."


class _StepProgress(ExitStack):
    """One progress bar per step, named after it.

    A step without a total gets a bar without an end.
    """

    def __init__(self) -> None:
        super().__init__()
        self._step = ""
        self._move: Callable[[int, int], None] = _ignore

    def __call__(self, step: str, done: int, total: int) -> None:
        if step != self._step:
            self.close()
            self._step, self._move = step, self.enter_context(progress_bar(step))
        if total:
            self._move(done, total)


def _ignore(_done: int, _total: int) -> None:
    pass


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
