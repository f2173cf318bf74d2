"""The embedders of all systems, and a cache of slow vectors between runs.

Imports are late: the memory of systems that search by words alone is measured without numpy and inmind.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from inmind.search.embedders import Embedder

NAMES = ("wordllama", "minilm")
"""The embedders of inmind that include their weights."""


def load_embedder(name: str, *, cache_path: Path | None = None) -> Embedder | None:
    """Return an embedder of inmind, or None for an empty name.

    With a cache file no text is embedded twice.
    """
    if not name:
        return None
    from inmind.search.embedders import create_embedder

    created = create_embedder(name)
    return CachedEmbedder(created, cache_path) if created and cache_path else created


def installed() -> list[str]:
    """Return the names of the installed embedders."""
    from inmind.errors import InvalidInput

    def is_installed(name: str) -> bool:
        try:
            return load_embedder(name) is not None
        except InvalidInput:  # not installed
            return False

    return [name for name in NAMES if is_installed(name)]


def as_lists(embedder: Embedder) -> Callable[[Sequence[str]], list[list[float]]]:
    """Return the embedding function as most peers need it: plain lists of floats."""
    import numpy as np

    return lambda texts: np.asarray(embedder.embed(texts)).tolist()


class CachedEmbedder:
    """An embedder that computes only vectors that are not in its file."""

    def __init__(self, inner: Embedder, path: Path) -> None:
        self._inner = inner
        self.name, self.dimensions = inner.name, inner.dimensions
        self._lock = threading.Lock()
        self._connection: Any = apsw.Connection(str(path))
        self._connection.set_busy_timeout(60_000)
        self._connection.pragma("journal_mode", "wal")
        self._connection.execute("CREATE TABLE IF NOT EXISTS vectors (id BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID")

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        import numpy as np

        ids = [blake2b(f"{self.name}\0{text}".encode(), digest_size=16).digest() for text in texts]
        with self._lock:
            vectors = {id: vector for id in ids if (vector := self._read(id))}
            if new := {id: text for id, text in zip(ids, texts, strict=True) if id not in vectors}:
                computed = np.asarray(self._inner.embed(list(new.values())), dtype="<f4")
                fresh = {id: row.tobytes() for id, row in zip(new, computed, strict=True)}
                with self._connection:
                    self._connection.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", fresh.items())
                vectors |= fresh
        return np.frombuffer(b"".join(vectors[id] for id in ids), dtype="<f4").reshape(len(ids), self.dimensions)

    def _read(self, id: bytes) -> bytes | None:
        row = self._connection.execute("SELECT vector FROM vectors WHERE id = ?", (id,)).fetchone()
        return row[0] if row else None


if __name__ == "__main__":
    print(*installed())
