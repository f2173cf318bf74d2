"""Documents of a session: live files, merged edits, reading and writing.

A person may save an edit of a text that is no longer current: the editor may have been open while notes were added or
a dream rewrote the page. The person's text becomes a version, and a second version adds those changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.core.fair_turns import dreams_wait
from inmind.documents.document import (
    MEMORY_PAGE_PATH,
    NOTES_PAGE_PATH,
    OVERVIEW_PATH,
    RESOURCE_PATHS,
    Document,
    Documents,
)
from inmind.documents.notes_page import parse_notes, parse_remarks, remove_pieces, to_page_note
from inmind.documents.overview.front_matter import front_matter_error, split_front_matter
from inmind.session.context import SessionContext
from inmind.session.derive import EventDeriver
from inmind.session.state import ResourceState, SessionState
from inmind.store.protocol import PublishedVersion, Store
from inmind.store.stream import Decision, Stream


class EditMerger:
    """Saves edits of one stream's documents."""

    def __init__(self, stream: Stream[Any], store: Store) -> None:
        self._stream, self._store = stream, store

    def save(self, path: str, text: str, published: PublishedVersion | None) -> Document:
        """Append a person's text as a version.

        A second version adds the changes that the person did not see, if there are any.
        """

        def decide(state: SessionState | ResourceState, _: datetime) -> Decision[Any, None]:
            now = state.documents.by_path.get(path)
            # MEMORY.md also has lines of dreams. Saving the file must not raise their trust.
            trust = now.trust if now and path == MEMORY_PAGE_PATH else None
            edit = Draft(payload=DocumentWritten(path=path, text=text), origin=Origin.FILE, trust=trust)
            return Decision([edit, *(self._merged_drafts(path, text, now, published) if now else ())], None)

        self._stream.commit(decide)
        return self._stream.state.documents.by_path[path]

    def _merged_drafts(self, path: str, text: str, now: Document, published: PublishedVersion | None) -> list[Draft]:
        """The person's text with the changes made since they opened the file.

        The list is empty if there are no such changes.
        """
        opened_at, base = self._edit_base(path, text, published)
        sources: tuple[str, ...] = ()
        page = Document(text=text, version=0, source="")
        if base is not None:
            merged = _merge_dream(path, base, text, now.text)
            if merged != text:
                page = replace(page, text=merged, trust=min(page.trust, now.trust))
                sources = (now.source,)
        if path == NOTES_PAGE_PATH:
            page, note_sources = self._with_new_notes(page, now.text, after=opened_at)
            sources += note_sources
        written = DocumentWritten(path=path, text=page.text)
        return [Draft(payload=written, origin=Origin.FILE, sources=sources, trust=page.trust)] if sources else []

    def _edit_base(self, path: str, text: str, published: PublishedVersion | None) -> tuple[int, str | None]:
        """When the person opened the page (event number), and its text then if a dream rewrote it.

        An editor may have had the page open since before the file was last published. Then the text still has lines
        that the dream removed. A text that equals the page before the dream was restored on purpose.
        """
        published_seq = published.seq if published else 0
        dream = self._last_dream_edit(path)
        if dream is None:
            return published_seq, None
        if published_seq < dream.seq:
            return published_seq, self._stream.state_at(published_seq).documents.text(path)
        before, published_text = (
            self._stream.state_at(seq).documents.text(path) for seq in (dream.seq - 1, published_seq)
        )
        if text != before and _is_closer(text, before, published_text):
            return dream.seq - 1, before
        return published_seq, None

    def _last_dream_edit(self, path: str) -> Event | None:
        """The last event by which a dream wrote a page."""
        if path not in RESOURCE_PATHS:
            return None
        events = reversed(self._store.read(self._stream.name, kind=DocumentWritten.kind))
        edits = (event for event in events if isinstance(event.payload, DocumentWritten) and event.payload.path == path)
        return next((event for event in edits if event.origin is Origin.DREAM), None)

    def _with_new_notes(self, page: Document, now: str, *, after: int) -> tuple[Document, tuple[str, ...]]:
        """The notes page with notes added since it was last shown.

        The person has not decided to drop them.
        """
        unseen = set(parse_notes(now)).difference(parse_notes(page.text))
        pages = Documents({NOTES_PAGE_PATH: page})
        sources: list[str] = []
        for event in self._store.read(self._stream.name, after=after, kind=NoteAdded.kind) if unseen else ():
            if isinstance(event.payload, NoteAdded) and to_page_note(event.payload, event.at) in unseen:
                pages = pages.apply(event)
                sources.append(event.id)
        return pages.by_path[NOTES_PAGE_PATH], tuple(sources)


def _merge_dream(path: str, base: str, theirs: str, dream_text: str) -> str:
    """The person's page with the changes of a dream: its removals and its additions."""
    if path == MEMORY_PAGE_PATH:
        from inmind.dreams.page.draft import merge_pages  # needed only if a dream ran meanwhile

        return merge_pages(base, theirs, dream_text)
    notes = (set(parse_notes(base)) - set(parse_notes(dream_text))).intersection(parse_notes(theirs))
    remarks = (set(parse_remarks(base)) - set(parse_remarks(dream_text))).intersection(parse_remarks(theirs))
    return remove_pieces(theirs, notes, remarks) if notes or remarks else theirs


def _is_closer(text: str, first: str, second: str) -> bool:
    """True if a text shares more lines with only `first` than with only `second`."""
    lines, in_first, in_second = (set(page.split("\n")) for page in (text, first, second))
    return len(lines & (in_first - in_second)) > len(lines & (in_second - in_first))


class SessionDocuments:
    """The documents of a session and its resource, and the versions that the caller has seen."""

    def __init__(self, context: SessionContext, deriver: EventDeriver) -> None:
        self._context, self._deriver = context, deriver
        self._stream, self._resource = context.stream, context.resource
        self._files, self._resource_files = context.files, context.resource_files
        self.seen: dict[str, int] = {}
        """Version of each document that was last shown to the caller."""
        self._new_problems: list[str] = []
        self._problems: dict[str, str] = {}
        self._front_matter = ""

    @dreams_wait()
    def read_edits(self) -> None:
        """Read edits saved in the live files, and update the overview for new pages."""
        self._files.read_edits()
        self._resource_files.read_edits()
        if self._deriver.refresh_overview():
            self._files.publish()

    @dreams_wait()
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
        self.seen |= {path: page.version for path, page in self._known_documents().items() if page.source in sources}

    def mark_results_seen(self) -> None:
        """Mark the pages as seen that answers of memory tools have shown in their current version."""
        state = self._stream.state
        pages = state.documents.by_path.items()
        self.seen |= {path: page.version for path, page in pages if state.shown_in_results.get(path) == page.source}

    def mark_all_seen(self) -> None:
        """Mark the current version of every document as seen."""
        self.seen = {path: page.version for path, page in self._known_documents().items()}

    def _known_documents(self) -> dict[str, Document]:
        return {**self._stream.state.documents.by_path, **self._resource.state.documents.by_path}
