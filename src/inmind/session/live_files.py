"""Live files: documents of the journal as files that people and tools can read and edit.

Publishing and reading edits are one operation, `sync`: under the lock of the folder, read the file, compare it with the
journal, and update the one that is out of date. A crash at any point leaves a file that the next sync handles in the
same way, so there is no separate repair.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

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
from inmind.session.documents import EditMerger
from inmind.session.state import ResourceState, SessionState
from inmind.store.atomic_files import DAMAGED_SUFFIX, Folder
from inmind.store.file_operations import FileSignature, FileState, now_nanoseconds
from inmind.store.protocol import PublishedVersion, Store
from inmind.store.stream import Stream

# Time that an editor may take between emptying a file and writing it again.
_EDITOR_GRACE_NANOSECONDS = 200_000_000

log = logging.getLogger("inmind")

# A round is repeated only if an editor saved within microseconds of our rename.
_MAX_ROUNDS = 8

# Files synced under one lock, so that other writers wait for at most this number.
_BATCH_SIZE = 50

# Events that can change a document.
_DOCUMENT_EVENTS = (*DOCUMENT_EVENTS, Reverted)

# Ignored files that are reported one by one; the rest is counted.
_MAX_FILE_NOTICES = 5


class LiveFiles:
    """The files of one stream's documents, below one folder."""

    def __init__(
        self,
        folder: Folder,
        stream: Stream[Any],
        store: Store,
        *,
        prefix: str,
        folders: tuple[str, ...] = (),
        paths: tuple[str, ...] = (),
    ) -> None:
        """`prefix`: path below the folder. `folders`, `paths`: where a new file becomes a document."""
        self._folder, self._stream, self._store = folder, stream, store
        self._edits = EditMerger(stream, store)
        self._prefix, self._folders, self._paths = prefix, folders, paths
        self._signatures: dict[str, FileSignature] = {}
        self._folder_signatures: dict[str, FileSignature] = {}
        self._folder_listings: dict[str, list[str]] = {}
        self._published_versions: dict[str, int] = {}
        self._notices: list[str] = []
        self._reported: set[str] = set()
        self._tidied = False

    @property
    def _documents(self) -> Documents:
        return self._stream.state.documents

    def read_edits(self) -> None:
        """Read edits saved since the last call. Costs a few `stat` calls if nothing changed."""
        if not self._tidied:
            self._tidy_folder()
        documents, paths = self._documents.by_path, self._reachable(self._candidate_paths())
        now = {path: self._folder.signature(self._prefix + path) for path in paths}
        is_missing = {path: now[path] is None and path in documents for path in paths}
        self.sync(*(path for path in paths if now[path] != self._signatures.get(path) or is_missing[path]))

    def publish(self) -> None:
        """Write the newest version of every document that changed."""
        documents = self._documents.by_path
        versions = {path: document.version for path, document in documents.items()}
        outdated = [
            path
            for path in {**versions, **self._published_versions}
            if self._published_versions.get(path) != versions.get(path, 0)
        ]
        self.sync(*self._reachable(outdated))

    def notices(self) -> tuple[str, ...]:
        """Notices for people, each returned once."""
        notices, self._notices = tuple(self._notices), []
        return notices

    def inspect(self) -> Iterator[tuple[str, FileCheck]]:
        """The status of each file, as `sync` would see it.

        Nothing is written, and there is no waiting.

        A page that was never published, as in a home that was just imported, is not missing.
        """
        published = self._store.published_versions(self._stream.name)
        documents = self._documents.by_path
        for path in self._reachable(self._candidate_paths()):
            file = self._folder.read(self._prefix + path, max_bytes=MAX_DOCUMENT_BYTES)
            if file.read_error:
                yield path, FileCheck(FileStatus.FOREIGN, reason=file.read_error)
            elif file.data is not None or path in published:
                yield path, self._check(path, file, documents.get(path), published.get(path))

    def sync(self, *paths: str) -> None:
        """Synchronize files and documents: the newer one updates the other.

        Published versions are marked only with the folder locked, so they are read once per batch. Reading them for
        each file would take quadratic time.
        """
        for start in range(0, len(paths), _BATCH_SIZE):
            batch = paths[start : start + _BATCH_SIZE]
            with self._report_errors(*batch), self._folder.lock():
                published = self._store.published_versions(self._stream.name)
                for path in batch:
                    with self._report_errors(path):
                        for _ in range(_MAX_ROUNDS):
                            if self._sync_round(path, published):
                                break

    @contextlib.contextmanager
    def _report_errors(self, *paths: str) -> Generator[None]:
        """Turn errors into notices: a file may be stale, but a call must not fail."""
        try:
            yield
        except Closed:
            raise
        except InmindError as error:
            for path in paths:
                self._notice(f"{path} could not be updated: {error}")

    def _tidy_folder(self) -> None:
        """Once, at the start: create the folders, and recover the files of killed writers."""
        if not self._reachable([""]):
            return
        displaced: list[str] = []
        with self._report_errors("the folder"), self._folder.lock():
            for folder in self._reachable([f"{folder}/" for folder in self._folders]):
                self._folder.make_subfolder(self._prefix + folder.removesuffix("/"))
            displaced = [name.removeprefix(self._prefix) for name in self._folder.clean_up()]
            self._tidied = True
        for path in filter(_is_document, displaced):
            self.sync(path)

    def _sync_round(self, path: str, published: dict[str, PublishedVersion]) -> bool:
        """Check a file and act once. Returns False if a concurrent save has to be checked again."""
        name, last_published = self._prefix + path, published.get(path)
        self._recover_displaced(path, last_published)
        file = self._folder.read(name, max_bytes=MAX_DOCUMENT_BYTES)
        document = self._stream.refresh().documents.by_path.get(path)
        if file.read_error:
            self._notice(f"{path} cannot be read ({file.read_error}); the last good version is used")
            if document is not None and last_published is not None and digest(document.text) != last_published.digest:
                self._notice(f"{path} has a newer version in memory that cannot be written to its file")
            return True
        check = self._check(path, file, document, last_published)
        if check.status in (FileStatus.SHARED, FileStatus.DAMAGED) and _wait_if_young(file):
            return False
        match check.status:
            case FileStatus.CURRENT:
                self._mark_published(path, document, published, file)
                return True
            case FileStatus.EDITED:
                document = self._edits.save(path, check.text, last_published)
                is_whole = document.text == check.text
                if is_whole:
                    self._mark_published(path, document, published, file)
                return is_whole
            case FileStatus.SHARED | FileStatus.FOREIGN:
                if file.data:
                    self._notice(f"{path} is ignored: {check.reason}; the file is unchanged")
                self._remember_signature(path, file)
                return True
            case FileStatus.DAMAGED:
                self._set_aside(path, file.data or b"", check)
            case FileStatus.MISSING if path in self._published_versions:
                self._notice(f"{path} was missing and has been restored: deleting a file does not delete its document")
            case _:
                pass
        if document is None:  # its creation was undone; the text stays in the journal
            done = self._folder.remove(name, expected=file)
        else:
            done = self._folder.exchange(name, document.text.encode(), expected=file)
        if done:
            self._mark_published(path, document, published)
        return done

    def _check(
        self, path: str, file: FileState, document: Document | None, published: PublishedVersion | None
    ) -> FileCheck:
        """The status of a file.

        Versions since the published one, which a killed writer may have written, are read only for an edited file.
        """
        mark = published.digest if published else None
        check = partial(check_file, file.data, document=document, published_digest=mark)
        if (first := check()).status is not FileStatus.EDITED:
            return first
        later = self._digests_since(path, after=published.seq if published else 0)
        return check(unconfirmed_digests=later, has_other_links=file.has_other_links)

    def _recover_displaced(self, path: str, published: PublishedVersion | None) -> None:
        """Save a person's text from a file that a killed writer had moved aside."""
        name = self._prefix + path
        swap = self._folder.read_swap(name, max_bytes=MAX_DOCUMENT_BYTES)
        if swap == FileState():
            return
        check = self._check(path, swap, None, None)
        if check.status is FileStatus.EDITED:
            self._edits.save(path, check.text, published)
        self._folder.delete_swap(name)

    def _digests_since(self, path: str, *, after: int) -> list[str]:
        """Digests of all versions of a document after an event.

        They are folded, because a note changes a page without storing its text, and an undo restores an older one.
        """
        name, documents = self._stream.name, self._stream.state_at(after).documents
        digests: list[str] = []
        kinds = (event for kind in _DOCUMENT_EVENTS for event in self._store.read(name, after=after, kind=kind.kind))
        for event in sorted(kinds, key=attrgetter("seq")):
            before = documents.version(path)
            if isinstance(event.payload, Reverted):
                documents = self._stream.state_at(event.seq).documents
            else:
                documents = documents.apply(event)
            if documents.version(path) not in (0, before):
                digests.append(digest(documents.text(path)))
        return digests

    def _set_aside(self, path: str, data: bytes, check: FileCheck) -> None:
        name = self._prefix + path
        saved = self._folder.save_aside(name, new_name=f"{name}{DAMAGED_SUFFIX}{digest(data.hex())[:8]}")
        saved_as = saved.removeprefix(self._prefix)
        payload = DocumentSetAside(path=path, reason=check.reason, saved_as=saved_as)
        self._stream.append(Draft(payload=payload, origin=Origin.FILE))
        self._notice(f"{path} was damaged ({check.reason}) and restored; the old content is in {saved_as}")

    def _mark_published(
        self,
        path: str,
        document: Document | None,
        published: dict[str, PublishedVersion],
        file: FileState | None = None,
    ) -> None:
        """Mark a version as published.

        `file`: the file as it was read, if it already had this text.

        A file that we have just written is too young for its signature to be reliable.
        """
        previous = published.get(path)
        mark = digest(document.text) if document else ""
        if mark != (previous.digest if previous else ""):
            version = PublishedVersion(mark, seq=self._stream.version)
            self._store.mark_published(self._stream.name, path, version)
            published[path] = version
        if document is None:
            self._published_versions.pop(path, None)
        else:
            self._published_versions[path] = document.version
        self._remember_signature(path, file)

    def _remember_signature(self, path: str, file: FileState | None) -> None:
        """Skip the file until its signature changes."""
        if file and file.reliable_signature:
            self._signatures[path] = file.reliable_signature
        else:
            self._signatures.pop(path, None)

    def _candidate_paths(self) -> list[str]:
        """Every path with a document or a file. A new file in detail/ becomes a document."""
        documents = self._documents.by_path
        places = ("", *self._folders) if self._folders else ()
        new = [path for place in places for path in self._listed_paths(place) if path not in documents]
        return [*documents, *(path for path in self._paths if path not in documents), *new]

    def _listed_paths(self, folder: str) -> list[str]:
        """Documents that have a file in this folder. The folder is listed again only if it changed."""
        now = now_nanoseconds()
        place = (self._prefix + folder).removesuffix("/")
        signature = self._folder.signature(place)
        if signature is None:
            return []
        if signature != self._folder_signatures.get(folder):
            listed = self._folder.list_files(place)
            if listed is None:  # perhaps only now, as with too many open files: the next call lists it again
                return []
            within = f"{folder}/" if folder else ""
            kinds = {within + name: kind for name, kind in listed.items()}
            refused = {path: why for path, kind in kinds.items() if (why := _not_a_page_reason(path, kind))}
            self._folder_listings[folder] = [path for path in kinds if path not in refused]
            self._notice_other_files(folder, refused)
            if signature.is_reliable(now):
                self._folder_signatures[folder] = signature
        return self._folder_listings[folder]

    def _notice_other_files(self, folder: str, refused: Mapping[str, str]) -> None:
        """Report files that a person put among the pages although they cannot be pages."""
        notes, _, _ = NOTES_PAGE_PATH.partition("/")  # an anonymous session has its own notes page there
        known = {*self._folders, notes, *self._documents.by_path}
        others = [path for path in refused if path not in known and DAMAGED_SUFFIX not in path]
        for path in others[:_MAX_FILE_NOTICES]:
            name = path if path.isprintable() else repr(path)
            self._notice(f"{name} is ignored: {refused[path]}")
        if len(others) > _MAX_FILE_NOTICES:
            more, place = len(others) - _MAX_FILE_NOTICES, f"{folder}/" if folder else self._prefix
            self._notice(f"{more} more files in {place} are ignored")

    def _reachable(self, paths: Sequence[str]) -> list[str]:
        """Paths whose parent is a real folder.

        A link could lead anywhere, so links are not followed.
        """
        parents = {path.rpartition("/")[0]: path for path in paths}
        blocked = {
            parent: part
            for parent, path in parents.items()
            if (part := self._folder.first_non_folder(self._prefix + path))
        }
        for part in dict.fromkeys(blocked.values()):
            self._notice(f"{part} is not a folder, and links are not followed: its pages are in memory, not in files")
        return [path for path in paths if path.rpartition("/")[0] not in blocked]

    def _notice(self, text: str) -> None:
        if text in self._reported:
            return
        self._reported.add(text)
        self._notices.append(text)
        log.warning("inmind: %s", text)


