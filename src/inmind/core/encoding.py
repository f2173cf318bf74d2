"""JSON text, digests and timestamps: how values are written and compared."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import blake2b
from typing import Any, TypeVar

from inmind.core.events.wire_names import STORED_NAMES

V = TypeVar("V")


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


def encode_fields(value: object) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, under their stored names."""
    fields = ((stored, getattr(value, name), default) for name, stored, default in _fields_of(type(value)))
    return {stored: value for stored, value, default in fields if default is dataclasses.MISSING or value != default}


def decode_fields(kind: type[V], stored: Mapping[str, Any]) -> V:
    """A dataclass from its fields under their stored names."""
    if not isinstance(stored, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] -- JSON from a row
        raise TypeError(f"expected an object, got {type(stored).__name__}")
    names = _names_in_code(kind)
    return kind(**({names.get(key, key): value for key, value in stored.items()} if names else stored))


@cache
def _fields_of(kind: type[Any]) -> tuple[tuple[str, str, Any], ...]:
    stored = STORED_NAMES.get(kind.__name__, {})
    return tuple((field.name, stored.get(field.name, field.name), field.default) for field in dataclasses.fields(kind))


@cache
def _names_in_code(kind: type[Any]) -> dict[str, str]:
    return {stored: name for name, stored in STORED_NAMES.get(kind.__name__, {}).items()}


def encode_nested(value: object) -> object:
    """A nested dataclass or mapping as a JSON value. TypeError for anything else."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return encode_fields(value)
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] -- a JSON object
    raise TypeError(f"{type(value).__name__} is not a JSON value")


_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=encode_nested)
_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=encode_nested)


def from_microseconds(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def to_microseconds(at: datetime) -> int:
    """Microseconds since 1970, exact at any date. A float of seconds is not exact after 2106."""
    return (at.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
