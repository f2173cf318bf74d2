"""Tenants, as whoever runs a server of them sees them: those who never see each other.

In PostgreSQL a tenant is a role, with a schema of the same name (`postgres/tenants`); on a disk it is a home, in a
folder of homes (`tenancy/homes`). Nothing that a tenant can call names another: what is here takes an operator's
credential.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from inmind.errors import Conflict, InvalidInput, NotFound
from inmind.frozen import frozen

MOST_BYTES = 63
"""Of a name: what PostgreSQL keeps of one. It would cut a longer one, and take two tenants for one."""

_RESERVED = ("public", "none", "information_schema")

Where = str | Path
"""What `Memory.open` takes."""


@frozen(kw_only=True)
class Tenant:
    """One of those there are."""

    name: str
    admitted: bool
    """Whether its credential lets it in; not while it is being made or moved, or where somebody has shut it out."""
    bytes: int
    """On the disk, all of it."""


@frozen(kw_only=True)
class Inventory:
    """What a tenant has, at one moment: each stream with its version, and how many keys."""

    versions: Mapping[str, int]
    keys: int

    @property
    def events(self) -> int:
        return sum(self.versions.values())

    def refuse_other(self, other: Inventory) -> None:
        """Conflict, unless the other is the same."""
        for stream in sorted({*self.versions, *other.versions}):
            expected, actual = self.versions.get(stream, 0), other.versions.get(stream, 0)
            if expected != actual:
                raise Conflict(stream=stream, expected=expected, actual=actual)
        if self.keys != other.keys:
            raise Conflict(stream="keys", expected=self.keys, actual=other.keys)


class Tenants(Protocol):
    """All tenants of one server, or of one folder. Its promises: tests/contract/test_tenants.py."""

    @property
    def place(self) -> str:
        """Where they are, as people may read it."""
        ...

    def all(self) -> Sequence[Tenant]:
        """Sorted by name."""
        ...

    def entered(self, name: str) -> AbstractContextManager[Where]:
        """What opens a tenant's memory for an operator, as long as the block lasts. It may be a secret."""
        ...

    def inventory(self, name: str) -> Inventory: ...

    def identity(self, name: str) -> object:
        """What tells a tenant from all others, whichever way has led to it; None where there is none."""
        ...

    def is_within(self, others: Tenants, name: str) -> bool:
        """Whether whoever erases one of the others erases all of these with it."""
        ...

    def arriving(self, name: str, *, continues: Callable[[Where], bool] | None = None) -> AbstractContextManager[Where]:
        """A place for a new tenant, which is filled inside the block, and lets nobody in before `admit`.

        InvalidInput if the name is taken: unless by what one who was killed has left, an empty place that lets nobody
        in, or by what `continues` says is the same tenant.
        """
        ...

    def address(self, name: str, password: str) -> str:
        """What the tenant opens its memory by. In a database that is a secret: its credential."""
        ...

    def admit(self, name: str, password: str) -> None:
        """From now on that address lets it in."""
        ...

    def erase(self, name: str, *, only: Inventory | None = None) -> Inventory:
        """All of a tenant, for good; answers with what there was. With `only`, exactly that: if it has more by now,
        or something else, that is a Conflict and nothing is erased.
        """
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def checked_tenant(name: object) -> str:
    """The same names everywhere, so that a tenant can be moved from any place to any other."""
    fits = isinstance(name, str) and name.isprintable() and name.strip() == name
    if not fits or not 0 < len(str(name).encode()) <= MOST_BYTES or _is_reserved(str(name)):
        expected = (
            f"a printable name of at most {MOST_BYTES} bytes, without space around it, "
            f"that is none of PostgreSQL's own (pg_…, {', '.join(_RESERVED)})"
        )
        raise InvalidInput(field="name", value=name, expected=expected)
    return str(name)


def checked_password(password: object) -> str:
    if not isinstance(password, str) or not password or not password.isprintable():
        raise InvalidInput(field="password", expected="a printable one")
    return password


def taken(name: str) -> InvalidInput:
    return InvalidInput(field="name", value=name, expected="a name that nobody has there yet")


def unknown(name: str, place: str) -> NotFound:
    return NotFound(what="tenant", name=name, hint=f"`inmind tenant list` lists those in {place}")


def _is_reserved(name: str) -> bool:
    return name.casefold() in _RESERVED or name.casefold().startswith("pg_")
