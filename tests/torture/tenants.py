"""Moves of tenants by a process that is killed during the move."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from psycopg import Connection, Cursor
from torture.harness import ActorChannel

from inmind.apps.tenants import TenantCopy, move, open_store
from inmind.apps.tenants.folders import TenantHomes
from inmind.errors import InmindError
from inmind.store.postgres.tenants import TenantRoles
from inmind.store.protocol import Store
from inmind.store.rows import event_row
from inmind.store.tenants import Tenants

NAME = "ada"


def move_tenant(
    channel: ActorChannel, *, here: str, there: str, step: int = -1, erase: bool = True, die: bool = False
) -> int:
    """Move a tenant and return the number of database statements; die before statement `step`.

    `die`: die in the last round, while the source is locked.
    """
    counted = _count_statements(step) if "://" in f"{here}{there}" else None

    def tell(address: str, _: TenantCopy) -> None:
        if die:
            os.kill(os.getpid(), signal.SIGKILL)
        channel.report("address", address)

    with ExitStack() as stack:
        source, target = (stack.enter_context(tenants_at(place)) for place in (here, there))
        try:
            move(NAME, source, target, keep=not erase, on_address=tell, watch=lambda _done, _total: None)
        except InmindError as error:
            channel.report("refused", error.code, str(error))
    channel.report("done")
    return counted[0] if counted is not None else 0


def erase_tenant(channel: ActorChannel, *, here: str) -> None:
    with tenants_at(here) as tenants:
        tenants.erase(NAME)
    channel.report("done")


def look(_: ActorChannel, *, place: str) -> dict[str, Any] | None:
    """All content of a tenant in a place; None if it does not exist or cannot be opened."""
    with tenants_at(place) as tenants:
        try:
            with tenants.open_as_operator(NAME) as memory, open_store(memory) as store:
                return _contents(store)
        except InmindError as error:
            print(place, error)
            return None


def _contents(store: Store) -> dict[str, Any]:
    """All events and receipts of each stream."""
    return {
        stream: [
            [event_row(event) for event in store.read(stream)],
            [[one.key.value, one.key.request] for one in store.receipts(stream, limit=10_000)],
        ]
        for stream in store.stream_names("")
    }


def tenants_at(place: str) -> Tenants:
    return TenantRoles(place) if "://" in place else TenantHomes(Path(place))


def _count_statements(step: int) -> list[int]:
    """Count the statements of this process."""
    passed = [0]

    def counted(real: Any) -> Any:
        def stepping(*arguments: Any, **options: Any) -> Any:
            if passed[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)
            passed[0] += 1
            return real(*arguments, **options)

        return stepping

    Connection.execute = counted(Connection.execute)
    Cursor.copy = counted(Cursor.copy)
    return passed
