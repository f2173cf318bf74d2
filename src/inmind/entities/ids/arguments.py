"""Finds the ids in the arguments of a tool call."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any

from inmind.core.frozen import frozen
from inmind.entities.config import DEFAULT_RULES, EntityRules
from inmind.entities.ids.keys import key_meaning
from inmind.entities.ids.shapes import handle_kind, id_kind, is_name, parse_code, parse_id
from inmind.entities.nouns import UNTYPED
from inmind.entities.parse_result import is_list, is_object, parse_result

MAX_NODES = 20_000
"""Number of values of one call that are read."""


@frozen
class FoundId:
    """An id in the arguments of a call or in a text."""

    path: str
    key: str
    type: str
    id: str
    kind: str = "id"
    """`id`, or a handle that a call may use for the first time: `path`, `email`, `url`, `name`."""


def find_ids(
    value: object,
    *,
    own_type: str = UNTYPED,
    about_one: bool = False,
    tool_nouns: Collection[str] = (),
    rules: EntityRules = DEFAULT_RULES,
) -> list[FoundId]:
    """Return the ids in the arguments of a call, in order.

    `own_type` is the type the tool is about, which a plain `id` refers to; with `about_one`, a plain `number` is
    read like `pr_number`. `tool_nouns` are the nouns in the tool name: a value under one of them is a name, such as
    the channel of `get_users_in_channel`.
    """
    ids: dict[tuple[str, str], FoundId] = {}
    for path, key, item in _iter_leaves(value):
        numbered = about_one and path == "number" and own_type != UNTYPED
        handle = parse_handle(f"{own_type}_number" if numbered and key not in rules.id_keys else key, item, rules)
        found_id = _make_found_id(path, key, handle, own_type, rules) or _find_named(path, key, item, tool_nouns, rules)
        if found_id is not None:
            ids.setdefault((found_id.type, found_id.id), found_id)
    return list(ids.values())


def _iter_leaves(value: object) -> Iterator[tuple[str, str, Any]]:
    """Yield every scalar with its path and nearest key, in order, without recursion."""
    pending: list[tuple[str, str, Any]] = [("", "", value)]
    for _ in range(MAX_NODES):
        if not pending:
            return
        path, key, node = pending.pop()
        if isinstance(node, str) and node[:1] in ("[", "{"):
            node = parse_result(node)
        if is_object(node):
            pairs = islice(node.items(), MAX_NODES)
            pending.extend(reversed([(f"{path}.{k}" if path else k, k, v) for k, v in pairs]))
        elif is_list(node):
            pending.extend(reversed([(f"{path}[{n}]", key, v) for n, v in enumerate(node[:MAX_NODES])]))
        else:
            yield path, key, node


def _make_found_id(
    path: str, key: str, handle: tuple[str, str, str] | None, own_type: str, rules: EntityRules
) -> FoundId | None:
    if handle is None:
        return None
    type, id, kind = handle
    role = key_meaning(key).role
    return FoundId(
        path, key, rules.type_for(own_type) if role == "own" and key not in rules.id_keys else type, id, kind
    )


# Properties of an entity, which are not entities.
_NOT_ENTITIES = frozenset(
    "address amount body category city content country currency date day description direction language location "
    "message mode month name option order_type price priority query reason size state status street summary text time "
    "title topic value weather year".split()
)


def _find_named(path: str, key: str, value: object, tool_nouns: Collection[str], rules: EntityRules) -> FoundId | None:
    role, type = key_meaning(key)
    if type in _NOT_ENTITIES or not isinstance(value, str) or not (role == "name" or (not role and type in tool_nouns)):
        return None
    text = value.strip()
    return FoundId(path, key, rules.type_for(type), text, "name") if is_name(text) else None


def parse_handle(key: str, value: object, rules: EntityRules = DEFAULT_RULES) -> tuple[str, str, str] | None:
    """Return type, id and kind of the handle under a key, or None."""
    if key in rules.id_keys:
        text = parse_id(value)
        return (rules.id_keys[key], text, "id") if text else None
    role, type = key_meaning(key)
    if role == "private":
        return None
    if role in ("own", "id"):
        text = parse_id(value)
        return (rules.type_for(type), text, id_kind(text)) if text else None
    if role == "code" and (text := parse_code(type, value)):
        return rules.type_for(type), text, "id"
    if not isinstance(value, str):
        return None
    text = value.strip()
    if role == "path" and 0 < len(text) <= 200 and "\n" not in text:
        return type, text, "path"
    kind = handle_kind(text)
    if kind is None:
        return (rules.type_for(type), text, "name") if role == "person" and is_name(text) else None
    return HANDLE_TYPES.get(kind) or rules.type_for(type), text, kind


HANDLE_TYPES = {"path": "file", "email": "email", "url": "url"}
