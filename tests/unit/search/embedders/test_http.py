"""The HTTP embedder: batches, retries, keys and invalid responses."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Generator

import numpy as np
import pytest
from embedding_server import DIMENSIONS, EmbeddingServer, embedding_server, toy_rows
from tables import each_row

from inmind.errors import InvalidInput, ModelFailed
from inmind.search.embedders import RETRY_SECONDS, FunctionEmbedder, create_embedder, http_embedder

pytestmark = pytest.mark.spec("H4")


@pytest.fixture
def server() -> Generator[EmbeddingServer]:
    with embedding_server() as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def model(server: EmbeddingServer, pauses: list[float]) -> FunctionEmbedder:
    return http_embedder("toy", url=server.url, dimensions=DIMENSIONS, api_key="", pause=pauses.append)


def test_many_texts_are_embedded_in_batches_and_returned_in_order(
    server: EmbeddingServer, model: FunctionEmbedder
) -> None:
    texts = [f"text {number}" for number in range(130)]
    rows = np.array(toy_rows(texts))
    assert model.embed(texts) == pytest.approx(rows / np.linalg.norm(rows, axis=1, keepdims=True), abs=1e-6)
    assert [len(request["input"]) for request in server.requests] == [64, 64, 2]
    assert {request["model"] for request in server.requests} == {"toy"}


@pytest.mark.parametrize(
    ("argument", "in_environment", "expected"),
    [("abc", "xyz", "Bearer abc"), (None, "xyz", "Bearer xyz"), ("", "xyz", None), (None, None, None)],
)
def test_the_api_key_is_the_argument_or_the_environment_variable(
    server: EmbeddingServer,
    monkeypatch: pytest.MonkeyPatch,
    argument: str | None,
    in_environment: str | None,
    expected: str | None,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if in_environment:
        monkeypatch.setenv("OPENAI_API_KEY", in_environment)
    http_embedder("toy", url=server.url, dimensions=DIMENSIONS, api_key=argument).embed(["hello"])
    assert server.keys == [expected]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_temporary_errors_are_retried(
    server: EmbeddingServer, model: FunctionEmbedder, pauses: list[float], status: int
) -> None:
    server.scripted = [(status, "not now")] * 2
    assert model.embed(["hello"]).any()
    assert len(server.requests) == 3
    assert pauses == list(RETRY_SECONDS[:2])


def test_retries_are_limited(server: EmbeddingServer, model: FunctionEmbedder, pauses: list[float]) -> None:
    server.scripted = [(503, "overloaded")] * 100
    with pytest.raises(ModelFailed, match=r"answered 503: 'overloaded'"):
        model.embed(["hello"])
    assert len(server.requests) == 1 + len(RETRY_SECONDS)
    assert pauses == list(RETRY_SECONDS)


@pytest.mark.parametrize("status", [301, 400, 401, 404])
def test_a_client_error_is_not_retried(server: EmbeddingServer, model: FunctionEmbedder, status: int) -> None:
    server.scripted = [(status, "no")] * 2
    with pytest.raises(ModelFailed, match=f"answered {status}: 'no'"):
        model.embed(["hello"])
    assert len(server.requests) == 1


def test_an_unreachable_endpoint_is_named(pauses: list[float]) -> None:
    with embedding_server() as gone:
        url = gone.url
    with pytest.raises(ModelFailed, match=f"{url}/embeddings cannot be reached"):
        http_embedder("toy", url=url, dimensions=DIMENSIONS, api_key="", pause=pauses.append).embed(["hello"])
    assert pauses == list(RETRY_SECONDS)


def test_a_timeout_is_not_retried(pauses: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["inmind.search.embedders"], "TIMEOUT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(ModelFailed, match=f"{url}/embeddings did not answer in time"):
            http_embedder("toy", url=url, dimensions=DIMENSIONS, api_key="", pause=pauses.append).embed(["hello"])
    assert pauses == []


def a_row(index: int, *, dimensions: int = DIMENSIONS) -> dict[str, object]:
    return {"index": index, "embedding": [1.0] * dimensions}


@pytest.mark.parametrize(
    "answer",
    [
        "<html>",
        "[]",
        '{"data": null}',
        '{"data": [7, 8]}',
        '{"data": [{"index": 0}, {"index": 1}]}',
        json.dumps({"data": [a_row(0)]}),
        json.dumps({"data": [a_row(1), a_row(1)]}),
    ],
)
def test_a_response_without_an_embedding_per_text_is_rejected(
    server: EmbeddingServer, model: FunctionEmbedder, answer: str
) -> None:
    server.scripted = [(200, answer)]
    with pytest.raises(ModelFailed, match=r"did not return 2 embeddings|JSON"):
        model.embed(["one", "two"])


def test_embeddings_of_other_dimensions_are_rejected_with_both_numbers(
    server: EmbeddingServer, model: FunctionEmbedder
) -> None:
    server.scripted = [(200, json.dumps({"data": [a_row(0, dimensions=5)]}))]
    with pytest.raises(ModelFailed, match="returned 1 x 5, expected 1 x 8"):
        model.embed(["hello"])


@pytest.mark.parametrize("model", ["nomic-embed-text:v1.5", "BAAI/bge-m3", "@cf/baai/bge-base-en-v1.5"])
def test_an_endpoint_can_be_created_from_its_stored_name(server: EmbeddingServer, model: str) -> None:
    embedder = create_embedder(f"openai:{model}@{server.url}#{DIMENSIONS}")
    assert embedder is not None
    assert embedder.name == f"openai:{model}@{server.url}#{DIMENSIONS}"
    assert len(embedder.embed(["hello"])) == 1
    assert server.requests[0]["model"] == model


@each_row(
    "name",
    [
        "text-embedding-3-small",
        "text-embedding-3-small@https://example.com/v1",
        "text-embedding-3-small@example.com/v1#1536",
        "@https://example.com/v1#1536",
        "m@https://user:secret@example.com/v1#1536",
        "m@https://example.com/v1?key=secret#1536",
        "m@https://example.com/v1#many",
    ],
)
def test_an_incomplete_endpoint_name_is_rejected_with_an_example(name: str) -> None:
    with pytest.raises(InvalidInput, match="openai:MODEL@URL#DIMENSIONS"):
        create_embedder(f"openai:{name}")


def test_a_trailing_slash_does_not_change_the_name(server: EmbeddingServer) -> None:
    one, other = (http_embedder("toy", url=url, dimensions=DIMENSIONS) for url in (server.url, f"{server.url}/"))
    assert one.name == other.name
    assert other.embed(["hello"]).any()
