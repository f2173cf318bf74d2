"""The Embedder protocol: turns texts into vectors for search by meaning.

Search works without one. With one, new crystals are embedded in the background and each query once. A vector is
stored with the name of its embedder and only compared with vectors of that name.

Choosing an embedder must be fast, so packages are checked without importing them: one with weights may import
gigabytes or change the logging of the process.

`FunctionEmbedder` makes an Embedder of a function, and checks its inputs and results. Models differ in what they
reject (empty text, a megabyte of text, unpaired surrogates) and in the length of their vectors, and a host's function
may return anything.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from inmind.errors import InmindError, InvalidInput, ModelFailed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
