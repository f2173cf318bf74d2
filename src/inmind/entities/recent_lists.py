"""What was shown together, in the order in which it was shown.

Whatever is used moves to the front, things of the window as well as parts of a thing. People go on counting in the
list that they saw: the second image is still the second after somebody has opened it, or deleted the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inmind.core.events.entities import EntitySighting
from inmind.entities.entity import EntityKey
from inmind.entities.nouns import canonical_type

MAX_LISTINGS = 10
"""Lists of things that are remembered, and as many of parts: the newest."""

MAX_LISTING_ENTRIES = 1_000
"""Of one list. A list of thousands must not fill the state."""


class Listing(NamedTuple):
    """Several of one type."""

    parent: EntityKey | None
    """The thing that they are parts of; None for a list of things."""
    keys: tuple[EntityKey, ...]

    @property
    def slot(self) -> tuple[EntityKey | None, str]:
        """Where a newer list takes the place of this one."""
        return self.parent, self.keys[0][0]

    def replace_key(self, old: EntityKey, new: EntityKey) -> Listing:
        """The same list, when it is known of which type something in it is."""
        return Listing(
            new if self.parent == old else self.parent, tuple(new if key == old else key for key in self.keys)
        )


def update_listings(
    listings: Sequence[Listing], sightings: Sequence[tuple[EntitySighting, EntityKey]]
) -> tuple[Listing, ...]:
    """The lists after one more sighting, those of things first, and the newest of each first.

    Several of a type are a list, with what rides beside them. So are several that were merely named, as in "compare
    these two"; but who names things of a list speaks of that list, and does not make another one.
    """
    shown = [(thing, key) for thing, key in sightings if thing.how in ("seen", "listed")]
    is_list = len(shown) > 1 or any(thing.how == "listed" for thing, _ in shown)
    also_listed = [part for thing, _ in shown if is_list for part in thing.parts if part.from_same_list]
    lists = _listings_by_type(
        None, [*(key for _, key in shown), *((canonical_type(part.type), part.id) for part in also_listed)]
    )
    known = {key for listing in listings for key in listing.keys}
    mentioned = [
        listing for listing in _listings_by_type(None, [key for _, key in sightings]) if known.isdisjoint(listing.keys)
    ]
    part_lists = [
        _listings_by_type(key, [(canonical_type(p.type), p.id) for p in thing.parts if not p.from_same_list])
        for thing, key in sightings
    ]
    newest: dict[tuple[EntityKey | None, str], Listing] = {}
    for listing in (*lists, *mentioned, *(listing for several in part_lists for listing in several), *listings):
        newest.setdefault(listing.slot, listing)
    of_things = [listing for listing in newest.values() if listing.parent is None]
    of_parts = [listing for listing in newest.values() if listing.parent is not None]
    return (*of_things[:MAX_LISTINGS], *of_parts[:MAX_LISTINGS])


def _listings_by_type(parent: EntityKey | None, keys: Iterable[EntityKey]) -> list[Listing]:
    """By type, those of which there is more than one."""
    by_type: dict[str, dict[EntityKey, None]] = {}
    for key in keys:
        by_type.setdefault(key[0], {}).setdefault(key)
    return [Listing(parent, tuple(row)[:MAX_LISTING_ENTRIES]) for row in by_type.values() if len(row) > 1]
