"""One session object, many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from builders import Home, user

from inmind import Memory

pytestmark = pytest.mark.both_stores


@pytest.mark.spec("J2")
def test_threads_that_share_a_session_lose_nothing_and_never_deadlock(home: Home) -> None:
    def work(thread: int) -> None:
        for number in range(25):
            session.add([{**user(f"{thread}-{number}"), "id": f"{thread}-{number}"}])
            if number % 5 == 0:
                session.prepare()
                session.explain()

    with Memory.open(home) as memory:
        session = memory.session("s")
        with ThreadPoolExecutor(4) as pool:
            for future in [pool.submit(work, thread) for thread in range(4)]:
                future.result(timeout=120)
        ids = [entry.wire["id"] for entry in session.state.conversation]
        assert sorted(ids) == sorted(f"{thread}-{number}" for thread in range(4) for number in range(25))
        assert [event.seq for event in session.events()] == list(range(1, session.state.seq + 1))
    if isinstance(home, Path):
        (file,) = home.glob("sessions/*/s/messages.jsonl")
        assert len(file.read_text().splitlines()) == 100
