"""A function that embeds, made into an embedder: the one place where what models are asked and answer is put right.

Models differ in what they cannot take (an empty text, one of a megabyte, half a surrogate pair) and in the length of
their vectors, and a host's function may answer with anything. Past this line nobody checks again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from inmind.errors import InmindError, InvalidInput, ModelFailed
from inmind.search.embedders.base import Rows
from inmind.search.embedders.installed import require_packages

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_TEXT_CHARS = 4_000
"""How far into a text is read. Search cuts long ones into passages much shorter than this; no model understands a whole
book as one vector, many refuse it, and a tokenizer lets no other thread run until it is through."""

MAX_DIMENSIONS = 65_536


class FunctionEmbedder:
    """An embedder by what its function answers. `name` tells its model from every other; the dimensions join it."""

    def __init__(self, function: Callable[[Sequence[str]], Rows], *, name: str, dimensions: int) -> None:
        if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's
            raise InvalidInput(field="name", value=name, expected="the name of the model, stored with its vectors")
        if type(dimensions) is not int or not 0 < dimensions <= MAX_DIMENSIONS:
            expected = f"how long its vectors are, from 1 to {MAX_DIMENSIONS:,}"
            raise InvalidInput(field="dimensions", value=dimensions, expected=expected)
        require_packages("numpy", embedder=name)
        self._function = function
        self.dimensions = dimensions
        self.name = f"{name.removesuffix(f'#{dimensions}')}#{dimensions}"

    def __repr__(self) -> str:
        return f"Called({self.name!r})"

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        import numpy as np

        readable = [_normalise(text) for text in texts]
        non_empty = [place for place, text in enumerate(readable) if text]
        vectors = np.zeros((len(readable), self.dimensions), np.float32)
        if non_empty:
            vectors[non_empty] = self._unit_vectors([readable[place] for place in non_empty])
        return vectors

    def _unit_vectors(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """What the model answers, one long each."""
        import numpy as np

        result = self._call(texts)
        try:
            rows = np.array(result, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise self._error(f"answered with something else than rows of numbers ({error})") from error
        if rows.shape != (len(texts), self.dimensions):
            shape = " x ".join(map(str, rows.shape)) or "one number"
            raise self._error(f"answered with {shape} where {len(texts)} x {self.dimensions} was expected")
        if not np.isfinite(rows).all():
            raise self._error("answered with numbers that are not finite")
        largest = np.abs(rows).max(axis=1, keepdims=True)
        np.divide(rows, largest, out=rows, where=largest > 0)  # or a square would overflow, or come to nothing
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=rows, where=lengths > 0)

    def _call(self, texts: Sequence[str]) -> Any:
        try:
            result = self._function(texts)
        except InmindError:
            raise
        except Exception as error:  # a foreign model may raise anything
            raise self._error(f"raised {type(error).__name__}: {error}") from error
        if isinstance(result, Coroutine):
            result.close()  # or Python warns of one that nobody awaited
            raise self._error("is asynchronous, and a function is needed that answers with vectors")
        return result

    def _error(self, problem: str) -> ModelFailed:
        return ModelFailed(reason=f"{self.name} {problem}")


def _normalise(text: str) -> str:
    """As much of a text as is embedded, in characters that can be encoded."""
    return text.strip()[:MAX_TEXT_CHARS].encode("utf-8", "replace").decode("utf-8")
