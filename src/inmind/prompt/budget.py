"""How the room for memory is shared among layers."""

from __future__ import annotations

from collections.abc import Sequence

from inmind.core.frozen import frozen


@frozen
class LayerDemand:
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


def allocate(demands: Sequence[LayerDemand], max_tokens: int) -> list[int]:
    """Minimums first, scaled down together if even they do not fit; the rest by headroom.

    Nobody gets more than it can use, so room is left over only when everybody has enough.
    """
    max_tokens = max(0, max_tokens)
    floors = [wish.floor for wish in demands]
    if sum(floors) >= max_tokens:
        return _divide(floors, max_tokens)
    headroom = [wish.need - wish.floor for wish in demands]
    extra = _divide(headroom, max_tokens - sum(floors))
    return [floor + more for floor, more in zip(floors, extra, strict=True)]


def _divide(parts: Sequence[int], max_tokens: int) -> list[int]:
    """Divide room in proportion to the parts, whole tokens, nobody above its part; remainders to the largest."""
    total = sum(parts)
    if total <= max_tokens:
        return list(parts)
    shares = [part * max_tokens // total for part in parts]
    largest_remainder = sorted(range(len(parts)), key=lambda i: -(parts[i] * max_tokens % total))
    for index in largest_remainder[: max_tokens - sum(shares)]:
        shares[index] += 1
    return shares
