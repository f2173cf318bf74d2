"""The block in its budget: what goes, in which order, and that it is counted."""

from __future__ import annotations

import re

import pytest
from builders import a_page, an_event, in_mind
from hypothesis import given
from hypothesis import strategies as st
from strategies import things

from inmind.core.events.entities import EntitiesSeen, EntityPart, EntitySighting
from inmind.core.tokens import estimator
from inmind.entities.render import render_changes, render_lines
from inmind.entities.window import Entities

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


def distinct(text: str) -> int:
    """How many things a text has, and how many parts, one that several things share counted once."""
    things = [line for line in told(text) if line.startswith("- ")]
    return len(things) + len({part.split(" ")[-1] for part in told(text) if not part.startswith("- ")})


def smallest(entities: Entities) -> int:
    """What one line of the newest thing takes, with the words for what is missing."""
    return COUNT(render_lines(entities, budget=0, count=COUNT).text)


@given(WINDOWS, BUDGETS)
def test_the_block_is_never_over_a_budget_that_can_hold_one_line(entities: Entities, budget: int) -> None:
    cut = render_lines(entities, budget=budget, count=COUNT)
    assert COUNT(cut.text) <= max(budget, smallest(entities))


@given(WINDOWS, BUDGETS)
def test_what_is_not_in_the_block_is_counted_in_it(entities: Entities, budget: int) -> None:
    cut = render_lines(entities, budget=budget, count=COUNT)
    hidden = re.search(r"\((\d+) more not shown\)$", cut.text)
    assert cut.lines_left_out == (int(hidden[1]) if hidden else 0)
    assert distinct(cut.text) + cut.lines_left_out == distinct(render_lines(entities).text)


@given(WINDOWS, BUDGETS, BUDGETS)
def test_more_room_never_shows_less(entities: Entities, one: int, other: int) -> None:
    less, more = sorted((one, other))
    small, large = (render_lines(entities, budget=budget, count=COUNT) for budget in (less, more))
    assert small.lines_left_out >= large.lines_left_out


@given(WINDOWS)
def test_without_a_budget_every_id_is_there(entities: Entities) -> None:
    text = render_lines(entities).text
    assert all(e.id in text for e in entities)
    assert all(part.id in text for e in entities for part in e.parts)


@given(WINDOWS)
def test_no_thing_is_said_twice(entities: Entities) -> None:
    said = told(render_lines(entities).text)
    assert len([line for line in said if line.startswith("- ")]) == len(entities)
    ids = [part.split(" ")[-1] for part in said if not part.startswith("- ")]
    assert {entity.id for entity in entities}.isdisjoint(ids)


def test_a_part_that_two_things_share_stands_with_both_while_there_is_room() -> None:
    lamp = EntityPart("item", "8384507844", "Desk Lamp")
    entities = in_mind(
        EntitySighting("order", "#W1000001", parts=(lamp,)), EntitySighting("order", "#W1000002", parts=(lamp,))
    )
    text = render_lines(entities).text
    assert text.count("8384507844") == 2
    assert render_lines(entities, budget=COUNT(text) - 1, count=COUNT).text.count("8384507844") == 1


def test_an_id_with_marks_in_it_cannot_pass_for_more_than_one() -> None:
    parts = (EntityPart("item", "sec-12 [deleted]"), EntityPart("item", "i-1", "Lamp 999999, Other 888888"))
    text = render_lines(in_mind(EntitySighting("page", 'page-2) [deleted]"', parts=parts))).text
    assert text == (
        'pages:\n  - "page-2) [deleted]\'" ("page-2) [deleted]\\"")\n'
        '    items: "sec-12 [deleted]", "Lamp 999999, Other 888888" i-1'
    )


def test_what_an_older_list_held_beside_its_best_goes_before_the_parts_of_things() -> None:
    rest = tuple(EntityPart("page", f"hit-{n}00", from_same_list=True) for n in range(4, 9))
    order = EntitySighting("order", "#W6390527", parts=(EntityPart("item", "8384507844"),))
    entities = in_mind(order, a_page("hit-100", "Best", parts=rest), EntitySighting("user", "mei_8020"))
    whole = COUNT(render_lines(entities).text)
    cut = render_lines(entities, budget=whole - 5, count=COUNT).text
    assert "8384507844" in cut
    assert "hit-800" not in cut


def test_the_newest_list_is_kept_before_older_parts() -> None:
    rest = tuple(EntityPart("page", f"hit-{n}00", from_same_list=True) for n in range(4, 9))
    order = EntitySighting("order", "#W6390527", parts=(EntityPart("item", "8384507844"),))
    entities = in_mind(order, a_page("hit-100", "Best", parts=rest))
    cut = render_lines(entities, budget=COUNT(render_lines(entities).text) - 1, count=COUNT).text
    assert "8384507844" not in cut
    assert "hit-800" in cut


def after(before: Entities, *things: EntitySighting) -> Entities:
    return before.apply(an_event(EntitiesSeen(things), 2))


HOME = in_mind(a_page("page-1", "Home"))
ORDER = EntitySighting("order", "#W6390527", 'The "big" one', parts=(EntityPart("item", "8384507844", "Desk Lamp"),))


def said_since(entities: Entities, *, visible: bool) -> str | None:
    shown_before = {entity.source for entity in HOME}
    return render_changes(entities, shown_before, lambda _: visible, budget=100, count=COUNT)


def test_what_came_since_is_said_in_one_line_with_its_parts_only_where_nobody_can_see_it() -> None:
    now = after(HOME, ORDER)
    assert said_since(now, visible=True) == ""
    assert said_since(now, visible=False) == "order \"The 'big' one\" (#W6390527), items: Desk Lamp 8384507844"


def test_what_died_since_is_said_also_where_everybody_saw_it() -> None:
    now = after(HOME, a_page("page-1", "Home", how="deleted"))
    assert said_since(now, visible=True) == 'page "Home" (page-1) [deleted]'


def test_where_nothing_was_spoken_of_since_the_lines_have_to_tell_what_differs() -> None:
    assert said_since(HOME, visible=False) is None


def an_order(n: int) -> EntitySighting:
    return EntitySighting(
        "order", f"#W100000{n}", parts=tuple(EntityPart("item", f"{n}38450784{item}") for item in range(3))
    )


@given(st.lists(st.booleans(), min_size=1, max_size=6), BUDGETS)
def test_no_part_goes_that_nobody_can_see_while_one_stands_that_the_conversation_shows(
    visible: list[bool], budget: int
) -> None:
    entities = in_mind(*(an_order(n) for n in range(len(visible))))
    seen = {entity.observed_in for entity, shown in zip(entities, visible, strict=True) if shown}
    text = render_lines(entities, budget=budget, count=COUNT, visible=seen.__contains__).text
    standing = [entity.observed_in in seen for entity in entities for part in entity.parts if part.id in text]
    gone = [entity.observed_in in seen for entity in entities for part in entity.parts if part.id not in text]
    assert not (any(standing) and not all(gone))


@given(WINDOWS, st.integers(30, 200))
def test_what_came_since_keeps_to_its_budget(entities: Entities, budget: int) -> None:
    said = render_changes(entities, (), lambda _: False, budget=budget, count=COUNT)
    assert COUNT(said or "") <= max(budget, COUNT("(12 more)"))
