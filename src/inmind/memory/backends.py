"""The two kinds of memory: a home folder with files, and a database.

In a home, journal, index and documents are files. A database has no live files: documents are read and written by
calls. The settings that a home keeps in config.toml are a document in a separate stream, shared by all processes. A
bundle does not contain that stream as events: imported settings must not take effect before a person has looked at
them, since they name the server that receives the memory's data.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from inmind.core.encoding import digest
from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import SettingsWritten
from inmind.core.paths import (
    CONFIG,
    DATABASE,
    INDEX,
    RESOURCE_PREFIX,
    SESSION_PREFIX,
    SETTINGS_STREAM,
    check_database_url,
    check_home,
    redact_url,
    resource_folder,
    resources_with_folder,
    session_folder,
    stream_folder,
)
from inmind.documents.document import MAX_DOCUMENT_BYTES, RESOURCE_PATHS, Document, validate_text
from inmind.errors import Conflict, InvalidInput, NotFound, UnsafeStorage
from inmind.session.context import Backend, SessionFiles
from inmind.session.derived_files import MetaFile, SessionSummary, TranscriptFile, complete_summary, read_summary
from inmind.session.legacy_files import LegacySession, find_legacy
from inmind.session.live_files import LiveFiles, resource_files, session_files
from inmind.session.state import ResourceFold, ResourceState, SessionFold, SessionState
from inmind.store.atomic_files import Folder
from inmind.store.file_operations import FileState, make_private_folder
from inmind.store.protocol import Batch, Clock, Store, StreamInfo
from inmind.store.sqlite.store import SqliteStore
from inmind.store.stream import Stream

if TYPE_CHECKING:
    from inmind.core.settings import Settings
    from inmind.search.extract import MessageReader
    from inmind.search.index.base import SearchIndex
    from inmind.store.postgres import PostgresStore


SEED_BACKUP = "MEMORY.md.seed-backup"


class FolderBackend:
    """The backend of one home folder."""

    def __init__(self, home: Path, store: Store) -> None:
        self.home, self.store = home, store

    def __str__(self) -> str:
        return str(self.home)

    def clock(self) -> datetime:
        return datetime.now(UTC)

    def index(self, read: MessageReader) -> SearchIndex:
        from inmind.search.index.sqlite import SqliteIndex

        return SqliteIndex(self.home / INDEX, self.store, read)

    # -- settings ------------------------------------------------------------------------------------------

    def read_config(self, name: str = CONFIG) -> Document:
        return self._read_file(name)[1]

    def write_config(self, text: str, *, base: int, at: datetime, name: str = CONFIG) -> int:  # noqa: ARG002 -- a file has its own time
        from inmind.core.settings import parse_settings

        data = validate_text(text).encode()
        if name == CONFIG:
            parse_settings(text)
        folder = Folder(self.home)
        with folder.lock():
            file, now = self._read_file(name)
            if now.version and now.text == text:
                return now.version
            if now.version != base or not folder.exchange(name, data, expected=file):
                raise Conflict(stream=name, expected=base, actual=now.version, mine=text, theirs=now.text)
        return _version(text)

    def _read_file(self, name: str) -> tuple[FileState, Document]:
        """The settings file. Its version is derived from its text: files have no version numbers."""
        file = Folder(self.home).read(name, max_bytes=MAX_DOCUMENT_BYTES)
        if file.data is None and not file.read_error:
            return file, Document(text="", version=0, source="")
        try:
            if not file.is_complete:
                raise ValueError(file.read_error or f"it is too large: at most {MAX_DOCUMENT_BYTES:,} bytes")
            text = (file.data or b"").decode()
        except ValueError as error:
            raise InvalidInput(field=name, value=str(error), expected="a readable file of TOML") from error
        return file, Document(text=text, version=_version(text), source="")

    # -- live files ----------------------------------------------------------------------------------------

    def session_files(self, id: str, cwd: str, stream: Stream[SessionState]) -> SessionFiles:
        return self._session_files(session_folder(self.home, id, cwd), stream)

    def _session_files(self, path: Path, stream: Stream[SessionState]) -> SessionFiles:
        folder = self._folder(path)
        return SessionFiles(
            files=session_files(folder, stream, self.store),
            transcript=TranscriptFile(folder, self.store, stream.name),
            meta=MetaFile(folder, stream, self.store),
        )

    def resource_files(self, resource: str, stream: Stream[ResourceState]) -> LiveFiles:
        return resource_files(self._folder(resource_folder(self.home, resource)), stream, self.store)

    def read_edits(self, resource: str, clock: Clock) -> None:
        """Read the edits of all live files, or of those of one resource."""
        for owner in resources_with_folder(self.home):
            if resource in ("", owner):
                name = RESOURCE_PREFIX + owner
                self.resource_files(owner, Stream(self.store, name, ResourceFold(name), clock)).read_edits()
        for info in self.store.stream_infos(SESSION_PREFIX, owner=resource or None):
            path, name = stream_folder(self.home, info.first), info.first.stream
            if path.exists():
                files = self._session_files(path, Stream(self.store, name, SessionFold(name), clock))
                files.meta.read_title()
                files.files.read_edits()

    def session_folder(self, id: str, cwd: str) -> Path:
        return session_folder(self.home, id, cwd)

    def session_summary(self, info: StreamInfo) -> SessionSummary:
        return complete_summary(read_summary(self._folder(stream_folder(self.home, info.first))), self.store, info)

    def has_resource_files(self, resource: str) -> bool:
        folder = resource_folder(self.home, resource)
        return any((folder / path).exists() for path in RESOURCE_PATHS)  # a folder may hold only a lock

    def _folder(self, path: Path) -> Folder:
        return Folder(path, home=self.home)

    # -- files of older versions -----------------------------------------------------------------------------

    def legacy_sessions(self, is_wanted: Callable[[str], bool]) -> list[LegacySession]:
        return find_legacy(self.home, is_wanted)

    def back_up_state(self, resource: str, text: str) -> str:
        """Save the text without replacing an existing backup. Returns the file name, or ""."""
        folder, data = self._folder(resource_folder(self.home, resource)), text.encode()
        with folder.lock():
            for name in (SEED_BACKUP, f"{SEED_BACKUP}-{digest(text)}"):
                file = folder.read(name, max_bytes=len(data) + 1)
                if file.data is None and not file.read_error:
                    folder.replace(name, data)
                    return name
                if file.data == data:
                    return name
        return ""


def open_folder(location: object, settings: object, create: bool) -> tuple[FolderBackend, Settings]:
    """Open a home folder. Returns its backend and settings.

    `create`: create the folder if it is missing; else NotFound.
    """
    from inmind.core.settings import load_settings

    home = check_home(location)
    if not create and not _has_journal(home):
        raise NotFound(what="memory at", name=str(home))
    try:
        make_private_folder(home)
    except OSError as error:
        raise UnsafeStorage(place=str(home), reason=os.strerror(error.errno or 0)) from error
    if not os.access(home, os.R_OK | os.X_OK):
        raise UnsafeStorage(place=str(home), reason="permission denied: the folder belongs to another user")
    effective_settings = load_settings(home, settings)
    return FolderBackend(home.resolve(), SqliteStore(home.resolve() / DATABASE)), effective_settings


def _has_journal(home: Path) -> bool:
    try:
        return (home / DATABASE).exists()
    except OSError:  # not readable: opening it raises the reason
        return True


def _version(text: str) -> int:
    return int(digest(text)[:12], 16) or 1


class PostgresBackend(Backend):
    """The backend of one database, or of another store without a folder."""

    def __init__(
        self, store: Store, *, location: str, index: Callable[[MessageReader], SearchIndex], clock: Clock | None = None
    ) -> None:
        """`location`: the URL without its password."""
        self._store, self._location, self._index = store, location, index
        self._clock: Clock = clock or partial(datetime.now, UTC)

    def __str__(self) -> str:
        return self._location

    @property
    def store(self) -> Store:
        return self._store

    def clock(self) -> datetime:
        return self._clock()

    def index(self, read: MessageReader) -> SearchIndex:
        return self._index(read)

    # -- settings ------------------------------------------------------------------------------------------

    def read_config(self, name: str = CONFIG) -> Document:
        return _document(self.store.read(SETTINGS_STREAM), name)

    def write_config(self, text: str, *, base: int, at: datetime, name: str = CONFIG) -> int:
        from inmind.core.settings import parse_settings

        validate_text(text)
        if name == CONFIG:
            parse_settings(text)
        while True:
            events = self.store.read(SETTINGS_STREAM)
            now = _document(events, name)
            if now.version and now.text == text:
                return now.version
            if now.version != base:
                raise Conflict(stream=name, expected=base, actual=now.version, mine=text, theirs=now.text)
            draft = Draft(payload=SettingsWritten(path=name, text=text), origin=Origin.OPERATOR)
            with suppress(Conflict):  # another writer was first: compare with its text
                return self.store.append(Batch(SETTINGS_STREAM, [draft], len(events)), at=at).last


def _document(events: Sequence[Event], path: str) -> Document:
    for event in reversed(events):
        if isinstance(event.payload, SettingsWritten) and event.payload.path == path:
            return Document(text=event.payload.text, version=event.seq, source=event.id)
    return Document(text="", version=0, source="")


def open_database(url: object, settings: object, create: bool) -> tuple[PostgresBackend, Settings]:
    """Open a database. Returns its backend and settings.

    `create`: create a memory if it has none; else NotFound.
    """
    from inmind.core.settings import Settings, parse_settings

    backend = open_postgres(check_database_url(url, "home"), create=create)
    try:
        return backend, parse_settings("" if isinstance(settings, Settings) else backend.read_config().text, settings)
    except BaseException:
        backend.store.close()
        raise


def open_postgres(url: str, *, create: bool = True) -> PostgresBackend:
    """Open the memory that the credentials of the URL give access to.

    `create`: create it if there is none; else NotFound.
    """
    store = _store_class(url).open(url, create=create)
    store.clock.synchronize()

    def index(read: MessageReader) -> SearchIndex:
        from inmind.search.index.postgres import PostgresIndex

        return PostgresIndex(store, read)

    return PostgresBackend(store, location=redact_url(url), index=index, clock=store.clock)


def _store_class(url: str) -> type[PostgresStore]:
    try:
        from inmind.store.postgres import PostgresStore
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("psycopg"):
            raise
        expected = 'the extra for databases: pip install "inmind[postgres]"'
        raise InvalidInput(field="home", value=redact_url(url), expected=expected) from error
    return PostgresStore
