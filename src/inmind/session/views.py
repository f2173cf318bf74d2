"""Live files of a session: read edits before a call, publish changes after it."""

from __future__ import annotations

from collections.abc import Sequence

from inmind.core.events.base import Event
from inmind.documents.document import OVERVIEW_PATH
from inmind.documents.overview.front_matter import front_matter_error, split_front_matter
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
        problems = {"transcript": self._transcript.update(fresh)}
        if self._meta.is_stale(self._stream.state):
            problems["meta"] = self._meta.write(self._stream.state)
        # A lasting problem is reported once, not at every call.
        self._new_problems += [text for view, text in problems.items() if text and text != self._problems.get(view)]
        self._problems |= problems
        if fresh:
            self._context.schedule_embedding()

    def notices(self) -> tuple[str, ...]:
        """Notices for the next prompt's report, each returned once."""
        problems, self._new_problems = self._new_problems, []
        return (*self._files.notices(), *self._resource_files.notices(), *self._front_matter_notice(), *problems)

    def add_notice(self, text: str) -> None:
        self._new_problems.append(text)

    def mark_prompt_seen(self) -> None:
        """Mark the documents in the prompt just prepared, complete or cut, as seen."""
        prompt = self._stream.state.prompt
        sources = {source for block in prompt.blocks for source in block.sources} | set(prompt.change_sources)
        both = {**self._stream.state.documents.by_path, **self._resource.state.documents.by_path}
        self.seen |= {path: document.version for path, document in both.items() if document.source in sources}

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
        """The error in the overview's front matter, reported once for each version of it."""
        page = self._stream.state.documents.text(OVERVIEW_PATH)
        before, (self._front_matter, _) = self._front_matter, split_front_matter(page)
        return (
            (f"{OVERVIEW_PATH}: {why}",) if self._front_matter != before and (why := front_matter_error(page)) else ()
        )
