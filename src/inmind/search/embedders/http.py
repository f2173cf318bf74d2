"""Embedder for endpoints with OpenAI's `/v1/embeddings`: a provider, Ollama or vLLM.

The caller states the dimensions, and the endpoint is not asked for them: a memory opens without the network, and
vectors of another length are rejected.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from inmind.core.http import HttpEndpoint, Json, bearer
from inmind.errors import InvalidInput, ModelFailed, short_repr
from inmind.search.embedders.base import FunctionEmbedder, require_packages

BATCH_SIZE = 64
API_KEY_VARIABLE = "OPENAI_API_KEY"
RETRY_SECONDS = (0.5, 1.0, 2.0)
"""Seconds before each retry. Short, because a search may be waiting and works without the vector."""
TIMEOUT_SECONDS = 30.0
MAX_RESPONSE_BYTES = 64_000_000
"""Size of a batch of the longest vectors as text."""

_ENDPOINT_NAME = re.compile(r"(?P<model>\S+)@(?P<url>https?://[^\s@#?]+)#(?P<dimensions>\d{1,5})")


def http_embedder(
    model: str,
    *,
    url: str,
    dimensions: int,
    api_key: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> FunctionEmbedder:
    """Create an embedder for an endpoint.

    `url` is the part before `/embeddings`. Without `api_key`, the environment variable OPENAI_API_KEY is used.
    """
    url = url.rstrip("/")
    require_packages("httpx2", embedder=f"openai:{model}@{url}")
    server = HttpEndpoint(
        url=url,
        key=api_key,
        key_env=API_KEY_VARIABLE,
        retry_delays=RETRY_SECONDS,
        max_bytes=MAX_RESPONSE_BYTES,
        sleep=pause,
    )

    def rows(texts: Sequence[str]) -> list[Any]:
        rows: list[Any] = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = list(texts[start : start + BATCH_SIZE])
            body = {"model": model, "input": batch}
            response = server.request("embeddings", body, headers=bearer, seconds=TIMEOUT_SECONDS)
            rows += _parse_rows(response, url, len(batch))
        return rows

    return FunctionEmbedder(rows, name=f"openai:{model}@{url}", dimensions=dimensions)


def parse_http_embedder(text: str) -> FunctionEmbedder:
    """Create an embedder from `MODEL@URL#DIMENSIONS`."""
    match = _ENDPOINT_NAME.fullmatch(text)
    if match is None:
        expected = '"openai:MODEL@URL#DIMENSIONS", as in "openai:nomic-embed-text@http://localhost:11434/v1#768"'
        raise InvalidInput(field="embedder", value=f"openai:{text}", expected=expected)
    return http_embedder(match["model"], url=match["url"], dimensions=int(match["dimensions"]))


def _parse_rows(response: Json, url: str, count: int) -> list[Any]:
    """Return one vector per text, ordered by index."""
    try:
        by_index = {item["index"]: item["embedding"] for item in response["data"]}
        return [by_index[index] for index in range(count)]
    except (ValueError, LookupError, TypeError) as error:
        reason = f"{url} did not return {count} embeddings: {short_repr(response)}"
        raise ModelFailed(reason=reason) from error
