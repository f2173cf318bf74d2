"""Actors with a memory in PostgreSQL, like several machines."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import Any

from torture.harness import ActorChannel

from inmind import Memory
from inmind.core.events.crystals import NoteAdded
from inmind.errors import DreamRunning
from inmind.testing import ManualClock

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
RESOURCE = "ada"


def opened(url: str, at: datetime = NOON) -> Memory:
    return Memory.open(url, clock=ManualClock(at), embedder=None)


def note_many(channel: ActorChannel, *, url: str, name: str, number: int) -> list[str]:
    """Send each note twice, since a retry must change nothing; half of them through a session."""
    texts = [f"{name}-{n}" for n in range(number)]
    with opened(url) as memory:
        session = memory.session(f"of {name}", resource=RESOURCE, cwd="/w")
        channel.wait()
        for n, text in enumerate(texts):
            for _ in range(2):
                if n % 2:
                    session.note(text, key=text)
                else:
                    memory.resource(RESOURCE).note(text, key=text)
    return texts


def all_notes(channel: ActorChannel, *, url: str) -> list[str]:
    """All notes of a resource, in order."""
    with opened(url) as memory:
        store = memory._context.store  # pyright: ignore[reportPrivateUsage] -- a resource's journal has no public API yet
        events = store.read(f"resource/{RESOURCE}")
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        page = memory.resource(RESOURCE).state.documents.text("memory/scratch.md")
        texts = [event.payload.text for event in events if isinstance(event.payload, NoteAdded)]
        missing = [text for text in texts if f" {text}\n" not in f"{page}\n"]
        assert not missing, f"not on the page: {missing[:3]}"
    channel.report("read")
    return texts


def begin(channel: ActorChannel, *, url: str) -> None:
    """Write material for a dream."""
    with opened(url, NOON - timedelta(hours=3)) as memory:
        for number in range(6):
            memory.resource(RESOURCE).note(f"The harbour master of port {number} is called {'ABCDEF'[number] * 4}")
    channel.report("begun")


def dream_at_once(channel: ActorChannel, *, url: str) -> list[str]:
    """The first process waits in the middle of its dream until the test lets it continue."""
    with opened(url) as memory:
        channel.wait()

        def stay(phase: str, _: str) -> None:
            if phase == "propose":
                channel.wait()

        try:
            return [memory.dream(RESOURCE, watch=stay).status]
        except DreamRunning as error:
            return [error.code]


def describe_dreams(channel: ActorChannel, *, url: str) -> dict[str, Any]:
    with opened(url) as memory:
        result = {
            "dreams": [dream.status for dream in memory.resource(RESOURCE).dreams()],
            "page": memory.resource(RESOURCE).state.documents.text("MEMORY.md"),
        }
    channel.report("looked", os.getpid())
    return result
