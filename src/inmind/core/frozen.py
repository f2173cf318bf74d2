"""Frozen values, which take little time to define.

`dataclass` writes the source of six methods for every class and compiles each by itself, which is half of the time
that it takes to import us. Most values are never compared, hashed or printed in the life of a program: those methods
are written, by `dataclass` as ever, when somebody first asks for one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, TypeVar, dataclass_transform, overload

V = TypeVar("V")

_LATE = ("__eq__", "__hash__", "__repr__")


@overload
def frozen(cls: type[V], /) -> type[V]: ...
@overload
def frozen(*, kw_only: bool = False) -> Callable[[type[V]], type[V]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[V] | None = None, /, *, kw_only: bool = False) -> type[V] | Callable[[type[V]], type[V]]:
    """A dataclass with slots, whose fields nobody can change. A method that the class has itself is left as it is."""

    def made(cls: type[V]) -> type[V]:
        missing = [name for name in _LATE if name not in vars(cls)]
        defined = dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=kw_only)(cls)
        for name in missing:
            setattr(defined, name, _first(defined, name, missing))
        return defined

    return made if cls is None else made(cls)


def _first(cls: type[Any], name: str, missing: list[str]) -> Callable[..., Any]:
    """Stands in for a method until it is called: then the class has all that were missing, and this is gone."""

    def first(self: object, *others: object) -> Any:
        alike = [(one.name, one.type, field(compare=one.compare, hash=one.hash, repr=one.repr)) for one in fields(cls)]
        written = make_dataclass(cls.__name__, alike, init=False, frozen=True)
        for method in missing:
            setattr(cls, method, vars(written)[method])
        return getattr(cls, name)(self, *others)

    return first
