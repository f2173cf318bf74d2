"""The database: whether it opens, is ours, is sound, and of a shape that this inmind knows."""

from __future__ import annotations

from pathlib import Path

import apsw

from inmind.apps.doctor.fix_hints import AGAIN, Steps
from inmind.apps.doctor.result import Check, Finding, Subject
from inmind.apps.doctor.sqlite_readonly import StoreLookedAt
from inmind.core.paths import DATABASE
from inmind.errors import Damaged, StoreBusy, StoreError
from inmind.store.sqlite import journal_mode

LIBRARY = Check(Subject.SOFTWARE, "SQLite")
OPENS = Check(Subject.JOURNAL, "database")
SCHEMA = Check(Subject.JOURNAL, "schema")

_UPGRADE = '`pip install --upgrade "apsw>=3.51.3"`'

_ONLY_AN_INDEX = ("missing from index", "wrong # of entries in index", "non-unique entry in index")
"""What SQLite says of an index that does not say what its table says. It is made of the table, and can be again."""


def library(version: str) -> Finding:
    if journal_mode(version) == "wal":
        return LIBRARY.ok(f"{version}, of apsw {apsw.apsw_version()}")
    seen = f"{version} can damage a write-ahead log that two share: the slower rollback journal is used instead"
    return LIBRARY.warning(seen, _UPGRADE)


def unopened(error: StoreError, path: Path, steps: Steps) -> Finding:
    """Why the database could not even be looked at."""
    if isinstance(error, StoreBusy):
        return OPENS.warning(f"{DATABASE} was held by another program all the time", AGAIN)
    if isinstance(error, Damaged):
        return OPENS.trouble(f"{DATABASE} is no sound database: {error.reason}", steps.bring_back)
    if Path(f"{path}-journal").exists():
        seen = f"a program was killed while it wrote: {DATABASE}-journal has what is to be taken back"
        return OPENS.warning(seen, steps.any_opening)
    reason = getattr(error, "reason", str(error))
    return OPENS.trouble(f"{DATABASE} does not open: {reason}", f"see to that, or {steps.bring_back}")


def unsettled() -> Finding:
    return OPENS.warning(f"somebody began to write to {DATABASE} or ceased to, each time that it was looked at", AGAIN)


def soundness(store: StoreLookedAt, steps: Steps) -> Finding:
    try:
        flaws = store.flaws()
    except StoreError as error:
        return unopened(error, store.path, steps)
    if not flaws:
        return OPENS.ok("sound in every page")
    seen = f"{len(flaws)} flaws, the first: {flaws[0]}" if len(flaws) > 1 else flaws[0]
    if all(any(said in flaw for said in _ONLY_AN_INDEX) for flaw in flaws):
        return OPENS.trouble(f"a lookup table is damaged: {seen}", steps.sql("REINDEX", DATABASE))
    return OPENS.trouble(f"damaged: {' '.join(seen.split())}", steps.bring_back)


def schema(store: StoreLookedAt, steps: Steps) -> Finding:
    have, known = store.schema, store.known_schema
    if have > known:
        seen = f"{have}, and this inmind knows {known}: it is read, and not written"
        return SCHEMA.trouble(seen, "`pip install --upgrade inmind`")
    if have < known:
        return SCHEMA.warning(f"{have}, to be brought to {known} by whoever opens it next", steps.any_opening)
    return SCHEMA.ok(str(have))
