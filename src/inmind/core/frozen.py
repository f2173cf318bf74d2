"""Immutable values: frozen dataclasses that are cheap to define, and a persistent map.

`dataclass` generates and compiles six methods for every class, which is half of the time it takes to import the
package. A program uses a part of the classes, and most values are never compared, hashed or printed, so `__init__` and
the rest are generated on first use. Assignment is refused by one method for all classes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import FrozenInstanceError, dataclass, field, fields, make_dataclass
from typing import Any, Generic, TypeVar, dataclass_transform, overload

K = TypeVar("K", bound=Hashable)
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


class PersistentMap(Generic[K, V]):
    """A map whose `put` returns a new version; an older version stays valid.

    The state of a session is copied with every event. All versions share one list of entries, and each reads only the
    entries that existed when it was made, so adding an entry takes constant time. Adding to an older version reuses the
    next entry if it is the same, and copies otherwise. A value of None marks a deleted key.
    """

    __slots__ = ("_entries", "_places", "length")

    def __init__(self, entries: Iterable[tuple[K, V]] = ()) -> None:
        self._entries: list[tuple[K, V]] = []
        self._places: dict[K, list[int]] = {}
        for key, value in entries:
            self._append(key, value)
        self.length = len(self._entries)

    def get(self, key: K) -> V | None:
        """The newest value of a key in this version, or None."""
        places = self._places.get(key, ())
        newest = bisect_left(places, self.length) - 1
        return self._entries[places[newest]][1] if newest >= 0 else None

    def put(self, key: K, value: V) -> PersistentMap[K, V]:
        if self.get(key) == value:
            return self
        if self.length == len(self._entries):
            self._append(key, value)
        elif self._entries[self.length] != (key, value):
            return PersistentMap([*self._entries[: self.length], (key, value)])
        grown: PersistentMap[K, V] = PersistentMap()
        grown._entries, grown._places = self._entries, self._places
        grown.length = self.length + 1
        return grown

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[tuple[K, V]]:
        """Every key that has a value, with its newest value, most recent first."""
        seen: set[K] = set()
        for place in range(self.length - 1, -1, -1):
            key, value = self._entries[place]
            if key not in seen:
                seen.add(key)
                if value is not None:
                    yield key, value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PersistentMap) and list(self) == list(other)  # pyright: ignore[reportUnknownArgumentType] -- any two can be compared

    __hash__ = None  # pyright: ignore[reportAssignmentType] -- equal by content, and it holds lists

    def _append(self, key: K, value: V) -> None:
        self._places.setdefault(key, []).append(len(self._entries))
        self._entries.append((key, value))
