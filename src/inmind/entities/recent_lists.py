"""What was shown together, in the order in which it was shown.

Whatever is used moves to the front, things of the window as well as parts of a thing. People go on counting in the
list that they saw: the second image is still the second after somebody has opened it, or deleted the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inmind.core.events.entities import EntitySighting
from inmind.entities.entity import Key
from inmind.entities.nouns import same_type

MOST_LISTINGS = 10
"""Lists of things that are remembered, and as many of parts: the newest."""

MOST_LISTED = 1_000
"""Of one list. A list of thousands must not fill the state."""


class Listing(NamedTuple):
    """Several of one type."""

    inside: Key | None
    """The thing that they are parts of; None for a list of things."""
    keys: tuple[Key, ...]

    @property
    def place(self) -> tuple[Key | None, str]:
        """Where a newer list takes the place of this one."""
        return self.inside, self.keys[0][0]

    def renamed(self, before: Key, now: Key) -> Listing:
        """The same list, when it is known of which type something in it is."""
        return Listing(
            now if self.inside == before else self.inside, tuple(now if key == before else key for key in self.keys)
        )


def after(listings: Sequence[Listing], seen: Sequence[tuple[EntitySighting, Key]]) -> tuple[Listing, ...]:
    """The lists after one more sighting, those of things first, and the newest of each first.

    Several of a type are a list, with what rides beside them. So are several that were merely named, as in "compare
    these two"; but who names things of a list speaks of that list, and does not make another one.
    """
    shown = [(thing, key) for thing, key in seen if thing.how in ("seen", "listed")]
    is_list = len(shown) > 1 or any(thing.how == "listed" for thing, _ in shown)
    riding = [part for thing, _ in shown if is_list for part in thing.parts if part.beside]
    lists = _several(None, [*(key for _, key in shown), *((same_type(part.type), part.id) for part in riding)])
    known = {key for listing in listings for key in listing.keys}
    named = [listing for listing in _several(None, [key for _, key in seen]) if known.isdisjoint(listing.keys)]
    inside = [_several(key, [(same_type(p.type), p.id) for p in thing.parts if not p.beside]) for thing, key in seen]
    newest: dict[tuple[Key | None, str], Listing] = {}
    for listing in (*lists, *named, *(listing for several in inside for listing in several), *listings):
        newest.setdefault(listing.place, listing)
    of_things = [listing for listing in newest.values() if listing.inside is None]
    of_parts = [listing for listing in newest.values() if listing.inside is not None]
    return (*of_things[:MOST_LISTINGS], *of_parts[:MOST_LISTINGS])


def _several(inside: Key | None, keys: Iterable[Key]) -> list[Listing]:
    """By type, those of which there is more than one."""
    by_type: dict[str, dict[Key, None]] = {}
    for key in keys:
        by_type.setdefault(key[0], {}).setdefault(key)
    return [Listing(inside, tuple(row)[:MOST_LISTED]) for row in by_type.values() if len(row) > 1]
