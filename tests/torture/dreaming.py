"""A resource with material for a dream, the dream that is killed, and checks after it.

A dream by rules makes up to three commits: adopting the page, started, and the result. Each is stored completely or
not at all; for the last that means the page, the processed notes and the crystals together.
"""

from __future__ import annotations

import os
import resource
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import home_of
from dream_checks import (
    account_for_notes,
    check_dream_order,
    check_files,
    events_of,
    folder_of,
    pages_of,
    search_finds,
    text_of,
)
from torture.harness import ActorChannel
from torture.session_steps import sound

import inmind.jobs.dream_lease
import inmind.jobs.dreaming
from inmind import Memory
from inmind.core.events import encode_payload
from inmind.core.events.dreams import DreamStarted
from inmind.core.paths import DATABASE
from inmind.documents.document import MEMORY_PAGE_PATH, NOTES_PAGE_PATH
from inmind.dreams.page.draft import entry_texts
from inmind.dreams.state import LEASE_DURATION
from inmind.errors import DreamRunning, InmindError
from inmind.memory.backends import SEED_BACKUP
from inmind.testing import ManualClock

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
LATER = NOON + LEASE_DURATION + timedelta(seconds=1)

SEED = "# About me\n\nI am Ada. I raise 12 quails.\n\n- My boat is called Difference\n"
USER_LINE = "- Call her Dr. Lovelace"
REMARK = "The cat is called Pascal."
BEFORE = ("Ada prefers tabs over spaces", "The API migration is due on 20 March 2026", "Deploys happen on Tuesdays")
WAITING = (
    "Ada now prefers spaces over tabs",
    "Ben is on holiday until 27 March 2026",
    "The staging host has two disks:\n- sda with 40 GB\n- sdb with 80 GB",
    "客户的预算是 4200 元",
    "Never push to main without a review",
)


def begin(channel: ActorChannel, *, home: str, first: bool) -> None:
    """Write material: for the first dream, below a page written by hand, or for another one."""
    with opened(home, NOON - timedelta(hours=3)) as memory:
        session = memory.session("shop", resource="ada", cwd="/w")
        page = folder_of(home) / MEMORY_PAGE_PATH
        if first:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(SEED, "utf-8")
        else:
            for text in BEFORE:
                session.note(text)
            assert memory.dream("ada").status == "done"
            page.write_text(page.read_text("utf-8").replace("## The Bond\n", f"## The Bond\n\n{USER_LINE}\n"), "utf-8")
        session.add([{"role": "user", "content": "Always answer in metric units. What is the tide at Dover?"}])
        for text in WAITING:
            session.note(text)
        memory.flush()
        notes = folder_of(home) / NOTES_PAGE_PATH
        notes.write_text(f"{notes.read_text('utf-8')}\n{REMARK}\n", "utf-8")
    channel.report("begun")


def dream(channel: ActorChannel, *, home: str) -> None:
    with opened(home) as memory:
        memory.dream("ada")
        channel.report("done")


def dream_and_report(channel: ActorChannel, *, home: str) -> dict[str, Any]:
    """Run undisturbed; report the events, where each commit ended, and every text of the page."""
    with opened(home) as memory:
        before = len(events_of(memory))
        assert memory.dream("ada").status == "done"
        channel.report("done")
        events = events_of(memory)
        ends = [*(event.seq - 1 for event in events if event.starts_batch and event.seq > before), len(events)]
        taken = len(account_for_notes(memory).taken_in)
        return {
            "ends": ends,
            "journal": _journal(memory),
            "pages": pages_of(memory),
            "taken": taken,
        }


def check(channel: ActorChannel, *, home: str, expected: dict[str, Any], done: bool) -> int:
    """Return how many commits were made; then dream again and check the result."""
    page = (folder_of(home) / MEMORY_PAGE_PATH).read_text("utf-8")
    assert page in expected["pages"], f"neither the old page nor the new one: {page!r}"
    with opened(home) as memory:
        version = len(events_of(memory))
        assert version in (expected["ends"][-1:] if done else expected["ends"]), (
            f"{version} is inside of {expected['ends']}"
        )
        assert _journal(memory) == expected["journal"][:version]
        started = any(isinstance(event.payload, DreamStarted) for event in events_of(memory)[expected["ends"][0] :])
        committed = version == expected["ends"][-1]
        _check_invariants(memory)
        assert len(account_for_notes(memory).waiting) == (0 if committed else len(WAITING))
        if started and not committed:
            with pytest.raises(DreamRunning):
                memory.dream("ada")
    channel.report("looked")
    resume(home, expected)
    return expected["ends"].index(version)


def resume(home: str, expected: dict[str, Any]) -> None:
    """Dream after the lease: with one more note, and otherwise the same result as undisturbed."""
    with opened(home, LATER) as memory:
        late = memory.session("shop", resource="ada", cwd="/w").note("The late note is of 9 May").id
        unfinished = memory.resource("ada").state.dreams.running
        again = memory.dream("ada")
        if unfinished is not None:
            assert again.id == unfinished.dream, "the next process resumes the dream"
        assert (again.status, late in again.notes) == ("done", True), again
        _check_invariants(memory)
        account = account_for_notes(memory)
        assert (account.waiting, len(account.taken_in)) == ([], expected["taken"] + 1)
        missing = entry_texts(expected["pages"][-1]) - entry_texts(text_of(memory, MEMORY_PAGE_PATH))
        assert not missing, f"an undisturbed dream would have {missing}"
    sound(Path(home))


