"""HTTP requests to model servers, limited in time, bytes and retries.

A dream, a search or a user waits for the response, so its time, size and retries are bounded. The server's text may
appear in an error message; the API key never does, even if the server repeats it.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit

from inmind.core.frozen import frozen
from inmind.errors import InvalidInput, ModelFailed, short_repr

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx2

MAX_RESPONSE_BYTES = 1_000_000
"""Limit of a response, unless the endpoint sets another."""

MAX_STREAM_BYTES = 32_000_000
"""Limit of a streamed response. It is higher: every event repeats its frame for a few characters of text."""

RETRY_DELAYS_SECONDS = (1.0, 4.0)
"""Delay before each retry, unless the server sends Retry-After."""

Json = dict[str, Any]
HeadersForKey = Callable[[str], Mapping[str, str]]
"""Request headers for an API key."""

_NO_COMPRESSION = {"Accept-Encoding": "identity"}


class RequestRefused(ModelFailed):
    """The server refused the request with a 4xx status; another request may succeed."""

    def __init__(self, *, reason: str, status: int, body: str, free: bool = True) -> None:
        super().__init__(reason=reason, free=free)
        self.status, self.body = status, body


@frozen(kw_only=True)
class HttpEndpoint:
    """A model server. Its API key is fixed, or read from a variable for every request."""

    url: str
    key: str | None = None
    key_env: str = ""
    retry_delays: tuple[float, ...] = RETRY_DELAYS_SECONDS
    max_bytes: int = MAX_RESPONSE_BYTES
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        _check_url(self.url)
        if self.key is not None:
            _check_key(self.key)
        if find_spec("httpx2") is None:
            expected = 'httpx2 to be installed: pip install "inmind[models]"'
            raise InvalidInput(field="model", expected=expected)

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    def request(self, path: str, body: Mapping[str, Any] | None, *, headers: HeadersForKey, seconds: float) -> Json:
        """Send one request and return the JSON object of the response. Without a body it is a GET."""
        key, until = self._current_key(), time.monotonic() + seconds
        with self._client(headers(key)) as client, ExitStack() as opened:
            answer = self._with_retries(lambda: self._send(client, opened, path, body, key, until), until)
        if answer.status == 200:
            return self._parse_object(answer.text)
        raise _error_for(answer)

    def stream_events(
        self, path: str, body: Mapping[str, Any], *, headers: HeadersForKey, seconds: float
    ) -> Generator[Json, None, bool]:
        """Yield the events of a streamed response as JSON objects.

        `seconds` limits the time between two events.

        Returns whether the server sent its end marker. Before the response starts, failures are retried; afterwards
        they are raised, and the caller decides what to do with a partial response.
        """
        import httpx2

        key, url, until = self._current_key(), self._url_for(path), time.monotonic() + seconds
        with self._client(headers(key)) as client, ExitStack() as opened:
            response = self._with_retries(
                lambda: self._send(client, opened, path, body, key, time.monotonic() + seconds, streamed=True), until
            )
            if response.stream is None:
                raise _error_for(response)
            silence = _SilenceTimer(seconds)
            try:
                events = parse_sse(
                    silence.watch(_limited_chunks(response.stream, MAX_STREAM_BYTES, silence.is_expired))
                )
                while True:
                    try:
                        text = next(events)
                    except StopIteration as end:
                        return end.value
                    yield self._parse_object(_redact_key(key, text))
                    silence.restart()  # only now: the consumer may take any time
            except (httpx2.TimeoutException, _DeadlineExceeded) as error:
                raise ModelFailed(reason=f"{url} sent nothing for {seconds:g} s") from error
            except httpx2.TransportError as error:
                raise ModelFailed(reason=f"{url} broke off in the middle ({type(error).__name__})") from error
            except _ResponseTooLarge as error:
                raise ModelFailed(reason=f"{url} {error}") from error

    def _client(self, headers: Mapping[str, str]) -> httpx2.Client:
        """A client for one call. An open connection would be shared with a forked child."""
        import httpx2

        return httpx2.Client(headers=headers, verify=_ssl_context(), follow_redirects=False)

    def _url_for(self, path: str) -> str:
        return f"{self.url.rstrip('/')}/{path}"

    def _with_retries(self, attempt: Callable[[], _HttpResult], until: float) -> _HttpResult:
        """Retry transient failures, as often as there are delays and while time is left."""
        answer = attempt()
        for default_delay in self.retry_delays:
            delay = default_delay if answer.retry_after is None else answer.retry_after
            if not answer.retryable or delay >= until - time.monotonic():
                break
            self.sleep(delay)
            previous, answer = answer, attempt()
            answer = answer._replace(unbilled=answer.unbilled and previous.unbilled)
        return answer

    def _send(
        self,
        client: httpx2.Client,
        opened: ExitStack,
        path: str,
        body: Mapping[str, Any] | None,
        key: str,
        until: float,
        *,
        streamed: bool = False,
    ) -> _HttpResult:
        """Send a request once. Transport errors are results.

        A streamed response stays open until `opened` is closed; any other is read completely.
        """
        import httpx2

        url, in_time = self._url_for(path), max(0.001, until - time.monotonic())
        opened.close()  # the response of the previous attempt
        try:
            method = "GET" if body is None else "POST"
            sent = client.stream(method, url, json=body, timeout=in_time, headers=_NO_COMPRESSION)
            response = opened.enter_context(sent)
            if streamed and response.status_code == 200 and "json" not in response.headers.get("Content-Type", ""):
                return _HttpResult("", status=200, stream=response)
            return self._read_response(response, url, key, until)
        except httpx2.TimeoutException as error:
            return _HttpResult(f"{url} did not answer in time", unbilled=isinstance(error, httpx2.ConnectTimeout))
        except httpx2.TransportError as error:
            failure = f"{url} cannot be reached ({type(error).__name__}: {error})"
            return _HttpResult(failure, retryable=True, unbilled=isinstance(error, httpx2.ConnectError))
        except _DeadlineExceeded:
            return _HttpResult(f"{url} did not finish its answer in time")
        except _ResponseTooLarge as error:
            return _HttpResult(f"{url} {error}")

    def _read_response(self, response: httpx2.Response, url: str, key: str, until: float) -> _HttpResult:
        pieces = _limited_chunks(response, self.max_bytes, lambda: time.monotonic() > until)
        text, status = _redact_key(key, b"".join(pieces).decode("utf-8", "replace")), response.status_code
        return _HttpResult(
            f"{url} answered {status}: {short_repr(_error_message(text))}",
            status=status,
            text=text,
            retryable=status == 429 or status >= 500,
            unbilled=400 <= status < 500,
            retry_after=_parse_retry_after(response.headers.get("Retry-After", "")),
        )

    def _current_key(self) -> str:
        return self.key if self.key is not None else _check_key(os.environ.get(self.key_env, ""))

    def _parse_object(self, text: str) -> Json:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise ModelFailed(reason=f"{self.url} did not answer with a JSON object: {short_repr(text)}")
        return cast(Json, value)


def bearer(key: str) -> dict[str, str]:
    """The Authorization header that most servers expect."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def parse_sse(chunks: Iterable[bytes]) -> Generator[str, None, bool]:
    """Yield the data of server-sent events from chunks of bytes, up to the end marker.

    Returns whether the end marker was sent. Only the line endings of the protocol end a line: the text of a model may
    contain any other line separator.
    """
    decoded = codecs.getincrementaldecoder("utf-8")("replace")
    rest, data = "", list[str]()
    for chunk in chunks:
        *lines, rest = _LINE_END.split(rest + decoded.decode(chunk))
        if len(rest) > MAX_RESPONSE_BYTES:
            raise _ResponseTooLarge(f"sent more than {MAX_RESPONSE_BYTES:,} characters in one line")
        for line in lines:
            if not line and data:
                if (text := "\n".join(data)) == _SSE_DONE:
                    return True
                yield text
                data = []
            elif line.startswith("data:"):
                data.append(line.removeprefix("data:").removeprefix(" "))
    if data == [_SSE_DONE]:  # some servers omit the empty line after the last event
        return True
    if data:
        yield "\n".join(data)
    return False


