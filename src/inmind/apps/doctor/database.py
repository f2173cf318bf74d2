"""The database: whether it opens, is ours, is sound, and of a shape that this inmind knows."""

from __future__ import annotations

from pathlib import Path

import apsw

from inmind.apps.doctor.result import RETRY_HINT, Check, DoctorFinding, FixHints, Subject
from inmind.apps.doctor.sqlite_readonly import ReadOnlyStore
from inmind.core.paths import DATABASE
from inmind.errors import Damaged, StoreBusy, StoreError
from inmind.store.sqlite import journal_mode

LIBRARY = Check(Subject.SOFTWARE, "SQLite")
OPENS = Check(Subject.JOURNAL, "database")
SCHEMA = Check(Subject.JOURNAL, "schema")

_UPGRADE = '`pip install --upgrade "apsw>=3.51.3"`'

_INDEX_FLAWS = ("missing from index", "wrong # of entries in index", "non-unique entry in index")
"""What SQLite says of an index that does not say what its table says. It is made of the table, and can be again."""


def check_sqlite_version(version: str) -> DoctorFinding:
    if journal_mode(version) == "wal":
        return LIBRARY.ok(f"{version}, of apsw {apsw.apsw_version()}")
    message = f"{version} can damage a write-ahead log that two share: the slower rollback journal is used instead"
    return LIBRARY.warning(message, _UPGRADE)


def explain_open_error(error: StoreError, path: Path, hints: FixHints) -> DoctorFinding:
    """Why the database could not even be looked at."""
    if isinstance(error, StoreBusy):
        return OPENS.warning(f"{DATABASE} was held by another program all the time", RETRY_HINT)
    if isinstance(error, Damaged):
        return OPENS.trouble(f"{DATABASE} is no sound database: {error.reason}", hints.restore_backup)
    if Path(f"{path}-journal").exists():
        message = f"a program was killed while it wrote: {DATABASE}-journal has what is to be taken back"
        return OPENS.warning(message, hints.open_home)
    reason = getattr(error, "reason", str(error))
    return OPENS.trouble(f"{DATABASE} does not open: {reason}", f"see to that, or {hints.restore_backup}")


def database_busy() -> DoctorFinding:
    return OPENS.warning(
        f"somebody began to write to {DATABASE} or ceased to, each time that it was looked at", RETRY_HINT
    )


def check_integrity(store: ReadOnlyStore, hints: FixHints) -> DoctorFinding:
    try:
        flaws = store.flaws()
    except StoreError as error:
        return explain_open_error(error, store.path, hints)
    if not flaws:
        return OPENS.ok("sound in every page")
    message = f"{len(flaws)} flaws, the first: {flaws[0]}" if len(flaws) > 1 else flaws[0]
    if all(any(said in flaw for said in _INDEX_FLAWS) for flaw in flaws):
        return OPENS.trouble(f"a lookup table is damaged: {message}", hints.sql("REINDEX", DATABASE))
    return OPENS.trouble(f"damaged: {' '.join(message.split())}", hints.restore_backup)


def check_schema(store: ReadOnlyStore, hints: FixHints) -> DoctorFinding:
    have, known = store.schema, store.known_schema
    if have > known:
        message = f"{have}, and this inmind knows {known}: it is read, and not written"
        return SCHEMA.trouble(message, "`pip install --upgrade inmind`")
    if have < known:
        return SCHEMA.warning(f"{have}, to be brought to {known} by whoever opens it next", hints.open_home)
    return SCHEMA.ok(str(have))
