"""What an examination finds: one line each, with the one line that mends it."""

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
    """It works, and not as it should; or it will pass by itself."""
    TROUBLE = "trouble"
    """Something cannot be opened, kept or believed."""


class Subject(StrEnum):
    """What a finding is about, in the order in which they are told."""

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
    """The step that mends it: a command where there is one."""

    def __post_init__(self) -> None:
        if self.verdict is not Verdict.OK and not self.fix:
            raise ValueError("whoever finds something wrong says how to fix it")


@frozen(kw_only=True)
class DoctorReport:
    home: Path | str
    """The folder, or the URL of the database without its password."""
    findings: tuple[DoctorFinding, ...]
    """By subject; of a check that found nothing wrong, one that says so."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        found = {finding.verdict for finding in self.findings}
        return next(verdict for verdict in (Verdict.TROUBLE, Verdict.WARNING, Verdict.OK) if verdict in {*found, "ok"})

    def with_verdict(self, verdict: Verdict) -> list[DoctorFinding]:
        return [finding for finding in self.findings if finding.verdict is verdict]


@frozen
class Check:
    """One thing that is looked at: how it is told whatever was found."""

    subject: Subject
    name: str

    def ok(self, message: str, fix: str = "") -> DoctorFinding:
        return DoctorFinding(subject=self.subject, check=self.name, verdict=Verdict.OK, message=message, fix=fix)

    def warning(self, message: str, fix: str) -> DoctorFinding:
        return DoctorFinding(subject=self.subject, check=self.name, verdict=Verdict.WARNING, message=message, fix=fix)

    def trouble(self, message: str, fix: str) -> DoctorFinding:
        return DoctorFinding(subject=self.subject, check=self.name, verdict=Verdict.TROUBLE, message=message, fix=fix)


def add_ok_findings(findings: Sequence[DoctorFinding], ok_messages: Mapping[Check, str]) -> list[DoctorFinding]:
    """The findings, and for each of these checks that found nothing wrong what it has gone through."""
    found = {(finding.subject, finding.check) for finding in findings}
    return [
        *findings,
        *(check.ok(message) for check, message in ok_messages.items() if (check.subject, check.name) not in found),
    ]


def sort_findings(findings: Sequence[DoctorFinding]) -> tuple[DoctorFinding, ...]:
    """By subject, and what one check has found together: checks go from stream to stream, and people do not."""
    subjects, checks = list(Subject), list(dict.fromkeys(finding.check for finding in findings))
    return tuple(sorted(findings, key=lambda one: (subjects.index(one.subject), checks.index(one.check))))


RETRY_HINT = "examine it again in a moment"


@frozen
class FixHints:
    home: Path
    is_default: bool
    """It is where the command line looks by itself."""

    def inmind(self, *arguments: str) -> str:
        where = () if self.is_default else ("--home", str(self.home))
        return f"`{shlex.join(('inmind', *where, *arguments))}`"

    def shell(self, *words: str | Path) -> str:
        return f"`{shlex.join(map(str, words))}`"

    def take_ownership(self, user: int) -> str:
        """All of the home becomes a user's."""
        return self.shell("sudo", "chown", "-R", str(user), self.home)

    def break_hard_link(self, file: Path) -> str:
        """Gives a file with several names bytes of its own."""
        copy = f"{file}.alone"
        return f"`{shlex.join(['cp', '-p', str(file), copy])} && {shlex.join(['mv', copy, str(file)])}`"

    @property
    def move_to_local_disk(self) -> str:
        """To another disk."""
        return f"while nobody uses it, {self.shell('cp', '-a', self.home, '/on/a/local/disk')}, and name that by --home"

    def sql(self, statement: str, database: str) -> str:
        """By the SQLite that memory uses itself: another one may be of those that damage what several share."""
        return self.shell(sys.executable, "-m", "apsw", self.home / database, statement)

    @property
    def open_home(self) -> str:
        """The least that opens the home, and with it brings up and recovers what needs that."""
        return self.inmind("sessions")

    def open_session(self, session: str) -> str:
        """Brings the pages of a session and of its resource together with the journal."""
        return self.inmind("show", "overview", session)

    @property
    def restore_backup(self) -> str:
        """Into a new home: what is damaged stays, for whoever wants to look into it."""
        return "keep it as it is, and take the last `inmind export` into a new home: `inmind --home NEW import FILE`"
