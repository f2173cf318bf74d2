"""Access checks for HTTP, as the first step on every path and method.

    403   the request is not meant for this server: a browser page sends another Origin, or a DNS name that an attacker
          points at this machine is in Host
    401   no token, or a wrong one
    413   the body is too long
    408   the body does not arrive in time
    503   the bodies of all requests together are too long

`/health` only shows that the server runs, so it needs no token and accepts no body. Other origins are never answered,
so there is no CORS. A request with an incomplete body is never executed.

The token is set by the operator, or generated once and stored in the home. It is never printed, not in a URL, argument,
log or error; only its location is.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import secrets
import socket
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inmind.core.frozen import frozen
from inmind.errors import InvalidInput, UnsafeStorage

HEALTH = "/health"
MAX_BODY_BYTES = 4 * 1024 * 1024
"""Maximum size of a request body."""
MAX_TOTAL_BODY_BYTES = 16 * MAX_BODY_BYTES
"""Maximum size of the bodies of all requests that are being read or answered."""
BODY_SECONDS = 30.0
"""Timeout for a complete body."""

_TOO_LONG = f"at most {MAX_BODY_BYTES} bytes"
_CLOSE_HEADERS = {"Connection": "close"}
_PORTS = {"http": 80, "https": 443}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_AUTHORITY = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::(?P<port>[0-9]{1,5}))?")


@frozen(kw_only=True)
class PublicUrl:
    """The URL that clients use, if a TLS proxy is in between."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, url: str) -> PublicUrl:
        scheme, _, authority = url.lower().removesuffix("/").partition("://")
        match = _AUTHORITY.fullmatch(authority)
        if scheme not in _PORTS or match is None:
            raise InvalidInput(
                field="--public-url", value=url, expected="a URL without a path, such as https://memory.example.com"
            )
        return cls(scheme=scheme, host=match["host"], port=int(match["port"] or _PORTS[scheme]))

    def matches(self, authority: str) -> bool:
        match = _AUTHORITY.fullmatch(authority.lower())
        port = int(match["port"] or _PORTS[self.scheme]) if match else None
        return match is not None and match["host"] == self.host and port == self.port


@frozen(kw_only=True)
class ServerAddress:
    """The listening address, and the Host and Origin values that match it."""

    host: str
    port: int
    public: PublicUrl | None = None

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)

    @property
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    def matches_host(self, authority: str) -> bool:
        """True for a name of this server with its port, or the public URL.

        A server on all interfaces accepts every IP address: only a DNS name can be pointed at it by an attacker.
        """
        if self.public is not None and self.public.matches(authority):
            return True
        return self._matches_listener(authority)

    def matches_origin(self, origin: str) -> bool:
        scheme, _, authority = origin.partition("://")
        if self.public is not None and scheme == self.public.scheme and self.public.matches(authority):
            return True
        return scheme == "http" and self._matches_listener(authority)

    def _matches_listener(self, authority: str) -> bool:
        match = _AUTHORITY.fullmatch(authority.lower())
        if match is None or int(match["port"] or _PORTS["http"]) != self.port:
            return False
        host = match["host"].strip("[]")
        return host in self._names or (not self.is_local and _is_address(host))

    @property
    def _names(self) -> frozenset[str]:
        return _LOOPBACK | {self.host.lower(), *(() if self.is_local else (socket.gethostname().lower(),))}


def is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


