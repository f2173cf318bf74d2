"""Rate limits shared by all processes of a memory, and the model calls of dreams.

The counters are in the store, so eight workers on four machines keep one limit. Before a call the maximum possible cost
is reserved; the difference to the actual cost is returned afterwards. A worker that dies in between has used its whole
reservation, because its actual cost is unknown. Per-minute and per-hour limits wait until the window resets. If a daily
limit is reached, the dream proposes by rules instead.

A dream calls its model in a thread, so that a hung request cannot block it. Every answer is journaled before it is used
and before the next question. A process that takes the dream over reads these answers first, in order, and asks only the
questions that have no answer yet.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from inmind.core.encoding import to_json
from inmind.core.events.dreams import DreamAnswered
from inmind.core.frozen import frozen
from inmind.core.settings import LimitSettings
from inmind.documents.notes_page import format_timestamp
from inmind.dreams.models import Model, ModelCost, ModelReply, Question
from inmind.dreams.parse_answer import MAX_ANSWER_CHARACTERS
from inmind.dreams.state import LIMIT_REACHED
from inmind.errors import InmindError, ModelFailed, StoreError
from inmind.store.protocol import Clock, RateWindow, Store

log = logging.getLogger("inmind")

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

MODEL_CALLS, DREAMS = "model_calls_per_minute", "dreams_per_hour"
TOKENS, PRICE = "tokens_per_day", "price_per_day"

WINDOWS = {MODEL_CALLS: MINUTE, TOKENS: DAY, PRICE: DAY, DREAMS: HOUR}
"""The window of each limit. A limit has the name of its setting."""

MICROS_PER_UNIT = 1_000_000
"""Counters are integers: prices are counted in millionths of the currency."""

OVERHEAD_TOKENS = 256
"""Tokens that a provider may add to a question."""

POLL_SECONDS = 0.05
"""Seconds between two checks whether the model has answered or the dream was cancelled."""

TokenPrices = tuple[float, float]
"""Price of an input token and of an output token."""


@frozen
class LimitUsage:
    """Usage of one limit in the current window."""

    name: str
    used: float
    limit: float
    resets_at: datetime


class CallLimitReached(Exception):
    """The limit of model calls per minute is reached until the given time."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"limit {MODEL_CALLS} reached until {format_timestamp(until)}")
        self.until = until


class RateLimits:
    """Checks and counts usage against the limits of the settings."""

    def __init__(self, store: Store, limits: LimitSettings, clock: Clock) -> None:
        self._store, self._limits, self._clock = store, limits, clock

    def start_dream(self, count_waiting: Callable[[int], int] | None = None) -> datetime | None:
        """Count one more due dream. None if it may start now, or the time to retry.

        `count_waiting(limit)`: how many other dreams have waited longer, counted up to `limit`; capacity is left for
        those. The limit of model calls is only checked here: a call is reserved when the model is called.
        """
        calls, dreams = self._limits.model_calls_per_minute, self._limits.dreams_per_hour

        def limit_for_this(limit: int) -> int:
            return limit - (count_waiting(limit) if count_waiting else 0)

        if calls and self._store.usage(window := self._window(MODEL_CALLS)) >= limit_for_this(calls):
            return window.end
        if dreams and not self._store.try_consume(window := self._window(DREAMS), 1, limit=limit_for_this(dreams)):
            return window.end
        return None

    def dreams_available(self) -> int | None:
        """Number of due dreams that may start now; None without a limit."""
        available = [
            limit - self._store.usage(self._window(name))
            for name in (MODEL_CALLS, DREAMS)
            if (limit := getattr(self._limits, name))
        ]
        return max(0, min(available)) if available else None

    def claim(self, name: str, interval: timedelta) -> datetime | None:
        """Claim a task for one interval, across all processes.

        Returns None if claimed, or the time to retry.
        """
        window = RateWindow.at(self._clock(), name, interval)
        return None if self._store.try_consume(window, 1, limit=1) else window.end

    def ask(self, model: Model, question: Question, prices: TokenPrices, *, seconds: float) -> ModelReply:
        """Ask a model within the limits.

        Raises CallLimitReached if the caller should wait, and ModelFailed if a daily limit is reached.
        """
        reserved = self.reserve(_max_tokens(question), prices)
        try:
            reply = model.ask(question, seconds=seconds)
        except ModelFailed as error:
            if any(error.tokens) or error.free:
                self.settle(reserved, error.tokens, prices)
            raise
        if any(reply.tokens):
            self.settle(reserved, reply.tokens, prices)
        return reply

    def reserve(self, tokens: tuple[int, int], prices: TokenPrices) -> list[tuple[RateWindow, int]]:
        """Reserve the maximum cost of one answer.

        Raises CallLimitReached or ModelFailed, reserving nothing.
        """
        reserved: list[tuple[RateWindow, int]] = []
        for window, amount, limit in self._charges(tokens, prices):
            if not self._store.try_consume(window, amount, limit=limit):
                self.adjust([(window, -amount) for window, amount in reserved])
                if window.name == MODEL_CALLS:
                    raise CallLimitReached(window.end)
                reason = f"{window.name} does not allow another call before {format_timestamp(window.end)}"
                raise ModelFailed(reason=f"{LIMIT_REACHED}{reason}")
            reserved.append((window, amount))
        return reserved

    def settle(self, reserved: list[tuple[RateWindow, int]], tokens: tuple[int, int], prices: TokenPrices) -> None:
        """Replace a reservation with the actual cost."""
        actual = {window.name: amount for window, amount, _ in self._charges(tokens, prices)}
        self.adjust([(window, actual[window.name] - amount) for window, amount in reserved])

    def adjust(self, changes: list[tuple[RateWindow, int]]) -> None:
        """Add signed amounts to the counters."""
        for window, change in changes:
            try:
                if change:
                    self._store.adjust_usage(window, change)
            except StoreError as error:  # the counter stays too high, which keeps the limit
                log.warning("%s: the reservation was not adjusted: %s", window.name, error)

    def usage(self) -> list[LimitUsage]:
        """Usage of each configured limit."""
        return [
            LimitUsage(name, self._store.usage(window) / (MICROS_PER_UNIT if name == PRICE else 1), limit, window.end)
            for name in WINDOWS
            if (limit := float(getattr(self._limits, name)))
            for window in [self._window(name)]
        ]

    def _charges(self, tokens: tuple[int, int], prices: TokenPrices) -> Iterator[tuple[RateWindow, int, int]]:
        """Window, amount and limit for each configured limit.

        Daily limits come first: if one of them is reached, waiting for a minute does not help.
        """
        limits = self._limits
        price = sum(count * price for count, price in zip(tokens, prices, strict=True))
        charges = (
            (TOKENS, sum(tokens), limits.tokens_per_day),
            (PRICE, math.ceil(price * MICROS_PER_UNIT), math.floor(limits.price_per_day * MICROS_PER_UNIT)),
            (MODEL_CALLS, 1, limits.model_calls_per_minute),
        )
        return ((self._window(name), amount, limit) for name, amount, limit in charges if getattr(limits, name))

    def _window(self, name: str) -> RateWindow:
        return RateWindow.at(self._clock(), name, WINDOWS[name])


