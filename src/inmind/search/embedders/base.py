"""The Embedder protocol: turns texts into vectors for search by meaning.

Search works without one. With one, new crystals are embedded in the background and each query once. A vector is
stored with the name of its embedder and only compared with vectors of that name.

Choosing an embedder must be fast, so packages are checked without importing them: one with weights may import gigabytes
or change the logging of the process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, runtime_checkable

from inmind.errors import InvalidInput

Rows = Collection[Iterable[float]]
"""One vector per text: lists of numbers, or a numpy array."""


@runtime_checkable
class Embedder(Protocol):
    """A model that embeds texts.

    It promises, each with a test in tests/contract/test_embedder.py: one row per text, in order, with `dimensions`
    finite numbers and unit length; zeros for an empty text; the same row for the same text, in any batch; any text of
    any length and script is accepted. It may be called from several threads at once.

    `inmind.search.embedders.create_embedder` wraps any function that returns numbers so that it keeps these
    promises.
    """

    @property
    def name(self) -> str:
        """Identifies model and dimensions: two that return different vectors never share a name."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str], /) -> Rows:
        """Embed texts. Raises ModelFailed if the model is unreachable or returns something else."""
        ...


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
