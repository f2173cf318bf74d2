"""What PostgreSQL answers, in words that a caller can act on.

An answer with a code is the server's own, and then nothing of the transaction stands. Where the connection itself has
ended, nobody can tell: the server may have committed before the answer got lost.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager

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

RETRY_STATES = ("40001", "40P01")
"""Two transactions stood in each other's way, and this one was chosen to give way."""

READ_ONLY_STATE = "25006"

_BUSY_REASONS = {
    "55P03": "somebody else held it for too long",
    "57014": "the answer took too long",
    "53200": "the server has no memory left",
    "53300": "the server has no connection left",
    "53400": "the server is at a limit of its own",
    **dict.fromkeys(RETRY_STATES, "others were changing the same"),
}
_POOLER_BUSY = ("query_wait_timeout", "no more connections allowed")
_POOLER_WITHOUT_SERVER = ("cannot connect to server", "server_login_retry", "client_login_timeout")
_LOGIN_REFUSED = re.compile(
    r"authentication failed|no password supplied|(role|database|user) \".*\" does not exist|not permitted to log in"
    r"|no pg_hba.conf entry|pg_hba.conf rejects|permission denied for database|no such (user|database)"
    r"|does not support SSL|certificate verify failed|unsupported startup parameter"
)
"""Said while somebody connects, where the driver tells no code."""

MISSING_OBJECT_STATES = ("3F000", "42P01", "42703", "42883", "42704")
"""Tables are not there, or not as they should be; or their tenant is not there any more."""

_CONNECTION_ENDING_STATES = ("57P01", "57P02", "57P03", "57P04", "57P05")


def is_connection_lost(error: psycopg.Error, connection: psycopg.Connection[object]) -> bool:
    """Has the connection ended, rather than the server refused?"""
    state = error.sqlstate or ""
    ends = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not state
    return connection.closed or ends or state.startswith("08") or state in _CONNECTION_ENDING_STATES


def is_login_refused(error: psycopg.Error) -> bool:
    """Was the server reached, and lets nobody in by this URL?

    Then it does not help to call again.
    """
    return not error.sqlstate and bool(_LOGIN_REFUSED.search(first_line(error)))


def login_refusal(error: psycopg.Error) -> str:
    """In the server's own words, without the driver's before them."""
    return re.sub(r"^.* failed: (FATAL: *)?", "", first_line(error))


def invalid_url(error: psycopg.Error, *, place: str) -> InvalidInput:
    expected = f"one that the server lets in ({login_refusal(error)}); see to the URL, to ~/.pgpass or to $PGPASSWORD"
    return InvalidInput(field="url", value=place, expected=expected)


def pooler_error(error: psycopg.Error, *, place: str, seconds: float) -> StoreError | None:
    """What a pooler says that has found no connection to the server for who asks: it has sent nothing on, and ends the
    one to itself."""
    reason = first_line(error)
    if error.sqlstate not in (None, "08P01", "53300"):
        return None
    if any(words in reason for words in _POOLER_BUSY):
        return StoreBusy(place=place, seconds=seconds, reason=f"the pooler has no connection left: {reason}")
    if any(words in reason for words in _POOLER_WITHOUT_SERVER):
        return StoreUnavailable(place=place, reason=reason)
    return None


def translate_error(error: psycopg.Error, *, place: str, seconds: float, writing: bool) -> StoreError:
    """What the server has refused."""
    state, reason = error.sqlstate or "", first_line(error)
    if state in _BUSY_REASONS:
        return StoreBusy(place=place, seconds=seconds, reason=f"{_BUSY_REASONS[state]}: {reason}")
    if state in ("53100", "53000"):
        return StorageFull(place=place)
    if state == READ_ONLY_STATE:
        return ReadOnly(place=place, reason="the server takes no writes just now")
    if state == "42501":
        return UnsafeStorage(place=place, reason=f"this role may not do that ({reason})")
    if state in MISSING_OBJECT_STATES:
        return Damaged(place=place, reason=f"its tables are not as they should be ({reason})")
    if state.startswith("XX") or state.startswith("58"):
        return Damaged(place=place, reason=reason)
    if state.startswith("08") or state in _CONNECTION_ENDING_STATES or isinstance(error, psycopg.InterfaceError):
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


class TransactionRetry(StoreBusy):
    """Others stood in the way of a transaction, and nothing of it stands."""


class ConnectionLost(StoreUnavailable):
    """The connection ended in the middle, or never came about in time; nothing has come of it."""


@contextmanager
def public_errors() -> Generator[None]:
    try:
        yield
    except (TransactionRetry, ConnectionLost) as error:
        raise public_error(error) from error.__cause__


def public_error(error: StoreError) -> StoreError:
    """What is only told apart here is told to nobody else."""
    match error:
        case TransactionRetry():
            return StoreBusy(place=error.place, seconds=error.seconds, reason=error.reason)
        case ConnectionLost():
            return StoreUnavailable(place=error.place, reason=error.reason)
        case _:
            return error
