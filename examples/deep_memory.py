"""Search over weeks and sessions: with context, by kind, and as of a date.

An agent of a team talks about its gateway in March, notes what it learns, and is asked about it in May. No model and no
embedder is used. The clock is set by the script, so that the dates are always the same.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime

from inmind import Hit, Memory
from inmind.testing import ManualClock

DAY = 86_400

TALK = (
    ("user", "Since the upgrade browsers refuse every call: it is CORS again."),
    ("assistant", "Fixed by allowing the shop's new origin on the gateway."),
    ("user", "Good. And who looks after the gateway at night?"),
    ("assistant", "No one so far. I will ask Mei."),
)


def march(memory: Memory, clock: ManualClock) -> None:
    session = memory.session("gateway", resource="team")
    session.add([{"role": role, "content": text} for role, text in TALK])
    session.note("The deadline for the API is March 20.", kind="fact")
    clock.advance(seconds=7 * DAY)
    session.note("The deadline for the API moved to April 2.", kind="fact")
    session.note(
        "Mei wants to be called, and never mailed, when the gateway is down.", kind="preference", importance=0.9
    )


def may(memory: Memory) -> None:
    session = memory.session("handover", resource="team")
    show("How did we solve CORS?", session.search("How did we solve CORS?", limit=2))
    show("When is the deadline for the API?", session.search("When is the deadline for the API?", limit=2))
    show("The same, as of March 11", session.search("When is the deadline for the API?", limit=2, as_of="2026-03-11"))
    show("What Mei likes", session.search("Mei", kinds=["preference"]))
    show(
        "Said in March about the night",
        session.search("gateway at night", sources="sessions", until="2026-03-31", limit=1),
    )


def show(question: str, hits: list[Hit]) -> None:
    print(question)
    for hit in hits:
        crystal = hit.crystal
        until = f", until {crystal.valid_to:%Y-%m-%d}" if crystal.valid_to else ""
        print(f"  {crystal.at:%Y-%m-%d}, {crystal.speaker or crystal.kind}{until}: {hit.passage}")


def main() -> None:
    clock = ManualClock(datetime(2026, 3, 10, 9, tzinfo=UTC))
    with tempfile.TemporaryDirectory() as home, Memory.open(home, clock=clock, embedder=None) as memory:
        march(memory, clock)
        clock.advance(seconds=60 * DAY)
        done = memory.resource("team").consolidate()
        print(f"Consolidated: {done.merged} merged, {done.superseded} superseded, {done.expired} expired")
        may(memory)


if __name__ == "__main__":
    main()
