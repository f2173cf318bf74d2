"""Is a payload what its fields are declared as, all the way down?

The journal's decoder makes payloads of whatever JSON it is given, since it reads what it has written itself. What comes
from elsewhere is held against the annotations of the journal's kinds, which are read once for each: a kind that is
added tomorrow is looked at like the others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from inmind.core.json import check_json
from inmind.errors import InvalidInput

MOST_NUMBER = 2**62
"""More than any journal will have of anything."""

Check = Callable[[Any], str]
"""What is wrong with a value, beginning with the way to it; nothing where it is right."""


def misshapen(value: object) -> str:
    """What in a payload is not as it is declared, and where; nothing where all of it is."""
    return check_of(type(value))(value).removeprefix(".")


@cache
def check_of(declared: Any) -> Check:
    """How a value of some type is looked at."""
    origin, inner = get_origin(declared), get_args(declared)
    if declared is Any:
        return _json
    if origin in (Union, UnionType):
        return _one_of([check_of(one) for one in inner], declared)
    if origin is tuple and inner[-1] is ...:
        return _each(tuple, check_of(inner[0]))
    if origin is tuple:
        return _together([check_of(one) for one in inner])
    if origin is Sequence:
        return _each(list | tuple, check_of(inner[0]))
    if origin is Mapping:
        return _mapping(check_of(inner[1]))
    return _PLAIN.get(declared) or _fields(declared)


def _of_type(*types: type[object]) -> Check:
    def check(value: Any) -> str:
        return "" if type(value) in types else _wrong(value, types[0].__name__)

    return check


def _number(*types: type[object]) -> Check:
    """NaN is between nothing."""

    def check(value: Any) -> str:
        if type(value) not in types:
            return _wrong(value, types[0].__name__)
        return "" if -MOST_NUMBER < value < MOST_NUMBER else f" counts nothing: {str(value)[:30]}"

    return check


def _one_of(checks: Sequence[Check], declared: object) -> Check:
    def check(value: Any) -> str:
        return "" if any(not check(value) for check in checks) else _wrong(value, str(declared))

    return check


def _each(container: Any, inner: Check) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, container):
            return _wrong(value, "list")
        return _first((f"[{place}]", inner(one)) for place, one in enumerate(value))

    return check


def _together(checks: Sequence[Check]) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, tuple) or len(cast(Any, value)) != len(checks):
            return _wrong(cast(Any, value), f"list of {len(checks)}")
        return _first((f"[{place}]", check(value[place])) for place, check in enumerate(checks))

    return check


def _mapping(inner: Check) -> Check:
    def check(value: Any) -> str:
        if type(value) is not dict:
            return _wrong(value, "object")
        return _first((f".{name}", inner(one)) for name, one in cast(Any, value).items())

    return check


def _fields(kind: Any) -> Check:
    """Of a named tuple, or of a frozen value."""
    names = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
    hints = get_type_hints(kind)
    checks = [(name, check_of(hints[name])) for name in names]

    def check(value: Any) -> str:
        if type(value) is not kind:
            return _wrong(value, kind.__name__)
        return _first((f".{name}", check(getattr(value, name))) for name, check in checks)

    return check


def _json(value: Any) -> str:
    try:
        check_json(value, "")
    except InvalidInput as error:
        return f"{error.field} is not {error.expected}"
    return ""


def _first(found: Iterable[tuple[str, str]]) -> str:
    return next((step + wrong for step, wrong in found if wrong), "")


def _wrong(value: object, declared: str) -> str:
    return f" is of type {type(value).__name__}, not {declared}"


_PLAIN: dict[object, Check] = {
    str: _of_type(str),
    bool: _of_type(bool),
    int: _number(int),
    float: _number(float, int),
    NoneType: _of_type(NoneType),
}
