"""A kill during compaction: it is complete or absent, and nothing has to be repaired by hand.

The tables of faults call this C02.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from torture import compaction
from torture.harness import ask, need_strace, seeded_random
from torture.kills import kill_at_calls


def kill_while_compacting(folder: Path, *, number: int, dice: random.Random) -> None:
    """Kill a compacting prompt at system calls, one after another, and check the result."""
    start = folder / "start"
    ask(compaction.fill, home=str(start))
    actors = {"tell": compaction.overflow_and_tell, "act": compaction.overflow, "check": compaction.check}
    kill_at_calls(start, **actors, number=number, dice=dice)


@pytest.mark.exhaustive
@pytest.mark.spec("J1", "E5")
def test_a_prompt_killed_during_compaction_has_compacted_completely_or_not_at_all(tmp_path: Path) -> None:
    """C02: at calls from the whole prompt."""
    need_strace()
    kill_while_compacting(tmp_path, number=40, dice=seeded_random())


@pytest.mark.torture
@pytest.mark.spec("J1", "E5")
def test_a_prompt_killed_anywhere_during_compaction_has_compacted_completely_or_not_at_all(tmp_path: Path) -> None:
    """C02: at every writing call."""
    need_strace()
    kill_while_compacting(tmp_path, number=1_000_000, dice=seeded_random())
