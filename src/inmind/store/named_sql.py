"""SQL lives in files, as named and described queries; here they are found by their names."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import cast

SQLITE_PACKAGE = "inmind.store"
"""The package whose folder `sql` is meant where none is named."""


@cache
def load_script(name: str, *, package: str = SQLITE_PACKAGE) -> str:
    """A whole file."""
    from pkgutil import get_data  # importlib.resources brings half of the standard library's file handling along

    return cast(bytes, get_data(package, f"sql/{name}.sql")).decode()


def load_queries(file: str, *, package: str = SQLITE_PACKAGE) -> Callable[[str], str]:
    """The queries of a file, each by the name it has there."""

    @cache
    def queries() -> dict[str, str]:
        parts = re.split(r"^-- name: (\w+)$", load_script(file, package=package), flags=re.MULTILINE)[1:]
        return {
            name: "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
            for name, text in zip(parts[::2], parts[1::2], strict=True)
        }

    return lambda name: queries()[name]
