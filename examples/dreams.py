"""MEMORY.md stays one page while an agent works for weeks.

The dreams use rules, without a model. The agent takes notes during the day and dreams every night. Newer facts replace
older ones, edits of users stay, and faded lines are replaced by a pointer that says how to find them. A dream can be
undone. The clock is set by the script, so that the dates are always the same.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

from inmind import Memory, Session
from inmind.testing import ManualClock

DAY = 86_400
HOSTS = ("Amsel", "Drossel", "Elster", "Falke", "Habicht", "Kiebitz", "Lerche", "Meise", "Reiher", "Sperling")


def first_week(memory: Memory, session: Session, clock: ManualClock, page: Path) -> None:
    session.note("Mei prefers to be called, and never mailed.", kind="preference", importance=0.9)
    session.note("The deadline for the API is March 20.", kind="fact")
    dream(memory, "The first dream")
    edit_by_hand(page, "## The Bond\n", "## The Bond\n\n- Mei is on leave in August.\n")
    clock.advance(seconds=7 * DAY)
    session.note("The deadline for the API moved to April 2.", kind="fact")
    dream(memory, "A week later")


def five_busy_weeks(memory: Memory, session: Session, clock: ManualClock) -> None:
    for week in range(5):
        for place, host in enumerate(HOSTS):
            rack, fan, bill = 10 * week + place, 300 + 70 * week + 7 * place, 9_000 + 130 * week + 13 * place
            session.note(
                f"Host {host} stands in rack {rack} by now, since fan {fan} had failed where it was before, and the "
                f"bill for its parts, the labels and the night shift has the number {bill}."
            )
        clock.advance(seconds=7 * DAY)
        memory.dream("team")


def dream(memory: Memory, title: str) -> None:
    dreamt = memory.dream("team")
    print(f"{title} takes in {len(dreamt.notes)} and changes:")
    print("\n".join(f"  {line}" for line in dreamt.diff.splitlines() if line.startswith(("+- ", "-- "))))


def edit_by_hand(page: Path, old: str, new: str) -> None:
    page.write_text(page.read_text("utf-8").replace(old, new), "utf-8")


def main() -> None:
    clock = ManualClock(datetime(2026, 3, 10, 9, tzinfo=UTC))
    with tempfile.TemporaryDirectory() as home, Memory.open(home, clock=clock, embedder=None) as memory:
        session, page = memory.session("ops", resource="team"), Path(home, "resources", "team", "MEMORY.md")
        first_week(memory, session, clock, page)
        five_busy_weeks(memory, session, clock)
        text = page.read_text("utf-8")
        print(f"After fifty notes more it has at most 6,000 characters: {len(text) <= 6_000}. Of Mei it says:")
        print("\n".join(f"  {line}" for line in text.splitlines() if line.startswith("- Mei")))
        faded = next(line for line in text.splitlines() if line.startswith("- Past: "))
        topic, _, keywords = faded.partition(" → search: ")
        print(f"Faded facts have a pointer:\n  {topic}\nwith keywords for a search: {keywords}. They find:")
        (hit,) = memory.resource("team").search(keywords.strip("`"), limit=1)
        print(f"  {hit.passage}")
        session.note("The deadline for the API is off.", kind="fact")
        memory.dream("team")
        memory.resource("team").undo_dream()
        print("After another dream, and its undo, the page is as before:", page.read_text("utf-8") == text)


if __name__ == "__main__":
    main()
