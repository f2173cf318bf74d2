"""Plain values, as JSON has them, told apart and checked once."""

from __future__ import annotations

from typing import Any, TypeGuard

from inmind.documents.document import checked_text
from inmind.errors import InvalidInput

DEEPEST = 16


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def checked_object(values: object, *, field: str) -> dict[str, Any]:
    """An object of plain values; whatever else a host hands in is refused by its place."""
    if not is_object(values):
        raise InvalidInput(field=field, value=values, expected="an object")
    _check_inside(values, field, deep=0)
    return values


def checked_key(key: object, *, field: str) -> str:
    if not isinstance(key, str):
        raise InvalidInput(field=field, value=key, expected="keys that are text")
    return checked_text(key, field=field)


def _check(value: object, field: str, deep: int) -> None:
    if isinstance(value, str):
        checked_text(value, field=field)
    elif is_object(value) or is_list(value):
        _check_inside(value, field, deep + 1)
    elif value is not None and not isinstance(value, bool | int | float):
        raise InvalidInput(field=field, value=value, expected="what JSON can say")


def _check_inside(values: dict[str, Any] | list[Any], field: str, deep: int) -> None:
    if deep >= DEEPEST:
        raise InvalidInput(field=field, value=values, expected=f"at most {DEEPEST} levels")
    if is_object(values):
        for key, item in values.items():
            _check(item, f"{field}.{checked_key(key, field=field)}", deep)
    else:
        for place, item in enumerate(values):
            _check(item, f"{field}[{place}]", deep)
