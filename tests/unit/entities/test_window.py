"""Order, eviction and deletion in the entity window."""

from __future__ import annotations

import pytest
from builders import WHEN, a_page, an_event, through_json, window_with

from inmind.core.events.session import (
    EntitiesEvicted,
    EntitiesRestored,
    EntitiesSeen,
    EntityPart,
    EntityPinned,
    EntitySighting,
)
from inmind.entities.entity import MAX_PARTS
from inmind.entities.window import Entities

LAMP = EntityPart("item", "11112222", "Desk Lamp")
ORDER = EntitySighting("order", "#W6390527", parts=(LAMP, EntityPart("payment_method", "paypal_7644869")))


def see(entities: Entities, *things: EntitySighting, seq: int = 100) -> Entities:
    return entities.apply(an_event(EntitiesSeen(things), seq))


def ids(entities: Entities) -> list[str]:
    return [entity.id for entity in entities]


def evict_to(entities: Entities, limit: int) -> Entities:
    return entities.evict(entities.overflow(limit))


# -- order -------------------------------------------------------------------------------------------------


@pytest.mark.spec("B2")
def test_the_last_seen_entity_is_first() -> None:
    home, about = a_page("page-1", "Home"), a_page("page-2", "About")
    assert ids(window_with(home, about)) == ["page-2", "page-1"]
    assert ids(window_with(home, about, home)) == ["page-1", "page-2"]


@pytest.mark.spec("B2")
def test_ten_entities_fill_the_window_and_the_oldest_is_evicted() -> None:
    """Home, About, Home; eight more fill the window, the ninth evicts About, the tenth Home."""
    home, about = a_page("home", "Home"), a_page("about", "About")
    entities = window_with(home, about, home)
    for n in range(1, 9):
        entities = evict_to(see(entities, a_page(f"e{n}", f"E{n}"), seq=n + 10), 10)
    assert ids(entities) == ["e8", "e7", "e6", "e5", "e4", "e3", "e2", "e1", "home", "about"]
    entities = evict_to(see(entities, a_page("e9", "E9"), seq=50), 10)
    assert ids(entities)[-1] == "home"
    entities = evict_to(see(entities, a_page("e10", "E10"), seq=51), 10)
    assert ids(entities) == [f"e{n}" for n in range(10, 0, -1)]
    assert [entity.id for entity in entities.evicted_entities] == ["home", "about"]


@pytest.mark.spec("B2")
def test_one_result_is_added_as_a_unit_with_its_best_match_first() -> None:
    entities = see(window_with(a_page("old")), a_page("best"), a_page("second"), a_page("third"))
    assert ids(entities) == ["best", "second", "third", "old"]


@pytest.mark.spec("B2", "B1")
def test_the_newest_name_is_the_name_and_earlier_ones_are_aliases() -> None:
    entities = window_with(a_page(name="About"), a_page(name="About Us"), a_page(name=""), a_page(name="Our Team"))
    assert (entities[0].name, entities[0].aliases) == ("Our Team", ("About Us", "About"))
    again = see(entities, a_page(name="About"))
    assert (again[0].name, again[0].aliases) == ("About", ("Our Team", "About Us"))


@pytest.mark.spec("B1")
def test_an_entity_has_its_source() -> None:
    created = a_page(action="create", parent=("collection", "coll-1"))
    [page] = window_with(created, a_page("page-123", "", how="used", action="publish"))
    assert (page.key, page.parent, page.action) == (("page", "page-123"), ("collection", "coll-1"), "publish")
    assert (page.first_seen, page.last_seen, page.source, page.deleted) == (WHEN, WHEN, "session/s#2", False)


@pytest.mark.spec("B1")
def test_identity_is_type_and_id_and_an_image_is_media() -> None:
    both = window_with(EntitySighting("page", "7", "Seven"), EntitySighting("order", "7"))
    assert len(both) == 2
    [image] = window_with(EntitySighting("image", "img-1", "a.jpg"), EntitySighting("media", "img-1", "b.jpg"))
    assert (image.name, image.aliases) == ("b.jpg", ("a.jpg",))


