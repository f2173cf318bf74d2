"""MEMORY.md that somebody was writing while a dream did.

By entries and not by lines: a dream says things anew and moves them, so the same line is often no longer the same
thing, while an entry that both have left alone is. There is no conflict: what a person wrote stays, and what the dream
said stands in its section.
"""

from __future__ import annotations

from inmind.dreams.page.draft import PageDraft
from inmind.dreams.page.page import entry_text, parse_page, render_page
from inmind.dreams.page.sections import Section


def merge_pages(base: str, theirs: str, dreamt: str) -> str:
    """Their page with what a dream has done to the one that they began with."""
    before, after = ({text for _, text in parse_page(page).all_entries()} for page in (base, dreamt))
    draft = PageDraft(theirs, {})
    removed = [text for text in draft if text in before and text not in after]
    dream = parse_page(dreamt)
    added = [
        (part.section, entry)
        for part in dream.parts
        for entry in part.entries
        if entry_text(entry) not in before and entry_text(entry) not in draft
    ]
    if not removed and not added:
        return theirs
    for text in removed:
        draft.remove(text)
    for section, entry in added:
        draft.append_entry(section or Section.ACTIVE, entry)
    return render_page(draft.to_page(dream.header))
