"""The loop that kills a writer at random moments, which no list of system calls can name."""

from __future__ import annotations

import random
import time
from pathlib import Path

from torture import writers
from torture.harness import Running, ask


def kill_at_random(home: Path, *, kills: int, dice: random.Random, library: str = "") -> None:
    """Writers follow each other on one home; each first looks for everything that any of them had told."""
    told: list[str] = []
    for _ in range(kills):
        writer = Running(writers.write_on, home=str(home), seed=dice.randrange(1 << 32), library=library)
        (seen,) = writer.hear_until("seen")
        missing, unheard = set(told) - set(seen), set(seen) - set(told)
        assert not missing, f"told and lost: {sorted(missing)}"
        assert len(unheard) <= 1, f"one call can have been on its way, not {sorted(unheard)}"
        told = list(seen)
        time.sleep(dice.random() * 0.08)
        writer.kill()
        ended = writer.finish()
        assert ended.killed, f"the writer ended before it was killed: {ended.said}"
        told += [text for (text,) in ended.all("wrote")]
    there = ask(writers.look, home=str(home), library=library)
    print(f"{kills} kills, {len(told)} told, {len(there)} there")
    assert set(told) <= set(there)
    assert len(told) > kills
