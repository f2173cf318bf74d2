"""Policy of automatic compaction.

Below 75% of the window nothing is compacted unless the model, the host or this policy requests it. Bands named in the
policy are compacted automatically. With rates, an automatic compaction also waits until it pays off, because the
provider has to cache the remaining messages again.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.pricing import Rates
from inmind.errors import InvalidInput
from inmind.history.compaction.select import AUTOMATIC_KEEP_RECENT, DEFAULT_KEEP_RECENT
from inmind.history.token_meter import BANDS, EMERGENCY_BAND

Summarizer = Callable[[str], Any]
"""Calls a model with a prompt and returns its text."""

COMPACTION_THRESHOLD = 0.75
"""Share of the window without system prompt, tools and reserve: above it compaction is mandatory."""
PRUNED_TARGET = 0.5
"""Share down to which a mandatory compaction prunes tool results."""
COMPACTION_TARGETS = ((4_000, 0.7), (12_000, 0.5))
"""Shares down to which whole messages leave in it, by tokens of the room; in between in proportion.

In a small room each message counts. In a large one a compaction is rare if it frees much, and the provider's cache is
written again less often.
"""

_BAND_NAMES = (*(name for _, name in BANDS), EMERGENCY_BAND)


@frozen(kw_only=True)
class CompressionPolicy:
    """Bands that are compacted automatically, and how much is kept."""

    automatic: tuple[str, ...] = ()
    """Band names: normal, light_compression, medium_compression, heavy_compression. The emergency band always compacts.
    """
    rates: Rates | None = None
    """Prices by which an automatic compaction must pay off; without them it runs as soon as it frees enough."""
    keep_recent: int = AUTOMATIC_KEEP_RECENT
    """Turns before the active one that an automatic compaction keeps."""

    def __post_init__(self) -> None:
        if not isinstance(self.automatic, list | tuple):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="automatic", value=self.automatic, expected="a tuple of band names")
        object.__setattr__(self, "automatic", tuple(self.automatic))
        if unknown := [name for name in self.automatic if name not in _BAND_NAMES]:
            raise InvalidInput(field="automatic", value=unknown, expected=f"some of {', '.join(_BAND_NAMES)}")
        whole = isinstance(self.keep_recent, int) and not isinstance(self.keep_recent, bool)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not whole or self.keep_recent < 0:
            raise InvalidInput(field="keep_recent", value=self.keep_recent, expected="a whole number, 0 or more")
        if self.rates is not None and not isinstance(self.rates, Rates):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInput(field="rates", value=self.rates, expected="Rates")

    @classmethod
    def when_it_pays(cls, rates: Rates | None = None) -> CompressionPolicy:
        """Policy that compacts in any band as soon as it is cheaper than to continue."""
        return cls(automatic=_BAND_NAMES, rates=rates or Rates())

    def target_for(self, band: str) -> tuple[str, int] | None:
        """Return target and number of recent units to keep for an automatic band; None for others."""
        if band not in self.automatic:
            return None
        if self.rates is not None or band not in _GENTLE_TARGETS:
            return "all", self.keep_recent
        return _GENTLE_TARGETS[band]


DEFAULT_POLICY = CompressionPolicy()

_GENTLE_TARGETS = {
    "normal": ("tools", DEFAULT_KEEP_RECENT),
    "light_compression": ("tools", DEFAULT_KEEP_RECENT),
    "medium_compression": ("all", DEFAULT_KEEP_RECENT),
}


def compaction_target(room: int) -> float:
    """The share of a room down to which whole messages leave."""
    (small, most), (large, least) = COMPACTION_TARGETS
    return most - (most - least) * min(1.0, max(0.0, (room - small) / (large - small)))


def pays_off(rates: Rates, *, freed: int, rewritten: int, growth: float) -> bool:
    """True if compacting now is cheaper than to continue.

    A history that grows by `growth` tokens per call and is compacted after growing by L tokens costs, per call, the
    reading of L/2 tokens on average plus its share of writing the remaining tokens (`rewritten`) again. The sum is
    minimal if both are equal: L = sqrt(2 · rewritten · growth · (written - cached) / cached). Waiting longer costs
    more.
    """
    if rates.cached <= 0:
        return False
    return freed >= sqrt(2 * rewritten * max(growth, 1.0) * max(0.0, rates.written - rates.cached) / rates.cached)