_SSE_DONE = "[DONE]"

# A carriage return at the end of a chunk may be the first half of a line ending: wait for the next chunk.
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")


class _HttpResult(NamedTuple):
    """The result of one attempt."""

    failure: str
    status: int = 0
    text: str = ""
    retryable: bool = False
    """A retry may succeed."""
    retry_after: float | None = None
    """Seconds until a retry, from the Retry-After header."""
    unbilled: bool = False
    """The server did no paid work for this attempt or earlier ones."""
    stream: httpx2.Response | None = None
    """A response that is still being received."""


class _ResponseTooLarge(Exception):
    """The response exceeds its limit."""


class _DeadlineExceeded(Exception):
    """The response took too long."""


class _SilenceTimer:
    """Measures silence in a stream.

    A keep-alive line counts as a sign of life, but not forever.
    """

    MAX_KEEPALIVE_FACTOR = 10
    """Keep-alive lines alone are accepted for this many times the limit."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.restart()

    def restart(self) -> None:
        self._last_event = self._last_line = time.monotonic()

    def is_expired(self) -> bool:
        now = time.monotonic()
        return (
            now - self._last_line > self._seconds or now - self._last_event > self.MAX_KEEPALIVE_FACTOR * self._seconds
        )

    def watch(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if b"\n" in piece:
                self._last_line = time.monotonic()
            yield piece


def _check_url(url: str) -> None:
    """Check the URL of a server. The message does not repeat it, since it may contain a key."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        plain = parts.scheme in ("http", "https") and host and parts.port != 0
    except ValueError:  # a malformed IPv6 address, port or host name
        plain = host = ""
    if not plain or "@" in url or "?" in url:
        expected = 'the address of a server, like "http://localhost:11434/v1", without a key in it'
        raise InvalidInput(
            field="url", value=f"an invalid URL of {host}" if host else "an invalid URL", expected=expected
        )


