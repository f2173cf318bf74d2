"""A memory in a database: no files beside it, so documents are read and written by calls alone.

What would be taken in or shown is not there, and what a home keeps in config.toml is a document of a stream of its own,
which all who work on this memory share. It is no part of what a bundle has of the journal: settings say who is sent
what was lived through, so those of others come as a text to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import SettingsWritten
from inmind.core.paths import CONFIG, checked_url, shown_url
from inmind.core.settings import settings_in
from inmind.core.streams import SETTINGS_STREAM
from inmind.documents.document import Document, validate_text
from inmind.errors import Conflict, InvalidInput
from inmind.session.backend import SessionFiles
from inmind.session.legacy_files import LegacySession
from inmind.session.meta_file import SessionSummary, complete_summary
from inmind.session.state import ResourceState, SessionState
from inmind.store.protocol import Clock, Store, StreamInfo
from inmind.store.stream import Stream

if TYPE_CHECKING:
    from inmind.core.settings import Settings
    from inmind.search.index.base import SearchIndex
    from inmind.search.index.indexer import MessageReader
    from inmind.store.postgres import PostgresStore


class PostgresBackend:
    """One database, or another store that has no folder."""

    home = None

    def __init__(
        self, store: Store, *, location: str, index: Callable[[MessageReader], SearchIndex], clock: Clock | None = None
    ) -> None:
        """`shown`: the database as people may read it."""
        self.store, self._location, self._index = store, location, index
        self.clock: Clock = clock or partial(datetime.now, UTC)

    def __str__(self) -> str:
        return self._location

    def index(self, read: MessageReader) -> SearchIndex:
        return self._index(read)

    # -- settings ------------------------------------------------------------------------------------------

    def read_config(self, name: str = CONFIG) -> Document:
        return _document(self.store.read(SETTINGS_STREAM), name)

    def write_config(self, text: str, *, base: int, at: datetime, name: str = CONFIG) -> int:
        validate_text(text)
        if name == CONFIG:
            settings_in(text)
        while True:
            events = self.store.read(SETTINGS_STREAM)
            now = _document(events, name)
            if now.version and now.text == text:
                return now.version
            if now.version != base:
                raise Conflict(stream=name, expected=base, actual=now.version, mine=text, theirs=now.text)
            draft = Draft(payload=SettingsWritten(path=name, text=text), origin=Origin.OPERATOR)
            with suppress(Conflict):  # somebody was faster: what they wrote decides
                return self.store.append(SETTINGS_STREAM, [draft], expected=len(events), at=at).last

    # -- what a folder would have --------------------------------------------------------------------------

    def session_files(self, id: str, cwd: str, stream: Stream[SessionState]) -> SessionFiles:  # noqa: ARG002 -- as an abode has it
        return SessionFiles(files=_NO_FILES, transcript=_NO_FILES, meta=_NO_FILES)

    def resource_files(self, resource: str, stream: Stream[ResourceState]) -> NoFiles:  # noqa: ARG002 -- as an abode has it
        return _NO_FILES

    def read_edits(
        self,
        resource: str,
        session_stream: Callable[[str], Stream[SessionState]],
        resource_stream: Callable[[str], Stream[ResourceState]],
    ) -> None:
        """Nothing: whatever was written is in the journal."""

    def session_folder(self, id: str, cwd: str) -> None:
        """It has none."""

    def session_summary(self, begun: StreamInfo) -> SessionSummary:
        return complete_summary(SessionSummary(), self.store, begun)

    def has_resource_files(self, resource: str) -> bool:  # noqa: ARG002 -- as an abode has it
        return False

    def legacy_sessions(self, id: str) -> list[LegacySession]:  # noqa: ARG002 -- as an abode has it
        return []

    def all_legacy_sessions(self, *, excluding: Container[str]) -> list[LegacySession]:  # noqa: ARG002 -- as an abode has it
        return []

    def back_up_state(self, resource: str, text: str) -> str:  # noqa: ARG002 -- as an abode has it
        """The event that tells of it has the text, and that is where it is kept."""
        return ""


class NoFiles:
    """The views of whatever has none."""

    def read_edits(self) -> None: ...

    def read_title(self) -> None: ...

    def publish(self) -> None: ...

    def notices(self) -> tuple[str, ...]:
        return ()

    def update(self, fresh: Sequence[Event] = ()) -> str:  # noqa: ARG002 -- as a transcript has it
        return ""

    def is_stale(self, state: SessionState) -> bool:  # noqa: ARG002 -- as a meta.json has it
        return False

    def write(self, state: SessionState) -> str:  # noqa: ARG002 -- as a meta.json has it
        return ""


_NO_FILES = NoFiles()


def _document(events: Sequence[Event], path: str) -> Document:
    for event in reversed(events):
        if isinstance(event.payload, SettingsWritten) and event.payload.path == path:
            return Document(text=event.payload.text, version=event.seq, source=event.id)
    return Document(text="", version=0, source="")


def open_database(url: object, settings: object, create: bool) -> tuple[PostgresBackend, Settings]:
    """The backend of a database, and its settings. `create`: a memory, if it has none; else NotFound."""
    from inmind.core.settings import Settings

    backend = open_postgres(checked_url(url, "home"), create=create)
    try:
        return backend, settings_in("" if isinstance(settings, Settings) else backend.read_config().text, settings)
    except BaseException:
        backend.store.close()
        raise


def open_postgres(url: str, *, create: bool = True) -> PostgresBackend:
    """The memory of whoever the URL lets in. `make`: one, where there is none; else that is NotFound."""
    store = _store_class(url).open(url, create=create)
    store.clock.synchronize()

    def index(read: MessageReader) -> SearchIndex:
        from inmind.search.index.postgres import PostgresIndex

        return PostgresIndex(store, read)

    return PostgresBackend(store, location=shown_url(url), index=index, clock=store.clock)


def _store_class(url: str) -> type[PostgresStore]:
    try:
        from inmind.store.postgres import PostgresStore
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("psycopg"):
            raise
        expected = 'the extra that databases need: pip install "inmind[postgres]"'
        raise InvalidInput(field="home", value=shown_url(url), expected=expected) from error
    return PostgresStore
