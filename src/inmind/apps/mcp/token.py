"""The token that a client has to bring over HTTP: the operator's own, or one that is made once and kept in the home.

It is never told: not in a URL, an argument, a log or an error. People are told where it is.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from inmind.core.frozen import frozen
from inmind.errors import InvalidInput, UnsafeStorage

VARIABLE = "INMIND_MCP_TOKEN"
FILE = "mcp-token"

LEAST = 16
"""Characters of a token that somebody chose."""


@frozen(kw_only=True)
class Token:
    value: str
    kept_in: str
    """Where a person finds it."""

    def __repr__(self) -> str:
        return f"<Token in {self.kept_in}>"


def token_of(home: Path | None, environment: Mapping[str, str]) -> Token:
    """The operator's, or else the home's, which is made if there is none. A database has no place for one."""
    if VARIABLE in environment:
        return Token(value=_checked(environment[VARIABLE], f"${VARIABLE}"), kept_in=f"${VARIABLE}")
    if home is None:
        raise InvalidInput(field=f"${VARIABLE}", expected="a token of yours: a database keeps none")
    path = home / FILE
    _make(path)
    return Token(value=_checked(_read(path), str(path)), kept_in=str(path))


def _make(path: Path) -> None:
    """Unless somebody has: another server may start at this moment."""
    token, failed = f"{secrets.token_urlsafe(32)}\n".encode(), OSError()
    for put in (_link, _write):  # not every file system has links
        try:
            return put(path, token)
        except FileExistsError:
            return None
        except OSError as error:
            failed = error
    raise UnsafeStorage(place=str(path), reason=f"no token can be kept there: {failed.strerror}") from failed


def _link(path: Path, token: bytes) -> None:
    """Whole or not at all: nobody must read half of it."""
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
    """Only from a file of our own that nobody else can read: otherwise it is no secret any more."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
                raise UnsafeStorage(place=str(path), reason="others can read it: delete it, and a new one is made")
            return file.read(1_000)
    except OSError as error:
        raise UnsafeStorage(place=str(path), reason=os.strerror(error.errno or 0)) from error


def _checked(token: str, place: str) -> str:
    """One that stands in a header as it is; what is wrong with it is said without it."""
    plain = token.strip()
    if len(plain) < LEAST or not plain.isascii() or not plain.isprintable() or " " in plain:
        expected = f"{LEAST} or more plain characters without space"
        raise InvalidInput(field=place, value=f"{len(plain)} characters", expected=expected)
    return plain
