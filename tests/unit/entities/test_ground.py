"""Which ids in a call were seen before, and which an unknown one may have been meant to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from builders import an_event
from hypothesis import given
from hypothesis import strategies as st

from inmind.entities.ground import MOST_NEAREST, CallCheck, check_call
from inmind.entities.window import Entities
from inmind.journal import EntitiesLeft, EntitiesSeen, Part, ThingSeen

pytestmark = pytest.mark.spec("B8")

LAMP = Part("item", "11112222", "Desk Lamp")
ORDER = ThingSeen("order", "#W2378156", parts=(LAMP,))
USER = ThingSeen("user", "yusuf_rossi_9620", "Yusuf Rossi")
PAGE = ThingSeen("page", "page-123", "About Us")
GONE = ThingSeen("page", "page-666", "Old News")


def in_mind(*things: ThingSeen) -> Entities:
    return Entities().apply(an_event(EntitiesSeen(things)))


SHOP = in_mind(ORDER, USER, PAGE)


def checked(arguments: Any, entities: Entities = SHOP, tool: str = "update_order", **known: Any) -> CallCheck:
    return check_call(tool, arguments, entities, **known)


def standing(arguments: Any, entities: Entities = SHOP, **known: Any) -> str:
    [finding] = checked(arguments, entities, **known).findings
    return finding.standing


def never(id: str) -> bool:
    raise AssertionError(f"nobody had to ask about {id}")


def test_an_id_in_mind_is_held_as_a_thing_and_as_a_part() -> None:
    check = checked({"order_id": "#W2378156", "item_ids": ["11112222"]}, heard=never)
    assert [(f.path, f.standing) for f in check.findings] == [("order_id", "held"), ("item_ids[0]", "held")]
    assert check.ok


def test_an_id_that_left_the_window_is_known() -> None:
    left = SHOP.apply(an_event(EntitiesLeft((ORDER,)), 2))
    assert standing({"order_id": "#W2378156"}, left, heard=never) == "known"


def test_an_id_that_was_only_said_is_heard() -> None:
    assert standing({"order_id": "#W9999999"}, heard={"#W9999999"}.__contains__) == "heard"


def test_other_sessions_are_asked_last_and_once() -> None:
    asked: list[str] = []

    def elsewhere() -> Mapping[str, Part]:
        asked.append("asked")
        return {"#W9999999": Part("order", "#W9999999")}

    assert standing({"order_id": "#W2378156"}, elsewhere=elsewhere) == "held"
    assert asked == []
    check = checked({"order_id": "#W9999999", "user_id": "nobody_1"}, elsewhere=elsewhere)
    assert [finding.standing for finding in check.findings] == ["elsewhere", "unknown"]
    assert asked == ["asked"]


def test_an_invented_id_is_unknown_and_the_call_is_not_ok() -> None:
    check = checked({"order_id": "#X0000001"})
    assert not check.ok
    assert [finding.id for finding in check.unknown] == ["#X0000001"]
    assert check.unknown[0].nearest == ()
    assert "never seen" in str(check)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ({"order_id": "W2378156"}, "#W2378156"),
        ({"order_id": "#w2378156"}, "#W2378156"),
        ({"order_id": "#W2387156"}, "#W2378156"),
        ({"order_id": "#W237815"}, "#W2378156"),
        ({"order_id": "order-W2378156"}, "#W2378156"),
        ({"user_id": "yusuf_rosi_9620"}, "yusuf_rossi_9620"),
        ({"user_id": "Yusuf Rossi"}, "yusuf_rossi_9620"),
        ({"page_id": "page_123"}, "page-123"),
    ],
    ids=["prefix", "case", "swapped", "too short", "its type in front", "letter left out", "name for id", "separator"],
)
def test_the_id_that_was_meant_is_the_nearest(arguments: dict[str, str], meant: str) -> None:
    [finding] = checked(arguments).unknown
    assert finding.nearest[0].id == meant
    assert meant in finding.why


def test_of_two_as_near_the_one_of_the_right_type_comes_first() -> None:
    entities = in_mind(ThingSeen("invoice", "A-1002"), ThingSeen("order", "A-1003"))
    [finding] = checked({"order_id": "A-1001"}, entities).unknown
    assert [part.id for part in finding.nearest] == ["A-1003", "A-1002"]


def test_a_deleted_thing_is_a_finding() -> None:
    entities = in_mind(PAGE, GONE).apply(an_event(EntitiesSeen((ThingSeen("page", "page-666", how="deleted"),)), 2))
    check = checked({"page_id": "page-666"}, entities, tool="publish_page")
    assert (check.findings[0].standing, check.ok) == ("deleted", False)
    assert "Old News" in check.findings[0].why
    assert check.unknown == ()


def test_an_id_of_another_type_is_said_to_be() -> None:
    [finding] = checked({"user_id": "#W2378156"}).findings
    assert finding.standing == "held"
    assert "another type: order, not user" in finding.why


def test_a_key_that_names_a_role_is_no_other_type() -> None:
    [finding] = checked({"assignee_id": "yusuf_rossi_9620"}).findings
    assert finding.why == "yusuf_rossi_9620 is in mind"


def test_a_path_may_be_new() -> None:
    check = checked({"path": "src/new_module.py"}, tool="write_file")
    assert (check.findings[0].standing, check.ok) == ("new", True)


def test_a_call_without_ids_is_ok() -> None:
    check = checked({"query": "lamps under 50 dollars", "limit": 10})
    assert (check.findings, check.ok) == ((), True)
    assert str(check) == "update_order: no ids among the arguments"


def test_many_unknown_ids_beside_many_known_ones_end() -> None:
    entities = in_mind(*(ThingSeen("order", f"#W{n:07}") for n in range(3_000)))
    check = checked({"order_ids": [f"#V{n:07}" for n in range(300)]}, entities)
    assert len(check.unknown) == 300
    assert all(len(finding.nearest) <= MOST_NEAREST for finding in check.unknown)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["id", "order_id", "user_ids", "path", "x"]), inner)
    ),
)
HEARD: list[Callable[[str], bool]] = [lambda _: True, lambda _: False]


@given(arguments=JSON, tool=st.text(), heard=st.sampled_from(HEARD))
def test_any_arguments_get_an_answer(arguments: Any, tool: str, heard: Callable[[str], bool]) -> None:
    check = check_call(tool, arguments, SHOP, heard=heard)
    assert str(check)
    assert check.ok or check.unknown
    assert all(finding.why for finding in check.findings)
