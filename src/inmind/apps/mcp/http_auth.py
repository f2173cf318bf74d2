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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from inmind.core.frozen import frozen
from inmind.errors import InvalidInput, UnsafeStorage
from inmind.store.file_operations import link_new, open_regular_file, opened, translated_os_errors, write_new

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
_ORIGIN = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{1,5}))?")


class WebOrigin(NamedTuple):
    scheme: str
    host: str
    port: int


def parse_origin(url: str) -> WebOrigin | None:
    """The parts of a URL without a path; None if it is anything else."""
    match = _ORIGIN.fullmatch(url.lower())
    return match and WebOrigin(match[1], match[2], int(match[3] or _PORTS[match[1]]))


def parse_public_url(url: str) -> WebOrigin:
    if (origin := parse_origin(url.removesuffix("/"))) is None:
        expected = "a URL without a path, such as https://memory.example.com"
        raise InvalidInput(field="--public-url", value=url, expected=expected)
    return origin


@frozen(kw_only=True)
class ServerAddress:
    """The listening address, and the Host and Origin values that match it."""

    host: str
    port: int
    public: WebOrigin | None = None
    """The URL that clients use, if a TLS proxy is in between."""

    @property
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"

    def matches_host(self, authority: str) -> bool:
        """True for a name of this server with its port, or the public URL."""
        return any(self.matches_origin(f"{scheme}://{authority}") for scheme in _PORTS)

    def matches_origin(self, url: str) -> bool:
        """The same for a URL.

        A server on all interfaces accepts every IP address: only a DNS name can be pointed at it by an attacker.
        """
        origin = parse_origin(url)
        if origin is None or origin == self.public:
            return origin is not None
        name = origin.host.strip("[]")
        if (origin.scheme, origin.port) != ("http", self.port):
            return False
        if name in _LOOPBACK or name == self.host.lower():
            return True
        return not is_loopback(self.host) and (name == socket.gethostname().lower() or _is_address(name))


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
            await self._read(Request(scope, receive), body)
            return await self._app(scope, _replay_body(bytes(body), receive), send)
        except HTTPException as rejected:
            headers = {**(rejected.headers or {}), **_CLOSE_HEADERS}  # close: the rest of the body is not read
            return await PlainTextResponse(f"{rejected.detail}\n", rejected.status_code, headers)(scope, receive, send)
        except ClientDisconnect:
            return None
        finally:
            self._body_bytes -= len(body)

    async def _read(self, request: Request, body: bytearray) -> None:
        """Read the whole body, within the limits of size and time."""
        with anyio.move_on_after(BODY_SECONDS):
            async for chunk in request.stream():
                self._body_bytes += len(chunk)
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise HTTPException(413, _TOO_LONG)
                if self._body_bytes > MAX_TOTAL_BODY_BYTES:
                    raise HTTPException(503, "too many large requests: try again", {"Retry-After": "1"})
            return
        raise HTTPException(408, "the body did not arrive in time")

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._address.matches_host(hosts[0]):
            raise HTTPException(403, "wrong Host")
        if len(origins) > 1 or not all(map(self._address.matches_origin, origins)):
            raise HTTPException(403, "wrong Origin")
        if scope["path"] == HEALTH:
            if scope["method"] not in ("GET", "HEAD"):
                raise HTTPException(405, "use GET or HEAD", {"Allow": "GET, HEAD"})
            return
        if not self._is_authorized(headers.getlist("authorization")):
            raise HTTPException(401, "missing or wrong token", {"WWW-Authenticate": "Bearer"})
        if any(int(length) > MAX_BODY_BYTES for length in headers.getlist("content-length")):
            raise HTTPException(413, _TOO_LONG)

    def _is_authorized(self, credentials: Sequence[str]) -> bool:
        """Compare in constant time."""
        scheme, _, token = (credentials[0] if len(credentials) == 1 else "").partition(" ")
        return hmac.compare_digest(f"{scheme.lower()} {token}".encode(), self._expected)


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body once more."""
    unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_body() -> Message:
        return unread.pop() if unread else await receive()

    return receive_body


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
    """Write a new token unless one exists: another server may start at the same time.

    Its content is complete when the file gets its name, so no other process reads a part of it.
    """
    if os.path.lexists(path):
        return
    draft = f"{path.name}.{secrets.token_hex(8)}"
    with translated_os_errors(path), opened(path.parent, os.O_RDONLY | os.O_DIRECTORY) as folder:
        write_new(folder, draft, f"{secrets.token_urlsafe(32)}\n".encode())
        if not link_new(folder, draft, path.name):
            os.unlink(draft, dir_fd=folder)


def _read(path: Path) -> str:
    """Read the token; refuse a file that another user can read."""
    with translated_os_errors(path), open_regular_file(path) as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            reason = "other users can read it: delete it, a new one will be generated"
            raise UnsafeStorage(place=str(path), reason=reason)
        return file.read(1_000).decode(errors="replace")


def _validate(token: str, place: str) -> str:
    """A token that is valid in an HTTP header. The error does not contain it."""
    plain = token.strip()
    if len(plain) < MIN_TOKEN_CHARS or not plain.isascii() or not plain.isprintable() or " " in plain:
        expected = f"{MIN_TOKEN_CHARS} or more printable ASCII characters without spaces"
        raise InvalidInput(field=place, value=f"{len(plain)} characters", expected=expected)
    return plain
