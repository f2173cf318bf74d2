"""Read fields of a provider's response. A field of the wrong type is treated as missing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from inmind.core.http import Json


def object_field(value: Mapping[str, Any], name: str) -> Json:
    """The object in a field, or an empty one."""
    inside = value.get(name)
    return cast(Json, inside) if isinstance(inside, dict) else {}


def object_list(value: Mapping[str, Any], name: str) -> list[Json]:
    """The objects of a list in a field."""
    inside = value.get(name)
    listed = cast("list[object]", inside) if isinstance(inside, list) else []
    return [cast(Json, one) for one in listed if isinstance(one, dict)]


def count_tokens(answer: Json, input_fields: Iterable[str], output_fields: Iterable[str]) -> tuple[int, int]:
    """Input and output tokens, as sums of these usage fields."""
    usage = object_field(answer, "usage")
    return _sum(usage, input_fields), _sum(usage, output_fields)


def _sum(usage: Json, names: Iterable[str]) -> int:
    numbers = (usage.get(name) for name in names)
    return sum(number for number in numbers if type(number) is int and number > 0)
