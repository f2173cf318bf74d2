"""Servers that a test may stop, overload and misconfigure."""

from __future__ import annotations

from collections.abc import Generator
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
import pytest
from postgres import Run, Server
from psycopg import sql

SECRET = "its own"
"""The password of all roles."""


class OwnServer:
    """A server of one test, with roles of any name."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def execute(self, *statements: str) -> None:
        """Run a statement as superuser."""
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def query(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.server.url(), autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def tenant(self, name: str, *, tcp: bool = False, options: str = "") -> str:
        """The URL of a role that may create its schema and has none."""
        role = sql.Identifier(name).as_string(None)
        self.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{SECRET}'", f"GRANT CREATE ON DATABASE postgres TO {role}")
        return self.url(name, tcp=tcp, options=options)

    def url(self, name: str, *, password: str = SECRET, tcp: bool = False, options: str = "") -> str:
        parts = urlsplit(self.server.url(password=password, tcp=tcp))
        credentials = f"{quote(name, safe='')}:{quote(password, safe='')}@{parts.netloc.rpartition('@')[2]}"
        query = "&".join(part for part in (parts.query, f"options={quote(options)}" if options else "") if part)
        return urlunsplit(parts._replace(netloc=credentials, query=query))


@pytest.fixture(scope="module")
def own(postgres_run: Run) -> Generator[OwnServer]:
    """A server with few connections, immediate deadlock detection, and a log of all statements."""
    with postgres_run.server(max_connections="24", deadlock_timeout="10ms", log_statement="all") as server:
        server.start()
        yield OwnServer(server)
