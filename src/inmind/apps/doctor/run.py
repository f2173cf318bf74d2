"""Runs all checks, bottom up: folder, database, streams, and derived data.

Checks that depend on a failed one are skipped: a hundred findings about one damaged page do not help.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import apsw

from inmind.apps.doctor import database, dreams, environment, folder, pages, search, streams
from inmind.apps.doctor.postgres import check_server
from inmind.apps.doctor.result import DoctorFinding, DoctorReport, FixHints, Verdict, add_ok_findings, sort_findings
from inmind.apps.doctor.sqlite_readonly import ReadMode, ReadOnlyStore, read_undisturbed
from inmind.apps.doctor.streams import CheckedStream
from inmind.core.frozen import frozen
from inmind.core.paths import DATABASE, check_database_url, default_home, default_place, is_database
from inmind.core.stream_names import RESOURCE_PREFIX, SESSION_PREFIX
from inmind.core.text import count_noun
from inmind.errors import StoreBusy, StoreError
from inmind.search.embedders.base import Embedder
from inmind.session.state import ResourceState, SessionState
from inmind.store.filesystem import mount_of
from inmind.store.protocol import Clock
from inmind.store.sqlite.connection import find_remains

ProgressCallback = Callable[[str, int, int], None]


@frozen
class CheckContext:
    """The home to check, with everything that the checks share."""

    home: Path
    hints: FixHints
    clock: Clock
    scan: folder.FolderScan
    watch: ProgressCallback


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
        return check_server(check_database_url(place, "home"), online=online)
    default, path = default_home().expanduser().absolute(), Path(place).expanduser().absolute()
    hints = FixHints(path, is_default=path == default)
    presence = folder.check_home(path, hints)
    findings = [
        presence,
        environment.check_versions(),
        environment.check_extras(),
        database.check_sqlite_version(apsw.sqlite_lib_version()),
    ]
    if folder.is_readable(path):
        home = path.resolve()
        context = CheckContext(home, hints, clock or _now, folder.scan_folder(home), watch or _ignore_progress)
        settings, configured = environment.check_settings(home)
        usable_embedder, embedding = search.check_embedder(embedder, online=online)
        findings += [*_check_folder(context), configured, embedding]
        findings += [environment.check_model(settings.model, online=online)] if settings else []
        findings += _check_journal(context, usable_embedder)
    return DoctorReport(home=path, findings=sort_findings(findings))


def _check_folder(context: CheckContext) -> Iterator[DoctorFinding]:
    home, hints, scan = context.home, context.hints, context.scan
    mount, space = mount_of(home), folder.disk_space(home)
    yield from folder.check_permissions(scan, home, hints, user=os.geteuid())
    if not (mount.read_only or space.read_only):  # on a read-only file system nothing is writable
        yield from folder.check_writable(scan, home, hints, user=os.geteuid())
    yield from folder.check_file_types(scan, home, hints)
    yield from folder.check_disk(mount, space, home, hints)
    yield folder.check_size(scan, hints)


def _check_journal(context: CheckContext, embedder: Embedder | None) -> list[DoctorFinding]:
    path = context.home / DATABASE
    if not path.exists() or find_remains(path):
        return []
    findings = read_undisturbed(path, lambda mode: _check_store(context, mode, embedder))
    return [database.database_busy()] if findings is None else findings


def _check_store(context: CheckContext, mode: ReadMode, embedder: Embedder | None) -> list[DoctorFinding]:
    try:
        store = ReadOnlyStore(mode)
    except StoreError as error:
        return [database.explain_open_error(error, mode.path, context.hints)]
    try:
        return list(_check_database(context, store, embedder))
    finally:
        store.close()


def _check_database(context: CheckContext, store: ReadOnlyStore, embedder: Embedder | None) -> Iterator[DoctorFinding]:
    context.watch("checking the pages of the database", 0, 0)
    integrity = database.check_integrity(store, context.hints)
    yield integrity
    if integrity.verdict is not Verdict.OK:
        return
    try:
        schema = database.check_schema(store, context.hints)
        yield schema
        if schema.verdict is not Verdict.OK:
            return
        checks = _check_streams(context, store)
        context.watch("checking the search index", 0, 0)
        index_status, index = search.check_index(context.home, store, context.hints)
        yield from _collect_findings(context, store, checks)
        yield index
        if index_status is not None and embedder is not None:
            yield from search.check_embeddings(index_status, embedder, context.hints)
    except StoreError as error:
        yield database.explain_open_error(error, store.path, context.hints)


@frozen(kw_only=True)
class _StreamCheck:
    """Result for one stream."""

    name: str
    findings: Sequence[DoctorFinding]
    files: Sequence[DoctorFinding] = ()
    """Findings about its files. Files and stream are never read at the same moment: see `_confirm_file_findings`."""
    version: int = 0
    is_recent: bool = False
    """Its newest event may not be written to its files yet."""
    notes: int = 0
    """Notes waiting for a dream."""
    restores: Mapping[Path, str] = field(default_factory=dict[Path, str])
    """For a session: the folders that opening it syncs with the journal."""


def _check_streams(context: CheckContext, store: ReadOnlyStore) -> list[_StreamCheck]:
    """Check sessions before resources: opening a session also syncs the files of its resource."""
    checks: list[_StreamCheck] = []
    restored_by: dict[Path, str] = {}
    read, events = 0, store.last_position()
    for name in (*store.stream_names(SESSION_PREFIX), *store.stream_names(RESOURCE_PREFIX)):
        context.watch("reading events", read, events)
        checks.append(_check_stream(context, store, name, restored_by))
        restored_by |= checks[-1].restores
        read += checks[-1].version
    return checks


def _collect_findings(
    context: CheckContext, store: ReadOnlyStore, checks: Sequence[_StreamCheck]
) -> list[DoctorFinding]:
    scan, home, hints = context.scan, context.home, context.hints
    restored_by = {folder: session for one in checks for folder, session in one.restores.items()}
    findings = [finding for one in checks for finding in one.findings]
    findings += [finding for one in checks for finding in _confirm_file_findings(context, store, one, restored_by)]
    findings += pages.check_damaged_copies(scan, home, hints)
    findings += pages.check_leftovers(
        folder.unchanged_entries(scan.leftovers, home), home, hints, restored_by, context.clock()
    )
    sessions = sum(one.name.startswith(SESSION_PREFIX) for one in checks)
    both = f"{count_noun(sessions, 'session')} and {count_noun(len(checks) - sessions, 'resource')}"
    return add_ok_findings(
        findings,
        {
            streams.EVENTS: f"all {sum(one.version for one in checks):,} of {both} are readable, none missing",
            streams.SNAPSHOTS: "all match their events",
            streams.CLOCK: "no events in the future",
            pages.PAGES: "all files match the journal",
            pages.DAMAGED_COPIES: "none",
            pages.SCRATCHPADS: "none set aside",
            pages.LEFTOVERS: "none",
            search.SKIPPED: "no unreadable messages",
            dreams.LEASES: "none expired",
            dreams.FAILURES: "none repeated",
            dreams.NOTES: f"{count_noun(sum(one.notes for one in checks), 'note')} waiting",
        },
    )


def _check_stream(
    context: CheckContext, store: ReadOnlyStore, name: str, restored_by: Mapping[Path, str]
) -> _StreamCheck:
    """Check one stream.

    An exception becomes a finding, so that the other streams are still checked.
    """
    try:
        with store.read_transaction():
            return _check_in_transaction(context, store, name, restored_by)
    except StoreBusy:
        raise
    except Exception as error:  # folding damaged events can raise anything
        return _StreamCheck(name=name, findings=[streams.describe_stream_error(name, error, context.hints)])


def _check_in_transaction(
    context: CheckContext, store: ReadOnlyStore, name: str, restored_by: Mapping[Path, str]
) -> _StreamCheck:
    home, hints = context.home, context.hints
    loaded = streams.load_stream(store, name, context.clock)
    now = context.clock()
    findings = [
        *streams.check_snapshots(store, loaded, hints),
        *streams.check_clock(loaded, now),
        *pages.check_set_aside_scratchpads(loaded),
        *search.check_unreadable_messages(loaded, hints),
    ]
    check = _StreamCheck(
        name=name, findings=findings, version=loaded.stream.version, is_recent=streams.is_stream_recent(loaded, now)
    )
    if isinstance(loaded.stream.state, SessionState):
        session = cast("CheckedStream[SessionState]", loaded)
        files = pages.check_session_pages(home, session, store, hints)
        return replace(check, files=list(files), restores=pages.folders_restored_by(home, session))
    resource = cast("CheckedStream[ResourceState]", loaded)
    files = pages.check_resource_pages(home, resource, store, hints, restored_by)
    all_findings = [*findings, *dreams.check_dreams(resource, now, hints)]
    return replace(check, findings=all_findings, files=list(files), notes=len(dreams.waiting_notes(resource)))


def _confirm_file_findings(
    context: CheckContext, store: ReadOnlyStore, first: _StreamCheck, restored_by: Mapping[Path, str]
) -> Sequence[DoctorFinding]:
    """File findings that a second check confirms while the stream does not change.

    A writer commits first and then writes its files, and an editor may truncate a file before it writes it. A file that
    differs in between is no problem; only "in use" is reported for it.
    """
    if not first.files:
        return ()
    second = _check_stream(context, store, first.name, restored_by)
    if second.is_recent or second.version != store.version(first.name):
        return [pages.stream_in_use(first.name)] if second.files else ()
    return [finding for finding in second.files if finding in first.files]


def _now() -> datetime:
    return datetime.now(UTC)


def _ignore_progress(_doing: str, _done: int, _total: int) -> None:
    pass
