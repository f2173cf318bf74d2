"""Files of a home that cannot be rebuilt from the journal, and their import.

    sessions/--<cwd>--/<id>.jsonl, .meta.json     single-file sessions that were not opened yet
    ….damaged-<digest>                            edits that could not be read, set aside
    resources/<resource>/MEMORY.md.seed-backup    the page before the first dream
    config.toml                                   settings

Settings name the server that receives the memory's data, and its key. The settings of a bundle are written next to
those of the home, for a person to review, and never take effect automatically. A database stores them as a text, and
has no place for the other files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.documents import SettingsWritten
from inmind.core.paths import CONFIG, SETTINGS_STREAM, stream_folder
from inmind.documents.document import validate_text
from inmind.errors import BundleDiverged, Conflict, UnsafeStorage
from inmind.session.context import Backend
from inmind.store.atomic_files import DAMAGED_SUFFIX, Folder
from inmind.store.protocol import BulkImport

MAX_EXTRA_FILE_BYTES = 64 * 1_048_576
"""A larger file is left out and reported. Each file is held in memory."""

EXTRA_FILE_FOLDERS = ("sessions", "resources")
"""Folders with extra files in a home."""

_MAX_DEPTH = 8
_STAGED_PREFIX = ".inmind-arriving-"
_IMPORTED_CONFIG = f"{CONFIG}.imported"
_LEGACY_SESSION = re.compile(r"sessions/--[^/]*--/[^/]+(?:\.jsonl|\.meta\.json)")
_BACKUP_FILE = re.compile(
    rf"(?:sessions|resources)/.*(?:{re.escape(DAMAGED_SUFFIX)}[^/]+|/MEMORY\.md\.seed-backup[^/]*)"
)


def is_extra_file(name: str) -> bool:
    """True for the path of an extra file. No part is hidden, leads upwards or is ambiguous."""
    steps = name.split("/")
    if name == CONFIG:
        return True
    if len(steps) > _MAX_DEPTH or "\\" in name or not name.isprintable():
        return False
    if any(not 0 < len(step.encode()) <= 255 or step.startswith(".") or step != step.strip() for step in steps):
        return False
    return _LEGACY_SESSION.fullmatch(name) is not None or _BACKUP_FILE.fullmatch(name) is not None


def read_extra_files(place: Backend, firsts: Sequence[Event] | None) -> Iterator[tuple[str, bytes | None]]:
    """The extra files with their bytes, or None for a file that is too large, a link, or gone.

    `firsts`: first events of the streams whose files are wanted; None for all.
    """
    home = place.home
    if home is None:
        config = place.read_config()
        if config.version and firsts is None:
            yield CONFIG, config.text.encode()
        return
    folders = [home / root for root in EXTRA_FILE_FOLDERS]
    files = [home / CONFIG] if firsts is None and (home / CONFIG).is_file() else []
    if firsts is not None:
        folders = [stream_folder(home, first) for first in firsts]
    for root in folders:  # links are not followed
        files += sorted(Path(folder, file) for folder, _, names in os.walk(root) for file in names)
    for name in filter(is_extra_file, (file.relative_to(home).as_posix() for file in files)):
        file = Folder(home).read(name, max_bytes=MAX_EXTRA_FILE_BYTES)
        yield name, file.data if file.is_complete else None


class DatabaseExtraFiles:
    """Stores the settings of a bundle in a database, and leaves out all other files.

    They are stored in the transaction of the import: both, or neither.
    """

    written: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Files that have no place in a database."""

    def __init__(self, place: Backend, now: datetime) -> None:
        self._place, self._now = place, now

    def transaction(self) -> AbstractContextManager[None]:
        return nullcontext()

    def stage(self, name: str, data: bytes, adoption: BulkImport) -> None:
        if name != CONFIG:
            self.left_out += (name,)
            return
        text = validate_text(data.decode(errors="replace"), field=CONFIG)
        if text in (self._place.read_config().text, self._place.read_config(_IMPORTED_CONFIG).text):
            return
        event = Event(
            stream=SETTINGS_STREAM,
            seq=self._place.store.version(SETTINGS_STREAM) + 1,
            at=self._now,
            payload=SettingsWritten(path=_IMPORTED_CONFIG, text=text),
            origin=Origin.OPERATOR,
            trust=Trust.OPERATOR,
        )
        try:
            adoption.add_event(event)
        except Conflict as conflict:  # another writer was first; from now on the import holds the stream
            adoption.add_event(replace(event, seq=conflict.actual + 1))
        self.written = (_IMPORTED_CONFIG,)

    def publish(self) -> None:
        """Nothing to do: the settings are part of the transaction."""


class FolderExtraFiles:
    """Writes extra files into a home; existing files are not replaced.

    Each file is first written under a hidden name in its folder, so that there is space for all of them. They are
    renamed after the journal is committed, since a single-file session exists as soon as its file does. If the process
    is killed in between, importing the same bundle again adds the missing files. `transaction` spans all of it.
    """

    left_out: tuple[str, ...] = ()

    def __init__(self, home: Path) -> None:
        self._folder = Folder(home)
        self._staged: dict[str, str] = {}
        """Target paths, each with its hidden name."""

    @property
    def written(self) -> tuple[str, ...]:
        return tuple(self._staged)

    @contextmanager
    def transaction(self) -> Generator[None]:
        """One import at a time. Hidden files of a killed import are removed."""
        with self._folder.lock():
            self._remove_staged(self._leftovers())
            try:
                yield
            finally:
                self._remove_staged(self._staged.values())

    def stage(self, name: str, data: bytes, adoption: BulkImport) -> None:  # noqa: ARG002 -- as a database has it
        for place in self._target_names(name, data):
            existing = self._folder.read(place, max_bytes=len(data))
            if existing.data == data:
                return
            if existing.read_error:
                raise UnsafeStorage(place=str(self._folder.path / place), reason=existing.read_error)
            if existing.data is None:
                folder, slash, _ = place.rpartition("/")
                self._staged[place] = f"{folder}{slash}{_STAGED_PREFIX}{_hex_digest(place.encode())[:16]}"
                self._folder.replace(self._staged[place], data)
                return
        raise BundleDiverged(name, "differs from the file in the bundle")

    def publish(self) -> None:
        for place, staged_name in self._staged.items():
            self._folder.save_aside(staged_name, new_name=place)

    def _remove_staged(self, staged_names: Iterable[str]) -> None:
        for staged_name in staged_names:
            file = self._folder.read(staged_name, max_bytes=MAX_EXTRA_FILE_BYTES)
            if file.data is not None:
                self._folder.remove(staged_name, expected=file)

    def _leftovers(self) -> Sequence[str]:
        home, hidden = self._folder.path, f"{_STAGED_PREFIX}*"
        nested = (path for folder in EXTRA_FILE_FOLDERS for path in (home / folder).rglob(hidden))
        return [path.relative_to(home).as_posix() for path in (*home.glob(hidden), *nested)]

    def _target_names(self, name: str, data: bytes) -> Iterator[str]:
        """A session has one possible name; other files may get a suffix if the name is taken."""
        if name == CONFIG:
            yield from () if self._folder.read(name, max_bytes=len(data)).data != data else (name,)
            name = _IMPORTED_CONFIG
        yield name
        if not _LEGACY_SESSION.fullmatch(name):
            yield f"{name}-{_hex_digest(data)[:8]}"


def _hex_digest(data: bytes) -> str:
    return sha256(data).hexdigest()
