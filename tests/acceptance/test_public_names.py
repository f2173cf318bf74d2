"""What a host may import is there. That pages speak of all of it, test_docs.py says."""

from __future__ import annotations

import subprocess
import sys

import pytest

import inmind


def test_every_public_name_is_there_and_the_list_is_sorted() -> None:
    assert all(hasattr(inmind, name) for name in inmind.__all__)
    assert sorted(inmind.__all__) == inmind.__all__
    assert set(inmind.__all__) <= set(dir(inmind))


def test_what_is_asked_for_first_is_loaded_and_nothing_else() -> None:
    told = "import sys, inmind; print(sorted(name for name in sys.modules if name.startswith('inmind.')))"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
    with pytest.raises(AttributeError, match="has no attribute 'Memry'"):
        _ = inmind.Memry  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- it is not there


def test_a_memory_brings_no_library_that_only_some_need() -> None:
    told = "import sys\nfrom inmind import Memory\nprint(sorted({name.partition('.')[0] for name in sys.modules}))"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    for name in ("numpy", "opentelemetry", "procrastinate", "psycopg", "psycopg_pool", "typer"):
        assert f"'{name}'" not in ran.stdout
