"""The fold of scratchpads accepts any sequence of events."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import an_event, through_json
from tables import each_row

from inmind.core.events.base import Event, EventPayload, Trust
from inmind.core.events.documents import ScratchpadMerged, ScratchpadSetAside, ScratchpadStarted, ScratchpadWritten
from inmind.core.events.session import SessionOpened
from inmind.documents.scratchpad.state import SavedScratchpad, Scratchpads


def fold(*payloads: EventPayload) -> Scratchpads:
    pads = Scratchpads()
    for seq, payload in enumerate(payloads, start=1):
        pads = pads.apply(an_event(payload, seq))
    return pads


def state_of(*payloads: EventPayload) -> Any:
    pad = fold(*payloads).get("p")
    return pad.state if pad else None


def event_with_trust(payload: EventPayload, seq: int, trust: Trust) -> Event:
    return replace(an_event(payload, seq), trust=trust)


@pytest.mark.spec("A2", "C2")
@each_row(
    ("payloads", "state"),
    [
        ([], None),
        ([ScratchpadStarted("p", "template")], "template"),
        ([ScratchpadStarted("p", {"a": 1}), ScratchpadMerged("p", {"b": 2})], {"a": 1, "b": 2}),
        ([ScratchpadWritten("p", "one"), ScratchpadWritten("p", "two")], "two"),
        ([ScratchpadWritten("p", "one"), ScratchpadWritten("p", "two", append=True)], "one\ntwo"),
        ([ScratchpadWritten("p", "two", append=True)], "two"),
        (
            [ScratchpadMerged("p", {"a": {"b": 1}}), ScratchpadMerged("p", {"a": {"c": 2}}, (("a", "b"),))],
            {"a": {"c": 2}},
        ),
        ([ScratchpadMerged("p", {"a": 1}), ScratchpadSetAside("p", "old")], {}),
        ([ScratchpadMerged("other", {"a": 1})], None),
        ([ScratchpadWritten("p", "text"), ScratchpadMerged("p", {"a": 1})], {"a": 1}),
        ([ScratchpadMerged("p", {"a": 1}), ScratchpadWritten("p", "text", append=True)], "text"),
        ([ScratchpadSetAside("p", "old"), ScratchpadWritten("p", "text", append=True)], "text"),
        ([SessionOpened("ada", "/"), ScratchpadWritten("p", "text")], "text"),
    ],
)
def test_every_sequence_of_events_gives_a_state(payloads: list[EventPayload], state: object) -> None:
    assert state_of(*payloads) == state


@pytest.mark.spec("A2")
def test_a_scratchpad_has_the_source_of_its_last_write() -> None:
    pads = fold(
        ScratchpadWritten("p", "one"), ScratchpadWritten("other", "x"), ScratchpadWritten("p", "two", append=True)
    )
    assert pads.get("p") == SavedScratchpad("one\ntwo", version=3, source="session/s#3", trust=Trust.PERSON)


@pytest.mark.spec("J5")
@each_row(
    ("events", "trust"),
    [
        ([(ScratchpadStarted("p", {}), Trust.OPERATOR), (ScratchpadMerged("p", {"a": 1}), Trust.AGENT)], Trust.AGENT),
        (
            [(ScratchpadMerged("p", {"a": 1}), Trust.DATA), (ScratchpadMerged("p", {"a": 2}), Trust.OPERATOR)],
            Trust.DATA,
        ),
        (
            [(ScratchpadWritten("p", "a"), Trust.DATA), (ScratchpadWritten("p", "b", append=True), Trust.PERSON)],
            Trust.DATA,
        ),
        ([(ScratchpadWritten("p", "a"), Trust.DATA), (ScratchpadWritten("p", "b"), Trust.PERSON)], Trust.PERSON),
        (
            [(ScratchpadMerged("p", {"a": 1}), Trust.DATA), (ScratchpadSetAside("p", "old"), Trust.OPERATOR)],
            Trust.OPERATOR,
        ),
        (
            [(ScratchpadMerged("p", {"a": 1}), Trust.DATA), (ScratchpadStarted("p", {"b": 1}), Trust.PERSON)],
            Trust.PERSON,
        ),
        ([(ScratchpadWritten("p", "a"), Trust.DATA), (ScratchpadMerged("p", {"b": 1}), Trust.PERSON)], Trust.PERSON),
    ],
)
def test_a_scratchpad_has_the_lowest_trust_of_its_events(
    events: list[tuple[EventPayload, Trust]], trust: Trust
) -> None:
    pads = Scratchpads()
    for seq, (payload, event_trust) in enumerate(events, start=1):
        pads = pads.apply(event_with_trust(payload, seq, event_trust))
    pad = pads.get("p")
    assert pad is not None
    assert pad.trust is trust


@pytest.mark.spec("A2")
def test_a_snapshot_restores_the_scratchpads() -> None:
    pads = fold(ScratchpadMerged("p", {"a": {"b": [1, None]}}), ScratchpadWritten("notes", "关于我们"))
    assert through_json(pads) == pads


def test_applying_an_event_does_not_change_the_earlier_state() -> None:
    earlier = fold(ScratchpadMerged("p", {"a": {"b": 1}}))
    later = earlier.apply(an_event(ScratchpadMerged("p", {"a": {"b": 2}}), 2))
    assert earlier.by_name["p"].state == {"a": {"b": 1}}
    assert later.by_name["p"].state == {"a": {"b": 2}}
