"""Checks which packages are installed, without importing them.

Choosing an embedder must be fast. A package with weights may import gigabytes or change the logging of the process
when imported: only its files are needed.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from inmind.errors import InvalidInput

INSTALL_VECTORS = 'pip install "inmind[vectors]"'


def are_installed(*packages: str) -> bool:
    return all(find_spec(package) for package in packages)


def require_packages(*packages: str, embedder: str, install: str = INSTALL_VECTORS) -> None:
    """Raise InvalidInput with the install command if a package is missing."""
    missing = [package for package in packages if not are_installed(package)]
    if missing:
        expected = f"{' and '.join(missing)} to be installed: {install}"
        raise InvalidInput(field="embedder", value=embedder, expected=expected)


def package_folder(package: str) -> Path:
    """Return the folder of an installed package."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(package)
    return Path(next(iter(spec.submodule_search_locations)))
