"""Documents that a person reads and writes without a session.

In a home folder the live files do this. These calls do the same for a memory in a database, and for editors that want a
Conflict instead of a merge: a write replaces exactly the version that was read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.frozen import frozen
from inmind.core.paths import ANONYMOUS, CONFIG, require_resource
from inmind.documents.document import MEMORY_PAGE_PATH, resolve_path, validate_text
from inmind.errors import Conflict, InvalidInput
from inmind.history.compaction.stubs import parse_location
from inmind.memory.context import SearchInput
from inmind.session.context import DocumentFiles
from inmind.session.state import ResourceState, SessionState
from inmind.store.stream import Decision, Stream

SETTINGS_PATHS = (CONFIG, f"{CONFIG}.imported")
"""Settings, and the settings of an imported bundle. They belong to no session or resource."""


@frozen(kw_only=True)
class Page:
    """A document as it was read. `Memory.edit` takes it, to detect a change in between."""

    path: str
    text: str
    version: int
    """0 if the document does not exist yet."""
    session: str = ""
    resource: str = ""
    """The owner: a session or a resource; neither for settings."""

    def __str__(self) -> str:
        return self.text


class PageInput(SearchInput, ABC):
    """Calls of a memory that search, and that read and write its documents."""

    @abstractmethod
    def _owner_of_session(self, id: str) -> str:
        """The resource of a session; NotFound if the session does not exist."""

    def page(self, path: str, *, session: str | None = None, resource: str | None = None) -> Page:
        """A document with the latest edits of its live file.

        overview.md, detail/… and archive/… belong to a session; MEMORY.md and memory/scratch.md belong to a resource,
        which may also be named by one of its sessions; config.toml belongs to the whole memory.
        """
        if path in SETTINGS_PATHS:
            if session is not None or resource is not None:
                expected = f"neither session= nor resource=: {path} belongs to the whole memory"
                raise InvalidInput(field="resource", value=resource, expected=expected)
            config = self._context.backend.read_config(path)
            return Page(path=path, text=config.text, version=config.version)
        page, stream, files = self._find(path, session, resource)
        files.read_edits()
        documents = stream.refresh().documents
        return replace(page, text=documents.text(page.path), version=documents.version(page.path))

    def edit(self, page: Page, text: str) -> Page:
        """Replace the text of a document, as a person does in its live file. Returns the new page.

        Conflict with both texts if the document has changed since `page` was read; nothing is overwritten then.
        """
        if not isinstance(page, Page):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="page", value=page, expected="a Page, as `page` returns it")
        if page.path in SETTINGS_PATHS:
            backend, now = self._context.backend, self._context.clock()
            version = backend.write_config(text, base=page.version, at=now, name=page.path)
            return replace(page, text=text, version=version)
        _, stream, files = self._find(page.path, page.session or None, page.resource or None)
        validate_text(text)
        files.read_edits()
        stream.refresh()
        stream.commit(partial(_decide, page=page, text=text))
        files.publish()
        return replace(page, text=text, version=stream.state.documents.version(page.path))

    def _find(self, path: str, session: str | None, resource: str | None) -> tuple[Page, Stream[Any], DocumentFiles]:
        """An empty page with the document's path and owner, the stream that has it, and its files."""
        context = self._context
        context.check_open()
        if session is None:
            scope, name = resolve_path(path)
            if resource is None or scope == "thread":
                owner_kind = "session" if scope == "thread" else "resource"
                raise InvalidInput(field=owner_kind, expected=f"the {owner_kind} that {name} belongs to")
            owner = require_resource(resource)
        elif resource is not None:
            raise InvalidInput(field="resource", value=resource, expected="no resource= together with session=")
        else:
            owner = self._owner_of_session(session)
            scope, name = resolve_path(path, anonymous=owner == ANONYMOUS)
        if session is not None and scope != "resource":
            stream = context.session_stream(session)
            opened = stream.state.opened
            files = context.backend.session_files(session, opened.cwd if opened else "", stream).files
            name, _ = parse_location(name, stream.refresh().documents.by_path)
            return Page(path=name, text="", version=0, session=session), stream, files
        of_resource = context.resource_stream(owner)
        page = Page(path=name, text="", version=0, resource=owner)
        return page, of_resource, context.resource_files(owner, of_resource)


def _decide(state: SessionState | ResourceState, _: datetime, *, page: Page, text: str) -> Decision[Any, None]:
    documents, path = state.documents, page.path
    current = documents.by_path.get(path)
    if current is not None and current.text == text:
        return Decision([], None)
    if documents.is_edited_since(path, version=page.version):
        theirs, actual = documents.text(path), documents.version(path)
        raise Conflict(stream=path, expected=page.version, actual=actual, mine=text, theirs=theirs)
    # A person who saves MEMORY.md also saves the lines of dreams on it. That must not raise their trust.
    trust = current.trust if current is not None and path == MEMORY_PAGE_PATH else None
    return Decision([Draft(payload=DocumentWritten(path=path, text=text), origin=Origin.FILE, trust=trust)], None)
