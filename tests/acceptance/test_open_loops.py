"""A request of the user stays on the page until it is done."""

from __future__ import annotations

import pytest
from builders import Home

from inmind import Memory
from inmind.documents.document import MEMORY_PAGE_PATH
from inmind.session.session import Session
from inmind.testing import ManualClock

pytestmark = [pytest.mark.spec("G3", "G8"), pytest.mark.both_stores]

REQUEST = "Can you remind me to send the invoice to Ben tomorrow?"
LINE = f"- Open since 2026-01-01: {REQUEST}"


def turn(session: Session, message: str, reply: str = "I see.") -> None:
    session.add([{"role": "user", "content": message}, {"role": "assistant", "content": reply}])


def dream_page(memory: Memory, clock: ManualClock) -> str:
    """Run a dream a day later and return the page, without the line with the time of the dream."""
    clock.advance(seconds=86_400)
    assert memory.dream("ada").status == "done"
    page = memory.session("any", resource="ada").read(MEMORY_PAGE_PATH)
    return "\n".join(line for line in page.splitlines() if not line.startswith("_Last dream"))


@pytest.mark.parametrize(
    "message", ["I sent the invoice to Ben.", "The invoice for Ben is done, I could send it today."]
)
def test_a_request_done_in_a_later_session_becomes_a_pointer(home: Home, message: str) -> None:
    clock = ManualClock()
    with Memory.open(home, clock=clock) as memory:
        turn(memory.session("first", resource="ada"), REQUEST)
        assert LINE in dream_page(memory, clock)
        assert LINE in dream_page(memory, clock)
        turn(memory.session("second", resource="ada"), message)
        page = dream_page(memory, clock)
        assert "Open since" not in page
        assert "- Past: Can you remind me to send the invoice to Ben" in page
        assert dream_page(memory, clock) == page


def test_a_repeated_request_is_open_once_and_again_after_it_was_done(home: Home) -> None:
    clock = ManualClock()
    with Memory.open(home, clock=clock) as memory:
        session = memory.session("first", resource="ada")
        turn(session, REQUEST)
        dream_page(memory, clock)
        turn(session, REQUEST)
        assert dream_page(memory, clock).count("Open since") == 1
        turn(session, "I sent the invoice to Ben.")
        assert "Open since" not in dream_page(memory, clock)
        turn(session, REQUEST)
        assert f"- Open since 2026-01-04: {REQUEST}" in dream_page(memory, clock)


def test_an_unrelated_message_closes_no_request(home: Home) -> None:
    clock = ManualClock()
    with Memory.open(home, clock=clock) as memory:
        turn(memory.session("first", resource="ada"), REQUEST)
        dream_page(memory, clock)
        turn(memory.session("second", resource="ada"), "I sent the parcel to Eva, that is done.")
        assert LINE in dream_page(memory, clock)
