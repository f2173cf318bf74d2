"""The window as a host keeps it: every version comes back, and what does not fit is refused whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_page, an_event, in_mind
from hypothesis import given
from hypothesis import strategies as st
from strategies import things

from inmind import Entity
from inmind.entities.checkpoint import VERSION, deserialize, serialize, thing_from
from inmind.entities.window import Entities
from inmind.errors import InvalidInput
from inmind.journal import EntitiesRestored, Part, ThingSeen

pytestmark = pytest.mark.spec("B9")


def restored(data: Any) -> Entities:
    return Entities().apply(an_event(EntitiesRestored(deserialize(data))))


def known(entities: Entities) -> list[tuple[Any, ...]]:
    """All of a thing but when and by which event it came here, and which of its parts had only stood beside it."""
    return [
        (e.key, e.name, e.aliases, e.parent, e.action, e.deleted, e.pinned, [part[:3] for part in e.parts])
        for e in entities
    ]


@given(st.lists(things(), max_size=10))
def test_what_was_serialized_comes_back_through_json(seen: list[ThingSeen]) -> None:
    entities = in_mind(*seen)
    data = json.loads(json.dumps(serialize(entities)))
    assert data["version"] == VERSION
    assert known(restored(data)) == known(entities)


def test_the_oldest_version_is_id_name_and_type() -> None:
    data = {
        "entities": [{"id": "page-123", "name": "About Us", "type": "page"}, {"id": "p-2", "type": "page"}],
        "version": 1,
    }
    assert [(e.id, e.name) for e in restored(data)] == [("page-123", "About Us"), ("p-2", "p-2")]
    del data["version"]
    assert [e.id for e in restored(data)] == ["page-123", "p-2"]


def test_an_id_may_have_been_a_number_and_what_is_there_twice_stands_where_it_first_stood() -> None:
    things = deserialize(
        {"entities": [{"id": 7, "type": "page", "name": "New"}, {"id": "7", "type": "page", "name": "Old"}]}
    )
    assert things == (ThingSeen("page", "7", "New"),)


@pytest.mark.parametrize(
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
        ({"entities": [{"id": "x", "type": "page", "parts": [{"id": "y"}]}]}, "data.entities[0].parts[0].type"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_by_field(data: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        deserialize(data)
    assert refused.value.field == field


def test_an_entity_that_a_host_hands_in_is_taken_with_all_that_it_says() -> None:
    entity = Entity(
        "p-1", "page", "New", aliases=("Old",), parent=("site", "s-1"), parts=(Part("item", "i-1", "Lamp"),)
    )
    seen = thing_from(entity, "entity")
    assert (seen.name, seen.aliases, seen.parent, seen.parts) == ("New", ("Old",), ("site", "s-1"), entity.parts)
    assert thing_from({"id": "page-123", "type": "page", "name": "About Us"}, "entity") == a_page()


@pytest.mark.parametrize(
    "entity",
    [Entity("", "page"), Entity("p\n1", "page"), Entity("p-1", ""), Entity("p-1", "page", aliases=("a\nb",))],
)
def test_an_entity_that_does_not_fit_is_refused(entity: Entity) -> None:
    with pytest.raises(InvalidInput):
        thing_from(entity, "entity")
