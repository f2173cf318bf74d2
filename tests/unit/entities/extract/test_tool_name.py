"""Verb, nouns and deletion in tool names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.entities.extract.identity import parse_tool_name

pytestmark = pytest.mark.spec("B4")


@each_row(
    ("name", "verb", "type"),
    [
        ("cms_createPage", "create", "page"),
        ("pages.list", "list", "page"),
        ("mcp__cms__get-page", "get", "page"),
        ("find_user_id_by_email", "find", "user"),
        ("get_order_details", "get", "order"),
        ("list_all_product_types", "list", "product"),
        ("exchange_delivered_order_items", "exchange", "item"),
        ("modify_user_address", "modify", "address"),
        ("send_direct_message", "send", "message"),
        ("get_payment_method", "get", "payment_method"),
        ("book_flight", "book", "flight"),
        ("cancel_reservation", "cancel", "reservation"),
        ("get_book", "get", "book"),
        ("search_direct_flight", "search", "flight"),
        ("update_entries", "update", "entry"),
        ("calculate", "calculate", ""),
        ("think", "", "think"),
        ("", "", ""),
        ("执行", "", "执行"),
    ],
)
def test_a_tool_name_gives_verb_and_type(name: str, verb: str, type: str) -> None:
    tool = parse_tool_name(name)
    assert (tool.verb, tool.type) == (verb, type)


def test_a_plural_noun_means_several_entities() -> None:
    assert parse_tool_name("list_pages").plural
    assert not parse_tool_name("get_page").plural


@pytest.mark.parametrize("name", ["merge_pr", "get_issue", "mcp__git__update-issue"])
def test_a_tool_with_a_singular_noun_is_about_one_entity(name: str) -> None:
    assert parse_tool_name(name).about_one


@each_row("name", ["list_prs", "create_issue", "book_room", "order_item", "think", ""])
def test_the_number_argument_of_a_create_or_list_tool_is_a_count(name: str) -> None:
    assert not parse_tool_name(name).about_one


@each_row("name", ["delete_page", "remove_item", "pages.destroy", "trash-page", "rm_file"])
def test_a_removal_verb_deletes(name: str) -> None:
    assert parse_tool_name(name).is_delete


@each_row(
    "name",
    ["get_deleted_pages", "cancel_order", "undelete_page", "archive_page", "removeItemFromCart"],
)
def test_removing_from_a_container_does_not_delete(name: str) -> None:
    assert not parse_tool_name(name).is_delete


@pytest.mark.parametrize(("name", "names"), [("create_page", True), ("rename_page", True), ("search_pages", False)])
def test_only_create_and_update_tools_name_the_entity(name: str, names: bool) -> None:
    assert parse_tool_name(name).arguments_name_result is names


@given(st.text(max_size=60))
def test_any_tool_name_can_be_parsed(name: str) -> None:
    assert all(parse_tool_name(name).types)
