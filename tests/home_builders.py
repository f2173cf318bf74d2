"""Homes for those whom no fixture reaches: state machines make one for each of their lives.

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
"""Of the server that the tests share, while there is one."""


@contextmanager
def a_home(kind: Kind) -> Generator[Home]:
    """Where a memory can be, with nothing in it; nothing is left of it afterwards."""
    if kind == "postgres":
        with tenants[-1].swept() as url:
            yield url
    else:
        with TemporaryDirectory() as folder:
            yield Path(folder) / "home"
