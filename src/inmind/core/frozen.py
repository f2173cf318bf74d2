"""Frozen dataclasses that are cheap to define.

`dataclass` generates and compiles six methods for every class, which is half of the time it takes to import the
package. Most values are never compared, hashed or printed, so these methods are generated on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, TypeVar, dataclass_transform, overload

V = TypeVar("V")

_LAZY_METHODS = ("__eq__", "__hash__", "__repr__")


@overload
def frozen(cls: type[V], /) -> type[V]: ...
@overload
def frozen(*, kw_only: bool = False) -> Callable[[type[V]], type[V]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[V] | None = None, /, *, kw_only: bool = False) -> type[V] | Callable[[type[V]], type[V]]:
    """Make a frozen dataclass with slots. Methods defined by the class itself are kept."""

    def build(cls: type[V]) -> type[V]:
        missing = [name for name in _LAZY_METHODS if name not in vars(cls)]
        defined = dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=kw_only)(cls)
        for name in missing:
            setattr(defined, name, _lazy_method(defined, name, missing))
        return defined

    return build if cls is None else build(cls)


def _lazy_method(cls: type[Any], name: str, missing: list[str]) -> Callable[..., Any]:
    """Return a placeholder that generates all missing methods of the class when it is called."""

    def placeholder(self: object, *others: object) -> Any:
        specs = [(one.name, one.type, field(compare=one.compare, hash=one.hash, repr=one.repr)) for one in fields(cls)]
        generated = make_dataclass(cls.__name__, specs, init=False, frozen=True)
        for method in missing:
            setattr(cls, method, vars(generated)[method])
        return getattr(cls, name)(self, *others)

    return placeholder
