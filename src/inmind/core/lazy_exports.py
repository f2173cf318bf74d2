"""Public modules whose names are imported on first use.

`inmind --help` needs none of them, and `from inmind import Memory` must not load what only some hosts need. A type
checker reads the imports below `if TYPE_CHECKING`, where `import name as name` exports a name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from sys import modules


def lazy_exports(
    exporter: str, names_by_module: Mapping[str, Sequence[str]]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` for a module that exports names of others."""
    places = {name: module for module, names in names_by_module.items() for name in names}

    def get_attribute(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {exporter!r} has no attribute {name!r}")
        value = getattr(import_module(places[name]), name)
        setattr(modules[exporter], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(modules[exporter]), *places})

    return sorted(places), get_attribute, list_names
