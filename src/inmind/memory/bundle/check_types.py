"""Checks that a payload has the declared types, at every level.

The journal's decoder accepts any JSON, since it reads only its own output. Payloads of a bundle are checked against the
annotations of their classes, so a new kind of event needs no code here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from inmind.core.events.wire_names import STORED_NAMES
from inmind.core.json import check_json
from inmind.errors import InvalidInput

MAX_NUMBER = 2**62
"""Larger than any number in a journal."""

TypeCheck = Callable[[Any], str]
"""Returns the error of a value, starting with the path to it; empty if it is valid."""


def find_type_error(value: object) -> str:
    """The first part of a payload with a wrong type, and its path; empty if there is none."""
    return type_check(type(value))(value).removeprefix(".")


@cache
def type_check(declared: Any) -> TypeCheck:
    """The check for a declared type."""
    origin, inner = get_origin(declared), get_args(declared)
    if declared is Any:
        return _check_json
    if origin in (Union, UnionType):
        return _union_check([type_check(one) for one in inner], declared)
    if origin is tuple and inner[-1] is ...:
        return _sequence_check(tuple, type_check(inner[0]))
    if origin is tuple:
        return _tuple_check([type_check(one) for one in inner])
    if origin is Sequence:
        return _sequence_check(list | tuple, type_check(inner[0]))
    if origin is Mapping:
        return _mapping_check(type_check(inner[1]))
    return _PLAIN_CHECKS.get(declared) or _fields_check(declared)


def _exact_type_check(*types: type[object]) -> TypeCheck:
    def check(value: Any) -> str:
        return "" if type(value) in types else _type_message(value, types[0].__name__)

    return check


def _number_check(*types: type[object]) -> TypeCheck:
    """A number within ±MAX_NUMBER. The comparison also rejects NaN."""

    def check(value: Any) -> str:
        if type(value) not in types:
            return _type_message(value, types[0].__name__)
        return "" if -MAX_NUMBER < value < MAX_NUMBER else f" is out of range: {str(value)[:30]}"

    return check


def _union_check(checks: Sequence[TypeCheck], declared: object) -> TypeCheck:
    def check(value: Any) -> str:
        return "" if any(not check(value) for check in checks) else _type_message(value, str(declared))

    return check


def _sequence_check(container: Any, inner: TypeCheck) -> TypeCheck:
    def check(value: Any) -> str:
        if not isinstance(value, container):
            return _type_message(value, "list")
        return _first_error((f"[{place}]", inner(one)) for place, one in enumerate(value))

    return check


def _tuple_check(checks: Sequence[TypeCheck]) -> TypeCheck:
    def check(value: Any) -> str:
        if not isinstance(value, tuple) or len(cast(Any, value)) != len(checks):
            return _type_message(cast(Any, value), f"list of {len(checks)}")
        return _first_error((f"[{place}]", check(value[place])) for place, check in enumerate(checks))

    return check


def _mapping_check(inner: TypeCheck) -> TypeCheck:
    def check(value: Any) -> str:
        if type(value) is not dict:
            return _type_message(value, "object")
        return _first_error((f".{name}", inner(one)) for name, one in cast(Any, value).items())

    return check


def _fields_check(kind: Any) -> TypeCheck:
    """For a named tuple or a frozen dataclass. The path has the names that are stored."""
    names = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
    hints = get_type_hints(kind)
    stored = STORED_NAMES.get(kind.__name__, {})
    checks = [(name, stored.get(name, name), type_check(hints[name])) for name in names]

    def check(value: Any) -> str:
        if type(value) is not kind:
            return _type_message(value, kind.__name__)
        return _first_error((f".{key}", check(getattr(value, name))) for name, key, check in checks)

    return check


def _check_json(value: Any) -> str:
    try:
        check_json(value, "")
    except InvalidInput as error:
        return f"{error.field} is not {error.expected}"
    return ""


def _first_error(errors: Iterable[tuple[str, str]]) -> str:
    return next((step + error for step, error in errors if error), "")


def _type_message(value: object, declared: str) -> str:
    return f" has type {type(value).__name__}, not {declared}"


_PLAIN_CHECKS: dict[object, TypeCheck] = {
    str: _exact_type_check(str),
    bool: _exact_type_check(bool),
    int: _number_check(int),
    float: _number_check(float, int),
    NoneType: _exact_type_check(NoneType),
}
