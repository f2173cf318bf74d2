"""Frozen dataclasses that are cheap to define.

`dataclass` generates and compiles six methods for every class, which is half of the time it takes to import the
package. A program uses a part of the classes, and most values are never compared, hashed or printed, so `__init__` and
the rest are generated on first use. Assignment is refused by one method for all classes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, make_dataclass
from typing import Any, TypeVar, dataclass_transform, overload

V = TypeVar("V")

_COMPARING_METHODS = ("__eq__", "__hash__", "__repr__")


@overload
def frozen(cls: type[V], /) -> type[V]: ...
@overload
def frozen(*, kw_only: bool = False) -> Callable[[type[V]], type[V]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[V] | None = None, /, *, kw_only: bool = False) -> type[V] | Callable[[type[V]], type[V]]:
    """Make a frozen dataclass with slots. Methods defined by the class itself are kept."""

    def build(cls: type[V]) -> type[V]:
        missing = [name for name in _COMPARING_METHODS if name not in vars(cls)]
        defined: Any = dataclass(slots=True, init=False, eq=False, repr=False, kw_only=kw_only)(cls)
        for name in missing:
            setattr(defined, name, _lazy_method(defined, name, missing))
        defined.__init__ = _lazy_method(defined, "__init__", ["__init__"])
        defined.__setattr__, defined.__delattr__ = _refuse_assignment, _refuse_deletion
        defined.__getstate__, defined.__setstate__ = _state, _restore_state  # for copies, which would assign
        return defined

    return build if cls is None else build(cls)


def _lazy_method(cls: type[Any], name: str, missing: list[str]) -> Callable[..., Any]:
    """Return a placeholder that generates all missing methods of the class when it is called."""

    def placeholder(self: object, *others: object, **named: object) -> Any:
        creates = missing == ["__init__"]
        specs = [(one.name, one.type, one) for one in fields(cls)]
        hook = {"__post_init__": cls.__post_init__} if hasattr(cls, "__post_init__") else {}
        generated = make_dataclass(
            cls.__name__, specs, namespace=hook, frozen=True, init=creates, repr=not creates, eq=not creates
        )
        for method in missing:
            setattr(cls, method, vars(generated)[method])
        return getattr(cls, name)(self, *others, **named)

    return placeholder


def _refuse_assignment(self: object, name: str, value: object) -> None:  # noqa: ARG001 -- the signature of Python
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: object, name: str) -> None:  # noqa: ARG001 -- the signature of Python
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, one.name) for one in fields(self)]


def _restore_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, one.name, value)
