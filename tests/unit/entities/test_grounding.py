"""Which ids in a call were seen before, and suggestions for unknown ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from builders import an_event
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.events.session import EntitiesEvicted, EntitiesSeen, EntityPart, EntitySighting
from inmind.entities.grounding import MAX_COMPARED_IDS, MAX_NEAREST, CallCheck, SessionTexts, check_call
from inmind.entities.window import Entities

pytestmark = pytest.mark.spec("B8")

LAMP = EntityPart("item", "11112222", "Desk Lamp")
ORDER = EntitySighting("order", "#W2378156", parts=(LAMP,))
USER = EntitySighting("user", "yusuf_rossi_9620", "Yusuf Rossi")
PAGE = EntitySighting("page", "page-123", "About Us")
GONE = EntitySighting("page", "page-666", "Old News")


def window_with(*things: EntitySighting) -> Entities:
    return Entities().apply(an_event(EntitiesSeen(things)))


SHOP = window_with(ORDER, USER, PAGE)


def check_arguments(arguments: Any, entities: Entities = SHOP, tool: str = "update_order", **known: Any) -> CallCheck:
    return check_call(tool, arguments, entities, **known)


def status_of(arguments: Any, entities: Entities = SHOP, **known: Any) -> str:
    [finding] = check_arguments(arguments, entities, **known).findings
    return finding.status


def must_not_be_called() -> Any:
    raise AssertionError("must not be called")


def session_texts(**words: str) -> Callable[[], SessionTexts]:
    return lambda: SessionTexts(**words)


def test_an_id_in_the_window_counts_as_entity_and_as_part() -> None:
    check = check_arguments(
        {"order_id": "#W2378156", "item_ids": ["11112222"]}, texts=must_not_be_called, other_sessions=must_not_be_called
    )
    assert [(f.path, f.status) for f in check.findings] == [("order_id", "in_window"), ("item_ids[0]", "in_window")]
    assert check.ok


def test_the_id_of_an_evicted_entity_is_known() -> None:
    entities = SHOP.apply(an_event(EntitiesEvicted((ORDER,)), 2))
    assert (
        status_of({"order_id": "#W2378156"}, entities, texts=must_not_be_called, other_sessions=must_not_be_called)
        == "known"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"user": "cancel #W9999999 please"}, "was mentioned by the user"),
        ({"user": "cancel W9999999 please"}, "was mentioned by the user"),
        ({"operator": "the example order is #W9999999"}, "was mentioned by the operator"),
        ({"tools": '{"note": "see #W9999999."}'}, "appears in a tool result"),
    ],
    ids=["a person", "a person without the #", "the operator", "a tool"],
)
def test_an_id_only_in_text_is_mentioned_and_its_author_is_named(words: dict[str, str], why: str) -> None:
    [finding] = check_arguments({"order_id": "#W9999999"}, texts=session_texts(**words)).findings
    assert (finding.status, finding.why) == ("mentioned", f"#W9999999 {why}")


@each_row("author", ["user", "operator", "tools"])
@each_row(
    ("id", "text"),
    [("#W639052", "order #W6390527"), ("39052", "order #W6390527"), ("838450784", '"item_id": "8384507844"')],
)
def test_a_part_of_a_mentioned_id_is_unknown(id: str, text: str, author: str) -> None:
    assert status_of({"order_id": id}, texts=session_texts(**{author: text})) == "unknown"


@pytest.mark.parametrize("id", ["90210", 42, "Desk", "olivedo"])
def test_a_small_number_or_a_name_counts_in_user_text_and_not_in_tool_results(id: str | int) -> None:
    text = 'We call 42 people in 90210 about the "Desk" of Olivie (olivedo)'
    assert status_of({"item_id": id}, texts=session_texts(tools=text)) == "unknown"
    assert status_of({"item_id": id}, texts=session_texts(user=text)) == "mentioned"
    assert status_of({"item_id": id}, texts=session_texts(operator=text)) == "mentioned"


@pytest.mark.parametrize("id", ["call", "people", "about"])
def test_an_ordinary_word_of_a_sentence_is_not_an_id(id: str) -> None:
    assert status_of({"item_id": id}, texts=session_texts(user="We call 42 people about it")) == "unknown"


def test_a_long_number_counts_in_tool_results() -> None:
    assert status_of({"item_id": "8384507844"}, texts=session_texts(tools="8384507844 is in stock")) == "mentioned"


def test_texts_and_other_sessions_are_read_last_and_once() -> None:
    reads: list[str] = []

    def read_texts() -> SessionTexts:
        reads.append("texts")
        return SessionTexts(user="#W5555555")

    def read_other_sessions() -> list[Entities]:
        reads.append("sessions")
        return [window_with(PAGE), window_with(EntitySighting("order", "#W9999999"))]

    def check(arguments: Any) -> list[str]:
        return [
            f.status for f in check_arguments(arguments, texts=read_texts, other_sessions=read_other_sessions).findings
        ]

    assert check({"order_id": "#W2378156"}) == ["in_window"]
    assert reads == []
    assert check({"order_id": "#W5555555"}) == ["mentioned"]
    assert reads == ["texts"]
    assert check({"order_ids": ["#W9999999", "#W8888888"], "user_id": "unknown_1"}) == [
        "other_session",
        "unknown",
        "unknown",
    ]
    assert reads == ["texts", "texts", "sessions"]


SEVENS = window_with(
    EntitySighting("page", "7", "Home"), EntitySighting("section", "hero", parts=(EntityPart("item", "42"),))
)


@each_row("is_evicted", [False, True], ids=["in window", "evicted"])
@each_row(
    ("arguments", "is_match"),
    [
        ({"page_id": 7}, True),
        ({"landing_page_id": 7}, True),
        ({"parent_id": 7}, True),
        ({"user_id": 7}, False),
        ({"section_id": "hero"}, True),
        ({"block_id": "hero"}, True),
        ({"user_id": "hero"}, False),
        ({"product_id": 42}, True),
        ({"order_id": 42}, False),
    ],
    ids=str,
)
def test_an_ambiguous_id_is_matched_together_with_its_type(
    arguments: dict[str, Any], is_match: bool, is_evicted: bool
) -> None:
    eviction = EntitiesEvicted((EntitySighting("page", "7"), EntitySighting("section", "hero")))
    entities = SEVENS.apply(an_event(eviction, 2)) if is_evicted else SEVENS
    [finding] = check_arguments(arguments, entities, tool="update_page").findings
    assert finding.status == (("known" if is_evicted else "in_window") if is_match else "unknown")
    seen = status_of(arguments, Entities(), tool="update_page", other_sessions=lambda: [entities])
    assert seen == ("other_session" if is_match else "unknown")


def test_a_small_number_of_another_type_is_reported() -> None:
    [finding] = check_arguments({"user_id": 7}, SEVENS, tool="get_user").unknown
    assert finding.why == "7 was seen as a page, not as a user"


def test_two_entities_with_one_small_number_are_distinguished() -> None:
    entities = window_with(EntitySighting("page", "7", "Home")).apply(
        an_event(EntitiesSeen((EntitySighting("order", "7", how="deleted"),)), 2)
    )
    assert status_of({"page_id": 7}, entities) == "in_window"
    assert status_of({"order_id": 7}, entities) == "deleted"
    assert status_of({"user_id": 7}, entities) == "unknown"


def test_a_role_accepts_the_id_of_a_user() -> None:
    assert status_of({"assignee_id": 3}, window_with(EntitySighting("user", "3", "Ada"))) == "in_window"


def test_a_tool_name_without_a_noun_has_no_type() -> None:
    assert status_of({"id": 7}, SEVENS, tool="approve") == "in_window"
    assert status_of({"id": 7}, SEVENS, tool="get_user") == "unknown"


def test_an_invented_id_is_unknown_and_the_call_is_not_ok() -> None:
    check = check_arguments({"order_id": "#X0000001"})
    assert not check.ok
    assert [finding.id for finding in check.unknown] == ["#X0000001"]
    assert check.unknown[0].nearest == ()
    assert "never seen" in str(check)


@each_row(
    ("arguments", "expected"),
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
def test_the_nearest_id_is_the_intended_one(arguments: dict[str, str], expected: str) -> None:
    [finding] = check_arguments(arguments).unknown
    assert finding.nearest[0].id == expected
    assert expected in finding.why


@pytest.mark.parametrize("id", ["W2378156", "#w2378156", "w2378156"])
def test_a_spelling_that_differs_from_the_tool_result_is_unknown_even_if_the_user_wrote_it(id: str) -> None:
    order = EntitySighting("order", "#W2378156", action="get")
    many = [EntitySighting("order", f"#V{n:07}") for n in range(MAX_COMPARED_IDS)]
    entities = window_with(order).apply(an_event(EntitiesSeen(tuple(many)), 2))
    [finding] = check_arguments({"order_id": id}, entities, texts=session_texts(user=f"cancel {id}")).unknown
    assert finding.nearest[0].id == "#W2378156"


def test_a_short_id_in_lower_case_has_the_right_nearest_id() -> None:
    [finding] = check_arguments({"order_id": "#w2"}, window_with(EntitySighting("order", "#W2"))).unknown
    assert finding.nearest[0].id == "#W2"


def test_a_number_written_with_a_hash_can_be_used_without_it() -> None:
    mentioned = window_with(EntitySighting("issue", "#1234", how="used"))
    assert status_of({"issue_id": 1234}, mentioned, texts=session_texts(user="close issue #1234")) == "mentioned"


def test_of_two_equally_near_ids_the_right_type_comes_first() -> None:
    entities = window_with(EntitySighting("invoice", "A-1002"), EntitySighting("order", "A-1003"))
    [finding] = check_arguments({"order_id": "A-1001"}, entities).unknown
    assert [part.id for part in finding.nearest] == ["A-1003", "A-1002"]


def test_a_deleted_entity_is_reported() -> None:
    entities = window_with(PAGE, GONE).apply(
        an_event(EntitiesSeen((EntitySighting("page", "page-666", how="deleted"),)), 2)
    )
    check = check_arguments({"page_id": "page-666"}, entities, tool="publish_page")
    assert (check.findings[0].status, check.ok) == ("deleted", False)
    assert "Old News" in check.findings[0].why
    assert check.unknown == ()


def test_an_id_of_another_type_is_reported() -> None:
    [finding] = check_arguments({"user_id": "#W2378156"}).findings
    assert finding.status == "in_window"
    assert "its type is order, not user" in finding.why


def test_a_role_key_is_not_another_type() -> None:
    [finding] = check_arguments({"assignee_id": "yusuf_rossi_9620"}).findings
    assert finding.why == "yusuf_rossi_9620 is in the window"


def test_a_path_may_be_new() -> None:
    check = check_arguments({"path": "src/new_module.py"}, tool="write_file")
    assert (check.findings[0].status, check.ok) == ("new", True)


def test_an_email_may_be_new_and_gets_the_right_article() -> None:
    [finding] = check_arguments({"user_id": "new@example.com"}).findings
    assert (finding.status, finding.why) == ("new", "new@example.com was never seen; an email may be new")


@each_row(
    ("tool", "arguments", "expected"),
    [
        ("create_page", {"id": "page-999"}, "new"),
        ("cms_createPage", {"pageId": "page-999"}, "new"),
        ("register_user", {"user_id": "ada_1"}, "new"),
        ("add_user", {"id": "ada_1"}, "new"),
        ("add_item", {"item_id": "99998888"}, "unknown"),
        ("create_order", {"user_id": "unknown_1234"}, "unknown"),
        ("create_order", {"items": [{"id": "99998888"}]}, "unknown"),
        ("update_page", {"id": "page-999"}, "unknown"),
        ("pay_invoice", {"request_id": "r-1234"}, "new"),
        ("pay_invoice", {"client_request_id": "r-1234"}, "new"),
        ("pay_invoice", {"idempotency_key": "r-1234"}, "new"),
        ("approve_request", {"request_id": "r-1234"}, "unknown"),
        ("create_order", {"client_order_id": "my-1"}, "new"),
        ("placeOrder", {"newClientOrderId": "my-1"}, "new"),
        ("cancel_order", {"client_order_id": "my-1"}, "unknown"),
        ("create_order", {"client_id": "c-1234"}, "unknown"),
    ],
    ids=str,
)
def test_an_id_chosen_by_the_caller_may_be_new(tool: str, arguments: dict[str, Any], expected: str) -> None:
    assert status_of(arguments, tool=tool) == expected


@each_row(
    ("tool", "number", "expected"),
    [
        ("merge_pr", 12, ["in_window"]),
        ("merge_pr", "12", ["in_window"]),
        ("merge_pr", 14, ["unknown"]),
        ("list_prs", 14, []),
        ("create_pr", 14, []),
        ("order_item", 14, []),
        ("get_page", 14, []),
        ("roll", 14, []),
    ],
)
def test_a_plain_number_is_an_id_if_it_selects_one(tool: str, number: int | str, expected: list[str]) -> None:
    entities = window_with(EntitySighting("pr", "12", "Fix login"), EntitySighting("pr", "13", "Bump deps"))
    assert [f.status for f in check_arguments({"number": number}, entities, tool=tool).findings] == expected


def test_a_check_is_true_if_the_call_is_ok() -> None:
    assert check_arguments({"order_id": "#W2378156"})
    assert not check_arguments({"order_id": "#X0000001"})


def test_a_call_without_ids_is_ok() -> None:
    check = check_arguments({"query": "lamps under 50 dollars", "limit": 10})
    assert (check.findings, check.ok) == ((), True)
    assert str(check) == "update_order: no ids among the arguments"


@pytest.mark.exhaustive
def test_many_unknown_and_known_ids_are_checked_in_bounded_time() -> None:
    entities = window_with(*(EntitySighting("order", f"#W{n:07}") for n in range(3_000)))
    check = check_arguments({"order_ids": [f"#V{n:07}" for n in range(300)]}, entities)
    assert len(check.unknown) == 300
    assert all(len(finding.nearest) <= MAX_NEAREST for finding in check.unknown)


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["id", "order_id", "user_ids", "path", "x"]), inner)
    ),
)
WORDS = st.builds(SessionTexts, operator=st.text(), user=st.text(), tools=st.text())


@given(arguments=JSON, tool=st.text(), words=WORDS)
def test_any_arguments_get_a_check(arguments: Any, tool: str, words: SessionTexts) -> None:
    check = check_call(tool, arguments, SHOP, texts=lambda: words)
    assert str(check)
    assert check.ok or check.unknown
    assert all(finding.why for finding in check.findings)
