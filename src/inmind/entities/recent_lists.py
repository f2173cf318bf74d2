"""Lists as they were shown, so that "the second image" can be counted later.

Used entities move to the front of the window, and used parts to the front of their entity. Users keep counting in
the list they saw: the second image stays the second after it was opened or the first was deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inmind.core.events.entities import EntitySighting
from inmind.entities.entity import EntityKey
from inmind.entities.nouns import canonical_type

MAX_LISTINGS = 10
"""Number of lists of entities kept, newest first, and as many lists of parts."""

MAX_LISTING_ENTRIES = 1_000
"""Maximum entries per list. A list of thousands must not fill the state."""


class Listing(NamedTuple):
    """Several entities or parts of one type that were shown together."""

    parent: EntityKey | None
    """Entity that the entries are parts of; None for a list of entities."""
    keys: tuple[EntityKey, ...]

    @property
    def slot(self) -> tuple[EntityKey | None, str]:
        """A newer list with the same slot replaces this one."""
        return self.parent, self.keys[0][0]

    def replace_key(self, old: EntityKey, new: EntityKey) -> Listing:
        """Return the list with one key replaced, after the type of an entry became known."""
        return Listing(
            new if self.parent == old else self.parent, tuple(new if key == old else key for key in self.keys)
        )


def update_listings(
    listings: Sequence[Listing], sightings: Sequence[tuple[EntitySighting, EntityKey]]
) -> tuple[Listing, ...]:
    """Return the lists after one more event, lists of entities first, newest first.

    Two or more entities of one type form a list, together with the parts that were in the same list. Entities that
    were only mentioned ("compare these two") form a list too, unless one of them is already in a list: then the
    mention is about that list.
    """
    seen_entries = [(sighting, key) for sighting, key in sightings if sighting.how in ("seen", "listed")]
    is_list = len(seen_entries) > 1 or any(sighting.how == "listed" for sighting, _ in seen_entries)
    also_listed = [part for sighting, _ in seen_entries if is_list for part in sighting.parts if part.from_same_list]
    lists = _listings_by_type(
        None, [*(key for _, key in seen_entries), *((canonical_type(part.type), part.id) for part in also_listed)]
    )
    known = {key for listing in listings for key in listing.keys}
    mentioned = [
        listing for listing in _listings_by_type(None, [key for _, key in sightings]) if known.isdisjoint(listing.keys)
    ]
    part_lists = [
        _listings_by_type(key, [(canonical_type(p.type), p.id) for p in sighting.parts if not p.from_same_list])
        for sighting, key in sightings
    ]
    newest: dict[tuple[EntityKey | None, str], Listing] = {}
    for listing in (*lists, *mentioned, *(listing for same_parent in part_lists for listing in same_parent), *listings):
        newest.setdefault(listing.slot, listing)
    entity_listings = [listing for listing in newest.values() if listing.parent is None]
    part_listings = [listing for listing in newest.values() if listing.parent is not None]
    return (*entity_listings[:MAX_LISTINGS], *part_listings[:MAX_LISTINGS])


def _listings_by_type(parent: EntityKey | None, keys: Iterable[EntityKey]) -> list[Listing]:
    """Group keys by type and return a list for each type with at least two keys."""
    by_type: dict[str, dict[EntityKey, None]] = {}
    for key in keys:
        by_type.setdefault(key[0], {}).setdefault(key)
    return [Listing(parent, tuple(row)[:MAX_LISTING_ENTRIES]) for row in by_type.values() if len(row) > 1]
