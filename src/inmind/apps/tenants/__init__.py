"""Create, move and erase tenants, in a database or in a folder of homes. For operators.

A tenant is moved so that one of the two places always has all of its data. The source is locked for writers, copied
with a bundle, and verified stream by stream. Then access is granted at the target, and the source is erased. If the
process is killed, the lock is released; calling again continues from any step: an existing copy is recognized by its
first events.
"""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from inmind.apps.tenants.folders import TenantHomes
from inmind.core.encoding import to_json
from inmind.core.events.base import Event
from inmind.core.events.dreams import RecordsReadPosition
from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG, DATABASE, SETTINGS_STREAM, is_database, redact_url
from inmind.core.settings import Settings
from inmind.errors import Conflict, Damaged, InvalidInput, NotFound
from inmind.memory.backends import SEED_BACKUP, FolderBackend
from inmind.memory.bundle.export_bundle import staging_folder, stream_receipts, write_bundle
from inmind.memory.bundle.reader import OnProgress
from inmind.memory.documents import SETTINGS_PATHS
from inmind.memory.memory import Memory
from inmind.session.context import Backend
from inmind.store.protocol import Store
from inmind.store.rows import event_row
from inmind.store.sqlite.store import SqliteStore
from inmind.store.tenants import Inventory, MemoryLocation, Tenants, check_password

BATCH_SIZE = 1_000


def open_tenants(place: str | Path) -> Tenants:
    """Tenants of a folder of homes, or of a database given by an operator's URL."""
    if not is_database(place):
        return TenantHomes(Path(place))
    try:
        from inmind.store.postgres.tenants import TenantRoles
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("psycopg"):
            raise
        expected = 'the postgres extra: pip install "inmind[postgres]"'
        raise InvalidInput(field="url", value=redact_url(str(place)), expected=expected) from error
    return TenantRoles(str(place))


@frozen(kw_only=True)
class TenantCopy:
    """A verified copy."""

    inventory: Inventory
    sha256: str
    """Digest of all streams and keys; equal in both places."""
    left_out: tuple[str, ...] = ()
    """Files that the target cannot store. If there are any, nothing is erased."""
    erased: bool = False
    """True if the source was erased after the copy."""


AddressCallback = Callable[[str, TenantCopy], None]
"""Gets the new address before access is granted there, so that it is known even if the next step fails."""


def create(name: str, tenants: Tenants, *, password: str | None = None, on_address: Callable[[str], None]) -> None:
    """Create an empty tenant. `on_address` gets its address with the password, once."""
    chosen = secrets.token_urlsafe(24) if password is None else check_password(password)
    with tenants.create(name) as place:
        Memory.open(place, settings=Settings(), embedder=None).close()
    on_address(tenants.address(name, chosen))
    tenants.admit(name, chosen)


def move(
    name: str,
    source: Tenants,
    target: Tenants,
    *,
    keep: bool = False,
    password: str | None = None,
    on_address: AddressCallback,
    watch: OnProgress,
) -> TenantCopy:
    """Move a tenant. With `keep`, copy it and leave the source in use.

    If the tenant already has access at the target and no password is given, its password there stays valid.
    """
    if password is not None:
        check_password(password)
    _check_different_places(name, source, target)
    inventory = _find_inventory(name, source, target)
    with source.open_as_operator(name) as place:
        with _open_backend(place) as backend:  # before the lock, which would forbid it
            backend.read_edits("", backend.clock)  # only the journal is copied
        if keep:
            copy = _copy(name, place, inventory, target, watch)
            _grant_access(name, target, password, copy, on_address)
            return copy
    with source.lock(name) as locked:
        copy = _copy(name, locked.place, locked.inventory(), target, watch)
        _grant_access(name, target, password, copy, on_address)
        if not copy.left_out:
            locked.erase()
    return replace(copy, erased=not copy.left_out)


def _check_different_places(name: str, source: Tenants, target: Tenants) -> None:
    """Raise if source and target are the same.

    The "copy" would be complete, and then be erased.
    """
    source_id = source.identity(name)
    if source_id is not None and (source_id == target.identity(name) or target.is_within(source, name)):
        raise InvalidInput(field="to", value=target.place, expected=f"another place than {source.place}")


def _find_inventory(name: str, source: Tenants, target: Tenants) -> Inventory:
    try:
        return source.inventory(name)
    except NotFound as error:
        if not any(one.name == name for one in target.list_all()):
            raise
        hint = f"it exists in {target.place}, so it was moved already"
        raise NotFound(what="tenant", name=name, hint=hint) from error


def _grant_access(
    name: str, target: Tenants, password: str | None, copy: TenantCopy, on_address: AddressCallback
) -> None:
    keeps_password = password is None and any(one.can_log_in for one in target.list_all() if one.name == name)
    chosen = "" if keeps_password else password or secrets.token_urlsafe(24)
    on_address(target.address(name, chosen), copy)
    if chosen:
        target.admit(name, chosen)


