"""The public names can be imported. test_docs.py checks that the reference has all of them."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import inmind
from inmind import layers, types


def exported_names(module: ModuleType) -> list[str]:
    return module.__all__


@pytest.mark.parametrize("module", [inmind, layers, types], ids=lambda module: module.__name__)
def test_every_public_name_can_be_imported_and_the_list_is_sorted(module: ModuleType) -> None:
    assert all(hasattr(module, name) for name in module.__all__)
    assert sorted(module.__all__) == module.__all__
    assert set(module.__all__) <= set(dir(module))


def test_the_types_are_not_repeated_at_the_root() -> None:
    root, of_layers, of_types = (set(exported_names(module)) for module in (inmind, layers, types))
    assert of_types & (root | of_layers) == set()
    assert of_layers & root == {"Layer", "default_layers"}


def test_importing_the_package_loads_no_other_module_than_the_lazy_exports() -> None:
    code = "import sys, inmind; print(sorted(name for name in sys.modules if name.startswith('inmind.')))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout == "['inmind.core', 'inmind.core.lazy_exports']\n"
    with pytest.raises(AttributeError, match="has no attribute 'Memry'"):
        _ = inmind.Memry  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] -- it is not there


def test_importing_memory_loads_no_optional_dependency() -> None:
    code = "import sys\nfrom inmind import Memory\nprint(sorted({name.partition('.')[0] for name in sys.modules}))"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in ("numpy", "opentelemetry", "click", "procrastinate", "psycopg", "psycopg_pool"):
        assert f"'{name}'" not in process.stdout
