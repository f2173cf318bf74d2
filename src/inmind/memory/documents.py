"""A document, read and written by a person from outside of any conversation.

In a home that is what live files are for; this is the same for whoever has no folder to look into, or would rather be
told that somebody was faster than have two texts merged: what is written replaces exactly what was read.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Generic, TypeVar

from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG
from inmind.documents.document import STATE, checked_text
from inmind.errors import Conflict
from inmind.session.backend import DocumentFiles
from inmind.session.state import ResourceState, SessionState
from inmind.store.stream import Decision, Stream

SETTINGS_PATHS = (CONFIG, f"{CONFIG}.imported")
"""What is a session's or a resource's no more than anybody else's: settings, and those that came with a bundle."""

S = TypeVar("S", SessionState, ResourceState)


@frozen(kw_only=True)
class Page:
    """A document as somebody has read it. Whoever writes it anew hands back what they have read."""

    path: str
    text: str
    version: int
    """0 where there is no such document yet."""
    session: str = ""
    resource: str = ""
    """Whose it is: a session's, a resource's, or, of settings, everybody's."""


class DocumentEditor(Generic[S]):
    """One document of a stream, and where it is shown."""

    def __init__(self, blank: Page, stream: Stream[S], files: DocumentFiles) -> None:
        """`blank`: the page as it is where there is none yet."""
        self._blank, self._stream, self._files = blank, stream, files

    def read(self) -> Page:
        """With whatever people have just written into its file."""
        self._files.read_edits()
        documents, path = self._stream.refresh().documents, self._blank.path
        return replace(self._blank, text=documents.text(path), version=documents.version(path))

    def write(self, page: Page, text: str) -> Page:
        """As if it had been saved in the page's file: by a person, for good."""
        checked_text(text)
        self._files.read_edits()
        self._stream.refresh()
        self._stream.commit(partial(_decide, page=page, text=text))
        self._files.publish()
        return replace(page, text=text, version=self._stream.state.documents.version(page.path))


def _decide(state: S, _: datetime, *, page: Page, text: str) -> Decision[S, None]:
    documents, path = state.documents, page.path
    now = documents.by_path.get(path)
    if now is not None and now.text == text:
        return Decision([], None)
    if documents.is_news(path, since=page.version):
        theirs, actual = documents.text(path), documents.version(path)
        raise Conflict(stream=path, expected=page.version, actual=actual, mine=text, theirs=theirs)
    # On MEMORY.md their words stand among those of dreams, and saving these makes them no truer.
    trust = now.trust if now is not None and path == STATE else None
    return Decision([Draft(payload=DocumentWritten(path=path, text=text), origin=Origin.FILE, trust=trust)], None)
