"""A tenant, made anew or moved from one place to another, so that at every moment one of the two has all of it.

A copy is made by a bundle and read back, stream by stream. Then the new place lets the tenant in, and then the old one
is erased: only what was copied, or nothing. Whoever is killed anywhere in between calls again: a copy that is there is
known by what it begins with, and continued.
"""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from inmind.bundle.aside import aside
from inmind.bundle.bundle import Watch
from inmind.editing import SETTINGS as TEXTS
from inmind.errors import Conflict, Damaged, InvalidInput, NotFound
from inmind.frozen import frozen
from inmind.home import CONFIG, DATABASE, SETTINGS
from inmind.journal import Event, HasRead, microseconds, to_json
from inmind.memory import Memory
from inmind.settings import Settings
from inmind.stores.base import Store
from inmind.stores.in_folder import BACKUP
from inmind.stores.rows import as_row
from inmind.stores.sqlite import SqliteStore
from inmind.stores.tenants import Inventory, Tenants, Where

ROUNDS = 5
"""Copies that are made of a tenant that goes on writing, before it is said that it has to rest."""

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
    with tenants.arriving(name) as place:
        Memory.open(place, settings=Settings(), embedder=None).close()
    chosen = secrets.token_urlsafe(24) if password is None else password
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
    _refuse_the_same(name, source, target)
    told = False
    outrun: Conflict | None = None
    for _ in range(ROUNDS):
        copied = _copied(name, source, target, watch)
        if not told:
            _let_in(name, target, password, copied, tell)
            told = True
        if keep or copied.left_out:
            return Moved(copied=copied, erased=False)
        try:
            source.erase(name, only=copied.inventory)
        except Conflict as error:  # it has gone on meanwhile
            outrun = error
        else:
            return Moved(copied=copied, erased=True)
    raise outrun or AssertionError("there is at least one round")


def _refuse_the_same(name: str, source: Tenants, target: Tenants) -> None:
    """A copy of itself would be found whole, and erased."""
    here, there = source.identity(name), target.identity(name)
    if here is not None and (here == there or target.is_within(source, name)):
        raise InvalidInput(field="to", value=target.place, expected=f"another place than {source.place}")


def _let_in(name: str, target: Tenants, password: str | None, copied: Copied, tell: Tell) -> None:
    there = next((one for one in target.all() if one.name == name), None)
    if password is None and there is not None and there.admitted:
        return tell(target.address(name, ""), copied)
    chosen = secrets.token_urlsafe(24) if password is None else password
    tell(target.address(name, chosen), copied)
    return target.admit(name, chosen)


def _copied(name: str, source: Tenants, target: Tenants, watch: Watch) -> Copied:
    try:
        inventory = source.inventory(name)
    except NotFound as error:
        if any(one.name == name for one in target.all()):
            hint = f"there is one in {target.place}, so it has been moved already"
            raise NotFound(what="tenant", name=name, hint=hint) from error
        raise
    with (
        source.entered(name) as here,
        target.arriving(name, continues=lambda there: _is_copy(here, there)) as there,
    ):
        left_out = _carried(here, there, watch)
        with opened(here) as ours, opened(there) as theirs:
            sha256 = _compared(ours, theirs, inventory)
    return Copied(inventory=inventory, sha256=sha256, left_out=left_out)


def _carried(here: Where, there: Where, watch: Watch) -> tuple[str, ...]:
    """By a bundle, which is gone afterwards. Settings come along as they are: it is the same tenant who made them."""
    with (
        aside(Path(tempfile.gettempdir()) / "bundle") as folder,
        Memory.open(here, settings=Settings(), embedder=None) as ours,
        Memory.open(there, settings=Settings(), embedder=None) as theirs,
    ):
        exported = ours.export(folder / "tenant.inmind", watch=lambda done, total: watch(done, 2 * total))
        texts = {path: text for path in TEXTS if (text := ours.page(path).text)}
        for path, text in texts.items():
            page = theirs.page(path)
            if not page.version:
                with suppress(InvalidInput):  # one that cannot be read is put beside, as that of any bundle
                    theirs.edit(page, text)
        imported = theirs.import_(exported.path, watch=lambda done, total: watch(total + done, 2 * total))
        arrived = {theirs.page(path).text for path in TEXTS}
        missing = tuple(path for path, text in texts.items() if text not in arrived)
    return (*exported.left_out, *filter(_is_only_there, imported.left_out), *missing)


def _is_only_there(name: str) -> bool:
    """What a page was before the first dream stands in the journal too."""
    return name != CONFIG and not name.rpartition("/")[2].startswith(BACKUP)


def _compared(ours: Store, theirs: Store, inventory: Inventory) -> str:
    """Read all of it in both places, up to where it was when it was copied. Either may have gone on since."""
    whole = hashlib.sha256()
    keys, lacking = 0, 0
    for stream, version in sorted(inventory.versions.items()):
        here, there = (_digest(store, stream, version) for store in (ours, theirs))
        if stream != SETTINGS and here != there:
            raise Damaged(place=f"the copy of {stream}", reason="it is not what it was made of")
        whole.update(f"{here}\n".encode())
        known, held = set(_keys(ours, stream)), set(_keys(theirs, stream))
        keys += len(known)
        lacking += len(known - held) if stream != SETTINGS else 0
    if lacking and keys == inventory.keys:
        raise Damaged(place="the copy", reason=f"it lacks {lacking} keys")
    return whole.hexdigest()


def _digest(store: Store, stream: str, version: int) -> str:
    hashed = hashlib.sha256(stream.encode())
    for after in range(0, version, AT_A_TIME):
        for event in store.read(stream, after=after, until=min(after + AT_A_TIME, version)):
            hashed.update(to_json(_as_copied(event)).encode())
    return hashed.hexdigest()


def _as_copied(event: Event) -> tuple[object, ...]:
    """But for what every journal says in its own numbers: how far a dream has read."""
    return as_row(replace(event, what=replace(event.what, position=0)) if isinstance(event.what, HasRead) else event)


def _keys(store: Store, stream: str) -> Iterator[tuple[object, ...]]:
    after: str | None = None
    while batch := store.receipts(stream, after=after, most=AT_A_TIME):
        after = batch[-1].key.value
        for one in batch:
            did = one.appended
            yield (one.key.value, one.key.request, did.first, did.last, microseconds(did.at))


def _is_copy(here: Where, there: Where) -> bool:
    """Whether what is there began as what is here. Nothing of two tenants has the same words at the same instant."""
    with opened(here) as ours, opened(there) as theirs:
        for stream in ours.streams(""):
            if stream != SETTINGS and (first := ours.read(stream, until=1)):
                return [*map(_as_copied, first)] == [*map(_as_copied, theirs.read(stream, until=1))]
    return False


@contextmanager
def opened(place: Where) -> Generator[Store]:
    if isinstance(place, Path):
        store: Store = SqliteStore(place / DATABASE)
    else:
        from inmind.stores.in_database import opened_at

        store = opened_at(place).store
    try:
        yield store
    finally:
        store.close()
