"""Host configuration for entities: types, id keys, extractors and window size."""

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
"""Maps a tool outcome to the entities it is about, best match first."""

DEFAULT_WINDOW = 10
DEFAULT_MAX_PER_LIST = 3

T = TypeVar("T")


@frozen(kw_only=True)
class EntityRules:
    """Rules for finding entities in tool results. The defaults fit any application."""

    window: int = DEFAULT_WINDOW
    """Number of entities in the window."""
    max_per_list: int = DEFAULT_MAX_PER_LIST
    """Number of entities that one list adds to the window. The ids of the others become parts of the first."""
    types: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Types of the host, each with its synonyms: {"customer": ["client", "account holder"]}."""
    id_keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Keys whose values are ids, with the type of the entity: {"matricule": "employee"}."""
    extractors: Mapping[str, Extractor] = field(default_factory=dict[str, Extractor])
    """Extractors by tool name pattern ("crm_*"). The first match replaces the built-in extraction."""

    def __post_init__(self) -> None:
        for name, value in (("window", self.window), ("max_per_list", self.max_per_list)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:  # pyright: ignore[reportUnnecessaryIsInstance] -- a host may not use type checking
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
        """Return the host's type for a noun, or the noun itself if no type has it."""
        for type, nouns in self.types.items():
            synonyms = [nouns] if isinstance(nouns, str) else nouns
            if noun == type or noun in (other.replace(" ", "_") for other in synonyms):
                return type
        return noun

    def extractor_for(self, tool: str) -> tuple[str, Extractor] | None:
        return next((item for item in self.extractors.items() if fnmatchcase(tool, item[0])), None)


def _require_mapping(mapping: Mapping[str, T], field: str, kind: type) -> Mapping[str, T]:
    if not isinstance(mapping, Mapping) or not all(isinstance(key, kind) and key for key in mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput(field=f"entities.{field}", value=mapping, expected="a mapping with non-empty text keys")
    return mapping


DEFAULT_RULES = EntityRules()
