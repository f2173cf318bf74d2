"""What was earned, spent and offered, in the few figures that belong on MEMORY.md."""

from __future__ import annotations

from decimal import Decimal

from inmind.frozen import frozen


@frozen(kw_only=True)
class Economics:
    """Of one currency."""

    currency: str
    earned: Decimal = Decimal(0)
    spent: Decimal = Decimal(0)
    earnings: int = 0
    """How often something was earned."""
    spendings: int = 0
    listed: tuple[str, ...] = ()
    """Skills that are offered."""
    buyers: int = 0
    top: tuple[tuple[str, Decimal], ...] = ()
    """The skills that earned the most, each with how much."""
    week: Decimal = Decimal(0)
    """Earned in the last seven days."""
    week_before: Decimal = Decimal(0)
    """And in the seven days before these."""
    days: tuple[Decimal, ...] = ()
    """Earned on each of the last seven days, the oldest first."""
