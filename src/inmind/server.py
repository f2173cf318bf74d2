"""One question to a server, over HTTP, with an end: in time, in bytes, in tries.

A dream or a search waits for this, so what a server can make it do is bounded on every side. What the server says may
stand in an error, which people read and journals keep; the key that it was asked with never does, not even where the
server says it back.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from inmind.errors import InvalidInput, ModelFailed, shown
from inmind.frozen import frozen

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx2

MOST_BYTES = 1_000_000
"""Of an answer, unless more is asked for. Nothing that a model says of one page comes near."""

WAITS = (1.0, 4.0)
"""Seconds before each further try, unless the server says itself when to come again."""

Json = dict[str, Any]

_AS_IT_IS = {"Accept-Encoding": "identity"}


class Refused(ModelFailed):
    """The server does not take the request as it is; it may take another."""

    def __init__(self, *, reason: str, status: int, said: str) -> None:
        super().__init__(reason=reason)
        self.status, self.said = status, said


@frozen(kw_only=True)
class Server:
    """Where a model is asked, and with which key: the one given, or that of a variable, read with every question."""

    url: str
    key: str | None = None
    key_env: str = ""
    waits: tuple[float, ...] = WAITS
    most_bytes: int = MOST_BYTES
    pause: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or "?" in self.url:
            # What does not belong into a URL may be a key, so it is not said back.
            expected = 'the address of a server, like "http://localhost:11434/v1", without a key in it'
            raise InvalidInput(field="url", value=f"{parts.scheme}://{parts.hostname or ''}…", expected=expected)
        if self.key is not None:
            _checked_key(self.key)
        if find_spec("httpx2") is None:
            expected = 'httpx2 to be installed: pip install "inmind[models]"'
            raise InvalidInput(field="model", value=self.url, expected=expected)

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    def ask(
        self, path: str, body: Mapping[str, Any], *, headers: Callable[[str], Mapping[str, str]], seconds: float
    ) -> Json:
        """What the server answers to one request, as a JSON object. `headers`: what goes with it, given the key."""
        import httpx2

        key = self._key()
        until = time.monotonic() + seconds
        place = f"{self.url.rstrip('/')}/{path}"
        # Connections end with the call: one that stayed open would be shared with a child that is forked meanwhile.
        with httpx2.Client(headers=headers(key), verify=_trusted(), follow_redirects=False) as client:
            answer = self._patiently(lambda: self._tried(client, place, body, key, until), until)
        if answer.status == 200:
            return self._object(answer.text)
        if 400 <= answer.status < 500 and answer.status != 429:
            raise Refused(reason=answer.failure, status=answer.status, said=answer.text)
        raise ModelFailed(reason=answer.failure)

    def _patiently(self, tried: Callable[[], _Answer], until: float) -> _Answer:
        """What may pass is tried again, as often as there are waits and as far as there is time."""
        answer = tried()
        for usual in self.waits:
            wait = usual if answer.after is None else answer.after
            if not answer.passes or wait >= until - time.monotonic():
                break
            self.pause(wait)
            answer = tried()
        return answer

    def _tried(self, client: httpx2.Client, url: str, body: Mapping[str, Any], key: str, until: float) -> _Answer:
        import httpx2

        in_time = max(0.001, until - time.monotonic())
        try:
            with client.stream("POST", url, json=body, timeout=in_time, headers=_AS_IT_IS) as response:
                said = b"".join(_pieces(response, until, self.most_bytes)).decode("utf-8", "replace")
        except httpx2.TimeoutException:
            return _Answer(f"{url} has not answered in time")
        except httpx2.TransportError as error:
            return _Answer(f"{url} cannot be reached ({type(error).__name__}: {error})", passes=True)
        except _TooMuch as error:
            return _Answer(f"{url} {error}")
        text, status = said.replace(key, "[key]") if key else said, response.status_code
        return _Answer(
            f"{url} answered {status}: {shown(text)}",
            status=status,
            text=text,
            passes=status == 429 or status >= 500,
            after=_seconds(response.headers.get("Retry-After", "")),
        )

    def _key(self) -> str:
        return self.key if self.key is not None else _checked_key(os.environ.get(self.key_env, ""))

    def _object(self, text: str) -> Json:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ModelFailed(reason=f"{self.url} answered with something else than an object of JSON: {shown(text)}")
        return cast(Json, value)


def bearer(key: str) -> dict[str, str]:
    """How most servers want a key."""
    return {"Authorization": f"Bearer {key}"} if key else {}


class _Answer(NamedTuple):
    """What came of one try."""

    failure: str
    status: int = 0
    text: str = ""
    passes: bool = False
    """It may be another time."""
    after: float | None = None
    """Seconds until then, as the server says."""


class _TooMuch(Exception):
    """More than anybody waits for, or reads."""


def _pieces(response: httpx2.Response, until: float, most: int) -> Iterator[bytes]:
    """As they come over the wire, so that none of them can unfold into something larger."""
    size = 0
    for piece in response.iter_raw():
        size += len(piece)
        if size > most:
            raise _TooMuch(f"answered with more than {most:,} bytes")
        if time.monotonic() > until:
            raise _TooMuch("has not come to an end in time")
        yield piece


def _seconds(said: str) -> float | None:
    """How long to wait; a date is not looked at, since whose clock it is by nobody knows."""
    try:
        return max(0.0, float(said)) if said.isascii() else None
    except ValueError:
        return None


def _checked_key(key: str) -> str:
    """A key that can stand in a header. The error says nothing of it."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidInput(field="key", value="…", expected="a key, which has neither spaces nor line ends in it")
    return key


@cache
def _trusted() -> SSLContext:
    """Reading the machine's certificates takes longer than many an answer: once for all calls."""
    import httpx2

    return httpx2.create_ssl_context()
