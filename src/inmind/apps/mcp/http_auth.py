"""Who may come in over HTTP, decided before anything else is looked at: on every path, for every method.

    403   the request was not meant for this server: a page in a browser sends its own Origin, and a name that somebody
          has pointed at this machine stands in Host
    401   it brings no token, or another
    413   its body is too long
    408   its body does not come to an end
    503   the bodies of all who ask are too long together

All that `/health` tells is that somebody is there, so it asks for no token, and takes no body. Nothing here answers to
another origin, so there is no CORS. A request whose end never came is not carried out, whatever its beginning says.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from collections.abc import Mapping, Sequence

import anyio
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inmind.core.frozen import frozen
from inmind.errors import InvalidInput

HEALTH = "/health"
MOST_BYTES = 4 * 1024 * 1024
"""Of a request's body."""
MOST_AT_ONCE = 16 * MOST_BYTES
"""Of the bodies of all requests that are being read or answered."""
BODY_SECONDS = 30.0
"""For all of it to come."""

_TOO_LONG = f"at most {MOST_BYTES} bytes"
_LAST = {"Connection": "close"}
_PORTS = {"http": 80, "https": 443}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?")


@frozen(kw_only=True)
class Public:
    """Where others see us, behind a proxy that speaks TLS for us."""

    scheme: str
    host: str
    port: int

    @classmethod
    def at(cls, url: str) -> Public:
        scheme, _, authority = url.lower().removesuffix("/").partition("://")
        read = _AUTHORITY.fullmatch(authority)
        if scheme not in _PORTS or read is None:
            raise InvalidInput(
                field="--public-url", value=url, expected="as https://memory.example.com, without a path"
            )
        return cls(scheme=scheme, host=read["host"], port=int(read["port"] or _PORTS[scheme]))

    def is_meant_by(self, authority: str) -> bool:
        read = _AUTHORITY.fullmatch(authority.lower())
        return read is not None and (read["host"], int(read["port"] or _PORTS[self.scheme])) == (self.host, self.port)


@frozen(kw_only=True)
class Address:
    """Where we listen, and so what a client that means us says in Host."""

    host: str
    port: int
    public: Public | None = None

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    def is_meant_by(self, authority: str) -> bool:
        """By a name of ours, and our port; or as others see us.

        Whoever listens on all interfaces is meant by every plain address: what others can point at us is a name.
        """
        if self.public is not None and self.public.is_meant_by(authority):
            return True
        return self._is_here(authority)

    def is_origin(self, origin: str) -> bool:
        scheme, _, authority = origin.partition("://")
        if self.public is not None and scheme == self.public.scheme and self.public.is_meant_by(authority):
            return True
        return scheme == "http" and self._is_here(authority)

    def _is_here(self, authority: str) -> bool:
        read = _AUTHORITY.fullmatch(authority.lower())
        if read is None or int(read["port"] or _PORTS["http"]) != self.port:
            return False
        host = read["host"].strip("[]")
        return host in self._names or (not self.is_local and _is_address(host))

    @property
    def _names(self) -> frozenset[str]:
        return _LOOPBACK | {self.host.lower(), *(() if self.is_local else (socket.gethostname().lower(),))}


def is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


class Guard:
    """In front of the application, which sees only whole requests of those who may ask."""

    def __init__(self, app: ASGIApp, address: Address, token: str) -> None:
        self._app, self._address = app, address
        self._expected = f"bearer {token}".encode()
        self._held = 0
        """Bytes of bodies, of all requests that are not answered yet."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        body = bytearray()
        try:
            self._check(scope)
            if scope["path"] == HEALTH:
                return await PlainTextResponse("ok\n", headers=_LAST)(scope, receive, send)
            await self._read(receive, body)
            return await self._app(scope, _again(bytes(body), receive), send)
        except _TurnedAway as away:
            # Nobody would read the rest of what it sends.
            return await PlainTextResponse(f"{away}\n", away.status, {**away.headers, **_LAST})(scope, receive, send)
        except _Gone:
            return None
        finally:
            self._held -= len(body)

    async def _read(self, receive: Receive, body: bytearray) -> None:
        """All of a body, of which there is an end in bytes and in time."""
        with anyio.move_on_after(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Gone
                more = message.get("body", b"")
                self._held += len(more)
                body += more
                if len(body) > MOST_BYTES:
                    raise _TurnedAway(413, _TOO_LONG)
                if self._held > MOST_AT_ONCE:
                    raise _TurnedAway(503, "too much at once: try again", {"Retry-After": "1"})
                if not message.get("more_body", False):
                    return
        raise _TurnedAway(408, "the body did not come")

    def _check(self, scope: Scope) -> None:
        hosts, origins = _all(scope, b"host"), _all(scope, b"origin")
        if len(hosts) != 1 or not self._address.is_meant_by(hosts[0].decode("latin-1")):
            raise _TurnedAway(403, "wrong Host")
        if len(origins) > 1 or not all(self._address.is_origin(origin.decode("latin-1")) for origin in origins):
            raise _TurnedAway(403, "wrong Origin")
        if scope["path"] == HEALTH:
            if scope["method"] not in ("GET", "HEAD"):
                raise _TurnedAway(405, "only to be read", {"Allow": "GET, HEAD"})
            return
        if not self._is_known(_all(scope, b"authorization")):
            raise _TurnedAway(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
        if any(int(length) > MOST_BYTES for length in _all(scope, b"content-length")):
            raise _TurnedAway(413, _TOO_LONG)

    def _is_known(self, credentials: Sequence[bytes]) -> bool:
        """Compared in a time that says nothing about how much of it was right."""
        scheme, _, token = (credentials[0] if len(credentials) == 1 else b"").partition(b" ")
        return hmac.compare_digest(scheme.lower() + b" " + token, self._expected)


class _Gone(Exception):
    """Who has asked is not there any more, and did not finish."""


class _TurnedAway(Exception):
    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status, self.headers = status, headers or {}


def _again(body: bytes, receive: Receive) -> Receive:
    """As if nobody had read it yet."""
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def once() -> Message:
        return unread.pop() if unread else await receive()

    return once


def _all(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