def session_files(folder: Folder, stream: Stream[SessionState], store: Store) -> LiveFiles:
    """The live files of a session. A new file among its pages becomes a document."""
    return LiveFiles(folder, stream, store, prefix="working-memory/", folders=PAGE_FOLDERS)


def resource_files(folder: Folder, stream: Stream[ResourceState], store: Store) -> LiveFiles:
    """The live files of a resource."""
    return LiveFiles(folder, stream, store, prefix="", paths=RESOURCE_PATHS)


def _wait_if_young(file: FileState) -> bool:
    """Wait if a file that looks wrong was changed just now. Returns whether it waited.

    Some editors empty a file before they write it, or link a backup first.
    """
    age = file.read_at - file.signature.changed_at if file.signature else _EDITOR_GRACE_NANOSECONDS
    if not 0 <= age < _EDITOR_GRACE_NANOSECONDS:
        return False
    time.sleep((_EDITOR_GRACE_NANOSECONDS - age) / 1e9)
    return True


def _not_a_page_reason(path: str, kind: str) -> str:
    """Why a file cannot be a page; empty if it can."""
    if kind:
        return f"it is {kind}" + (", and links are not followed" if kind == "a link" else "")
    if "/" not in path and path != OVERVIEW_PATH:
        return f"pages are {OVERVIEW_PATH} and the files in {'/ and '.join(PAGE_FOLDERS)}/"
    return "" if _is_document(path) else f"a page name has {PAGE_NAME_RULE}"


def _is_document(path: str) -> bool:
    """True if a path is that of a document. A damaged file that was set aside is not."""
    if DAMAGED_SUFFIX in path:
        return False
    try:
        resolve_path(path)
    except InvalidPath:
        return False
    return True
