"""The source as the reference reads it: parsed, not imported, so annotations and defaults stay as written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import griffe

SOURCE = Path(__file__).parents[2] / "src"

HOST_OBJECTS = ("Memory", "Resource", "Session", "Scratchpad", "Affect", "Economics")
"""The objects that hosts use. All their members are public and need a docstring."""

INTERNAL_METHODS = ("after_fork",)
"""Methods of host objects that only the interpreter calls."""


@cache
def package() -> griffe.Module:
    return cast(griffe.Module, griffe.load("inmind", search_paths=[SOURCE], allow_inspection=False))


def module(path: str) -> griffe.Module:
    return package() if path == "inmind" else cast(griffe.Module, package()[path.removeprefix("inmind.")])


def public(path: str) -> Any:
    """Return the definition of a public name."""
    found: Any = package()[path.removeprefix("inmind.")]
    found = found.final_target if found.is_alias else found
    return found.members[found.name] if found.is_module else found  # a module with the name of its member


def names_of(path: str) -> list[str]:
    """Return the public names of a module: its __all__, or the classes defined in it."""
    found = module(path)
    own = [name for name, one in found.members.items() if not (name.startswith("_") or one.is_alias) and one.is_class]
    return [str(name) for name in found.exports or own]


def fields_of(found: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a class."""
    for name, member in _own(found):
        if member.is_attribute and "property" not in member.labels:
            yield name, member


def members_of(found: Any) -> Iterator[tuple[str, Any]]:
    """Yield methods and properties. Members without a docstring are not for callers."""
    for name, member in _own(found):
        asked = member.is_function or "property" in member.labels
        if asked and name not in INTERNAL_METHODS and (docstring_of(member) or found.name in HOST_OBJECTS):
            yield name, member


def _own(found: Any) -> Iterator[tuple[str, Any]]:
    """Yield the members of a class except those of its public bases."""
    exported = {*names_of("inmind"), *names_of("inmind.layers"), *names_of("inmind.types")}
    above = {name for base in found.mro() if base.name in exported for name in base.members}
    for name, member in found.all_members.items():
        if not name.startswith("_") and (name in found.members or name not in above):
            yield name, member.final_target if member.is_alias else member


def docstring_of(found: Any) -> str:
    """Return its docstring, or that of the overridden member.

    Layers implement a protocol that they need not inherit.
    """
    if found.docstring:
        return str(found.docstring.value)
    holder = found.parent
    if found.is_class or holder is None or not holder.is_class:
        return ""
    above = [*holder.mro(), *([public("inmind.Layer")] if holder.name.endswith("Layer") else [])]
    said = (base.members[found.name].docstring for base in above if found.name in base.members)
    return next((str(docstring.value) for docstring in said if docstring), "")
