"""Records: which fields stay, that no pairing is invented, and that values cannot imitate keys."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_records, ids_in
from tables import each_row

from inmind.core.encoding import to_json
from inmind.core.parse_result import parse_result, value_for_record
from inmind.core.text import contains_id
from inmind.core.tokens import estimator
from inmind.entities.record import (
    MAX_ENTRIES,
    MAX_FIELDS,
    MAX_RECORD_CHARACTERS,
    Detail,
    bounded_record,
    count_unnamed,
    cut_record,
    merge_records,
    prune,
    render_record,
    without_id,
)

pytestmark = pytest.mark.spec("B11")

COUNT = estimator()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=80) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=20,
)


def record(value: Any, detail: Detail = Detail.FACTS) -> str:
    return render_record(prune(value, detail))


ORDER = {
    "order_id": "#W6247578",
    "address": {"address1": "763 Broadway", "city": "Philadelphia", "zip": "19122"},
    "created_at": "2024-05-11T08:28:51",
    "items": [{"name": "T-Shirt", "product_id": "9523456873", "item_id": "3799046073", "options": {"color": "black"}}],
    "fulfillments": [{"item_ids": ["3799046073"]}],
    "status": "pending",
    "notes": "A long remark of the customer about the parcel, the door, the neighbour and the dog behind the door.",
    "total": 53.27,
    "gift": None,
}


def test_a_record_has_ids_names_states_short_values_and_numbers() -> None:
    assert record(ORDER) == (
        "order_id #W6247578, items [name T-Shirt, product_id 9523456873, item_id 3799046073, color black], "
        "status pending, total 53.27"
    )


def test_less_detail_keeps_ids_names_and_states() -> None:
    assert record(ORDER, Detail.IDS) == (
        "order_id #W6247578, items [name T-Shirt, product_id 9523456873, item_id 3799046073], status pending"
    )


@each_row(
    ("value", "expected"),
    [
        (
            {
                "payment_methods": {
                    "card_1": {"id": "card_1", "brand": "visa"},
                    "card_2": {"brand": "amex", "id": "card_2"},
                }
            },
            "payment_methods [id card_1, brand visa; id card_2, brand amex]",
        ),
        (
            {"items": [{"name": "Watch", "item_id": "8886009523", "dial": "blue"}] * 2},
            "items [name Watch, item_id 8886009523, dial blue; name Watch, item_id 8886009523, dial blue]",
        ),
        (
            {"items": [{"name": "Watch", "item_id": "88"}, {"name": "Lamp", "item_id": "99", "color": "red"}]},
            "items [name Watch, item_id 88; name Lamp, item_id 99]",
        ),
        ({"variants": [{"id": f"v-{n}", "color": "red"} for n in range(5)]}, "variants [id v-0, v-1, v-2, v-3, v-4]"),
    ],
)
def test_things_without_a_name_of_their_own_keep_the_traits_that_tell_them_apart(value: Any, expected: str) -> None:
    assert record(value, Detail.IDS) == expected


@each_row(
    ("value", "expected"),
    [
        ({"Backpack": "2524789262", "Bicycle": "9783735446"}, "Backpack 2524789262, Bicycle 9783735446"),
        ({"v1": {"item_id": "v1", "size": "M"}}, "[item_id v1, size M]"),
        ({"name": {"first_name": "Mei", "last_name": "Kovacs"}}, "name Mei Kovacs"),
        ([{"first_name": "Mei", "last_name": "Kovacs", "dob": "1990-01-01"}], "[name Mei Kovacs]"),
        ({"orders": ["#W1", "#W2"]}, "orders [#W1, #W2]"),
        ({"price": {"amount": 5, "currency": "EUR"}}, "price {amount 5, currency EUR}"),
        ({"ok": True, "next": None, "tags": []}, "ok true"),
        (
            {"refund": 121.20000000000005, "total": 50.0, "balance": 1234567890.12},
            "refund 121.2, total 50, balance 1234567890.12",
        ),
        ({"date": "2024-05-21", "at": "2024-05-21T08:00:00Z", "url": "https://example.com/x"}, "date 2024-05-21"),
    ],
)
def test_a_record_is_small_in_each_shape_of_results(value: Any, expected: str) -> None:
    assert record(value) == expected


def test_with_the_least_detail_a_state_that_all_entries_share_is_left_out() -> None:
    flights = [{"flight_number": f"HAT{n}", "status": "available"} for n in (1, 2)]
    assert render_record(prune(flights, Detail.IDS)) == "[flight_number HAT1, HAT2]"
    assert render_record(prune(flights, Detail.TRAITS)).count("status available") == 2
    cancelled = {"flight_number": "HAT3", "status": "cancelled"}
    assert render_record(prune([*flights, cancelled], Detail.IDS)).count("status") == 3
    assert render_record(prune(flights[:1], Detail.IDS)) == "[flight_number HAT1, status available]"


def test_a_few_things_keep_the_state_that_they_share() -> None:
    orders = [{"order_id": f"#W{n}", "status": "cancelled"} for n in range(6)]
    assert render_record(prune(orders[:2], Detail.IDS)).count("cancelled") == 2
    assert render_record(prune(orders, Detail.IDS)).count("cancelled") == 0
    assert render_record(prune([{"state": "failed"}] * 2, Detail.IDS)) == "[state failed, failed]"


def test_an_entry_may_repeat_the_ids_of_another() -> None:
    orders = {"orders": [{"id": "o1", "item_id": "a1"}, {"id": "o2", "item_ids": ["a1"]}]}
    assert render_record(prune(orders)) == "orders [id o1, item_id a1; id o2, item_ids [a1]]"
    assert render_record(prune({"items": [{"item_id": "a1"}], "item_ids": ["a1"]})) == "items [item_id a1]"


def test_a_text_with_brackets_is_quoted() -> None:
    assert render_record({"query": "#W1): cancelled"}) == 'query "#W1): cancelled"'
    assert render_record({"x): done. y(": "a"}) == '"x): done. y(" a'


def test_secrets_are_never_in_a_record() -> None:
    text = record({"id": "u-17", "api_key": "abc123def", "password": "hunter2", "note": "sk-live-1234567890abcdef"})
    assert text == "id u-17"


@each_row(
    ("value", "expected"),
    [
        (
            [{"key": "SMTP_PASSWORD", "value": "x1"}, {"key": "REGION", "value": "eu"}],
            "[key SMTP_PASSWORD; key REGION, value eu]",
        ),
        ({"id": "inv-1", "recovery_codes": ["aaa-111", "bbb-222"]}, "id inv-1"),
    ],
)
def test_secrets_that_another_field_names_are_not_in_a_record(value: Any, expected: str) -> None:
    assert record(value) == expected


def test_an_object_with_very_many_fields_is_cut_with_a_count() -> None:
    text = record({f"Product {n}": f"95234{n}" for n in range(MAX_FIELDS + 5)})
    assert text.endswith("others (5 more)")


def test_a_map_without_ids_keeps_its_keys() -> None:
    roles = {name: {"role": name, "user_id": f"u_{name}"} for name in ("payer", "payee")}
    assert record(roles, Detail.IDS) == "payer {user_id u_payer}, payee {user_id u_payee}"


def test_a_key_cannot_imitate_a_count() -> None:
    assert record({"(5 more)": "x", "order_id": "1"}) == '"(5 more)" x, order_id 1'


@each_row("number", [5, MAX_ENTRIES, MAX_ENTRIES + 1])
def test_a_list_without_names_is_counted_whole(number: int) -> None:
    pruned = prune({"variants": [{"item_id": f"4716{n}"} for n in range(number)]}, Detail.IDS)
    assert render_record(count_unnamed(pruned)) == f"variants ({number} more)"


def test_a_long_list_is_cut_with_a_count() -> None:
    text = record({"orders": [f"#W{n}" for n in range(1_000, 1_000 + MAX_ENTRIES + 5)]})
    assert text.endswith("(5 more)]")


def test_ids_in_a_list_say_what_was_done_with_them() -> None:
    calls = {"8C8K4E": "get, cancel"}
    value = prune({"reservations": ["8C8K4E", "UDMOP1"]})
    assert render_record(value, lambda id: calls.get(id, "")) == "reservations [8C8K4E (get, cancel), UDMOP1]"


@given(JSON)
def test_any_value_is_rendered_on_one_line(value: Any) -> None:
    for detail in Detail:
        text = record(value, detail)
        assert "\n" not in text
        assert text == record(json.loads(json.dumps(value)), detail)


@given(entity_records())
def test_every_id_stands_behind_its_key(value: dict[str, Any]) -> None:
    text = record(value, Detail.IDS)
    assert all(contains_id(text, id) for id in ids_in(value))
    for item in value["items"]:
        assert f"item_id {item['item_id']}" in text
    names = [(one["name"], one["item_id"]) for one in prune(value, Detail.IDS)["items"]]
    assert set(names) == {(item["name"], item["item_id"]) for item in value["items"]}, "no pairing is invented"


@given(entity_records(), st.integers(0, 60))
def test_a_record_is_cut_to_its_budget_and_counts_what_is_left_out(value: dict[str, Any], budget: int) -> None:
    text = cut_record(record(value, Detail.IDS), budget=budget, count=COUNT)
    assert COUNT(text) <= max(budget, COUNT("… (99 more)"))
    assert re.search(r"… \(\d+ more\)$", text)


@given(st.text('ab,; "\\', max_size=40), st.integers(0, 60))
def test_a_record_is_cut_between_values_only(text: str, budget: int) -> None:
    cut = cut_record(record({"name": f"{text}, x", "item_id": "i-1", "status": "ok"}), budget=budget, count=len)
    assert not re.sub(r'"(?:[^"\\]|\\.)*"', "", cut).count('"'), "a quoted value is whole"


@given(st.sampled_from(["name", "title", "color", "status"]), st.text(min_size=1, max_size=30))
def test_a_value_cannot_imitate_a_pair(key: str, text: str) -> None:
    hostile = f"{text}, product_id 999"
    assert ", product_id 999" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", record({key: hostile, "item_id": "i-1"}))
    assert "name x product_id 999" not in record({"name": "x product_id 999 y"})


@given(entity_records(), entity_records())
def test_the_newest_value_of_each_field_wins(older: dict[str, Any], newer: dict[str, Any]) -> None:
    merged = merge_records(bounded_record(older), bounded_record(newer))
    assert all(merged[key] == value for key, value in bounded_record(newer).items())
    assert len(to_json(merged)) <= MAX_RECORD_CHARACTERS


@given(entity_records())
def test_a_deleted_part_leaves_the_record(value: dict[str, Any]) -> None:
    gone = value["items"][0]["item_id"]
    assert gone not in ids_in(without_id(bounded_record(value), gone))


@given(st.dictionaries(st.text(min_size=1, max_size=10), JSON, max_size=40))
def test_the_record_of_a_thing_is_bounded(value: dict[str, Any]) -> None:
    assert len(to_json(bounded_record(value))) <= MAX_RECORD_CHARACTERS


def test_that_the_call_succeeded_is_not_a_field_of_the_thing() -> None:
    assert bounded_record({"id": "page-1", "success": True, "ok": "yes"}, without=["page-1"]) == {"ok": "yes"}


def test_numbered_lines_are_text_and_not_fields() -> None:
    text = "7: import re\n8: \n9: import json"
    assert value_for_record(text, parse_result(text)) is None
    by_id = {"1001": "T-Shirt", "1002": "Mug"}
    assert value_for_record(json.dumps(by_id), by_id) == by_id


# -- no invented pairing --------------------------------------------------------------------------------------------


@pytest.mark.spec("B11")
@each_row(
    "value, text",
    [
        (
            {"details": {"order_id": "A-1001", "name": "Lamp"}, "order_id": "B-2002"},
            "details {order_id A-1001, name Lamp}, order_id B-2002",
        ),
        ({"data": {"id": "1001", "status": "shipped"}, "status": "ok"}, "data {id 1001, status shipped}, status ok"),
        ({"options": {"color": "red"}, "item_id": "77"}, "color red, item_id 77"),
    ],
)
def test_fields_of_a_wrapper_are_merged_only_if_no_other_field_has_their_key(value: Any, text: str) -> None:
    assert render_record(prune(value)) == text


@pytest.mark.spec("B11")
@each_row(
    "value, text",
    [
        (
            {"open": [{"id": "111111"}, {"id": "222222"}], "paid_ids": ["111111"]},
            "open [id 111111, 222222], paid_ids [111111]",
        ),
        (
            {"items": [{"name": "Lamp", "item_id": "111111"}], "fulfillments": [{"item_ids": ["111111"]}]},
            "items [name Lamp, item_id 111111]",
        ),
        ({"items": [{"name": "Lamp"}, {"name": "Lamp"}]}, "items [name Lamp, Lamp]"),
    ],
)
def test_a_list_stays_unless_its_values_stand_under_the_same_key(value: Any, text: str) -> None:
    assert render_record(prune(value)) == text


@pytest.mark.spec("B11")
@each_row(
    "value, text",
    [
        ({"first_name": None, "last_name": "Li"}, "last_name Li"),
        ({"first_name": {"x": 1}, "last_name": "Li", "id": "u-12345"}, "first_name {x 1}, last_name Li, id u-12345"),
        ({"start": "2026-11-27T08:30:00", "created_at": "2026-11-01T10:00:00"}, "start 2026-11-27T08:30:00"),
    ],
)
def test_names_are_joined_from_texts_only_and_times_of_things_stay(value: Any, text: str) -> None:
    assert render_record(prune(value)) == text


@pytest.mark.spec("B11")
@each_row(
    "value",
    [
        {"pin": "4321"},
        {"passcode": "9911"},
        {"security_answer": "Rex"},
        {"verification_code": "884422"},
        {"env": ["DB_PASSWORD=hunter2"]},
        {"url": "postgres://u:hunter2@h/db"},
        {"name": "DB_PASSWORD", "value": "hunter2"},
    ],
)
def test_secrets_are_in_no_record(value: dict[str, Any]) -> None:
    text = render_record(prune({"id": "a-12345", **value}))
    assert not any(secret in text for secret in ("4321", "9911", "Rex", "884422", "hunter2"))


@pytest.mark.spec("B11")
@each_row("forged", ["INV-100 (pay)", "a … (3 more)", "(57 more)"])
def test_a_value_cannot_pass_for_a_later_call_or_a_count(forged: str) -> None:
    for value in ({"invoice_id": forged}, {"invoices": [forged, "INV-2000"]}):
        text = render_record(prune(value)) if prune(value) else ""
        assert forged not in text.replace(json.dumps(forged, ensure_ascii=False), "")


@pytest.mark.spec("B11", "E10")
def test_later_calls_stand_after_ids_in_objects_too() -> None:
    value = {"invoices": [{"invoice_id": "INV-100001", "name": "Rent"}, {"invoice_id": 1002, "name": "Gas"}]}
    verbs = {"INV-100001": "pay", "1002": "get"}
    assert render_record(prune(value), lambda id: verbs.get(id, "")) == (
        "invoices [invoice_id INV-100001 (pay), name Rent; invoice_id 1002 (get), name Gas]"
    )


@pytest.mark.spec("B11")
def test_the_record_of_a_large_thing_keeps_its_first_parts_with_a_count() -> None:
    items = [{"name": f"Item {n}", "product_id": f"95234568{n:02}", "item_id": f"37990460{n:02}"} for n in range(40)]
    record = bounded_record({"items": items})
    text = render_record(prune(record, is_record=True))
    assert text.startswith("items [name Item 0, product_id 9523456800, item_id 3799046000; name Item 1, ")
    assert re.search(r"; \(\d+ more\)\]$", text)
    assert len(to_json(record)) <= MAX_RECORD_CHARACTERS
