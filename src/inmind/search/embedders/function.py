"""Wraps an embedding function as an Embedder, and checks its inputs and results.

Models differ in what they reject (empty text, a megabyte of text, unpaired surrogates) and in the length of their
vectors, and a host's function may return anything.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from inmind.errors import InmindError, InvalidInput, ModelFailed
from inmind.search.embedders.base import Rows, require_packages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TEXT_CHARS = 4_000
"""Only the beginning of a longer text is embedded.

Search splits texts into much shorter passages; many models reject long texts, and a tokenizer blocks other
threads."""

MAX_DIMENSIONS = 65_536


class FunctionEmbedder:
    """An embedder from a function. `name` identifies the model; dimensions are appended."""

    def __init__(self, function: Callable[[Sequence[str]], Rows], *, name: str, dimensions: int) -> None:
        if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance] -- a host may pass anything
            raise InvalidInput(
                field="name", value=name, expected="the name of the model, which is stored with its vectors"
            )
        if type(dimensions) is not int or not 0 < dimensions <= MAX_DIMENSIONS:
            expected = f"the length of its vectors, from 1 to {MAX_DIMENSIONS:,}"
            raise InvalidInput(field="dimensions", value=dimensions, expected=expected)
        require_packages("numpy", embedder=name)
        self._function = function
        self.dimensions = dimensions
        self.name = f"{name.removesuffix(f'#{dimensions}')}#{dimensions}"

    def __repr__(self) -> str:
        return f"Called({self.name!r})"

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        import numpy as np

        normalised = [_normalise(text) for text in texts]
        non_empty = [index for index, text in enumerate(normalised) if text]
        vectors = np.zeros((len(normalised), self.dimensions), np.float32)
        if non_empty:
            vectors[non_empty] = self._unit_vectors([normalised[index] for index in non_empty])
        return vectors

    def _unit_vectors(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return the model's vectors, scaled to unit length."""
        import numpy as np

        result = self._call(texts)
        try:
            rows = np.array(result, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise self._error(f"did not return rows of numbers ({error})") from error
        if rows.shape != (len(texts), self.dimensions):
            shape = " x ".join(map(str, rows.shape)) or "one number"
            raise self._error(f"returned {shape}, expected {len(texts)} x {self.dimensions}")
        if not np.isfinite(rows).all():
            raise self._error("returned numbers that are not finite")
        largest = np.abs(rows).max(axis=1, keepdims=True)
        np.divide(rows, largest, out=rows, where=largest > 0)  # avoids overflow and underflow of squares
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=rows, where=lengths > 0)

    def _call(self, texts: Sequence[str]) -> Any:
        try:
            result = self._function(texts)
        except InmindError:
            raise
        except Exception as error:  # a model may raise anything
            raise self._error(f"raised {type(error).__name__}: {error}") from error
        if isinstance(result, Coroutine):
            result.close()  # avoids a warning about an unawaited coroutine
            raise self._error("is asynchronous: pass a function that returns vectors")
        return result

    def _error(self, problem: str) -> ModelFailed:
        return ModelFailed(reason=f"{self.name} {problem}")


def _normalise(text: str) -> str:
    """Return the embedded beginning of a text, in encodable characters."""
    return text.strip()[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
