"""What PostgreSQL answers, in words that a caller can act on.

An answer with a code is the server's own, and then nothing of the transaction stands. Where the connection itself has
ended, nobody can tell: the server may have committed before the answer got lost.
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

AGAIN = ("40001", "40P01")
"""Two transactions stood in each other's way, and this one was chosen to give way."""

READ_ONLY = "25006"

_BUSY = {
    "55P03": "somebody else held it for too long",
    "57014": "the answer took too long",
    "53200": "the server has no memory left",
    "53300": "the server has no connection left",
    "53400": "the server is at a limit of its own",
    **dict.fromkeys(AGAIN, "others were changing the same"),
}
_POOLER_IS_BUSY = ("query_wait_timeout", "no more connections allowed")
_POOLER_IS_ALONE = ("cannot connect to server", "server_login_retry", "client_login_timeout")
_SHUT_OUT = re.compile(
    r"authentication failed|no password supplied|(role|database|user) \".*\" does not exist|not permitted to log in"
    r"|no pg_hba.conf entry|pg_hba.conf rejects|permission denied for database|no such (user|database)"
    r"|does not support SSL|certificate verify failed|unsupported startup parameter"
)
"""Said while somebody connects, where the driver tells no code."""

GONE = ("3F000", "42P01", "42703", "42883", "42704")
"""Tables are not there, or not as they should be; or their tenant is not there any more."""

_ENDS = ("57P01", "57P02", "57P03", "57P04", "57P05")


def is_lost(error: psycopg.Error, connection: psycopg.Connection[object]) -> bool:
    """Has the connection ended, rather than the server refused?"""
    state = error.sqlstate or ""
    ends = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not state
    return connection.closed or ends or state.startswith("08") or state in _ENDS


def is_shut_out(error: psycopg.Error) -> bool:
    """Was the server reached, and lets nobody in by this URL? Then it does not help to call again."""
    return not error.sqlstate and bool(_SHUT_OUT.search(first_line(error)))


def why_shut_out(error: psycopg.Error) -> str:
    """In the server's own words, without the driver's before them."""
    return re.sub(r"^.* failed: (FATAL: *)?", "", first_line(error))


def shut_out(error: psycopg.Error, *, place: str) -> InvalidInput:
    expected = f"one that the server lets in ({why_shut_out(error)}); see to the URL, to ~/.pgpass or to $PGPASSWORD"
    return InvalidInput(field="url", value=place, expected=expected)


def never_sent(error: psycopg.Error, *, place: str, seconds: float) -> StoreError | None:
    """What a pooler says that has found no connection to the server for who asks: it has sent nothing on, and ends the
    one to itself."""
    reason = first_line(error)
    if error.sqlstate not in (None, "08P01", "53300"):
        return None
    if any(words in reason for words in _POOLER_IS_BUSY):
        return StoreBusy(place=place, seconds=seconds, reason=f"the pooler has no connection left: {reason}")
    if any(words in reason for words in _POOLER_IS_ALONE):
        return StoreUnavailable(place=place, reason=reason)
    return None


def translated(error: psycopg.Error, *, place: str, seconds: float, writing: bool) -> StoreError:
    """What the server has refused."""
    state, reason = error.sqlstate or "", first_line(error)
    if state in _BUSY:
        return StoreBusy(place=place, seconds=seconds, reason=f"{_BUSY[state]}: {reason}")
    if state in ("53100", "53000"):
        return StorageFull(place=place)
    if state == READ_ONLY:
        return ReadOnly(place=place, reason="the server takes no writes just now")
    if state == "42501":
        return UnsafeStorage(place=place, reason=f"this role may not do that ({reason})")
    if state in GONE:
        return Damaged(place=place, reason=f"its tables are not as they should be ({reason})")
    if state.startswith("XX") or state.startswith("58"):
        return Damaged(place=place, reason=reason)
    if state.startswith("08") or state in _ENDS or isinstance(error, psycopg.InterfaceError):
        return StoreUnavailable(place=place, reason=reason)
    if isinstance(error, psycopg.OperationalError) and not state:
        return StoreUnavailable(place=place, reason=reason)
    if writing:
        return StoreError(f"{place} did not take this ({reason}): nothing was stored")
    return Damaged(place=place, reason=reason)


def first_line(error: BaseException) -> str:
    """Without the statement and what was put into it, which may be anybody's words."""
    told = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    lines = (told or str(error) or type(error).__name__).strip().splitlines()
    return lines[0] if lines else type(error).__name__
