"""Checks of the journal: events, snapshots, dreams, live files and the search index.

Checks that depend on a failed one are skipped: a hundred findings about one damaged page do not help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from inmind.apps.doctor import (
    RESTORE_BACKUP,
    RETRY_HINT,
    UPGRADE,
    DoctorFinding,
    FixHints,
    ProgressCallback,
    Verdict,
    check_schema,
    ok,
    trouble,
    warning,
)
from inmind.apps.doctor.home import scan_folder
from inmind.apps.doctor.sqlite_readonly import IndexStatus, ReadMode, ReadOnlyIndex, ReadOnlyStore, read_undisturbed
from inmind.core.events import DECODE_ERRORS
from inmind.core.events.base import Event
from inmind.core.events.documents import ScratchpadSetAside
from inmind.core.events.dreams import DreamCommitted, DreamFailed
from inmind.core.events.session import MessageAdded
from inmind.core.paths import (
    ANONYMOUS,
    DATABASE,
    INDEX,
    RESOURCE_PREFIX,
    SESSION_PREFIX,
    resource_folder,
    session_folder,
)
from inmind.core.text import count_noun
from inmind.documents.document import NOTES_PAGE_PATH, FileCheck, FileStatus
from inmind.documents.notes_page import PageNote, parse_notes
from inmind.dreams.state import FAILURES_BEFORE_BACKOFF
from inmind.errors import Damaged, StoreBusy, StoreError, short_repr
from inmind.search.embedders.base import Embedder
from inmind.search.embedding import MAX_MISSING
from inmind.search.extract import message_reader
from inmind.search.index.base import BATCH_SIZE
from inmind.search.index.indexer import INDEXED_KINDS
from inmind.session.derived_files import TRANSCRIPT_FILE as TRANSCRIPT
from inmind.session.derived_files import TranscriptFile
from inmind.session.live_files import LiveFiles, resource_files, session_files
from inmind.session.state import ResourceFold, ResourceState, SessionFold, SessionState
from inmind.session.tools.registry import is_memory_tool
from inmind.store.atomic_files import DAMAGED_SUFFIX, Folder, is_leftover
from inmind.store.protocol import Clock
from inmind.store.sqlite.connection import MIGRATIONS, find_remains
from inmind.store.stream import Stream

MAX_CLOCK_SKEW = timedelta(minutes=5)
"""Tolerated difference between the clocks of processes."""

MAX_NOTE_AGE = timedelta(days=2)
"""A note that waits longer means that dreams do not run; normally they run every two hours of use."""

_INDEX_FLAWS = ("missing from index", "wrong # of entries in index", "non-unique entry in index")
"""Messages of SQLite about an index that differs from its table. REINDEX rebuilds it from the table."""

WRITE_SECONDS = 10.0
"""Time that writing committed events to files may take on a slow, busy machine."""

_NEXT_CALL_EFFECT: Mapping[FileStatus, str] = {
    FileStatus.EDITED: "was edited; the next call imports the edit",
    FileStatus.STALE: "is out of date; the next call updates it",
    FileStatus.MISSING: "is missing; the next call writes it again",
    FileStatus.DAMAGED: "is damaged ({reason}); the next call keeps a copy and restores the last good version",
}
"""Effect of the next call of any process."""

_DROP_SNAPSHOTS = "DELETE FROM snapshots"
_read_message = message_reader(is_memory_tool)
"""Reads messages like the index does."""


class _StreamCheck(NamedTuple):
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


def check_journal(
    home: Path, hints: FixHints, embedder: Embedder | None, *, clock: Clock, watch: ProgressCallback
) -> list[DoctorFinding]:
    path = home / DATABASE
    if not path.exists() or find_remains(path):
        return []

    def check(mode: ReadMode) -> list[DoctorFinding]:
        return list(_JournalChecker(home, hints, clock, watch).check(mode, embedder))

    busy = [warning("database", f"{DATABASE} changed during every attempt to read it", RETRY_HINT)]
    return read_undisturbed(path, check) or busy


class _JournalChecker:
    """Checks of a journal and of the files written from it."""

    _store: ReadOnlyStore

    def __init__(self, home: Path, hints: FixHints, clock: Clock, watch: ProgressCallback) -> None:
        self._home, self._hints, self._clock, self._watch = home, hints, clock, watch
        self._restored_by: dict[Path, str] = {}
        """The folders that opening a session syncs with the journal, each with that session."""

    def check(self, mode: ReadMode, embedder: Embedder | None) -> Iterator[DoctorFinding]:
        try:
            with closing(ReadOnlyStore(mode)) as self._store:
                self._watch("checking the pages of the database", 0, 0)
                for check in (self._check_integrity, self._check_schema):
                    yield (finding := check())
                    if finding.verdict is not Verdict.OK:
                        return
                checks = self._check_streams()
                self._watch("checking the search index", 0, 0)
                index = read_undisturbed(self._home / INDEX, lambda mode: list(self._check_index(mode, embedder)))
                yield from index or [ok("index", "it changed during every attempt to read it", RETRY_HINT)]
                yield from self._collect_findings(checks)
        except StoreBusy:
            yield warning("database", f"{DATABASE} is locked by another process", RETRY_HINT)
        except Damaged as error:
            yield trouble("database", f"{DATABASE} is damaged: {error.reason}", RESTORE_BACKUP)
        except StoreError as error:
            if Path(f"{mode.path}-journal").exists():
                message = f"a process was killed during a write: {DATABASE}-journal has to be rolled back"
                yield warning("database", message, self._hints.open_home)
            else:
                message = f"{DATABASE} does not open: {getattr(error, 'reason', error)}"
                yield trouble("database", message, f"fix the cause, or {RESTORE_BACKUP}")

    def _check_integrity(self) -> DoctorFinding:
        flaws = self._store.flaws()
        if not flaws:
            return ok("database", "all pages are intact")
        message = f"{len(flaws)} errors, first: {flaws[0]}" if len(flaws) > 1 else flaws[0]
        if all(any(text in flaw for text in _INDEX_FLAWS) for flaw in flaws):
            return trouble("database", f"a database index is damaged: {message}", self._hints.sql("REINDEX"))
        return trouble("database", f"damaged: {' '.join(message.split())}", RESTORE_BACKUP)

    def _check_schema(self) -> DoctorFinding:
        return check_schema(self._store.schema, len(MIGRATIONS), self._hints.open_home)

    def _check_streams(self) -> list[_StreamCheck]:
        """Check sessions before resources: opening a session also syncs the files of its resource."""
        checks: list[_StreamCheck] = []
        read, events = 0, self._store.last_position()
        for name in (*self._store.stream_names(SESSION_PREFIX), *self._store.stream_names(RESOURCE_PREFIX)):
            self._watch("reading events", read, events)
            checks.append(self._check_stream(name))
            read += checks[-1].version
        return checks

    def _collect_findings(self, checks: Sequence[_StreamCheck]) -> Iterator[DoctorFinding]:
        """Findings of all streams and files, with an OK finding for each check without any."""
        findings = [finding for one in checks for finding in (*one.findings, *self._confirm_file_findings(one))]
        findings += self._check_stray_files()
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

    def _check_stream(self, name: str) -> _StreamCheck:
        """Check one stream; an exception becomes a finding, so that the others are checked."""
        fix = RESTORE_BACKUP
        try:
            with self._store.read_transaction():
                return self._check_in_transaction(name)
        except StoreBusy:
            raise
        except Damaged as error:
            message = f"{error.place if name in error.place else name} is damaged: {error.reason}"
            fix = UPGRADE if "upgrade inmind" in error.reason else RESTORE_BACKUP
        except Exception as error:  # folding damaged events can raise anything
            message = f"{name} cannot be folded: {type(error).__name__}: {error}"
        return _StreamCheck(name, [trouble("events", message, fix)])

    def _check_in_transaction(self, name: str) -> _StreamCheck:
        """Fold a stream from its first event, without snapshots, and check it with its files."""
        now, owner = self._clock(), name.partition("/")[2]
        events = self._store.read(name)
        for place, event in enumerate(events, start=1):
            if event.seq != place:
                raise Damaged(place=name, reason=f"it lacks event {place} but has later ones")
        fold = SessionFold(name) if name.startswith(SESSION_PREFIX) else ResourceFold(name)
        stream: Stream[Any] = Stream(self._store, name, fold, self._clock)
        findings = [*self._check_snapshot(stream, fold.version), *self._check_events(stream, events, now)]
        notes: Sequence[PageNote] = ()
        if isinstance(state := stream.state, SessionState):
            files = list(self._check_session_files(stream, state, events))
        else:
            # Opening a session syncs the files of its resource; without a session only a dream does.
            folder = Folder(resource_folder(self._home, owner), home=self._home)
            session = self._restored_by.get(folder.path)
            fix = self._hints.open_session(session) if session else self._hints.run_dream(owner)
            files = list(self._check_files(folder, resource_files(folder, stream, self._store), "", fix))
            if owner != ANONYMOUS:  # anonymous sessions do not dream
                notes = parse_notes(state.documents.text(NOTES_PAGE_PATH))
                findings += self._check_dreams(owner, state, events, notes, now)
        is_recent = bool(events) and _is_recent((now - events[-1].at).total_seconds())
        return _StreamCheck(name, findings, files, stream.version, is_recent, len(notes))

    def _check_session_files(
        self, stream: Stream[Any], state: SessionState, events: Sequence[Event]
    ) -> Iterator[DoctorFinding]:
        session, opened = stream.name.partition("/")[2], state.opened
        path = session_folder(self._home, session, opened.cwd if opened else "")
        self._restored_by[path] = session
        if opened:
            self._restored_by[resource_folder(self._home, opened.resource)] = session
        folder, fix = Folder(path, home=self._home), self._hints.open_session(session)
        if path.exists():  # otherwise the session was never opened in this home
            transcript = TranscriptFile(folder, self._store, stream.name).inspect(events)
            yield from self._check_file(path / TRANSCRIPT, transcript, fix)
        yield from self._check_files(folder, session_files(folder, stream, self._store), "working-memory/", fix)

    def _check_files(self, folder: Folder, files: LiveFiles, prefix: str, fix: str) -> Iterator[DoctorFinding]:
        """Compare live files with the journal."""
        for path, check in files.inspect():
            yield from self._check_file(folder.path / prefix / path, check, fix)
        for notice in files.notices():
            listing = self._hints.shell("ls", "-la", folder.path / prefix)
            message = f"{folder.path.relative_to(self._home)}: {notice}"
            yield warning("pages", message, f"move or rename it: {listing}")

    def _check_file(self, file: Path, check: FileCheck, fix: str) -> Iterator[DoctorFinding]:
        place, hints = file.relative_to(self._home), self._hints
        match check.status:
            case FileStatus.CURRENT:
                return
            case FileStatus.SHARED:
                message = f"{place} has a hard link; edits in it are not imported"
                yield warning("pages", message, hints.break_hard_link(file))
            case FileStatus.FOREIGN:
                yield warning("pages", f"{place} is ignored: {check.reason}", hints.remove_if_unused(file))
            case status:
                yield warning("pages", f"{place} {_NEXT_CALL_EFFECT[status].format(reason=check.reason)}", fix)

    def _confirm_file_findings(self, first: _StreamCheck) -> Sequence[DoctorFinding]:
        """File findings that a second check confirms while the stream does not change.

        A writer commits first and then writes its files, and an editor may truncate a file before it writes it. A file
        that differs in between is no problem; only "in use" is reported for it.
        """
        if not first.files:
            return ()
        second = self._check_stream(first.name)
        if second.is_recent or second.version != self._store.version(first.name):
            message = f"a process is writing to {first.name}, or was killed just now: its files are not up to date yet"
            return [ok("pages", message, RETRY_HINT)] if second.files else ()
        return [finding for finding in second.files if finding in first.files]

    def _check_stray_files(self) -> Iterator[DoctorFinding]:
        """Copies of damaged files, and temporary files of writers.

        Nothing is removed by itself: a copy is for the user to look at, and a temporary file may hold an edit; the next
        call cleans that up.
        """
        home, hints, files, now = self._home, self._hints, scan_folder(self._home).files, self._clock().timestamp()
        for path, status in files.items():
            name = path.rpartition("/")[2]
            if DAMAGED_SUFFIX in name:
                page = path.partition(DAMAGED_SUFFIX)[0]
                fix = f"copy what is missing in {page}, then {hints.shell('rm', home / path)}"
                yield warning("damaged files", f"{path}: former content of {page} that could not be read", fix)
            elif not is_leftover(name):
                continue
            elif _is_recent(now - status.st_mtime):
                yield ok("leftovers", f"{path}: a process is writing it, or was killed just now", RETRY_HINT)
            else:
                sessions = (self._restored_by.get(folder) for folder in (home / path).parents)
                session = next(filter(None, sessions), None)
                fix = hints.open_session(session) if session else hints.shell("rm", home / path)
                yield warning("leftovers", f"{path}: a process was killed during a write", fix)

    def _check_snapshot(self, stream: Stream[Any], fold_version: int) -> Iterator[DoctorFinding]:
        """Check that the stored snapshot equals the fold of the events, byte for byte."""
        stored = self._store.stored_snapshot(stream.name, fold=fold_version)
        if stored is None:
            return
        drop = f"{self._hints.sql(_DROP_SNAPSHOTS)} (snapshots are a cache and are created again)"
        if not stream.has_valid_digest(stored):
            yield warning("snapshots", f"the one of {stream.name} has a wrong checksum and is not used", drop)
        elif stored.seq > stream.version or stream.make_snapshot(stream.state_at(stored.seq), stored.seq) != stored:
            yield trouble("snapshots", f"the one of {stream.name} does not match its events", drop)

    def _check_events(self, stream: Stream[Any], events: Sequence[Event], now: datetime) -> Iterator[DoctorFinding]:
        """Find events in the future, scratchpads set aside, and messages that search skips."""
        if events and (latest := max(event.at for event in events)) > now + MAX_CLOCK_SKEW:
            message = f"{stream.name} has events of {latest:%Y-%m-%d %H:%M} UTC, but it is {now:%Y-%m-%d %H:%M}"
            fix = "set the clock of this machine if it is wrong (`date`); otherwise wait until then"
            yield warning("clock", message, fix)
        for event in events:
            if isinstance(event.payload, ScratchpadSetAside):
                pad = event.payload.scratchpad
                before = stream.state_at(event.seq - 1).scratchpads.get(pad)
                aside = f"{pad} of {stream.name} was set aside on {event.at:%Y-%m-%d} ({event.payload.reason})"
                fix = "session.scratchpad.set_aside has the old state, for session.scratchpad.update({…})"
                yield ok("scratchpads", f"{aside}; it held {short_repr(before and before.state)}", fix)
            elif isinstance(event.payload, MessageAdded):
                try:
                    _read_message(event.payload)
                except DECODE_ERRORS as error:
                    message = f"{event.id} cannot be read ({type(error).__name__}: {error}); search skips it"
                    yield warning("unreadable messages", message, RESTORE_BACKUP)

    def _check_dreams(
        self, owner: str, state: ResourceState, events: Sequence[Event], notes: Sequence[PageNote], now: datetime
    ) -> Iterator[DoctorFinding]:
        """Find expired leases, repeated failures, and notes that wait too long."""
        dreams, run_dream = state.dreams, self._hints.run_dream(owner)
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
            yield warning("notes", message, f"{run_dream}, or keep {self._hints.inmind('worker')} running")

    def _check_index(self, mode: ReadMode, embedder: Embedder | None) -> Iterator[DoctorFinding]:
        """Check the index. It is derived from the journal, so a damaged one loses nothing."""
        upkeep = self._hints.inmind("upkeep")
        if not mode.path.exists():
            if len(self._store.events_since(0, kinds=INDEXED_KINDS, limit=BATCH_SIZE)) < BATCH_SIZE:
                yield ok("index", "none: the next search builds it")
            else:
                yield warning("index", "missing: the next search has to wait while it is built", upkeep)
            return
        try:
            with closing(ReadOnlyIndex(mode, self._store, _read_message)) as opened:
                flaw = next(iter(opened.flaws()), "")
                status = None if flaw else opened.status()
        except StoreBusy:
            yield warning("index", f"{INDEX} is locked by another process", RETRY_HINT)
            return
        except StoreError as error:
            status, flaw = None, getattr(error, "reason", str(error))
        if flaw:
            rm = self._hints.shell("rm", *sorted(self._home.glob(f"{INDEX}*")))
            rebuild = f"{rm}, then {upkeep}, which rebuilds it from the journal"
            yield warning("index", f"damaged: {' '.join(flaw.split())}", rebuild)
        elif status is None:
            yield warning("index", "version or journal changed: the next search rebuilds it", upkeep)
        else:
            if status.events_behind >= BATCH_SIZE:
                message = f"{BATCH_SIZE} or more events behind: the next search has to wait for them"
                yield warning("index", message, upkeep)
            else:
                lag = f", {count_noun(status.events_behind, 'event')} behind" if status.events_behind else ""
                yield ok("index", f"intact{lag}")
            if embedder:
                yield from _check_embeddings(status, embedder, upkeep)


def _is_recent(seconds: float) -> bool:
    """True if a writer that started this long ago may still be writing."""
    return 0 <= seconds < WRITE_SECONDS


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


def _check_embeddings(status: IndexStatus, embedder: Embedder, upkeep: str) -> Iterator[DoctorFinding]:
    others = [name for name in status.embedders if name != embedder.name]
    done = status.embedders.get(embedder.name, 0)
    if others and done < status.crystals:
        message = f"created by {', '.join(others)}, but {embedder.name} is in use: keyword search only until rebuilt"
        yield warning("vectors", message, upkeep)
    elif done + MAX_MISSING < status.crystals:
        message = f"{count_noun(status.crystals - done, 'crystal')} without embeddings: found by keywords only"
        yield warning("vectors", message, upkeep)
    elif status.crystals:
        yield ok("vectors", f"for {done:,} of {count_noun(status.crystals, 'crystal')}")
