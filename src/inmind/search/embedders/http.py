"""Any endpoint that speaks OpenAI's `/v1/embeddings`: a provider's, or Ollama, vLLM and their kin at home.

How many dimensions its model has is said by whoever names it and not asked of the endpoint: a memory opens without the
network, and vectors of another length are found out and not stored.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

from inmind.core.http import Json, Server, bearer
from inmind.errors import InvalidInput, ModelFailed, short_repr
from inmind.search.embedders.function import Called
from inmind.search.embedders.installed import needs

BATCH = 64
KEY = "OPENAI_API_KEY"
WAITS = (0.5, 1.0, 2.0)
"""Seconds before each further try. Somebody may be waiting for a search, which does well without this answer."""
TIMEOUT = 30.0
MOST_BYTES = 64_000_000
"""Of an answer: a batch of the longest vectors there are, written out."""

_NAMED = re.compile(r"(?P<model>\S+)@(?P<url>https?://[^\s@#?]+)#(?P<dimensions>\d{1,5})")


def endpoint(
    model: str,
    *,
    url: str,
    dimensions: int,
    api_key: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Called:
    """`url` ends where `/embeddings` would follow. Without `api_key`, OPENAI_API_KEY is sent where it is set."""
    url = url.rstrip("/")
    needs("httpx2", embedder=f"openai:{model}@{url}")
    server = Server(url=url, key=api_key, key_env=KEY, waits=WAITS, most_bytes=MOST_BYTES, pause=pause)

    def rows(texts: Sequence[str]) -> list[Any]:
        batches = [list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
        return [row for batch in batches for row in _rows(_asked(server, model, batch), url, len(batch))]

    return Called(rows, name=f"openai:{model}@{url}", dimensions=dimensions)


def endpoint_named(named: str) -> Called:
    """By `MODEL@URL#DIMENSIONS`."""
    match = _NAMED.fullmatch(named)
    if match is None:
        expected = '"openai:MODEL@URL#DIMENSIONS", as in "openai:nomic-embed-text@http://localhost:11434/v1#768"'
        raise InvalidInput(field="embedder", value=f"openai:{named}", expected=expected)
    return endpoint(match["model"], url=match["url"], dimensions=int(match["dimensions"]))


def _asked(server: Server, model: str, texts: list[str]) -> Json:
    return server.ask("embeddings", {"model": model, "input": texts}, headers=bearer, seconds=TIMEOUT)


def _rows(answer: Json, url: str, count: int) -> list[Any]:
    """One for each text, in their order, whichever order they come in."""
    try:
        by_place = {one["index"]: one["embedding"] for one in answer["data"]}
        return [by_place[place] for place in range(count)]
    except (ValueError, LookupError, TypeError) as error:
        reason = f"{url} answered with something else than {count} embeddings: {short_repr(answer)}"
        raise ModelFailed(reason=reason) from error
