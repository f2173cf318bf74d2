"""Tenants from the operator's side: owners of memory that are isolated from each other.

In PostgreSQL a tenant is a role with a schema of the same name (`postgres/tenants`); on disk it is a home in a folder
of homes (`apps/tenants/folders`). A tenant cannot name another one: everything here requires an operator's credential.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from difflib import get_close_matches
from pathlib import Path

from inmind.core.fork import Closing
from inmind.core.frozen import frozen
from inmind.errors import InvalidInput, NotFound

MAX_NAME_BYTES = 63
"""PostgreSQL's limit for identifiers. It truncates longer names, which would merge two tenants."""

_RESERVED = ("public", "none", "information_schema")

MemoryLocation = str | Path
"""The argument of `Memory.open`."""


@frozen(kw_only=True)
class Tenant:
    """One tenant of a list."""

    name: str
    can_log_in: bool
    """False while it is being created or moved, or if the operator disabled it."""
    bytes: int
    """Total size on disk."""


@frozen(kw_only=True)
class Inventory:
    """Versions of a tenant's streams and the number of keys in each, read at one moment."""

    versions: Mapping[str, int]
    keys_by_stream: Mapping[str, int]

    @property
    def events(self) -> int:
        return sum(self.versions.values())

    @property
    def keys(self) -> int:
        return sum(self.keys_by_stream.values())


EMPTY_INVENTORY = Inventory(versions={}, keys_by_stream={})


@frozen
class LockedTenant:
    """A tenant that is locked against writes."""

    place: MemoryLocation
    """The location to open its memory with. It may contain a secret."""
    inventory: Callable[[], Inventory]
    erase: Callable[[], None]
    """Erases the tenant permanently when the block ends without an error."""


class Tenants(Closing):
    """All tenants of one server or one folder. Its guarantees: tests/contract/test_tenants.py."""

    place: str
    """Their location for messages, without secrets."""

    @abstractmethod
    def list_all(self) -> Sequence[Tenant]:
        """All tenants, sorted by name."""

    @abstractmethod
    def open_as_operator(self, name: str) -> AbstractContextManager[MemoryLocation]:
        """Yield a location that opens a tenant's memory inside the block. It may contain a secret."""

    @abstractmethod
    def inventory(self, name: str) -> Inventory: ...

    @abstractmethod
    def identity(self, name: str) -> object:
        """A value that identifies a tenant, the same for every URL; None if it does not exist."""

    def is_within(self, others: Tenants, name: str) -> bool:  # noqa: ARG002 -- schemas are not nested
        """True if erasing this tenant of the others would erase all of these tenants too."""
        return False

    @abstractmethod
    def create(
        self, name: str, *, continues: Callable[[MemoryLocation], bool] | None = None
    ) -> AbstractContextManager[MemoryLocation]:
        """Create a tenant and yield its location to fill it. It cannot log in before `admit`.

        Raises InvalidInput if the name exists, unless it is an empty tenant that cannot log in, left by a killed
        process, or `continues` returns True for it: it is the same tenant.
        """

    @abstractmethod
    def address(self, name: str, password: str) -> str:
        """The location to give to the tenant. For a database it contains the password."""

    def admit(self, name: str, password: str) -> None:
        """Allow the tenant to log in with this password.

        No-op for a folder: its permissions decide.
        """

    def missing_features(self, name: str) -> str:  # noqa: ARG002 -- a folder has all features
        """Describe features that are missing there and how to add them; empty if there are none."""
        return ""

    @abstractmethod
    def lock(self, name: str) -> AbstractContextManager[LockedTenant]:
        """Hold a tenant read-only for the block; its writers wait or get StoreBusy.

        Keep it short. The lock is released if the process dies or loses the connection.
        """

    @abstractmethod
    def erase(self, name: str) -> Inventory:
        """Erase a tenant permanently; returns its last inventory."""


def check_tenant_name(name: object) -> str:
    """Validate a tenant name.

    The rules are the same for all stores, so that tenants can be moved.
    """
    fits = isinstance(name, str) and name.isprintable() and name.strip() == name
    if not fits or not 0 < len(str(name).encode()) <= MAX_NAME_BYTES or _is_reserved(str(name)):
        expected = (
            f"a printable name of at most {MAX_NAME_BYTES} bytes, without leading or trailing space, "
            f"that PostgreSQL does not reserve (pg_…, {', '.join(_RESERVED)})"
        )
        raise InvalidInput(field="name", value=name, expected=expected)
    return str(name)


def check_password(password: object) -> str:
    if not isinstance(password, str) or not password or not password.isprintable():
        raise InvalidInput(field="password", expected="a printable password")
    return password


def name_exists(name: str) -> InvalidInput:
    return InvalidInput(field="name", value=name, expected="a tenant name that does not exist yet")


def tenant_not_found(name: str, place: str, names: Iterable[str]) -> NotFound:
    near = get_close_matches(name, names, n=1)
    suggestion = f"did you mean {near[0]!r}? " if near else ""
    return NotFound(what="tenant", name=name, hint=f"{suggestion}`inmind tenant list` lists those in {place}")


def _is_reserved(name: str) -> bool:
    return name.casefold() in _RESERVED or name.casefold().startswith("pg_")
