"""Checks of the files of a home: live files, damaged copies, leftovers of killed writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from inmind.apps.doctor.home import FolderScan, status_of
from inmind.apps.doctor.report import RETRY_HINT, DoctorFinding, FixHints, ok, warning
from inmind.core.events.base import Event
from inmind.core.frozen import frozen
from inmind.documents.document import FileCheck, FileStatus
from inmind.session.live_files import LiveFiles, session_files
from inmind.session.transcript_file import FILE as TRANSCRIPT
from inmind.session.transcript_file import TranscriptFile
from inmind.store.atomic_files import DAMAGED_SUFFIX, Folder, is_leftover
from inmind.store.protocol import Clock, Store
from inmind.store.stream import Stream

WRITE_SECONDS = 10.0
"""Time that writing committed events to files may take on a slow, busy machine."""

_NEXT_CALL_EFFECT: Mapping[FileStatus, str] = {
    FileStatus.EDITED: "was edited; the next call imports the edit",
    FileStatus.STALE: "is out of date; the next call updates it",
    FileStatus.MISSING: "is missing; the next call writes it again",
    FileStatus.DAMAGED: "is damaged ({reason}); the next call keeps a copy and restores the last good version",
}
"""Effect of the next call of any process."""

ProgressCallback = Callable[[str, int, int], None]


@frozen
class DoctorContext:
    """The home to check, with everything that the checks share."""

    home: Path
    hints: FixHints
    clock: Clock
    scan: FolderScan
    watch: ProgressCallback


def is_recent(seconds: float) -> bool:
    """True if a writer that started this long ago may still be writing."""
    return 0 <= seconds < WRITE_SECONDS


def check_session_files(
    context: DoctorContext, store: Store, stream: Stream[Any], events: Sequence[Event], folder: Folder
) -> Iterator[DoctorFinding]:
    fix = context.hints.open_session(stream.name.partition("/")[2])
    if folder.path.exists():  # otherwise the session was never opened in this home
        transcript = TranscriptFile(folder, store, stream.name).inspect(events)
        yield from _file_findings(context, folder.path / TRANSCRIPT, transcript, fix)
    yield from check_files(context, folder, session_files(folder, stream, store), "working-memory/", fix)


def check_files(
    context: DoctorContext, folder: Folder, files: LiveFiles, prefix: str, fix: str
) -> Iterator[DoctorFinding]:
    """Compare live files with the journal."""
    for path, check in files.inspect():
        yield from _file_findings(context, folder.path / prefix / path, check, fix)
    for notice in files.notices():
        listing = context.hints.shell("ls", "-la", folder.path / prefix)
        message = f"{folder.path.relative_to(context.home)}: {notice}"
        yield warning("pages", message, f"move or rename it: {listing}")


def _file_findings(context: DoctorContext, file: Path, check: FileCheck, fix: str) -> Iterator[DoctorFinding]:
    place, hints = file.relative_to(context.home), context.hints
    match check.status:
        case FileStatus.CURRENT:
            return
        case FileStatus.SHARED:
            message = f"{place} has a hard link; edits in it are not imported"
            yield warning("pages", message, hints.break_hard_link(file))
        case FileStatus.FOREIGN:
            yield warning("pages", f"{place} is ignored: {check.reason}", hints.remove_if_unused("-r", file))
        case status:
            yield warning("pages", f"{place} {_NEXT_CALL_EFFECT[status].format(reason=check.reason)}", fix)


def check_stray_files(context: DoctorContext, sessions: Mapping[Path, str]) -> Iterator[DoctorFinding]:
    """Copies of damaged files, and temporary files of writers.

    `sessions` maps each folder to a session whose opening syncs it. Nothing is removed by itself: a copy is for the
    user to look at, and a temporary file may hold an edit; the next call cleans that up.
    """
    home, hints, now = context.home, context.hints, context.clock().timestamp()
    for path, status in context.scan.files.items():
        name = path.rpartition("/")[2]
        if DAMAGED_SUFFIX in name:
            page = path.partition(DAMAGED_SUFFIX)[0]
            fix = f"copy what is missing in {page}, then {hints.shell('rm', home / path)}"
            yield warning("damaged files", f"{path}: former content of {page} that could not be read", fix)
        elif not is_leftover(name) or status_of(home, path) != status:
            continue  # a writer has finished since the scan
        elif is_recent(now - status.st_mtime):
            yield ok("leftovers", f"{path}: a process is writing it, or was killed just now", RETRY_HINT)
        else:
            session = next((sessions[folder] for folder in (home / path).parents if folder in sessions), None)
            fix = hints.open_session(session) if session else hints.shell("rm", home / path)
            yield warning("leftovers", f"{path}: a process was killed during a write", fix)