@pytest.mark.spec("B1")
@pytest.mark.parametrize("used", [EntitySighting("page", "7", how="used"), EntitySighting("page", "7", how="deleted")])
def test_a_small_number_is_matched_together_with_its_type(used: EntitySighting) -> None:
    """update_page(page_id=7) is not about order 7."""
    entities = see(window_with(EntitySighting("order", "7", parts=(EntityPart("item", "8"),))), used)
    assert entities.get("7", "order") == window_with(EntitySighting("order", "7", parts=(EntityPart("item", "8"),)))[0]
    assert entities.get("7", "page") is not None


@pytest.mark.spec("B1")
def test_an_untyped_id_and_a_typed_one_are_one_entity() -> None:
    unknown, known = EntitySighting("reference", "page-123", how="used"), a_page()
    assert [(e.type, e.name) for e in window_with(unknown, known)] == [("page", "About Us")]
    assert [(e.type, e.name) for e in window_with(known, unknown)] == [("page", "About Us")]
    assert [(e.type, e.name) for e in window_with(known, EntitySighting("reference", "page-123"))] == [
        ("page", "About Us")
    ]
    [page] = window_with(a_page(parts=(LAMP,)), a_page(name="Our Team"), EntitySighting("reference", "page-123"))
    assert (page.name, page.aliases, page.parts) == ("Our Team", ("About Us",), (LAMP,))
    evicted = evict_to(see(window_with(unknown), a_page("other")), 1)
    restored = see(evicted, known)
    assert [entity.type for entity in restored] == ["page", "page"]
    assert list(restored.evicted_entities) == []


# -- queries -----------------------------------------------------------------------------------------------


@pytest.mark.spec("B3")
def test_entities_are_listed_by_type_in_singular_and_plural() -> None:
    entities = window_with(a_page("page-1"), EntitySighting("image", "img-1"), a_page("page-2"))
    assert [e.id for e in entities.of("page")] == [e.id for e in entities.of("pages")] == ["page-2", "page-1"]
    assert [e.id for e in entities.of("media")] == [e.id for e in entities.of("images")] == ["img-1"]
    assert entities.of("order") == ()


@pytest.mark.spec("B3")
def test_the_latest_of_a_type_is_not_deleted() -> None:
    entities = see(window_with(a_page("page-1"), a_page("page-2")), a_page("page-2", how="deleted"))
    latest = entities.latest("page")
    assert latest is not None
    assert latest.id == "page-1"
    assert entities.latest("order") is None
    assert Entities().latest() is None


@pytest.mark.spec("B3")
def test_an_entity_is_found_by_id_in_the_window_and_evicted() -> None:
    entities = evict_to(window_with(EntitySighting("image", "img-1"), a_page("page-2")), 1)
    for type in (None, "image", "media"):
        entity = entities.get("img-1", type)
        assert entity is not None
        assert entity.type == "image"
    assert entities.get("img-1", "page") is None
    assert entities.get("nowhere") is None


# -- parts -------------------------------------------------------------------------------------------------


@pytest.mark.spec("B2")
def test_parts_take_no_slot_in_the_window() -> None:
    entities = window_with(ORDER)
    assert len(entities) == 1
    assert entities.holds("11112222")


@pytest.mark.spec("B2")
def test_using_a_part_moves_its_entity_and_the_part_to_the_front() -> None:
    entities = see(window_with(ORDER, a_page()), EntitySighting("payment_method", "paypal_7644869", how="used"))
    assert ids(entities) == ["#W6390527", "page-123"]
    assert [part.id for part in entities[0].parts] == ["paypal_7644869", "11112222"]


