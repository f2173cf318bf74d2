"""The fold of scratchpads: whatever the journal holds, it adds up."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from builders import an_event

from inmind.journal import Event, Happened, PadBegun, PadMerged, PadSetAside, PadWritten, SessionOpened, Trust
from inmind.scratchpad.pad import Pad, Pads


def folded(*happened: Happened) -> Pads:
    pads = Pads()
    for seq, what in enumerate(happened, start=1):
        pads = pads.apply(an_event(what, seq))
    return pads


def state_of(*happened: Happened) -> Any:
    pad = folded(*happened).get("p")
    return pad.state if pad else None


def trusted(what: Happened, seq: int, trust: Trust) -> Event:
    return replace(an_event(what, seq), trust=trust)


@pytest.mark.spec("A2", "C2")
@pytest.mark.parametrize(
    ("happened", "state"),
    [
        ([], None),
        ([PadBegun("p", "template")], "template"),
        ([PadBegun("p", {"a": 1}), PadMerged("p", {"b": 2})], {"a": 1, "b": 2}),
        ([PadWritten("p", "one"), PadWritten("p", "two")], "two"),
        ([PadWritten("p", "one"), PadWritten("p", "two", append=True)], "one\ntwo"),
        ([PadWritten("p", "two", append=True)], "two"),
        ([PadMerged("p", {"a": {"b": 1}}), PadMerged("p", {"a": {"c": 2}}, (("a", "b"),))], {"a": {"c": 2}}),
        ([PadMerged("p", {"a": 1}), PadSetAside("p", "old")], {}),
        ([PadMerged("other", {"a": 1})], None),
        ([PadWritten("p", "text"), PadMerged("p", {"a": 1})], {"a": 1}),
        ([PadMerged("p", {"a": 1}), PadWritten("p", "text", append=True)], "text"),
        ([PadSetAside("p", "nothing was there"), PadWritten("p", "text", append=True)], "text"),
        ([SessionOpened("ada", "/"), PadWritten("p", "text")], "text"),
    ],
)
def test_every_sequence_of_events_leads_to_a_state(happened: list[Happened], state: object) -> None:
    assert state_of(*happened) == state


@pytest.mark.spec("A2")
def test_a_pad_knows_the_event_that_wrote_it_last() -> None:
    pads = folded(PadWritten("p", "one"), PadWritten("other", "x"), PadWritten("p", "two", append=True))
    assert pads.get("p") == Pad("one\ntwo", version=3, source="session/s#3", trust=Trust.PERSON)


@pytest.mark.spec("J5")
@pytest.mark.parametrize(
    ("events", "trust"),
    [
        ([(PadBegun("p", {}), Trust.OPERATOR), (PadMerged("p", {"a": 1}), Trust.AGENT)], Trust.AGENT),
        ([(PadMerged("p", {"a": 1}), Trust.DATA), (PadMerged("p", {"a": 2}), Trust.OPERATOR)], Trust.DATA),
        ([(PadWritten("p", "a"), Trust.DATA), (PadWritten("p", "b", append=True), Trust.PERSON)], Trust.DATA),
        ([(PadWritten("p", "a"), Trust.DATA), (PadWritten("p", "b"), Trust.PERSON)], Trust.PERSON),
        ([(PadMerged("p", {"a": 1}), Trust.DATA), (PadSetAside("p", "old"), Trust.OPERATOR)], Trust.OPERATOR),
        ([(PadMerged("p", {"a": 1}), Trust.DATA), (PadBegun("p", {"b": 1}), Trust.PERSON)], Trust.PERSON),
        ([(PadWritten("p", "a"), Trust.DATA), (PadMerged("p", {"b": 1}), Trust.PERSON)], Trust.PERSON),
    ],
)
def test_a_pad_is_trusted_no_more_than_the_least_of_what_went_into_it(
    events: list[tuple[Happened, Trust]], trust: Trust
) -> None:
    pads = Pads()
    for seq, (what, least) in enumerate(events, start=1):
        pads = pads.apply(trusted(what, seq, least))
    pad = pads.get("p")
    assert pad is not None
    assert pad.trust is trust


@pytest.mark.spec("A2")
def test_a_snapshot_gives_the_pads_back() -> None:
    pads = folded(PadMerged("p", {"a": {"b": [1, None]}}), PadWritten("notes", "关于我们"))
    assert Pads.thaw(json.loads(json.dumps(pads.freeze())), "session/s") == pads


def test_a_state_of_the_past_stays_what_it_was() -> None:
    earlier = folded(PadMerged("p", {"a": {"b": 1}}))
    later = earlier.apply(an_event(PadMerged("p", {"a": {"b": 2}}), 2))
    assert earlier.by_name["p"].state == {"a": {"b": 1}}
    assert later.by_name["p"].state == {"a": {"b": 2}}
