"""Loading of SQL files that hold named queries.

Those of PostgreSQL are in the folder `sql/postgres`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import cast


@cache
def load_script(name: str) -> str:
    """Return the text of a SQL file."""
    from pkgutil import get_data  # importlib.resources takes much longer to import

    return cast(bytes, get_data("inmind.store", f"sql/{name}.sql")).decode()


def load_queries(*files: str, for_sqlite: bool = False) -> Callable[[str], str]:
    """Return a function that looks up the queries of these files by name.

    `for_sqlite`: translate the queries that both databases share.
    """

    @cache
    def queries() -> dict[str, str]:
        text = "\n".join(map(load_script, files))
        if for_sqlite:
            text = _ARRAY.sub(r"IN (SELECT value FROM json_each($\1))", text).replace("tenant.", "").replace("$", "?")
        parts = re.split(r"^-- name: (\w+)$", text, flags=re.MULTILINE)[1:]
        return {
            name: "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
            for name, text in zip(parts[::2], parts[1::2], strict=True)
        }

    return lambda name: queries()[name]


_ARRAY = re.compile(r"= ANY \(\$(\d+)::\w+\[\]\)")