def _copy(name: str, place: MemoryLocation, inventory: Inventory, target: Tenants, watch: OnProgress) -> TenantCopy:
    with target.create(name, continues=partial(_is_copy, place)) as target_place:
        left_out = _transfer(place, target_place, watch)
        sha256 = _verify_copy(place, target_place, inventory, settings_diverged=CONFIG in left_out)
    return TenantCopy(inventory=inventory, sha256=sha256, left_out=left_out)


def _transfer(source_place: MemoryLocation, target_place: MemoryLocation, watch: OnProgress) -> tuple[str, ...]:
    """Transfer with a temporary bundle; returns the files that the target cannot store."""
    with (
        staging_folder(Path(tempfile.gettempdir()) / "bundle") as folder,
        _open_backend(source_place) as source,
        Memory.open(target_place, settings=Settings(), embedder=None) as target,
    ):
        exported = write_bundle(
            source,
            folder / "tenant.inmind",
            resource="",
            now=source.clock(),
            overwrite=False,
            watch=lambda done, total: watch(done, 2 * total),
        )
        texts = {path: source.read_config(path).text for path in SETTINGS_PATHS}
        diverged = _copy_settings(source.store, target_place, target, texts)
        imported = target.import_bundle(exported.path, watch=lambda done, total: watch(total + done, 2 * total))
        # config.toml is compared below, and backups of pages from before the first dream are also in the journal.
        lost = [path for path in imported.left_out if path != CONFIG and not Path(path).name.startswith(SEED_BACKUP)]
        present = {target.page(path).text for path in SETTINGS_PATHS}
        missing = tuple(path for path, text in texts.items() if text and text not in present)
        return (*exported.left_out, *lost, *(diverged or missing))


def _copy_settings(
    source: Store, target_place: MemoryLocation, target: Memory, texts: dict[str, str]
) -> tuple[str, ...]:
    """Copy the settings with their history. Returns the paths that diverged in the two places."""
    events = source.read(SETTINGS_STREAM)
    with open_store(target_place) as target_store:
        try:
            with target_store.bulk_import() as adoption:
                for event in events:
                    adoption.add_event(event)
        except Conflict:
            return (CONFIG,)
        is_equal = isinstance(target_place, str) and len(events) == target_store.version(SETTINGS_STREAM)
    for path, text in texts.items():
        page = target.page(path)
        if text != page.text and (not page.version or is_equal):
            with suppress(InvalidInput):  # an invalid text stays an extra file, as in any bundle
                target.edit(page, text)
    return ()


def _verify_copy(
    source_place: MemoryLocation, target_place: MemoryLocation, inventory: Inventory, *, settings_diverged: bool
) -> str:
    """Compare all streams in both places up to the copied version; either may have grown since.

    `settings_diverged`: a difference of the settings is known and accepted. Returns the digest of all streams.
    """
    whole = hashlib.sha256()
    with open_store(source_place) as source, open_store(target_place) as target:
        for stream, version in sorted(inventory.versions.items()):
            digest, copied = (_digest(store, stream, version) for store in (source, target))
            if digest != copied and not (settings_diverged and stream == SETTINGS_STREAM):
                raise Damaged(place=f"the copy of {stream}", reason="it differs from the source")
            source_keys, target_keys = (set(stream_receipts(store, stream)) for store in (source, target))
            if len(source_keys) == inventory.keys_by_stream.get(stream, 0) and source_keys - target_keys:
                reason = f"{len(source_keys - target_keys)} keys are missing"
                raise Damaged(place=f"the copy of {stream}", reason=reason)
            whole.update(f"{digest}\n".encode())
    return whole.hexdigest()


def _digest(store: Store, stream: str, version: int) -> str:
    hashed = hashlib.sha256(stream.encode())
    for after in range(0, version, BATCH_SIZE):
        for event in store.read(stream, after=after, until=min(after + BATCH_SIZE, version)):
            hashed.update(to_json(_comparable_row(event)).encode())
    return hashed.hexdigest()


def _comparable_row(event: Event) -> tuple[object, ...]:
    """The event without the journal position that a dream has read.

    Positions differ between journals.
    """
    if isinstance(event.payload, RecordsReadPosition):
        event = replace(event, payload=replace(event.payload, journal_position=0))
    return event_row(event)


def _is_copy(source_place: MemoryLocation, target_place: MemoryLocation) -> bool:
    """True if the target starts with the events of the source.

    Two tenants never share an event.
    """
    with open_store(source_place) as source, open_store(target_place) as target:
        for stream in source.stream_names(""):
            if stream != SETTINGS_STREAM and (first := source.read(stream, until=1)):
                return [*map(_comparable_row, first)] == [*map(_comparable_row, target.read(stream, until=1))]
    return False


@contextmanager
def open_store(place: MemoryLocation) -> Generator[Store]:
    with _open_backend(place) as backend:
        yield backend.store


@contextmanager
def _open_backend(place: MemoryLocation) -> Generator[Backend]:
    if isinstance(place, Path):
        backend: Backend = FolderBackend(place, SqliteStore(place / DATABASE))
    else:
        from inmind.memory.backends import open_postgres

        backend = open_postgres(place)
    try:
        yield backend
    finally:
        backend.store.close()
