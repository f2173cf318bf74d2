"""Tenants, as whoever runs a server of them sees them: those who never see each other.

In PostgreSQL a tenant is a role, with a schema of the same name (`postgres/tenants`); on a disk it is a home, in a
folder of homes (`tenancy/homes`). Nothing that a tenant can call names another: what is here takes an operator's
credential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from inmind.core.frozen import frozen
from inmind.errors import InvalidInput, NotFound

MAX_NAME_BYTES = 63
"""Of a name: what PostgreSQL keeps of one. It would cut a longer one, and take two tenants for one."""

_RESERVED = ("public", "none", "information_schema")

MemoryLocation = str | Path
"""What `Memory.open` takes."""


@frozen(kw_only=True)
class Tenant:
    """One of those there are."""

    name: str
    can_log_in: bool
    """Whether its credential lets it in; not while it is being made or moved, or where somebody has shut it out."""
    bytes: int
    """On the disk, all of it."""


@frozen(kw_only=True)
class Inventory:
    """What a tenant has, at one moment: how far each stream goes, and how many keys those have that have any."""

    versions: Mapping[str, int]
    keys_by_stream: Mapping[str, int]

    @property
    def events(self) -> int:
        return sum(self.versions.values())

    @property
    def keys(self) -> int:
        return sum(self.keys_by_stream.values())

    def streams_changed_since(self, before: Inventory) -> set[str]:
        """Streams that have more than they had then: of a journal that only grows, all that is new is in these."""
        return {stream for stream in self.versions if self._counts(stream) != before._counts(stream)}

    def _counts(self, stream: str) -> tuple[int, int]:
        return self.versions.get(stream, -1), self.keys_by_stream.get(stream, 0)


EMPTY_INVENTORY = Inventory(versions={}, keys_by_stream={})


class LockedTenant(Protocol):
    """A tenant to which nobody writes as long as it is held."""

    @property
    def place(self) -> MemoryLocation:
        """What opens its memory for whoever holds it. It may be a secret."""
        ...

    def inventory(self) -> Inventory: ...

    def erase(self) -> None:
        """All of it, for good; but nothing of it before the block ends, and only if that ends well."""
        ...


class Tenants(Protocol):
    """All tenants of one server, or of one folder. Its promises: tests/contract/test_tenants.py."""

    @property
    def place(self) -> str:
        """Where they are, as people may read it."""
        ...

    def list_all(self) -> Sequence[Tenant]:
        """Sorted by name."""
        ...

    def open_as_operator(self, name: str) -> AbstractContextManager[MemoryLocation]:
        """What opens a tenant's memory for an operator, as long as the block lasts. It may be a secret."""
        ...

    def inventory(self, name: str) -> Inventory: ...

    def identity(self, name: str) -> object:
        """What tells a tenant from all others, whichever way has led to it; None where there is none."""
        ...

    def is_within(self, others: Tenants, name: str) -> bool:
        """Whether whoever erases one of the others erases all of these with it."""
        ...

    def create(
        self, name: str, *, continues: Callable[[MemoryLocation], bool] | None = None
    ) -> AbstractContextManager[MemoryLocation]:
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

    def missing_features(self, name: str) -> str:
        """What a tenant there has to do without, and how that is mended; nothing where it has all there is."""
        ...

    def lock(self, name: str) -> AbstractContextManager[LockedTenant]:
        """A tenant, for a short time: it can be read, and who writes to it waits, or is told that the store is busy.

        Whoever is killed or cut off meanwhile lets go of it by that: it is as it was, and in use again.
        """
        ...

    def erase(self, name: str) -> Inventory:
        """All of a tenant, for good; answers with what there was."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def check_tenant_name(name: object) -> str:
    """The same names everywhere, so that a tenant can be moved from any place to any other."""
    fits = isinstance(name, str) and name.isprintable() and name.strip() == name
    if not fits or not 0 < len(str(name).encode()) <= MAX_NAME_BYTES or _is_reserved(str(name)):
        expected = (
            f"a printable name of at most {MAX_NAME_BYTES} bytes, without space around it, "
            f"that is none of PostgreSQL's own (pg_…, {', '.join(_RESERVED)})"
        )
        raise InvalidInput(field="name", value=name, expected=expected)
    return str(name)


def check_password(password: object) -> str:
    if not isinstance(password, str) or not password or not password.isprintable():
        raise InvalidInput(field="password", expected="a printable one")
    return password


def name_exists(name: str) -> InvalidInput:
    return InvalidInput(field="name", value=name, expected="a name that nobody has there yet")


def tenant_not_found(name: str, place: str, names: Iterable[str]) -> NotFound:
    near = get_close_matches(name, names, n=1)
    asked = f"did you mean {near[0]!r}? " if near else ""
    return NotFound(what="tenant", name=name, hint=f"{asked}`inmind tenant list` lists those in {place}")


def _is_reserved(name: str) -> bool:
    return name.casefold() in _RESERVED or name.casefold().startswith("pg_")
