"""What a new MEMORY.md has to be, whoever proposed it. If a single guard says no, the old one stays.

Each edit was checked by itself before. The guards look at what came of all of them together, and know the page only as
it was and as it would be: they hold however the checks are changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from inmind.core.events.base import Trust
from inmind.core.events.dreams import GuardVerdict, PageLine
from inmind.core.frozen import frozen
from inmind.dreams.page.fact_checks import same
from inmind.dreams.page.limits import MOST_CHARACTERS, Size, room_beside, size
from inmind.dreams.page.page import Page, Part, read, said, written
from inmind.dreams.page.pointers import MOST_POINTERS, pointed, telling_words
from inmind.dreams.page.sections import Section

MATURE = 2_000
"""Characters from which on a page has something to lose."""

LEAST_SUBSTANCE = 50
LEAST_OF_THE_BOND = 0.3

ABOUT_PEOPLE = (Section.PHENOTYPE, Section.BOND)
"""Who the agent is and whom it works for: no tool and no page of the web has a say in that."""


@frozen(kw_only=True)
class Change:
    """A page before and after, and what is known of the way between."""

    before: str
    after: str
    lines: Mapping[str, PageLine]
    """Of those after, the ones that dreams wrote."""
    survivors: tuple[str, ...] = ()
    """What has to stand there still: people's entries, and what else must."""
    retired: int = 0
    """Lines that a proposal took away."""
    most_retired: int = 0


def verdicts(change: Change) -> tuple[GuardVerdict, ...]:
    before, after = read(change.before), read(change.after)
    return tuple(
        GuardVerdict(guard, not detail, detail)
        for guard, detail in (
            ("mass_drop", _mass_drop(change)),
            ("pointers", _pointers(after, change.lines)),
            ("substance", _substance(before, after)),
            ("bond", _bond(change, before, after)),
            ("retention", _retention(change, after)),
            ("share", _share(change)),
            ("trust", _trust(change.lines.values())),
            ("room", _room(change, after)),
        )
    )


def is_mass_drop(before: int, after: int) -> bool:
    """Of so many characters, are only so few left? A page that was over its room has to have become shorter."""
    return before > MATURE and 2 * after < min(before, MOST_CHARACTERS)


def survives(before: Iterable[str], after: Iterable[str]) -> float:
    """The part of the words that is still there."""
    old, new = set(words_in(before)), set(words_in(after))
    return len(old & new) / len(old) if old else 1.0


def words_in(entries: Iterable[str]) -> Iterator[str]:
    return (same(word) for entry in entries for word in telling_words(entry))


def _mass_drop(change: Change) -> str:
    before, after = len(change.before), len(change.after)
    return f"{after:,} characters are left of {before:,}" if is_mass_drop(before, after) else ""


def _pointers(after: Page, lines: Mapping[str, PageLine]) -> str:
    """People may point at as much as they like."""
    pointers = [text for _, text in after.everything() if pointed(text)]
    many = len(pointers) > MOST_POINTERS and any(text in lines for text in pointers)
    return f"{len(pointers)} pointers are more than {MOST_POINTERS}" if many else ""


def _substance(before: Page, after: Page) -> str:
    """Headings with next to nothing under them. A page that has never said more is young, and not collapsed."""
    was, now = (sum(len(text) for _, text in page.everything()) for page in (before, after))
    return f"{now} characters are no state" if now < LEAST_SUBSTANCE <= was else ""


def _bond(change: Change, before: Page, after: Page) -> str:
    """What stands there word for word has survived: all of a page by hand now stands above the state."""
    bond, lines = before.entries(Section.BOND), lines_in(change.after)
    part = survives(bond, (*after.entries(Section.BOND), *(text for text in bond if stands(text, lines))))
    return f"{part:.0%} of the Bond's words are left" if part < LEAST_OF_THE_BOND else ""


def _retention(change: Change, after: Page) -> str:
    standing, lines = {text for _, text in after.everything()}, lines_in(change.after)
    gone = [text for text in change.survivors if text not in standing and not stands(text, lines)]
    return f"{len(gone)} missing, first of them: {gone[0][:80]}" if gone else ""


def lines_in(text: str) -> frozenset[str]:
    """What it says line by line, whatever list the lines are in."""
    return frozenset(map(said, text.split("\n"))) - {""}


def stands(text: str, lines: Collection[str]) -> bool:
    """Is each of its lines one of these, whole? "Use tabs" does not stand where "Never use tabs" does."""
    return all(line in lines for line in lines_in(text))


def _share(change: Change) -> str:
    over = change.retired > change.most_retired
    return f"{change.retired} lines were to leave; {change.most_retired} may, in one dream" if over else ""


def _trust(lines: Iterable[PageLine]) -> str:
    foreign = [line.text for line in lines if line.section in ABOUT_PEOPLE and line.trust <= Trust.DATA]
    return f"from tools or the web: {foreign[0][:80]}" if foreign else ""


def _room(change: Change, after: Page) -> str:
    """One that was over its room already, with lines that no search finds again, may stay so, and must not grow."""
    now, was = size(change.after), size(change.before) + _FRAME
    fits = now.within(room_beside(written(by_people(after, change.lines)))) or now.within(was)
    return "" if fits else f"{now.characters:,} characters, {now.tokens:,} tokens are more than a page has"


def by_people(page: Page, lines: Mapping[str, PageLine]) -> Page:
    """The page without what dreams wrote on it."""
    parts = (Part(part.heading, tuple(one for one in part.entries if said(one) not in lines)) for part in page.parts)
    return replace(page, parts=tuple(parts))


_FRAME = Size(400, 120)
"""The title, the line of the last dream and the headings, which a page may have been without."""
