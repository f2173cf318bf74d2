"""Translation of PostgreSQL's errors.

An error with a code comes from the server, which has then rolled back the transaction. If the connection itself ended,
the outcome is unknown: the server may have committed before its reply was lost.
"""

from __future__ import annotations

import re

import psycopg

from inmind.errors import (
    Damaged,
    InvalidInput,
    ReadOnly,
    StorageFull,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    UnsafeStorage,
)

_CONFLICT_STATES = ("40001", "40P01")
"""Serialization failure and deadlock."""

READ_ONLY_STATE = "25006"

_BUSY_REASONS = {
    "55P03": "another writer held a lock too long",
    "57014": "the statement timed out",
    "53200": "the server is out of memory",
    "53300": "the server has no free connection",
    "53400": "the server reached a configured limit",
    **dict.fromkeys(_CONFLICT_STATES, "concurrent changes of the same rows"),
}
_POOLER_BUSY = ("query_wait_timeout", "no more connections allowed")
_POOLER_WITHOUT_SERVER = ("cannot connect to server", "server_login_retry", "client_login_timeout")
_LOGIN_REFUSED = re.compile(
    r"authentication failed|no password supplied|(role|database|user) \".*\" does not exist|not permitted to log in"
    r"|no pg_hba.conf entry|pg_hba.conf rejects|permission denied for database|no such (user|database)"
    r"|does not support SSL|certificate verify failed|unsupported startup parameter"
)
"""Messages on connecting, for which the driver reports no code."""

MISSING_OBJECT_STATES = ("3F000", "42P01", "42703", "42883", "42704")
"""Tables are missing or have another structure, or the tenant no longer exists."""

_CONNECTION_ENDING_STATES = ("57P01", "57P02", "57P03", "57P04", "57P05")


def is_connection_lost(error: psycopg.Error, connection: psycopg.Connection[object]) -> bool:
    """True if the connection ended, False if the server refused the statement."""
    state = error.sqlstate or ""
    ends = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not state
    return connection.closed or ends or state.startswith("08") or state in _CONNECTION_ENDING_STATES


def is_conflict(cause: BaseException | None) -> bool:
    """True if the transaction was rolled back because of concurrent ones and can be repeated."""
    return isinstance(cause, psycopg.Error) and cause.sqlstate in _CONFLICT_STATES


def is_login_refused(error: psycopg.Error) -> bool:
    """True if the server was reached but refuses this URL, so that retrying is useless."""
    return not error.sqlstate and bool(_LOGIN_REFUSED.search(first_line(error)))


def login_refusal(error: psycopg.Error) -> str:
    """The server's reason, without the driver's prefix."""
    return re.sub(r"^.* failed: (FATAL: *)?", "", first_line(error))


def invalid_url(error: psycopg.Error, *, place: str) -> InvalidInput:
    expected = f"a URL that the server accepts ({login_refusal(error)}); check the URL, ~/.pgpass or $PGPASSWORD"
    return InvalidInput(field="url", value=place, expected=expected)


def pooler_error(error: psycopg.Error, *, place: str, seconds: float) -> StoreError | None:
    """Return the error of a pooler that found no server connection, if it is one.

    It has sent nothing to the server, and closes the connection to itself.
    """
    reason = first_line(error)
    if error.sqlstate not in (None, "08P01", "53300"):
        return None
    if any(words in reason for words in _POOLER_BUSY):
        return StoreBusy(place=place, seconds=seconds, reason=f"the pooler has no free connection: {reason}")
    if any(words in reason for words in _POOLER_WITHOUT_SERVER):
        return StoreUnavailable(place=place, reason=reason)
    return None


def translate_error(error: psycopg.Error, *, place: str, seconds: float, writing: bool) -> StoreError:
    """Return the inmind error for an error of the server."""
    state, reason = error.sqlstate or "", first_line(error)
    if state in _BUSY_REASONS:
        return StoreBusy(place=place, seconds=seconds, reason=f"{_BUSY_REASONS[state]}: {reason}")
    if state in ("53100", "53000"):
        return StorageFull(place=place)
    if state == READ_ONLY_STATE:
        return ReadOnly(place=place, reason="the server is read-only at the moment")
    if state == "42501":
        return UnsafeStorage(place=place, reason=f"permission denied for this role ({reason})")
    if state in MISSING_OBJECT_STATES:
        return Damaged(place=place, reason=f"its tables are missing or were changed ({reason})")
    if state.startswith("XX") or state.startswith("58"):
        return Damaged(place=place, reason=reason)
    if state.startswith("08") or state in _CONNECTION_ENDING_STATES or isinstance(error, psycopg.InterfaceError):
        return StoreUnavailable(place=place, reason=reason)
    if isinstance(error, psycopg.OperationalError) and not state:
        return StoreUnavailable(place=place, reason=reason)
    if writing:
        return StoreError(f"{place} refused the write ({reason}): nothing was stored")
    return Damaged(place=place, reason=reason)


def first_line(error: BaseException) -> str:
    """Return the first line of the message.

    It leaves out the statement and its values, which may be private.
    """
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    lines = (primary or str(error) or type(error).__name__).strip().splitlines()
    return lines[0] if lines else type(error).__name__


class ConnectionLost(StoreUnavailable):
    """The connection ended, or could not be opened in time; nothing was stored."""
