"""Divides the memory budget among layers."""

from __future__ import annotations

from collections.abc import Sequence

from inmind.core.frozen import frozen


@frozen
class LayerDemand:
    """Tokens that a layer would use, and its guaranteed minimum and maximum."""

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
    """Grant minimums first, scaled down if they do not fit.

    The rest is divided by the remaining demand. No layer gets more than it can use, so tokens remain only if every
    layer has enough.
    """
    max_tokens = max(0, max_tokens)
    floors = [demand.floor for demand in demands]
    if sum(floors) >= max_tokens:
        return _divide(floors, max_tokens)
    headroom = [demand.need - demand.floor for demand in demands]
    extra = _divide(headroom, max_tokens - sum(floors))
    return [floor + more for floor, more in zip(floors, extra, strict=True)]


def _divide(parts: Sequence[int], max_tokens: int) -> list[int]:
    """Divide whole tokens in proportion to the parts, none above its part.

    The largest remainders are rounded up.
    """
    total = sum(parts)
    if total <= max_tokens:
        return list(parts)
    shares = [part * max_tokens // total for part in parts]
    largest_remainder = sorted(range(len(parts)), key=lambda i: -(parts[i] * max_tokens % total))
    for index in largest_remainder[: max_tokens - sum(shares)]:
        shares[index] += 1
    return shares
