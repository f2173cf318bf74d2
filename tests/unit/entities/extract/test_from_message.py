"""Entities in user messages: ids, and names of known entities."""

from __future__ import annotations

import pytest
from builders import a_page, an_event, window_with
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_sightings
from tables import each_row

from inmind.core.events.session import EntitiesSeen, EntityPart, EntitySighting
from inmind.entities.observe import sightings_from_message
from inmind.entities.window import Entities

pytestmark = pytest.mark.spec("B2", "B4")

SITE = window_with(
    EntitySighting("image", "img-789", "关于我们.jpg"),
    a_page("page-1", "Home"),
    a_page("page-2", "Contact Form"),
    a_page("page-123", "About Us"),
    EntitySighting("order", "#W6390527", parts=(EntityPart("item", "11112222", "Desk Lamp"),)),
)


def ids_in(text: str, entities: Entities = SITE) -> list[str]:
    things = sightings_from_message(text, entities)
    assert {thing.how for thing in things} <= {"used"}
    return [thing.id for thing in things]


@each_row(
    ("text", "ids"),
    [
        ("Please rename page-123.", ["page-123"]),
        ("Rename page-1!", ["page-1"]),
        ("open about us and the contact form", ["page-123", "page-2"]),
        ("Contact Form, then About Us", ["page-2", "page-123"]),
        ("Go to Home", ["page-1"]),
        ("I am going home", []),
        ("Homepage", []),
        ("what about using this", []),
        ("how much was the desk lamp?", ["11112222"]),
        ("把关于我们.jpg删掉", ["img-789"]),
        ("order #W6390527 and order #W9999999", ["#W6390527", "#W9999999"]),
        ("see https://example.com/page-123x/9", ["https://example.com/page-123x/9"]),
        ("it", []),
        ("", []),
    ],
)
def test_ids_and_names_are_found_in_the_order_of_the_message(text: str, ids: list[str]) -> None:
    assert ids_in(text) == ids


@pytest.mark.parametrize(
    ("text", "ids"), [("close #13", ["13"]), ("close #14", []), ("13 of them", []), ("a&#13;b", [])]
)
def test_a_number_after_a_hash_counts_if_it_is_a_known_id(text: str, ids: list[str]) -> None:
    assert ids_in(text, window_with(EntitySighting("pr", "12"), EntitySighting("pr", "13"))) == ids


def test_an_earlier_name_is_found_too() -> None:
    renamed = SITE.apply(an_event(EntitiesSeen((a_page("page-123", "Our Team"),)), 9))
    assert ids_in("bring back About Us", renamed) == ["page-123"]


def test_an_evicted_entity_is_found() -> None:
    entities = SITE.evict(SITE.overflow(1))
    assert ids_in("What about the Contact Form?", entities) == ["page-2"]


def test_a_known_id_keeps_its_known_type() -> None:
    after = SITE.apply(an_event(EntitiesSeen(sightings_from_message("and page-2 again", SITE)), 9))
    assert next((e.type, e.id) for e in after) == ("page", "page-2")
    assert len(after) == len(SITE)


@given(st.text(max_size=200), st.lists(entity_sightings(), max_size=6))
def test_no_message_makes_extraction_fail(text: str, seen: list[EntitySighting]) -> None:
    assert all(thing.id for thing in sightings_from_message(text, window_with(*seen)))
