"""Findings of the doctor, and the steps that fix them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works with a limitation, or the problem will go away without action."""
    TROUBLE = "trouble"
    """Something cannot be opened, stored or trusted."""


CHECKS: Mapping[str, tuple[str, ...]] = {
    "place": (
        *("home", "connection", "permissions", "writing", "files", "file system", "free space", "size"),
        CONFIG,
    ),
    "journal": ("database", "durability", "schema", "events", "snapshots", "clock"),
    "pages": ("pages", "damaged files", "scratchpads", "leftovers"),
    "dreams": ("leases", "failures", "notes"),
    "search": ("unreadable messages", "index", "embedder", "vectors"),
    "model": ("endpoint",),
    "software": ("versions", "extras", "SQLite"),
}
"""The checks by subject, in the order of the report."""

_ORDER = [(subject, check) for subject, checks in CHECKS.items() for check in checks]
_SUBJECTS = {check: subject for subject, check in _ORDER}


@frozen
class DoctorFinding:
    check: str
    verdict: Verdict
    message: str
    fix: str = ""
    """The step that fixes it: a command if there is one."""

    def __post_init__(self) -> None:
        if self.verdict is not Verdict.OK and not self.fix:
            raise ValueError("a warning or trouble needs a fix")

    @property
    def subject(self) -> str:
        return _SUBJECTS[self.check]


def ok(check: str, message: str, fix: str = "") -> DoctorFinding:
    return DoctorFinding(check, Verdict.OK, message, fix)


def warning(check: str, message: str, fix: str) -> DoctorFinding:
    return DoctorFinding(check, Verdict.WARNING, message, fix)


def trouble(check: str, message: str, fix: str) -> DoctorFinding:
    return DoctorFinding(check, Verdict.TROUBLE, message, fix)


@frozen(kw_only=True)
class DoctorReport:
    home: Path | str
    """The folder, or the URL of the database without its password."""
    findings: tuple[DoctorFinding, ...]
    """Sorted by check. A check without problems has one OK finding."""

    @classmethod
    def of(cls, home: Path | str, findings: Iterable[DoctorFinding]) -> DoctorReport:
        in_order = sorted(findings, key=lambda finding: _ORDER.index((finding.subject, finding.check)))
        return cls(home=home, findings=tuple(in_order))

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all findings."""
        verdicts = {finding.verdict for finding in self.findings}
        return next((verdict for verdict in (Verdict.TROUBLE, Verdict.WARNING) if verdict in verdicts), Verdict.OK)

    def with_verdict(self, verdict: Verdict) -> list[DoctorFinding]:
        return [finding for finding in self.findings if finding.verdict is verdict]


RETRY_HINT = "run the check again later"
UPGRADE = "`pip install --upgrade inmind`"


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

    def run_as_owner(self, owner: int, user: int) -> str:
        return f"run inmind as user {owner}, or {self.take_ownership(user)}"

    def break_hard_link(self, file: Path) -> str:
        """Replace a hard-linked file by a copy."""
        copy = f"{file}.alone"
        return f"`{shlex.join(['cp', '-p', str(file), copy])} && {shlex.join(['mv', copy, str(file)])}`"

    def remove_if_unused(self, *words: str | Path) -> str:
        return f"if it is not needed: {self.shell('rm', *words)}"

    @property
    def move_to_local_disk(self) -> str:
        """Copy the home to another disk."""
        return f"while it is not in use, {self.shell('cp', '-a', self.home, '/on/a/local/disk')}, then use that home"

    @property
    def other_home(self) -> str:
        return "pass another home with --home or $INMIND_HOME"

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

    def run_dream(self, resource: str) -> str:
        """Run a dream, which also syncs the files of the resource."""
        return self.inmind("dream", "run", resource)

    @property
    def restore_backup(self) -> str:
        """Import a backup into a new home; the damaged one is kept for analysis."""
        return "keep this home, and import the last `inmind export` into a new one: `inmind --home NEW import FILE`"
