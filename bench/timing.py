"""The one way of measuring here: contenders take turns, and the median counts.

A machine gets faster and slower while a benchmark runs, and never for one contender alone if they alternate:
A, B, A, B. So a ratio of two medians out of one race holds on a busy machine, where either number alone does not.
The garbage collector is off inside, since whose turn it would interrupt is chance.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import perf_counter_ns


def _nothing() -> None:
    return None


@dataclass(frozen=True, slots=True)
class Contender:
    """What is measured, and what has to happen before each time without being measured."""

    run: Callable[[], object]
    before: Callable[[], object] = _nothing


@dataclass(slots=True)
class Race:
    """Samples by name, in seconds. It may be run several times, so that one course can be laid out anew in between."""

    samples: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def run(self, contenders: Mapping[str, Contender], *, repetitions: int) -> None:
        enabled = gc.isenabled()
        gc.collect()
        gc.disable()
        try:
            for _ in range(repetitions):
                for name, contender in contenders.items():
                    contender.before()
                    begun = perf_counter_ns()
                    made = contender.run()
                    took = perf_counter_ns() - begun
                    del made  # after the clock has stopped: freeing a big answer is not the contender's work
                    self.enter(name, took / 1e9)
        finally:
            if enabled:
                gc.enable()

    def enter(self, name: str, seconds: float) -> None:
        """One more sample, for contenders that live in other processes and have their own clocks."""
        self.samples.setdefault(name, []).append(seconds)

    def median(self, name: str) -> float:
        return median(self.samples[name])

    def p95(self, name: str) -> float:
        return quantiles(self.samples[name], n=20, method="inclusive")[-1]

    def p99(self, name: str) -> float:
        return quantiles(self.samples[name], n=100, method="inclusive")[-1]

    def ratio(self, name: str, against: str) -> float:
        return self.median(name) / self.median(against)


def spoken(seconds: float) -> str:
    """A duration in the unit a person would use."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.2f} ms" if seconds < 1e-2 else f"{seconds * 1e3:.0f} ms"
