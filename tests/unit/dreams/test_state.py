"""The folded state of dreaming: holder, stage and cost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from builders import through_json
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.events import decode_payload
from inmind.core.events.base import Event, EventPayload, Origin, Trust
from inmind.core.events.dreams import (
    DreamAnswered,
    DreamChecked,
    DreamCommitted,
    DreamFailed,
    DreamGathered,
    DreamProgressed,
    DreamProposed,
    DreamResumed,
    DreamStarted,
)
from inmind.dreams.state import LEASE_DURATION, MAX_RESUME_AGE, ActiveDream, DreamingState

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
UNTIL = (NOON + LEASE_DURATION).isoformat()

STARTED = DreamStarted(trigger="asked", lease_until=UNTIL, proposer="dear", holder="one")
GATHERED = DreamGathered(
    dream=1, lease_until=UNTIL, last_seq=1, journal_position=7, as_of=(NOON + timedelta(seconds=5)).isoformat()
)
ANSWERED = DreamAnswered(dream=1, lease_until=UNTIL, text="{}", proposer="dear", tokens=(40, 5), price=0.25)
PROPOSED = DreamProposed(dream=1, lease_until=UNTIL, proposer="dear", tokens=(90, 10), price=0.5)
CHECKED = DreamChecked(dream=1, lease_until=UNTIL)
RESUMED = DreamResumed(dream=1, lease_until=(NOON + 3 * LEASE_DURATION).isoformat(), holder="other", proposer="dear")
COMMITTED = DreamCommitted(dream=1, proposer="dear", last_seq=1, journal_position=7, tokens=(90, 10), price=0.5)
FAILED = DreamFailed(dream=1, phase="check", code="X", reason="why", tokens=(90, 10))


def fold_state(*payloads: EventPayload, at: datetime = NOON) -> DreamingState:
    dreaming = DreamingState()
    for event in events(payloads, at):
        dreaming = dreaming.apply(event)
    return dreaming


def events(payloads: Iterable[EventPayload], at: datetime = NOON) -> list[Event]:
    return [
        Event(stream="resource/ada", seq=seq, at=at, payload=payload, origin=Origin.DREAM, trust=Trust.AGENT)
        for seq, payload in enumerate(payloads, start=1)
    ]


def running(*payloads: EventPayload) -> ActiveDream:
    dream = fold_state(STARTED, *payloads).running
    assert dream is not None
    return dream


@pytest.mark.spec("G7", "J9")
def test_the_input_ends_at_the_event_that_started_the_dream() -> None:
    started = running()
    assert (started.phase, started.holder, started.gathered, started.gathered_at) == ("gather", "one", 1, NOON)
    answered = running(ANSWERED)
    assert (answered.phase, answered.gathered, answered.answers) == ("propose", 1, 1)


@pytest.mark.spec("G7", "M37")
def test_in_an_old_journal_the_input_ends_at_the_event_that_it_was_gathered() -> None:
    old = running(GATHERED, ANSWERED, PROPOSED, CHECKED)
    assert (old.gathered, old.gathered_at, old.answers) == (2, NOON + timedelta(seconds=5), 1)
    assert (old.tokens, old.price) == ((130, 15), 0.75)


@pytest.mark.spec("G7", "K22")
@each_row(
    "payload", [GATHERED, ANSWERED, PROPOSED, CHECKED, DreamProgressed(1, "propose", UNTIL)], ids=lambda w: w.kind
)
def test_every_progress_event_extends_the_lease(payload: EventPayload) -> None:
    longer = (NOON + 3 * LEASE_DURATION).isoformat()
    assert running(replace(payload, lease_until=longer)).lease_until == NOON + 3 * LEASE_DURATION
    assert running(replace(payload, lease_until=longer, dream=9)).lease_until == NOON + LEASE_DURATION, (
        "of another dream"
    )


@pytest.mark.spec("B47", "G7", "J9")
def test_a_takeover_keeps_answers_and_otherwise_gathers_again() -> None:
    answered = running(ANSWERED, RESUMED, ANSWERED)
    assert (answered.gathered, answered.answers, answered.tokens, answered.price) == (1, 2, (80, 10), 0.5)
    unanswered = running(RESUMED)
    assert (unanswered.gathered, unanswered.answers) == (2, 0)


@pytest.mark.spec("B47", "G7", "J9")
def test_a_takeover_after_a_day_gathers_again_and_keeps_the_cost() -> None:
    state = fold_state(STARTED, ANSWERED)
    (late,) = events([RESUMED], NOON + MAX_RESUME_AGE)
    dream = state.apply(replace(late, seq=3)).running
    assert dream is not None
    assert (dream.gathered, dream.gathered_at, dream.answers) == (3, NOON + MAX_RESUME_AGE, 0)
    assert (dream.tokens, dream.price) == ((40, 5), 0.25)


@pytest.mark.spec("J9")
def test_a_takeover_keeps_the_number_of_the_dream() -> None:
    taken = running(ANSWERED, RESUMED)
    assert (taken.dream, taken.phase, taken.holder, taken.started_at) == (1, "propose", "other", NOON)
    assert taken.is_held(NOON + 2 * LEASE_DURATION)
    assert fold_state(STARTED, replace(RESUMED, dream=9)).running == running(), "the event is of another dream"


@pytest.mark.spec("B47", "J9")
def test_a_takeover_counts_a_failure_but_not_of_a_model_that_answered() -> None:
    unanswered, answered = fold_state(STARTED, RESUMED), fold_state(STARTED, ANSWERED, RESUMED)
    assert (unanswered.failures, unanswered.model_failures) == (1, 1)
    assert (answered.failures, answered.model_failures) == (1, 0)
    done = fold_state(STARTED, RESUMED, ANSWERED, COMMITTED)
    assert (done.failures, done.model_failures, done.last_dream, done.running) == (0, 0, 1, None)


@pytest.mark.spec("C08", "J9")
@pytest.mark.parametrize("next", [RESUMED, STARTED])
def test_a_released_dream_is_no_failure(next: EventPayload) -> None:
    released = DreamProgressed(1, "propose", NOON.isoformat(), released=True)
    dreaming = fold_state(STARTED, GATHERED, released, next)
    assert (dreaming.failures, dreaming.model_failures) == (0, 0)
    dreaming = fold_state(STARTED, GATHERED, released, RESUMED, replace(RESUMED, holder="third"))
    assert (dreaming.failures, dreaming.model_failures) == (1, 1), "the next holder disappeared without releasing it"


@pytest.mark.spec("B47", "J9")
@each_row("end", [(), (COMMITTED,), (FAILED,), (RESUMED, FAILED), (STARTED,), (RESUMED, COMMITTED)])
def test_an_answer_is_counted_once_whatever_the_outcome(end: tuple[EventPayload, ...]) -> None:
    assert fold_state(STARTED, GATHERED, PROPOSED, *end).tokens_on(NOON) == 100
    assert fold_state(STARTED, replace(ANSWERED, tokens=(90, 10)), *end).tokens_on(NOON) == 100


@pytest.mark.spec("B47")
def test_tokens_of_a_dream_without_stages_are_counted_at_its_end() -> None:
    assert fold_state(STARTED, COMMITTED).tokens_on(NOON) == 100
    assert fold_state(STARTED, FAILED).tokens_on(NOON) == 100


@pytest.mark.spec("G3", "J9")
def test_input_after_gathering_is_new_to_the_next_dream() -> None:
    assert fold_state(STARTED, GATHERED, PROPOSED, COMMITTED).last_done_at == NOON + timedelta(seconds=5)
    assert fold_state(STARTED, ANSWERED, COMMITTED).last_done_at == NOON


@pytest.mark.spec("K22")
def test_a_dream_is_resumable_for_a_day_unless_the_clock_is_wrong() -> None:
    gathered_at = NOON + timedelta(seconds=5)
    dream = running(GATHERED, PROPOSED)
    assert dream.is_resumable(gathered_at - LEASE_DURATION)
    assert dream.is_resumable(gathered_at + MAX_RESUME_AGE - timedelta(microseconds=1))
    assert not dream.is_resumable(gathered_at + MAX_RESUME_AGE)
    assert not dream.is_resumable(gathered_at - LEASE_DURATION - timedelta(microseconds=1))


def test_events_without_a_holder_are_still_read() -> None:
    started = decode_payload("dream_begun", json.dumps({"trigger": "asked", "until": UNTIL, "by": "rules"}))
    progressed = decode_payload("dream_went", json.dumps({"dream": 1, "phase": "propose", "until": UNTIL}))
    dreaming = fold_state(started, progressed)
    assert dreaming.running == ActiveDream(
        dream=1, started_at=NOON, lease_until=NOON + LEASE_DURATION, gathered=1, gathered_at=NOON
    )


NUMBERS = st.integers(1, 4)
TOKENS = st.tuples(st.integers(0, 9), st.integers(0, 9))
PAYLOADS = st.lists(
    st.one_of(
        st.just(STARTED),
        st.builds(DreamResumed, dream=NUMBERS, lease_until=st.just(UNTIL), holder=st.sampled_from("ab")),
        st.builds(DreamProgressed, dream=NUMBERS, phase=st.just("propose"), lease_until=st.just(UNTIL)),
        st.builds(replace, st.just(GATHERED), dream=NUMBERS),
        st.builds(replace, st.just(ANSWERED), dream=NUMBERS, tokens=TOKENS),
        st.builds(DreamProposed, dream=NUMBERS, lease_until=st.just(UNTIL), tokens=TOKENS),
        st.builds(replace, st.just(CHECKED), dream=NUMBERS),
        st.builds(replace, st.just(COMMITTED), dream=NUMBERS, tokens=TOKENS),
        st.builds(replace, st.just(FAILED), dream=NUMBERS, tokens=TOKENS),
    ),
    max_size=20,
)


@pytest.mark.spec("A2", "G7", "J9")
@given(PAYLOADS)
def test_any_state_freezes_and_belongs_to_the_last_started_dream(
    payloads: list[EventPayload],
) -> None:
    dreaming, started = DreamingState(), 0
    for event in events(payloads):
        before, dreaming = dreaming, dreaming.apply(event)
        started = event.seq if isinstance(event.payload, DreamStarted) else started
        assert through_json(dreaming) == dreaming
        assert dreaming.running is None or dreaming.running.dream == started
        cost = getattr(event.payload, "tokens", (0, 0))
        assert 0 <= dreaming.tokens_on(NOON) - before.tokens_on(NOON) <= sum(cost)
        assert dreaming.failures >= before.failures or isinstance(event.payload, DreamCommitted)
