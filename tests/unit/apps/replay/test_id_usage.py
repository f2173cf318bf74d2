"""Locations of an id in a recording, excluding longer words that contain it."""

from __future__ import annotations

import json

import pytest
from builders import a_call, a_result, assistant, user
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.apps.replay import Recording
from inmind.apps.replay.player import IdLocations
from inmind.core.text import contains_id

pytestmark = pytest.mark.spec("I8")

SYSTEM = [{"role": "system", "content": "The shop is shop-1."}]
MESSAGES = [
    user("Cancel W77 please"),
    a_call("c1", "get_order", '{"order_id": "W77"}'),
    a_result("c1", '{"items": [{"item_id": 771}]}'),
    assistant("Item 771 of W77?"),
]


@pytest.fixture
def locations() -> IdLocations:
    return IdLocations(Recording(name="r", format="openai", messages=MESSAGES, system=SYSTEM))


def test_an_id_is_known_after_the_first_message_that_contains_it(locations: IdLocations) -> None:
    assert [locations.appeared_before("771", before) for before in range(5)] == [False, False, False, True, True]
    assert locations.appeared_before("shop-1", before=0)
    assert not locations.appeared_before("c1", before=4)  # call ids are not part of the conversation


def test_an_id_is_sent_with_a_message_that_contains_it_or_with_the_system_prompt(locations: IdLocations) -> None:
    assert [locations.is_sent("W77", start, 4) for start in range(5)] == [True, True, True, True, False]
    assert not locations.is_sent("W77", 2, 3)
    assert locations.is_sent("shop-1", 3, 4)


def test_an_id_first_written_by_the_user_is_from_the_user(locations: IdLocations) -> None:
    assert locations.is_first_from_user("W77")
    assert not locations.is_first_from_user("771")
    assert not locations.is_first_from_user("shop-1")
    assert not locations.is_first_from_user("never")


@each_row(
    ("text", "id", "is_present"),
    [
        ("page-12", "page-1", False),
        ("page-12, page-1.", "page-1", True),
        ("order W77x", "W77", False),
        ("order xW77", "W77", False),
        ("删除W77页面", "W77", True),
        ("#W77#", "#W77", True),
        (r'{"name": "caf\u00e9 1"}', "café 1", True),
        (r'{"path": "C:\\temp"}', r"C:\temp", True),
        ("anything", "", False),
    ],
)
def test_only_whole_ids_match_and_json_escapes_are_decoded(text: str, id: str, is_present: bool) -> None:
    assert contains_id(text, id) is is_present


@given(before=st.text(), id=st.text(min_size=1), after=st.text())
def test_an_id_between_spaces_is_always_found(before: str, id: str, after: str) -> None:
    assert contains_id(f"{before} {id} {after}", id)
    assert contains_id(json.dumps({"id": id}), id)