def die_in(channel: ActorChannel, *, home: str, phase: str) -> None:
    with opened(home) as memory:

        def die(now: str, _: str) -> None:
            if now == phase:
                channel.report("dying", phase)
                os._exit(9)

        memory.dream("ada", watch=die)


# -- concurrent dreams -------------------------------------------------------------------------------------------


def dream_at_once(channel: ActorChannel, *, home: str) -> list[str]:
    """The first process waits in the middle of its dream until the test lets it continue."""
    with opened(home) as memory:
        channel.wait()

        def stay(phase: str, _: str) -> None:
            if phase == "propose":
                channel.wait()

        try:
            return [memory.dream("ada", watch=stay).status]
        except DreamRunning as error:
            return [error.code]


def note_many(channel: ActorChannel, *, home: str, number: int) -> list[str]:
    with opened(home) as memory:
        session = memory.session("other", resource="ada", cwd="/w")
        ids = [session.note(f"Boat number {n} is called {'abcdefghij'[n % 10] * 4}").id for n in range(number)]
    channel.report("noted")
    return ids


def look(channel: ActorChannel, *, home: str) -> dict[str, Any]:
    with opened(home) as memory:
        _check_invariants(memory)
        account = account_for_notes(memory)
        statuses = [dream.status for dream in memory.resource("ada").dreams()]
    sound(Path(home))
    channel.report("looked")
    return {"waiting": account.waiting, "taken_in": account.taken_in, "dreams": statuses}


# -- a disk that fails or is full --------------------------------------------------------------------------


def dream_on_failing_disk(channel: ActorChannel, *, home: str) -> str:
    """Dream on a failing disk; return the error of the dream, if it failed."""
    try:
        with opened(home) as memory:
            memory.dream("ada")
    except InmindError as error:
        channel.report("failed")
        return error.code
    channel.report("done")
    return ""


def dream_without_room(channel: ActorChannel, *, home: str, room: int) -> list[str]:
    """Limit the file size at commit to the log and `room` bytes; return the result.

    Then the limit is removed. Nothing was reopened, and the next dream is due after the lease.
    """
    clock = ManualClock(NOON)
    with opened(home, clock=clock) as memory:
        _check_invariants(memory)
        before = [
            memory.session("shop", resource="ada", cwd="/w").read(path) for path in (MEMORY_PAGE_PATH, NOTES_PAGE_PATH)
        ]
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

        def fill(phase: str, _: str) -> None:
            if phase == "commit":
                log = Path(home, f"{DATABASE}-wal").stat().st_size
                resource.setrlimit(resource.RLIMIT_FSIZE, (log + room, hard))

        code = ""
        try:
            memory.dream("ada", watch=fill)
        except InmindError as error:
            code = error.code
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        channel.report("tried", code)
        _check_invariants(memory)
        (dream, *_) = memory.resource("ada").dreams()
        if code:
            assert dream.status in ("failed", "running")
            assert [
                memory.session("shop", resource="ada", cwd="/w").read(path)
                for path in (MEMORY_PAGE_PATH, NOTES_PAGE_PATH)
            ] == before
            assert len(account_for_notes(memory).waiting) == len(WAITING)
        clock.now = LATER
        assert memory.dream("ada").status == "done"
        _check_invariants(memory)
        assert account_for_notes(memory).waiting == []
    sound(Path(home))
    return [code, dream.status, dream.code]


def opened(home: str, at: datetime = NOON, *, clock: ManualClock | None = None) -> Memory:
    """Open with a fixed clock and lease holder, since journals with both are compared."""

    def fixed_token(_: int) -> str:
        return str(at)

    for module in (inmind.jobs.dream_lease, inmind.jobs.dreaming):
        module.__dict__["time"] = SimpleNamespace(monotonic=lambda: 0.0)
    inmind.jobs.dream_lease.__dict__["token_hex"] = fixed_token
    return Memory.open(home, clock=clock or ManualClock(at), embedder=None)


def _check_invariants(memory: Memory) -> None:
    session = memory.session("shop", resource="ada", cwd="/w")
    page = session.read(MEMORY_PAGE_PATH)  # reading synchronises files and journal
    check_files(memory)
    check_dream_order(memory)
    account_for_notes(memory)
    assert all(search_finds(memory, text) for text in WAITING)
    assert REMARK in session.read(NOTES_PAGE_PATH) or search_finds(memory, REMARK)
    assert USER_LINE in page or entry_texts(SEED) <= entry_texts(page), page
    backup = folder_of(home_of(memory)) / SEED_BACKUP
    assert not backup.exists() or backup.read_text("utf-8") == SEED


def _journal(memory: Memory) -> list[list[str]]:
    return [[event.kind, encode_payload(event.payload)] for event in events_of(memory)]
