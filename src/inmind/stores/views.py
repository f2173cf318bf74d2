"""Live files: the journal's documents where people and other tools can read and edit them.

Publishing and taking in are one act, `settle`: under the folder's lock, look at the file, judge what it is,
and bring file and journal together. A crash anywhere in between leaves a file that the next look judges the
same way, so repair is not a separate piece of code.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from inmind.documents import MOST_BYTES, Document, Documents, Finding, Judgement, judge, resolve
from inmind.errors import Closed, InmindError, InvalidPath
from inmind.journal import DocumentSetAside, DocumentWritten, Draft, Origin, digest
from inmind.stores.base import Published, Store
from inmind.stores.files import Folder, Found, Signature, make_private, nanoseconds
from inmind.stores.stream import Stream

_DAMAGED = ".damaged-"

# Nanoseconds that an editor may take between emptying a file and filling it again.
_PATIENCE = 200_000_000

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
        self._tidied = False

    def take_in(self) -> None:
        """Bring in what people and tools have written since the last look. A few `stat` calls when nothing changed."""
        if not self._tidied:
            self._tidy()
        documents = self._documents(self._stream.state).by_path
        for path in self._present():
            signature = self._folder.signature(self._inside + path)
            if signature != self._seen.get(path) or (signature is None and path in documents):
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
        except Closed:
            raise
        except InmindError as error:
            self._notice(f"{path} could not be brought up to date: {error}")

    def _tidy(self) -> None:
        """Once, at the beginning: the folders that people look for, and what killed writers have left lying about."""
        try:
            with self._folder.locked():
                for folder in self._folders:
                    make_private(self._folder.path / self._inside / folder)
                displaced = [name.removeprefix(self._inside) for name in self._folder.tidy()]
        except Closed:
            raise
        except InmindError as error:
            self._notice(f"the folder could not be tidied: {error}")
            return
        self._tidied = True
        for path in displaced:
            if _is_document(path):
                self.settle(path)

    def _round(self, path: str) -> bool:
        """One look and one act; False when an editor's save came to light and has to be looked at."""
        self._recover(path)
        found = self._folder.read(self._inside + path, most=MOST_BYTES)
        if found.unreadable:
            self._notice(f"{path} cannot be read ({found.unreadable}); the last good version is used")
            return True
        document = self._documents(self._stream.refresh()).by_path.get(path)
        judgement = self._judged(path, found, document)
        match judgement.finding:
            case Finding.CURRENT:
                self._now_shows(path, document, found)
                return True
            case Finding.EDITED:
                document = self._adopt(path, judgement.text)
                self._now_shows(path, document, found)
                return True
            case Finding.FOREIGN:
                self._leave_alone(path, found, judgement)
                return True
            case Finding.DAMAGED:
                if _waited(found):
                    return False
                self._set_aside(path, found.data or b"", judgement)
            case Finding.MISSING:
                if path in self._shown:
                    self._notice(f"{path} was gone; it is there again, since a file's absence does not forget it")
            case Finding.STALE:
                pass
        return self._show(path, document, found)

    def _judged(self, path: str, found: Found, document: Document | None) -> Judgement:
        shown = self._store.published(self._stream.name).get(path)
        published = shown.digest if shown else None
        judgement = judge(found.data, document=document, published=published)
        if judgement.finding is not Finding.EDITED:
            return judgement
        later = self._versions(path, after=shown.seq if shown else 0)
        return judge(found.data, document=document, published=published, unconfirmed=later)

    def _recover(self, path: str) -> None:
        """A writer was killed with a displaced file in its hands: a person's words in it become a version."""
        name = self._inside + path
        left = self._folder.displaced(name, most=MOST_BYTES)
        if left == Found():
            return
        judgement = judge(left.data, document=None, published=None, unconfirmed=self._versions(path, after=0))
        if judgement.finding is Finding.EDITED:
            self._adopt(path, judgement.text)
        self._folder.drop_displaced(name)

    def _versions(self, path: str, *, after: int) -> list[str]:
        """Digests of what the journal had this document say, from some event on."""
        events = self._store.read(self._stream.name, after=after, kind=DocumentWritten.kind)
        texts = (event.what for event in events if isinstance(event.what, DocumentWritten))
        return [digest(written.text) for written in texts if written.path == path]

    def _show(self, path: str, document: Document | None, found: Found) -> bool:
        name = self._inside + path
        if document is None:  # undone: the file goes as it came, its words stay in the journal
            done = self._folder.remove(name, found=found)
        else:
            done = self._folder.exchange(name, document.text.encode(), found=found)
        if done:
            self._now_shows(path, document)
        return done

    def _adopt(self, path: str, text: str) -> Document:
        draft = Draft(what=DocumentWritten(path=path, text=text), origin=Origin.FILE)
        self._stream.append(draft)
        return self._documents(self._stream.state).by_path[path]

    def _leave_alone(self, path: str, found: Found, judgement: Judgement) -> None:
        if found.data:
            self._notice(f"{path} is not taken for a document ({judgement.reason}); it stays as it is")
        self._remember(path, found)

    def _set_aside(self, path: str, data: bytes, judgement: Judgement) -> None:
        kept_as = f"{path}{_DAMAGED}{digest(data.hex())[:8]}"
        self._folder.keep(self._inside + path, kept_as=self._inside + kept_as, data=data)
        what = DocumentSetAside(path=path, reason=judgement.reason, kept_as=kept_as)
        draft = Draft(what=what, origin=Origin.FILE)
        self._stream.append(draft)
        self._notice(f"{path} was damaged ({judgement.reason}); restored, the damaged copy is {kept_as}")

    def _now_shows(self, path: str, document: Document | None, found: Found | None = None) -> None:
        """`found` if the file shows it just as it was found. One that we wrote is too young to be sure of."""
        have = self._store.published(self._stream.name).get(path)
        mark = digest(document.text) if document else ""
        if mark != (have.digest if have else ""):
            self._store.mark_published(self._stream.name, path, Published(mark, seq=self._stream.version))
        if document is None:
            self._shown.pop(path, None)
        else:
            self._shown[path] = document.version
        self._remember(path, found)

    def _remember(self, path: str, found: Found | None) -> None:
        """Not to look again before something has changed."""
        if found and found.settled:
            self._seen[path] = found.settled
        else:
            self._seen.pop(path, None)

    def _present(self) -> list[str]:
        """Every path that has a document or a file: a new file in detail/ is a document a person began."""
        documents = self._documents(self._stream.state).by_path
        begun = [path for folder in self._folders for path in self._begun(folder) if path not in documents]
        return [*documents, *(path for path in self._paths if path not in documents), *begun]

    def _begun(self, folder: str) -> list[str]:
        """Documents that have a file in this folder. Read again only when something was put there or taken away."""
        now = nanoseconds()
        signature = self._folder.signature(self._inside + folder)
        if signature is None:
            return []
        if signature != self._looked.get(folder):
            names = self._folder.names(self._inside + folder)
            self._listed[folder] = [path for n in names if _is_document(path := n.removeprefix(self._inside))]
            if signature.settled(now):
                self._looked[folder] = signature
        return self._listed[folder]

    def _notice(self, text: str) -> None:
        if text in self._said:
            return
        self._said.add(text)
        self._notices.append(text)
        log.warning("inmind: %s", text)


def _waited(found: Found) -> bool:
    """Some editors empty a file and then write it: what looks damaged and is that young gets a moment to be whole."""
    age = found.looked - found.signature.changed if found.signature else _PATIENCE
    if not 0 <= age < _PATIENCE:
        return False
    time.sleep((_PATIENCE - age) / 1e9)
    return True


def _is_document(path: str) -> bool:
    """A damaged file that was set aside is not one, though its name would do."""
    if _DAMAGED in path:
        return False
    try:
        resolve(path)
    except InvalidPath:
        return False
    return True
