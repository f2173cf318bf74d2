"""What was asked for stands on the page until it is done, and no longer."""

from __future__ import annotations

import pytest
from builders import Home

from inmind import Memory
from inmind.documents.document import MEMORY_PAGE_PATH
from inmind.session.session import Session
from inmind.testing import ManualClock

pytestmark = [pytest.mark.spec("G3", "G8"), pytest.mark.both_stores]

ASKED = "Can you remind me to send the invoice to Ben tomorrow?"
LINE = f"- Open since 2026-01-01: {ASKED}"


def turn(session: Session, said: str, reply: str = "I see.") -> None:
    session.add([{"role": "user", "content": said}, {"role": "assistant", "content": reply}])


def dreamt(memory: Memory, clock: ManualClock) -> str:
    """The page after another dream, a day later, without the line that tells when that was."""
    clock.advance(seconds=86_400)
    assert memory.dream("ada").status == "done"
    page = memory.session("any", resource="ada").read(MEMORY_PAGE_PATH)
    return "\n".join(line for line in page.splitlines() if not line.startswith("_Last dream"))


@pytest.mark.parametrize("done", ["I sent the invoice to Ben.", "The invoice for Ben is done, I could send it today."])
def test_what_a_later_session_has_done_leaves_for_a_pointer_and_does_not_come_back(home: Home, done: str) -> None:
    clock = ManualClock()
    with Memory.open(home, clock=clock) as memory:
        turn(memory.session("first", resource="ada"), ASKED)
        assert LINE in dreamt(memory, clock)
        assert LINE in dreamt(memory, clock)
        turn(memory.session("second", resource="ada"), done)
        page = dreamt(memory, clock)
        assert "Open since" not in page
        assert "- Past: Can you remind me to send the invoice to Ben" in page
        assert dreamt(memory, clock) == page


def test_what_is_asked_for_again_after_it_was_done_is_open_again_and_once(home: Home) -> None:
    clock = ManualClock()
    with Memory.open(home, clock=clock) as memory:
        session = memory.session("first", resource="ada")
        turn(session, ASKED)
        dreamt(memory, clock)
        turn(session, ASKED)
        assert dreamt(memory, clock).count("Open since") == 1
        turn(session, "I sent the invoice to Ben.")
        assert "Open since" not in dreamt(memory, clock)
        turn(session, ASKED)
        assert f"- Open since 2026-01-04: {ASKED}" in dreamt(memory, clock)


def test_what_speaks_of_something_else_closes_nothing(home: Home) -> None:
    clock = ManualClock()
    with Memory.open(home, clock=clock) as memory:
        turn(memory.session("first", resource="ada"), ASKED)
        dreamt(memory, clock)
        turn(memory.session("second", resource="ada"), "I sent the parcel to Eva, that is done.")
        assert LINE in dreamt(memory, clock)
