"""Checks of a PostgreSQL database: connection, durability, schema, search and settings.

The checks are read-only: tables are created and migrated only when the memory is opened.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inmind.apps.doctor import DoctorFinding, check_schema, home, ok, trouble, warning
from inmind.core.paths import CONFIG, redact_url
from inmind.core.settings import parse_settings
from inmind.core.text import count_noun
from inmind.errors import InvalidInput, StoreError

CONNECT_TIMEOUT_SECONDS = 5

_RETRY_HINT = "fix the server or the URL, then run the check again"
_DURABILITY_SETTINGS = ("fsync", "full_page_writes", "synchronous_commit")


def check_server(url: str, *, online: bool) -> Iterator[DoctorFinding]:
    try:
        import psycopg

        from inmind.store.postgres.connection import conninfo_for
        from inmind.store.postgres.database import MIGRATIONS, MIN_VERSION
    except ImportError:
        yield trouble("connection", "the PostgreSQL driver is not installed", '`pip install "inmind[postgres]"`')
        return
    connected: DoctorFinding | None = None
    try:
        with psycopg.connect(conninfo_for(url), autocommit=True, connect_timeout=CONNECT_TIMEOUT_SECONDS) as connection:
            connected = _check_version(connection, url, MIN_VERSION)
            durability = _check_durability(connection)
            schema = _check_schema(connection, len(MIGRATIONS))
            yield from (connected, durability, _check_writable(connection), schema)
            is_usable = all(one.verdict == "ok" for one in (connected, durability, schema))
            if is_usable:
                yield from _check_search(connection, online=online)
        if is_usable:
            yield from _check_settings(url, online=online)
    except psycopg.Error as error:
        reason = str(error).strip().partition("\n")[0]
        if connected is None:
            yield trouble("connection", f"{redact_url(url)}: {reason}", _RETRY_HINT)
        else:
            yield trouble("database", reason, _RETRY_HINT)
    except StoreError as error:
        yield trouble("database", str(getattr(error, "reason", error)), _RETRY_HINT)


def _check_version(connection: Any, url: str, min_version: int) -> DoctorFinding:
    (version, role) = connection.execute("SELECT current_setting('server_version'), current_user").fetchone()
    message = f"{redact_url(url)}, connected as {role}, PostgreSQL {version}"
    if connection.info.server_version < min_version * 10_000:
        return trouble("connection", message, f"upgrade the server to PostgreSQL {min_version} or later")
    return ok("connection", message)


def _check_durability(connection: Any) -> DoctorFinding:
    """Check that acknowledged commits survive a power loss."""
    query = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY(%s)"
    values = dict(connection.execute(query, (list(_DURABILITY_SETTINGS),)).fetchall())
    if off := [name for name in _DURABILITY_SETTINGS if values.get(name) == "off"]:
        fix = "; ".join(f"ALTER SYSTEM SET {name} = on" for name in off)
        return trouble("durability", f"off: {', '.join(off)}", f"as its administrator, {fix}; SELECT pg_reload_conf()")
    return ok("durability", ", ".join(f"{name} {values[name]}" for name in _DURABILITY_SETTINGS if name in values))


def _check_writable(connection: Any) -> DoctorFinding:
    query = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')"
    (is_replica, read_only) = connection.execute(query).fetchone()
    if is_replica:
        return trouble("writing", "this server is a read-only replica", "use the URL of the primary server")
    if read_only == "on":
        fix = "as its administrator, RESET it with ALTER ROLE, ALTER DATABASE or ALTER SYSTEM"
        return trouble("writing", "default_transaction_read_only is on", fix)
    return ok("writing", "writable")


def _check_schema(connection: Any, known: int) -> DoctorFinding:
    (table,) = connection.execute("SELECT to_regclass(quote_ident(current_user) || '.inmind_steps')").fetchone()
    if table is None:
        powers = "SELECT rolsuper OR rolcreaterole, rolname FROM pg_catalog.pg_roles WHERE rolname = current_user"
        (is_operator, role) = connection.execute(powers).fetchone()
        if is_operator:
            message = f"{role} is an operator role without a memory"
            return warning("schema", message, "check a tenant by its URL; `inmind tenant create NAME` creates one")
        return warning("schema", "no memory yet: opening it creates one", "`inmind --db URL chat`")
    (current,) = connection.execute(f"SELECT coalesce(max(number), 0) FROM {table}").fetchone()  # noqa: S608 -- quoted by the server
    return check_schema(current, known, "`inmind --db URL sessions`")


def _check_search(connection: Any, *, online: bool) -> Iterator[DoctorFinding]:
    """State of the search index. OK if it is behind: the next search catches up."""
    (owners,) = connection.execute("SELECT quote_ident(current_user) || '.owners'").fetchone()
    query = f"SELECT count(*), count(*) FILTER (WHERE news) FROM {owners}"  # noqa: S608 -- quoted by the server
    (total, stale) = connection.execute(query).fetchone()
    message = f"{count_noun(stale, 'owner')} of {total:,} behind; the next search indexes the rest"
    yield ok("index", message if stale else "up to date")
    (vector,) = connection.execute("SELECT count(*) FROM pg_catalog.pg_extension WHERE extname = 'vector'").fetchone()
    embedder, finding = home.check_embedder("auto", online=online)
    yield finding
    if vector:
        yield ok(
            "vectors",
            "searched with pgvector"
            if embedder
            else "none are created here; those of other processes are searched with pgvector",
        )
    else:
        yield ok("vectors", "none: keyword search only", "as its administrator, CREATE EXTENSION vector")


def _check_settings(url: str, *, online: bool) -> Iterator[DoctorFinding]:
    """Check the stored config.toml.

    An unknown setting is trouble: opening the memory refuses it.
    """
    from inmind.memory.backends import open_postgres

    place = open_postgres(url)
    try:
        config = place.read_config()
    finally:
        place.store.close()
    try:
        parsed = parse_settings(config.text)
    except InvalidInput as error:
        yield trouble(CONFIG, home.describe_setting_error(error), f"`inmind --db URL edit {CONFIG}`")
        return
    yield ok(CONFIG, "all settings are valid" if config.version else "none: using the defaults")
    yield home.check_model(parsed.model, online=online)
