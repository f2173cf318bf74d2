"""Checks that values can be stored as JSON, before anything is stored.

Bytes, NaN or an unpaired surrogate are reported with their exact path. If they got through, they would fail later, in
the journal or at the provider, far from the caller that passed them.
"""

from __future__ import annotations

import json
import math
from itertools import accumulate, count
from operator import sub
from typing import Any, TypeGuard

from inmind.errors import InvalidInput

MAX_DEPTH = 200

# Python refuses to print longer integers (4,300 digits by default), so they could be stored and never sent.
MAX_INTEGER_BITS = 13_000

# The largest whole number that every reader of JSON keeps exact.
_MAX_SAFE_INTEGER = 2**53


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MAX_SAFE_INTEGER


def peek(value: object, name: str) -> Any:
    """A field of a dict or object.

    Converting client events completely would be slow: they hold all content.
    """
    return value.get(name) if is_object(value) else getattr(value, name, None)


def without_nulls(fields: dict[str, Any], *left_out: str) -> dict[str, Any]:
    """Drop null fields, which some providers refuse as input, and the named ones."""
    return {key: value for key, value in fields.items() if value is not None and key not in left_out}


def check_json(value: object, field: str) -> None:
    """Raise InvalidInput for a value that JSON cannot represent.

    A cycle is reported as too deep.

    The walk keeps its own stack, so that no input can exhaust Python's.
    """
    pending: list[tuple[Any, str, int]] = [(value, field, 0)]
    while pending:
        node, place, depth = pending.pop()
        if depth >= MAX_DEPTH and (is_object(node) or is_list(node)):
            raise InvalidInput(field=_shorten(place), value=node, expected=f"at most {MAX_DEPTH} levels of nesting")
        if is_object(node):
            for key, item in node.items():
                check_text(key, f"{place} (a key)")
                if type(item) is str and item.isascii():
                    continue
                pending.append((item, f"{place}.{key}", depth + 1))
        elif is_list(node):
            pending.extend((item, f"{place}[{index}]", depth + 1) for index, item in enumerate(node))
        else:
            _check_scalar(node, place)


def _json_copy(value: Any) -> Any:
    """A copy through JSON; None if it differs from the original or is too deep."""
    if not (is_object(value) or is_list(value)):
        return None
    try:
        text = _STRICT.encode(value)
        encoded = text.encode()
        copy = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return copy if copy == value and _is_within_max_depth(encoded) else None


_STRICT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _is_within_max_depth(encoded: bytes) -> bool:
    """True if the nesting is within MAX_DEPTH.

    Brackets inside strings can only overestimate it.
    """
    steps = encoded.translate(_STEPS, _NO_BRACKETS)
    return len(steps) <= MAX_DEPTH or max(map(sub, accumulate(steps), count(1))) <= MAX_DEPTH


_STEPS = bytes.maketrans(b"[{]}", b"\x02\x02\x00\x00")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def to_plain(value: Any, field: str) -> Any:
    """A copy in plain dicts and lists. Objects of provider clients are dumped."""
    try:
        return _to_plain(value, field, 0)
    except RecursionError:
        raise InvalidInput(field=field, value="…", expected=f"at most {MAX_DEPTH} levels of nesting") from None


def _to_plain(value: Any, field: str, depth: int) -> Any:
    if is_object(value):
        if depth > MAX_DEPTH:
            raise RecursionError
        return {key: item if type(item) is str else _to_plain(item, field, depth + 1) for key, item in value.items()}
    if is_list(value):
        if depth > MAX_DEPTH:
            raise RecursionError
        return [_to_plain(item, field, depth + 1) for item in value]
    if hasattr(value, "model_dump"):
        try:
            # By alias, since a field name may be a Python keyword. Without warnings: clients fill models unchecked.
            dumped = value.model_dump(mode="json", exclude_unset=True, by_alias=True, warnings=False)
        except Exception as error:  # a foreign object may raise anything
            raise InvalidInput(field=field, value=value, expected="an object that can be dumped") from error
        return _to_plain(dumped, field, depth + 1)
    return value


def copy_json_value(value: Any, field: str) -> Any:
    """Return a copy of a JSON value.

    Plain values are copied by the JSON library, which is fast.
    """
    copy = _json_copy(value)
    if copy is not None:
        return copy
    value = to_plain(value, field)
    check_json(value, field)
    return value


def check_text(value: object, field: str) -> None:
    if not isinstance(value, str):
        raise InvalidInput(field=field, value=value, expected="a string")
    if value.isascii():
        return
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput(field=field, value=value, expected="text without lone surrogates") from None


def text_at(wire: dict[str, Any], key: str, field: str) -> str:
    value = wire.get(key)
    if not isinstance(value, str):
        raise InvalidInput(field=f"{field}.{key}", value=value, expected="a string")
    return value


def object_at(wire: dict[str, Any], key: str, field: str) -> dict[str, Any]:
    value = wire.get(key)
    if not is_object(value):
        raise InvalidInput(field=f"{field}.{key}", value=value, expected="an object")
    return value


def objects_at(wire: dict[str, Any], key: str, field: str) -> list[tuple[dict[str, Any], str]]:
    """The objects of a list, each with its path."""
    value = wire.get(key)
    if not is_list(value):
        raise InvalidInput(field=f"{field}.{key}", value=value, expected="a list")
    for index, item in enumerate(value):
        if not is_object(item):
            raise InvalidInput(field=f"{field}.{key}[{index}]", value=item, expected="an object")
    return [(item, f"{field}.{key}[{index}]") for index, item in enumerate(value)]


def typed_parts_at(wire: dict[str, Any], key: str, field: str) -> list[tuple[dict[str, Any], str]]:
    """The content parts of a list, each with its path.

    Every part has a type, and a text part has text.
    """
    parts = objects_at(wire, key, field)
    for part, place in parts:
        if text_at(part, "type", place) in TEXT_PART_TYPES:
            text_at(part, "text", place)
    return parts


TEXT_PART_TYPES = frozenset({"text", "input_text", "output_text"})
"""Types of content parts that hold text."""


def _check_scalar(value: object, field: str) -> None:
    if isinstance(value, str):
        check_text(value, field)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInput(field=field, value=value, expected="a finite number")
    elif isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            # The number itself cannot be shown: printing it is what Python refuses.
            raise InvalidInput(field=field, value=f"{value.bit_length()} bits", expected="a shorter integer")
    elif value is not None:
        raise InvalidInput(field=field, value=value, expected="a value that JSON can carry")


def _shorten(place: str) -> str:
    return place if len(place) <= 200 else f"{place[:200]}…"
