"""Dreams that are stopped at the start of a phase, in a separate process, and resumed."""

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

from dream_checks import account_for_notes, check_dream_order, events_of, text_of
from torture.harness import ActorChannel

from inmind import Memory
from inmind.core.events.dreams import DreamAnswered, DreamCommitted, DreamResumed
from inmind.documents.document import MEMORY_PAGE_PATH
from inmind.dreams.models import ModelReply, Question
from inmind.dreams.state import LEASE_DURATION
from inmind.errors import DreamRunning
from inmind.jobs.dreaming import Dreamer
from inmind.testing import ManualClock

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
LATER = NOON + LEASE_DURATION + timedelta(seconds=1)

COST = (900, 100)

UNUSABLE = "I would rather \ud800 not."

AGAIN = "Your last answer could not be used"
"""Part of a prompt that is sent for the second time."""

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
        labels = {
            word: matches[0]
            for word in ("Pascal", "tabs")
            if (matches := re.findall(rf"\b([NC]\d+)\b[^\n]*{word}", question.prompt))
        }
        texts = {"Pascal": "Pascal is what the cat of Ada is called", "tabs": "Ada prefers tabs over any spaces"}
        edits = [
            {"op": "add", "section": "The Bond", "text": texts[word], "sources": [label]}
            for word, label in labels.items()
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
    answers: int
    spent: int
    version: int


def begin(channel: ActorChannel, *, home: str) -> None:
    with opened(home, "", NOON) as memory:
        session = memory.session("shop", resource="ada", cwd="/w")
        for text in NOTES:
            session.note(text)
    channel.report("begun")


def dream(
    channel: ActorChannel, *, home: str, calls: str, key: str | None = None, later: bool = False, unusable: int = 0
) -> dict[str, Any]:
    """Run undisturbed; `later`: after all leases have expired."""
    with opened(home, calls, LATER if later else NOON, unusable) as memory:
        result = memory.dream("ada", key=key)
        channel.report("done")
        check_dream_order(memory)
        account_for_notes(memory)
        return describe_dream(memory, result.id)


def stop_in_phase(
    channel: ActorChannel, *, home: str, calls: str, phase: str, how: str, key: str | None = None, minutes: int = 0
) -> dict[str, Any]:
    """Stop or kill the process at the start of a phase, `minutes` past noon; a stopped one may continue."""

    def stop(now: str, _: str) -> None:
        if now == phase:
            channel.report("ending", phase)
            os.kill(os.getpid(), getattr(signal, how))

    with opened(home, calls, NOON + timedelta(minutes=minutes)) as memory:
        result = memory.dream("ada", watch=stop, key=key)
        return describe_dream(memory, result.id)


record_answer = Dreamer._record_answer  # pyright: ignore[reportPrivateUsage]


def die_after_answer(channel: ActorChannel, *, home: str, calls: str, unusable: int, answers: int = 1) -> None:
    """Kill the process when this many answers are in the journal."""
    record, remaining = record_answer, iter(range(answers - 1, -1, -1))

    def record_and_die(dreamer: Dreamer, answer: DreamAnswered) -> None:
        record(dreamer, answer)
        if not next(remaining):
            channel.report("ending", "answered")
            os.kill(os.getpid(), signal.SIGKILL)

    with patch.object(Dreamer, "_record_answer", record_and_die), opened(home, calls, NOON, unusable) as memory:
        memory.dream("ada")


def dream_at_once(channel: ActorChannel, *, home: str, calls: str) -> str:
    """Concurrent dreams; the one that gets the lease waits until the test lets it continue."""
    with opened(home, calls, LATER) as memory:
        channel.wait()
        try:
            return memory.dream("ada", watch=_staying(channel)).status
        except DreamRunning as error:
            return error.code


def _staying(channel: ActorChannel) -> Callable[[str, str], None]:
    def stay(phase: str, _: str) -> None:
        if phase == "commit":
            channel.wait()

    return stay


def describe_dream(memory: Memory, dream: int) -> dict[str, Any]:
    result = next(one for one in memory.resource("ada").dreams() if one.id == dream)
    payloads = [event.payload for event in events_of(memory)]
    return asdict(
        DreamResult(
            dream=dream,
            status=result.status,
            by=result.by,
            tokens=result.tokens,
            page=text_of(memory, MEMORY_PAGE_PATH),
            notes=len(result.notes),
            ends=sum(isinstance(payload, DreamCommitted) for payload in payloads),
            taken=sum(isinstance(payload, DreamResumed) for payload in payloads),
            answers=sum(isinstance(payload, DreamAnswered) for payload in payloads),
            spent=memory.resource("ada").state.dreams.tokens_on(NOON),
            version=len(payloads),
        )
    )


def opened(home: str, calls: str, at: datetime, unusable: int = 0) -> Memory:
    return Memory.open(home, clock=ManualClock(at), embedder=None, model=PaidModel(calls, unusable) if calls else None)
