"""What all tests share: how hard hypothesis looks, and a memory in a folder of its own on a clock the test holds.

CI repeats itself, so a red build is the change's fault and not the dice's; at a desk every run looks somewhere new;
torture looks long. No profile has a deadline: a slow machine is not a failing test.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from inmind import Memory, Session
from inmind.testing import ManualClock

_UNHURRIED = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("ci", parent=_UNHURRIED, derandomize=True)
settings.register_profile("desk", parent=_UNHURRIED)
settings.register_profile("torture", parent=_UNHURRIED, max_examples=2_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "desk"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def memory(home: Path, clock: ManualClock) -> Generator[Memory]:
    with Memory.open(home, clock=clock) as opened:
        yield opened


@pytest.fixture
def session(memory: Memory) -> Session:
    return memory.session("support-42", resource="ada", cwd="/website")
