"""A tenant, made anew or moved from one place to another, so that at every moment one of the two has all of it.

A copy is made by bundles and read back, stream by stream, while the tenant goes on. Then the old place is held, so that
nobody writes to it; what was written meanwhile is copied, the new place lets the tenant in, and the old one is erased.
Whoever is killed while it holds the old place lets go of it by that, and calls again, as from anywhere in between: a
copy that is there is known by what it begins with, and continued.
"""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from inmind.core.encoding import to_json
from inmind.core.events.base import Event
from inmind.core.events.dreams import RecordsReadPosition
from inmind.core.frozen import frozen
from inmind.core.paths import CONFIG, DATABASE
from inmind.core.settings import Settings
from inmind.core.streams import SETTINGS_STREAM, owner_from_first_event
from inmind.core.timestamps import to_microseconds
from inmind.errors import Conflict, Damaged, InvalidInput, NotFound
from inmind.memory.bundle.export_bundle import export
from inmind.memory.bundle.reader import Watch
from inmind.memory.bundle.staging import aside
from inmind.memory.documents import SETTINGS_PATHS as TEXTS
from inmind.memory.folder_backend import SEED_BACKUP, FolderBackend
from inmind.memory.memory import Memory
from inmind.session.backend import Backend
from inmind.store.protocol import Store
from inmind.store.rows import event_row
from inmind.store.sqlite.store import SqliteStore
from inmind.store.tenants import Inventory, LockedTenant, MemoryLocation, Tenants, check_password

AT_A_TIME = 1_000


@frozen(kw_only=True)
class Copied:
    """What stands in a new place, as it was read back there."""

    inventory: Inventory
    sha256: str
    """Of all streams and keys: the same in both places."""
    left_out: tuple[str, ...] = ()
    """What has no place there. As long as there is any, nothing is erased."""


@frozen(kw_only=True)
class Moved:
    """How a move has ended."""

    copied: Copied
    erased: bool
    """Whether the old place has nothing of it any more."""


Tell = Callable[[str, Copied], None]
"""Told a tenant's new address before it lets anybody in, so that nobody is locked out by whatever happens then."""


def create(name: str, tenants: Tenants, *, password: str | None = None, tell: Callable[[str], None]) -> None:
    """A tenant with nothing in it. `tell` is given its address, in which is its password: once, and by no other way."""
    chosen = secrets.token_urlsafe(24) if password is None else check_password(password)
    with tenants.create(name) as place:
        Memory.open(place, settings=Settings(), embedder=None).close()
    tell(tenants.address(name, chosen))
    tenants.admit(name, chosen)


def move(
    name: str,
    source: Tenants,
    target: Tenants,
    *,
    keep: bool = False,
    password: str | None = None,
    tell: Tell,
    watch: Watch,
) -> Moved:
    """`keep`: the old place stays as it is, and goes on being used. Where the target lets the tenant in already and no
    password is given, the one that it has goes on to be right.
    """
    if password is not None:
        check_password(password)
    _refuse_the_same(name, source, target)
    copy = _copied(name, source, target, watch)
    if keep or copy.left_out:
        _let_in(name, target, password, copy.told, tell)
        return Moved(copied=copy.told, erased=False)
    with source.lock(name) as held:
        copy = _brought_up(name, held, target, copy)
        _let_in(name, target, password, copy.told, tell)
        if not copy.left_out:
            held.erase()
    return Moved(copied=copy.told, erased=not copy.left_out)


def _refuse_the_same(name: str, source: Tenants, target: Tenants) -> None:
    """A copy of itself would be found whole, and erased."""
    here, there = source.identity(name), target.identity(name)
    if here is not None and (here == there or target.is_within(source, name)):
        raise InvalidInput(field="to", value=target.place, expected=f"another place than {source.place}")


def _let_in(name: str, target: Tenants, password: str | None, copied: Copied, tell: Tell) -> None:
    there = next((one for one in target.list_all() if one.name == name), None)
    if password is None and there is not None and there.can_log_in:
        return tell(target.address(name, ""), copied)
    chosen = secrets.token_urlsafe(24) if password is None else password
    tell(target.address(name, chosen), copied)
    return target.admit(name, chosen)


