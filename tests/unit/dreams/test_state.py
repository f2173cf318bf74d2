"""Where dreaming stands, folded: whose dream it is, how far it has come, and what was paid for it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.encoding import to_json
from inmind.core.events.base import Event, EventPayload, Origin, Trust
from inmind.core.events.codec import decode_payload
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
from inmind.dreams.state import LEASE_DURATION, MAX_RESUME_AGE, PHASE_AFTER, ActiveDream, DreamingState, Stage
from inmind.jobs.dreaming.runner import PHASES

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
UNTIL = (NOON + LEASE_DURATION).isoformat()

BEGUN = DreamStarted(trigger="asked", lease_until=UNTIL, proposer="dear", holder="one")
GATHERED = DreamGathered(
    dream=1, lease_until=UNTIL, last_seq=1, journal_position=7, as_of=(NOON + timedelta(seconds=5)).isoformat()
)
ANSWERED = DreamAnswered(dream=1, lease_until=UNTIL, text="{}", proposer="dear", tokens=(40, 5), price=0.25)
PROPOSED = DreamProposed(dream=1, lease_until=UNTIL, proposer="dear", tokens=(90, 10), price=0.5)
CHECKED = DreamChecked(dream=1, lease_until=UNTIL)
TAKEN = DreamResumed(dream=1, lease_until=(NOON + 3 * LEASE_DURATION).isoformat(), holder="other", proposer="dear")
DREAMT = DreamCommitted(dream=1, proposer="dear", last_seq=1, journal_position=7, tokens=(90, 10), price=0.5)
FAILED = DreamFailed(dream=1, phase="check", code="X", reason="why", tokens=(90, 10))


def folded(*happened: EventPayload, at: datetime = NOON) -> DreamingState:
    dreaming = DreamingState()
    for event in events(happened, at):
        dreaming = dreaming.apply(event)
    return dreaming


def events(happened: Iterable[EventPayload], at: datetime = NOON) -> list[Event]:
    return [
        Event(stream="resource/ada", seq=seq, at=at, payload=what, origin=Origin.DREAM, trust=Trust.AGENT)
        for seq, what in enumerate(happened, start=1)
    ]


def running(*happened: EventPayload) -> ActiveDream:
    found = folded(BEGUN, *happened).running
    assert found is not None
    return found


@pytest.mark.spec("G7", "J9")
def test_the_stage_is_the_last_recorded_one() -> None:
    told = (GATHERED, PROPOSED, CHECKED)
    stages: list[Stage] = [running(*told[:n]).stage for n in range(4)]
    assert stages == ["begun", "gathered", "proposed", "checked"]
    assert [PHASE_AFTER[stage] for stage in stages] == list(PHASES[:4])
    checked = running(*told)
    assert (checked.gathered, checked.proposed, checked.checked) == (2, 3, 4)
    assert (checked.holder, checked.gathered_at) == ("one", NOON + timedelta(seconds=5))


@pytest.mark.spec("G7", "K22")
@each_row("what", [GATHERED, ANSWERED, PROPOSED, CHECKED, DreamProgressed(1, "propose", UNTIL)], ids=lambda w: w.kind)
def test_every_progress_event_extends_the_lease(what: EventPayload) -> None:
    longer = (NOON + 3 * LEASE_DURATION).isoformat()
    assert running(replace(what, lease_until=longer)).lease_until == NOON + 3 * LEASE_DURATION
    assert running(replace(what, lease_until=longer, dream=9)).lease_until == NOON + LEASE_DURATION, "another dream's"


@pytest.mark.spec("G7", "J9")
def test_gathering_again_resets_the_proposal_and_keeps_the_cost() -> None:
    anew = running(GATHERED, PROPOSED, CHECKED, TAKEN, GATHERED)
    assert (anew.stage, anew.gathered, anew.proposed, anew.tokens) == ("gathered", 6, 0, (90, 10))
    again = running(GATHERED, PROPOSED, CHECKED, TAKEN, GATHERED, PROPOSED)
    assert (again.stage, again.tokens, again.price) == ("proposed", (180, 20), 1.0)


@pytest.mark.spec("B47", "G7", "J9")
def test_each_answer_to_what_was_gathered_is_kept_and_counted_beside_what_is_proposed() -> None:
    once = running(GATHERED, ANSWERED)
    assert (once.stage, once.answers, once.has_paid_work, once.tokens) == ("gathered", (3,), True, (40, 5))
    assert running(GATHERED, ANSWERED, TAKEN, ANSWERED).answers == (3, 5)
    proposed = running(GATHERED, ANSWERED, ANSWERED, replace(PROPOSED, tokens=(0, 0), price=0.0))
    assert (proposed.stage, proposed.tokens, proposed.price) == ("proposed", (80, 10), 0.5)
    anew = running(GATHERED, ANSWERED, TAKEN, GATHERED)
    assert (anew.answers, anew.has_paid_work, anew.tokens) == ((), False, (40, 5)), "it was said to something else"


@pytest.mark.spec("J9")
def test_a_takeover_keeps_the_stage() -> None:
    taken = running(GATHERED, PROPOSED, TAKEN)
    assert (taken.dream, taken.stage, taken.holder, taken.started_at) == (1, "proposed", "other", NOON)
    assert taken.is_held(NOON + 2 * LEASE_DURATION)
    assert folded(BEGUN, replace(TAKEN, dream=9)).running == running(), "another dream was meant"


@pytest.mark.spec("B47", "J9")
def test_a_takeover_counts_a_failure_but_not_of_a_model_that_answered() -> None:
    unasked, answered = folded(BEGUN, GATHERED, TAKEN), folded(BEGUN, GATHERED, PROPOSED, TAKEN)
    assert (unasked.failures, unasked.model_failures) == (1, 1)
    assert (answered.failures, answered.model_failures) == (1, 0)
    assert folded(BEGUN, GATHERED, ANSWERED, TAKEN).model_failures == 0
    done = folded(BEGUN, GATHERED, TAKEN, GATHERED, PROPOSED, DREAMT)
    assert (done.failures, done.model_failures, done.last_dream, done.running) == (0, 0, 1, None)


@pytest.mark.spec("C08", "J9")
@pytest.mark.parametrize("next", [TAKEN, BEGUN])
def test_a_released_dream_is_no_failure(next: EventPayload) -> None:
    left = DreamProgressed(1, "propose", NOON.isoformat(), released=True)
    dreaming = folded(BEGUN, GATHERED, left, next)
    assert (dreaming.failures, dreaming.model_failures) == (0, 0)
    dreaming = folded(BEGUN, GATHERED, left, TAKEN, replace(TAKEN, holder="third"))
    assert (dreaming.failures, dreaming.model_failures) == (1, 1), "the one after that was not heard of any more"


@pytest.mark.spec("B47", "J9")
@each_row("end", [(), (DREAMT,), (FAILED,), (TAKEN, FAILED), (BEGUN,), (TAKEN, DREAMT)])
def test_a_proposal_is_counted_once_whatever_the_outcome(end: tuple[EventPayload, ...]) -> None:
    assert folded(BEGUN, GATHERED, PROPOSED, *end).tokens_on(NOON) == 100
    told = replace(ANSWERED, tokens=(90, 10)), replace(PROPOSED, tokens=(0, 0))
    assert folded(BEGUN, GATHERED, *told, *end).tokens_on(NOON) == 100


@pytest.mark.spec("B47")
def test_tokens_of_a_dream_without_stages_are_counted_at_its_end() -> None:
    assert folded(BEGUN, DREAMT).tokens_on(NOON) == 100
    assert folded(BEGUN, FAILED).tokens_on(NOON) == 100


@pytest.mark.spec("G3", "J9")
def test_input_after_gathering_is_new_to_the_next_dream() -> None:
    assert folded(BEGUN, GATHERED, PROPOSED, DREAMT).last_done_at == NOON + timedelta(seconds=5)
    assert folded(BEGUN, DREAMT).last_done_at == NOON


@pytest.mark.spec("K22")
def test_a_dream_is_resumable_for_a_day_unless_the_clock_is_wrong() -> None:
    made_of = NOON + timedelta(seconds=5)
    left = running(GATHERED, PROPOSED)
    assert left.is_resumable(made_of - LEASE_DURATION)
    assert left.is_resumable(made_of + MAX_RESUME_AGE - timedelta(microseconds=1))
    assert not left.is_resumable(made_of + MAX_RESUME_AGE)
    assert not left.is_resumable(made_of - LEASE_DURATION - timedelta(microseconds=1))


def test_events_of_before_there_were_holders_are_read_as_ever() -> None:
    begun = decode_payload("dream_begun", json.dumps({"trigger": "asked", "until": UNTIL, "by": "rules"}))
    went = decode_payload("dream_went", json.dumps({"dream": 1, "phase": "propose", "until": UNTIL}))
    dreaming = folded(begun, went)
    assert dreaming.running == ActiveDream(
        dream=1, started_at=NOON, lease_until=NOON + LEASE_DURATION, gathered_at=NOON
    )


NUMBERS = st.integers(1, 4)
TOKENS = st.tuples(st.integers(0, 9), st.integers(0, 9))
HAPPENED = st.lists(
    st.one_of(
        st.just(BEGUN),
        st.builds(DreamResumed, dream=NUMBERS, lease_until=st.just(UNTIL), holder=st.sampled_from("ab")),
        st.builds(DreamProgressed, dream=NUMBERS, phase=st.just("propose"), lease_until=st.just(UNTIL)),
        st.builds(replace, st.just(GATHERED), dream=NUMBERS),
        st.builds(replace, st.just(ANSWERED), dream=NUMBERS, tokens=TOKENS),
        st.builds(DreamProposed, dream=NUMBERS, lease_until=st.just(UNTIL), tokens=TOKENS),
        st.builds(replace, st.just(CHECKED), dream=NUMBERS),
        st.builds(replace, st.just(DREAMT), dream=NUMBERS, tokens=TOKENS),
        st.builds(replace, st.just(FAILED), dream=NUMBERS, tokens=TOKENS),
    ),
    max_size=20,
)


@pytest.mark.spec("A2", "G7", "J9")
@given(HAPPENED)
def test_any_state_freezes_and_belongs_to_the_last_started_dream(
    happened: list[EventPayload],
) -> None:
    dreaming, begun = DreamingState(), 0
    for event in events(happened):
        before, dreaming = dreaming, dreaming.apply(event)
        begun = event.seq if isinstance(event.payload, DreamStarted) else begun
        assert DreamingState.thaw(json.loads(to_json(dreaming.freeze()))) == dreaming
        assert dreaming.running is None or dreaming.running.dream == begun
        paid = getattr(event.payload, "tokens", (0, 0))
        assert 0 <= dreaming.tokens_on(NOON) - before.tokens_on(NOON) <= sum(paid)
        assert dreaming.failures >= before.failures or isinstance(event.payload, DreamCommitted)
