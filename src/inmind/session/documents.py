"""Documents of a session: their live files, and reading and writing by the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.documents.document import OVERVIEW_PATH, Document, Documents, Scope, resolve_path, validate_text
from inmind.documents.overview.front_matter import front_matter_error, merge_front_matter, split_front_matter
from inmind.errors import Conflict, InvalidInput, NotFound
from inmind.history.compaction.stubs import parse_location
from inmind.session.context import SessionContext, whole_number
from inmind.session.derive import EventDeriver, OverviewUpkeep
from inmind.session.state import SessionState
from inmind.store.stream import Decision, key_for


class SessionDocuments:
    """The documents of a session and its resource, and the versions that the caller has seen."""

    def __init__(self, context: SessionContext, overview: OverviewUpkeep, deriver: EventDeriver) -> None:
        self._context, self._overview, self._deriver = context, overview, deriver
        self._stream, self._resource = context.stream, context.resource
        self._files, self._resource_files = context.files, context.resource_files
        self._seen: dict[str, int] = {}
        """Version of each document that was last shown to the caller."""
        self._new_problems: list[str] = []
        self._problems: dict[str, str] = {}
        self._front_matter = ""

    # -- live files ----------------------------------------------------------------------------------------

    def read_edits(self) -> None:
        """Read edits saved in the live files, and update the overview for new pages."""
        self._files.read_edits()
        self._resource_files.read_edits()
        if self._overview.refresh():
            self._files.publish()

    def publish(self, fresh: Sequence[Event] = ()) -> None:
        """Update the live files after a commit.

        The change is stored already, so a file that cannot be written is only stale.
        """
        self._files.publish()
        self._resource_files.publish()
        problems = {"transcript": self._context.transcript.update(fresh)}
        if self._context.meta.is_stale(self._stream.state):
            problems["meta"] = self._context.meta.write(self._stream.state)
        # A lasting problem is reported once, not at every call.
        self._new_problems += [text for view, text in problems.items() if text and text != self._problems.get(view)]
        self._problems |= problems
        if fresh:
            self._context.schedule_embedding()

    def notices(self) -> tuple[str, ...]:
        """Notices for the next prompt's report, each returned once."""
        problems, self._new_problems = self._new_problems, []
        page = self._stream.state.documents.text(OVERVIEW_PATH)
        before, (self._front_matter, _) = self._front_matter, split_front_matter(page)
        if self._front_matter != before and (why := front_matter_error(page)):
            problems.insert(0, f"{OVERVIEW_PATH}: {why}")
        return (*self._files.notices(), *self._resource_files.notices(), *problems)

    def add_notice(self, text: str) -> None:
        self._new_problems.append(text)

    def mark_prompt_seen(self) -> None:
        """Mark the documents in the prompt just prepared, complete or cut, as seen."""
        prompt = self._stream.state.prompt
        sources = {source for block in prompt.blocks for source in block.sources} | set(prompt.change_sources)
        self._seen |= {path: page.version for path, page in self._known_documents().items() if page.source in sources}

    def mark_results_seen(self) -> None:
        """Mark the pages as seen that answers of memory tools have shown in their current version."""
        state = self._stream.state
        pages = state.documents.by_path.items()
        self._seen |= {path: page.version for path, page in pages if state.shown_in_results.get(path) == page.source}

    def mark_all_seen(self) -> None:
        """Mark the current version of every document as seen."""
        self._seen = {path: page.version for path, page in self._known_documents().items()}

    def _known_documents(self) -> dict[str, Document]:
        return {**self._stream.state.documents.by_path, **self._resource.state.documents.by_path}

    # -- reading and writing -------------------------------------------------------------------------------

    def read(self, path: str) -> str:
        """See `Session.read`."""
        self.read_edits()
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
        self._seen[name] = documents.version(name)
        return text

    def write(self, path: str, text: str, *, base: int | None, origin: Origin, key: str | None) -> int:
        """See `Session.write`."""
        scope, name = resolve_path(path, anonymous=self._context.is_anonymous)
        text = validate_text(text)
        if not isinstance(origin, Origin):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="origin", value=origin, expected=f"one of {', '.join(Origin)}")
        checked_key = key_for(key, "write", name, text)
        self.read_edits()
        seen = self._seen.get(name, 0) if base is None else whole_number(base, "base")

        def drafts(documents: Documents) -> list[Draft]:
            if documents.is_edited_since(name, version=seen):
                current = documents.version(name)
                raise Conflict(stream=name, expected=seen, actual=current, mine=text, theirs=documents.text(name))
            same = name in documents.by_path and documents.text(name) == text
            return [] if same else [Draft(payload=DocumentWritten(path=name, text=text), origin=origin)]

        if scope == "thread":
            done = self._stream.commit(
                lambda state, now: self._with_derived(state, now, drafts(state.documents)), key=checked_key
            )
        else:
            done = self._resource.commit(lambda state, _: Decision(drafts(state.documents), True), key=checked_key)
        self.publish()
        if done.result is None:  # an earlier call with this key wrote it, and it may have changed since
            stream = self._stream if scope == "thread" else self._resource
            return stream.state_at(done.appended.last).documents.version(name)
        documents = (self._stream if scope == "thread" else self._resource).state.documents
        self._seen[name] = documents.version(name)
        return self._seen[name]

    def versions(self) -> dict[str, int]:
        """See `Session.documents`."""
        self.read_edits()
        by_path = {**self._refresh("thread").by_path, **self._refresh("resource").by_path}
        return {path: document.version for path, document in sorted(by_path.items())}

    def update_front_matter(self, values: Mapping[str, Any], *, key: str | None) -> int:
        """See `Session.update_front_matter`."""
        checked_key = key_for(key, "update_front_matter", values)
        self.read_edits()

        def decide(state: SessionState, now: datetime) -> Decision[SessionState, bool]:
            page = state.documents.text(OVERVIEW_PATH)
            text = validate_text(merge_front_matter(page, values))
            written = Draft(payload=DocumentWritten(OVERVIEW_PATH, text), origin=Origin.ASSISTANT)
            return self._with_derived(state, now, [] if text == page else [written])

        documents = self._stream.state.documents
        was_current = not documents.is_edited_since(OVERVIEW_PATH, version=self._seen.get(OVERVIEW_PATH, 0))
        done = self._stream.commit(decide, key=checked_key)
        self.publish()
        version = self._stream.state_at(done.appended.last).documents.version(OVERVIEW_PATH)
        if was_current and done.result is not None:
            self._seen[OVERVIEW_PATH] = version
        return version

    def _with_derived(self, state: SessionState, now: datetime, drafts: list[Draft]) -> Decision[SessionState, bool]:
        derived = self._deriver.derive(state, now, drafts).session_events if drafts else []
        return Decision([*drafts, *derived], True)

    def _refresh(self, scope: Scope) -> Documents:
        return self._stream.refresh().documents if scope == "thread" else self._resource.refresh().documents
