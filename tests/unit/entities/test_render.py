"""The entity block within a budget: what is dropped, in which order, and the count."""

from __future__ import annotations

import re
from typing import Any

import pytest
from builders import a_page, an_event, window_with
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_records, entity_sightings, ids_in

from inmind.core.events.session import EntitiesSeen, EntityPart, EntitySighting
from inmind.core.text import contains_id
from inmind.core.tokens import estimator
from inmind.entities.render import render_changes, render_lines
from inmind.entities.window import Entities

pytestmark = pytest.mark.spec("B2", "B6")

COUNT = estimator()
WINDOWS = st.lists(entity_sightings(), max_size=12).map(lambda seen: window_with(*seen))
BUDGETS = st.integers(0, 200)


def entities_and_parts_in(text: str) -> list[str]:
    """The entities and parts in a text, in order."""
    lines = [line.strip() for line in text.splitlines()]
    things = [line for line in lines if line.startswith("- ")]
    part_lines = [line for line in lines if not line.startswith(("- ", "(")) and ": " in line]
    runs = [run.split(": ", 1)[1] for line in part_lines for run in line.split("; ")]
    return [*things, *(part for run in runs for part in run.split(", "))]


def count_entities_and_parts(text: str) -> int:
    """Number of entities and of distinct parts in a text."""
    things = [line for line in entities_and_parts_in(text) if line.startswith("- ")]
    return len(things) + len({part.split(" ")[-1] for part in entities_and_parts_in(text) if not part.startswith("- ")})


def smallest_block(entities: Entities) -> int:
    """Tokens of one line for the newest entity and the count of omitted ones."""
    return COUNT(render_lines(entities, budget=0, count=COUNT).text)


@given(WINDOWS, BUDGETS)
def test_the_block_fits_a_budget_that_can_hold_one_line(entities: Entities, budget: int) -> None:
    cut = render_lines(entities, budget=budget, count=COUNT)
    assert COUNT(cut.text) <= max(budget, smallest_block(entities))


@given(WINDOWS, BUDGETS)
def test_omitted_entities_and_parts_are_counted_in_the_block(entities: Entities, budget: int) -> None:
    cut = render_lines(entities, budget=budget, count=COUNT)
    hidden = re.search(r"\((\d+) more not shown\)$", cut.text)
    assert cut.lines_left_out == (int(hidden[1]) if hidden else 0)
    assert count_entities_and_parts(cut.text) + cut.lines_left_out == count_entities_and_parts(
        render_lines(entities).text
    )


@given(WINDOWS, BUDGETS, BUDGETS)
def test_a_larger_budget_does_not_omit_more(entities: Entities, one: int, other: int) -> None:
    less, more = sorted((one, other))
    small, large = (render_lines(entities, budget=budget, count=COUNT) for budget in (less, more))
    assert small.lines_left_out >= large.lines_left_out


@given(WINDOWS)
def test_without_a_budget_every_id_is_shown(entities: Entities) -> None:
    text = render_lines(entities).text
    assert all(e.id in text for e in entities)
    assert all(part.id in text for e in entities for part in e.parts)


@given(WINDOWS)
def test_no_entity_is_shown_twice(entities: Entities) -> None:
    shown_lines = entities_and_parts_in(render_lines(entities).text)
    assert len([line for line in shown_lines if line.startswith("- ")]) == len(entities)
    ids = [part.split(" ")[-1] for part in shown_lines if not part.startswith("- ")]
    assert {entity.id for entity in entities}.isdisjoint(ids)


def test_a_shared_part_is_shown_with_both_entities_within_the_budget() -> None:
    lamp = EntityPart("item", "8384507844", "Desk Lamp")
    entities = window_with(
        EntitySighting("order", "#W1000001", parts=(lamp,)), EntitySighting("order", "#W1000002", parts=(lamp,))
    )
    text = render_lines(entities).text
    assert text.count("8384507844") == 2
    assert render_lines(entities, budget=COUNT(text) - 1, count=COUNT).text.count("8384507844") == 1


def test_an_id_with_special_characters_cannot_pass_for_two() -> None:
    parts = (EntityPart("item", "sec-12 [deleted]"), EntityPart("item", "i-1", "Lamp 999999, Other 888888"))
    text = render_lines(window_with(EntitySighting("page", 'page-2) [deleted]"', parts=parts))).text
    assert text == (
        'pages:\n  - "page-2) [deleted]\\""\n    items: "sec-12 [deleted]", "Lamp 999999, Other 888888" i-1'
    )


