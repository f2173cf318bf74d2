"""Homes for state machines, which cannot use fixtures.

On PostgreSQL the test has to use the fixture `tenants`.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from builders import Home
from postgres import Tenants

Kind = Literal["sqlite", "postgres"]

tenants: list[Tenants] = []
"""Tenants of the shared server."""


@contextmanager
def temporary_home(kind: Kind) -> Generator[Home]:
    """An empty home or database, removed at the end."""
    if kind == "postgres":
        with tenants[-1].reused() as url:
            yield url
    else:
        with TemporaryDirectory() as folder:
            yield Path(folder) / "home"
