"""Checks of a home, with a fix for each problem. Read-only: changes no byte and no date.

`run_checks` checks everything that a home depends on, whether or not the home can be opened. Each finding comes with
the step that fixes it; a test carries out each of these steps and checks that the finding is gone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import apsw

from inmind.apps.doctor import home as home_checks
from inmind.apps.doctor.home import DoctorContext, ProgressCallback, mount_of
from inmind.apps.doctor.journal import check_journal
from inmind.apps.doctor.postgres import check_server
from inmind.apps.doctor.report import DoctorFinding, DoctorReport, FixHints, Verdict, ok
from inmind.core.paths import check_database_url, default_home, default_place, is_database, redact_url
from inmind.search.embedders.base import Embedder
from inmind.store.protocol import Clock

__all__ = ["DoctorFinding", "DoctorReport", "Verdict", "run_checks"]


def run_checks(
    home: str | Path | None = None,
    *,
    online: bool = True,
    embedder: str | Embedder | None = "auto",
    clock: Clock | None = None,
    watch: ProgressCallback | None = None,
) -> DoctorReport:
    """Check a home or a database; default: the environment, then ~/.inmind. Changes nothing.

    `online=False` makes no network requests. `embedder` is the one that the home is opened with. `watch` gets the
    current step, the events read and their total, which is 0 if unknown.
    """
    place = default_place() if home is None else home
    if isinstance(place, str) and is_database(place):
        url = check_database_url(place, "home")
        return DoctorReport.of(redact_url(url), [*home_checks.check_software(), *check_server(url, online=online)])
    default, path = default_home().expanduser().absolute(), Path(place).expanduser().absolute()
    hints = FixHints(path, is_default=path == default)
    findings = [home_checks.check_home(path, hints), *home_checks.check_software()]
    findings.append(home_checks.check_sqlite_version(apsw.sqlite_lib_version()))
    if home_checks.is_readable(path):
        scan = home_checks.scan_folder(path.resolve())
        context = DoctorContext(path.resolve(), hints, clock or _now, scan, watch or _ignore_progress)
        settings, configured = home_checks.check_settings(context.home, hints)
        usable_embedder, embedding = home_checks.check_embedder(embedder, online=online)
        findings += [*_check_folder(context), configured, embedding]
        findings += [home_checks.check_model(settings.model, online=online)] if settings else []
        findings += check_journal(context, usable_embedder)
    return DoctorReport.of(path, findings)


def _check_folder(context: DoctorContext) -> Iterator[DoctorFinding]:
    hints, scan, user = context.hints, context.scan, os.geteuid()
    mount, space = mount_of(context.home), os.statvfs(context.home)
    read_only = mount.read_only or bool(space.f_flag & os.ST_RDONLY)
    access = list(home_checks.check_permissions(scan, hints, user=user))
    yield from access or [ok("permissions", "only accessible to its owner")]
    if not read_only:  # on a read-only file system nothing is writable
        yield from home_checks.check_writable(scan, hints, user=user)
    types = list(home_checks.check_file_types(scan, hints))
    yield from types or [ok("files", "only folders and regular files")]
    free = space.f_bavail * space.f_frsize
    yield from home_checks.check_disk(mount, free=free, read_only=read_only, hints=hints)
    yield home_checks.check_size(scan, hints)


def _now() -> datetime:
    return datetime.now(UTC)


def _ignore_progress(_doing: str, _done: int, _total: int) -> None:
    pass
