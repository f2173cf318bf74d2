"""Call the dream model in a worker thread, so that a hung request cannot block the dream.

Every answer is journaled before it is used and before the next question. A process that takes the dream over reads
these answers first, in order, and asks only the questions that have no answer yet. If the limit of calls per minute is
reached, the dream waits for the next minute and keeps its lease.
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
"""Seconds between two checks whether the model has answered or the dream was cancelled."""


@frozen(kw_only=True)
class ModelOptions:
    """The model of a dream, its timeout and its prices."""

    model: Model
    timeout_seconds: float = 120.0
    prices: tuple[float, float] = (0.0, 0.0)
    """Price of an input token and of an output token."""

    def price(self, tokens: tuple[int, int]) -> float:
        return sum(count * price for count, price in zip(tokens, self.prices, strict=True))


class DreamModel:
    """The model of one dream. Returns saved answers first, then calls the model."""

    def __init__(
        self, lease: DreamLease, options: ModelOptions | None, answers: Sequence[DreamAnswered], clock: Clock
    ) -> None:
        """`answers`: saved answers of a former holder. Without `options` only these are available."""
        self._lease, self._options, self._saved_answers, self._clock = lease, options, list(answers), clock
        self.name = options.model.name if options else lease.proposer
        """Name of the model that gave the last answer."""

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:
        if self._saved_answers:
            saved = self._saved_answers.pop(0)
            self.name = saved.proposer
            return ModelReply(text=saved.text, tokens=saved.tokens, truncated=saved.truncated)
        if self._options is None:
            raise ModelFailed(reason="its saved answers cannot be used, and no model is configured to ask again")
        reply = self._call_when_allowed(self._options.model, question, seconds)
        self.name = self._options.model.name
        self._lease.record_answer(reply, proposer=self.name, price=self._options.price(reply.tokens))
        return reply

    def _call_when_allowed(self, model: Model, question: Question, seconds: float) -> ModelReply:
        while True:
            try:
                return self._call_in_thread(model, question, seconds)
            except CallLimitReached as reached:
                self._wait_until(reached.until)

    def _wait_until(self, until: datetime) -> None:
        """Wait for the end of the minute. Stops if the clock was set to another minute."""
        self._lease.enter_phase(
            "propose", f"waiting until {format_timestamp(until)}: limit of model calls per minute reached"
        )
        while until - MINUTE <= self._clock() < until:
            time.sleep(POLL_SECONDS)
            self._lease.heartbeat()

    def _call_in_thread(self, model: Model, question: Question, seconds: float) -> ModelReply:
        outcome: list[ModelReply | InmindError | CallLimitReached] = []

        def ask() -> None:
            try:
                outcome.append(_storable(model.ask(question, seconds=seconds)))
            except (InmindError, CallLimitReached) as error:  # raised again in the dream's thread
                outcome.append(error)
            except BaseException as error:  # a host's model may raise anything; it must not end the host
                failed = ModelFailed(reason=f"{model.name} raised {type(error).__name__}: {error}")
                failed.__cause__ = error
                outcome.append(failed)

        thread = threading.Thread(target=ask, name="inmind-dream", daemon=True)
        deadline = time.monotonic() + 2 * seconds + POLL_SECONDS
        thread.start()
        while not outcome:
            thread.join(POLL_SECONDS)
            if outcome:
                break  # it is paid for, so it is recorded before the lease is checked
            self._lease.heartbeat()
            if time.monotonic() >= deadline:
                raise ModelFailed(reason=f"no answer in {2 * seconds:g} s")
        if isinstance(outcome[0], ModelReply):
            return outcome[0]
        raise outcome[0]


def _storable(reply: ModelReply) -> ModelReply:
    """The reply as the journal stores it, so that a resumed dream reads the same text.

    Unpaired surrogates are replaced, and the text is cut one character after the maximum length.
    """
    text = reply.text[: MAX_ANSWER_CHARACTERS + 1].encode("utf-8", "replace").decode("utf-8")
    return ModelReply(text=text, tokens=reply.tokens, truncated=reply.truncated)