def _max_tokens(question: Question) -> tuple[int, int]:
    """Upper bounds of input and output tokens of a question. A token is at least one byte."""
    schema = to_json(question.schema) if question.schema else ""
    input_tokens = sum(len(text.encode("utf-8", "replace")) for text in (question.system, question.prompt, schema))
    return input_tokens + OVERHEAD_TOKENS, question.max_tokens


@frozen(kw_only=True)
class ModelOptions:
    """The model of a dream, its limits, timeout and prices."""

    model: Model
    limits: RateLimits
    timeout_seconds: float = 120.0
    prices: TokenPrices = (0.0, 0.0)

    def price(self, tokens: tuple[int, int]) -> float:
        return sum(count * price for count, price in zip(tokens, self.prices, strict=True))


class DreamModel:
    """The model of one dream. Returns saved answers first, then calls the model."""

    def __init__(
        self,
        options: ModelOptions | None,
        answers: Sequence[DreamAnswered],
        *,
        name: str,
        record: Callable[[DreamAnswered], None],
        wait: Callable[[str], None],
        clock: Clock,
    ) -> None:
        """`answers`: saved answers of a former holder. Without `options` only these are available.

        `record` stores a new answer. `wait` is called again and again during a call, with the reason if a rate limit
        delays it; it raises if the dream was cancelled or has lost its lease.
        """
        self._options, self._saved_answers, self._clock = options, list(answers), clock
        self._record, self._wait = record, wait
        self.name = options.model.name if options else name
        """Name of the model that gave the last answer."""
        self.paid = self.failed = ModelCost()
        """The cost of all calls of this process, and of those that gave no answer."""

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:
        if self._saved_answers:
            saved = self._saved_answers.pop(0)
            self.name = saved.proposer
            return ModelReply(text=saved.text, tokens=saved.tokens, truncated=saved.truncated)
        if self._options is None:
            raise ModelFailed(reason="its saved answers cannot be used, and no model is configured to ask again")
        try:
            reply = self._call_when_allowed(self._options, question, seconds)
        except ModelFailed as error:
            self.failed = ModelCost(error.tokens, self._options.price(error.tokens))
            self.paid += self.failed
            raise
        self.name = self._options.model.name
        cost = ModelCost(reply.tokens, self._options.price(reply.tokens))
        self.paid += cost
        answer = DreamAnswered(
            dream=0,
            lease_until="",
            text=reply.text,
            proposer=self.name,
            truncated=reply.truncated,
            tokens=cost.tokens,
            price=cost.price,
        )
        self._record(answer)
        return reply

    def _call_when_allowed(self, options: ModelOptions, question: Question, seconds: float) -> ModelReply:
        while True:
            try:
                return self._call_in_thread(options, question, seconds)
            except CallLimitReached as reached:
                self._wait(f"waiting until {format_timestamp(reached.until)}: limit of model calls per minute reached")
                while reached.until - MINUTE <= self._clock() < reached.until:  # the clock may be set
                    time.sleep(POLL_SECONDS)
                    self._wait("")

    def _call_in_thread(self, options: ModelOptions, question: Question, seconds: float) -> ModelReply:
        outcome: list[ModelReply | InmindError | CallLimitReached] = []

        def ask() -> None:
            try:
                reply = options.limits.ask(options.model, question, options.prices, seconds=seconds)
                outcome.append(_storable(reply))
            except (InmindError, CallLimitReached) as error:  # raised again in the dream's thread
                outcome.append(error)
            except BaseException as error:  # a host's model may raise anything; it must not end the host
                failed = ModelFailed(reason=f"{options.model.name} raised {type(error).__name__}: {error}")
                failed.__cause__ = error
                outcome.append(failed)

        thread = threading.Thread(target=ask, name="inmind-dream", daemon=True)
        deadline = time.monotonic() + 2 * seconds + POLL_SECONDS
        thread.start()
        while not outcome:
            thread.join(POLL_SECONDS)
            if outcome:
                break  # it is paid for, so it is recorded before the lease is checked
            self._wait("")
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
