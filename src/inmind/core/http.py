"""One question to a server, over HTTP, with an end: in time, in bytes, in tries.

A dream, a search or a person waits for this, so what a server can make it do is bounded on every side. What the server
says may stand in an error, which people read and journals keep; the key that it was asked with never does, not even
where the server says it back.
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

MOST_BYTES = 1_000_000
"""Of an answer, unless more is asked for. Nothing that a model says of one page comes near."""

MOST_STREAMED = 32_000_000
"""Of an answer in events, each of which repeats its frame for a word or two."""

WAITS = (1.0, 4.0)
"""Seconds before each further try, unless the server says itself when to come again."""

Json = dict[str, Any]
Headers = Callable[[str], Mapping[str, str]]
"""What goes with a request, given the key."""

_AS_IT_IS = {"Accept-Encoding": "identity"}


class Refused(ModelFailed):
    """The server does not take the request as it is; it may take another."""

    def __init__(self, *, reason: str, status: int, said: str, free: bool = True) -> None:
        super().__init__(reason=reason, free=free)
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
        _check_address(self.url)
        if self.key is not None:
            _checked_key(self.key)
        if find_spec("httpx2") is None:
            expected = 'httpx2 to be installed: pip install "inmind[models]"'
            raise InvalidInput(field="model", expected=expected)

    def __repr__(self) -> str:
        return f"Server({self.url!r})"

    def ask(self, path: str, body: Mapping[str, Any] | None, *, headers: Headers, seconds: float) -> Json:
        """What the server answers to one request, as a JSON object. Without a body it only looks (GET)."""
        key = self._key()
        until = time.monotonic() + seconds
        with self._client(headers(key)) as client:
            answer = self._patiently(lambda: self._tried(client, self._place(path), body, key, until), until)
        if answer.status == 200:
            return self._object(answer.text)
        raise _failed(answer)

    def stream(
        self, path: str, body: Mapping[str, Any], *, headers: Headers, seconds: float
    ) -> Generator[Json, None, bool]:
        """The events of one answer as they come, each a JSON object. `seconds`: of silence, before it is given up.

        Returns whether the server has said that it is done. It is tried again as any other question until the answer
        begins. What breaks after that raises where it breaks: whoever has heard half an answer decides himself what to
        make of it.
        """
        import httpx2

        key, place, until = self._key(), self._place(path), time.monotonic() + seconds
        with self._client(headers(key)) as client, ExitStack() as answering:
            begun = self._patiently(lambda: self._begun(client, answering, place, body, key, seconds), until)
            if begun.events is None:
                raise _failed(begun)
            silence = _Silence(seconds)
            try:
                events = events_in(silence.broken_by(_pieces(begun.events, MOST_STREAMED, silence.is_long)))
                while True:
                    try:
                        said = next(events)
                    except StopIteration as end:
                        return end.value
                    yield self._object(_without(key, said))
                    silence.begins()  # only now: whoever was told takes as long as he likes
            except (httpx2.TimeoutException, _Late) as error:
                raise ModelFailed(reason=f"{place} has said nothing for {seconds:g} s") from error
            except httpx2.TransportError as error:
                raise ModelFailed(reason=f"{place} broke off in the middle ({type(error).__name__})") from error
            except _TooMuch as error:
                raise ModelFailed(reason=f"{place} {error}") from error

    def _client(self, headers: Mapping[str, str]) -> httpx2.Client:
        """Its connections end with the call: one that stayed open would be shared with a child forked meanwhile."""
        import httpx2

        return httpx2.Client(headers=headers, verify=_trusted(), follow_redirects=False)

    def _place(self, path: str) -> str:
        return f"{self.url.rstrip('/')}/{path}"

    def _patiently(self, tried: Callable[[], _Answer], until: float) -> _Answer:
        """What may pass is tried again, as often as there are waits and as far as there is time."""
        answer = tried()
        for usual in self.waits:
            wait = usual if answer.after is None else answer.after
            if not answer.passes or wait >= until - time.monotonic():
                break
            self.pause(wait)
            before, answer = answer, tried()
            answer = answer._replace(free=answer.free and before.free)
        return answer

    def _tried(
        self, client: httpx2.Client, url: str, body: Mapping[str, Any] | None, key: str, until: float
    ) -> _Answer:
        def answered() -> _Answer:
            in_time = max(0.001, until - time.monotonic())
            method = "GET" if body is None else "POST"
            with client.stream(method, url, json=body, timeout=in_time, headers=_AS_IT_IS) as response:
                return self._read(response, url, key, until)

        return _reached(url, answered)

    def _begun(
        self, client: httpx2.Client, answering: ExitStack, url: str, body: Mapping[str, Any], key: str, seconds: float
    ) -> _Answer:
        """An answer that has begun and stays open as long as `answering` does; any other, read to its end."""

        def answered() -> _Answer:
            answering.close()  # the try before
            asked = client.stream("POST", url, json=body, timeout=seconds, headers=_AS_IT_IS)
            response = answering.enter_context(asked)
            if response.status_code == 200 and "json" not in response.headers.get("Content-Type", ""):
                return _Answer("", status=200, events=response)
            return self._read(response, url, key, time.monotonic() + seconds)

        return _reached(url, answered)

    def _read(self, response: httpx2.Response, url: str, key: str, until: float) -> _Answer:
        pieces = _pieces(response, self.most_bytes, lambda: time.monotonic() > until)
        text, status = _without(key, b"".join(pieces).decode("utf-8", "replace")), response.status_code
        return _Answer(
            f"{url} answered {status}: {short_repr(_complaint(text))}",
            status=status,
            text=text,
            passes=status == 429 or status >= 500,
            free=400 <= status < 500,
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
            raise ModelFailed(
                reason=f"{self.url} answered with something else than an object of JSON: {short_repr(text)}"
            )
        return cast(Json, value)


def bearer(key: str) -> dict[str, str]:
    """How most servers want a key."""
    return {"Authorization": f"Bearer {key}"} if key else {}


def events_in(pieces: Iterable[bytes]) -> Generator[str, None, bool]:
    """What server-sent events say, out of bytes that end anywhere, up to where the server says that it is done.

    Returns whether it has said so.

    Lines end where the protocol says, and nowhere else: what a model writes may hold every other kind of line end.
    """
    decoded = codecs.getincrementaldecoder("utf-8")("replace")
    rest, data = "", list[str]()
    for piece in pieces:
        *lines, rest = _LINE_END.split(rest + decoded.decode(piece))
        if len(rest) > MOST_BYTES:
            raise _TooMuch(f"says more than {MOST_BYTES:,} characters in one line")
        for line in lines:
            if not line and data:
                if (said := "\n".join(data)) == _DONE:
                    return True
                yield said
                data = []
            elif line.startswith("data:"):
                data.append(line.removeprefix("data:").removeprefix(" "))
    if data == [_DONE]:  # the careless leave out the empty line behind the last event
        return True
    if data:
        yield "\n".join(data)
    return False


_DONE = "[DONE]"

# A return at the end of what has come may be the first half of a line's end: it waits for what follows.
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")


class _Answer(NamedTuple):
    """What came of one try."""

    failure: str
    status: int = 0
    text: str = ""
    passes: bool = False
    """It may be another time."""
    after: float | None = None
    """Seconds until then, as the server says."""
    free: bool = False
    """Nothing was made of the question, by this try or by those before."""
    events: httpx2.Response | None = None
    """An answer that is still coming."""


class _TooMuch(Exception):
    """More than anybody reads."""


class _Late(Exception):
    """Later than anybody waits for."""


class _Silence:
    """How long nothing was heard. A line that says nothing is a sign of life, but not for ever."""

    MOST_SIGNS = 10
    """Times the silence that is waited for, in which there were but such signs."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.begins()

    def begins(self) -> None:
        self._told = self._sign = time.monotonic()

    def is_long(self) -> bool:
        now = time.monotonic()
        return now - self._sign > self._seconds or now - self._told > self.MOST_SIGNS * self._seconds

    def broken_by(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            if b"\n" in piece:
                self._sign = time.monotonic()
            yield piece


def _check_address(url: str) -> None:
    """What does not belong into a URL may be a key, so it is not said back."""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").encode("idna").decode()
        plain = parts.scheme in ("http", "https") and host and parts.port != 0
    except ValueError:  # half an address of IPv6, a port that is no number, a name with an empty label
        plain = host = ""
    if not plain or "@" in url or "?" in url:
        expected = 'the address of a server, like "http://localhost:11434/v1", without a key in it'
        raise InvalidInput(
            field="url", value=f"something else, of {host}" if host else "something else", expected=expected
        )


def _reached(url: str, answered: Callable[[], _Answer]) -> _Answer:
    """What came of a try, which may be that nothing did."""
    import httpx2

    try:
        return answered()
    except httpx2.TimeoutException as error:
        return _Answer(f"{url} has not answered in time", free=isinstance(error, httpx2.ConnectTimeout))
    except httpx2.TransportError as error:
        failure = f"{url} cannot be reached ({type(error).__name__}: {error})"
        return _Answer(failure, passes=True, free=isinstance(error, httpx2.ConnectError))
    except _Late:
        return _Answer(f"{url} has not come to an end in time")
    except _TooMuch as error:
        return _Answer(f"{url} {error}")


def _failed(answer: _Answer) -> ModelFailed:
    if answer.status == 200:
        return ModelFailed(reason=f"{answer.failure}: an answer in events was expected")
    if 400 <= answer.status < 500 and answer.status != 429:
        return Refused(reason=answer.failure, status=answer.status, said=answer.text, free=answer.free)
    return ModelFailed(reason=answer.failure, free=answer.free)


def _pieces(response: httpx2.Response, most: int, is_late: Callable[[], bool]) -> Iterator[bytes]:
    """As they come over the wire, so that none of them can unfold into something larger."""
    size = 0
    for piece in response.iter_raw():
        size += len(piece)
        if size > most:
            raise _TooMuch(f"answered with more than {most:,} bytes")
        if is_late():
            raise _Late
        yield piece


def _complaint(text: str) -> str:
    """What a server says of a failure, out of the JSON that most of them say it in."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for name in ("error", "message"):
        said = cast(Json, said).get(name, cast(object, said)) if isinstance(said, dict) else said
    return said if isinstance(said, str) else text


def _without(key: str, said: str) -> str:
    return said.replace(key, "[key]") if key else said


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
