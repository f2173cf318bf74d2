"""Interleaved timing: all calls run in turn, and the median counts.

A machine gets faster and slower while a benchmark runs. Interleaved calls (A, B, A, B) are affected alike, so a ratio
of two medians of one run holds on a busy machine, and either number alone does not. The garbage collector is off, since
it would interrupt calls at random.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import perf_counter_ns

from bench.table import Row


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class TimedCall:
    """The call to measure, and the setup that runs before each call without being measured."""

    run: Callable[[], object]
    before: Callable[[], object] = _nothing


@dataclass(slots=True)
class Timings:
    """Samples by name, in seconds. `run` can be called several times, with new calls each time."""

    samples: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def run(self, calls: Mapping[str, TimedCall], *, repetitions: int) -> None:
        enabled = gc.isenabled()
        gc.collect()
        gc.disable()
        try:
            for _ in range(repetitions):
                for name, call in calls.items():
                    call.before()
                    started = perf_counter_ns()
                    result = call.run()
                    nanoseconds = perf_counter_ns() - started
                    del result  # after the clock has stopped: freeing a large result is not part of the call
                    self.add_sample(name, nanoseconds / 1e9)
        finally:
            if enabled:
                gc.enable()

    def add_sample(self, name: str, seconds: float) -> None:
        """Add a sample that was measured elsewhere, for example in another process."""
        self.samples.setdefault(name, []).append(seconds)

    def median(self, name: str) -> float:
        return median(self.samples[name])

    def p95(self, name: str) -> float:
        return quantiles(self.samples[name], n=20, method="inclusive")[-1]

    def p99(self, name: str) -> float:
        return quantiles(self.samples[name], n=100, method="inclusive")[-1]

    def ratio(self, name: str, against: str) -> float:
        return self.median(name) / self.median(against)

    def ratio_row(
        self,
        what: str,
        name: str,
        against: str,
        limit: float | None = None,
        *,
        quantile: Callable[[str], float] | None = None,
    ) -> Row:
        """Return a row with the ratio of two medians, or other quantiles, with a bar if there is a limit."""
        of = quantile or self.median
        ratio, seconds, others = of(name) / of(against), of(name), of(against)
        return Row(
            what=what,
            measured=f"{ratio:.2f}x ({format_duration(seconds)} / {format_duration(others)})",
            bar=f"<= {limit:g}x" if limit else "",
            met=ratio <= limit if limit else None,
            figures={"ratio": ratio, "seconds": seconds, "p95": self.p95(name), "against": others},
        )


def format_duration(seconds: float) -> str:
    """Return a duration in a readable unit."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1e-2 else f"{seconds * 1e3:.0f} ms"
