"""Memory in PostgreSQL, for any number of processes and machines: `inmind[postgres]`."""

from inmind.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
