"""Checks of the journal, and of snapshots, dreams and the search index.

Checks that depend on a failed one are skipped: a hundred findings about one damaged page do not help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from inmind.apps.doctor.pages import DoctorContext, check_files, check_session_files, check_stray_files, is_recent
from inmind.apps.doctor.report import RETRY_HINT, UPGRADE, DoctorFinding, FixHints, Verdict, ok, trouble, warning
from inmind.apps.doctor.sqlite_readonly import IndexStatus, ReadMode, ReadOnlyIndex, ReadOnlyStore, read_undisturbed
from inmind.core.events.base import Event
from inmind.core.events.codec import DECODE_ERRORS
from inmind.core.events.documents import ScratchpadSetAside
from inmind.core.events.dreams import DreamCommitted, DreamFailed
from inmind.core.events.session import MessageAdded
from inmind.core.frozen import frozen
from inmind.core.paths import DATABASE, INDEX, resource_folder, session_folder
from inmind.core.stream_names import ANONYMOUS, RESOURCE_PREFIX, SESSION_PREFIX
from inmind.core.text import count_noun
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import PageNote, parse_notes
from inmind.dreams.state import FAILURES_BEFORE_BACKOFF
from inmind.errors import Damaged, StoreBusy, StoreError, short_repr
from inmind.search.crystal_texts import message_reader
from inmind.search.embedders.base import Embedder
from inmind.search.embedding import MAX_MISSING
from inmind.search.index.base import BATCH_SIZE
from inmind.search.index.indexer import INDEXED_KINDS
from inmind.session.live_files import resource_files
from inmind.session.state import ResourceFold, ResourceState, SessionFold, SessionState
from inmind.session.tools.registry import is_memory_tool
from inmind.store.atomic_files import Folder
from inmind.store.sqlite.connection import find_remains
from inmind.store.stream import Stream

MAX_CLOCK_SKEW = timedelta(minutes=5)
"""Tolerated difference between the clocks of processes."""

MAX_NOTE_AGE = timedelta(days=2)
"""A note that waits longer means that dreams do not run; normally they run every two hours of use."""

_INDEX_FLAWS = ("missing from index", "wrong # of entries in index", "non-unique entry in index")
"""Messages of SQLite about an index that differs from its table. REINDEX rebuilds it from the table."""

_DROP_SNAPSHOTS = "DELETE FROM snapshots"
_read_message = message_reader(is_memory_tool)
"""Reads messages like the index does."""


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


class _EventMissing(Exception):
    """An event number is missing before a later event."""


def check_journal(context: DoctorContext, embedder: Embedder | None) -> list[DoctorFinding]:
    path = context.home / DATABASE
    if not path.exists() or find_remains(path):
        return []
    findings = read_undisturbed(path, lambda mode: _check_store(context, mode, embedder))
    busy = warning("database", f"{DATABASE} changed during every attempt to read it", RETRY_HINT)
    return [busy] if findings is None else findings


def _check_store(context: DoctorContext, mode: ReadMode, embedder: Embedder | None) -> list[DoctorFinding]:
    try:
        store = ReadOnlyStore(mode)
    except StoreError as error:
        return [_explain_open_error(error, mode.path, context.hints)]
    try:
        return list(_check_database(context, store, embedder))
    finally:
        store.close()


def _check_database(context: DoctorContext, store: ReadOnlyStore, embedder: Embedder | None) -> Iterator[DoctorFinding]:
    try:
        context.watch("checking the pages of the database", 0, 0)
        for check in (_check_integrity, _check_schema):
            finding = check(store, context.hints)
            yield finding
            if finding.verdict is not Verdict.OK:
                return
        checks = _check_streams(context, store)
        context.watch("checking the search index", 0, 0)
        index_status, index = _check_index(context.home, store, context.hints)
        yield from _collect_findings(context, store, checks)
        yield index
        if index_status is not None and embedder is not None:
            yield from _check_embeddings(index_status, embedder, context.hints)
    except StoreError as error:
        yield _explain_open_error(error, store.path, context.hints)


def _explain_open_error(error: StoreError, path: Path, hints: FixHints) -> DoctorFinding:
    """Finding for a database that cannot be opened."""
    if isinstance(error, StoreBusy):
        return warning("database", f"{DATABASE} is locked by another process", RETRY_HINT)
    if isinstance(error, Damaged):
        return trouble("database", f"{DATABASE} is damaged: {error.reason}", hints.restore_backup)
    if Path(f"{path}-journal").exists():
        message = f"a process was killed during a write: {DATABASE}-journal has to be rolled back"
        return warning("database", message, hints.open_home)
    message = f"{DATABASE} does not open: {getattr(error, 'reason', error)}"
    return trouble("database", message, f"fix the cause, or {hints.restore_backup}")


def _check_integrity(store: ReadOnlyStore, hints: FixHints) -> DoctorFinding:
    flaws = store.flaws()
    if not flaws:
        return ok("database", "all pages are intact")
    message = f"{len(flaws)} errors, first: {flaws[0]}" if len(flaws) > 1 else flaws[0]
    if all(any(text in flaw for text in _INDEX_FLAWS) for flaw in flaws):
        return trouble("database", f"a database index is damaged: {message}", hints.sql("REINDEX", DATABASE))
    return trouble("database", f"damaged: {' '.join(message.split())}", hints.restore_backup)


def _check_schema(store: ReadOnlyStore, hints: FixHints) -> DoctorFinding:
    current, known = store.schema, store.known_schema
    if current > known:
        message = f"{current}, but this inmind supports up to {known}: the home is read-only"
        return trouble("schema", message, UPGRADE)
    if current < known:
        return warning("schema", f"{current}, will be migrated to {known} when the home is opened", hints.open_home)
    return ok("schema", str(current))


def _check_streams(context: DoctorContext, store: ReadOnlyStore) -> list[_StreamCheck]:
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
    context: DoctorContext, store: ReadOnlyStore, checks: Sequence[_StreamCheck]
) -> Iterator[DoctorFinding]:
    """Findings of all streams and files, with an OK finding for each check without any."""
    restored_by = {folder: session for one in checks for folder, session in one.restores.items()}
    findings = [finding for one in checks for finding in one.findings]
    findings += [finding for one in checks for finding in _confirm_file_findings(context, store, one, restored_by)]
    findings += check_stray_files(context, restored_by)
    yield from findings
    sessions = sum(one.name.startswith(SESSION_PREFIX) for one in checks)
    both = f"{count_noun(sessions, 'session')} and {count_noun(len(checks) - sessions, 'resource')}"
    for check, message in {
        "events": f"all {sum(one.version for one in checks):,} of {both} are readable, none missing",
        "snapshots": "all match their events",
        "clock": "no events in the future",
        "pages": "all files match the journal",
        "damaged files": "none",
        "scratchpads": "none set aside",
        "leftovers": "none",
        "unreadable messages": "no unreadable messages",
        "leases": "none expired",
        "failures": "none repeated",
        "notes": f"{count_noun(sum(one.notes for one in checks), 'note')} waiting",
    }.items():
        if not any(finding.check == check for finding in findings):
            yield ok(check, message)


def _check_stream(
    context: DoctorContext, store: ReadOnlyStore, name: str, restored_by: Mapping[Path, str]
) -> _StreamCheck:
    """Check one stream; an exception becomes a finding, so that the others are checked."""
    restore = context.hints.restore_backup
    try:
        with store.read_transaction():
            return _check_in_transaction(context, store, name, restored_by)
    except StoreBusy:
        raise
    except _EventMissing as error:
        finding = trouble("events", str(error), restore)
    except Damaged as error:
        place = error.place if name in error.place else name
        fix = UPGRADE if "upgrade inmind" in error.reason else restore
        finding = trouble("events", f"{place} is damaged: {error.reason}", fix)
    except Exception as error:  # folding damaged events can raise anything
        finding = trouble("events", f"{name} cannot be folded: {type(error).__name__}: {error}", restore)
    return _StreamCheck(name=name, findings=[finding])


def _check_in_transaction(
    context: DoctorContext, store: ReadOnlyStore, name: str, restored_by: Mapping[Path, str]
) -> _StreamCheck:
    """Fold a stream from its first event, without snapshots, and check it with its files."""
    home, hints, now = context.home, context.hints, context.clock()
    fold = SessionFold(name) if name.startswith(SESSION_PREFIX) else ResourceFold(name)
    events, owner = store.read(name), name.partition("/")[2]
    if missing := next((place for place, event in enumerate(events, start=1) if event.seq != place), 0):
        raise _EventMissing(f"{name} lacks event {missing} but has later ones")
    stream: Stream[Any] = Stream(store, name, fold, context.clock)
    findings = [
        *_check_snapshot(store, stream, fold.version, hints),
        *_check_events(stream, events, now, hints),
    ]
    is_written = bool(events) and is_recent((now - events[-1].at).total_seconds())
    check = _StreamCheck(name=name, findings=findings, version=stream.version, is_recent=is_written)
    if isinstance(state := stream.state, SessionState):
        opened = state.opened
        path = session_folder(home, owner, opened.cwd if opened else "")
        files = check_session_files(context, store, stream, events, Folder(path, home=home))
        restores = dict.fromkeys((path, *([resource_folder(home, opened.resource)] if opened else [])), owner)
        return replace(check, files=list(files), restores=restores)
    # Opening a session syncs the files of its resource; without a session only a dream does.
    folder = Folder(resource_folder(home, owner), home=home)
    session = restored_by.get(folder.path)
    fix = hints.open_session(session) if session else hints.run_dream(owner)
    files = list(check_files(context, folder, resource_files(folder, stream, store), "", fix))
    if owner == ANONYMOUS:  # anonymous sessions do not dream
        return replace(check, files=files)
    notes = parse_notes(state.documents.text(NOTES_PAGE_PATH))
    dreams = _check_dreams(owner, state, events, notes, now, hints)
    return replace(check, findings=[*findings, *dreams], files=files, notes=len(notes))


def _check_snapshot(
    store: ReadOnlyStore, stream: Stream[Any], fold_version: int, hints: FixHints
) -> Iterator[DoctorFinding]:
    """Check that the stored snapshot equals the fold of the events, byte for byte."""
    stored = store.stored_snapshot(stream.name, fold=fold_version)
    if stored is None:
        return
    drop = f"{hints.sql(_DROP_SNAPSHOTS, DATABASE)} (snapshots are a cache and are created again)"
    if not stream.has_valid_digest(stored):
        yield warning("snapshots", f"the one of {stream.name} has a wrong checksum and is not used", drop)
    elif stored.seq > stream.version or stream.make_snapshot(stream.state_at(stored.seq), stored.seq) != stored:
        yield trouble("snapshots", f"the one of {stream.name} does not match its events", drop)


def _check_events(
    stream: Stream[Any], events: Sequence[Event], now: datetime, hints: FixHints
) -> Iterator[DoctorFinding]:
    """Find events in the future, scratchpads set aside, and messages that search skips."""
    if events and (latest := max(event.at for event in events)) > now + MAX_CLOCK_SKEW:
        message = f"{stream.name} has events of {latest:%Y-%m-%d %H:%M} UTC, but it is {now:%Y-%m-%d %H:%M}"
        yield warning(
            "clock", message, "set the clock of this machine if it is wrong (`date`); otherwise wait until then"
        )
    for event in events:
        if isinstance(event.payload, ScratchpadSetAside):
            before = stream.state_at(event.seq - 1).scratchpads.get(event.payload.scratchpad)
            reason = f"was set aside on {event.at:%Y-%m-%d} ({event.payload.reason})"
            message = (
                f"{event.payload.scratchpad} of {stream.name} {reason}; it held {short_repr(before and before.state)}"
            )
            fix = "session.scratchpad.set_aside has the old state, for session.scratchpad.update({…})"
            yield ok("scratchpads", message, fix)
        elif isinstance(event.payload, MessageAdded):
            try:
                _read_message(event.payload)
            except DECODE_ERRORS as error:
                message = f"{event.id} cannot be read ({type(error).__name__}: {error}); search skips it"
                yield warning("unreadable messages", message, hints.restore_backup)


def _check_dreams(
    owner: str, state: ResourceState, events: Sequence[Event], notes: Sequence[PageNote], now: datetime, hints: FixHints
) -> Iterator[DoctorFinding]:
    """Find expired leases, repeated failures, and notes that wait too long."""
    dreams, run_dream = state.dreams, hints.run_dream(owner)
    if (running := dreams.running) is not None and not running.is_held(now):
        started = f"started {running.started_at:%Y-%m-%d %H:%M}, in phase {running.phase}"
        yield warning("leases", f"dream {running.dream} of {owner} never ended ({started}); harmless", run_dream)
    if dreams.failures >= FAILURES_BEFORE_BACKOFF:
        message = f"the last {dreams.failures} dreams of {owner} failed: {_last_reason(events, DreamFailed)}"
        yield warning("failures", f"{message}; dreams are delayed by a backoff", f"fix the cause, then {run_dream}")
    elif dreams.model_failures >= FAILURES_BEFORE_BACKOFF:
        reason = _last_reason(events, DreamCommitted)
        message = f"the last {dreams.model_failures} model calls for {owner} failed: {reason}"
        yield warning("failures", f"{message}; dreams use rules until then", f"fix the model, then {run_dream}")
    since = min((_parse_time(note.at) for note in notes), default=now)
    if now - since > MAX_NOTE_AGE:
        message = f"{count_noun(len(notes), 'note')} of {owner} waiting, the oldest since {since:%Y-%m-%d}"
        yield warning("notes", message, f"{run_dream}, or keep {hints.inmind('worker')} running")


def _last_reason(events: Sequence[Event], kind: type[DreamFailed] | type[DreamCommitted]) -> str:
    """Reason of the last failure."""
    match next((event.payload for event in reversed(events) if isinstance(event.payload, kind)), None):
        case DreamFailed(code=code, reason=reason):
            return f"{code}: {reason}"
        case DreamCommitted(fallback_reason=reason) if reason:
            return str(reason)
        case _:
            return "the process was killed"


def _parse_time(stamp: str) -> datetime:
    try:
        return datetime.fromisoformat(stamp).astimezone(UTC)
    except (ValueError, OverflowError):  # users can edit the notes page and write any date
        return datetime.max.replace(tzinfo=UTC)


def _confirm_file_findings(
    context: DoctorContext, store: ReadOnlyStore, first: _StreamCheck, restored_by: Mapping[Path, str]
) -> Sequence[DoctorFinding]:
    """File findings that a second check confirms while the stream does not change.

    A writer commits first and then writes its files, and an editor may truncate a file before it writes it. A file that
    differs in between is no problem; only "in use" is reported for it.
    """
    if not first.files:
        return ()
    second = _check_stream(context, store, first.name, restored_by)
    if second.is_recent or second.version != store.version(first.name):
        message = f"a process is writing to {first.name}, or was killed just now: its files are not up to date yet"
        return [ok("pages", message, RETRY_HINT)] if second.files else ()
    return [finding for finding in second.files if finding in first.files]


def _check_index(home: Path, store: ReadOnlyStore, hints: FixHints) -> tuple[IndexStatus | None, DoctorFinding]:
    """Check the index. It is derived from the journal, so a damaged one loses nothing."""
    disturbed = ok("index", "it changed during every attempt to read it", RETRY_HINT)
    return read_undisturbed(home / INDEX, lambda mode: _read_index(mode, store, hints)) or (None, disturbed)


def _read_index(mode: ReadMode, store: ReadOnlyStore, hints: FixHints) -> tuple[IndexStatus | None, DoctorFinding]:
    upkeep = hints.inmind("upkeep")
    if not mode.path.exists():
        if len(store.events_since(0, kinds=INDEXED_KINDS, limit=BATCH_SIZE)) < BATCH_SIZE:
            return None, ok("index", "none: the next search builds it")
        return None, warning("index", "missing: the next search has to wait while it is built", upkeep)
    opened = ReadOnlyIndex(mode, store, _read_message)
    try:
        flaws = opened.flaws()
        status = None if flaws else opened.status()
    except StoreBusy:
        return None, warning("index", f"{INDEX} is locked by another process", RETRY_HINT)
    except StoreError as error:
        status, flaws = None, [getattr(error, "reason", str(error))]
    finally:
        opened.close()
    if status is None:
        files = sorted(mode.path.parent.glob(f"{INDEX}*"))
        rebuild = f"{hints.shell('rm', *files)}, then {upkeep}, which rebuilds it from the journal"
        return None, warning("index", f"damaged: {' '.join(flaws[0].split())}", rebuild)
    if not status.is_current:
        return None, warning("index", "version or journal changed: the next search rebuilds it", upkeep)
    if status.events_behind >= BATCH_SIZE:
        message = f"{BATCH_SIZE} or more events behind: the next search has to wait for them"
        return status, warning("index", message, upkeep)
    lag = f", {count_noun(status.events_behind, 'event')} behind" if status.events_behind else ""
    return status, ok("index", f"intact{lag}")


def _check_embeddings(status: IndexStatus, embedder: Embedder, hints: FixHints) -> Iterator[DoctorFinding]:
    others = [name for name in status.embedders if name != embedder.name]
    done = status.embedders.get(embedder.name, 0)
    if others and done < status.crystals:
        message = f"created by {', '.join(others)}, but {embedder.name} is in use: keyword search only until rebuilt"
        yield warning("vectors", message, hints.inmind("upkeep"))
    elif done + MAX_MISSING < status.crystals:
        message = f"{count_noun(status.crystals - done, 'crystal')} without embeddings: found by keywords only"
        yield warning("vectors", message, hints.inmind("upkeep"))
    elif status.crystals:
        yield ok("vectors", f"for {done:,} of {count_noun(status.crystals, 'crystal')}")
