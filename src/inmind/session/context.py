"""The values that all parts of a session share, and the storage that they are in.

Storage is a folder with live files, or a database without files. `FolderBackend` shows every document as a live file.
`PostgresBackend` has no files: documents are read and written by calls only, and methods about files have the bodies
below. The kind is chosen when a memory is opened; other code does not check it.
"""

# ruff: noqa: ARG002 -- a memory without files does not use the arguments

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from inmind.core.events.base import Event
from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG
from inmind.core.tokens import Counter
from inmind.documents.document import Document
from inmind.entities.entity import EntityRules
from inmind.errors import InvalidInput
from inmind.history.compaction.policy import DEFAULT_POLICY, CompressionPolicy, Summarizer
from inmind.prompt.budget import WindowLimits
from inmind.prompt.layers.base import Layer
from inmind.session.derived_files import SessionSummary, complete_summary
from inmind.session.legacy_files import LegacySession
from inmind.session.state import ResourceState, SessionState
from inmind.store.protocol import Clock, Store, StreamInfo
from inmind.store.stream import Stream

if TYPE_CHECKING:
    from inmind.history.view import TokenMeter, ViewBuilder
    from inmind.search.extract import MessageReader
    from inmind.search.index.base import SearchIndex
    from inmind.session.entities import SiblingEntities
    from inmind.session.notes import NoteWriter
    from inmind.session.scratchpad import Scratchpad
    from inmind.session.search import MemorySearch


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


@frozen(kw_only=True)
class SessionConfig:
    """Options of a session. A child has those of its parent."""

    layers: tuple[Layer, ...]
    limits: WindowLimits
    counter: Counter
    entities: EntityRules
    memory_tools: bool
    compression: CompressionPolicy = DEFAULT_POLICY
    summarizer: Summarizer | None = None
    affect: bool = True
    """True if messages and tool results change the affect of the resource."""


@frozen(kw_only=True)
class SessionContext:
    """Streams, files, options and caches of one session; `Memory` creates it."""

    id: str
    store: Store
    stream: Stream[SessionState]
    resource: Stream[ResourceState]
    files: DocumentFiles
    resource_files: DocumentFiles
    transcript: Transcript
    meta: SessionMeta
    siblings: SiblingEntities
    scratchpad: Scratchpad | None
    ancestors: tuple[Stream[SessionState], ...]
    """Streams of the parent session, its parent, and so on."""
    config: SessionConfig
    session_stream: Callable[[str], Stream[SessionState]]
    notes: NoteWriter
    search: MemorySearch
    schedule_embedding: Callable[[], None]
    """Schedules the embedding of new crystals in the background."""
    meter: TokenMeter
    view: ViewBuilder
    """Builds the history of a prompt. `view.read_message` parses each message once."""

    @property
    def resource_name(self) -> str:
        """Name of the resource that owns the session."""
        opened = self.stream.state.opened
        return opened.resource if opened else ""

    @property
    def is_anonymous(self) -> bool:
        """See `SessionState.is_anonymous`."""
        return self.stream.state.is_anonymous


MAX_INTEGER = 2**53
"""Larger integers do not survive JSON in every language."""


def whole_number(value: object, field: str, *, minimum: int = 0) -> int:
    """Check an integer that a host passed."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= MAX_INTEGER:
        printable = value if not isinstance(value, int) or value.bit_length() < 100 else f"{value.bit_length()} bits"
        raise InvalidInput(field=field, value=printable, expected=f"a whole number from {minimum} to {MAX_INTEGER}")
    return value


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
