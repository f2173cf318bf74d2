"""Members of a provider's answer, whatever it turns out to be: what is not of the right kind is not there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from inmind.core.http import Json


def object_field(value: Mapping[str, Any], name: str) -> Json:
    """An object of an object."""
    inside = value.get(name)
    return cast(Json, inside) if isinstance(inside, dict) else {}


def object_list(value: Mapping[str, Any], name: str) -> list[Json]:
    """The objects in a list of an object."""
    inside = value.get(name)
    listed = cast("list[object]", inside) if isinstance(inside, list) else []
    return [cast(Json, one) for one in listed if isinstance(one, dict)]


def count_tokens(answer: Json, input_fields: Iterable[str], output_fields: Iterable[str]) -> tuple[int, int]:
    """What was read and written, by the names that a provider counts them under."""
    usage = object_field(answer, "usage")
    return _sum(usage, input_fields), _sum(usage, output_fields)


def _sum(usage: Json, names: Iterable[str]) -> int:
    numbers = (usage.get(name) for name in names)
    return sum(number for number in numbers if type(number) is int and number > 0)
