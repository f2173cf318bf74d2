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
    sheet = PageDraft(theirs, {})
    gone = [text for text in sheet if text in before and text not in after]
    dream = parse_page(dreamt)
    put = [
        (part.section, entry)
        for part in dream.parts
        for entry in part.entries
        if entry_text(entry) not in before and entry_text(entry) not in sheet
    ]
    if not gone and not put:
        return theirs
    for text in gone:
        sheet.remove(text)
    for section, entry in put:
        sheet.append_entry(section or Section.ACTIVE, entry)
    return render_page(sheet.to_page(dream.header))
