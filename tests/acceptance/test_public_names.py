"""What a host may import is what the pages speak of."""

from __future__ import annotations

from pathlib import Path

import inmind

ROOT = Path(__file__).parents[2]


def test_every_public_name_is_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in inmind.__all__ if f"`{name}`" not in readme and name not in readme] == []


def test_every_public_name_is_there_and_the_list_is_sorted() -> None:
    assert all(hasattr(inmind, name) for name in inmind.__all__)
    assert sorted(inmind.__all__) == inmind.__all__
