"""Recognising ids by key, by shape and in prose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import json_values
from tables import each_row

from inmind.entities.entity import EntityRules
from inmind.entities.find_ids import find_ids, find_ids_in_text
from inmind.entities.ids import MAX_ID_CHARS, key_meaning, looks_like_id, parse_id

pytestmark = pytest.mark.spec("B4")


@each_row(
    ("key", "meaning", "type"),
    [
        ("id", "own", "reference"),
        ("_id", "own", "reference"),
        ("uuid", "own", "reference"),
        ("key", "own", "reference"),
        ("order_id", "id", "order"),
        ("orderId", "id", "order"),
        ("orderIds", "id", "order"),
        ("payment_method_id", "id", "payment_method"),
        ("new_item_ids", "id", "item"),
        ("parent_page_id", "id", "page"),
        ("flight_number", "code", "flight"),
        ("file_path", "path", "file"),
        ("price", "", "price"),
        ("categories", "", "category"),
        ("api_key", "private", "reference"),
        ("token_id", "private", "reference"),
        ("#W6390527", "key", "reference"),
        ("ada@example.com", "key", "email"),
        ("", "", "reference"),
    ],
)
def test_a_key_gives_the_meaning_of_its_value(key: str, meaning: str, type: str) -> None:
    assert key_meaning(key) == (meaning, type)


@each_row(
    "text",
    [
        "page-123",
        "#W6390527",
        "mei_kovacs_8020",
        "sara_doe_496",
        "HAT136",
        "ZFA04Y",
        "cus_9s6XKzkNRiz8i3",
        "550e8400-e29b-41d4-a716-446655440000",
        "credit_card_7815826",
        "PROJ-1234",
        "ISSUE-42x9",
        "B08N5WRWNW",
        "507f1f77bcf86cd799439011",
        "#12345",
        "order:7f3k",
    ],
)
def test_unmistakable_shapes_are_ids(text: str) -> None:
    assert looks_like_id(text)


@each_row(
    "text",
    [
        "hello",
        "12345",
        "2024-05-01",
        "10:30",
        "v1.2.3",
        "1.2.3-beta1",
        "12kg",
        "27-inch",
        "1080p",
        "4-piece",
        "USD450",
        "#fff",
        "#ff00aa",
        "covid-19",
        "Boeing737",
        "mid-2024",
        "Q3-2024",
        "May-2024",
        "sha256",
        "x86_64",
        "video/mp4",
        "report2024.pdf",
        "ada1@example.com",
        "two words1",
        "f(x1)",
        "a=1",
        "ab1",
        "x" * 200 + "1",
        "",
        "ärger-1234",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ],
)
def test_other_words_are_not_ids(text: str) -> None:
    assert not looks_like_id(text)


def test_almost_any_value_is_an_id_under_an_id_key() -> None:
    assert [parse_id(value) for value in ("x", " x ", 7, 0, "关于")] == ["x", "x", "7", "0", "关于"]
    values: tuple[Any, ...] = (None, True, 1.5, "", " ", "a\nb", "x" * (MAX_ID_CHARS + 1), 10**40, [], {}, "\ud800")
    assert [parse_id(value) for value in values] == [None] * len(values)


def test_the_ids_of_a_call_have_their_paths() -> None:
    arguments = {"order_id": "#W1", "items": [{"item_id": 7}, {"item_id": 8}], "note": "see page-123", "count": 12}
    ids = [(item.path, item.type, item.id) for item in find_ids(arguments)]
    assert ids == [("order_id", "order", "#W1"), ("items[0].item_id", "item", "7"), ("items[1].item_id", "item", "8")]


def test_a_plain_id_has_the_type_of_the_tool() -> None:
    [item] = find_ids({"id": "x"}, own_type="page")
    assert (item.type, item.id) == ("page", "x")


def test_a_plain_number_is_the_id_of_the_single_entity_of_the_tool() -> None:
    [item] = find_ids({"number": 12, "filter": {"number": 3}}, own_type="pr", about_one=True)
    assert (item.path, item.type, item.id) == ("number", "pr", "12")
    assert find_ids({"number": 12}, own_type="pr") == []
    assert find_ids({"number": 12}, own_type="page", about_one=True) == []
    [item] = find_ids({"number": 12}, own_type="pr", about_one=True, rules=EntityRules(id_keys={"number": "ticket"}))
    assert item.type == "ticket"


def test_registered_keys_and_synonyms_of_a_host_are_used() -> None:
    rules = EntityRules(types={"customer": ["client"]}, id_keys={"matricule": "employee"})
    items = find_ids({"client_id": "c", "matricule": "0042"}, rules=rules)
    assert [(item.type, item.id) for item in items] == [("customer", "c"), ("employee", "0042")]


def test_each_id_counts_once() -> None:
    assert len(find_ids({"page_id": "p-1", "page": {"page_id": "p-1"}, "ids": ["p-1", "p-1"]})) == 2


@each_row(
    ("text", "expected"),
    [
        ("Cancel order #W6390527, please.", [("order", "#W6390527")]),
        ("my user id is mei_kovacs_8020", [("user", "mei_kovacs_8020")]),
        ("order number 12345", [("order", "12345")]),
        ("Rename page-123 and page-456!", [("reference", "page-123"), ("reference", "page-456")]),
        ("mail ada@example.com about report.pdf", [("email", "ada@example.com"), ("file", "report.pdf")]),
        ("reservation ZFA04Y", [("reservation", "ZFA04Y")]),
        ("reservation code QWERTY", [("reservation", "QWERTY")]),
        ("请删除页面 page-123。", [("reference", "page-123")]),
        ("(id: 550e8400-e29b-41d4-a716-446655440000)", [("reference", "550e8400-e29b-41d4-a716-446655440000")]),
        ("I have 12 pages and 3 images from 2019.", []),
        ("my password is hunter2222", []),
        ("HELLO WORLD", []),
        ("", []),
    ],
)
def test_ids_are_found_in_user_text(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(item.type, item.id) for item in find_ids_in_text(text)] == expected


@given(json_values(), st.text(max_size=10))
def test_no_arguments_make_the_search_fail_and_every_id_has_text(value: Any, key: str) -> None:
    assert all(item.id and item.type for item in find_ids({key: value, f"{key}_id": value}))


@given(st.text())
def test_no_text_makes_the_search_fail_and_every_id_occurs_in_it(text: str) -> None:
    assert all(item.id and item.id in text for item in find_ids_in_text(text))


@each_row("text", ["a" * 200_000, "a." * 100_000, "a1-" * 70_000, "/a" * 100_000, "@" * 200_000, "x@" * 90_000])
def test_time_is_linear_in_the_length_of_the_text(text: str) -> None:
    """The test hangs if a pattern takes quadratic time."""
    find_ids_in_text(text)
    looks_like_id(text)
    find_ids({"id": text, "note": text})
