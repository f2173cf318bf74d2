"""`inmind doctor`: what is wrong with a home, subject by subject, and below each finding the step that mends it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from inmind.apps.cli.console import AsJson, chosen_place, console, print_json, progress
from inmind.apps.cli.exit_codes import STORAGE
from inmind.core.text import counted, printable

if TYPE_CHECKING:
    from inmind.apps.doctor import Examination, Finding

_MOST_ALIKE = 5
"""Findings of one check that are told one by one; --json has all of them."""

_COLOURS = {"ok": "dim", "warning": "yellow", "trouble": "bold red"}
_MEND = " " * 11 + "mend: "


def doctor(
    offline: Annotated[bool, typer.Option("--offline", help="Ask no model, nor anybody else outside.")] = False,
    as_json: AsJson = False,
) -> None:
    """Examine a home, and say how to mend what is wrong with it. Nothing is changed by looking.

    Goes on where the home cannot be opened. Ends with 0 if nothing is wrong or there are only warnings, with 5 if there
    is trouble: something that cannot be opened, kept or believed.
    """
    from inmind.apps.doctor import Verdict, examine

    with _Progress() as watch, _once():
        found = examine(chosen_place(), online=not offline, watch=watch)
    if as_json:
        print_json(
            {"home": str(found.home), "verdict": found.verdict, "findings": [asdict(one) for one in found.findings]}
        )
    else:
        screen = console()
        for line, style in _told(found):
            screen.print(printable(line), style=style, markup=False, soft_wrap=True)
    if found.verdict is Verdict.TROUBLE:
        raise typer.Exit(STORAGE)


def _told(found: Examination) -> Iterator[tuple[str, str]]:
    """Each line, and how it looks where there are colours."""
    for subject, about in groupby(found.findings, key=lambda finding: finding.subject):
        yield f"{subject}", "bold"
        for _, alike in groupby(about, key=lambda finding: (finding.check, finding.verdict)):
            first, *others = list(alike)
            for finding in (first, *others[: _MOST_ALIKE - 1]):
                yield from _line(finding)
            if more := len(others[_MOST_ALIKE - 1 :]):
                yield f"{' ' * 11}and {more} more like these: --json lists all", "dim"
        yield "", ""
    yield _verdict(found), _COLOURS[found.verdict] if found.verdict != "ok" else "green"


def _line(finding: Finding) -> Iterator[tuple[str, str]]:
    yield f"  {finding.verdict:<8} {finding.check:<12} {finding.seen}", _COLOURS[finding.verdict]
    if finding.mend:
        yield f"{_MEND}{finding.mend}", ""


def _verdict(found: Examination) -> str:
    from inmind.apps.doctor import Verdict

    troubles, warnings = len(found.of(Verdict.TROUBLE)), len(found.of(Verdict.WARNING))
    if not troubles and not warnings:
        return f"Nothing is wrong with {found.home}."
    said = [counted(troubles, "trouble")] if troubles else []
    said += [counted(warnings, "warning")] if warnings else []
    rest = "" if troubles else ", and no trouble"
    return f"{found.home}: {', '.join(said)}{rest}."


class _Progress(ExitStack):
    """A bar for each thing that is done, so that it says what takes so long; one without an end moves to and fro."""

    def __init__(self) -> None:
        super().__init__()
        self._doing = ""
        self._move: Callable[[int, int], None] = _not_yet

    def __call__(self, doing: str, done: int, total: int) -> None:
        if doing != self._doing:
            self.close()
            self._doing, self._move = doing, self.enter_context(progress(doing))
        if total:
            self._move(done, total)


def _not_yet(_done: int, _total: int) -> None:
    pass


@contextmanager
def _once() -> Generator[None]:
    """What is told as a finding is not told a second time as a warning; whoever debugs wants both."""
    log = logging.getLogger("inmind")
    before = log.level
    if not log.isEnabledFor(logging.DEBUG):
        log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
