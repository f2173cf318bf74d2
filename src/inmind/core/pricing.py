"""Token usage and cost of the prompts of a session, by cache status of the tokens."""

from __future__ import annotations

from dataclasses import replace
from math import inf

from inmind.core.events.prompt import UsageReported
from inmind.core.frozen import frozen
from inmind.errors import InvalidInput


@frozen
class Rates:
    """Price of a token, by cache status. The default unit is one full-price input token."""

    uncached: float = 1.0
    cached: float = 0.1
    written: float = 1.25

    def __post_init__(self) -> None:
        for name in ("uncached", "cached", "written"):
            _check_price(getattr(self, name), name)

    @classmethod
    def per_million(cls, *, input: float, cached: float | None = None, written: float | None = None) -> Rates:
        """Rates from a price list for a million input, cache-read and cache-write tokens."""
        full = _check_price(input, "input")
        read = full * 0.1 if cached is None else _check_price(cached, "cached")
        write = full * 1.25 if written is None else _check_price(written, "written")
        return cls(uncached=full / 1e6, cached=read / 1e6, written=write / 1e6)


@frozen
class Usage:
    """Sums over all calls. `reported_*` covers the calls whose usage the provider reported."""

    calls: int = 0
    cached: int = 0
    written: int = 0
    uncached: int = 0
    reported_calls: int = 0
    reported_prompt: int = 0
    reported_cached: int = 0
    completion: int = 0

    @property
    def tokens(self) -> int:
        return self.cached + self.written + self.uncached

    @property
    def cached_share(self) -> float:
        return self.cached / self.tokens if self.tokens else 0.0

    def price(self, rates: Rates | None = None) -> float:
        rates = rates or Rates()
        return self.cached * rates.cached + self.written * rates.written + self.uncached * rates.uncached

    def with_usage(self, reported: UsageReported, *, times: int = 1) -> Usage:
        """Return the sums with a reported usage added; `times=-1` subtracts it."""
        return replace(
            self,
            reported_calls=self.reported_calls + times,
            reported_prompt=self.reported_prompt + times * reported.prompt_tokens,
            reported_cached=self.reported_cached + times * reported.cached_tokens,
            completion=self.completion + times * reported.completion_tokens,
        )

    def __str__(self) -> str:
        calls = f"{self.calls} call{'' if self.calls == 1 else 's'}"
        return f"{calls}, {self.tokens:,} tokens, {self.cached_share:.0%} from the cache"


def _check_price(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise InvalidInput(field=field, value=value, expected="a price, 0 or more")
    return value
