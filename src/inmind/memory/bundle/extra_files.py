"""What no journal could bring back: which files of a home that is, and where they are put elsewhere.

    sessions/--<cwd>--/<id>.jsonl, .meta.json     sessions of the older kind, which nobody has opened yet
    ….damaged-<digest>                            what somebody wrote and memory could not take in, set aside
    resources/<resource>/MEMORY.md.seed-backup    the page as it was before the first dream
    config.toml                                   settings

Settings name the server that is sent what was lived through, and which key it is shown. Those of a bundle are put
beside the home's own, for a person to look at, and are never in force by themselves. A database has its settings as a
text, takes others as a text beside it, and has no place for other files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import SettingsWritten
from inmind.core.paths import CONFIG, place_of
from inmind.core.streams import SETTINGS_STREAM
from inmind.documents.document import validate_text
from inmind.errors import BundleDiverged, Conflict, UnsafeStorage
from inmind.session.backend import Backend
from inmind.store.atomic_files import DAMAGED_SUFFIX, Folder
from inmind.store.protocol import BulkImport

MOST_BYTES = 64 * 1_048_576
"""Of one such file; one that is larger is left out, and that is said. It is held in memory on its way."""

PLACES = (CONFIG, "sessions", "resources")
"""Where they stand in a home."""

_DEEPEST = 8
_ARRIVING = ".inmind-arriving-"
_SETTINGS_BESIDE = f"{CONFIG}.imported"
_OLDER = re.compile(r"sessions/--[^/]*--/[^/]+(?:\.jsonl|\.meta\.json)")
_ASIDE = re.compile(rf"(?:sessions|resources)/.*(?:{re.escape(DAMAGED_SUFFIX)}[^/]+|/MEMORY\.md\.seed-backup[^/]*)")


def is_kept(name: str) -> bool:
    """By its path below the home. No step leads out, hides, or is one that some disk could take for another."""
    steps = name.split("/")
    if name == CONFIG:
        return True
    if len(steps) > _DEEPEST or "\\" in name or not name.isprintable():
        return False
    if any(not 0 < len(step.encode()) <= 255 or step.startswith(".") or step != step.strip() for step in steps):
        return False
    return _OLDER.fullmatch(name) is not None or _ASIDE.fullmatch(name) is not None


def kept_at(place: Backend, firsts: Sequence[Event] | None) -> Iterator[tuple[str, bytes | None]]:
    """All of it, each with its bytes, or None where they cannot be had; of some streams, by their first events."""
    home = place.home
    if home is None:
        config = place.read_config()
        if config.version and firsts is None:
            yield CONFIG, config.text.encode()
        return
    own = None if firsts is None else [place_of(home, first).relative_to(home).as_posix() for first in firsts]
    for name in kept_in(home, PLACES if own is None else own):
        yield name, read_kept(home, name)


def kept_in(home: Path, places: Sequence[str]) -> Iterator[str]:
    """Those that stand in some folders of a home, or are these. Links are not followed."""
    for place in places:
        if place == CONFIG and (home / place).is_file():
            yield place
        for folder, folders, files in os.walk(home / place):
            folders.sort()
            for file in sorted(files):
                name = (Path(folder) / file).relative_to(home).as_posix()
                if is_kept(name):
                    yield name


def read_kept(home: Path, name: str) -> bytes | None:
    """None if it cannot be had: too large, a link, gone meanwhile."""
    found = Folder(home).read(name, max_bytes=MOST_BYTES)
    return found.data if found.is_complete else None


class Arriving(Protocol):
    """Files of a bundle, on their way to where they shall be: all of them `lie` first, while what they come with is
    adopted, and get their names when it has been."""

    @property
    def placed(self) -> tuple[str, ...]: ...

    @property
    def left_out(self) -> tuple[str, ...]:
        """Those that there is no place for."""
        ...

    def arriving(self) -> AbstractContextManager[None]: ...

    def lay(self, name: str, data: bytes, adoption: BulkImport) -> None: ...

    def name(self) -> None: ...


def arriving_at(place: Backend, now: datetime) -> Arriving:
    return Placing(place.home) if place.home is not None else Noting(place, now)


class Noting:
    """Puts the settings of a bundle beside those of a database, and has no place for anything else.

    They are adopted with all that they come with: both are there, or neither.
    """

    placed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def __init__(self, place: Backend, now: datetime) -> None:
        self._place, self._now = place, now

    def arriving(self) -> AbstractContextManager[None]:
        return nullcontext()

    def lay(self, name: str, data: bytes, adoption: BulkImport) -> None:
        if name != CONFIG:
            self.left_out += (name,)
            return
        text = validate_text(data.decode(errors="replace"), field=CONFIG)
        if text in (self._place.read_config().text, self._place.read_config(_SETTINGS_BESIDE).text):
            return
        told = Draft(payload=SettingsWritten(path=_SETTINGS_BESIDE, text=text), origin=Origin.OPERATOR)
        try:
            adoption.add_event(self._behind(self._place.store.version(SETTINGS_STREAM), told))
        except Conflict as moved:  # somebody was faster; nobody is any more, since the stream is held from now on
            adoption.add_event(self._behind(moved.actual, told))
        self.placed = (_SETTINGS_BESIDE,)

    def name(self) -> None:
        """It has its name already."""

    def _behind(self, version: int, told: Draft) -> Event:
        return Event(
            stream=SETTINGS_STREAM,
            seq=version + 1,
            at=self._now,
            payload=told.payload,
            origin=told.origin,
            trust=told.effective_trust,
            starts_batch=True,
            sources=told.sources,
        )


class Placing:
    """Puts files of a bundle into a home, where nothing stands.

    They are laid down unseen first, each in the folder where it belongs, so that there is room for all of them; and get
    their names when the journal has what they come with, since a session of the older kind is one as soon as it is
    there. Killed in between, the same bundle once more brings what is missing. `arriving` spans all of it.
    """

    left_out: tuple[str, ...] = ()

    def __init__(self, home: Path) -> None:
        self._folder = Folder(home)
        self._laid: dict[str, str] = {}
        """Places, each with where it lies so far."""

    @property
    def placed(self) -> tuple[str, ...]:
        return tuple(self._laid)

    @contextmanager
    def arriving(self) -> Generator[None]:
        """One import at a time; what lies there from one that was killed belongs to nobody."""
        with self._folder.lock():
            self._take_away(self._left())
            try:
                yield
            finally:
                self._take_away(self._laid.values())

    def lay(self, name: str, data: bytes, adoption: BulkImport) -> None:  # noqa: ARG002 -- as a database has it
        for place in self._places(name, data):
            there = self._folder.read(place, max_bytes=len(data))
            if there.data == data:
                return
            if there.read_error:
                raise UnsafeStorage(place=str(self._folder.path / place), reason=there.read_error)
            if there.data is None:
                between, slash, _ = place.rpartition("/")
                self._laid[place] = f"{between}{slash}{_ARRIVING}{_mark(place.encode())[:16]}"
                self._folder.replace(self._laid[place], data)
                return
        raise BundleDiverged(name, "is not the same here and in the bundle")

    def name(self) -> None:
        for place, lies in self._laid.items():
            self._folder.save_aside(lies, new_name=place)

    def _take_away(self, laid: Iterable[str]) -> None:
        for lies in laid:
            found = self._folder.read(lies, max_bytes=MOST_BYTES)
            if found.data is not None:
                self._folder.remove(lies, expected=found)

    def _left(self) -> Sequence[str]:
        found = (path for place in PLACES for path in (self._folder.path / place).rglob(f"{_ARRIVING}*"))
        top = self._folder.path.glob(f"{_ARRIVING}*")
        return [path.relative_to(self._folder.path).as_posix() for path in (*top, *found)]

    def _places(self, name: str, data: bytes) -> Iterator[str]:
        """A session has one name; of what lies there for people, another one will do."""
        if name == CONFIG:
            yield from () if self._folder.read(name, max_bytes=len(data)).data != data else (name,)
            name = _SETTINGS_BESIDE
        yield name
        if not _OLDER.fullmatch(name):
            yield f"{name}-{_mark(data)[:8]}"


def _mark(data: bytes) -> str:
    return sha256(data).hexdigest()
