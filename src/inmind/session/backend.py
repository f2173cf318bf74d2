"""Storage of a memory: a folder with live files, or a database without files.

`FolderBackend` shows every document as a live file. `PostgresBackend` has no files: documents are read and written by
calls only, and methods about files have the bodies below. The kind is chosen when a memory is opened; other code does
not check it.
"""

# ruff: noqa: ARG002 -- a memory without files does not use the arguments

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from inmind.core.events.base import Event
from inmind.core.paths import CONFIG
from inmind.documents.document import Document
from inmind.session.derived_files import SessionSummary, complete_summary
from inmind.session.legacy_files import LegacySession
from inmind.session.state import ResourceState, SessionState
from inmind.store.protocol import Clock, Store, StreamInfo
from inmind.store.stream import Stream

if TYPE_CHECKING:
    from inmind.search.extract import MessageReader
    from inmind.search.index.base import SearchIndex


class DocumentFiles(Protocol):
    """The documents of one stream as files that people can read and edit."""

    def read_edits(self) -> None:
        """Read edits saved since the last call."""

    def publish(self) -> None:
        """Write the newest version of every document that changed."""

    def notices(self) -> tuple[str, ...]:
        """Notices for people, each returned once."""
        return ()


class Transcript(Protocol):
    """The messages of a session, one line each."""

    def update(self, fresh: Sequence[Event] = ()) -> str:
        """Write missing lines. Returns a notice, if any."""
        return ""


class SessionMeta(Protocol):
    """The summary of a session."""

    def read_title(self) -> None:
        """Store a title that a person has edited."""

    def is_stale(self, state: SessionState) -> bool:
        return False

    def write(self, state: SessionState) -> str:
        """Write the summary. Returns the error as a text, if any."""
        return ""


class NoFiles(DocumentFiles, Transcript, SessionMeta):
    """Files of a memory without files: nothing is read or written."""


class SessionFiles(NamedTuple):
    """The files of one session."""

    files: DocumentFiles = NoFiles()
    transcript: Transcript = NoFiles()
    meta: SessionMeta = NoFiles()


class Backend(Protocol):
    """The storage of a memory. `str(backend)` contains no password."""

    @property
    def store(self) -> Store: ...

    @property
    def home(self) -> Path | None:
        """The folder, if the memory is in one."""
        return None

    def clock(self) -> datetime:
        """The current time, from a clock shared by all users of this memory."""
        ...

    def index(self, read: MessageReader) -> SearchIndex:
        """Open the search index, which is built from the journal."""
        ...

    def read_config(self, name: str = CONFIG) -> Document:
        """config.toml, or another settings file; version 0 if there is none."""
        ...

    def write_config(self, text: str, *, base: int, at: datetime, name: str = CONFIG) -> int:
        """Replace version `base` and return the new version. Raises Conflict if it has changed.

        An invalid config.toml raises InvalidInput.
        """
        ...

    def session_files(self, id: str, cwd: str, stream: Stream[SessionState]) -> SessionFiles:
        return SessionFiles()

    def resource_files(self, resource: str, stream: Stream[ResourceState]) -> DocumentFiles:
        return NoFiles()

    def read_edits(self, resource: str, clock: Clock) -> None:
        """Read edits in the live files of a resource, or of all resources if the name is empty."""

    def session_folder(self, id: str, cwd: str) -> Path | None:
        """The folder of a session, if the memory has folders."""

    def session_summary(self, info: StreamInfo) -> SessionSummary:
        """The summary of a session, for lists."""
        return complete_summary(SessionSummary(), self.store, info)

    def has_resource_files(self, resource: str) -> bool:
        """True if files of a resource exist; the journal may not know the resource yet."""
        return False

    def legacy_sessions(self, is_wanted: Callable[[str], bool]) -> list[LegacySession]:
        """Sessions in the old format whose ids are wanted."""
        return []

    def back_up_state(self, resource: str, text: str) -> str:
        """Save a copy of MEMORY.md as a person wrote it.

        Returns its file name; empty if there are no files.
        """
        return ""
