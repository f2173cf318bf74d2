"""The pages: whether each file shows what the journal says, and what was set aside because it could not be meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from inmind.apps.doctor.fix_hints import AGAIN, Steps
from inmind.apps.doctor.folder import Entry, Survey
from inmind.apps.doctor.result import Check, Finding, Subject
from inmind.apps.doctor.streams import Folded, is_young
from inmind.core.events.documents import ScratchpadSetAside
from inmind.core.paths import resource_folder, session_folder
from inmind.documents.document import FileCheck
from inmind.documents.document import FileStatus as Standing
from inmind.errors import short_repr
from inmind.session.live_files import LiveFiles, resource_files, session_files
from inmind.session.state import ResourceState, SessionState
from inmind.session.transcript_file import FILE as TRANSCRIPT
from inmind.session.transcript_file import TranscriptFile
from inmind.store.atomic_files import DAMAGED, Folder
from inmind.store.protocol import Store

PAGES = Check(Subject.PAGES, "pages")
ASIDE = Check(Subject.PAGES, "kept aside")
PADS = Check(Subject.PAGES, "scratchpads")
LEFTOVERS = Check(Subject.PAGES, "leftovers")

_BY_ITSELF: Mapping[Standing, str] = {
    Standing.EDITED: "was edited, and is taken in by the next call",
    Standing.STALE: "shows an older version, and is brought up by the next call",
    Standing.MISSING: "is gone, and comes again with the next call",
    Standing.DAMAGED: "is damaged ({reason}): the next call keeps it aside and shows the last good version",
}
"""What the next call does, whoever makes it."""


def session_pages(home: Path, of: Folded[SessionState], store: Store, steps: Steps) -> Iterator[Finding]:
    folder = Folder(folder_of(home, of), home=home)
    mend = steps.opening(of.owner)
    if folder.path.exists():  # else nobody has opened it here yet
        transcript = TranscriptFile(folder, store, of.stream.name).inspect(of.events)
        yield from _told(home, folder, TRANSCRIPT, transcript, mend, steps)
    yield from _pages(home, folder, session_files(folder, of.stream, store), "working-memory/", mend, steps)


def resource_pages(
    home: Path, of: Folded[ResourceState], store: Store, steps: Steps, sessions: Mapping[Path, str]
) -> Iterator[Finding]:
    """`sessions`: by which folders are looked after. A resource that has none is looked after by its dreams alone."""
    folder = Folder(resource_folder(home, of.owner), home=home)
    session = sessions.get(folder.path)
    mend = steps.opening(session) if session else steps.inmind("dream", "run", of.owner)
    yield from _pages(home, folder, resource_files(folder, of.stream, store), "", mend, steps)


def looked_after(home: Path, session: Folded[SessionState]) -> dict[Path, str]:
    """The folders that opening a session brings together with the journal: its own, and that of its resource."""
    opened = session.stream.state.opened
    theirs = [resource_folder(home, opened.resource)] if opened else []
    return dict.fromkeys((folder_of(home, session), *theirs), session.owner)


def folder_of(home: Path, session: Folded[SessionState]) -> Path:
    opened = session.stream.state.opened
    return session_folder(home, session.owner, opened.cwd if opened else "")


def kept_aside(survey: Survey, home: Path, steps: Steps) -> Iterator[Finding]:
    """Damaged files whose bytes are kept: somebody has to look at them, and nobody else will take them away."""
    for path in survey.kept_aside:
        page = path.partition(DAMAGED)[0]
        mend = f"take from it what {page} lacks, then {steps.shell('rm', home / path)}"
        yield ASIDE.warning(f"{path}: what stood in {page} and could not be read", mend)


def leftovers(
    left: Sequence[Entry], home: Path, steps: Steps, sessions: Mapping[Path, str], now: datetime
) -> Iterator[Finding]:
    """What killed writers have left is tidied with the next call: one of them may have held a person's words."""
    for entry in left:
        if is_young(now.timestamp() - entry.modified):
            yield LEFTOVERS.ok(f"{entry.path}: somebody is writing, or was killed just now", AGAIN)
            continue
        session = next((sessions[folder] for folder in (home / entry.path).parents if folder in sessions), None)
        mend = steps.opening(session) if session else steps.shell("rm", home / entry.path)
        yield LEFTOVERS.warning(f"{entry.path}: a program was killed while it wrote", mend)


def in_use(stream: str) -> Finding:
    return PAGES.ok(
        f"somebody is writing to {stream}, or was killed just now: not all of it is in its files yet", AGAIN
    )


def set_aside(of: Folded[Any]) -> Iterator[Finding]:
    """Scratchpads whose saved state did not fit the schema any more. They are kept for ever, so nothing is wrong."""
    for event in of.events:
        if isinstance(event.payload, ScratchpadSetAside):
            before = of.stream.at(event.seq - 1).pads.get(event.payload.scratchpad)
            why = f"{event.payload.scratchpad} of {of.stream.name} was set aside on {event.at:%Y-%m-%d} ({event.payload.reason})"
            seen = f"{why}; it held {short_repr(before and before.state)}"
            yield PADS.ok(seen, "session.scratchpad.set_aside has all of it, for session.scratchpad.update({…})")


def _pages(
    home: Path, folder: Folder, files: LiveFiles[Any], inside: str, mend: str, steps: Steps
) -> Iterator[Finding]:
    for path, judgement in files.inspect():
        yield from _told(home, folder, inside + path, judgement, mend, steps)
    for notice in files.notices():
        where = folder.path.relative_to(home)
        yield PAGES.warning(
            f"{where}: {notice}", f"move or rename it: {steps.shell('ls', '-la', folder.path / inside)}"
        )


def _told(home: Path, folder: Folder, path: str, judgement: FileCheck, mend: str, steps: Steps) -> Iterator[Finding]:
    file = folder.path / path
    place = file.relative_to(home)
    match judgement.status:
        case Standing.CURRENT:
            return
        case Standing.SHARED:
            yield PAGES.warning(f"{place} has a second name (a hard link), and is not taken in", steps.alone(file))
        case Standing.FOREIGN:
            yield PAGES.warning(
                f"{place} is left alone: {judgement.reason}", f"if nobody needs it: {steps.shell('rm', '-r', file)}"
            )
        case finding:
            yield PAGES.warning(f"{place} {_BY_ITSELF[finding].format(reason=judgement.reason)}", mend)
