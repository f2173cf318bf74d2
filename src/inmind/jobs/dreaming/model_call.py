"""A model that thinks for a dream, in a thread of its own: whoever hangs there holds up nobody.

What it has answered is in the journal before anything is made of it, or anything else is asked. Whoever takes the dream
over is given those answers first, in their order, as if they had just come; and asks only what nobody has asked yet.
Where a minute has no room for one more call, the dream waits for the next one, and holds its lease meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from datetime import datetime

from inmind.core.events.dreams import DreamAnswered
from inmind.core.frozen import frozen
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.model import Model, ModelReply, Question
from inmind.dreams.parse_answer import MAX_ANSWER_CHARACTERS
from inmind.errors import InmindError, ModelFailed
from inmind.jobs.dreaming.lease import DreamLease
from inmind.jobs.rate_limits import MINUTE, CallLimitReached
from inmind.store.protocol import Clock

POLL_SECONDS = 0.05
"""Seconds between two looks at whether a model has answered, or somebody has called the dream off."""


@frozen(kw_only=True)
class ModelOptions:
    """A model that a dream may ask, and for how long."""

    model: Model
    timeout_seconds: float = 120.0
    prices: tuple[float, float] = (0.0, 0.0)
    """Of a token that it reads, and one that it writes."""

    def price(self, tokens: tuple[int, int]) -> float:
        return sum(count * price for count, price in zip(tokens, self.prices, strict=True))


class DreamModel:
    """The model of one dream."""

    def __init__(
        self, lease: DreamLease, asked: ModelOptions | None, answers: Sequence[DreamAnswered], clock: Clock
    ) -> None:
        """`answers`: of whoever had the dream before. Without a model there are only those."""
        self._lease, self._asked, self._answers, self._clock = lease, asked, list(answers), clock
        self.name = asked.model.name if asked else lease.proposer
        """Of the one that has answered last, if any has."""

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:
        if self._answers:
            known = self._answers.pop(0)
            self.name = known.proposer
            return ModelReply(text=known.text, tokens=known.tokens, truncated=known.truncated)
        if self._asked is None:
            raise ModelFailed(reason="it has answered with nothing that can be used, and no model may be asked again")
        reply = self._waited_for(self._asked.model, question, seconds)
        self.name = self._asked.model.name
        self._lease.record_answer(reply, by=self.name, price=self._asked.price(reply.tokens))
        return reply

    def _waited_for(self, model: Model, question: Question, seconds: float) -> ModelReply:
        while True:
            try:
                return self._heard(model, question, seconds)
            except CallLimitReached as full:
                self._wait(full.until)

    def _wait(self, until: datetime) -> None:
        """As long as it is that minute; somebody may set the clock."""
        self._lease.enter_phase(
            "propose", f"waits until {format_timestamp(until)}: there is no room for one more call before"
        )
        while until - MINUTE <= self._clock() < until:
            time.sleep(POLL_SECONDS)
            self._lease.heartbeat()

    def _heard(self, model: Model, question: Question, seconds: float) -> ModelReply:
        heard: list[ModelReply | InmindError | CallLimitReached] = []

        def ask() -> None:
            try:
                heard.append(_storable(model.ask(question, seconds=seconds)))
            except (InmindError, CallLimitReached) as error:  # told to whoever waits
                heard.append(error)
            except BaseException as error:  # a host's model may raise anything, and must not end the host by it
                failed = ModelFailed(reason=f"{model.name} raised {type(error).__name__}: {error}")
                failed.__cause__ = error
                heard.append(failed)

        thread = threading.Thread(target=ask, name="inmind-dream", daemon=True)
        until = time.monotonic() + 2 * seconds + POLL_SECONDS
        thread.start()
        while not heard:
            thread.join(POLL_SECONDS)
            if heard:
                break  # it is paid for, and has to be told before anything else
            self._lease.heartbeat()
            if time.monotonic() >= until:
                raise ModelFailed(reason=f"no answer in {2 * seconds:g} s")
        if isinstance(heard[0], ModelReply):
            return heard[0]
        raise heard[0]


def _storable(reply: ModelReply) -> ModelReply:
    """As the journal can have it, so that whoever goes on reads the same: without half a surrogate pair, and no longer
    than it takes to see that it is too long."""
    text = reply.text[: MAX_ANSWER_CHARACTERS + 1].encode("utf-8", "replace").decode("utf-8")
    return ModelReply(text=text, tokens=reply.tokens, truncated=reply.truncated)
