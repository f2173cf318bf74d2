"""Builders of tenants, their servers and their content."""

from __future__ import annotations

from pathlib import Path

import psycopg
from postgres import Server

from inmind import Memory
from inmind.apps.tenants import create
from inmind.store.tenants import Tenants

PASSWORD = "only for tests"

OPERATOR = "operator"
"""A role that is not superuser."""

ODD_NAMES = (
    "ada",
    "Ada",
    "o'Brien",
    'a "quoted" one',
    "back\\slash \\' and %s $1 {}",
    "x; DROP ROLE postgres; --",
    "$$ $inmind$ tenant. 'tenant.",
    "../../etc",
    "日本 caf\u00e9",
    "日本 cafe\u0301",
    "n" * 63,
)
"""Valid names of tenants."""

REFUSED_NAMES = (
    *("", " ada", "ada ", "a\0b", "a\nb", "\ud800", "é" * 32),
    *("pg_ada", "PG_ada", "public", "none", "information_schema"),
)


def operator_url(server: Server, *, database: str = "postgres") -> str:
    """The URL of a role with exactly the rights that the documentation requires."""
    create_role = f"CREATE ROLE {OPERATOR} LOGIN CREATEROLE PASSWORD '{PASSWORD}'"
    execute_sql(server.url(), create_role, f"GRANT CREATE ON DATABASE {database} TO {OPERATOR}")
    return server.url(OPERATOR, password=PASSWORD, database=database, tcp=True)


def execute_sql(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def query_sql(url: str, statement: str, *values: object) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement.encode(), values or None).fetchall()


def create_tenant(tenants: Tenants, name: str, *, password: str | None = None) -> str:
    """Create a tenant and return its address."""
    addresses: list[str] = []
    create(name, tenants, password=password, on_address=addresses.append)
    [address] = addresses
    return address


def fill_tenant(place: str | Path, *, session: str = "shop", resource: str = "ada") -> None:
    """Add messages, a note and a page, with keys."""
    with Memory.open(place, embedder=None) as memory:
        chat = memory.session(session, resource=resource, cwd="/w")
        chat.add([{"role": "user", "content": f"Where is the harbour of {session}?"}], key="asked")
        chat.note("Ada prefers tabs", key="noted")
        chat.write("detail/harbour.md", "# Harbour\n\nIt is in the north. 港口\n")
