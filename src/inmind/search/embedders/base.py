"""The port to whatever turns a text into a vector, so that what means the same is found in other words.

Search is good without one. Where there is one, it is asked in the background for what is new and once for each query;
each vector is stored with the name of the embedder it came from, and only ever compared with others of that name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol, runtime_checkable

Rows = Collection[Iterable[float]]
"""Vectors side by side: lists of numbers, or a numpy array, which is one of these without numpy being known here."""


@runtime_checkable
class Embedder(Protocol):
    """A model that places texts, those near each other that mean much the same.

    Its promises, each a test in tests/contract/test_embedder.py: a row for each text, in their order, each of
    `dimensions` finite numbers and one long; nothing but zeros for a text that says nothing, which is therefore near
    to none; the same row for the same text, whatever it is embedded together with; and no text, however long and in
    whatever script, that it cannot take. It may be asked from several threads at once.

    `inmind.search.embedders.create_embedder` makes one that keeps them of anything that answers with numbers.
    """

    @property
    def name(self) -> str:
        """Which model this is, and of how many dimensions: two that answer differently never share a name."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str], /) -> Rows:
        """ModelFailed where the model cannot be reached or answers with something else than vectors."""
        ...
