"""The Embedder protocol: turns texts into vectors for search by meaning.

Search works without one. With one, new crystals are embedded in the background and each query once. A vector is
stored with the name of its embedder and only compared with vectors of that name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol, runtime_checkable

Rows = Collection[Iterable[float]]
"""One vector per text: lists of numbers, or a numpy array."""


@runtime_checkable
class Embedder(Protocol):
    """A model that embeds texts.

    It promises, each with a test in tests/contract/test_embedder.py: one row per text, in order, with `dimensions`
    finite numbers and unit length; zeros for an empty text; the same row for the same text, whatever else is in the
    batch; any text of any length and script is accepted. It may be called from several threads at once.

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
