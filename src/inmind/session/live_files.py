"""Live files: the journal's documents where people and other tools can read and edit them.

Publishing and taking in are one act, `settle`: under the folder's lock, look at the file, judge what it is,
and bring file and journal together. A crash anywhere in between leaves a file that the next look judges the
same way, so repair is not a separate piece of code.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Generic, TypeVar

from inmind.core.encoding import digest
from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentSetAside
from inmind.core.events.session import Reverted
from inmind.documents.document import (
    DOCUMENT_EVENTS,
    MAX_DOCUMENT_BYTES,
    NOTES_PAGE_PATH,
    OVERVIEW_PATH,
    PAGE_FOLDERS,
    PAGE_NAME_RULE,
    RESOURCE_PATHS,
    Document,
    Documents,
    FileCheck,
    FileStatus,
    check_file,
    resolve_path,
)
from inmind.errors import Closed, InmindError, InvalidPath
from inmind.session.edit_merge import EditMerger
from inmind.session.state import ResourceState, SessionState
from inmind.store.atomic_files import DAMAGED_SUFFIX, Folder
from inmind.store.file_operations import FileSignature, FileState, now_nanoseconds
from inmind.store.protocol import PublishedVersion, Store
from inmind.store.stream import Stream

# Nanoseconds that an editor may take between emptying a file and filling it again.
_PATIENCE = 200_000_000

log = logging.getLogger("inmind")

S = TypeVar("S")

# Each round ends unless an editor saved within microseconds of our rename; nobody types that fast for long.
_MOST_ROUNDS = 8

# Files that are settled under one lock: others who write there wait for no more than these.
_TOGETHER = 50

# Events by which a document may come to say something else.
_TELLING = (*DOCUMENT_EVENTS, Reverted)

# Files of other names that are told one by one; whoever unpacks a thousand there is told their number.
_MOST_STRANGERS = 5


class LiveFiles(Generic[S]):
    """The files of one stream's documents, below one folder."""

    def __init__(
        self,
        folder: Folder,
        stream: Stream[S],
        store: Store,
        *,
        documents: Callable[[S], Documents],
        inside: str,
        folders: tuple[str, ...] = (),
        paths: tuple[str, ...] = (),
    ) -> None:
        """`inside`: where below the folder; `folders`, `paths`: where a person may begin a document by a file."""
        self._folder, self._stream, self._store = folder, stream, store
        self._edits = EditMerger(stream, store, documents)
        self._documents, self._inside, self._folders, self._paths = documents, inside, folders, paths
        self._seen: dict[str, FileSignature] = {}
        self._looked: dict[str, FileSignature] = {}
        self._listed: dict[str, list[str]] = {}
        self._shown: dict[str, int] = {}
        self._notices: list[str] = []
        self._said: set[str] = set()
        self._tidied = False

    def read_edits(self) -> None:
        """Bring in what people and tools have written since the last look. A few `stat` calls when nothing changed."""
        if not self._tidied:
            self._tidy()
        documents = self._documents(self._stream.state).by_path
        changed: list[str] = []
        for path in self._reachable(self._present()):
            signature = self._folder.signature(self._inside + path)
            if signature != self._seen.get(path) or (signature is None and path in documents):
                changed.append(path)
        self.sync(*changed)

    def publish(self) -> None:
        """Show the newest version of every document that changed."""
        documents = self._documents(self._stream.state).by_path
        versions = {path: document.version for path, document in documents.items()}
        behind = [path for path in {**versions, **self._shown} if self._shown.get(path) != versions.get(path, 0)]
        self.sync(*self._reachable(behind))

    def notices(self) -> tuple[str, ...]:
        """What people should know, each said once."""
        said, self._notices = tuple(self._notices), []
        return said

    def inspect(self) -> Iterator[tuple[str, FileCheck]]:
        """What `settle` would find in each file as it stands now; nothing is written, taken in or waited for.

        A page that was never shown, as in a home that was just imported, is not missing.
        """
        shown = self._store.published_versions(self._stream.name)
        documents = self._documents(self._stream.state).by_path
        for path in self._reachable(self._present()):
            found = self._folder.read(self._inside + path, max_bytes=MAX_DOCUMENT_BYTES)
            if found.read_error:
                yield path, FileCheck(FileStatus.FOREIGN, reason=found.read_error)
            elif found.data is not None or path in shown:
                yield path, self._judged(path, found, documents.get(path), shown.get(path))

    def sync(self, *paths: str) -> None:
        """Bring files and their documents together, whoever of the two is ahead.

        What was last published is marked with the folder locked, so one look at it is good for all that are settled
        under the same lock: to look again for each would cost the square of their number.
        """
        for start in range(0, len(paths), _TOGETHER):
            together = paths[start : start + _TOGETHER]
            with self._told(*together), self._folder.lock():
                shown = self._store.published_versions(self._stream.name)
                for path in together:
                    with self._told(path):
                        self._settled(path, shown)

    def _settled(self, path: str, shown: dict[str, PublishedVersion]) -> None:
        for _ in range(_MOST_ROUNDS):
            if self._round(path, shown):
                return

    @contextlib.contextmanager
    def _told(self, *paths: str) -> Generator[None]:
        """A file may lag, a call must not fail."""
        try:
            yield
        except Closed:
            raise
        except InmindError as error:
            for path in paths:
                self._notice(f"{path} could not be brought up to date: {error}")

    def _tidy(self) -> None:
        """Once, at the beginning: the folders that people look for, and what killed writers have left lying about."""
        if not self._reachable([""]):
            return
        try:
            with self._folder.lock():
                for folder in self._reachable([f"{folder}/" for folder in self._folders]):
                    self._folder.make_subfolder(self._inside + folder.removesuffix("/"))
                displaced = [name.removeprefix(self._inside) for name in self._folder.clean_up()]
        except Closed:
            raise
        except InmindError as error:
            self._notice(f"the folder could not be tidied: {error}")
            return
        self._tidied = True
        for path in displaced:
            if _is_document(path):
                self.sync(path)

    def _round(self, path: str, shown: dict[str, PublishedVersion]) -> bool:
        """One look and one act; False when an editor's save came to light and has to be looked at."""
        self._recover(path, shown.get(path))
        found = self._folder.read(self._inside + path, max_bytes=MAX_DOCUMENT_BYTES)
        document = self._documents(self._stream.refresh()).by_path.get(path)
        if found.read_error:
            self._tell_unreadable(path, found, document, shown.get(path))
            return True
        judgement = self._judged(path, found, document, shown.get(path))
        match judgement.status:
            case FileStatus.CURRENT:
                self._now_shows(path, document, shown, found)
                return True
            case FileStatus.EDITED:
                document = self._edits.save(path, judgement.text, shown.get(path))
                if document.text != judgement.text:
                    return False
                self._now_shows(path, document, shown, found)
                return True
            case FileStatus.SHARED:
                if _waited(found):
                    return False
                self._notice(f"{path} is not taken in: its file has another name as well (a hard link)")
                self._remember(path, found)
                return True
            case FileStatus.FOREIGN:
                self._leave_alone(path, found, judgement)
                return True
            case FileStatus.DAMAGED:
                if _waited(found):
                    return False
                self._set_aside(path, found.data or b"", judgement)
            case FileStatus.MISSING:
                if path in self._shown:
                    self._notice(f"{path} was gone; it is there again, since a file's absence does not forget it")
            case FileStatus.STALE:
                pass
        done = self._show(path, document, found)
        if done:
            self._now_shows(path, document, shown)
        return done

    def _judged(
        self, path: str, found: FileState, document: Document | None, shown: PublishedVersion | None
    ) -> FileCheck:
        published = shown.digest if shown else None
        judgement = check_file(found.data, document=document, published_digest=published)
        if judgement.status is not FileStatus.EDITED:
            return judgement
        later = self._versions(path, after=shown.seq if shown else 0)
        return check_file(
            found.data,
            document=document,
            published_digest=published,
            unconfirmed_digests=later,
            has_other_links=found.has_other_links,
        )

    def _tell_unreadable(
        self, path: str, found: FileState, document: Document | None, shown: PublishedVersion | None
    ) -> None:
        self._notice(f"{path} cannot be read ({found.read_error}); the last good version is used")
        if document is not None and shown is not None and digest(document.text) != shown.digest:
            self._notice(f"{path} is written in memory and not in its file, in whose place something else stands")

    def _recover(self, path: str, shown: PublishedVersion | None) -> None:
        """A writer was killed with a displaced file in its hands: a person's words in it become a version."""
        name = self._inside + path
        left = self._folder.read_swap(name, max_bytes=MAX_DOCUMENT_BYTES)
        if left == FileState():
            return
        versions = self._versions(path, after=0)
        judgement = check_file(
            left.data,
            document=None,
            published_digest=None,
            unconfirmed_digests=versions,
            has_other_links=left.has_other_links,
        )
        if judgement.status is FileStatus.EDITED:
            self._edits.save(path, judgement.text, shown)
        self._folder.delete_swap(name)

    def _versions(self, path: str, *, after: int) -> list[str]:
        """Digests of what the journal had this document say, from some event on.

        They are folded: a note changes a page without saying all of it, and an undo brings an older one back.
        """
        documents = self._documents(self._stream.state_at(after))
        said: list[str] = []
        read = partial(self._store.read, self._stream.name, after=after)
        for event in sorted((event for kind in _TELLING for event in read(kind=kind.kind)), key=attrgetter("seq")):
            before = documents.version(path)
            if isinstance(event.payload, Reverted):
                documents = self._documents(self._stream.state_at(event.seq))
            else:
                documents = documents.apply(event)
            if documents.version(path) not in (0, before):
                said.append(digest(documents.text(path)))
        return said

    def _show(self, path: str, document: Document | None, found: FileState) -> bool:
        name = self._inside + path
        if document is None:  # undone: the file goes as it came, its words stay in the journal
            return self._folder.remove(name, expected=found)
        return self._folder.exchange(name, document.text.encode(), expected=found)

    def _leave_alone(self, path: str, found: FileState, judgement: FileCheck) -> None:
        if found.data:
            self._notice(f"{path} is not taken for a document ({judgement.reason}); it stays as it is")
        self._remember(path, found)

    def _set_aside(self, path: str, data: bytes, judgement: FileCheck) -> None:
        name = self._inside + path
        kept = self._folder.save_aside(name, new_name=f"{name}{DAMAGED_SUFFIX}{digest(data.hex())[:8]}")
        kept_as = kept.removeprefix(self._inside)
        what = DocumentSetAside(path=path, reason=judgement.reason, saved_as=kept_as)
        draft = Draft(payload=what, origin=Origin.FILE)
        self._stream.append(draft)
        self._notice(f"{path} was not taken in ({judgement.reason}); restored, what stood there is in {kept_as}")

    def _now_shows(
        self, path: str, document: Document | None, shown: dict[str, PublishedVersion], found: FileState | None = None
    ) -> None:
        """`found` if the file shows it just as it was found. One that we wrote is too young to be sure of."""
        have = shown.get(path)
        mark = digest(document.text) if document else ""
        if mark != (have.digest if have else ""):
            now = PublishedVersion(mark, seq=self._stream.version)
            self._store.mark_published(self._stream.name, path, now)
            shown[path] = now
        if document is None:
            self._shown.pop(path, None)
        else:
            self._shown[path] = document.version
        self._remember(path, found)

    def _remember(self, path: str, found: FileState | None) -> None:
        """Not to look again before something has changed."""
        if found and found.reliable_signature:
            self._seen[path] = found.reliable_signature
        else:
            self._seen.pop(path, None)

    def _present(self) -> list[str]:
        """Every path that has a document or a file: a new file in detail/ is a document a person began."""
        documents = self._documents(self._stream.state).by_path
        places = ("", *self._folders) if self._folders else ()
        begun = [path for place in places for path in self._begun(place) if path not in documents]
        return [*documents, *(path for path in self._paths if path not in documents), *begun]

    def _begun(self, folder: str) -> list[str]:
        """Documents that have a file in this folder. Read again only when something was put there or taken away."""
        now = now_nanoseconds()
        place = (self._inside + folder).removesuffix("/")
        signature = self._folder.signature(place)
        if signature is None:
            return []
        if signature != self._looked.get(folder):
            within = f"{folder}/" if folder else ""
            found = {within + name: kind for name, kind in self._folder.list_files(place).items()}
            refused = {path: why for path, kind in found.items() if (why := _no_page(path, kind))}
            self._listed[folder] = [path for path in found if path not in refused]
            self._tell_strangers(folder, refused)
            if signature.is_reliable(now):
                self._looked[folder] = signature
        return self._listed[folder]

    def _tell_strangers(self, folder: str, refused: Mapping[str, str]) -> None:
        """What somebody put among the pages and expects to be read, though it is none; not what memory put there."""
        notes, _, _ = NOTES_PAGE_PATH.partition("/")  # where a session of nobody in particular has its own
        known = {*self._folders, notes, *self._documents(self._stream.state).by_path}
        strangers = [path for path in refused if path not in known and DAMAGED_SUFFIX not in path]
        for path in strangers[:_MOST_STRANGERS]:
            name = path if path.isprintable() else repr(path)  # anybody may have named it anything
            self._notice(f"{name} is not taken in: {refused[path]}")
        if len(strangers) > _MOST_STRANGERS:
            more, place = len(strangers) - _MOST_STRANGERS, f"{folder}/" if folder else self._inside
            self._notice(f"{more} more in {place} are not taken in, by their names or for what they are")

    def _reachable(self, paths: Sequence[str]) -> list[str]:
        """Those that a folder leads to, and not a link in its place, which could lead anywhere."""
        ways = {path.rpartition("/")[0]: path for path in paths}
        barred = {
            way: step for way, path in ways.items() if (step := self._folder.first_non_folder(self._inside + path))
        }
        for step in dict.fromkeys(barred.values()):
            self._notice(f"{step} is no folder, and links are not followed: its pages are only in memory, not in files")
        return [path for path in paths if path.rpartition("/")[0] not in barred]

    def _notice(self, text: str) -> None:
        if text in self._said:
            return
        self._said.add(text)
        self._notices.append(text)
        log.warning("inmind: %s", text)


