"""What a host tells about its own things: types, id keys, extractors, and how much is held in mind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import TypeVar

from inmind.core.events.session import ToolObserved
from inmind.core.frozen import frozen
from inmind.entities.entity import Entity
from inmind.errors import InvalidInput

Extractor = Callable[[ToolObserved], Sequence[Entity]]
"""From what a tool did to the things that it was about, the best match first."""

DEFAULT_WINDOW = 10
DEFAULT_MAX_PER_LIST = 3

T = TypeVar("T")


@frozen(kw_only=True)
class EntityRules:
    """How things are found in what tools answer; the defaults know no application."""

    window: int = DEFAULT_WINDOW
    """Things that are held in mind."""
    max_per_list: int = DEFAULT_MAX_PER_LIST
    """Things that one list brings in; the ids of the rest ride with the first."""
    types: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Types of the host, each with the other nouns that mean it: {"customer": ["client", "account holder"]}."""
    id_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys whose values are ids, with the type of what they identify: {"matricule": "employee"}."""
    extractors: Mapping[str, Extractor] = field(default_factory=dict[str, Extractor])
    """By a pattern over tool names ("crm_*"), the first that matches; it then answers instead of our own."""

    def __post_init__(self) -> None:
        for name, value in (("window", self.window), ("from_one_list", self.max_per_list)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
                raise InvalidInput(field=f"entities.{name}", value=value, expected="1 or more")
        for type, nouns in _require_mapping(self.types, "types", str).items():
            noun_list = [nouns] if isinstance(nouns, str) else nouns
            if not isinstance(noun_list, Sequence) or not all(isinstance(noun, str) and noun for noun in noun_list):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(field=f"entities.types.{type}", value=nouns, expected="a list of nouns")
        for key, type in _require_mapping(self.id_keys, "id_keys", str).items():
            if not isinstance(type, str) or not type:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidInput(field=f"entities.id_keys.{key}", value=type, expected="a type")
        for pattern, extractor in _require_mapping(self.extractors, "extractors", str).items():
            if not callable(extractor):
                raise InvalidInput(field=f"entities.extractors.{pattern}", value=extractor, expected="a function")

    def type_for(self, noun: str) -> str:
        """The host's type that a noun means; the noun itself where it means none."""
        for type, nouns in self.types.items():
            synonyms = [nouns] if isinstance(nouns, str) else nouns
            if noun == type or noun in (other.replace(" ", "_") for other in synonyms):
                return type
        return noun

    def extractor_for(self, tool: str) -> tuple[str, Extractor] | None:
        return next((item for item in self.extractors.items() if fnmatchcase(tool, item[0])), None)


def _require_mapping(mapping: Mapping[str, T], field: str, kind: type) -> Mapping[str, T]:
    if not isinstance(mapping, Mapping) or not all(isinstance(key, kind) and key for key in mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(field=f"entities.{field}", value=mapping, expected="a mapping with names as its keys")
    return mapping


DEFAULT_RULES = EntityRules()
