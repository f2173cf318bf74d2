"""Merge a MEMORY.md that a user edited while a dream rewrote it.

The merge is by entries, not by lines: a dream rewrites and moves lines, but an entry that neither side changed is the
same. There are no conflicts: the user's text stays, and the dream's lines are added to their sections.
"""

from __future__ import annotations

from inmind.dreams.page.draft import PageDraft
from inmind.dreams.page.page import entry_text, parse_page, render_page
from inmind.dreams.page.sections import Section


def merge_pages(base: str, theirs: str, dreamt: str) -> str:
    """The user's page with the changes that a dream made to their common base."""
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
