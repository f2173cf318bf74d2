"""How the room for memory is shared among layers."""

from __future__ import annotations

from collections.abc import Sequence

from inmind.core.frozen import frozen


@frozen
class Wish:
    """What a layer would fill, and what it was promised."""

    wanted: int
    min: int
    max: int

    @property
    def need(self) -> int:
        return min(self.wanted, self.max)

    @property
    def floor(self) -> int:
        return min(self.min, self.need)


def allocate(wishes: Sequence[Wish], room: int) -> list[int]:
    """Minimums first, scaled down together if even they do not fit; the rest by headroom.

    Nobody gets more than it can use, so room is left over only when everybody has enough.
    """
    room = max(0, room)
    floors = [wish.floor for wish in wishes]
    if sum(floors) >= room:
        return _share(floors, room)
    headroom = [wish.need - wish.floor for wish in wishes]
    extra = _share(headroom, room - sum(floors))
    return [floor + more for floor, more in zip(floors, extra, strict=True)]


def _share(parts: Sequence[int], room: int) -> list[int]:
    """Divide room in proportion to the parts, whole tokens, nobody above its part; remainders to the largest."""
    total = sum(parts)
    if total <= room:
        return list(parts)
    shares = [part * room // total for part in parts]
    largest_remainder = sorted(range(len(parts)), key=lambda i: -(parts[i] * room % total))
    for index in largest_remainder[: room - sum(shares)]:
        shares[index] += 1
    return shares
