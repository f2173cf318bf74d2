"""What memory enters on overview.md by itself: the index of pages, and what has happened.

It is one write, and marked as memory's own: a page that only memory has written on is not one that somebody keeps, and
says nothing about how far it covers the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inmind.documents import FOLDERS, OVERVIEW, Document, Documents
from inmind.journal import DocumentWritten, Draft, Origin, Trust
from inmind.overview.events import Occurrence, with_event
from inmind.overview.index import page_of, with_index


def kept_up(
    documents: Documents,
    language: str,
    occurrences: Sequence[Occurrence] = (),
    *,
    trust: Trust = Trust.OPERATOR,
    sources: Sequence[str] = (),
) -> list[Draft]:
    """The overview with these noted and its index current; nothing where it is so already.

    `trust`: how far to trust the words of what happened. `sources`: the events that told of it.
    """
    page = documents.by_path.get(OVERVIEW)
    if page is None:
        return []
    text = page.text
    for occurrence in occurrences:
        text = with_event(text, occurrence, language)
    text = with_index(text, [page_of(path, one.text) for path, one in indexed(documents).items()], language)
    if text == page.text:
        return []
    return [
        Draft(
            what=DocumentWritten(OVERVIEW, text, upkeep=True),
            origin=Origin.OPERATOR,
            sources=(page.source, *sources),
            trust=min(page.trust, trust),
        )
    ]


def indexed(documents: Documents) -> Mapping[str, Document]:
    """Pages of detail/ and archive/, the newest first."""
    pages = [(path, one) for path, one in documents.by_path.items() if path.partition("/")[0] in FOLDERS]
    return dict(sorted(pages, key=lambda page: page[1].version, reverse=True))
