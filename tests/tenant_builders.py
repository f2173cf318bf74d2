"""Tenants to try things with: places where they can be, and lives that they have led there."""

from __future__ import annotations

from pathlib import Path

import psycopg
from postgres import Server

from inmind import Memory
from inmind.apps.tenants.move import create
from inmind.store.tenants import Tenants

PASSWORD = "only for tests"

OPERATOR = "operator"
"""One who is no superuser."""

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
"""What a tenant may be called."""

REFUSED_NAMES = (
    *("", " ada", "ada ", "a\0b", "a\nb", "\ud800", "é" * 32),
    *("pg_ada", "PG_ada", "public", "none", "information_schema"),
)


def operators_url(server: Server, *, database: str = "postgres") -> str:
    """Of one who has what the documentation says that it takes, and no more."""
    asked = f"CREATE ROLE {OPERATOR} LOGIN CREATEROLE PASSWORD '{PASSWORD}'"
    tell(server.url(), asked, f"GRANT CREATE ON DATABASE {database} TO {OPERATOR}")
    return server.url(OPERATOR, password=PASSWORD, database=database, tcp=True)


def tell(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def ask(url: str, statement: str, *values: object) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement.encode(), values or None).fetchall()


def made(tenants: Tenants, name: str, *, password: str | None = None) -> str:
    """A new tenant's address."""
    told: list[str] = []
    create(name, tenants, password=password, on_address=told.append)
    [address] = told
    return address


def lived(place: str | Path, *, session: str = "shop", resource: str = "ada") -> None:
    """Talk, a note and a page, with keys."""
    with Memory.open(place, embedder=None) as memory:
        opened = memory.session(session, resource=resource, cwd="/w")
        opened.add([{"role": "user", "content": f"Where is the harbour of {session}?"}], key="asked")
        opened.note("Ada prefers tabs", key="noted")
        opened.write("detail/harbour.md", "# Harbour\n\nIt is in the north. 港口\n")
