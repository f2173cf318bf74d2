"""A dream that is stopped right after one of its stages, in a separate process, and those that resume it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dream_checks import accounted, events_of, in_order, text_of
from torture.harness import ActorChannel

from inmind import Memory
from inmind.core.events.dreams import DreamCommitted, DreamProposed, DreamResumed
from inmind.documents.document import MEMORY_PAGE_PATH
from inmind.dreams.models import ModelReply, Question
from inmind.dreams.state import LEASE_DURATION
from inmind.errors import DreamRunning
from inmind.jobs.dreaming.lease import DreamLease
from inmind.testing import ManualClock

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
LATER = NOON + LEASE_DURATION + timedelta(seconds=1)

BEHIND = {"begun": "gather", "gathered": "propose", "proposed": "check", "checked": "commit", "committed": "index"}
"""What a dream enters as soon as a stage is in the journal."""

COST = (900, 100)

UNUSABLE = "I would rather \ud800 not."

AGAIN = "Your last answer could not be used"
"""In a question that is asked for the second time."""

NOTES = (
    "Ada prefers tabs over spaces",
    "The API migration is due on 20 March 2026",
    "Ben is on holiday until 27 March 2026",
    "The cat of Ada is called Pascal",
)


class PaidModel:
    """A model that records each request in a file.

    It rewrites two notes; the rest is left to rules.
    """

    name = "paid"

    def __init__(self, calls: str, unusable: int = 0) -> None:
        """`unusable`: number of unusable answers at the start."""
        self._calls, self._unusable = Path(calls), unusable

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:  # noqa: ARG002 -- the port's
        with self._calls.open("a") as calls:
            calls.write(f"{'again' if AGAIN in question.prompt else 'asked'}\n")
        if len(self._calls.read_text().splitlines()) <= self._unusable:
            return ModelReply(text=UNUSABLE, tokens=COST)
        told = {
            word: found[0]
            for word in ("Pascal", "tabs")
            if (found := re.findall(rf"\b([NC]\d+)\b[^\n]*{word}", question.prompt))
        }
        said = {"Pascal": "Pascal is what the cat of Ada is called", "tabs": "Ada prefers tabs over any spaces"}
        edits = [
            {"op": "add", "section": "The Bond", "text": said[word], "sources": [label]} for word, label in told.items()
        ]
        return ModelReply(text=json.dumps({"edits": edits}), tokens=COST)


@dataclass(frozen=True)
class DreamResult:
    """The state after a dream."""

    dream: int
    status: str
    by: str
    tokens: tuple[int, int]
    page: str
    notes: int
    ends: int
    taken: int
    proposed: int
    spent: int
    version: int


def begin(voice: ActorChannel, *, home: str) -> None:
    with opened(home, "", NOON) as memory:
        session = memory.session("shop", resource="ada", cwd="/w")
        for text in NOTES:
            session.note(text)
    voice.tell("begun")


def dream(
    voice: ActorChannel, *, home: str, calls: str, key: str | None = None, later: bool = False, unusable: int = 0
) -> dict[str, Any]:
    """Run undisturbed; `later`: after all leases have expired."""
    with opened(home, calls, LATER if later else NOON, unusable) as memory:
        made = memory.dream("ada", key=key)
        voice.tell("done")
        in_order(memory)
        accounted(memory)
        return told(memory, made.id)


def end_behind(
    voice: ActorChannel, *, home: str, calls: str, stage: str, how: str, key: str | None = None, minutes: int = 0
) -> dict[str, Any]:
    """Stop or kill the process after a stage, this many minutes past noon; a stopped one may continue."""

    def stop(phase: str, _: str) -> None:
        if phase == BEHIND[stage]:
            voice.tell("ending", stage)
            os.kill(os.getpid(), getattr(signal, how))

    with opened(home, calls, NOON + timedelta(minutes=minutes)) as memory:
        made = memory.dream("ada", watch=stop, key=key)
        return told(memory, made.id)


def end_behind_an_answer(voice: ActorChannel, *, home: str, calls: str, unusable: int, answers: int = 1) -> None:
    """Kill the process when this many answers are in the journal."""
    answered, left = DreamLease.record_answer, iter(range(answers - 1, -1, -1))

    def ending(lease: DreamLease, reply: ModelReply, **given: Any) -> None:
        answered(lease, reply, **given)
        if not next(left):
            voice.tell("ending", "answered")
            os.kill(os.getpid(), signal.SIGKILL)

    with patch.object(DreamLease, "record_answer", ending), opened(home, calls, NOON, unusable) as memory:
        memory.dream("ada")


def dream_at_once(voice: ActorChannel, *, home: str, calls: str) -> str:
    """All processes find it at once; the one that gets it waits until the test lets it continue."""
    with opened(home, calls, LATER) as memory:
        voice.wait()
        try:
            return memory.dream("ada", watch=_staying(voice)).status
        except DreamRunning as error:
            return error.code


def _staying(voice: ActorChannel) -> Callable[[str, str], None]:
    def stay(phase: str, _: str) -> None:
        if phase == "commit":
            voice.wait()

    return stay


def told(memory: Memory, dream: int) -> dict[str, Any]:
    made = next(one for one in memory.resource("ada").dreams() if one.id == dream)
    happened = [event.payload for event in events_of(memory)]
    return asdict(
        DreamResult(
            dream=dream,
            status=made.status,
            by=made.by,
            tokens=made.tokens,
            page=text_of(memory, MEMORY_PAGE_PATH),
            notes=len(made.notes),
            ends=sum(isinstance(what, DreamCommitted) for what in happened),
            taken=sum(isinstance(what, DreamResumed) for what in happened),
            proposed=sum(isinstance(what, DreamProposed) for what in happened),
            spent=memory.resource("ada").state.dreams.tokens_on(NOON),
            version=len(happened),
        )
    )


def opened(home: str, calls: str, at: datetime, unusable: int = 0) -> Memory:
    return Memory.open(home, clock=ManualClock(at), embedder=None, model=PaidModel(calls, unusable) if calls else None)
