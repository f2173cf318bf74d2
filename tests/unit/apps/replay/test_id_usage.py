"""Where an id stands, and where only something longer does."""

from __future__ import annotations

import json

import pytest
from builders import a_call, a_result, assistant, user
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.apps.replay import Recording
from inmind.apps.replay.id_usage import IdLocations
from inmind.core.text import contains_id

pytestmark = pytest.mark.spec("I8")

SYSTEM = [{"role": "system", "content": "The shop is shop-1."}]
SAID = [
    user("Cancel W77 please"),
    a_call("c1", "get_order", '{"order_id": "W77"}'),
    a_result("c1", '{"items": [{"item_id": 771}]}'),
    assistant("Item 771 of W77?"),
]


@pytest.fixture
def said() -> IdLocations:
    return IdLocations(Recording(name="r", format="openai", messages=SAID, system=SYSTEM))


def test_an_id_is_known_from_the_first_message_that_says_it(said: IdLocations) -> None:
    assert [said.appeared_before("771", before) for before in range(5)] == [False, False, False, True, True]
    assert said.appeared_before("shop-1", before=0)
    assert not said.appeared_before("c1", before=4)  # the name of a call is between machines


def test_an_id_is_sent_with_the_messages_that_have_it_and_one_of_the_system_prompt_always(said: IdLocations) -> None:
    assert [said.is_sent("W77", start, 4) for start in range(5)] == [True, True, True, True, False]
    assert not said.is_sent("W77", 2, 3)
    assert said.is_sent("shop-1", 3, 4)


def test_an_id_first_said_by_the_user_is_the_users(said: IdLocations) -> None:
    assert said.is_first_from_user("W77")
    assert not said.is_first_from_user("771")
    assert not said.is_first_from_user("shop-1")
    assert not said.is_first_from_user("never")


@each_row(
    ("text", "id", "there"),
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
def test_an_id_is_found_whole_and_also_as_json_writes_it(text: str, id: str, there: bool) -> None:
    assert contains_id(text, id) is there


@given(before=st.text(), id=st.text(min_size=1), after=st.text())
def test_an_id_between_spaces_is_always_found(before: str, id: str, after: str) -> None:
    assert contains_id(f"{before} {id} {after}", id)
    assert contains_id(json.dumps({"id": id}), id)