def session_files(folder: Folder, stream: Stream[SessionState], store: Store) -> LiveFiles[SessionState]:
    """The pages of a session: people begin one by putting a file among them."""
    return LiveFiles(folder, stream, store, documents=_of_mind, inside="working-memory/", folders=PAGE_FOLDERS)


def resource_files(folder: Folder, stream: Stream[ResourceState], store: Store) -> LiveFiles[ResourceState]:
    """The pages of a resource."""
    return LiveFiles(folder, stream, store, documents=_of_belongings, inside="", paths=RESOURCE_PATHS)


def _of_mind(state: SessionState) -> Documents:
    return state.documents


def _of_belongings(resource_state: ResourceState) -> Documents:
    return resource_state.documents


def _waited(found: FileState) -> bool:
    """Some editors empty a file and then write it, or link a backup first: one that looks wrong and is that young gets
    a moment to be right.
    """
    age = found.read_at - found.signature.changed_at if found.signature else _PATIENCE
    if not 0 <= age < _PATIENCE:
        return False
    time.sleep((_PATIENCE - age) / 1e9)
    return True


def _no_page(path: str, kind: str) -> str:
    """Why a file is no page; empty for one that is."""
    if kind:
        return f"it is {kind}" + (", and links are not followed" if kind == "a link" else "")
    if "/" not in path and path != OVERVIEW_PATH:
        return f"pages are {OVERVIEW_PATH} and the files in {'/ and '.join(PAGE_FOLDERS)}/"
    return "" if _is_document(path) else f"the name of a page has {PAGE_NAME_RULE}"


def _is_document(path: str) -> bool:
    """A damaged file that was set aside is not one, though its name would do."""
    if DAMAGED_SUFFIX in path:
        return False
    try:
        resolve_path(path)
    except InvalidPath:
        return False
    return True
