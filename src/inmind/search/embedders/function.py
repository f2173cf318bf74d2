"""A function that embeds, made into an embedder: the one place where what models are asked and answer is put right.

Models differ in what they cannot take (an empty text, one of a megabyte, half a surrogate pair) and in the length of
their vectors, and a host's function may answer with anything. Past this line nobody checks again.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from inmind.errors import InmindError, InvalidInput, ModelFailed
from inmind.search.embedders.base import Rows
from inmind.search.embedders.installed import needs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_CHARACTERS = 4_000
"""How far into a text is read. Search cuts long ones into passages much shorter than this; no model understands a whole
book as one vector, many refuse it, and a tokenizer lets no other thread run until it is through."""

MOST_DIMENSIONS = 65_536


class Called:
    """An embedder by what its function answers. `name` tells its model from every other; the dimensions join it."""

    def __init__(self, function: Callable[[Sequence[str]], Rows], *, name: str, dimensions: int) -> None:
        if not isinstance(name, str) or not name.strip():  # pyright: ignore[reportUnnecessaryIsInstance] -- a host's
            raise InvalidInput(field="name", value=name, expected="the name of the model, stored with its vectors")
        if type(dimensions) is not int or not 0 < dimensions <= MOST_DIMENSIONS:
            expected = f"how long its vectors are, from 1 to {MOST_DIMENSIONS:,}"
            raise InvalidInput(field="dimensions", value=dimensions, expected=expected)
        needs("numpy", embedder=name)
        self._function = function
        self.dimensions = dimensions
        self.name = f"{name.removesuffix(f'#{dimensions}')}#{dimensions}"

    def __repr__(self) -> str:
        return f"Called({self.name!r})"

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        import numpy as np

        said = [_readable(text) for text in texts]
        telling = [place for place, text in enumerate(said) if text]
        vectors = np.zeros((len(said), self.dimensions), np.float32)
        if telling:
            vectors[telling] = self._unit([said[place] for place in telling])
        return vectors

    def _unit(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """What the model answers, one long each."""
        import numpy as np

        answer = self._answer(texts)
        try:
            rows = np.array(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise self._failed(f"answered with something else than rows of numbers ({error})") from error
        if rows.shape != (len(texts), self.dimensions):
            shape = " x ".join(map(str, rows.shape)) or "one number"
            raise self._failed(f"answered with {shape} where {len(texts)} x {self.dimensions} was expected")
        if not np.isfinite(rows).all():
            raise self._failed("answered with numbers that are not finite")
        largest = np.abs(rows).max(axis=1, keepdims=True)
        np.divide(rows, largest, out=rows, where=largest > 0)  # or a square would overflow, or come to nothing
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.divide(rows, lengths, out=rows, where=lengths > 0)

    def _answer(self, texts: Sequence[str]) -> Any:
        try:
            answer = self._function(texts)
        except InmindError:
            raise
        except Exception as error:  # a foreign model may raise anything
            raise self._failed(f"raised {type(error).__name__}: {error}") from error
        if isinstance(answer, Coroutine):
            answer.close()  # or Python warns of one that nobody awaited
            raise self._failed("is asynchronous, and a function is needed that answers with vectors")
        return answer

    def _failed(self, what: str) -> ModelFailed:
        return ModelFailed(reason=f"{self.name} {what}")


def _readable(text: str) -> str:
    """As much of a text as is embedded, in characters that can be encoded."""
    return text.strip()[:MOST_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