@frozen(kw_only=True)
class _Copy:
    inventory: Inventory
    digests: Mapping[str, str]
    """Of each stream with its keys, as it stands in both places."""
    left_out: tuple[str, ...]

    @property
    def told(self) -> Copied:
        whole = hashlib.sha256()
        for stream in sorted(self.inventory.versions):
            whole.update(f"{self.digests[stream]}\n".encode())
        return Copied(inventory=self.inventory, sha256=whole.hexdigest(), left_out=self.left_out)


def _copied(name: str, source: Tenants, target: Tenants, watch: Watch) -> _Copy:
    """All of it, while it goes on."""
    try:
        inventory = source.inventory(name)
    except NotFound as error:
        if any(one.name == name for one in target.list_all()):
            hint = f"there is one in {target.place}, so it has been moved already"
            raise NotFound(what="tenant", name=name, hint=hint) from error
        raise
    with (
        source.open_as_operator(name) as here,
        target.create(name, continues=lambda there: _is_copy(here, there)) as there,
    ):
        left_out = _carried(here, there, watch)
        digests = _compared(here, there, inventory, inventory.versions, parted=CONFIG in left_out)
    return _Copy(inventory=inventory, digests=digests, left_out=left_out)


def _brought_up(name: str, held: LockedTenant, target: Tenants, copy: _Copy) -> _Copy:
    """What was written since it was copied, of everybody who did; nobody does any more."""
    inventory = held.inventory()
    grown = inventory.streams_changed_since(copy.inventory)
    with target.create(name, continues=lambda _: True) as there:  # it was made, or told from others, a moment ago
        left_out = _carried_since(held.place, there, grown)
        compared = _compared(held.place, there, inventory, grown, parted=CONFIG in left_out)
        digests = {**copy.digests, **compared}
    return _Copy(inventory=inventory, digests=digests, left_out=left_out)


def _carried(here: MemoryLocation, there: MemoryLocation, watch: Watch) -> tuple[str, ...]:
    """By a bundle, which is gone afterwards."""
    with (
        aside(Path(tempfile.gettempdir()) / "bundle") as folder,
        Memory.open(here, settings=Settings(), embedder=None) as ours,
        Memory.open(there, settings=Settings(), embedder=None) as theirs,
    ):
        exported = ours.export(folder / "tenant.inmind", watch=lambda done, total: watch(done, 2 * total))
        texts = {path: ours.page(path).text for path in TEXTS}
        parted = _settle(here, there, theirs, texts)
        imported = theirs.import_bundle(exported.path, watch=lambda done, total: watch(total + done, 2 * total))
        return (*exported.left_out, *filter(_is_only_there, imported.left_out), *(parted or _unsettled(theirs, texts)))


def _carried_since(here: MemoryLocation, there: MemoryLocation, grown: Iterable[str]) -> tuple[str, ...]:
    """By a bundle for each owner. No live file is taken in: that would be written to what is held."""
    left_out: list[str] = []
    with (
        aside(Path(tempfile.gettempdir()) / "bundle") as folder,
        _abode(here) as ours,
        Memory.open(there, settings=Settings(), embedder=None) as theirs,
    ):
        for number, owner in enumerate(_owners(ours.store, grown)):
            file = folder / f"{number}.inmind"
            exported = export(ours, file, resource=owner, now=ours.clock(), overwrite=False, watch=_unwatched)
            imported = theirs.import_bundle(exported.path)
            left_out += (*exported.left_out, *filter(_is_only_there, imported.left_out))
            file.unlink()
        texts = {path: ours.read_config(path).text for path in TEXTS}
        parted = _settle(here, there, theirs, texts)
        return (*left_out, *(parted or _unsettled(theirs, texts)))


def _owners(store: Store, streams: Iterable[str]) -> list[str]:
    """Whose these are. Keys of a stream without events are nobody's in particular, and come with everything."""
    found = {
        owner_from_first_event(stream, first[0].payload) if (first := store.read(stream, until=1)) else ""
        for stream in streams
        if stream != SETTINGS_STREAM
    }
    return [""] if "" in found else sorted(found)


