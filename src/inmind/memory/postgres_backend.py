"""A memory in a database. It has no live files: documents are read and written by calls.

The settings that a home keeps in config.toml are a document in a separate stream, shared by all processes. A bundle
does not contain that stream as events: imported settings must not take effect before a person has looked at them, since
they name the server that receives the memory's data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import SettingsWritten
from inmind.core.paths import CONFIG, SETTINGS_STREAM, check_database_url, redact_url
from inmind.core.settings import parse_settings
from inmind.documents.document import Document, validate_text
from inmind.errors import Conflict, InvalidInput
from inmind.session.backend import Backend
from inmind.store.protocol import Batch, Clock, Store

if TYPE_CHECKING:
    from inmind.core.settings import Settings
    from inmind.search.index.base import SearchIndex
    from inmind.search.index.indexer import MessageReader
    from inmind.store.postgres import PostgresStore


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
    from inmind.core.settings import Settings

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
