"""Hypothesis profiles: how many examples each run tries.

`make test` uses `short`, `make test-all` uses `all`, `make torture` uses `torture`. Under CI each run has the same
examples, so that a red build is caused by the change. No profile has a deadline: slowness is not a failure.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_IN_ALL = 60

_COMMON = settings(
    deadline=None, print_blob=True, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("short", parent=_COMMON, max_examples=25)
settings.register_profile("all", parent=_COMMON, max_examples=_IN_ALL)
settings.register_profile("torture", parent=_COMMON, max_examples=2_000, derandomize=False)


def load() -> None:
    """Load the profile that $HYPOTHESIS_PROFILE names, or `short`."""
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or "short")


def examples(count: int, *, at_most: int = 1_000) -> int:
    """Scale a number of examples for the profile `all` to the current profile."""
    return min(at_most, max(2, count * settings().max_examples // _IN_ALL))
