"""Merge an edit that a person saved in a live file with changes that the file did not show.

The editor may have been open while notes were added or a dream rewrote the page. The person's text becomes a version,
and a second version adds those changes.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.crystals import NoteAdded
from inmind.core.events.documents import DocumentWritten
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH, RESOURCE_PATHS, Document, Documents
from inmind.documents.notes_page import parse_notes, parse_remarks, remove_pieces, to_page_note
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
