"""The access token for HTTP: set by the operator, or generated once and stored in the home.

The token is never printed, not in a URL, argument, log or error; only its location is.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from inmind.core.frozen import frozen
from inmind.errors import InvalidInput, UnsafeStorage

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