def test_parts_of_older_lists_are_dropped_before_other_parts() -> None:
    rest = tuple(EntityPart("page", f"hit-{n}00", from_same_list=True) for n in range(4, 9))
    order = EntitySighting("order", "#W6390527", parts=(EntityPart("item", "8384507844"),))
    entities = window_with(order, a_page("hit-100", "Best", parts=rest), EntitySighting("user", "mei_8020"))
    whole = COUNT(render_lines(entities).text)
    cut = render_lines(entities, budget=whole - 5, count=COUNT).text
    assert "8384507844" in cut
    assert "hit-800" not in cut


def test_the_newest_list_is_dropped_after_older_parts() -> None:
    rest = tuple(EntityPart("page", f"hit-{n}00", from_same_list=True) for n in range(4, 9))
    order = EntitySighting("order", "#W6390527", parts=(EntityPart("item", "8384507844", "Desk Lamp of brass"),))
    entities = window_with(order, a_page("hit-100", "Best", parts=rest))
    cut = render_lines(entities, budget=COUNT(render_lines(entities).text) - 1, count=COUNT).text
    assert "8384507844" not in cut
    assert "hit-800" in cut


def apply_sightings(before: Entities, *things: EntitySighting) -> Entities:
    return before.apply(an_event(EntitiesSeen(things), 2))


HOME = window_with(a_page("page-1", "Home"))
ORDER = EntitySighting("order", "#W6390527", 'The "big" one', parts=(EntityPart("item", "8384507844", "Desk Lamp"),))


def changes_since(entities: Entities, *, visible: bool) -> str | None:
    shown_before = {entity.source for entity in HOME}
    return render_changes(entities, shown_before, lambda _: visible, budget=100, count=COUNT)


def test_changes_are_one_line_with_parts_only_if_not_visible() -> None:
    now = apply_sightings(HOME, ORDER)
    assert changes_since(now, visible=True) == ""
    assert changes_since(now, visible=False) == "order \"The 'big' one\" (#W6390527), items: Desk Lamp 8384507844"


def test_a_deletion_is_shown_even_if_it_is_visible() -> None:
    now = apply_sightings(HOME, a_page("page-1", "Home", how="deleted"))
    assert changes_since(now, visible=True) == 'page "Home" (page-1) [deleted]'


def test_without_mentions_there_is_no_change_line() -> None:
    assert changes_since(HOME, visible=False) is None


def an_order(n: int) -> EntitySighting:
    return EntitySighting(
        "order", f"#W100000{n}", parts=tuple(EntityPart("item", f"{n}38450784{item}") for item in range(3))
    )


@given(st.lists(st.booleans(), min_size=1, max_size=6), BUDGETS)
def test_an_entity_that_the_conversation_shows_is_not_repeated(visible: list[bool], budget: int) -> None:
    entities = window_with(*(an_order(n) for n in range(len(visible))))
    seen = {entity.id for entity, is_visible in zip(entities, visible, strict=True) if is_visible}
    text = render_lines(entities, budget=budget, count=COUNT, visible=lambda entity: entity.id in seen).text
    assert not any(id in text for id in seen)
    assert bool(text) == (not all(visible))


@pytest.mark.spec("B11")
@given(st.lists(entity_records(), min_size=1, max_size=5), BUDGETS)
def test_every_id_of_a_record_is_in_the_block_or_counted(records: list[dict[str, Any]], budget: int) -> None:
    parts = [tuple(EntityPart("item", id) for id in ids_in(record)) for record in records]
    entities = window_with(
        *(EntitySighting("order", f"#W10000{n}", record=one, parts=parts[n]) for n, one in enumerate(records))
    )
    cut = render_lines(entities, budget=budget, count=COUNT)
    missing = {id for record in records for id in ids_in(record) if not contains_id(cut.text, id)}
    assert len(missing) <= cut.lines_left_out


@given(WINDOWS, st.integers(30, 200))
def test_the_change_line_fits_its_budget(entities: Entities, budget: int) -> None:
    line = render_changes(entities, (), lambda _: False, budget=budget, count=COUNT)
    assert COUNT(line or "") <= max(budget, COUNT("(12 more)"))
