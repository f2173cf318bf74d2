"""procrastinate, kept to a tenant's schema.

Its statements name no schema, and go by the path of the session. A session is nothing that can be relied on behind a
transaction pooler, so the schema is put into each statement instead.
"""

from __future__ import annotations

import re
from typing import Any, cast

from procrastinate import PsycopgConnector
from psycopg import sql
from psycopg_pool import AsyncConnectionPool

from inmind.store.postgres.connection import settings_of

_ITS_NAMES = re.compile(r"\bprocrastinate_")


class TenantConnector(PsycopgConnector):
    def __init__(self, url: str, schema: str, *, most: int) -> None:
        """`most`: connections of this worker, beside those of memory itself."""
        super().__init__(  # pyright: ignore[reportUnknownMemberType] -- some of what it takes is told nowhere
            pool_factory=AsyncConnectionPool,
            conninfo=settings_of(url),
            kwargs={"prepare_threshold": None},
            min_size=1,
            max_size=most,
        )
        name = sql.Identifier(schema).as_string(None)
        self._named = f"{name}.procrastinate_".replace("%", "%%").replace("\\", "\\\\")

    def within(self, query: str) -> Any:
        return cast(Any, _ITS_NAMES.sub(self._named, query))

    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        await super().execute_query_async(self.within(query), **arguments)

    async def execute_query_one_async(self, query: str, **arguments: Any) -> dict[str, Any]:
        return await super().execute_query_one_async(self.within(query), **arguments)

    async def execute_query_all_async(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        return await super().execute_query_all_async(self.within(query), **arguments)
