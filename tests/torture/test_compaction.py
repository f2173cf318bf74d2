"""A kill during compaction: the compaction is complete or absent.

Nothing has to be repaired by hand. The tables of faults call this C02.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from torture import compaction
from torture.harness import ask, need_strace, seeded_random
from torture.kills import kill_at_calls


def kill_while_compacting(folder: Path, *, number: int, rng: random.Random) -> None:
    """Kill a compacting prompt at system calls, one after another, and check the result."""
    start = folder / "start"
    ask(compaction.fill, home=str(start))
    actors = {"reference": compaction.overflow_and_report, "act": compaction.overflow, "check": compaction.check}
    kill_at_calls(start, **actors, number=number, rng=rng)


@pytest.mark.exhaustive
@pytest.mark.spec("J1", "E5")
def test_a_compaction_killed_at_a_system_call_is_complete_or_absent(tmp_path: Path) -> None:
    """C02: at calls from the whole prompt."""
    need_strace()
    kill_while_compacting(tmp_path, number=40, rng=seeded_random())


@pytest.mark.torture
@pytest.mark.spec("J1", "E5")
def test_a_compaction_killed_at_any_system_call_is_complete_or_absent(tmp_path: Path) -> None:
    """C02: at every writing call."""
    need_strace()
    kill_while_compacting(tmp_path, number=1_000_000, rng=seeded_random())
