"""Checkpoints of the window: every version is read, invalid ones are rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_page, an_event, window_with
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_sightings
from tables import each_row

from inmind import Entity
from inmind.core.events.session import EntitiesRestored, EntityPart, EntitySighting
from inmind.entities.entity import MAX_PARTS
from inmind.entities.serialize import VERSION, deserialize, serialize, sighting_from
from inmind.entities.window import Entities
from inmind.errors import InvalidInput

pytestmark = pytest.mark.spec("B9")


def restore(data: Any) -> Entities:
    return Entities().apply(an_event(EntitiesRestored(deserialize(data))))


def without_provenance(entities: Entities) -> list[tuple[Any, ...]]:
    """All fields except the times and source events."""
    return [
        (e.key, e.name, e.aliases, e.parent, e.action, e.deleted, e.pinned, e.parts, e.parts_left_out) for e in entities
    ]


@given(st.lists(entity_sightings(), max_size=10))
def test_a_checkpoint_survives_json(seen: list[EntitySighting]) -> None:
    entities = window_with(*seen)
    data = json.loads(json.dumps(serialize(entities)))
    assert data["version"] == VERSION
    assert without_provenance(restore(data)) == without_provenance(entities)


def test_listed_and_deleted_survive_a_checkpoint() -> None:
    listed, deleted = a_page("page-1", how="listed"), a_page("page-2", how="listed")
    entities = window_with(listed, deleted, a_page("page-2", how="deleted"), a_page("page-3"))
    assert {thing.id: thing.how for thing in deserialize(serialize(entities))} == {
        "page-1": "listed",
        "page-2": "deleted",
        "page-3": "seen",
    }


def test_omitted_parts_survive_a_checkpoint() -> None:
    items = tuple(EntityPart("item", f"item-{n}", from_same_list=n % 2 == 1) for n in range(MAX_PARTS + 5))
    entities = window_with(EntitySighting("order", "#W1234567", parts=items))
    assert entities[0].parts_left_out == 5
    assert without_provenance(restore(serialize(entities))) == without_provenance(entities)


@each_row("field", ["id", "type"])
@each_row("hidden", ["\x00", "\x07", "\x1b", "\x7f", "\x9b"], ids=ascii)
def test_control_characters_are_rejected_in_ids_and_types(field: str, hidden: str) -> None:
    thing = {"id": "page-1", "type": "page", field: f"pa{hidden}ge"}
    for refuse in (lambda: deserialize({"entities": [thing]}), lambda: sighting_from(thing, "data.entities[0]")):
        with pytest.raises(InvalidInput) as refused:
            refuse()
        assert refused.value.field == f"data.entities[0].{field}"
    with pytest.raises(InvalidInput):
        deserialize({"entities": [{"id": "x", "type": "page", "parts": [{"id": "y", "type": "item", field: hidden}]}]})


def test_control_characters_are_removed_from_names() -> None:
    names = {
        "name": "Ho\x00me",
        "aliases": ["St\x1bart", "\x07"],
        "parts": [{"id": "i", "type": "item", "name": "L\x00"}],
    }
    [thing] = deserialize({"entities": [{"id": "page-1", "type": "page", **names}]})
    assert (thing.name, thing.aliases, thing.parts) == ("Home", ("Start",), (EntityPart("item", "i", "L"),))


def test_the_oldest_version_is_id_name_and_type() -> None:
    data = {
        "entities": [{"id": "page-123", "name": "About Us", "type": "page"}, {"id": "p-2", "type": "page"}],
        "version": 1,
    }
    assert [(e.id, e.name) for e in restore(data)] == [("page-123", "About Us"), ("p-2", "p-2")]
    del data["version"]
    assert [e.id for e in restore(data)] == ["page-123", "p-2"]


def test_a_number_is_accepted_as_id_and_a_duplicate_keeps_its_first_position() -> None:
    things = deserialize(
        {"entities": [{"id": 7, "type": "page", "name": "New"}, {"id": "7", "type": "page", "name": "Old"}]}
    )
    assert things == (EntitySighting("page", "7", "New"),)


@each_row(
    ("data", "field"),
    [
        (None, "data"),
        ("[]", "data"),
        ([], "data"),
        ({"version": VERSION + 1, "entities": []}, "data.version"),
        ({"version": 0, "entities": []}, "data.version"),
        ({"version": "1", "entities": []}, "data.version"),
        ({"version": True, "entities": []}, "data.version"),
        ({"version": 1}, "data.entities"),
        ({"entities": {"id": "x"}}, "data.entities"),
        ({"entities": ["page-123"]}, "data.entities[0]"),
        ({"entities": [{"type": "page"}]}, "data.entities[0].id"),
        ({"entities": [{"id": "", "type": "page"}]}, "data.entities[0].id"),
        ({"entities": [{"id": "x", "type": "page"}, {"id": "y"}]}, "data.entities[1].type"),
        ({"entities": [{"id": "x\ny", "type": "page"}]}, "data.entities[0].id"),
        ({"entities": [{"id": "x\u2028y", "type": "page"}]}, "data.entities[0].id"),
        ({"entities": [{"id": "\ud800", "type": "page"}]}, "data.entities[0].id"),
        ({"entities": [{"id": "x" * 501, "type": "page"}]}, "data.entities[0].id"),
        ({"entities": [{"id": "x", "type": "page", "name": ["x"]}]}, "data.entities[0].name"),
        ({"entities": [{"id": "x", "type": "page", "parent": "page"}]}, "data.entities[0].parent"),
        ({"entities": [{"id": "x", "type": "page", "parent": ["page"]}]}, "data.entities[0].parent"),
        ({"entities": [{"id": "x", "type": "page", "aliases": "Old"}]}, "data.entities[0].aliases"),
        ({"entities": [{"id": "x", "type": "page", "aliases": [1.5]}]}, "data.entities[0].aliases"),
        ({"entities": [{"id": "x", "type": "page", "parts": [7]}]}, "data.entities[0].parts[0]"),
        ({"entities": [{"id": "x", "type": "page", "parts_left_out": -1}]}, "data.entities[0].parts_left_out"),
        ({"entities": [{"id": "x", "type": "page", "parts_left_out": "2"}]}, "data.entities[0].parts_left_out"),
        ({"entities": [{"id": "x", "type": "page", "parts": [{"id": "y"}]}]}, "data.entities[0].parts[0].type"),
    ],
    ids=str,
)
def test_invalid_checkpoints_are_rejected_by_field(data: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        deserialize(data)
    assert refused.value.field == field


def test_an_entity_of_a_host_is_accepted_with_all_fields() -> None:
    entity = Entity(
        "p-1", "page", "New", aliases=("Old",), parent=("site", "s-1"), parts=(EntityPart("item", "i-1", "Lamp"),)
    )
    seen = sighting_from(entity, "entity")
    assert (seen.name, seen.aliases, seen.parent, seen.parts) == ("New", ("Old",), ("site", "s-1"), entity.parts)
    assert sighting_from({"id": "page-123", "type": "page", "name": "About Us"}, "entity") == a_page()


@pytest.mark.parametrize(
    ("fields", "name"),
    [({"title": "Foo"}, "Foo"), ({"name": "Foo", "title": "Bar"}, "Foo"), ({"label": 7}, ""), ({}, "")],
    ids=["title", "name and title", "no text", "none"],
)
def test_a_mapping_of_a_host_has_its_name_under_any_usual_key(fields: dict[str, Any], name: str) -> None:
    assert sighting_from({"id": "page-1", "type": "page", **fields}, "entity").name == name


def test_an_entity_of_a_host_does_not_count_as_listed() -> None:
    assert sighting_from(Entity("p-1", "page", listed=True), "entity").how == "seen"


@pytest.mark.parametrize(
    "entity",
    [Entity("", "page"), Entity("p\n1", "page"), Entity("p-1", ""), Entity("p-1", "page", aliases=("a\nb",))],
)
def test_an_invalid_entity_is_rejected(entity: Entity) -> None:
    with pytest.raises(InvalidInput):
        sighting_from(entity, "entity")


def test_entities_have_serialize_and_restore_as_methods() -> None:
    data = Entities.restore({"entities": [{"id": "page-1", "type": "page", "name": "Home"}], "version": 1}).serialize()
    assert (data["version"], [entity["id"] for entity in data["entities"]]) == (VERSION, ["page-1"])
    assert str(Entities.restore(data)) == 'page-1, "Home"'
    assert str(Entities()) == "no entities"
