"""Events are typed, have an origin, and decode to what was encoded."""

from __future__ import annotations

import dataclasses
import json

import pytest
from builders import an_event
from tables import each_row

from inmind.core.encoding import digest_of, from_microseconds, to_microseconds
from inmind.core.events import KINDS, decode_payload, encode_payload
from inmind.core.events.base import Draft, EventPayload, Origin, Trust
from inmind.core.events.session import (
    AnchoredBlock,
    AnchorMoved,
    EntitySighting,
    MessageAdded,
    PromptPrepared,
    SessionOpened,
    Stub,
)
from inmind.errors import Damaged


@pytest.mark.spec("A1")
def test_an_event_has_seq_id_time_kind_payload_origin_and_sources() -> None:
    event = an_event(MessageAdded(wire={"role": "user", "content": "hi"}), seq=7)
    assert (event.id, event.kind, event.origin, event.trust) == ("session/s#7", "message", "user", Trust.PERSON)
    assert event.at.tzinfo is not None
    assert event.sources == ()


def test_kinds_are_unique_and_short() -> None:
    assert len(KINDS) == 49
    assert all(kind.islower() and len(kind) <= 14 for kind in KINDS)


def test_fields_at_their_default_are_not_written() -> None:
    assert json.loads(encode_payload(MessageAdded(wire={"role": "user"}))) == {"wire": {"role": "user"}}


@pytest.mark.parametrize("payload", [*KINDS.values(), Stub, EntitySighting])
def test_stored_names_are_listed_only_for_fields_that_exist(
    payload: type[EventPayload] | type[Stub] | type[EntitySighting],
) -> None:
    assert dict(payload.stored_names).keys() <= {field.name for field in dataclasses.fields(payload)}


def test_a_renamed_field_is_stored_under_its_old_name() -> None:
    opened = SessionOpened("ada", "/tmp", inheritance=(("notes", "fork"),))
    assert json.loads(encode_payload(opened)) == {"resource": "ada", "cwd": "/tmp", "handed": [["notes", "fork"]]}
    assert decode_payload("opened", encode_payload(opened)) == opened


def test_nested_values_decode_as_values() -> None:
    moved = AnchorMoved(reason="first call", blocks=(AnchoredBlock("overview", "text", 2, ("session/s#1",)),))
    assert decode_payload("anchor", encode_payload(moved)) == moved
    prepared = PromptPrepared("d", used=1, cached=2, written=3, largest=((7, 8),))
    assert decode_payload("prompt", encode_payload(prepared)) == prepared


@each_row(
    ("kind", "body"),
    [("message", "{"), ("message", "[]"), ("os.system", "{}"), ("message", '{"wire":{},"extra":1}'), ("message", "{}")],
)
def test_an_invalid_row_raises_damaged_and_creates_no_object(kind: str, body: str) -> None:
    with pytest.raises(Damaged) as caught:
        decode_payload(kind, body)
    assert caught.value.code == "DAMAGED"


@each_row(
    ("origin", "requested", "expected"),
    [
        (Origin.USER, None, Trust.PERSON),
        (Origin.TOOL, None, Trust.DATA),
        (Origin.DREAM, None, Trust.AGENT),
        (Origin.OPERATOR, Trust.DATA, Trust.DATA),
        (Origin.TOOL, Trust.OPERATOR, Trust.DATA),
    ],
)
def test_trust_comes_from_the_origin_and_can_only_be_lowered(
    origin: Origin, requested: Trust | None, expected: Trust
) -> None:
    assert Draft(payload=MessageAdded(wire={}), origin=origin, trust=requested).effective_trust is expected


def test_a_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": "1"})


def test_a_time_survives_to_the_microsecond() -> None:
    at = from_microseconds(1_799_999_999_123_457)
    assert to_microseconds(at) == 1_799_999_999_123_457
