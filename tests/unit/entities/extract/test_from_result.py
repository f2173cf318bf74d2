"""Entities in tool results: structures, naming conventions, and values that are not entities."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from builders import entities_of_call
from tables import each_row

from inmind import Entity
from inmind.core.events.session import EntityPart, EntitySighting, ToolObserved
from inmind.core.tool_outcome import read_outcome
from inmind.entities.entity import MAX_PARTS, EntityRules
from inmind.entities.extract.from_result import MAX_USED_ARGUMENTS, sightings_from_result
from inmind.entities.extract.records import MAX_RECORDS
from inmind.errors import ExtractorFailed

ABOUT = {"id": "page-123", "title": "About Us", "slug": "about"}
HOME = {"id": "page-456", "title": "Home"}
BOTH = [ABOUT, HOME]


def extract(things: tuple[EntitySighting, ...]) -> list[tuple[str, str, str]]:
    return [(thing.type, thing.id, thing.name) for thing in things]


def parts(thing: EntitySighting) -> list[tuple[str, str, str]]:
    return [(part.type, part.id, part.name) for part in thing.parts]


ONE = [("page", "page-123", "About Us")]
TWO = [*ONE, ("page", "page-456", "Home")]

# -- structures --------------------------------------------------------------------------------------------

OF_ONE: dict[str, Any] = {
    "under its type": {"success": True, "page": ABOUT},
    "bare": ABOUT,
    "result": {"result": ABOUT},
    "data": {"data": ABOUT},
    "response": {"response": ABOUT},
    "under its type in a wrapper": {"status": "ok", "data": {"page": ABOUT}},
    "wrappers in wrappers": {"response": {"result": {"data": ABOUT}}},
    "json": json.dumps(ABOUT),
    "json with space around": f"\n  {json.dumps(ABOUT, indent=2)}\n",
    "json twice": json.dumps(json.dumps(ABOUT)),
    "json under a wrapper": {"result": json.dumps(ABOUT)},
    "json:api": {"data": {"type": "pages", "id": "page-123", "attributes": {"title": "About Us"}}},
    "graphql": {"data": {"page": ABOUT}},
    "content": [{"type": "text", "text": json.dumps(ABOUT)}],
    "mcp": {"content": [{"type": "text", "text": json.dumps(ABOUT)}], "isError": False},
    "mcp as json": json.dumps({"content": [{"type": "text", "text": json.dumps(ABOUT)}], "isError": False}),
    "structured": {"content": [{"type": "text", "text": "Here it is."}], "structuredContent": ABOUT},
    "yaml": "id: page-123\ntitle: About Us\nviews: 12\n",
    "yaml under its type": "page:\n  id: page-123\n  title: 'About Us'\n",
    "python": repr({"id": "page-123", "title": "About Us", "live": True, "parent": None}),
}


@pytest.mark.spec("B4")
@each_row("shape", OF_ONE)
def test_one_entity_is_found_in_every_structure(shape: str) -> None:
    assert extract(entities_of_call("get_page", OF_ONE[shape])) == ONE


OF_TWO: dict[str, Any] = {
    "bare": BOTH,
    "plural": {"pages": BOTH},
    "matches": {"matches": BOTH},
    "results": {"results": BOTH, "total": 2},
    "items": {"items": BOTH, "next": None},
    "data": {"data": BOTH},
    "list of lists": [[ABOUT], [HOME]],
    "each under its type": [{"page": ABOUT}, {"page": HOME}],
    "plural in a wrapper": {"result": {"pages": BOTH}},
    "edges": {"edges": [{"cursor": "YXJyYXk6MA1", "node": ABOUT}, {"node": HOME}]},
    "edges of a field": {"data": {"pages": {"edges": [{"node": ABOUT}, {"node": HOME}], "pageInfo": {"next": True}}}},
    "nodes": {"data": {"pages": {"nodes": BOTH}}},
    "json:api": {"data": [{"type": "pages", "id": p["id"], "attributes": {"title": p["title"]}} for p in BOTH]},
    "json": json.dumps({"pages": BOTH}),
    "a block for each": [{"type": "text", "text": json.dumps(page)} for page in BOTH],
    "yaml": "- id: page-123\n  title: About Us\n- id: page-456\n  title: Home\n",
    "yaml under a key": "pages:\n- id: page-123\n  title: About Us\n- id: page-456\n  title: Home\n",
    "python": repr(BOTH),
    "by id": {"page-123": {"title": "About Us"}, "page-456": {"title": "Home"}},
}


@pytest.mark.spec("B4")
@each_row("shape", OF_TWO)
def test_a_list_is_found_in_every_structure_in_order(shape: str) -> None:
    things = entities_of_call("list_pages", OF_TWO[shape])
    assert extract(things) == TWO
    assert {thing.how for thing in things} == {"listed"}


@pytest.mark.spec("B4")
def test_results_of_create_search_and_heading_tools_are_read() -> None:
    """The three examples of the design."""
    assert extract(entities_of_call("cms_createPage", {"success": True, "page": ABOUT})) == ONE
    matches = {"matches": [{"id": f"img-{n}", "filename": f"{name}.jpg"} for n, name in enumerate("abcde", start=1)]}
    images = entities_of_call("cms_searchImages", matches)
    assert extract(images) == [("image", "img-1", "a.jpg"), ("image", "img-2", "b.jpg"), ("image", "img-3", "c.jpg")]
    section = entities_of_call("cms_getSectionContent", {"section": {"id": "sec-456", "heading": "Welcome"}})
    assert extract(section) == [("section", "sec-456", "Welcome")]


@pytest.mark.spec("B4")
def test_at_most_three_entries_of_a_list_are_entities_and_the_others_are_parts_of_the_first() -> None:
    many = [{"id": f"page-{n}00", "title": f"Page {n}"} for n in range(1, 6)]
    first, *others = entities_of_call("list_pages", {"pages": many})
    assert [thing.id for thing in others] == ["page-200", "page-300"]
    assert first.parts == (
        EntityPart("page", "page-400", "Page 4", from_same_list=True),
        EntityPart("page", "page-500", "Page 5", from_same_list=True),
    )


@pytest.mark.spec("B4", "B5")
def test_the_host_sets_how_many_entries_of_a_list_are_entities() -> None:
    rules = EntityRules(max_per_list=1)
    [first] = entities_of_call("list_pages", BOTH, rules=rules)
    assert parts(first) == [("page", "page-456", "Home")]


@pytest.mark.spec("B4")
def test_each_list_of_another_type_adds_its_best_entries() -> None:
    things = entities_of_call("search", {"pages": BOTH, "images": [{"id": "img-900", "filename": "hero.jpg"}]})
    assert extract(things) == [*TWO, ("image", "img-900", "hero.jpg")]


@pytest.mark.spec("B4")
def test_a_list_of_names_is_a_list_of_entities_if_the_tool_noun_is_plural() -> None:
    assert extract(entities_of_call("get_channels", ["general", "random"])) == [
        ("channel", "general", ""),
        ("channel", "random", ""),
    ]
    assert extract(entities_of_call("get_channels", "- general\n- random\n")) == [
        ("channel", "general", ""),
        ("channel", "random", ""),
    ]
    assert entities_of_call("get_answer", ["general", "random"]) == ()


@pytest.mark.spec("B4")
def test_ids_keyed_by_name_are_entities_with_names() -> None:
    things = entities_of_call("list_product_types", {"Lamp": "9523456873", "Desk": "4760268021", "Mug": "6942241102"})
    assert extract(things)[0] == ("product", "9523456873", "Lamp")


@pytest.mark.spec("B4")
def test_telephone_numbers_keyed_by_name_are_not_entities() -> None:
    assert entities_of_call("get_phone_numbers", {"Ada": "5551234567", "Bob": "5557654321", "Cyd": "5550001111"}) == ()


@pytest.mark.spec("B4")
def test_yaml_printed_by_tools_is_parsed() -> None:
    printed = (
        "- id_: '34'\n"
        "  sender: emma@example.com\n"
        "  subject: Update on\n"
        "    the project\n"
        "  body: 'Dear all,\n"
        "\n"
        "    it is: well.'\n"
        "  shared_with:\n"
        "    kate@example.com: rw\n"
        "- id_: '35'\n"
        "  subject: Lunch\n"
    )
    first, second = entities_of_call("get_emails", printed)
    assert extract((first, second)) == [("email", "34", "Update on the project"), ("email", "35", "Lunch")]
    assert [part.id for part in first.parts] == ["emma@example.com", "kate@example.com"]


@pytest.mark.spec("B4")
def test_a_bare_id_has_the_type_of_the_tool() -> None:
    assert extract(entities_of_call("create_page", "page-123")) == [("page", "page-123", "")]


@pytest.mark.spec("B4")
def test_ids_in_prose_get_the_type_that_the_words_name() -> None:
    [page] = entities_of_call("publish_site", "Created page page-123 in collection coll_900.")
    assert (page.type, page.id, parts(page)) == ("page", "page-123", [("collection", "coll_900", "")])


@pytest.mark.spec("B4")
@each_row("words", ["OK", "", "Done.", "There are 12 pages, the newest of 2024-05-01.", "7 results"])
def test_prose_without_ids_gives_no_entities(words: str) -> None:
    assert entities_of_call("check_site", words) == ()


# -- types -------------------------------------------------------------------------------------------------

TOOLS = (
    "cms_createPage create_page createPage CreatePage pages.list pages/list cms.pages.get mcp__cms__get-page "
    "mcp__cms__getPage get-page page_get GET_PAGES functions.get_page list_pages_by_author getPageById v1_get_page"
).split()


@pytest.mark.spec("B4")
@each_row("tool", TOOLS)
def test_the_type_comes_from_the_tool_name_in_every_naming_convention(tool: str) -> None:
    assert extract(entities_of_call(tool, {"id": "x-1", "title": "About Us"})) == [("page", "x-1", "About Us")]


@pytest.mark.spec("B4")
def test_an_objects_type_field_outranks_the_tool_and_the_tool_outranks_the_key() -> None:
    assert extract(entities_of_call("get_page", {"type": "post", "id": "x-1"})) == [("post", "x-1", "")]
    assert extract(entities_of_call("get_invoice", {"document": {"id": "x-1"}})) == [("invoice", "x-1", "")]
    assert extract(entities_of_call("search", {"document": {"id": "x-1"}})) == [("document", "x-1", "")]
    assert extract(entities_of_call("fetch", {"__typename": "BlogPost", "id": "x-1"})) == [("blog_post", "x-1", "")]


@pytest.mark.spec("B4")
@each_row(
    ("key", "type"),
    [("entries", "entry"), ("categories", "category"), ("media", "media"), ("people", "person"), ("boxes", "box")],
)
def test_the_key_of_a_list_is_read_as_an_english_plural(key: str, type: str) -> None:
    assert [thing.type for thing in entities_of_call("search", {key: [{"id": "x-1"}, {"id": "x-2"}]})] == [type, type]


@pytest.mark.spec("B4")
@pytest.mark.parametrize("tool", ["run", "execute", "invoke", "call_tool"])
def test_a_run_tool_gives_no_type(tool: str) -> None:
    assert [thing.type for thing in entities_of_call(tool, {"categories": [{"id": "x-1"}]})] == ["category"]


@pytest.mark.spec("B5")
def test_a_host_can_register_synonyms_of_a_type() -> None:
    rules = EntityRules(types={"customer": ["client", "account_holder"]})
    assert extract(entities_of_call("get_client", {"id": "c-1", "name": "Ada"}, rules=rules)) == [
        ("customer", "c-1", "Ada")
    ]
    [note] = entities_of_call("get_note", {"id": "n-1", "account_holder_id": "c-1"}, rules=rules)
    assert (note.parent, parts(note)) == (("customer", "c-1"), [("customer", "c-1", "")])


# -- ids and names -----------------------------------------------------------------------------------------


@pytest.mark.spec("B4")
@each_row("key", ["id", "uuid", "_id", "key", "pageId", "page_id", "ID", "Id", "pageUUID", "guid"])
def test_every_id_key_is_recognised(key: str) -> None:
    assert extract(entities_of_call("get_page", {"title": "About Us", key: "x-1"})) == [("page", "x-1", "About Us")]


@pytest.mark.spec("B4")
def test_a_number_is_an_id_under_an_id_key() -> None:
    [page] = entities_of_call("get_page", {"id": 7, "owner_id": 12, "views": 1204, "price": 20240501})
    assert (page.id, parts(page)) == ("7", [("owner", "12", "")])


@pytest.mark.spec("B4")
@each_row("value", [None, "", "  ", True, 1.5, [], {}, "x" * 500, "two\nlines"])
def test_a_value_that_cannot_be_an_id_is_ignored_under_any_key(value: Any) -> None:
    assert all(
        thing.id == "p-1" for thing in entities_of_call("get_page", {"page": {"id": "p-1"}, "author": {"id": value}})
    )
    assert [
        part.id for thing in entities_of_call("get_page", {"id": "p-1", "author_id": value}) for part in thing.parts
    ] == []


NAMES = ["title", "name", "heading", "label", "subject", "filename", "slug", "email"]


@pytest.mark.spec("B4")
@each_row("index", range(len(NAMES)))
def test_the_name_comes_from_the_first_of_these_keys(index: int) -> None:
    value = {name: f"the {name}" for name in reversed(NAMES[index:])}
    [thing] = entities_of_call("get_page", {"id": "p-1", **value})
    assert thing.name == f"the {NAMES[index]}"


@pytest.mark.spec("B4")
def test_an_empty_name_is_skipped_a_long_one_is_cut_and_all_are_one_line() -> None:
    [thing] = entities_of_call("get_page", {"id": "p-1", "title": "  ", "name": "About\n  Us\u2028now"})
    assert thing.name == "About Us now"
    [thing] = entities_of_call("get_page", {"id": "p-1", "title": "word " * 100})
    assert 0 < len(thing.name) <= 80


@pytest.mark.spec("B4")
def test_a_person_has_first_and_last_name() -> None:
    [user] = entities_of_call("get_user", {"user_id": "u-1", "name": {"first_name": "Mei", "last_name": "Kovacs"}})
    assert user.name == "Mei Kovacs"


@pytest.mark.spec("B2", "B4")
def test_ids_inside_an_object_are_parts_typed_by_their_keys() -> None:
    order = {
        "order_id": "#W6390527",
        "user_id": "mei_kovacs_8020",
        "items": [{"name": "Desk Lamp", "item_id": "8384507844", "product_id": "6817146515", "price": 153.23}],
        "payment_history": [{"payment_method_id": "paypal_7644869", "amount": 153.23}],
        "address": {"zip": "28236", "address1": "317 Elm Street"},
    }
    [thing] = entities_of_call("get_order_details", order, {"order_id": "#W6390527"})
    assert (thing.type, thing.id, thing.parent) == ("order", "#W6390527", ("user", "mei_kovacs_8020"))
    assert parts(thing) == [
        ("user", "mei_kovacs_8020", ""),
        ("item", "8384507844", "Desk Lamp"),
        ("product", "6817146515", ""),
        ("payment_method", "paypal_7644869", ""),
    ]


@pytest.mark.spec("B4")
def test_dictionary_keys_that_are_ids_are_parts() -> None:
    [user] = entities_of_call(
        "get_user", {"user_id": "u-1", "payment_methods": {"paypal_7644869": {"source": "paypal"}}}
    )
    assert parts(user) == [("payment_method", "paypal_7644869", "")]


@pytest.mark.spec("B4")
def test_the_key_of_a_key_value_pair_is_not_an_id() -> None:
    [page] = entities_of_call("get_page", {"id": "page-123", "properties": [{"key": "colour", "value": "red"}]})
    assert page.parts == ()


# -- values that are not ids -------------------------------------------------------------------------------

NO_IDS = {
    "price": "19.99",
    "total": "$120",
    "amount": "USD450",
    "discount": "12%",
    "date": "2024-05-01",
    "created": "2024-05-01T10:00:00Z",
    "month": "May-2024",
    "time": "10:30pm",
    "count": "12",
    "stock": "40000",
    "size": "1080x720",
    "weight": "12kg",
    "screen": "27-inch",
    "version": "v1.2.3",
    "agent": "python3",
    "model": "Boeing737",
    "ip": "10.0.0.1",
    "phone": "+1-555-123-4567",
    "contact": "555-123-4567",
    "call": "5551234567",
    "fax_number": "A5551234567",
    "colour": "#ff00aa",
    "background": "#fff",
    "zip": "94107",
    "postal_code": "SW1A1AA",
    "address": "742 Evergreen Terrace, Springfield 90210",
    "mime": "video/mp4",
    "encoding": "utf-8",
    "error_code": "E1234",
    "room_number": "1204",
    "quarter": "Q3-2024",
    "seat": "12A",
    "card_number": "4111111111111111",
}


@pytest.mark.spec("B4")
@each_row("key", NO_IDS)
def test_numbers_measures_and_dates_are_not_ids(key: str) -> None:
    [thing] = entities_of_call("get_thing", {"id": "thing-123", key: NO_IDS[key]})
    assert thing.parts == ()


@pytest.mark.spec("B4")
def test_numbers_measures_and_dates_are_not_ids_in_prose() -> None:
    note = (
        "Call 555-123-4567 or +1 (555) 123 4567 by 2024-05-01 10:30pm. It costs $19.99 or 20 EUR for 12kg, 1080x720, "
        "colour #ff00aa, v2.3.4, 40% off, zip 94107, room 1204, chapter 7, page 12, 3rd floor, since 2019, covid-19."
    )
    assert entities_of_call("read_note", note) == ()
    [thing] = entities_of_call("get_note", {"id": "note-123", "text": note})
    assert thing.parts == ()


@pytest.mark.spec("B4")
@each_row("value", ["2024-05-01", "12kg", "19.99", "94107", "5551234567", "v1.2.3"])
def test_the_same_values_are_ids_under_an_id_key(value: str) -> None:
    [thing] = entities_of_call("get_thing", {"id": "thing-123", "release_id": value})
    assert parts(thing) == [("release", value, "")]


SECRETS = {
    "token": "tok_9a8b7c6d",
    "api_key": "key_12345678",
    "apiKey": "key_12345678",
    "access_key_id": "ABCD1234EFGH",
    "private_key": "abc123def456",
    "client_secret": "abc123def456",
    "password": "hunter2222",
    "authorization": "Bearer abc123def456",
    "session_token": "ab12cd34ef56",
    "token_id": "ab12cd34ef56",
    "cookie": "sid_ab12cd34",
    "note": "sk-proj-abcdef1234567890abcd",
    "text": "Use ghp_16C7e42F292c6912E7710c838347Ae178B4a for this, or AKIAIOSFODNN7EXAMPLE.",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc123",
    "value": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc123",
}


@pytest.mark.spec("B4")
@each_row("key", SECRETS)
def test_secrets_are_not_stored(key: str) -> None:
    [thing] = entities_of_call("get_thing", {"id": "thing-123", key: SECRETS[key]}, {key: SECRETS[key]})
    assert (thing.id, thing.parts) == ("thing-123", ())


@pytest.mark.spec("B4")
def test_a_secret_is_not_an_entity() -> None:
    assert entities_of_call("create_token", {"token": "tok_9a8b7c6d"}) == ()
    assert entities_of_call("create_token", {"api_key": "sk-proj-abcdef1234567890abcd"}) == ()
    assert entities_of_call("create_token", "ghp_16C7e42F292c6912E7710c838347Ae178B4a") == ()
    assert entities_of_call("create_token", {"id": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}) == ()


# -- arguments ---------------------------------------------------------------------------------------------


@pytest.mark.spec("B4")
@each_row("result", [{"success": True}, "OK", None, [], True, ""])
@each_row("arguments", [{"page_id": "page-9"}, {"pageId": "page-9"}, {"id": "page-9"}, '{"id": "page-9"}'])
def test_ids_found_only_in_the_arguments_count(result: Any, arguments: Any) -> None:
    [thing] = entities_of_call("publish_page", result, arguments)
    assert (thing.type, thing.id) == ("page", "page-9")


@pytest.mark.spec("B4")
def test_arguments_give_the_name_and_parent_of_a_created_entity() -> None:
    [page] = entities_of_call("create_page", {"id": "page-123"}, {"title": "About Us", "collection_id": "coll-9"})[:1]
    assert (page.name, page.parent, page.action) == ("About Us", ("collection", "coll-9"), "create")


@pytest.mark.spec("B4")
def test_a_search_term_is_not_the_name_of_the_first_hit() -> None:
    [page] = entities_of_call("search_pages", [{"id": "page-123"}], {"title": "About"})
    assert page.name == ""


@pytest.mark.spec("B4")
def test_a_result_without_an_id_describes_the_entity_in_the_arguments() -> None:
    [user] = entities_of_call("get_user_details", {"name": "Mei", "orders": ["#W6390527"]}, {"user_id": "mei_8020"})
    assert (user.type, user.id, user.name, parts(user)) == ("user", "mei_8020", "Mei", [("order", "#W6390527", "")])


@pytest.mark.spec("B4")
def test_other_ids_in_the_arguments_count_as_used() -> None:
    order, *used = entities_of_call(
        "get_order", {"order_id": "#W1234567"}, {"order_id": "#W1234567", "shop_id": "shop-9"}
    )
    assert (order.id, order.how) == ("#W1234567", "seen")
    assert [(thing.id, thing.how) for thing in used] == [("shop-9", "used")]


@pytest.mark.spec("B2", "B4")
def test_prose_does_not_describe_entities_of_another_type() -> None:
    """The items were used and are parts of their order; they were not opened."""
    things = entities_of_call("exchange", "OK", {"item_ids": ["8384507844", "8538875209"]})
    assert [(thing.id, thing.how) for thing in things] == [("8384507844", "used"), ("8538875209", "used")]


# -- failed calls ------------------------------------------------------------------------------------------

FAILURES: list[Any] = [
    {"error": "not allowed", "page": ABOUT},
    {"error": {"code": 403}, "id": "page-123"},
    {"success": False, "page": ABOUT},
    {"ok": False, "id": "page-123"},
    {"status": "error", "id": "page-123"},
    {"status": 404, "id": "page-123"},
    {"errors": [{"message": "no such page"}], "data": None},
    {"errors": [{"message": "no such page"}], "data": {"page": None}},
    {"isError": True, "content": [{"type": "text", "text": "page-123"}]},
    [{"type": "text", "text": "Error: page-123 is locked"}],
    json.dumps({"error": "not allowed", "page_id": "page-123"}),
    json.dumps({"isError": True, "content": [{"type": "text", "text": "page-123"}]}),
    "Error: page page-123 is locked",
    "error - page-123",
    "Failed to open page-123",
    "Traceback (most recent call last):\n  page-123",
    "Page page-123 not found",
    "No such page: page-123",
    "Page page-123 does not exist.",
    "Permission denied for page-123",
    "错误：页面 page-123",
]


@pytest.mark.spec("B4")
@each_row("result", FAILURES, ids=str)
def test_a_failed_call_adds_nothing(result: Any) -> None:
    assert entities_of_call("get_page", result, {"page_id": "page-123"}) == ()


@pytest.mark.spec("B4")
def test_a_call_that_the_host_marks_as_failed_adds_nothing() -> None:
    assert (
        sightings_from_result(read_outcome(ToolObserved("get_page", {"page_id": "page-123"}, ABOUT, error=True))) == ()
    )


@pytest.mark.spec("B4")
@each_row(
    "result",
    [
        {"error": None, "id": "page-123"},
        {"error": False, "id": "page-123"},
        {"error": "", "id": "page-123"},
        {"errors": [], "data": {"page": {"id": "page-123"}}},
        {"errors": [{"message": "one field"}], "data": {"page": {"id": "page-123"}}},
        {"id": "page-123", "title": "Error: page not found"},
        '{"id": "page-123", "title": "Page not found"}',
        "id: page-123\ntitle: Page not found",
        {"status": "failed", "id": "page-123", "title": "Nightly build", "at": "12:00"},
        {"status": 200, "id": "page-123"},
        "This is page-123, which says: not found. " + "And it says much else. " * 20,
        "Page one was not found," + " " * 300 + "but page-123 was.",
    ],
    ids=str,
)
def test_a_result_about_failures_is_not_a_failed_call(result: Any) -> None:
    assert [thing.id for thing in entities_of_call("get_page", result)] == ["page-123"]


# -- deletions ---------------------------------------------------------------------------------------------


@pytest.mark.spec("B4")
@each_row(
    ("tool", "arguments", "result"),
    [
        ("delete_page", {"page_id": "page-123"}, {"success": True}),
        ("cms_deletePage", {"pageId": "page-123"}, "OK"),
        ("pages.delete", {"id": "page-123"}, None),
        ("mcp__cms__remove-page", {"id": "page-123"}, ""),
        ("delete_page", {}, {"deleted": True, "id": "page-123"}),
        ("trash_page", {"id": "page-123"}, {"page": ABOUT}),
    ],
)
def test_a_delete_call_marks_the_entity_as_deleted(tool: str, arguments: Any, result: Any) -> None:
    [thing] = entities_of_call(tool, result, arguments)
    assert (thing.type, thing.id, thing.how) == ("page", "page-123", "deleted")


@pytest.mark.spec("B4")
def test_the_container_of_a_deletion_was_only_used() -> None:
    things = entities_of_call("cms_removeSection", {"success": True}, {"pageId": "page-123", "sectionId": "sec-456"})
    assert [(thing.type, thing.how) for thing in things] == [("page", "used"), ("section", "deleted")]


@pytest.mark.spec("B4")
def test_several_entities_can_be_deleted_at_once() -> None:
    things = entities_of_call("delete_pages", {"deleted": ["page-123", "page-456"]}, {"ids": ["page-123", "page-456"]})
    assert [(thing.id, thing.how) for thing in things] == [("page-123", "deleted"), ("page-456", "deleted")]


# -- registration ------------------------------------------------------------------------------------------


@pytest.mark.spec("B5")
def test_a_host_can_register_id_keys() -> None:
    rules = EntityRules(id_keys={"matricule": "employee"})
    assert extract(entities_of_call("lookup", {"matricule": "0042", "name": "Ada"}, rules=rules)) == [
        ("employee", "0042", "Ada")
    ]
    [team] = entities_of_call("get_team", {"id": "t-1", "members": [{"matricule": "0042"}]}, rules=rules)
    assert parts(team) == [("employee", "0042", "")]
    assert extract(entities_of_call("promote", "OK", {"matricule": "0042"}, rules=rules)) == [("employee", "0042", "")]


@pytest.mark.spec("B5")
def test_a_host_extractor_replaces_the_default_for_tools_of_its_pattern() -> None:
    rules = EntityRules(extractors={"crm_*": lambda outcome: [Entity(outcome.result["nr"], "lead", "Acme")]})
    assert extract(entities_of_call("crm_get", {"nr": "L1", "id": "other-1"}, rules=rules)) == [("lead", "L1", "Acme")]
    assert extract(entities_of_call("get_page", ABOUT, rules=rules)) == ONE
    assert sightings_from_result(read_outcome(ToolObserved("crm_get", {}, {"nr": "L1"}, error=True)), rules) == ()


def raising(outcome: ToolObserved) -> list[Any]:
    return [outcome.result["nowhere"]]


WRONG: dict[str, Callable[[ToolObserved], Any]] = {
    "raises": raising,
    "nothing": lambda _: None,
    "strings": lambda _: ["page-123"],
    "no id": lambda _: [{"type": "page", "id": ""}],
    "two lines": lambda _: [{"type": "page", "id": "p\n1"}],
    "no iterable": lambda _: 7,
}


@pytest.mark.spec("B5")
@each_row("wrong", WRONG)
def test_a_failing_extractor_is_named_in_the_error(wrong: str) -> None:
    with pytest.raises(ExtractorFailed) as failure:
        entities_of_call("crm_get", {"id": "x-1"}, rules=EntityRules(extractors={"crm_*": WRONG[wrong]}))
    assert failure.value.code == "EXTRACTOR_FAILED"
    assert "crm_*" in str(failure.value)
    assert "crm_get" in str(failure.value)


# -- large results -----------------------------------------------------------------------------------------

LARGE: dict[str, Callable[[], Any]] = {
    "keys": lambda: {f"key_{n}": n for n in range(50_000)},
    "id keys": lambda: {f"k{n}_id": n for n in range(50_000)},
    "objects by id": lambda: {f"page-{n}x": {"a": 1} for n in range(50_000)},
    "ids by name": lambda: {f"name {n}": f"id{n:08}x" for n in range(50_000)},
    "lists": lambda: {f"group{n}s": [{"id": f"x-{n}-1"}, {"id": f"x-{n}-2"}] for n in range(50_000)},
    "texts of JSON": lambda: {f"k{n}": f'{{"id": "x-{n}"}}' for n in range(50_000)},
    "ids": lambda: {"ids": [f"page-{n}x" for n in range(100_000)]},
    "spaces": lambda: " " * 1_000_000,
    "lines": lambda: "\n" * 1_000_000,
    "dashes": lambda: "- " * 50_000 + "x",
    "colons": lambda: "a:" * 500_000,
    "quotes": lambda: "'\"" * 500_000,
}


@pytest.mark.exhaustive
@pytest.mark.spec("B4")
@each_row("tool", ["list_pages", "get_page", "delete_pages"])
@each_row("large", LARGE)
def test_a_large_result_is_read_up_to_its_limits(large: str, tool: str) -> None:
    """The test hangs if the whole result is read; the limits are those of stored records."""
    value = LARGE[large]()
    things = entities_of_call(tool, value, value)
    assert len(things) <= MAX_RECORDS + MAX_USED_ARGUMENTS
    assert all(len(thing.parts) <= MAX_PARTS for thing in things)


@pytest.mark.spec("B4")
def test_a_text_with_one_name_per_line_is_a_list_if_the_tool_noun_is_plural() -> None:
    answer = "Hotel Names: Le Marais Boutique\nGood Night\nCity Hub\nLuxury Palace\n"
    first, *_ = seen = entities_of_call("get_all_hotels_in_city", answer)
    assert [thing.id for thing in seen] == ["Le Marais Boutique", "Good Night", "City Hub"]
    assert EntityPart("hotel", "Luxury Palace", from_same_list=True) in first.parts
    assert entities_of_call("get_weather", "Sunny\nWarm\n") == ()


@pytest.mark.spec("B4")
def test_an_entity_requested_by_name_is_identified_by_it() -> None:
    answer = {"City Hub": "Rating: 4.2", "Good Night": "Rating: 3.9"}
    seen = entities_of_call("get_rating_reviews_for_hotels", answer, {"hotel_names": ["City Hub", "Good Night"]})
    assert extract(seen) == [("hotel", "City Hub", ""), ("hotel", "Good Night", "")]
    [channel] = entities_of_call("read_channel_messages", [{"sender": "Alice", "body": "hi"}], {"channel": "general"})
    assert (channel.type, channel.id, channel.parts) == ("channel", "general", (EntityPart("sender", "Alice"),))
    assert (
        extract(entities_of_call("send_mail", "sent", {"first_name": "Ada", "title": "Hello", "body": "Dear all"}))
        == []
    )
    assert (
        extract(entities_of_call("modify_address", "done", {"address1": "Elm Street", "address2": "Suite 872"})) == []
    )


@pytest.mark.spec("B4")
def test_text_around_an_object_is_searched() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "web-1", "uid": "6f9-aa12-0b"}}
    assert extract(entities_of_call("kubectl_get", {"items": [pod]})) == [("pod", "6f9-aa12-0b", "web-1")]
    assert extract(entities_of_call("list_issues", [{"number": 42, "title": "Bug"}])) == [("issue", "42", "Bug")]
    assert extract(entities_of_call("get_issue", {"issueKey": "SHOP-12"})) == [("issue", "SHOP-12", "")]
    [issue] = entities_of_call("get_issue", {"id": 1, "number": 1347, "title": "Bug"})
    assert (issue.id, issue.parts) == ("1", (EntityPart("number", "1347"),))
    [closed] = entities_of_call("close_issue", "done", {"issue_number": 1347})
    assert (closed.type, closed.id) == ("issue", "1347")


@pytest.mark.spec("B4")
@pytest.mark.parametrize("kind", [{"id": 3, "name": "Switch"}, ["Hotel", "Place"], 7, None])
def test_a_type_field_that_is_not_a_word_is_ignored(kind: Any) -> None:
    assert extract(entities_of_call("get_device", {"id": "d-100", "name": "sw", "type": kind})) == [
        ("device", "d-100", "sw")
    ]


@pytest.mark.spec("B4")
def test_the_type_of_an_object_does_not_depend_on_its_neighbours() -> None:
    one, other = {"id": "", "page_id": "p-100", "name": "A"}, {"id": "p-500", "page_id": "p-200", "name": "B"}
    assert {t.id for t in entities_of_call("list_pages", [one, other])} == {
        t.id for t in entities_of_call("list_pages", [other, one])
    }


@pytest.mark.spec("B4")
@each_row(
    "answer",
    [
        "Could not delete page-1: it is locked by Bob",
        "You do not have permission to delete this page.",
        "Rate limit exceeded, try again later",
        "Are you sure? Call again with confirm=true",
        "Queued for approval",
        "无法删除页面",
        {"deleted": False},
        {"deletedCount": 0},
        {"dry_run": True, "would_delete": 1},
        False,
    ],
)
def test_an_entity_whose_deletion_failed_is_not_deleted(answer: Any) -> None:
    assert all(thing.how != "deleted" for thing in entities_of_call("delete_page", answer, {"page_id": "page-1"}))


@pytest.mark.spec("B4")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("remove_tag", {"page_id": "page-1", "tag": "x"}),
        ("remove_label_from_issue", {"issue_id": "i-100", "label": "bug"}),
        ("delete_page_draft", {"page_id": "page-1"}),
        ("remove_product_from_cart", {"product_id": "p-100", "cart_id": "c-100"}),
    ],
)
def test_only_the_object_of_the_verb_is_deleted(tool: str, arguments: Any) -> None:
    deleted_ids = {thing.id for thing in entities_of_call(tool, {"success": True}, arguments) if thing.how == "deleted"}
    assert deleted_ids.isdisjoint(value for key, value in arguments.items() if key.endswith("_id"))


@pytest.mark.spec("B4")
@each_row("answer", [{"detail": "Not found."}, {"errors": [{"message": "x"}]}, {"code": 404}, [], None])
def test_an_empty_result_does_not_prove_an_id(answer: Any) -> None:
    assert entities_of_call("get_page", answer, {"page_id": "page-99999"}) == ()


@pytest.mark.spec("B4")
def test_a_search_in_a_container_is_about_its_hits() -> None:
    hits = {"pages": [{"id": "page-1", "title": "A"}, {"id": "page-2", "title": "B"}]}
    assert extract(entities_of_call("cms_search", hits, {"siteId": "site-77"}))[0] == ("page", "page-1", "A")
    assert extract(
        entities_of_call("jira_search", {"issues": [{"id": "10002", "key": "OPS-142", "fields": {"summary": "TLS"}}]})
    ) == [("issue", "OPS-142", "TLS")]


@pytest.mark.spec("B4")
def test_names_are_found_under_any_key_spelling_without_control_characters() -> None:
    for names in ({"Name": "Acme"}, {"accountName": "Acme"}, {"NAME": "Acme"}, {"name": "Ac\x00me\ud800"}):
        assert extract(entities_of_call("get_account", {"Id": "001A", **names})) == [("account", "001A", "Acme")]
    assert extract(entities_of_call("get_user", {"id": 7, "firstName": "Ada", "lastName": "Byron"})) == [
        ("user", "7", "Ada Byron")
    ]


@pytest.mark.spec("B4")
def test_a_file_name_that_names_an_entity_is_not_another_entity() -> None:
    [image] = entities_of_call("get_image", {"id": "img-1", "filename": "team.jpg"})
    assert (image.name, image.parts) == ("team.jpg", ())


@pytest.mark.spec("B2", "B4")
def test_omitted_entries_of_a_long_list_are_counted() -> None:
    first, *_ = entities_of_call("list_pages", {"pages": [{"id": f"p-{n:05}"} for n in range(5_000)]})
    assert first.omitted_parts + len(first.parts) + 3 >= 4_900
    [order] = entities_of_call(
        "get_order", {"order_id": "#W1000000", "items": [{"item_id": f"i-{n:05}"} for n in range(300)]}
    )
    assert order.omitted_parts + len(order.parts) == 300


@pytest.mark.spec("B4")
def test_an_id_of_another_entity_does_not_replace_the_requested_one() -> None:
    answer = {"name": "Mug", "category_id": "cat-100", "tags": ["blue"]}
    [product, *_] = entities_of_call("get_product", answer, {"product_id": "p-100"})
    assert (product.type, product.id, product.name) == ("product", "p-100", "Mug")
    assert EntityPart("category", "cat-100") in product.parts


@pytest.mark.spec("B4")
def test_the_bare_result_of_a_create_tool_is_the_new_id() -> None:
    for answer in ("page-42", 42, "42", "Page created successfully with ID: 42"):
        [page] = entities_of_call("create_page", answer, {"title": "Foo"})
        assert (page.type, page.name) == ("page", "Foo")
        assert page.id in ("page-42", "42")
    assert entities_of_call("create_page", "2024-05-17") == ()
    assert entities_of_call("count_pages", 42) == ()
    assert entities_of_call("transfer_money", "100") == ()


@pytest.mark.spec("B4")
@each_row(
    ("tool", "answer"),
    [
        ("list_orders", "id,name,total\n17,Ann,5\n18,Bob,6\n"),
        ("list_orders", "| id | name |\n|---|---|\n| x | Ann |\n"),
        ("get_logs", "starting server\nlistening\nready"),
        ("run_tests", "collected 5 items\n5 passed in 1s"),
        ("get_comments", "great post\nthanks\n+1"),
        ("get_lyrics", "Hello darkness my old friend\nI've come to talk with you again"),
    ],
)
def test_lines_that_are_not_names_are_not_entities(tool: str, answer: str) -> None:
    assert entities_of_call(tool, answer) == ()


@pytest.mark.spec("B4")
def test_an_overlong_word_is_not_an_id() -> None:
    assert all(
        len(thing.id) < 200
        for thing in entities_of_call("run_report", "Done. session_id=" + "a1b2" * 100 + " ok, thanks")
    )
    assert entities_of_call("get_order", '{"id": ' + "9" * 5000 + "}") == ()


@pytest.mark.spec("B4")
def test_an_id_in_yaml_keeps_its_zeros() -> None:
    assert extract(entities_of_call("get_order", "order_id: 007\nstatus: open"))[0][:2] == ("order", "007")


@pytest.mark.spec("B4")
@pytest.mark.parametrize(
    "answer",
    [
        {"results": [{"id": "page-1", "success": True}, {"id": "page-2", "success": False, "error": "locked"}]},
        {"deleted": ["page-1"], "failed": ["page-2"]},
        {"deleted": ["page-1"]},
    ],
)
def test_of_several_ids_only_those_confirmed_are_deleted(answer: Any) -> None:
    things = entities_of_call("delete_pages", answer, {"page_ids": ["page-1", "page-2"]})
    assert {thing.id for thing in things if thing.how == "deleted"} == {"page-1"}


@pytest.mark.spec("B4")
def test_an_issue_is_identified_by_its_number() -> None:
    issue = {"id": 1983457234, "number": 42, "title": "Crash"}
    assert [thing.id for thing in entities_of_call("github_get_issue", issue, {"issue_number": 42})] == ["1983457234"]


@pytest.mark.spec("B4")
def test_the_result_of_removing_from_a_container_is_about_the_container() -> None:
    cart = {"cart": {"id": "cart-9", "items": [{"id": "item-4", "name": "Cup"}]}}
    first, *_ = entities_of_call("remove_item_from_cart", cart, {"cart_id": "cart-9", "item_id": "item-3"})
    assert (first.type, first.id, first.parts) == ("cart", "cart-9", (EntityPart("item", "item-4", "Cup"),))


@pytest.mark.spec("B4")
def test_a_table_heading_does_not_announce_an_id() -> None:
    assert all(
        t.id != "IMAGE" for t in entities_of_call("docker_ps", "CONTAINER ID   IMAGE   STATUS\n3f4e5d6c7b8a   web   up")
    )