class AuthMiddleware:
    """Passes only complete, authorized requests to the application."""

    def __init__(self, app: ASGIApp, address: ServerAddress, token: str) -> None:
        self._app, self._address = app, address
        self._expected = f"bearer {token}".encode()
        self._body_bytes = 0
        """Total body size of the requests that are not answered yet."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        body = bytearray()
        try:
            self._check(scope)
            if scope["path"] == HEALTH:
                return await PlainTextResponse("ok\n", headers=_CLOSE_HEADERS)(scope, receive, send)
            await self._read(receive, body)
            return await self._app(scope, _replay_body(bytes(body), receive), send)
        except _Rejected as rejected:
            # Close: the rest of the body is not read.
            return await PlainTextResponse(f"{rejected}\n", rejected.status, {**rejected.headers, **_CLOSE_HEADERS})(
                scope, receive, send
            )
        except _ClientDisconnected:
            return None
        finally:
            self._body_bytes -= len(body)

    async def _read(self, receive: Receive, body: bytearray) -> None:
        """Read the whole body, within the limits of size and time."""
        with anyio.move_on_after(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _ClientDisconnected
                more = message.get("body", b"")
                self._body_bytes += len(more)
                body += more
                if len(body) > MAX_BODY_BYTES:
                    raise _Rejected(413, _TOO_LONG)
                if self._body_bytes > MAX_TOTAL_BODY_BYTES:
                    raise _Rejected(503, "too many large requests: try again", {"Retry-After": "1"})
                if not message.get("more_body", False):
                    return
        raise _Rejected(408, "the body did not arrive in time")

    def _check(self, scope: Scope) -> None:
        hosts, origins = _header_values(scope, b"host"), _header_values(scope, b"origin")
        if len(hosts) != 1 or not self._address.matches_host(hosts[0].decode("latin-1")):
            raise _Rejected(403, "wrong Host")
        if len(origins) > 1 or not all(self._address.matches_origin(origin.decode("latin-1")) for origin in origins):
            raise _Rejected(403, "wrong Origin")
        if scope["path"] == HEALTH:
            if scope["method"] not in ("GET", "HEAD"):
                raise _Rejected(405, "use GET or HEAD", {"Allow": "GET, HEAD"})
            return
        if not self._is_authorized(_header_values(scope, b"authorization")):
            raise _Rejected(401, "missing or wrong token", {"WWW-Authenticate": "Bearer"})
        if any(int(length) > MAX_BODY_BYTES for length in _header_values(scope, b"content-length")):
            raise _Rejected(413, _TOO_LONG)

    def _is_authorized(self, credentials: Sequence[bytes]) -> bool:
        """Compare in constant time."""
        scheme, _, token = (credentials[0] if len(credentials) == 1 else b"").partition(b" ")
        return hmac.compare_digest(scheme.lower() + b" " + token, self._expected)


class _ClientDisconnected(Exception):
    """The client disconnected before the body was complete."""


class _Rejected(Exception):
    def __init__(self, status: int, why: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(why)
        self.status, self.headers = status, headers or {}


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body once more."""
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body() -> Message:
        return unread.pop() if unread else await receive()

    return receive_body


def _header_values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


ENV_VARIABLE = "INMIND_MCP_TOKEN"
FILE_NAME = "mcp-token"

MIN_TOKEN_CHARS = 16
"""Minimum length."""


@frozen(kw_only=True)
class AccessToken:
    value: str
    source: str
    """Environment variable or file that holds it."""

    def __repr__(self) -> str:
        return f"<Token in {self.source}>"


def load_token(home: Path | None, environment: Mapping[str, str]) -> AccessToken:
    """The token of the environment, or of the home, where it is generated if missing."""
    if ENV_VARIABLE in environment:
        return AccessToken(value=_validate(environment[ENV_VARIABLE], f"${ENV_VARIABLE}"), source=f"${ENV_VARIABLE}")
    if home is None:
        raise InvalidInput(field=f"${ENV_VARIABLE}", expected="a token: with a database none is generated")
    path = home / FILE_NAME
    _create(path)
    return AccessToken(value=_validate(_read(path), str(path)), source=str(path))


def _create(path: Path) -> None:
    """Write a new token unless one exists: another server may start at the same time."""
    token, failed = f"{secrets.token_urlsafe(32)}\n".encode(), OSError()
    for create in (_link, _write):  # not every file system supports hard links
        try:
            return create(path, token)
        except FileExistsError:
            return None
        except OSError as error:
            failed = error
    raise UnsafeStorage(place=str(path), reason=f"the token cannot be stored: {failed.strerror}") from failed


def _link(path: Path, token: bytes) -> None:
    """Write atomically, so that no other process reads a part of it."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    _write(draft, token)
    try:
        os.link(draft, path)
    finally:
        os.unlink(draft)


def _write(path: Path, token: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        file.write(token)


def _read(path: Path) -> str:
    """Read the token; refuse a file that another user can read."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise UnsafeStorage(
                    place=str(path), reason="other users can read it: delete it, a new one will be generated"
                )
            return file.read(1_000)
    except OSError as error:
        raise UnsafeStorage(place=str(path), reason=os.strerror(error.errno or 0)) from error


def _validate(token: str, place: str) -> str:
    """A token that is valid in an HTTP header. The error does not contain it."""
    plain = token.strip()
    if len(plain) < MIN_TOKEN_CHARS or not plain.isascii() or not plain.isprintable() or " " in plain:
        expected = f"{MIN_TOKEN_CHARS} or more printable ASCII characters without spaces"
        raise InvalidInput(field=place, value=f"{len(plain)} characters", expected=expected)
    return plain
