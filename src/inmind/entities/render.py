"""The [WORKING MEMORY] block: what the model reads of the things in mind.

    [WORKING MEMORY]
    orders:
      - "#W6390527" (#W6390527)
        items: Desk Lamp 8384507844, Water Bottle 8538875209
    users:
      - "Mei Kovacs" (mei_kovacs_8020)
        payment_methods: paypal_7644869
    (2 more not shown)

Types stand in the order of their most recent thing. A part that is a thing of its own is not said twice. When the block
is over its budget, a part that several things share stays with the most recent of them, then the names of parts go,
then the parts, and the block says how many went: first those that the conversation shows anyway, then the oldest. The
things themselves go last, oldest first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Sequence
from dataclasses import replace

from inmind.core.events.entities import EntityPart
from inmind.core.frozen import frozen
from inmind.core.text import Cut
from inmind.core.tokens import Counter
from inmind.entities.entity import Entity
from inmind.entities.nouns import plural
from inmind.entities.window import Entities

BANNER = "[WORKING MEMORY]"
EMPTY = "No entities tracked yet."
DELETED = " [deleted]"
BESIDE = "also listed"


def _nowhere(_: str) -> bool:
    return False


@frozen
class _Line:
    """A thing and those of its parts that stand with it."""

    entity: Entity
    parts: tuple[EntityPart, ...]


def block(entities: Entities) -> str:
    """All of it, with its banner."""
    return f"{BANNER}\n{lines(entities).text}"


def lines(
    entities: Entities, *, budget: int | None = None, count: Counter = len, visible: Callable[[str], bool] = _nowhere
) -> Cut:
    """The block below its banner, inside a budget if there is one. `visible`: does the conversation show this event?"""
    if not entities.window:
        return Cut(EMPTY, 0)
    stand = _standing(entities.window, once=False)
    hidden = sum(entity.parts_left_out for entity in entities.window)
    whole = Cut(_render(stand, left_out=hidden, names=len(stand)), hidden)
    if budget is None or count(whole.text) <= budget:
        return whole
    stand = _standing(entities.window, once=True)
    return _fitted(stand, hidden, _going(stand, visible), budget=budget, count=count)


def since(
    entities: Entities, sources: Container[str], visible: Callable[[str], bool], *, budget: int, count: Counter
) -> str | None:
    """What the model cannot know of things that were spoken of since a block was shown that came from these sources,
    in one line inside a budget. None where the block differs and nothing was spoken of: its lines tell how.

    A thing stands in the message that told of it. Only when that is gone, or never was in the conversation, is it said
    here, with its parts, those of the most recent things first; and when it has died, since the block still has it
    alive.
    """
    spoken = [entity for entity in entities if entity.source not in sources]
    if not spoken:
        return None
    fresh = [entity for entity in spoken if entity.deleted or not visible(entity.told_in)]
    full = [_in_one_line(entity, parts=not visible(entity.told_in)) for entity in fresh]
    short = [
        _in_one_line(entity, parts=False) + ("" if visible(entity.told_in) else _unsaid(entity)) for entity in fresh
    ]

    def without_parts(n: int) -> str:
        return "; ".join([*full[: len(full) - n], *short[len(full) - n :]])

    def without_things(n: int) -> str:
        return "; ".join([*short[: len(short) - n], f"({n} more)"]) if n else "; ".join(short)

    step = without_parts if count(without_parts(len(full))) <= budget else without_things
    return step(_fewest(len(full), lambda n: count(step(n)) <= budget))


def _unsaid(entity: Entity) -> str:
    return f" with {len(entity.parts)} ids not shown" if entity.parts else ""


def _in_one_line(entity: Entity, *, parts: bool) -> str:
    name = "" if entity.name == entity.id else f' "{_called(entity.name)}"'
    said = [f"{_line(entity.type)}{name} ({_id(entity.id)}){DELETED if entity.deleted else ''}"]
    said += [line.strip() for line in _parts(entity.parts, named=True)] if parts else []
    return ", ".join(said)


def _fitted(stand: Sequence[_Line], hidden: int, going: Sequence[str], *, budget: int, count: Counter) -> Cut:
    """The most that fits: the names of parts go first, oldest things first, then parts, then things."""

    def without_names(n: int) -> Cut:
        return Cut(_render(stand, left_out=hidden, names=len(stand) - n), hidden)

    def without_parts(n: int) -> Cut:
        gone = set(going[:n])
        kept = [replace(line, parts=tuple(part for part in line.parts if part.id not in gone)) for line in stand]
        return Cut(_render(kept, left_out=hidden + n, names=0), hidden + n)

    def without_things(n: int) -> Cut:
        kept = [replace(line, parts=()) for line in stand[: len(stand) - n]]
        out = hidden + len(going) + n
        return Cut(_render(kept, left_out=out, names=0), out)

    for step, most in ((without_names, len(stand)), (without_parts, len(going)), (without_things, len(stand) - 1)):
        if count(step(most).text) <= budget:
            return step(_fewest(most, lambda n, step=step: count(step(n).text) <= budget))
    return without_things(len(stand) - 1)


def _standing(window: Sequence[Entity], *, once: bool) -> list[_Line]:
    """Things with their parts, but for those that are things or names of things; each part with one thing only, or
    with all that carry it."""
    met = {said for entity in window for said in (entity.id, entity.name)}
    stand: list[_Line] = []
    for entity in window:
        parts = tuple(part for part in entity.parts if part.id not in met)
        if once:
            met.update(part.id for part in parts)
        stand.append(_Line(entity, parts))
    return stand


def _going(stand: Sequence[_Line], visible: Callable[[str], bool]) -> list[str]:
    """The parts in the order in which they have to go: what the conversation shows too, then what an older list held
    beside its best, then the oldest."""
    oldest = [(line, part) for line in reversed(stand) for part in reversed(line.parts)]
    newest = stand[0].entity.source
    shown = [part.id for line, part in oldest if visible(line.entity.told_in)]
    beside = [part.id for line, part in oldest if part.beside and line.entity.source != newest]
    return list(dict.fromkeys([*shown, *beside, *(part.id for _, part in oldest)]))


def _render(stand: Sequence[_Line], *, left_out: int, names: int) -> str:
    """Things by their types; the parts of the first `names` things with their names."""
    by_type: dict[str, list[str]] = {}
    for place, line in enumerate(stand):
        said = by_type.setdefault(_line(line.entity.type), [])
        said.append(_thing(line.entity))
        said += _parts(line.parts, named=place < names)
    text = "\n".join(f"{plural(type)}:\n" + "\n".join(said) for type, said in by_type.items())
    return f"{text}\n({left_out} more not shown)" if left_out else text


def _thing(entity: Entity) -> str:
    return f'  - "{_called(entity.name)}" ({_id(entity.id)}){DELETED if entity.deleted else ""}'


def _parts(parts: Sequence[EntityPart], *, named: bool) -> list[str]:
    by_type: dict[str, list[str]] = {}
    for part in parts:
        name = _id(part.name) if named and part.name and part.name != part.id else ""
        label = BESIDE if part.beside else plural(_line(part.type))
        by_type.setdefault(label, []).append(f"{name} {_id(part.id)}" if name else _id(part.id))
    return [f"    {label}: {', '.join(said)}" for label, said in by_type.items()]


def _called(name: str) -> str:
    """A name as it may stand between quotes: were one in it, the rest could pass for an id."""
    return _line(name).replace('"', "'")


def _id(text: str) -> str:
    """An id as it is; between quotes where it has in it what could pass for the end of one, or for a mark of ours."""
    line = _line(text)
    return json.dumps(line, ensure_ascii=False) if _MARKS.search(line) else line


_MARKS = re.compile(r"[()\[\],;\"]")


def _line(text: str) -> str:
    """In one line, or what is stored could pass for lines of ours."""
    return text if text.isprintable() else " ".join(text.split())


def _fewest(most: int, fits: Callable[[int], bool]) -> int:
    """The least n up to `most` that fits, given that `most` does."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return low