def _settle(here: MemoryLocation, there: MemoryLocation, theirs: Memory, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Settings come along as they are, with all that they ever were: it is the same tenant who made them. Answers with
    what cannot, since they have gone on in both places."""
    with opened(here) as ours, opened(there) as new:
        try:
            with new.bulk_import() as adoption:
                for event in ours.read(SETTINGS_STREAM):
                    adoption.add_event(event)
        except Conflict:
            return (CONFIG,)
        is_alike = isinstance(there, str) and ours.version(SETTINGS_STREAM) == new.version(SETTINGS_STREAM)
    for path, text in texts.items():
        page = theirs.page(path)
        if text != page.text and (not page.version or is_alike):
            with suppress(InvalidInput):  # one that cannot be read is put beside, as that of any bundle
                theirs.edit(page, text)
    return ()


def _unsettled(theirs: Memory, texts: Mapping[str, str]) -> tuple[str, ...]:
    arrived = {theirs.page(path).text for path in TEXTS}
    return tuple(path for path, text in texts.items() if text and text not in arrived)


def _is_only_there(name: str) -> bool:
    """What a page was before the first dream stands in the journal too."""
    return name != CONFIG and not name.rpartition("/")[2].startswith(SEED_BACKUP)


def _compared(
    here: MemoryLocation, there: MemoryLocation, inventory: Inventory, streams: Iterable[str], *, parted: bool
) -> dict[str, str]:
    """Read streams in both places, up to where they were when they were copied. Either may have gone on since.
    `parted`: it is known that settings have, and not alike."""
    digests: dict[str, str] = {}
    with opened(here) as ours, opened(there) as theirs:
        for stream in streams:
            digests[stream], copied = (_digest(store, stream, inventory.versions[stream]) for store in (ours, theirs))
            if digests[stream] != copied and not (parted and stream == SETTINGS_STREAM):
                raise Damaged(place=f"the copy of {stream}", reason="it is not what it was made of")
            known, held = set(_keys(ours, stream)), set(_keys(theirs, stream))
            if len(known) == inventory.keys_by_stream.get(stream, 0) and known - held:
                raise Damaged(place=f"the copy of {stream}", reason=f"it lacks {len(known - held)} keys")
    return digests


def _digest(store: Store, stream: str, version: int) -> str:
    hashed = hashlib.sha256(stream.encode())
    for after in range(0, version, AT_A_TIME):
        for event in store.read(stream, after=after, until=min(after + AT_A_TIME, version)):
            hashed.update(to_json(_as_copied(event)).encode())
    return hashed.hexdigest()


def _as_copied(event: Event) -> tuple[object, ...]:
    """But for what every journal says in its own numbers: how far a dream has read."""
    return event_row(
        replace(event, payload=replace(event.payload, journal_position=0))
        if isinstance(event.payload, RecordsReadPosition)
        else event
    )


def _keys(store: Store, stream: str) -> Iterator[tuple[object, ...]]:
    after: str | None = None
    while batch := store.receipts(stream, after=after, limit=AT_A_TIME):
        after = batch[-1].key.value
        for one in batch:
            did = one.appended
            yield (one.key.value, one.key.request, did.first, did.last, to_microseconds(did.at))


def _is_copy(here: MemoryLocation, there: MemoryLocation) -> bool:
    """Whether what is there began as what is here. Nothing of two tenants has the same words at the same instant."""
    with opened(here) as ours, opened(there) as theirs:
        for stream in ours.stream_names(""):
            if stream != SETTINGS_STREAM and (first := ours.read(stream, until=1)):
                return [*map(_as_copied, first)] == [*map(_as_copied, theirs.read(stream, until=1))]
    return False


@contextmanager
def opened(place: MemoryLocation) -> Generator[Store]:
    with _abode(place) as abode:
        yield abode.store


@contextmanager
def _abode(place: MemoryLocation) -> Generator[Backend]:
    if isinstance(place, Path):
        abode: Backend = FolderBackend(place, SqliteStore(place / DATABASE))
    else:
        from inmind.memory.postgres_backend import open_postgres

        abode = open_postgres(place)
    try:
        yield abode
    finally:
        abode.store.close()


def _unwatched(_done: int, _total: int) -> None:
    pass
