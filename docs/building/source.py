"""The parsed source for the reference.

It is not imported, so that annotations and defaults stay as written.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
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
    node: Any = package()[path.removeprefix("inmind.")]
    node = node.final_target if node.is_alias else node
    return node.members[node.name] if node.is_module else node  # a module with the name of its member


def names_of(path: str) -> list[str]:
    """Return the public names of a module: its __all__, or the classes defined in it."""
    node = module(path)
    own = [name for name, one in node.members.items() if not (name.startswith("_") or one.is_alias) and one.is_class]
    return list(vars(import_module(path)).get("__all__", own))  # lazy modules make it when they are imported


def fields_of(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a class."""
    for name, member in _own(node):
        if member.is_attribute and "property" not in member.labels:
            yield name, member


def members_of(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield methods and properties. Members without a docstring are not for callers."""
    for name, member in _own(node):
        is_call = member.is_function or "property" in member.labels
        if is_call and name not in INTERNAL_METHODS and (docstring_of(member) or node.name in HOST_OBJECTS):
            yield name, member


def _own(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the members of a class except those of its public bases."""
    exported = {*names_of("inmind"), *names_of("inmind.layers"), *names_of("inmind.types")}
    inherited = {name for base in node.mro() if base.name in exported for name in base.members}
    for name, member in node.all_members.items():
        if not name.startswith("_") and (name in node.members or name not in inherited):
            yield name, member.final_target if member.is_alias else member


def docstring_of(node: Any) -> str:
    """Return its docstring, or that of the overridden member.

    Layers implement a protocol that they need not inherit.
    """
    if node.docstring:
        return str(node.docstring.value)
    holder = node.parent
    if node.is_class or holder is None or not holder.is_class:
        return ""
    inherited = [*holder.mro(), *([public("inmind.Layer")] if holder.name.endswith("Layer") else [])]
    docstrings = (base.members[node.name].docstring for base in inherited if node.name in base.members)
    return next((str(docstring.value) for docstring in docstrings if docstring), "")
