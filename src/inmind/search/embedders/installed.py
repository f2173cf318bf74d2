"""Which packages are installed, and where, without importing any of them.

Naming an embedder has to be quick, and a package that carries weights can have an `__init__` that imports gigabytes of
other things, or changes the logging of the whole process: only its files are wanted.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from inmind.errors import InvalidInput

INSTALL_VECTORS = 'pip install "inmind[vectors]"'


def are_installed(*packages: str) -> bool:
    return all(find_spec(package) for package in packages)


def require_packages(*packages: str, embedder: str, install: str = INSTALL_VECTORS) -> None:
    """InvalidInput, with what to install, where one of them is missing."""
    missing = [package for package in packages if not are_installed(package)]
    if missing:
        expected = f"{' and '.join(missing)} to be installed: {install}"
        raise InvalidInput(field="embedder", value=embedder, expected=expected)


def package_folder(package: str) -> Path:
    """Where the files of an installed package are."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(package)
    return Path(next(iter(spec.submodule_search_locations)))
