"""Any endpoint that speaks OpenAI's `/v1/embeddings`: a provider's, or Ollama, vLLM and their kin at home.

How many dimensions its model has is said by whoever names it and not asked of the endpoint: a memory opens without the
network, and vectors of another length are found out and not stored.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from inmind.embedders.called import Called
from inmind.embedders.found import needs
from inmind.errors import InvalidInput, ModelFailed, shown

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx2

BATCH = 64
WAITS = (0.0, 0.5, 1.0, 2.0)
"""Seconds before each try. Somebody may be waiting for a search, which does well enough without this answer."""
TIMEOUT = 30.0

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
    key = os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key

    def rows(texts: Sequence[str]) -> list[Any]:
        import httpx2

        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # Connections end with the call: one that stayed open would be shared with a child that is forked meanwhile.
        with httpx2.Client(headers=headers, timeout=TIMEOUT, verify=_trusted()) as client:
            batches = [list(texts[start : start + BATCH]) for start in range(0, len(texts), BATCH)]
            return [row for batch in batches for row in _rows(_answer(client, url, model, batch, pause), len(batch))]

    return Called(rows, name=f"openai:{model}@{url}", dimensions=dimensions)


def endpoint_named(named: str) -> Called:
    """By `MODEL@URL#DIMENSIONS`."""
    match = _NAMED.fullmatch(named)
    if match is None:
        expected = '"openai:MODEL@URL#DIMENSIONS", as in "openai:nomic-embed-text@http://localhost:11434/v1#768"'
        raise InvalidInput(field="embedder", value=f"openai:{named}", expected=expected)
    return endpoint(match["model"], url=match["url"], dimensions=int(match["dimensions"]))


def _answer(
    client: httpx2.Client, url: str, model: str, texts: list[str], pause: Callable[[float], None]
) -> httpx2.Response:
    """The first good answer. What may pass is tried again; a refusal, or an answer that does not come, is not."""
    import httpx2

    failure = ""
    for wait in WAITS:
        pause(wait)
        try:
            response = client.post(f"{url}/embeddings", json={"model": model, "input": texts})
        except httpx2.TransportError as error:
            failure = f"{url} cannot be reached ({type(error).__name__}: {error})"
            if isinstance(error, httpx2.TimeoutException):
                break
        else:
            if response.is_success:
                return response
            failure = f"{url} answered {response.status_code}: {shown(response.text)}"
            if response.status_code != 429 and not response.is_server_error:
                break
    raise ModelFailed(reason=failure)


def _rows(response: httpx2.Response, count: int) -> list[Any]:
    """One for each text, in their order, whichever order they come in."""
    try:
        by_place = {one["index"]: one["embedding"] for one in response.json()["data"]}
        return [by_place[place] for place in range(count)]
    except (ValueError, LookupError, TypeError) as error:
        reason = f"{response.url} answered with something else than {count} embeddings: {shown(response.text)}"
        raise ModelFailed(reason=reason) from error


@cache
def _trusted() -> SSLContext:
    """Reading the machine's certificates takes longer than many an answer: once for all calls."""
    import httpx2

    return httpx2.create_ssl_context()
