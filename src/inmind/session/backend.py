"""Where a memory is: its journal, its index, and what people see and write of it beside these.

A home is a folder, and shows every document as a live file (`in_folder`). A database has no files: documents are read
and written by calls alone, and there is nothing to take in or to show (`in_database`). Which of the two it is, is
decided when a memory is opened, and nobody behind that asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from inmind.core.events.base import Event
from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG
from inmind.documents.document import Document
from inmind.session.legacy_files import LegacySession
from inmind.session.meta_file import SessionSummary
from inmind.session.state import ResourceState, SessionState
from inmind.store.protocol import Store, StreamInfo
from inmind.store.stream import Stream

if TYPE_CHECKING:
    from inmind.search.index.base import SearchIndex
    from inmind.search.index.indexer import MessageReader


class DocumentFiles(Protocol):
    """The documents of one stream, where people can read and write them."""

    def read_edits(self) -> None:
        """Bring in what they have written since the last look."""
        ...

    def publish(self) -> None:
        """Show the newest version of every document that changed."""
        ...

    def notices(self) -> tuple[str, ...]:
        """What people should know, each said once."""
        ...


class Transcript(Protocol):
    """The conversation of a session, a line for each message."""

    def update(self, fresh: Sequence[Event] = ()) -> str:
        """Write what is missing; answers with what people should know, if anything."""
        ...


class SessionMeta(Protocol):
    """A session at a glance, for whoever looks for it."""

    def read_title(self) -> None:
        """Make a title that somebody has written there the session's own."""
        ...

    def is_stale(self, state: SessionState) -> bool: ...

    def write(self, state: SessionState) -> str:
        """Answers with what went wrong, if anything."""
        ...


@frozen(kw_only=True)
class SessionFiles:
    """What is shown of one session."""

    files: DocumentFiles
    transcript: Transcript
    meta: SessionMeta


class Backend(Protocol):
    """Where a memory is. In words, `str(abode)`, it is never more than people may read."""

    @property
    def store(self) -> Store: ...

    @property
    def home(self) -> Path | None:
        """The folder, where it is one."""
        ...

    def clock(self) -> datetime:
        """The time, as those tell it who share this memory."""
        ...

    def index(self, read: MessageReader) -> SearchIndex:
        """The index of deep memory, which is made of the journal."""
        ...

    def read_config(self, name: str = CONFIG) -> Document:
        """Its config.toml, or what stands beside that under another name; of version 0 where there is none."""
        ...

    def write_config(self, text: str, *, base: int, at: datetime, name: str = CONFIG) -> int:
        """Another text instead of version `base`; answers with its version. Conflict if it has moved on by now.

        A config.toml that could not be read is refused.
        """
        ...

    def session_files(self, id: str, cwd: str, stream: Stream[SessionState]) -> SessionFiles: ...

    def resource_files(self, resource: str, stream: Stream[ResourceState]) -> DocumentFiles: ...

    def read_edits(
        self,
        resource: str,
        session_stream: Callable[[str], Stream[SessionState]],
        resource_stream: Callable[[str], Stream[ResourceState]],
    ) -> None:
        """What people have written for a resource, or for everybody where none is named."""
        ...

    def session_folder(self, id: str, cwd: str) -> Path | None:
        """Of a session."""
        ...

    def session_summary(self, begun: StreamInfo) -> SessionSummary:
        """What a list shows of a session."""
        ...

    def has_resource_files(self, resource: str) -> bool:
        """Has somebody begun to write for a resource, of which the journal may know nothing yet?"""
        ...

    def legacy_sessions(self, id: str) -> list[LegacySession]:
        """Sessions of the older kind that have this id."""
        ...

    def all_legacy_sessions(self, *, excluding: Container[str]) -> list[LegacySession]:
        """All that are there, but those with these ids."""
        ...

    def back_up_state(self, resource: str, text: str) -> str:
        """Keep MEMORY.md as somebody has written it; answers with where it is, beside the journal, if anywhere."""
        ...
