"""Checks of the SQLite database: opening, owner, integrity and schema."""

from __future__ import annotations

from pathlib import Path

import apsw

from inmind.apps.doctor.result import RETRY_HINT, Check, DoctorFinding, FixHints, Subject
from inmind.apps.doctor.sqlite_readonly import ReadOnlyStore
from inmind.core.paths import DATABASE
from inmind.errors import Damaged, StoreBusy, StoreError
from inmind.store.sqlite.connection import journal_mode

LIBRARY = Check(Subject.SOFTWARE, "SQLite")
OPENS = Check(Subject.JOURNAL, "database")
SCHEMA = Check(Subject.JOURNAL, "schema")

_UPGRADE = '`pip install --upgrade "apsw>=3.51.3"`'

_INDEX_FLAWS = ("missing from index", "wrong # of entries in index", "non-unique entry in index")
"""Messages of SQLite about an index that differs from its table. REINDEX rebuilds it from the table."""


def check_sqlite_version(version: str) -> DoctorFinding:
    if journal_mode(version) == "wal":
        return LIBRARY.ok(f"{version}, of apsw {apsw.apsw_version()}")
    message = f"{version} can corrupt a shared write-ahead log; using the slower rollback journal instead"
    return LIBRARY.warning(message, _UPGRADE)


def explain_open_error(error: StoreError, path: Path, hints: FixHints) -> DoctorFinding:
    """Finding for a database that cannot be opened."""
    if isinstance(error, StoreBusy):
        return OPENS.warning(f"{DATABASE} is locked by another process", RETRY_HINT)
    if isinstance(error, Damaged):
        return OPENS.trouble(f"{DATABASE} is damaged: {error.reason}", hints.restore_backup)
    if Path(f"{path}-journal").exists():
        message = f"a process was killed during a write: {DATABASE}-journal has to be rolled back"
        return OPENS.warning(message, hints.open_home)
    reason = getattr(error, "reason", str(error))
    return OPENS.trouble(f"{DATABASE} does not open: {reason}", f"fix the cause, or {hints.restore_backup}")


def database_busy() -> DoctorFinding:
    return OPENS.warning(f"{DATABASE} changed during every attempt to read it", RETRY_HINT)


def check_integrity(store: ReadOnlyStore, hints: FixHints) -> DoctorFinding:
    try:
        flaws = store.flaws()
    except StoreError as error:
        return explain_open_error(error, store.path, hints)
    if not flaws:
        return OPENS.ok("all pages are intact")
    message = f"{len(flaws)} errors, first: {flaws[0]}" if len(flaws) > 1 else flaws[0]
    if all(any(text in flaw for text in _INDEX_FLAWS) for flaw in flaws):
        return OPENS.trouble(f"a database index is damaged: {message}", hints.sql("REINDEX", DATABASE))
    return OPENS.trouble(f"damaged: {' '.join(message.split())}", hints.restore_backup)


def check_schema(store: ReadOnlyStore, hints: FixHints) -> DoctorFinding:
    have, known = store.schema, store.known_schema
    if have > known:
        message = f"{have}, but this inmind supports up to {known}: the home is read-only"
        return SCHEMA.trouble(message, "`pip install --upgrade inmind`")
    if have < known:
        return SCHEMA.warning(f"{have}, will be migrated to {known} when the home is opened", hints.open_home)
    return SCHEMA.ok(str(have))
