"""When memory compacts by itself.

Below three quarters of the window nothing is compacted unless somebody asks: the model, the host, or this policy. A
band that it names becomes automatic; with rates given, an automatic compaction also waits until it pays, since it makes
the provider write again what it had in its cache.
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
"""A model, as far as summaries go: a prompt in, a text out."""

COMPACTION_THRESHOLD = 0.75
"""Of what the window has beside system prompt, tools and answer: from here on compaction is no longer a choice."""
COMPACTION_TARGET = 0.5
"""To where it then goes down."""

_BAND_NAMES = (*(name for _, name in BANDS), EMERGENCY_BAND)


@frozen(kw_only=True)
class CompressionPolicy:
    """Which bands compact by themselves, and what stays when they do."""

    automatic: tuple[str, ...] = ()
    """Names of bands: normal, light_compression, medium_compression, heavy_compression. The emergency always does."""
    rates: Rates | None = None
    """Prices by which an automatic compaction has to pay; without them it comes as soon as there is enough to gain."""
    keep_recent: int = AUTOMATIC_KEEP_RECENT
    """Turns before the active one that stay, whenever memory itself compacts."""

    def __post_init__(self) -> None:
        if not isinstance(self.automatic, list | tuple):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="automatic", value=self.automatic, expected="a tuple of names of bands")
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
        """Compacts in any band, as soon as that is cheaper than to go on."""
        return cls(automatic=_BAND_NAMES, rates=rates or Rates())

    def target_for(self, band: str) -> tuple[str, int] | None:
        """Target and recent things that stay, for a band that is automatic: the fuller, the more leaves."""
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


def pays_off(rates: Rates, *, freed: int, rewritten: int, growth: float) -> bool:
    """Is it cheaper to compact now than to go on?

    A history that grows by `growth` tokens a call and is compacted each time that it has grown by L costs, per call,
    the reading of L/2 tokens on average, and its share of writing again what stays (`rewritten`). The sum is least
    where both are equal: L = sqrt(2 · rewritten · growth · (written - cached) / cached). From there on waiting costs
    more.
    """
    if rates.cached <= 0:
        return False
    return freed >= sqrt(2 * rewritten * max(growth, 1.0) * max(0.0, rates.written - rates.cached) / rates.cached)
