"""Checks of live files: content, damaged copies, set-aside scratchpads, leftovers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from inmind.apps.doctor.folder import FileEntry, FolderScan
from inmind.apps.doctor.result import RETRY_HINT, Check, DoctorFinding, FixHints, Subject
from inmind.apps.doctor.streams import CheckedStream, is_recent
from inmind.core.events.documents import ScratchpadSetAside
from inmind.core.paths import resource_folder, session_folder
from inmind.documents.document import FileCheck, FileStatus
from inmind.errors import short_repr
from inmind.session.live_files import LiveFiles, resource_files, session_files
from inmind.session.state import ResourceState, SessionState
from inmind.session.transcript_file import FILE as TRANSCRIPT
from inmind.session.transcript_file import TranscriptFile
from inmind.store.atomic_files import DAMAGED_SUFFIX, Folder
from inmind.store.protocol import Store

PAGES = Check(Subject.PAGES, "pages")
DAMAGED_COPIES = Check(Subject.PAGES, "damaged files")
SCRATCHPADS = Check(Subject.PAGES, "scratchpads")
LEFTOVERS = Check(Subject.PAGES, "leftovers")

_NEXT_CALL_EFFECT: Mapping[FileStatus, str] = {
    FileStatus.EDITED: "was edited; the next call imports the edit",
    FileStatus.STALE: "is out of date; the next call updates it",
    FileStatus.MISSING: "is missing; the next call writes it again",
    FileStatus.DAMAGED: "is damaged ({reason}); the next call keeps a copy and restores the last good version",
}
"""Effect of the next call of any process."""


def check_session_pages(
    home: Path, checked: CheckedStream[SessionState], store: Store, hints: FixHints
) -> Iterator[DoctorFinding]:
    folder = Folder(session_path(home, checked), home=home)
    fix = hints.open_session(checked.owner)
    if folder.path.exists():  # otherwise the session was never opened in this home
        transcript = TranscriptFile(folder, store, checked.stream.name).inspect(checked.events)
        yield from _file_findings(home, folder, TRANSCRIPT, transcript, fix, hints)
    yield from _check_files(home, folder, session_files(folder, checked.stream, store), "working-memory/", fix, hints)


def check_resource_pages(
    home: Path, checked: CheckedStream[ResourceState], store: Store, hints: FixHints, sessions: Mapping[Path, str]
) -> Iterator[DoctorFinding]:
    """Check the files of a resource.

    `sessions` maps each folder to a session whose opening syncs it. Without one, only a dream syncs the folder.
    """
    folder = Folder(resource_folder(home, checked.owner), home=home)
    session = sessions.get(folder.path)
    fix = hints.open_session(session) if session else hints.inmind("dream", "run", checked.owner)
    yield from _check_files(home, folder, resource_files(folder, checked.stream, store), "", fix, hints)


def folders_restored_by(home: Path, session: CheckedStream[SessionState]) -> dict[Path, str]:
    """The folders that opening this session syncs.

    These are the folder of the session and that of its resource.
    """
    opened = session.stream.state.opened
    resource_folders = [resource_folder(home, opened.resource)] if opened else []
    return dict.fromkeys((session_path(home, session), *resource_folders), session.owner)


def session_path(home: Path, session: CheckedStream[SessionState]) -> Path:
    opened = session.stream.state.opened
    return session_folder(home, session.owner, opened.cwd if opened else "")


def check_damaged_copies(scan: FolderScan, home: Path, hints: FixHints) -> Iterator[DoctorFinding]:
    """Copies of damaged files. The user has to look at them; inmind never deletes them."""
    for path in scan.damaged_copies:
        page = path.partition(DAMAGED_SUFFIX)[0]
        fix = f"copy what is missing in {page}, then {hints.shell('rm', home / path)}"
        yield DAMAGED_COPIES.warning(f"{path}: former content of {page} that could not be read", fix)


def check_leftovers(
    entries: Sequence[FileEntry], home: Path, hints: FixHints, sessions: Mapping[Path, str], now: datetime
) -> Iterator[DoctorFinding]:
    """Temporary files of killed writers.

    The next call cleans them up: one may hold an edit of a user.
    """
    for entry in entries:
        if is_recent(now.timestamp() - entry.modified):
            yield LEFTOVERS.ok(f"{entry.path}: a process is writing it, or was killed just now", RETRY_HINT)
            continue
        session = next((sessions[folder] for folder in (home / entry.path).parents if folder in sessions), None)
        fix = hints.open_session(session) if session else hints.shell("rm", home / entry.path)
        yield LEFTOVERS.warning(f"{entry.path}: a process was killed during a write", fix)


def stream_in_use(stream: str) -> DoctorFinding:
    return PAGES.ok(
        f"a process is writing to {stream}, or was killed just now: its files are not up to date yet", RETRY_HINT
    )


def check_set_aside_scratchpads(checked: CheckedStream[Any]) -> Iterator[DoctorFinding]:
    """Scratchpads set aside because their state did not fit a new schema.

    The findings are OK, because they are kept in the journal.
    """
    for event in checked.events:
        if isinstance(event.payload, ScratchpadSetAside):
            before = checked.stream.state_at(event.seq - 1).scratchpads.get(event.payload.scratchpad)
            why = f"was set aside on {event.at:%Y-%m-%d} ({event.payload.reason})"
            old_state = short_repr(before and before.state)
            message = f"{event.payload.scratchpad} of {checked.stream.name} {why}; it held {old_state}"
            yield SCRATCHPADS.ok(
                message, "session.scratchpad.set_aside has the old state, for session.scratchpad.update({…})"
            )


def _check_files(
    home: Path, folder: Folder, files: LiveFiles[Any], prefix: str, fix: str, hints: FixHints
) -> Iterator[DoctorFinding]:
    for path, file_check in files.inspect():
        yield from _file_findings(home, folder, prefix + path, file_check, fix, hints)
    for notice in files.notices():
        place = folder.path.relative_to(home)
        yield PAGES.warning(
            f"{place}: {notice}", f"move or rename it: {hints.shell('ls', '-la', folder.path / prefix)}"
        )


def _file_findings(
    home: Path, folder: Folder, path: str, file_check: FileCheck, fix: str, hints: FixHints
) -> Iterator[DoctorFinding]:
    file = folder.path / path
    place = file.relative_to(home)
    match file_check.status:
        case FileStatus.CURRENT:
            return
        case FileStatus.SHARED:
            yield PAGES.warning(f"{place} has a hard link; edits in it are not imported", hints.break_hard_link(file))
        case FileStatus.FOREIGN:
            yield PAGES.warning(
                f"{place} is ignored: {file_check.reason}", f"if it is not needed: {hints.shell('rm', '-r', file)}"
            )
        case finding:
            yield PAGES.warning(f"{place} {_NEXT_CALL_EFFECT[finding].format(reason=file_check.reason)}", fix)
