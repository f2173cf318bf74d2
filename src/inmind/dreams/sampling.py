"""How many new crystals of each kind a dream looks at closely: a day of talk must not crowd out the one preference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from inmind.search.crystal import Crystal

QUOTAS: Final[Mapping[str, int]] = {
    "preference": 60,
    "relationship": 60,
    "goal": 60,
    "fact": 60,
    "insight": 40,
    "skill": 40,
    "task_pattern": 40,
    "general": 60,
    "episode": 1_000,
}


def chosen(crystals: Iterable[Crystal]) -> tuple[Crystal, ...]:
    """The best of each kind, by their importance and then the newest, in the order in which they were said.

    Of what was said in sessions a person's words come first: a dream learns from these.
    """
    by_kind: defaultdict[str, list[Crystal]] = defaultdict(list)
    for crystal in crystals:
        by_kind[crystal.kind].append(crystal)
    best = [
        crystal
        for kind, some in by_kind.items()
        for crystal in sorted(some, key=_first, reverse=True)[: QUOTAS.get(kind, 0)]
    ]
    return tuple(sorted(best, key=lambda crystal: (crystal.at, crystal.id)))


def counted(crystals: Iterable[Crystal]) -> dict[str, int]:
    """How many there are of each kind."""
    kinds: defaultdict[str, int] = defaultdict(int)
    for crystal in crystals:
        kinds[crystal.kind] += 1
    return dict(sorted(kinds.items()))


def _first(crystal: Crystal) -> tuple[int, float, float, str]:
    return crystal.trust, crystal.importance, crystal.at.timestamp(), crystal.id
