"""The ids among the arguments of a call, and the handle that any value under any key is."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from inmind.core.frozen import frozen
from inmind.entities.config import DEFAULT_RULES, EntityRules
from inmind.entities.ids.keys import sense
from inmind.entities.ids.shapes import as_code, as_id, is_name, kind_of, kind_of_id
from inmind.entities.nouns import UNTYPED
from inmind.entities.parse_result import is_list, is_object, parse_result

MOST_NODES = 20_000
"""Values of one call that are looked at."""


@frozen
class Found:
    """An id among the arguments of a call."""

    path: str
    key: str
    type: str
    id: str
    kind: str = "id"
    """`id`, or a `path`, an `email`, a `url`, a `name`: handles that a call may well use for the first time."""


def ids_in(
    value: object,
    *,
    own: str = UNTYPED,
    one: bool = False,
    about: Collection[str] = (),
    rules: EntityRules = DEFAULT_RULES,
) -> list[Found]:
    """The ids among the arguments of a call, in order.

    `own` is what the tool is about, which a plain `id` means; where it is about `one` of them, a plain `number` is
    what `pr_number` would be. `about` are the nouns in its name: what it takes under one of them goes by a name, as
    the channel of `get_users_in_channel`.
    """
    found: dict[tuple[str, str], Found] = {}
    for path, key, item in _leaves(value):
        numbered = one and path == "number" and own != UNTYPED
        said = handle(f"{own}_number" if numbered and key not in rules.id_keys else key, item, rules)
        seen = _found(path, key, said, own, rules) or _named(path, key, item, about, rules)
        if seen is not None:
            found.setdefault((seen.type, seen.id), seen)
    return list(found.values())


def _leaves(value: object) -> Iterator[tuple[str, str, Any]]:
    """Every scalar with its path and the nearest key above it, in order, without recursion."""
    pending: list[tuple[str, str, Any]] = [("", "", value)]
    for _ in range(MOST_NODES):
        if not pending:
            return
        path, key, node = pending.pop()
        if isinstance(node, str) and node[:1] in ("[", "{"):
            node = parse_result(node)
        if is_object(node):
            pairs = islice(node.items(), MOST_NODES)
            pending.extend(reversed([(f"{path}.{k}" if path else k, k, v) for k, v in pairs]))
        elif is_list(node):
            pending.extend(reversed([(f"{path}[{n}]", key, v) for n, v in enumerate(node[:MOST_NODES])]))
        else:
            yield path, key, node


def _found(path: str, key: str, said: tuple[str, str, str] | None, own: str, rules: EntityRules) -> Found | None:
    if said is None:
        return None
    type, id, kind = said
    says = sense(key).says
    return Found(path, key, rules.type_for(own) if says == "own" and key not in rules.id_keys else type, id, kind)


# What a call may say of a thing, and is none.
_NO_THINGS = frozenset(
    "address amount body category city content country currency date day description direction language location "
    "message mode month name option order_type price priority query reason size state status street summary text time "
    "title topic value weather year".split()
)


def _named(path: str, key: str, value: object, about: Collection[str], rules: EntityRules) -> Found | None:
    says, type = sense(key)
    if type in _NO_THINGS or not isinstance(value, str) or not (says == "name" or (not says and type in about)):
        return None
    text = value.strip()
    return Found(path, key, rules.type_for(type), text, "name") if is_name(text) else None


def handle(key: str, value: object, rules: EntityRules = DEFAULT_RULES) -> tuple[str, str, str] | None:
    """Type, id and kind of the handle that a value under a key is; None for everything else."""
    if key in rules.id_keys:
        text = as_id(value)
        return (rules.id_keys[key], text, "id") if text else None
    says, type = sense(key)
    if says == "private":
        return None
    if says in ("own", "id"):
        text = as_id(value)
        return (rules.type_for(type), text, kind_of_id(text)) if text else None
    if says == "code" and (text := as_code(type, value)):
        return rules.type_for(type), text, "id"
    if not isinstance(value, str):
        return None
    text = value.strip()
    if says == "path" and 0 < len(text) <= 200 and "\n" not in text:
        return type, text, "path"
    kind = kind_of(text)
    if kind is None:
        return (rules.type_for(type), text, "name") if says == "person" and is_name(text) else None
    return TYPES.get(kind) or rules.type_for(type), text, kind


TYPES = {"path": "file", "email": "email", "url": "url"}
