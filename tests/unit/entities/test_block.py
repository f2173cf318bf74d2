"""The block in its budget: what goes, in which order, and that it is counted."""

from __future__ import annotations

import re

import pytest
from builders import a_page, an_event, in_mind
from hypothesis import given
from hypothesis import strategies as st
from strategies import things

from inmind.entities.block import lines, since
from inmind.entities.window import Entities
from inmind.journal import EntitiesSeen, Part, ThingSeen
from inmind.tokens import estimator

pytestmark = pytest.mark.spec("B2", "B6")

COUNT = estimator()
WINDOWS = st.lists(things(), max_size=12).map(lambda seen: in_mind(*seen))
BUDGETS = st.integers(0, 200)


def told(text: str) -> list[str]:
    """The things and the parts that a text has, as it has them."""
    said = [line.strip() for line in text.splitlines()]
    things = [line for line in said if line.startswith("- ")]
    riding = [line.split(": ", 1)[1] for line in said if not line.startswith("- ") and ": " in line]
    return [*things, *(part for line in riding for part in line.split(", "))]


def smallest(entities: Entities) -> int:
    """What one line of the newest thing takes, with the words for what is missing."""
    return COUNT(lines(entities, budget=0, count=COUNT).text)


@given(WINDOWS, BUDGETS)
def test_the_block_is_never_over_a_budget_that_can_hold_one_line(entities: Entities, budget: int) -> None:
    cut = lines(entities, budget=budget, count=COUNT)
    assert COUNT(cut.text) <= max(budget, smallest(entities))


@given(WINDOWS, BUDGETS)
def test_what_is_not_in_the_block_is_counted_in_it(entities: Entities, budget: int) -> None:
    cut = lines(entities, budget=budget, count=COUNT)
    hidden = re.search(r"\((\d+) more not shown\)$", cut.text)
    assert cut.lines_left_out == (int(hidden[1]) if hidden else 0)
    assert len(told(cut.text)) + cut.lines_left_out == len(told(lines(entities).text))


@given(WINDOWS, BUDGETS, BUDGETS)
def test_more_room_never_shows_less(entities: Entities, one: int, other: int) -> None:
    less, more = sorted((one, other))
    small, large = (lines(entities, budget=budget, count=COUNT) for budget in (less, more))
    assert small.lines_left_out >= large.lines_left_out


@given(WINDOWS)
def test_without_a_budget_every_id_is_there(entities: Entities) -> None:
    text = lines(entities).text
    assert all(e.id in text for e in entities)
    assert all(part.id in text for e in entities for part in e.parts)


@given(WINDOWS)
def test_no_thing_and_no_part_is_said_twice(entities: Entities) -> None:
    said = told(lines(entities).text)
    assert len([line for line in said if line.startswith("- ")]) == len(entities)
    ids = [part.split(" ")[-1] for part in said if not part.startswith("- ")]
    assert len(ids) == len(set(ids))
    assert {entity.id for entity in entities}.isdisjoint(ids)


def test_what_an_older_list_held_beside_its_best_goes_before_the_parts_of_things() -> None:
    rest = tuple(Part("page", f"hit-{n}00", beside=True) for n in range(4, 9))
    order = ThingSeen("order", "#W6390527", parts=(Part("item", "8384507844"),))
    entities = in_mind(order, a_page("hit-100", "Best", parts=rest), ThingSeen("user", "mei_8020"))
    whole = COUNT(lines(entities).text)
    cut = lines(entities, budget=whole - 5, count=COUNT).text
    assert "8384507844" in cut
    assert "hit-800" not in cut


def test_the_newest_list_is_kept_before_older_parts() -> None:
    rest = tuple(Part("page", f"hit-{n}00", beside=True) for n in range(4, 9))
    order = ThingSeen("order", "#W6390527", parts=(Part("item", "8384507844"),))
    entities = in_mind(order, a_page("hit-100", "Best", parts=rest))
    cut = lines(entities, budget=COUNT(lines(entities).text) - 1, count=COUNT).text
    assert "8384507844" not in cut
    assert "hit-800" in cut


def test_what_came_since_is_said_in_one_line_with_its_parts_only_where_nobody_can_see_them() -> None:
    before = in_mind(a_page("page-1", "Home"))
    order = ThingSeen("order", "#W6390527", 'The "big" one', parts=(Part("item", "8384507844", "Desk Lamp"),))
    after = before.apply(an_event(EntitiesSeen((order,)), 2))
    shown_before = {entity.source for entity in before}
    assert since(after, shown_before, lambda _: True) == "order \"The 'big' one\" (#W6390527)"
    assert since(after, shown_before, lambda _: False).endswith("(#W6390527), items: Desk Lamp 8384507844")
    assert since(before, shown_before, lambda _: False) == ""
