"""Checks of a home, with a fix for each problem. Read-only: changes no byte and no date.

`run_checks` checks everything that a home depends on, whether or not the home can be opened. Each finding comes with
the step that fixes it; a test carries out each of these steps and checks that the finding is gone.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG, DATABASE, check_database_url, default_home, default_place, is_database, redact_url
from inmind.store.protocol import Clock

if TYPE_CHECKING:
    from inmind.search.embedders.base import Embedder

__all__ = ["DoctorFinding", "DoctorReport", "Verdict", "run_checks"]

ProgressCallback = Callable[[str, int, int], None]


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

_SUBJECTS = {check: subject for subject, checks in CHECKS.items() for check in checks}


@frozen
class DoctorFinding:
    check: str
    verdict: Verdict
    message: str
    fix: str = ""
    """The step that fixes it: a command if there is one."""

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
        order = list(_SUBJECTS)
        return cls(home=home, findings=tuple(sorted(findings, key=lambda finding: order.index(finding.check))))

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all findings."""
        verdicts = {finding.verdict for finding in self.findings}
        return next((verdict for verdict in (Verdict.TROUBLE, Verdict.WARNING) if verdict in verdicts), Verdict.OK)

    def with_verdict(self, verdict: Verdict) -> list[DoctorFinding]:
        return [finding for finding in self.findings if finding.verdict is verdict]


RETRY_HINT = "run the check again later"
UPGRADE = "`pip install --upgrade inmind`"
RESTORE_BACKUP = "keep this home, and import the last `inmind export` into a new one: `inmind --home NEW import FILE`"
"""The damaged home is kept for analysis."""


def check_schema(current: int, known: int, open_memory: str) -> DoctorFinding:
    """Check the schema version of a database; `open_memory` is the command that migrates it."""
    if current > known:
        return trouble("schema", f"{current}, but this inmind supports up to {known}: it is read-only", UPGRADE)
    if current < known:
        return warning("schema", f"{current}, will be migrated to {known} when it is opened", open_memory)
    return ok("schema", str(current))


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

    def remove_if_unused(self, path: Path) -> str:
        return f"if it is not needed: {self.shell('rm', '-r', path)}"

    def sql(self, statement: str) -> str:
        """Run SQL with the SQLite library of inmind: another version may corrupt a shared log."""
        return self.shell(sys.executable, "-m", "apsw", self.home / DATABASE, statement)

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


def run_checks(
    home: str | Path | None = None,
    *,
    online: bool = True,
    embedder: str | Embedder | None = "auto",
    clock: Clock = lambda: datetime.now(UTC),
    watch: ProgressCallback = lambda _step, _done, _total: None,
) -> DoctorReport:
    """Check a home or a database; default: the environment, then ~/.inmind. Changes nothing.

    `online=False` makes no network requests. `embedder` is the one that the home is opened with. `watch` gets the
    current step, the events read and their total, which is 0 if unknown.
    """
    from inmind.apps.doctor import home as home_checks
    from inmind.apps.doctor.journal import check_journal
    from inmind.apps.doctor.postgres import check_server

    place = default_place() if home is None else home
    if isinstance(place, str) and is_database(place):
        url = check_database_url(place, "home")
        return DoctorReport.of(redact_url(url), [*home_checks.check_software(), *check_server(url, online=online)])
    default, path = default_home().expanduser().absolute(), Path(place).expanduser().absolute()
    hints = FixHints(path, is_default=path == default)
    findings = [home_checks.check_home(path, hints), *home_checks.check_software(), home_checks.check_sqlite()]
    if home_checks.is_readable(path):
        settings, configured = home_checks.check_settings(path.resolve(), hints)
        usable_embedder, embedding = home_checks.check_embedder(embedder, online=online)
        findings += [*home_checks.check_folder(path.resolve(), hints), configured, embedding]
        findings += [home_checks.check_model(settings.model, online=online)] if settings else []
        findings += check_journal(path.resolve(), hints, usable_embedder, clock=clock, watch=watch)
    return DoctorReport.of(path, findings)
