"""Which things a person's message speaks of: ids that stand in it, and names of things that are known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from operator import itemgetter

from inmind.entities.entity import Entity
from inmind.entities.ids.prose import ids_in_text
from inmind.entities.rules import DEFAULT_RULES, EntityRules
from inmind.entities.window import Entities
from inmind.journal import ThingSeen

MOST_TEXT = 4_000
"""Characters of a message in which names are looked for."""
MOST_BEYOND = 50
"""Things outside the window whose names are looked for, the last to leave first."""
_WORD = re.compile(r"[a-z0-9]+|[^\W_]")
_SHORTEST = 3
_LONG_WORD = 6


def mentioned(text: str, entities: Entities, rules: EntityRules = DEFAULT_RULES) -> tuple[ThingSeen, ...]:
    """What a message brings to the front, in the order in which it speaks of it."""
    spelt = [(text.find(f.id), f.type, _as_known(f.id, entities)) for f in ids_in_text(text, rules=rules)]
    found = {id: (place, ThingSeen(type, id, how="used")) for place, type, id in spelt}
    head = text[:MOST_TEXT]
    folded = head.casefold()
    words = frozenset(_WORD.findall(folded))
    for type, id, names in _known(entities):
        if id in found:
            continue
        places = [p for name in names if _begins(name) in words and (p := _place(name, head, folded)) >= 0]
        if places:
            found[id] = (min(places), ThingSeen(type, id, how="used"))
    return tuple(thing for _, thing in sorted(found.values(), key=itemgetter(0)))


@lru_cache(maxsize=4096)
def _begins(name: str) -> str:
    """The first word of a name: without it in a text, the name is not there either."""
    match = _WORD.search(name.casefold())
    return match[0] if match else ""


def _as_known(id: str, entities: Entities) -> str:
    """An id as it is known: people leave out the # of an order, and type in small letters."""
    spellings = (id, f"#{id}", id.removeprefix("#"), id.upper(), f"#{id.upper()}", id.lower())
    return next((spelling for spelling in spellings if spelling in entities.ids), id)


def _known(entities: Entities) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for entity in entities.window:
        yield _called(entity)
        for part in entity.parts:
            if part.name:
                yield part.type, part.id, (part.name,)
    yield from map(_called, islice(entities.beyond, MOST_BEYOND))


def _called(entity: Entity) -> tuple[str, str, tuple[str, ...]]:
    return entity.type, entity.id, (*entity.names, entity.id)


def _place(name: str, text: str, folded: str) -> int:
    """Where a name stands as words of their own; -1 where it does not.

    A short single word counts only as it is spelt: "Home" is a page, "home" is not.
    """
    if not name.isascii():
        return folded.find(name.casefold()) if len(name) > 1 else -1
    if len(name) < _SHORTEST:
        return -1
    loose = " " in name or len(name) >= _LONG_WORD
    where, what = (folded, name.casefold()) if loose else (text, name)
    if what not in where:
        return -1
    match = re.search(rf"(?<!\w){re.escape(what)}(?!\w)", where)
    return match.start() if match else -1
