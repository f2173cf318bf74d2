"""Live files of a session: read edits before a call, publish changes after it."""

from __future__ import annotations

from collections.abc import Sequence

from inmind.core.events.base import Event
from inmind.documents.document import (
    OVERVIEW_PATH,
)
from inmind.documents.overview.front_matter import (
    front_matter_error,
    split_front_matter,
)
from inmind.session.context import SessionContext
from inmind.session.overview import OverviewWriter


class SessionViews:
    """The live files of one session, and which versions of documents the caller has seen."""

    def __init__(self, context: SessionContext, overview: OverviewWriter) -> None:
        self._context, self._overview = context, overview
        self._stream, self._resource = context.stream, context.resource
        self._files, self._resource_files = context.files, context.resource_files
        self._transcript, self._meta = context.transcript, context.meta
        self.seen: dict[str, int] = {}
        """Version of each document that was last shown to the caller."""
        self._new_problems: list[str] = []
        self._problems: dict[str, str] = {}
        self._front_matter = ""

    def read_edits(self) -> None:
        self._files.read_edits()
        self._resource_files.read_edits()
        if self._overview.refresh():
            self._files.publish()

    def publish(self, fresh: Sequence[Event] = ()) -> None:
        """After a commit: bring the live files up to date. The change is safe by now, so a file may only lag."""
        self._files.publish()
        self._resource_files.publish()
        now = {"transcript": self._transcript.update(fresh)}
        if self._meta.is_stale(self._stream.state):
            now["meta"] = self._meta.write(self._stream.state)
        # What lasts is said when it begins, not at every call.
        self._new_problems += [lag for view, lag in now.items() if lag and lag != self._problems.get(view)]
        self._problems |= now
        if fresh:
            self._context.schedule_embedding()

    def notices(self) -> tuple[str, ...]:
        problems, self._new_problems = self._new_problems, []
        return (*self._files.notices(), *self._resource_files.notices(), *self._front_matter_notice(), *problems)

    def add_notice(self, text: str) -> None:
        self._new_problems.append(text)

    def mark_prompt_seen(self) -> None:
        """Documents that stood in the prompt just prepared, whole or cut, have been shown to whoever writes next."""
        standing = self._stream.state.prompt
        shown = {source for block in standing.blocks for source in block.sources} | set(standing.tail_sources)
        both = {**self._stream.state.documents.by_path, **self._resource.state.documents.by_path}
        self.seen |= {path: document.version for path, document in both.items() if document.source in shown}

    def mark_results_seen(self) -> None:
        """Mark the pages as seen that answers of memory tools have shown in their current version."""
        state = self._stream.state
        pages = state.documents.by_path.items()
        known = ((path, page) for path, page in pages if state.shown_in_results.get(path) == page.source)
        self.seen |= {path: page.version for path, page in known}

    def mark_all_seen(self) -> None:
        """Mark the current version of every document as seen."""
        both = {**self._stream.state.documents.by_path, **self._resource.state.documents.by_path}
        self.seen = {path: document.version for path, document in both.items()}

    def _front_matter_notice(self) -> tuple[str, ...]:
        """What is wrong with the overview's front matter, said once for each that was written."""
        page = self._stream.state.documents.text(OVERVIEW_PATH)
        before, (self._front_matter, _) = self._front_matter, split_front_matter(page)
        return (
            (f"{OVERVIEW_PATH}: {why}",) if self._front_matter != before and (why := front_matter_error(page)) else ()
        )