def _error_for(answer: _HttpResult) -> ModelFailed:
    if answer.status == 200:
        return ModelFailed(reason=f"{answer.failure}: expected a stream of events")
    if 400 <= answer.status < 500 and answer.status != 429:
        return RequestRefused(reason=answer.failure, status=answer.status, body=answer.text, free=answer.unbilled)
    return ModelFailed(reason=answer.failure, free=answer.unbilled)


def _limited_chunks(response: httpx2.Response, max_bytes: int, is_late: Callable[[], bool]) -> Iterator[bytes]:
    """Raw chunks of a response, before decompression, up to a limit in bytes and time."""
    size = 0
    for piece in response.iter_raw():
        size += len(piece)
        if size > max_bytes:
            raise _ResponseTooLarge(f"answered with more than {max_bytes:,} bytes")
        if is_late():
            raise _DeadlineExceeded
        yield piece


def _error_message(text: str) -> str:
    """The message of an error response, extracted from its JSON if possible."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for name in ("error", "message"):
        message = cast(Json, message).get(name, cast(object, message)) if isinstance(message, dict) else message
    return message if isinstance(message, str) else text


def _redact_key(key: str, text: str) -> str:
    return text.replace(key, "[key]") if key else text


def _parse_retry_after(value: str) -> float | None:
    """Seconds of a Retry-After header. A date is ignored, since the server's clock is unknown."""
    try:
        return max(0.0, float(value)) if value.isascii() else None
    except ValueError:
        return None


def _check_key(key: str) -> str:
    """Check a key that is sent in a header. The error does not contain it."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InvalidInput(field="key", value="…", expected="an API key without spaces or newlines")
    return key


@cache
def _ssl_context() -> SSLContext:
    """Load the system certificates once: loading takes longer than many requests."""
    import httpx2

    return httpx2.create_ssl_context()


def object_field(value: Mapping[str, Any], name: str) -> Json:
    """The object in a field, or an empty one."""
    inside = value.get(name)
    return cast(Json, inside) if isinstance(inside, dict) else {}


def object_list(value: Mapping[str, Any], name: str) -> list[Json]:
    """The objects of a list in a field."""
    inside = value.get(name)
    listed = cast("list[object]", inside) if isinstance(inside, list) else []
    return [cast(Json, one) for one in listed if isinstance(one, dict)]


def usage_tokens(answer: Json, input_fields: Iterable[str], output_fields: Iterable[str]) -> tuple[int, int]:
    """Input and output tokens, as sums of these usage fields."""
    usage = object_field(answer, "usage")
    return _sum(usage, input_fields), _sum(usage, output_fields)


def _sum(usage: Json, names: Iterable[str]) -> int:
    numbers = (usage.get(name) for name in names)
    return sum(number for number in numbers if type(number) is int and number > 0)
