"""Documents of a session: read, write, list, and merge front matter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.documents.document import OVERVIEW_PATH, Documents, Scope, resolve_path, validate_text
from inmind.documents.overview.front_matter import merge_front_matter
from inmind.errors import Conflict, InvalidInput, NotFound
from inmind.history.compaction.stubs import parse_location
from inmind.session.context import SessionContext, whole_number
from inmind.session.derive import EventDeriver
from inmind.session.state import SessionState
from inmind.session.views import SessionViews
from inmind.store.stream import Decision, key_for


class SessionDocuments:
    """Reads and writes the documents of a session and of its resource."""

    def __init__(self, context: SessionContext, views: SessionViews, deriver: EventDeriver) -> None:
        self._context, self._stream, self._resource = context, context.stream, context.resource
        self._views, self._deriver = views, deriver

    def read(self, path: str) -> str:
        """See `Session.read`."""
        self._views.read_edits()
        lines = None
        if isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            path, lines = parse_location(path, self._refresh("thread").by_path)
        scope, name = resolve_path(path, anonymous=self._context.is_anonymous)
        documents = self._refresh(scope)
        if name not in documents.by_path:
            raise NotFound(what="document", name=path, hint="session.documents() lists them")
        text = documents.text(name)
        if lines is not None:
            return "\n".join(text.split("\n")[lines[0] - 1 : lines[1]])
        self._views.seen[name] = documents.version(name)
        return text

    def write(
        self,
        path: str,
        text: str,
        *,
        base: int | None = None,
        origin: Origin = Origin.ASSISTANT,
        key: str | None = None,
    ) -> int:
        """See `Session.write`."""
        scope, name = resolve_path(path, anonymous=self._context.is_anonymous)
        text = validate_text(text)
        if not isinstance(origin, Origin):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="origin", value=origin, expected=f"one of {', '.join(Origin)}")
        checked_key = key_for(key, "write", name, text)
        self._views.read_edits()
        seen = self._views.seen.get(name, 0) if base is None else whole_number(base, "base")

        def decide(documents: Documents) -> list[Draft]:
            if documents.is_edited_since(name, version=seen):
                current = documents.version(name)
                raise Conflict(stream=name, expected=seen, actual=current, mine=text, theirs=documents.text(name))
            same = name in documents.by_path and documents.text(name) == text
            return [] if same else [Draft(payload=DocumentWritten(path=name, text=text), origin=origin)]

        if scope == "thread":
            done = self._stream.commit(
                partial(self._deriver.decide_with_derived, lambda state: decide(state.documents)), key=checked_key
            )
        else:
            done = self._resource.commit(lambda state, _: Decision(decide(state.documents), True), key=checked_key)
        self._views.publish()
        if done.result is None:  # an earlier call with this key wrote it, and it may have changed since
            return self._documents_at(scope, done.appended.last).version(name)
        self._views.seen[name] = self._documents(scope).version(name)
        return self._views.seen[name]

    def versions(self) -> dict[str, int]:
        """Paths of all documents of the session and its resource, with their versions."""
        self._views.read_edits()
        by_path = {**self._refresh("thread").by_path, **self._refresh("resource").by_path}
        return {path: document.version for path, document in sorted(by_path.items())}

    def update_front_matter(self, values: Mapping[str, Any], *, key: str | None = None) -> int:
        """See `Session.update_front_matter`."""
        checked_key = key_for(key, "update_front_matter", values)
        self._views.read_edits()

        def decide(state: SessionState) -> list[Draft]:
            page = state.documents.text(OVERVIEW_PATH)
            text = validate_text(merge_front_matter(page, values))
            written = DocumentWritten(OVERVIEW_PATH, text)
            return [] if text == page else [Draft(payload=written, origin=Origin.ASSISTANT)]

        was_current = not self._documents("thread").is_edited_since(
            OVERVIEW_PATH, version=self._views.seen.get(OVERVIEW_PATH, 0)
        )
        done = self._stream.commit(partial(self._deriver.decide_with_derived, decide), key=checked_key)
        self._views.publish()
        version = self._documents_at("thread", done.appended.last).version(OVERVIEW_PATH)
        if was_current and done.result is not None:
            self._views.seen[OVERVIEW_PATH] = version
        return version

    def _refresh(self, scope: Scope) -> Documents:
        return self._stream.refresh().documents if scope == "thread" else self._resource.refresh().documents

    def _documents_at(self, scope: Scope, seq: int) -> Documents:
        return self._stream.state_at(seq).documents if scope == "thread" else self._resource.state_at(seq).documents

    def _documents(self, scope: Scope) -> Documents:
        return self._stream.state.documents if scope == "thread" else self._resource.state.documents
