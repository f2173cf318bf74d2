"""Findings of the doctor, and the shell commands that fix them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path

from inmind.core.frozen import frozen


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works with a limitation, or the problem will go away without action."""
    TROUBLE = "trouble"
    """Something cannot be opened, stored or trusted."""


class Subject(StrEnum):
    """Subjects of findings, in the order of the report."""

    PLACE = "place"
    JOURNAL = "journal"
    PAGES = "pages"
    DREAMS = "dreams"
    SEARCH = "search"
    MODEL = "model"
    SOFTWARE = "software"


@frozen(kw_only=True)
class DoctorFinding:
    subject: Subject
    check: str
    verdict: Verdict
    message: str
    fix: str = ""
    """The step that fixes it: a command if there is one."""

    def __post_init__(self) -> None:
        if self.verdict is not Verdict.OK and not self.fix:
            raise ValueError("a warning or trouble needs a fix")


@frozen(kw_only=True)
class DoctorReport:
    home: Path | str
    """The folder, or the URL of the database without its password."""
    findings: tuple[DoctorFinding, ...]
    """Sorted by subject. A check without problems has one OK finding."""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all findings."""
        verdicts = {finding.verdict for finding in self.findings}
        return next(
            verdict for verdict in (Verdict.TROUBLE, Verdict.WARNING, Verdict.OK) if verdict in {*verdicts, "ok"}
        )

    def with_verdict(self, verdict: Verdict) -> list[DoctorFinding]:
        return [finding for finding in self.findings if finding.verdict is verdict]


@frozen
class Check:
    """One check: creates its findings."""

    subject: Subject
    name: str

    def ok(self, message: str, fix: str = "") -> DoctorFinding:
        return DoctorFinding(subject=self.subject, check=self.name, verdict=Verdict.OK, message=message, fix=fix)

    def warning(self, message: str, fix: str) -> DoctorFinding:
        return DoctorFinding(subject=self.subject, check=self.name, verdict=Verdict.WARNING, message=message, fix=fix)

    def trouble(self, message: str, fix: str) -> DoctorFinding:
        return DoctorFinding(subject=self.subject, check=self.name, verdict=Verdict.TROUBLE, message=message, fix=fix)


def add_ok_findings(findings: Sequence[DoctorFinding], ok_messages: Mapping[Check, str]) -> list[DoctorFinding]:
    """Append an OK finding for each of these checks that has no finding yet."""
    checked = {(finding.subject, finding.check) for finding in findings}
    return [
        *findings,
        *(check.ok(message) for check, message in ok_messages.items() if (check.subject, check.name) not in checked),
    ]


def sort_findings(findings: Sequence[DoctorFinding]) -> tuple[DoctorFinding, ...]:
    """Sort by subject, then by check: checks run stream by stream, the report groups them."""
    subjects, checks = list(Subject), list(dict.fromkeys(finding.check for finding in findings))
    return tuple(sorted(findings, key=lambda one: (subjects.index(one.subject), checks.index(one.check))))


RETRY_HINT = "run the check again later"


@frozen
class FixHints:
    """Fixes as shell commands for this home."""

    home: Path
    is_default: bool
    """The command line uses this home by default, so that commands need no --home."""

    def inmind(self, *arguments: str) -> str:
        option = () if self.is_default else ("--home", str(self.home))
        return f"`{shlex.join(('inmind', *option, *arguments))}`"

    def shell(self, *words: str | Path) -> str:
        return f"`{shlex.join(map(str, words))}`"

    def take_ownership(self, user: int) -> str:
        """Give the whole home to a user."""
        return self.shell("sudo", "chown", "-R", str(user), self.home)

    def break_hard_link(self, file: Path) -> str:
        """Replace a hard-linked file by a copy."""
        copy = f"{file}.alone"
        return f"`{shlex.join(['cp', '-p', str(file), copy])} && {shlex.join(['mv', copy, str(file)])}`"

    @property
    def move_to_local_disk(self) -> str:
        """Copy the home to another disk."""
        return f"while it is not in use, {self.shell('cp', '-a', self.home, '/on/a/local/disk')}, then use that home"

    def sql(self, statement: str, database: str) -> str:
        """Run SQL with the SQLite library of inmind: another version may corrupt a shared log."""
        return self.shell(sys.executable, "-m", "apsw", self.home / database, statement)

    @property
    def open_home(self) -> str:
        """The shortest command that opens the home, which migrates and recovers the database."""
        return self.inmind("sessions")

    def open_session(self, session: str) -> str:
        """Sync the files of a session and of its resource with the journal."""
        return self.inmind("show", "overview", session)

    @property
    def restore_backup(self) -> str:
        """Import a backup into a new home; the damaged one is kept for analysis."""
        return "keep this home, and import the last `inmind export` into a new one: `inmind --home NEW import FILE`"
