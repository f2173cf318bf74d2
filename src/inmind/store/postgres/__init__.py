"""The store in PostgreSQL, for any number of processes and machines: `inmind[postgres]`."""

from inmind.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
