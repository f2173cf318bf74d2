"""Loading of SQL files that hold named queries."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import cast

SQLITE_PACKAGE = "inmind.store"
"""The default package. SQL files are in its folder `sql`."""


@cache
def load_script(name: str, *, package: str = SQLITE_PACKAGE) -> str:
    """Return the text of a SQL file."""
    from pkgutil import get_data  # importlib.resources takes much longer to import

    return cast(bytes, get_data(package, f"sql/{name}.sql")).decode()


def load_queries(file: str, *, package: str = SQLITE_PACKAGE) -> Callable[[str], str]:
    """Return a function that looks up the queries of a file by name."""

    @cache
    def queries() -> dict[str, str]:
        parts = re.split(r"^-- name: (\w+)$", load_script(file, package=package), flags=re.MULTILINE)[1:]
        return {
            name: "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
            for name, text in zip(parts[::2], parts[1::2], strict=True)
        }

    return lambda name: queries()[name]
