"""What the fields in the head of a page hold, and how new values are merged into them.

Only the keys that tools rely on have a shape; any other is somebody's own. What is not there yet, or null, may come
later: a head is filled in step by step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from inmind.core.encoding import to_json
from inmind.documents.overview.values import is_list, is_object
from inmind.errors import InvalidInput

Shape = Mapping[str, str]

_TEXT, _TEXTS, _OBJECT = "a text", "a list of texts", "an object"
_SHAPES: Mapping[str, Shape] = {
    "meta": {"version": _TEXT, "last_updated": _TEXT, "session_id": _TEXT},
    "project": {"name": _TEXT, "description": _TEXT, "tech_stack": _OBJECT, "key_paths": _OBJECT, "commands": _OBJECT},
    "current_state": {"status": _TEXT, "task": _TEXT, "next_actions": _TEXTS},
}
_ISSUE: Shape = {"id": _TEXT, "title": _TEXT, "severity": _TEXT, "status": _TEXT, "proposal": _TEXT}


def check_fields(said: Mapping[str, Any], *, field: str) -> None:
    """Raise InvalidInput, naming the exact field, unless each key that has a shape holds it."""
    for key, shape in _SHAPES.items():
        if said.get(key) is not None:
            _check(said[key], shape, f"{field}.{key}")
    issues = said.get("issues")
    if issues is None:
        return
    if not is_list(issues):
        raise InvalidInput(field=f"{field}.issues", value=issues, expected="a list of objects")
    seen: set[str] = set()
    for place, issue in enumerate(issues):
        _check(issue, _ISSUE, f"{field}.issues[{place}]")
        if not _is_id(issue.get("id")) or str(issue["id"]) in seen:
            raise InvalidInput(
                field=f"{field}.issues[{place}].id", value=issue.get("id"), expected="an id that no other issue has"
            )
        seen.add(str(issue["id"]))


def merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Objects merge, lists of objects with ids merge by those, and everything else replaces.

    In place, unlike everywhere else: what is merged into remembers how it was written, and a copy would not.
    """
    for key, value in values.items():
        held = into.get(key)
        if is_object(held) and is_object(value):
            merge(held, value)
        elif _have_ids(held) and _have_ids(value):
            _merge_by_id(held, value)
        else:
            into[key] = value


def _merge_by_id(into: list[dict[str, Any]], values: list[dict[str, Any]]) -> None:
    known = {to_json(item["id"]): item for item in into}
    for value in values:
        held = known.get(to_json(value["id"]))
        if held is not None:
            merge(held, value)
        else:
            into.append(value)


def _check(value: object, shape: Shape, field: str) -> None:
    if not is_object(value):
        raise InvalidInput(field=field, value=value, expected=_OBJECT)
    for key, expected in shape.items():
        if value.get(key) is not None and not _fits(value[key], expected):
            raise InvalidInput(field=f"{field}.{key}", value=value[key], expected=expected)


def _fits(value: object, expected: str) -> bool:
    if expected == _OBJECT:
        return is_object(value)
    return is_list(value) and all(map(_is_text, value)) if expected == _TEXTS else _is_text(value)


def _is_text(value: object) -> bool:
    """Words, or what YAML takes for a number: 1.0 is a version too."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _have_ids(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return is_list(value) and bool(value) and all(is_object(item) and _is_id(item.get("id")) for item in value)
