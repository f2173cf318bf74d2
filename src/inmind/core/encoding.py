"""Values as JSON and back, digests and timestamps.

Encoding needs no annotations: dataclasses become objects, named tuples and sets become lists. `decode` builds values of
the declared types again, by the annotations of their class. The journal, snapshots and bundles are all read by it, so a
new field needs no code here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from hashlib import blake2b
from itertools import repeat
from types import UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from inmind.core.frozen import PersistentMap
from inmind.core.json import check_json, is_list, is_object
from inmind.errors import InvalidInput

V = TypeVar("V")

MAX_NUMBER = 2**62
"""Larger than any number in a journal."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_json(value: object) -> str:
    """Compact JSON without escaping of non-ASCII characters.

    The only JSON writer of the package.
    """
    return _COMPACT.encode(value)


def digest(*texts: str) -> str:
    """A 64-bit digest that distinguishes versions. It is not a signature."""
    hashed = blake2b(digest_size=8)
    for text in texts:
        hashed.update(text.encode("utf-8", "surrogatepass"))
        hashed.update(b"\x00")
    return hashed.hexdigest()


def digest_of(value: object) -> str:
    """A digest of a JSON value that does not depend on the order of keys."""
    return digest(_SORTED.encode(value))


def from_microseconds(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def to_microseconds(at: datetime) -> int:
    """Microseconds since 1970, exact at any date. A float of seconds is not exact after 2106."""
    return (at.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def encode_fields(value: object) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, under their stored names."""
    fields = ((stored, getattr(value, name), default) for name, stored, default in _fields_of(type(value)))
    return {stored: value for stored, value, default in fields if default is dataclasses.MISSING or value != default}


def decode(kind: type[V], stored: object, *, strict: bool = False) -> V:
    """A value of this type from its JSON. Raises ValueError, TypeError or LookupError.

    `strict` checks the type of every value, for data that others have written. Otherwise only lists and objects are
    converted, since we read our own output.
    """
    try:
        return _reader(kind, strict)(stored)
    except TypeMismatch as error:
        raise ValueError(str(error).removeprefix(".")) from None


class TypeMismatch(ValueError):
    """A value does not have its declared type."""

    def inside(self, step: str) -> TypeMismatch:
        """The same error with one more step before its path."""
        return TypeMismatch(f"{step}{self}")


Reader = Callable[[Any], Any]


def _unchanged(value: Any) -> Any:
    return value


def _is_enum(declared: object) -> bool:
    return isinstance(declared, type) and issubclass(declared, Enum)


@cache
def _reader(declared: Any, strict: bool) -> Reader:
    """The function that reads a declared type."""
    origin, inner = get_origin(declared), [_reader(one, strict) for one in get_args(declared) if one is not ...]
    if declared is Any:
        return _read_json if strict else _unchanged
    if origin in (Union, UnionType):
        return _union_reader(declared, inner, strict)
    if origin is PersistentMap or (origin is tuple and ... not in get_args(declared)):
        items = _sequence_reader(tuple, inner, strict, f"list of {len(inner)}", length=len(inner))
        return items if origin is tuple else _sequence_reader(PersistentMap, repeat(items), strict)
    if origin in (tuple, frozenset):
        return origin if inner[0] is _unchanged else _sequence_reader(origin, repeat(inner[0]), strict)
    if origin is Sequence:
        return _unchanged if inner[0] is _unchanged else _sequence_reader(list, repeat(inner[0]), strict)
    if origin is Mapping:
        return _unchanged if inner[1] is _unchanged else _object_reader(dict, {}, inner[1])
    if declared is datetime:
        return datetime.fromisoformat
    if _is_enum(declared):
        return declared
    if hasattr(declared, "_fields"):
        return _named_tuple_reader(declared, strict)
    if dataclasses.is_dataclass(declared):
        return _dataclass_reader(declared, strict)
    return _plain_reader(declared) if strict else _unchanged


def _plain_reader(declared: Any) -> Reader:
    accepted = {float: (float, int)}.get(declared, (declared,))

    def read(value: Any) -> Any:
        if type(value) not in accepted:
            raise _type_mismatch(value, declared.__name__)
        if type(value) in (int, float) and not -MAX_NUMBER < value < MAX_NUMBER:  # NaN is refused too
            raise TypeMismatch(f" is out of range: {str(value)[:30]}")
        return value

    return read


def _union_reader(declared: object, readers: Sequence[Reader], strict: bool) -> Reader:
    """Lenient: the one type that is not taken as it is, or None."""
    converting = [read for read in readers if read is not _unchanged]
    if not strict:
        (read,) = converting or [_unchanged]
        return _unchanged if read is _unchanged else lambda value: None if value is None else read(value)

    def read_any(value: Any) -> Any:
        for read in readers:
            try:
                return read(value)
            except (ValueError, TypeError):
                continue
        raise _type_mismatch(value, str(declared))

    return read_any


def _sequence_reader(
    build: Callable[[list[Any]], Any],
    readers: Iterable[Reader],
    strict: bool,
    expected: str = "list",
    *,
    length: int | None = None,
    names: Sequence[str] = (),
) -> Reader:
    """Reads the items of a list, each by its reader.

    `names`: of the items, for the path of an error.
    """

    def read_sequence(values: Any) -> Any:
        if (strict and not is_list(values)) or (length is not None and len(values) != length):
            raise _type_mismatch(values, expected)
        read_values: list[Any] = []
        try:
            for read, value in zip(readers, values, strict=False):
                read_values.append(read(value))
        except TypeMismatch as error:
            place = len(read_values)
            raise error.inside(f".{names[place]}" if names else f"[{place}]") from None
        return build(read_values)

    return read_sequence


def _named_tuple_reader(kind: Any, strict: bool) -> Reader:
    hints = get_type_hints(kind)
    readers = [_reader(hints[name], strict) for name in kind._fields]

    def build(values: Sequence[Any]) -> Any:
        return kind(*values)

    if all(read is _unchanged for read in readers):
        return build
    # The last one passes on a value too many, which the type refuses.
    return _sequence_reader(build, [*readers, _unchanged], strict, kind.__name__, names=kind._fields)


def _dataclass_reader(kind: Any, strict: bool) -> Reader:
    hints = get_type_hints(kind)
    fields = {stored: (name, _reader(hints[name], strict)) for name, stored, _ in _fields_of(kind)}
    return _object_reader(kind, fields, None)


def _object_reader(kind: Any, fields: Mapping[str, tuple[str, Reader]], other: Reader | None) -> Reader:
    """Reads an object with these fields, under their names in the code.

    Other members are read by `other`. Without it they are a TypeError.
    """

    def read_object(stored: Any) -> Any:
        if not is_object(stored):
            raise _type_mismatch(stored, "object" if kind is dict else kind.__name__)
        values: dict[str, Any] = {}
        for key, value in stored.items():
            name, read = fields.get(key) or (key, other)
            if read is None:
                raise TypeError(f"unexpected member {key!r}")
            try:
                values[name] = read(value)
            except TypeMismatch as error:
                raise error.inside(f".{key}") from None
        return values if kind is dict else kind(**values)

    return read_object


def _read_json(value: Any) -> Any:
    try:
        check_json(value, "")
    except InvalidInput as error:
        raise TypeMismatch(f"{error.field} is not {error.expected}") from None
    return value


def _type_mismatch(value: object, declared: str) -> TypeMismatch:
    return TypeMismatch(f" has type {type(value).__name__}, not {declared}")


@cache
def _fields_of(kind: type[Any]) -> tuple[tuple[str, str, Any], ...]:
    stored: dict[str, str] = dict(getattr(kind, "stored_names", ()))
    return tuple((field.name, stored.get(field.name, field.name), field.default) for field in dataclasses.fields(kind))


def _encode_value(value: object) -> object:
    """A value that JSON does not know. TypeError for anything but our own values."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return encode_fields(value)
    if isinstance(value, Mapping):
        return dict(cast(Mapping[str, Any], value))
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, frozenset):
        return sorted(cast("frozenset[str]", value))
    if isinstance(value, PersistentMap):
        return list(cast(PersistentMap[str, Any], value))[::-1]
    raise TypeError(f"{type(value).__name__} is not a JSON value")


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_encode_value)
_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_encode_value)
