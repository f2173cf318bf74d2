"""Renders the entity window as the [WORKING MEMORY] block for the model.

    [WORKING MEMORY]
    orders:
      - #W6390527
        status pending, items [name Desk Lamp, item_id 8384507844; name Water Bottle, item_id 8538875209]
    users:
      - "Mei Kovacs" (mei_kovacs_8020)
    (2 more not shown)

Types are ordered by their most recent entity. In a prompt the block has only entities that the conversation does not
show. If the block exceeds its budget, it is reduced in this order: records have fewer details; lists of ids without
names are counted; parts that no record has are dropped, oldest first; then the records of the oldest entities, and the
oldest entities. The block says how many parts and entities are not shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from itertools import groupby

from inmind.core.events.session import EntityPart
from inmind.core.frozen import frozen
from inmind.core.text import TruncatedText, contains_id, largest_that_fits
from inmind.core.tokens import Counter
from inmind.entities.entity import Entity
from inmind.entities.nouns import plural
from inmind.entities.record import Detail, count_unnamed, prune, render_record
from inmind.entities.window import Entities

BANNER = "[WORKING MEMORY]"
EMPTY_TEXT = "No entities tracked yet."
DELETED_MARK = " [deleted]"
ALSO_LISTED_LABEL = "also listed"


@frozen
class _EntityRow:
    """An entity and what is shown with it."""

    entity: Entity
    parts: tuple[EntityPart, ...] = ()
    record: str = ""


def render_block(entities: Entities) -> str:
    """Return the complete block with its banner."""
    return f"{BANNER}\n{render_lines(entities).text or EMPTY_TEXT}"


def render_lines(
    entities: Entities,
    *,
    budget: int | None = None,
    count: Counter = len,
    visible: Callable[[Entity], bool] = lambda _: False,
) -> TruncatedText:
    """Return the block without its banner, reduced to fit the budget if there is one.

    `visible` returns True if the conversation shows an entity. The block has the others; it is empty if there are none.
    """
    window = [entity for entity in entities.window if not visible(entity)]
    hidden = sum(entity.parts_left_out for entity in window)
    for detail in reversed(Detail):
        text = _render_rows([_row(entity, window, detail) for entity in window], left_out=hidden)
        if budget is None or count(text) <= budget:
            return TruncatedText(text, hidden)
    rows = [_row(entity, window, Detail.IDS) for entity in window]
    brief = [_brief_row(row) for row in rows]
    counted = sum(map(_count_parts_in_record, rows)) - sum(map(_count_parts_in_record, brief))
    return _fit(_without_shared_parts(brief), hidden + counted, budget=budget or 0, count=count)


def render_changes(
    entities: Entities, sources: Container[str], visible: Callable[[Entity], bool], *, budget: int, count: Counter
) -> str | None:
    """Return one line about entities that changed since a block was rendered, or None.

    `sources` are the events that the shown block was rendered from. An entity is repeated, with its record, only if
    the message that shows it is no longer in the conversation or never was, or if it was deleted since, because the
    shown block still lists it. None means that no entity was mentioned since; the block itself may still differ.
    """
    changed = [entity for entity in entities if entity.source not in sources]
    if not changed:
        return None
    unseen = [entity for entity in changed if entity.deleted or not visible(entity)]
    full = [render_entity(entity, entity.deleted and visible(entity)) for entity in unseen]
    counts = [0 if visible(entity) else len(entity.parts) for entity in unseen]
    notes = [f" with {number} ids not shown" if number else "" for number in counts]
    short = [render_entity(entity, brief=True) + note for entity, note in zip(unseen, notes, strict=True)]

    def shorten(n: int) -> str:
        """The line after `n` steps: each removes a record, oldest first, and then each an entity."""
        if n <= len(full):
            return "; ".join([*full[: len(full) - n], *short[len(full) - n :]])
        return "; ".join([*short[: 2 * len(full) - n], f"({n - len(full)} more)"])

    steps = 2 * len(full)
    return shorten(steps - largest_that_fits(steps, lambda kept: count(shorten(steps - kept)) <= budget))


def render_entity(entity: Entity, brief: bool = False) -> str:
    """Return an entity with its record on one line; if `brief`, without the record."""
    name = "" if entity.name == entity.id else f' "{_quote_safe(entity.name)}"'
    pieces = [f"{_single_line(entity.type)}{name} ({_format_id(entity.id)}){DELETED_MARK if entity.deleted else ''}"]
    if not brief:
        row = _row(entity, [entity], Detail.FACTS)
        pieces += [line.strip() for line in _detail_lines(row)]
    return ", ".join(pieces)


def _fit(rows: Sequence[_EntityRow], hidden: int, *, budget: int, count: Counter) -> TruncatedText:
    """Return the longest version that fits. Parts go first, then records, then entities."""
    removal_order = _removal_order(rows)

    def shorten(n: int) -> TruncatedText:
        """The block after `n` steps: first each removes a part, then a record, then an entity."""
        removed = set(removal_order[:n])
        with_record = max(0, len(rows) + min(0, len(removal_order) - n))
        listed = rows[: len(rows) - max(0, n - len(removal_order) - len(rows))]
        kept = [replace(row, parts=tuple(part for part in row.parts if part.id not in removed)) for row in listed]
        kept[with_record:] = [_EntityRow(row.entity) for row in listed[with_record:]]
        parts_in_records = sum(map(_count_parts_in_record, rows[with_record:]))
        left_out = hidden + len(removed) + parts_in_records + len(rows) - len(listed)
        return TruncatedText(_render_rows(kept, left_out=left_out), left_out)

    steps = len(removal_order) + 2 * len(rows) - 1
    return shorten(steps - largest_that_fits(steps, lambda kept: count(shorten(steps - kept).text) <= budget))


def counts_only(entity: Entity, ids: Sequence[str]) -> bool:
    """True if the brief record of an entity has none of these ids, but counts them."""
    row = _row(entity, [entity], Detail.IDS)
    brief = _brief_row(row).record
    return all(contains_id(row.record, id) and not contains_id(brief, id) for id in ids)


def _count_parts_in_record(row: _EntityRow) -> int:
    return sum(contains_id(row.record, part.id) for part in row.entity.parts)


def _row(entity: Entity, window: Sequence[Entity], detail: Detail) -> _EntityRow:
    """Return an entity with its record, and the parts that neither it nor the window has."""
    record = render_record(prune(dict(entity.record), detail, is_record=True))
    labels = {label for one in window for label in (one.id, one.name)}
    parts = tuple(part for part in entity.parts if part.id not in labels and not contains_id(record, part.id))
    return _EntityRow(entity, parts, record)


def _brief_row(row: _EntityRow) -> _EntityRow:
    """Return an entity with a number in place of each list of ids without names."""
    return replace(row, record=render_record(count_unnamed(prune(dict(row.entity.record), Detail.IDS, is_record=True))))


def _without_shared_parts(rows: Sequence[_EntityRow]) -> list[_EntityRow]:
    """Return the entities with each part at the most recent one only."""
    owned: set[str] = set()
    kept: list[_EntityRow] = []
    for row in rows:
        kept.append(replace(row, parts=tuple(part for part in row.parts if part.id not in owned)))
        owned.update(part.id for part in row.parts)
    return kept


def _removal_order(rows: Sequence[_EntityRow]) -> list[str]:
    """Return part ids in the order of removal: parts of older lists, then the oldest."""
    oldest = [(row, part) for row in reversed(rows) for part in reversed(row.parts)]
    newest = rows[0].entity.source if rows else ""
    older_lists = [part.id for row, part in oldest if part.from_same_list and row.entity.source != newest]
    return list(dict.fromkeys([*older_lists, *(part.id for _, part in oldest)]))


def _render_rows(rows: Sequence[_EntityRow], *, left_out: int) -> str:
    """Render the entities grouped by type."""
    by_type: dict[str, list[str]] = {}
    for row in rows:
        group = by_type.setdefault(_single_line(row.entity.type), [])
        entity, id = row.entity, _format_id(row.entity.id)
        named = id if entity.name == entity.id else f'"{_quote_safe(entity.name)}" ({id})'
        group += [f"  - {named}{DELETED_MARK if entity.deleted else ''}", *_detail_lines(row)]
    text = "\n".join(f"{plural(type)}:\n" + "\n".join(lines) for type, lines in by_type.items())
    return f"{text}\n({left_out} more not shown)" if left_out else text


def _detail_lines(row: _EntityRow) -> list[str]:
    return [f"    {line}" for line in (row.record, render_parts(row.parts)) if line]


def render_parts(parts: Sequence[EntityPart]) -> str:
    """Return ids on one line in their order, each after its type and name.

    In an order, the id of a product stands beside the one of its item.
    """
    runs = groupby(parts, lambda part: ALSO_LISTED_LABEL if part.from_same_list else plural(_single_line(part.type)))
    return "; ".join(f"{label}: {', '.join(map(_format_part, run))}" for label, run in runs)


def _format_part(part: EntityPart) -> str:
    name = _format_id(part.name) if part.name and part.name != part.id else ""
    return f"{name} {_format_id(part.id)}".lstrip()


def _quote_safe(name: str) -> str:
    """Make a name safe between quotes: with a quote in it, the rest could pass for an id."""
    return _single_line(name).replace('"', "'")


def _format_id(text: str) -> str:
    """Return the id, as a JSON string if it contains characters of our syntax."""
    line = _single_line(text)
    return json.dumps(line, ensure_ascii=False) if _SPECIAL_CHARS.search(line) else line


_SPECIAL_CHARS = re.compile(r"[()\[\],;\"]")


def _single_line(text: str) -> str:
    """Collapse to one line, so that stored text cannot pass for lines of the block."""
    return text if text.isprintable() else " ".join(text.split())
