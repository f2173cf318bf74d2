"""Estimates how many tokens a text has, offline.

No tokenizer vocabulary is small enough for a core install, so the default estimates from classes of bytes and runs of
them. `Calibration` learns a correction factor from the usage that providers report.
Any function from a text to a number can replace the estimator.

`Usage` adds up the tokens of a session by cache status, and `Rates` their price.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import inf

from inmind.core.events.session import UsageReported
from inmind.core.frozen import frozen
from inmind.errors import InvalidInput

Counter = Callable[[str], int]
"""Counts the tokens of a text."""

_LETTERS = bytes(range(65, 91)) + bytes(range(97, 123))
_DIGITS = b"0123456789"
_SPACES = b" \t"
_HIGH = bytes(range(128, 256))
_LINES = b"\r\n"
_MARKS = bytes(byte for byte in range(33, 127) if byte not in _LETTERS + _DIGITS)


def _keep_only(kept: bytes) -> bytes:
    """A translation table that blanks all other bytes, so that runs can be counted as words."""
    return bytes(byte if byte in kept else 32 for byte in range(256))


_COUNTED = (_LETTERS, _DIGITS, _SPACES, _HIGH, _LINES)
_RUNS = (_keep_only(_LETTERS), _keep_only(_DIGITS), _keep_only(_MARKS))

# Weights of letters, digits, spaces, high bytes, newlines and other bytes; then of runs of letters, digits and
# punctuation. Without runs, compact JSON is estimated a sixth too low. Fitted by non-negative least squares to the
# tokenizer o200k on English, Chinese, JSON and code; the weight of high bytes is between that of plain prose and of
# technical, traditional text.
_WEIGHTS = (0.043, 0.365, 0.082, 0.264, 0.633)
_OTHER_WEIGHT = 0.239
_RUN_WEIGHTS = (0.723, 0.953, 0.520)

TOKENS_PER_MESSAGE = 4
"""Role and separators of a message, in all known chat templates."""

TOKENS_PER_IMAGE = 1_000
"""Between a low-detail and a full-size picture. Only reported usage is exact."""

MAX_CACHED_CHARACTERS = 16_384
"""Longer texts are not cached, since the cache would keep them in memory."""

MIN_SAMPLES = 3
"""Reports after which a factor below 1 is used for hard limits."""

SAFETY_MARGIN = 0.10
"""Share of the window kept free while tokens are estimated: a low estimate would make the call fail."""


def estimator() -> Counter:
    """A counter that estimates, with its own cache."""
    cached = lru_cache(maxsize=2048)(_estimate)
    return lambda text: cached(text) if len(text) <= MAX_CACHED_CHARACTERS else _estimate(text)


def _estimate(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    total = sum(weight * len(data.translate(table).split()) for table, weight in zip(_RUNS, _RUN_WEIGHTS, strict=True))
    for members, weight in zip(_COUNTED, _WEIGHTS, strict=True):
        others = data.translate(None, members)
        total += weight * (len(data) - len(others))
        data = others
    return int(total + _OTHER_WEIGHT * len(data) + 0.5)


@frozen
class Calibration:
    """Correction factor of our token count: a moving average over reported usage."""

    factor: float = 1.0
    samples: int = 0

    def learn(self, *, counted: int, reported: int) -> Calibration:
        """Add one report. The first sets the factor; later ones move it by a fifth.

        A report that is off by more than a factor of 2.5 is ignored: it leaves out cached tokens, includes text that a
        gateway added, or belongs to another call.
        """
        if counted <= 0 or not 0.4 <= reported / counted <= 2.5:
            return self
        ratio = reported / counted
        weight = 1.0 if self.samples == 0 else 0.2
        return Calibration(factor=self.factor + weight * (ratio - self.factor), samples=self.samples + 1)

    @property
    def cautious(self) -> float:
        """The factor for hard limits: below 1 only after several reports."""
        return self.factor if self.samples >= MIN_SAMPLES else max(1.0, self.factor)

    def correct(self, counted: int) -> int:
        return round(counted * self.factor)


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
