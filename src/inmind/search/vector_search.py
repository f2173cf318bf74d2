"""How close vectors are, which comes out the same wherever they lie.

Where the tables of an index cannot compare them, they are held in memory, following the index. Where they can, the best
are measured once more: they add up in single precision, and what is about as close would come in another order.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from inmind.core.fork import tell_after_fork
from inmind.search.index.base import Index, Near, Scope

AT_A_TIME = 10_000
"""Vectors that are read together."""

AGAIN = 1_000
"""Vectors that are measured once more: far more than can come to the front."""


class Measured:
    """What an index has compared."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def nearest(self, embedder: str, scope: Scope, vector: Sequence[float], most: int) -> Near:
        found = self._index.compared(embedder, scope, vector, most, AGAIN)
        whole = [(passage, numbers) for passage, _, numbers in found.passages if numbers is not None]
        far = [(passage, cosine) for passage, cosine, numbers in found.passages if numbers is None]
        return Near(found.among, [*_nearest(whole, vector), *far])


def _nearest(whole: Sequence[tuple[int, bytes]], vector: Sequence[float]) -> Sequence[tuple[int, float]]:
    import numpy as np

    from inmind.search.nearest import Nearest

    nearest = Nearest(len(vector))
    numbers = np.frombuffer(b"".join(numbers for _, numbers in whole), np.float16)
    nearest.add([passage for passage, _ in whole], numbers.reshape(len(whole), -1) if whole else ())
    return nearest.nearest(np.asarray(vector, np.float32), len(whole))


class Matrices:
    """One for each resource that somebody asked about."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._matrices: dict[int, _Matrix] = {}
        self._lock = threading.Lock()
        tell_after_fork(self)

    def after_fork(self) -> None:
        """A thread of the parent may have been filling a matrix: the child makes its own."""
        self._lock = threading.Lock()
        self._matrices.clear()

    def nearest(self, embedder: str, scope: Scope, vector: Sequence[float], most: int) -> Near:
        with self._lock:
            matrix = self._matrices.get(scope.id)
            if matrix is None or (matrix.embedder, matrix.index) != (embedder, scope.index):
                matrix = self._matrices[scope.id] = _Matrix(embedder, scope.index, len(vector))
            matrix.refresh(self._index, scope)
            return matrix.nearest(vector, most)


class _Matrix:
    def __init__(self, embedder: str, index: bytes, dimensions: int) -> None:
        from inmind.search.nearest import Nearest

        self.embedder, self.index = embedder, index
        self._nearest: Nearest = Nearest(dimensions)
        self._upto = 0

    def refresh(self, index: Index, scope: Scope) -> None:
        import numpy as np

        while rows := index.vectors(self.embedder, scope, after=self._upto, most=AT_A_TIME):
            numbers = np.frombuffer(b"".join(vector for _, _, vector in rows), np.float16)
            self._nearest.add([passage for _, passage, _ in rows], numbers.reshape(len(rows), -1))
            self._upto = rows[-1][0]

    def nearest(self, vector: Sequence[float], most: int) -> Near:
        import numpy as np

        return Near(len(self._nearest), self._nearest.nearest(np.asarray(vector, np.float32), most))
