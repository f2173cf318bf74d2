"""Nearest-neighbour search with identical results in memory (SQLite) and with pgvector.

An index that cannot compare vectors is mirrored in memory. Results of pgvector are measured again, because it sums
in single precision and would order near-equal vectors differently.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from inmind.core.fork import register_after_fork
from inmind.search.index.base import NearestPassages, Scope, SearchIndex

READ_BATCH_SIZE = 10_000
"""Number of vectors read at once."""

RERANK_COUNT = 1_000
"""Number of vectors measured again: far more than can become hits."""


class DatabaseVectorSearch:
    """Search in an index that compares vectors itself."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index

    def nearest(self, embedder: str, scope: Scope, vector: Sequence[float], limit: int) -> NearestPassages:
        compared = self._index.nearest_vectors(embedder, scope, vector, limit, RERANK_COUNT)
        with_vectors = [(passage, numbers) for passage, _, numbers in compared.passages if numbers is not None]
        without_vectors = [(passage, cosine) for passage, cosine, numbers in compared.passages if numbers is None]
        return NearestPassages(compared.total, [*_rerank(with_vectors, vector), *without_vectors])


def _rerank(with_vectors: Sequence[tuple[int, bytes]], vector: Sequence[float]) -> Sequence[tuple[int, float]]:
    import numpy as np

    from inmind.search.nearest import NearestVectors

    nearest = NearestVectors(len(vector))
    numbers = np.frombuffer(b"".join(numbers for _, numbers in with_vectors), np.float16)
    nearest.add(
        [passage for passage, _ in with_vectors], numbers.reshape(len(with_vectors), -1) if with_vectors else ()
    )
    return nearest.nearest(np.asarray(vector, np.float32), len(with_vectors))


class MemoryVectorSearch:
    """One in-memory matrix for each searched resource."""

    def __init__(self, index: SearchIndex) -> None:
        self._index = index
        self._matrices: dict[int, _VectorMatrix] = {}
        self._lock = threading.Lock()
        register_after_fork(self)

    def after_fork(self) -> None:
        """A thread of the parent may have been filling a matrix: the child starts empty."""
        self._lock = threading.Lock()
        self._matrices.clear()

    def nearest(self, embedder: str, scope: Scope, vector: Sequence[float], limit: int) -> NearestPassages:
        with self._lock:
            matrix = self._matrices.get(scope.id)
            if matrix is None or (matrix.embedder, matrix.index) != (embedder, scope.index_identity):
                matrix = self._matrices[scope.id] = _VectorMatrix(embedder, scope.index_identity, len(vector))
            matrix.refresh(self._index, scope)
            return matrix.nearest(vector, limit)


class _VectorMatrix:
    def __init__(self, embedder: str, index: bytes, dimensions: int) -> None:
        from inmind.search.nearest import NearestVectors

        self.embedder, self.index = embedder, index
        self._nearest: NearestVectors = NearestVectors(dimensions)
        self._upto = 0

    def refresh(self, index: SearchIndex, scope: Scope) -> None:
        import numpy as np

        while rows := index.read_vectors(self.embedder, scope, after=self._upto, limit=READ_BATCH_SIZE):
            numbers = np.frombuffer(b"".join(vector for _, _, vector in rows), np.float16)
            self._nearest.add([passage for _, passage, _ in rows], numbers.reshape(len(rows), -1))
            self._upto = rows[-1][0]

    def nearest(self, vector: Sequence[float], limit: int) -> NearestPassages:
        import numpy as np

        return NearestPassages(len(self._nearest), self._nearest.nearest(np.asarray(vector, np.float32), limit))