@pytest.mark.spec("B2")
def test_an_opened_part_becomes_an_entity_with_its_name() -> None:
    entities = see(window_with(ORDER), EntitySighting("item", "11112222"))
    assert [(e.type, e.name) for e in entities] == [("item", "Desk Lamp"), ("order", "#W6390527")]
    untyped = see(window_with(ORDER), EntitySighting("reference", "11112222"))
    assert [(e.type, e.name) for e in untyped] == [("item", "Desk Lamp"), ("order", "#W6390527")]


@pytest.mark.spec("B2")
def test_parts_accumulate_newest_first_and_keep_their_names() -> None:
    entities = see(
        window_with(ORDER),
        EntitySighting("order", "#W6390527", parts=(EntityPart("shop", "s-1"), EntityPart("item", "11112222"))),
    )
    assert entities[0].parts == (EntityPart("shop", "s-1"), LAMP, EntityPart("payment_method", "paypal_7644869"))


@pytest.mark.spec("B2")
def test_an_entity_has_a_maximum_of_parts_and_counts_the_others() -> None:
    def rows(start: int) -> EntitySighting:
        return EntitySighting(
            "list", "l-1", parts=tuple(EntityPart("row", f"r-{n}") for n in range(start, start + MAX_PARTS))
        )

    entities = window_with(rows(0), rows(MAX_PARTS), rows(0), rows(MAX_PARTS))
    assert len(entities[0].parts) == MAX_PARTS
    assert entities[0].parts_left_out == MAX_PARTS
    assert len(dict(entities.ids)) == 2 * MAX_PARTS + 1


# -- deletions ---------------------------------------------------------------------------------------------


@pytest.mark.spec("B4")
def test_a_deletion_does_not_move_the_entity() -> None:
    entities = see(window_with(a_page("page-1"), a_page("page-2"), a_page("page-3")), a_page("page-2", how="deleted"))
    assert [(e.id, e.deleted) for e in entities] == [("page-3", False), ("page-2", True), ("page-1", False)]


@pytest.mark.spec("B4")
def test_a_mention_does_not_revive_a_deleted_entity_but_a_sighting_does() -> None:
    after_deletion = see(window_with(a_page("page-1"), a_page("page-2")), a_page("page-1", how="deleted"))
    named = see(after_deletion, a_page("page-1", "", how="used"))
    assert [(e.id, e.deleted) for e in named] == [("page-2", False), ("page-1", True)]
    after_sighting = see(named, a_page("page-1"))
    assert [(e.id, e.deleted) for e in after_sighting] == [("page-1", False), ("page-2", False)]


@pytest.mark.spec("B4")
def test_an_entity_created_and_deleted_in_one_event_is_not_in_front() -> None:
    entities = see(window_with(a_page("page-1")), a_page("page-2"), a_page("page-2", how="deleted"))
    assert [(e.id, e.deleted) for e in entities] == [("page-1", False), ("page-2", True)]


@pytest.mark.spec("B4")
def test_deleting_an_unknown_entity_takes_no_slot() -> None:
    entities = see(window_with(a_page("page-1")), a_page("page-9", "", how="deleted"))
    assert ids(entities) == ["page-1"]
    entity = entities.get("page-9")
    assert entity is not None
    assert entity.deleted


@pytest.mark.spec("B4")
def test_a_deleted_part_is_removed_from_its_entity() -> None:
    entities = see(window_with(ORDER), EntitySighting("item", "11112222", how="deleted"))
    assert [(e.id, e.deleted, [p.id for p in e.parts]) for e in entities] == [("#W6390527", False, ["paypal_7644869"])]
    entity = entities.get("11112222")
    assert entity is not None
    assert (entity.deleted, entity.name) == (True, "Desk Lamp")


# -- evictions ---------------------------------------------------------------------------------------------


