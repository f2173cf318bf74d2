"""A database on a server: whether it lets us in, keeps what it acknowledges, and has the tables that this inmind knows.

Nothing is made or brought up by looking: whoever opens such a memory does that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inmind.apps.doctor import model, search, versions
from inmind.apps.doctor.result import Check, Examination, Finding, Subject, in_order
from inmind.core.paths import CONFIG, shown_url
from inmind.core.settings import settings_in
from inmind.core.text import counted
from inmind.errors import InvalidInput, StoreError

CONNECTION = Check(Subject.PLACE, "connection")
OPENS = Check(Subject.JOURNAL, "database")
DURABLE = Check(Subject.JOURNAL, "durability")
WRITING = Check(Subject.JOURNAL, "writing")
SCHEMA = Check(Subject.JOURNAL, "schema")

INDEXED = Check(Subject.SEARCH, "index")
VECTORS = Check(Subject.SEARCH, "vectors")

SECONDS = 5
"""That somebody waits for a server."""

_AGAIN = "see to the server, or to the URL, and examine it again"
_DURABLE = ("fsync", "full_page_writes", "synchronous_commit")


def examine_server(url: str, *, online: bool) -> Examination:
    findings = [versions.versions(), versions.extras(), *_looked_at(url, online=online)]
    return Examination(home=shown_url(url), findings=in_order(findings))


def _looked_at(url: str, *, online: bool) -> Iterator[Finding]:
    try:
        import psycopg

        from inmind.store.postgres.connection import settings_of
        from inmind.store.postgres.database import LEAST_VERSION, MIGRATIONS
    except ImportError:
        yield CONNECTION.trouble("no database can be asked from here", '`pip install "inmind[postgres]"`')
        return
    let_in: Finding | None = None
    try:
        with psycopg.connect(settings_of(url), autocommit=True, connect_timeout=SECONDS) as connection:
            let_in = _let_in(connection, url, LEAST_VERSION)
            kept = _durability(connection)
            schema = _schema(connection, len(MIGRATIONS))
            yield from (let_in, kept, _writing(connection), schema)
            is_whole = all(one.verdict == "ok" for one in (let_in, kept, schema))
            if is_whole:
                yield from _search(connection, online=online)
        if is_whole:
            yield from _settings(url, online=online)
    except psycopg.Error as error:
        reason = str(error).strip().partition("\n")[0]
        if let_in is None:
            yield CONNECTION.trouble(f"{shown_url(url)}: {reason}", _AGAIN)
        else:
            yield OPENS.trouble(reason, _AGAIN)
    except StoreError as error:
        yield OPENS.trouble(str(getattr(error, "reason", error)), _AGAIN)


def _let_in(connection: Any, url: str, least: int) -> Finding:
    (version, role) = connection.execute("SELECT current_setting('server_version'), current_user").fetchone()
    seen = f"{shown_url(url)} lets {role} in, PostgreSQL {version}"
    if connection.info.server_version < least * 10_000:
        return CONNECTION.trouble(seen, f"upgrade the server to PostgreSQL {least} or later")
    return CONNECTION.ok(seen)


def _durability(connection: Any) -> Finding:
    """What it acknowledges must survive a loss of power."""
    asked = "SELECT name, setting FROM pg_catalog.pg_settings WHERE name = ANY(%s)"
    told = dict(connection.execute(asked, (list(_DURABLE),)).fetchall())
    if off := [name for name in _DURABLE if told.get(name) == "off"]:
        mend = "; ".join(f"ALTER SYSTEM SET {name} = on" for name in off)
        return DURABLE.trouble(f"off: {', '.join(off)}", f"as its administrator, {mend}; SELECT pg_reload_conf()")
    return DURABLE.ok(", ".join(f"{name} {told[name]}" for name in _DURABLE if name in told))


def _writing(connection: Any) -> Finding:
    asked = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')"
    (follows, read_only) = connection.execute(asked).fetchone()
    if follows:
        return WRITING.trouble("it only follows another server, and takes no writes", "name the one that it follows")
    if read_only == "on":
        mend = "as its administrator, RESET that where it was set: ALTER ROLE, ALTER DATABASE or ALTER SYSTEM"
        return WRITING.trouble("default_transaction_read_only is on: it takes no writes", mend)
    return WRITING.ok("it takes writes")


def _schema(connection: Any, known: int) -> Finding:
    (there,) = connection.execute("SELECT to_regclass(quote_ident(current_user) || '.inmind_steps')").fetchone()
    if there is None:
        powers = "SELECT rolsuper OR rolcreaterole, rolname FROM pg_catalog.pg_roles WHERE rolname = current_user"
        (is_operator, role) = connection.execute(powers).fetchone()
        if is_operator:
            seen = f"{role} is an operator, and has no memory of its own"
            return SCHEMA.warning(seen, "examine a tenant by its own URL; `inmind tenant create NAME` makes one")
        return SCHEMA.warning("no memory yet: whoever opens it first makes it", "`inmind --db URL chat`")
    (have,) = connection.execute(f"SELECT coalesce(max(number), 0) FROM {there}").fetchone()  # noqa: S608 -- as the server spells it
    if have > known:
        seen = f"{have}, and this inmind knows {known}: it is read, and not written"
        return SCHEMA.trouble(seen, "`pip install --upgrade inmind`")
    if have < known:
        return SCHEMA.warning(
            f"{have}, to be brought to {known} by whoever opens it next", "`inmind --db URL sessions`"
        )
    return SCHEMA.ok(str(have))


def _search(connection: Any, *, online: bool) -> Iterator[Finding]:
    """What is behind is taken in by whoever asks next, so nothing is wrong with that."""
    (owners,) = connection.execute("SELECT quote_ident(current_user) || '.owners'").fetchone()
    asked = f"SELECT count(*), count(*) FILTER (WHERE news) FROM {owners}"  # noqa: S608 -- as the server spells it
    (all_of_them, behind) = connection.execute(asked).fetchone()
    seen = f"{counted(behind, 'owner')} of {all_of_them:,} with news, which their next search takes in"
    yield INDEXED.ok(seen if behind else "all is taken in")
    (vector,) = connection.execute("SELECT count(*) FROM pg_catalog.pg_extension WHERE extname = 'vector'").fetchone()
    found, told = search.embedder("auto", online=online)
    yield told
    if vector:
        yield VECTORS.ok("found by pgvector" if found else "none are made here; those that others make, pgvector finds")
    else:
        yield VECTORS.ok("none: found by words alone", "as its administrator, CREATE EXTENSION vector")


def _settings(url: str, *, online: bool) -> Iterator[Finding]:
    """Those that its config.toml says; what nobody knows keeps everybody out."""
    from inmind.memory.postgres_backend import open_postgres

    place = open_postgres(url)
    try:
        config = place.read_config()
    finally:
        place.store.close()
    try:
        told = settings_in(config.text)
    except InvalidInput as error:
        yield model.CONFIGURED.trouble(model.refused(error), f"`inmind --db URL edit {CONFIG}`")
        return
    yield model.CONFIGURED.ok("every setting is known" if config.version else "none: all settings are the usual ones")
    yield model.endpoint(told.model, online=online)
