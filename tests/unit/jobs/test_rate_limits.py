"""Limits shared by all processes: reserved before a call, settled after it, never exceeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind import Memory
from inmind.core.events.base import Event, Origin, Trust
from inmind.core.events.dreams import DreamCommitted
from inmind.core.settings import LimitSettings
from inmind.dreams.models import ModelReply, OpenAICompatible, Question
from inmind.dreams.state import LIMIT_REACHED, ActiveDream, DreamingState
from inmind.errors import ModelFailed, StoreUnavailable
from inmind.jobs.dream_history import Dream
from inmind.jobs.dream_lease import LeaseReleased
from inmind.jobs.rate_limits import OVERHEAD_TOKENS, CallLimitReached, RateLimits
from inmind.store.protocol import RateWindow
from inmind.testing import InMemoryStore, ManualClock

QUESTION = Question(system="be short", prompt="what is new? 今日", max_tokens=100)
MAX_INPUT_TOKENS = len((QUESTION.system + QUESTION.prompt).encode()) + OVERHEAD_TOKENS
PRICES = (0.001, 0.01)


class Model:
    name = "some-model"

    def __init__(self, answer: Callable[[], ModelReply]) -> None:
        self.calls = 0
        self._answer = answer

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:  # noqa: ARG002 -- the port's
        self.calls += 1
        return self._answer()


def limited_call(
    store: InMemoryStore, answer: Callable[[], ModelReply], **limits: float
) -> tuple[Model, Callable[[], ModelReply]]:
    model = Model(answer)
    settings = LimitSettings(**limits)  # pyright: ignore[reportArgumentType] -- integers where it expects them
    rate_limits = RateLimits(store, settings, ManualClock())
    return model, lambda: rate_limits.ask(model, QUESTION, PRICES, seconds=1)


def usage(store: InMemoryStore, name: str, length: timedelta = timedelta(days=1)) -> int:
    return store.usage(RateWindow.at(ManualClock()(), name, length))


def an_answer(*tokens: int) -> Callable[[], ModelReply]:
    return lambda: ModelReply(text="nothing", tokens=(tokens[0], tokens[1]) if tokens else (0, 0))


def fails(*tokens: int) -> Callable[[], ModelReply]:
    def fail() -> ModelReply:
        raise ModelFailed(reason="no", tokens=(tokens[0], tokens[1]) if tokens else (0, 0))

    return fail


@pytest.mark.spec("B47")
def test_calls_per_minute_are_limited_and_the_error_has_the_retry_time() -> None:
    store = InMemoryStore()
    model, ask = limited_call(store, an_answer(1, 1), model_calls_per_minute=2, tokens_per_day=10_000)
    ask()
    ask()
    with pytest.raises(CallLimitReached) as refused:
        ask()
    assert (model.calls, usage(store, "tokens_per_day")) == (2, 4)
    assert refused.value.until == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)


@pytest.mark.spec("B47")
def test_a_full_day_fails_at_once_instead_of_waiting_for_a_minute() -> None:
    _, ask = limited_call(InMemoryStore(), an_answer(400, 100), model_calls_per_minute=1, tokens_per_day=600)
    ask()
    with pytest.raises(ModelFailed) as refused:
        ask()
    assert refused.value.reason == (
        f"{LIMIT_REACHED}tokens_per_day does not allow another call before 2026-01-02T00:00:00Z"
    )


@pytest.mark.spec("B47")
def test_the_maximum_cost_is_reserved_and_the_actual_cost_is_counted() -> None:
    store = InMemoryStore()
    limit = MAX_INPUT_TOKENS + QUESTION.max_tokens
    model, ask = limited_call(store, an_answer(30, 12), tokens_per_day=limit + 42)
    ask()
    assert usage(store, "tokens_per_day") == 42
    ask()
    with pytest.raises(ModelFailed):
        ask()
    assert (model.calls, usage(store, "tokens_per_day")) == (2, 84)


@pytest.mark.spec("B47")
def test_money_is_counted_by_the_prices_of_input_and_output_tokens() -> None:
    store = InMemoryStore()
    _, ask = limited_call(store, an_answer(30, 12), price_per_day=5.0)
    ask()
    assert usage(store, "price_per_day") == 150_000  # millionths: 0.03 + 0.12


@pytest.mark.spec("B47")
def test_if_one_limit_refuses_no_other_is_charged() -> None:
    store = InMemoryStore()
    model, ask = limited_call(store, an_answer(1, 1), model_calls_per_minute=5, tokens_per_day=10)
    with pytest.raises(ModelFailed, match="tokens_per_day"):
        ask()
    assert (model.calls, usage(store, "model_calls_per_minute", timedelta(minutes=1))) == (0, 0)


@pytest.mark.spec("B47")
@pytest.mark.parametrize(("answer", "cost"), [(fails(), None), (fails(5, 2), 7), (an_answer(), None)])
def test_an_unreported_cost_counts_as_the_maximum(answer: Callable[[], ModelReply], cost: int | None) -> None:
    store = InMemoryStore()
    _, ask = limited_call(store, answer, tokens_per_day=10_000)
    with suppress(ModelFailed):
        ask()
    assert usage(store, "tokens_per_day") == (MAX_INPUT_TOKENS + QUESTION.max_tokens if cost is None else cost)


@pytest.mark.spec("B47")
def test_an_unreachable_model_costs_only_the_call() -> None:
    store, clock = InMemoryStore(), ManualClock()
    limits = LimitSettings(tokens_per_day=100_000, model_calls_per_minute=5)
    unreachable = OpenAICompatible("http://127.0.0.1:9/v1", "some-model", pause=lambda _: None)
    with pytest.raises(ModelFailed) as failed:
        RateLimits(store, limits, clock).ask(unreachable, QUESTION, PRICES, seconds=5)
    assert failed.value.free
    assert usage(store, "tokens_per_day") == 0
    assert usage(store, "model_calls_per_minute", timedelta(minutes=1)) == 1


@pytest.mark.spec("B47")
def test_a_store_error_after_an_answer_does_not_lose_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    store = InMemoryStore()
    _, ask = limited_call(store, an_answer(30, 12), tokens_per_day=10_000)

    def unavailable(*_: object) -> None:
        raise StoreUnavailable(place="there", reason="no connection")

    monkeypatch.setattr(store, "adjust_usage", unavailable)
    assert ask().text == "nothing"
    assert usage(store, "tokens_per_day") == MAX_INPUT_TOKENS + QUESTION.max_tokens


@pytest.mark.spec("B47")
@given(
    costs=st.lists(st.tuples(st.integers(1, MAX_INPUT_TOKENS), st.integers(1, 100)), max_size=20),
    limit=st.integers(0, 2_000),
)
def test_no_limit_is_exceeded_whatever_answers_cost(costs: list[tuple[int, int]], limit: int) -> None:
    store, paid = InMemoryStore(), [(0, 0)]
    for cost in costs:
        _, ask = limited_call(store, an_answer(*cost), tokens_per_day=limit)
        try:
            ask()
        except ModelFailed:
            continue
        paid.append(cost)
    spent = sum(map(sum, paid))
    assert spent <= limit or not limit
    assert usage(store, "tokens_per_day") == (spent if limit else 0)


@pytest.mark.spec("B47", "G3")
def test_due_dreams_wait_for_the_next_hour(clock: ManualClock) -> None:
    limits = RateLimits(InMemoryStore(), LimitSettings(dreams_per_hour=2), clock)
    clock.advance(seconds=60)
    assert [limits.start_dream() for _ in range(3)] == [None, None, datetime(2026, 1, 1, 1, tzinfo=UTC)]
    clock.advance(seconds=3_600)
    assert limits.start_dream() is None


@pytest.mark.spec("B47", "G3")
def test_upkeep_respects_the_dreams_per_hour(tmp_path: Path, clock: ManualClock) -> None:
    settings = {"limits.dreams_per_hour": 1, "dream.first_minutes": 0, "dream.min_crystals": 1}
    with Memory.open(tmp_path, clock=clock, embedder=None, settings=settings) as memory:
        for resource in ("ada", "ben"):
            memory.resource(resource).note("Just so")
        assert [len(memory.run_upkeep().dreams) for _ in range(2)] == [1, 0]
        clock.advance(seconds=3_600)
        assert [len(memory.run_upkeep().dreams) for _ in range(2)] == [1, 0]


@pytest.mark.spec("B47", "G3")
def test_a_due_dream_starts_only_if_a_model_call_is_available(clock: ManualClock) -> None:
    store = InMemoryStore()
    limits = RateLimits(store, LimitSettings(model_calls_per_minute=2, dreams_per_hour=9), clock)
    minute = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert (limits.dreams_available(), limits.start_dream(), limits.start_dream(lambda _: 2)) == (
        2,
        None,
        minute,
    )
    for _ in range(2):
        limits.reserve((1, 1), PRICES)
    assert (limits.dreams_available(), limits.start_dream()) == (0, minute)
    assert usage(store, "dreams_per_hour", timedelta(hours=1)) == 1, "a waiting dream has not started"
    clock.advance(seconds=60)
    assert (limits.dreams_available(), limits.start_dream()) == (2, None)


ONCE_A_MINUTE = {"limits.model_calls_per_minute": 1, "dream.first_minutes": 0, "dream.min_crystals": 1}


@pytest.fixture
def limited_memory(tmp_path: Path, clock: ManualClock) -> Iterator[LimitedMemory]:
    with LimitedMemory(tmp_path, clock) as memory_with_model:
        yield memory_with_model


class LimitedMemory:
    """A memory whose model may be called once a minute; records the times of the calls."""

    name = "some-model"

    def __init__(self, home: Path, clock: ManualClock) -> None:
        self.memory = Memory.open(home, clock=clock, embedder=None, settings=ONCE_A_MINUTE, model=self)
        self.clock, self.calls, self.events = clock, list[str](), list[str]()
        self.unusable = 0
        for resource in ("ada", "ben"):
            self.memory.resource(resource).note("Just so")

    def __enter__(self) -> LimitedMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self.memory.close()

    def ask(self, question: Question, /, *, seconds: float) -> ModelReply:  # noqa: ARG002 -- the port's
        self.calls.append(f"{self.clock.now:%M:%S}")
        return ModelReply(text="no" if len(self.calls) <= self.unusable else '{"edits": []}', tokens=(9, 1))

    def watch(self, phase: str, detail: str) -> None:
        self.events.append(f"{phase} {detail}")

    @property
    def is_waiting(self) -> bool:
        return self.events[-1].startswith("propose waiting until 2026-01-01T00:01:00Z: limit of model calls")

    def advance_clock(self) -> bool:
        """Let time pass while a dream waits; never cancels it."""
        if self.events and self.is_waiting:
            self.clock.advance(seconds=25)
        return False

    def dream(self, resource: str, cancelled: Callable[[], bool] | None = None) -> Dream:
        return self.memory.dream(resource, watch=self.watch, cancelled=cancelled or self.advance_clock)


@pytest.mark.spec("B47", "G3")
def test_upkeep_postpones_a_dream_without_an_available_call(limited_memory: LimitedMemory) -> None:
    dreams = [*limited_memory.memory.run_upkeep().dreams, *limited_memory.memory.run_upkeep().dreams]
    assert [(dream.resource, dream.by, dream.status) for dream in dreams] == [("ada", "some-model", "done")]
    assert limited_memory.memory.resource("ben").state.dreams.last_started_at is None
    limited_memory.clock.advance(seconds=60)
    (dream,) = limited_memory.memory.run_upkeep().dreams
    assert (dream.resource, dream.by, dream.reason) == ("ben", "some-model", "")
    assert limited_memory.calls == ["00:00", "01:00"]


@pytest.mark.spec("B47")
def test_a_requested_dream_waits_for_the_next_minute_and_keeps_its_lease(limited_memory: LimitedMemory) -> None:
    first, second = limited_memory.dream("ada"), limited_memory.dream("ben")
    assert [(dream.status, dream.by, dream.reason) for dream in (first, second)] == [("done", "some-model", "")] * 2
    assert [event.startswith("propose waiting") for event in limited_memory.events].count(True) == 1
    assert limited_memory.calls == ["00:00", "01:15"]


@pytest.mark.spec("B47", "G12")
def test_a_second_question_waits_for_the_next_minute_too(limited_memory: LimitedMemory) -> None:
    limited_memory.unusable = 1
    dream = limited_memory.dream("ada")
    assert (dream.status, dream.by, dream.tokens, limited_memory.calls) == (
        "done",
        "some-model",
        (18, 2),
        ["00:00", "01:15"],
    )


@pytest.mark.spec("B47", "G7")
def test_a_waiting_dream_can_be_cancelled_and_calls_no_model(limited_memory: LimitedMemory) -> None:
    limited_memory.dream("ada")
    dream = limited_memory.dream("ben", cancelled=lambda: limited_memory.is_waiting)
    assert (dream.status, dream.code, dream.tokens, len(limited_memory.calls)) == (
        "failed",
        "DREAM_OVERTAKEN",
        (0, 0),
        1,
    )


@pytest.mark.spec("B47", "G7")
def test_a_dream_released_before_its_second_question_resumes_there(limited_memory: LimitedMemory) -> None:
    limited_memory.unusable = 1

    def release() -> bool:
        if limited_memory.is_waiting:
            raise LeaseReleased("shutdown")
        return False

    with pytest.raises(LeaseReleased):
        limited_memory.dream("ada", cancelled=release)
    limited_memory.clock.advance(seconds=60)
    dream = limited_memory.dream("ada")
    assert (dream.status, dream.by, dream.tokens, limited_memory.calls) == (
        "done",
        "some-model",
        (18, 2),
        ["00:00", "01:00"],
    )


@pytest.mark.spec("B47")
@pytest.mark.parametrize(("reason", "failures"), [("it hung", 1), (f"{LIMIT_REACHED}of a day", 0)])
def test_a_reached_limit_is_no_failure_of_the_model(reason: str, failures: int) -> None:
    now = ManualClock()()
    running = ActiveDream(dream=1, started_at=now, lease_until=now, gathered_at=now, proposer="some-model")
    committed = DreamCommitted(dream=1, proposer="rules", last_seq=0, journal_position=0, fallback_reason=reason)
    event = Event(stream="resource/ada", seq=2, at=now, payload=committed, origin=Origin.DREAM, trust=Trust.AGENT)
    assert DreamingState(running=running).apply(event).model_failures == failures