@pytest.mark.spec("B2")
def test_an_evicted_entity_returns_unchanged_when_mentioned() -> None:
    order = window_with(ORDER)[0]
    entities = evict_to(see(window_with(ORDER), a_page()), 1)
    assert list(entities.evicted_entities) == [order]
    back = see(entities, EntitySighting("order", "#W6390527", how="used"))
    assert (back[0].parts, back[0].first_seen) == (order.parts, order.first_seen)
    assert list(back.evicted_entities) == []


@pytest.mark.spec("B2")
def test_an_evicted_entity_returns_by_its_id() -> None:
    entities = evict_to(see(window_with(ORDER), a_page()), 1)
    back = see(entities, EntitySighting("reference", "#W6390527", how="used"))
    assert (back[0].type, len(back[0].parts)) == ("order", 2)


@pytest.mark.spec("B2")
def test_an_eviction_event_has_all_fields_of_the_entity() -> None:
    known = a_page(aliases=(), parts=(LAMP,), parent=("site", "s-1"), action="get")
    [leaving] = see(window_with(known), a_page("page-9")).overflow(1)
    assert leaving.to_sighting() == known


@pytest.mark.spec("B3")
def test_a_pinned_entity_is_not_evicted() -> None:
    pinned = window_with(a_page("page-1"), a_page("page-2")).apply(an_event(EntityPinned("page", "page-1"), 5))
    entities = evict_to(see(pinned, a_page("page-3")), 2)
    assert ids(entities) == ["page-3", "page-1"]
    loose = entities.apply(an_event(EntityPinned("page", "page-1", pinned=False), 6))
    assert ids(evict_to(see(loose, a_page("page-4"), seq=101), 2)) == ["page-4", "page-3"]


@pytest.mark.spec("B2")
def test_listed_entities_are_evicted_first_except_the_newest_list() -> None:
    opened = window_with(a_page("opened-1"), a_page("opened-2"))
    listed = see(opened, a_page("hit-1", how="listed"), a_page("hit-2", how="listed"), seq=10)
    assert ids(evict_to(listed, 3)) == ["hit-1", "hit-2", "opened-2"]
    later = see(listed, a_page("opened-3"), seq=11)
    assert ids(evict_to(later, 4)) == ["opened-3", "hit-1", "opened-2", "opened-1"]


@pytest.mark.spec("B2")
def test_a_listed_entity_that_was_used_counts_as_opened() -> None:
    listed = see(window_with(a_page("opened")), a_page("hit-1", how="listed"), a_page("hit-2", how="listed"), seq=10)
    used = see(listed, a_page("hit-2", "", how="used"), seq=11)
    assert ids(evict_to(see(used, a_page("new"), seq=12), 2)) == ["new", "hit-2"]


# -- state -------------------------------------------------------------------------------------------------


@pytest.mark.spec("B9")
def test_a_restored_checkpoint_is_in_front_with_its_deletions_and_pins() -> None:
    things = (a_page("page-1", pinned=True), a_page("page-2", how="deleted"), a_page("page-3", "New", aliases=("Old",)))
    entities = window_with(a_page("here"), a_page("page-3", "Other")).apply(an_event(EntitiesRestored(things), 9))
    assert ids(entities) == ["page-1", "page-2", "page-3", "here"]
    assert [e.pinned for e in entities] == [True, False, False, False]
    assert [e.deleted for e in entities] == [False, True, False, False]
    assert (entities[2].name, entities[2].aliases) == ("New", ("Old",))


@pytest.mark.spec("A2", "B2")
def test_a_snapshot_restores_its_state() -> None:
    entities = evict_to(
        see(window_with(ORDER, a_page(parent=("site", "s-1")), a_page("page-2")), a_page("page-2", how="deleted")), 2
    )
    entities = entities.apply(an_event(EntitiesEvicted((a_page(),)), 6))
    entities = see(entities, EntitySighting("order", "#W6390527", how="used"), seq=7)
    entities = see(entities, a_page("page-8", how="listed"), a_page("page-9", how="listed"), seq=8)
    assert entities.listings
    assert through_json(entities) == entities
