"""Live files: the journal's documents where people and other tools can read and edit them.

Publishing and taking in are one act, `settle`: under the folder's lock, look at the file, judge what it is,
and bring file and journal together. A crash anywhere in between leaves a file that the next look judges the
same way, so repair is not a separate piece of code.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from inmind.documents import MOST_BYTES, Document, Documents, Finding, Judgement, judge, resolve
from inmind.errors import InmindError, InvalidPath
from inmind.journal import DocumentSetAside, DocumentWritten, Draft, Origin, digest
from inmind.stores.base import Store
from inmind.stores.files import Folder, Signature, nanoseconds
from inmind.stores.stream import Stream

log = logging.getLogger("inmind")

S = TypeVar("S")

# Each round ends unless an editor saved within microseconds of our rename; nobody types that fast for long.
_MOST_ROUNDS = 8


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
        self._documents, self._inside, self._folders, self._paths = documents, inside, folders, paths
        self._seen: dict[str, Signature] = {}
        self._looked: dict[str, Signature] = {}
        self._listed: dict[str, list[str]] = {}
        self._shown: dict[str, int] = {}
        self._notices: list[str] = []
        self._said: set[str] = set()

    def take_in(self) -> None:
        """Bring in what people and tools have written since the last look. A few `stat` calls when nothing changed."""
        for path in self._present():
            if self._folder.signature(self._inside + path) != self._seen.get(path):
                self.settle(path)

    def publish(self) -> None:
        """Show the newest version of every document that changed."""
        documents = self._documents(self._stream.state).by_path
        for path in [*documents, *(gone for gone in list(self._shown) if gone not in documents)]:
            version = documents[path].version if path in documents else 0
            if self._shown.get(path) != version:
                self.settle(path)

    def notices(self) -> tuple[str, ...]:
        """What people should know, each said once."""
        said, self._notices = tuple(self._notices), []
        return said

    def settle(self, path: str) -> None:
        """Bring one file and its document together, whoever of the two is ahead."""
        try:
            with self._folder.locked():
                for _ in range(_MOST_ROUNDS):
                    if self._round(path):
                        return
        except InmindError as error:
            self._notice(f"{path} could not be brought up to date: {error}")

    def _round(self, path: str) -> bool:
        """One look and one act; False when an editor's save came to light and has to be looked at."""
        found = self._folder.read(self._inside + path, most=MOST_BYTES)
        if found.unreadable:
            self._notice(f"{path} cannot be read ({found.unreadable}); the last good version is used")
            return True
        document = self._documents(self._stream.refresh()).by_path.get(path)
        published = self._store.published(self._stream.name).get(path)
        judgement = judge(found.data, document=document, published=published)
        match judgement.finding:
            case Finding.CURRENT:
                self._now_shows(path, document)
                return True
            case Finding.EDITED:
                self._adopt(path, judgement.text)
                return True
            case Finding.DAMAGED:
                self._set_aside(path, found.data or b"", judgement)
            case Finding.STALE | Finding.MISSING:
                pass
        return self._show(path, document, expected=found.data)

    def _show(self, path: str, document: Document | None, *, expected: bytes | None) -> bool:
        name = self._inside + path
        if document is None:  # undone: the file goes as it came, its words stay in the journal
            self._folder.remove(name)
            self._seen.pop(path, None)
            self._shown.pop(path, None)
            return True
        displaced = self._folder.replace(name, document.text.encode())
        if displaced is not None and displaced != expected:
            self._folder.replace(name, displaced)
            return False
        self._now_shows(path, document)
        return True

    def _adopt(self, path: str, text: str) -> None:
        draft = Draft(what=DocumentWritten(path=path, text=text), origin=Origin.FILE)
        self._stream.append(draft)
        self._now_shows(path, self._documents(self._stream.state).by_path[path])

    def _set_aside(self, path: str, data: bytes, judgement: Judgement) -> None:
        kept_as = f"{path}.damaged-{digest(data.hex())[:8]}"
        self._folder.replace(self._inside + kept_as, data)
        what = DocumentSetAside(path=path, reason=judgement.reason, kept_as=kept_as)
        draft = Draft(what=what, origin=Origin.FILE)
        self._stream.append(draft)
        self._notice(f"{path} was damaged ({judgement.reason}); restored, the damaged copy is {kept_as}")

    def _now_shows(self, path: str, document: Document | None) -> None:
        if document is None:
            self._seen.pop(path, None)
            return
        mark = digest(document.text)
        if self._store.published(self._stream.name).get(path) != mark:
            self._store.mark_published(self._stream.name, path, mark)
        self._shown[path] = document.version
        signature = self._folder.signature(self._inside + path)
        if signature is not None and signature.settled(nanoseconds()):
            self._seen[path] = signature
        else:
            self._seen.pop(path, None)

    def _present(self) -> list[str]:
        """Every path that has a document or a file: a new file in detail/ is a document a person began."""
        documents = self._documents(self._stream.state).by_path
        begun = [path for folder in self._folders for path in self._begun(folder) if path not in documents]
        return [*documents, *(path for path in self._paths if path not in documents), *begun]

    def _begun(self, folder: str) -> list[str]:
        """Documents that have a file in this folder. Read again only when something was put there or taken away."""
        signature = self._folder.signature(self._inside + folder)
        if signature is None:
            return []
        if signature != self._looked.get(folder):
            names = self._folder.names(self._inside + folder)
            self._listed[folder] = [path for n in names if _is_document(path := n.removeprefix(self._inside))]
            if signature.settled(nanoseconds()):
                self._looked[folder] = signature
        return self._listed[folder]

    def _notice(self, text: str) -> None:
        if text in self._said:
            return
        self._said.add(text)
        self._notices.append(text)
        log.warning("%s", text)


def _is_document(path: str) -> bool:
    try:
        resolve(path)
    except InvalidPath:
        return False
    return True
