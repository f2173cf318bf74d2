"""What there is in a memory: its sessions as they stand in a list, and everybody whom something belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from inmind.crystals.crystal import PRIVATE
from inmind.errors import InvalidInput
from inmind.frozen import frozen
from inmind.home import SESSION, folder_of, opened_by, somebody
from inmind.journal import NOBODY, Event
from inmind.stores.base import Store
from inmind.stores.legacy import Legacy
from inmind.stores.place import Place


@frozen(kw_only=True)
class SessionInfo:
    """A session as it stands in a list."""

    id: str
    title: str
    """As somebody has named it, or the first words of what it was asked; empty where nothing was said yet."""
    model: str
    """The model that last answered, where one was named."""
    resource: str
    cwd: str
    messages: int
    """Ever said, those among them that were edited away."""
    calls: int
    created: str
    updated: str
    folder: Path | None
    """Where its live files are; None in a database, which has none."""
    legacy: bool = False
    """Still one of the older single files; opening it brings it in."""
    parent: str = ""
    """The session that it was spawned from."""


def sessions_in(place: Place, *, cwd: str | None, resource: str | None) -> list[SessionInfo]:
    """The most recently used first: those that began in a folder, or belong to a resource, where these are named."""
    store = place.store
    streams = store.streams(SESSION, owner=None if resource in (None, NOBODY) else resource)
    firsts = [first for stream in streams if _fits(first := _first(store, stream), cwd, resource)]
    found = [_info(place, first) for first in firsts]
    if resource is None:  # those of the older kind belong to nobody yet
        known = {stream.removeprefix(SESSION) for stream in streams}
        found += [_legacy_info(one) for one in place.all_older(but=known) if cwd is None or is_of(one, cwd)]
    return sorted(found, key=lambda info: info.updated, reverse=True)


def resources_in(store: Store) -> Iterator[str]:
    """Everybody in particular: sessions that name nobody are strangers to each other."""
    return (owner for owner in store.owners() if owner not in ("", NOBODY) and not owner.startswith(PRIVATE))


def is_known(store: Store, resource: object) -> bool:
    """Is it one of these? What nobody can be called is not."""
    try:
        return bool(store.streams("", owner=somebody(resource)))
    except InvalidInput:
        return False


def is_of(legacy: Legacy, cwd: str) -> bool:
    """By what it says, or by where its file lies: a folder's name cannot tell "-" from "/", and is all there is."""
    return legacy.cwd == cwd if legacy.cwd else legacy.path.parent.name == folder_of(cwd)


def _first(store: Store, stream: str) -> Event:
    (first,) = store.read(stream, until=1)
    return first


def _fits(first: Event, cwd: str | None, resource: str | None) -> bool:
    opened = opened_by(first)
    return (cwd is None or opened.cwd == cwd) and (resource is None or opened.resource == resource)


def _info(place: Place, first: Event) -> SessionInfo:
    """The journal says whose it is; what it adds up to is told at a glance."""
    id, opened, said = first.stream.removeprefix(SESSION), opened_by(first), place.glance(first)
    return SessionInfo(
        id=id,
        title=said.title,
        model=said.model,
        resource=opened.resource,
        cwd=opened.cwd,
        messages=said.messages,
        calls=said.calls,
        created=said.created or first.at.isoformat(),
        updated=said.updated,
        folder=place.folder(id, opened.cwd),
        parent=opened.parent,
    )


def _legacy_info(legacy: Legacy) -> SessionInfo:
    return SessionInfo(
        id=legacy.id,
        title=legacy.title,
        model=legacy.model,
        resource="",
        cwd=legacy.cwd,
        messages=legacy.messages,
        calls=0,
        created=(legacy.began or legacy.changed).isoformat(),
        updated=legacy.changed.isoformat(),
        folder=legacy.path.parent,
        legacy=True,
    )
