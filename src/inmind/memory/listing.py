"""What there is in a memory: its sessions as they stand in a list, and everybody whom something belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from operator import itemgetter
from pathlib import Path

from inmind.core.frozen import frozen
from inmind.core.paths import folder_of, require_resource
from inmind.core.streams import ANONYMOUS, PRIVATE, SESSION_PREFIX, opened_by
from inmind.errors import InvalidInput
from inmind.session.backend import Backend
from inmind.session.legacy_files import LegacySession
from inmind.store.protocol import Store, StreamInfo


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


RECENT_SESSIONS = 200
"""Sessions among which those that are looked for are nearly always: only if they are not, one looks further."""

MAX_SCANNED_SESSIONS = 5_000
"""Sessions of everybody among which some are looked for, the last used first. A resource's own are all gone through,
and so are everybody's where all of them are wanted."""


def list_sessions(
    backend: Backend, *, cwd: str | None, resource: str | None, limit: int | None = None, children: bool = True
) -> list[SessionInfo]:
    """The most recently used first: those that began in a folder, or belong to a resource, where these are named.

    So many at most, and then among the last FURTHEST where no resource is named; without those that were spawned from
    another, if wanted so.
    """

    def fits(begun: StreamInfo) -> bool:
        opened = opened_by(begun.first)
        here, theirs = cwd is None or opened.cwd == cwd, resource is None or opened.resource == resource
        return here and theirs and (children or not opened.parent)

    entries: list[tuple[str, StreamInfo | LegacySession]] = [
        (one.updated.isoformat(), one) for one in _matching_sessions(backend.store, resource, fits, limit)
    ]
    if resource is None:  # those of the older kind belong to nobody yet
        older = backend.all_legacy_sessions(excluding=_StoredSessionIds(backend.store))
        entries += [(one.changed.isoformat(), one) for one in older if cwd is None or belongs_to_folder(one, cwd)]
    entries.sort(key=itemgetter(0), reverse=True)
    return [_legacy_info(one) if isinstance(one, LegacySession) else _info(backend, one) for _, one in entries[:limit]]


def _matching_sessions(
    store: Store, resource: str | None, fits: Callable[[StreamInfo], bool], most: int | None
) -> Sequence[StreamInfo]:
    owner = None if resource in (None, ANONYMOUS) else resource
    looks = (
        (None,)
        if most is None
        else (max(most, RECENT_SESSIONS), max(most, MAX_SCANNED_SESSIONS) if owner is None else None)
    )
    found: list[StreamInfo] = []
    for look in looks:
        there = store.stream_infos(SESSION_PREFIX, owner=owner, limit=look)
        found = [one for one in there if fits(one)][:most]
        if len(found) == most or look is None or len(there) < look:
            break
    return found


def checked_limit(limit: object) -> int | None:
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InvalidInput(field="limit", value=limit, expected="a whole number of 1 or more")
    return limit


class _StoredSessionIds:
    """The ids of sessions that are in the journal."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __contains__(self, id: object) -> bool:
        return self._store.version(f"{SESSION_PREFIX}{id}") > 0


def list_resources(store: Store) -> Iterator[str]:
    """Everybody in particular: sessions that name nobody are strangers to each other."""
    return (owner for owner in store.owners() if owner not in ("", ANONYMOUS) and not owner.startswith(PRIVATE))


def is_known_resource(store: Store, resource: object) -> bool:
    """Is it one of these? What nobody can be called is not."""
    try:
        return bool(store.stream_names("", owner=require_resource(resource), limit=1))
    except InvalidInput:
        return False


MAX_NAME_CANDIDATES = 1_000
"""Names among which one is looked for that somebody may have meant: so many each time, however many there are."""


def nearest_session(store: Store, id: str) -> str:
    """The id that somebody may have meant who has mistyped it; empty where none resembles it."""
    for begins in _prefixes(id):
        streams = store.stream_names(SESSION_PREFIX + begins, limit=MAX_NAME_CANDIDATES)
        if near := get_close_matches(id, [stream.removeprefix(SESSION_PREFIX) for stream in streams], n=1):
            return near[0]
    return ""


def nearest_resource(store: Store, name: str) -> str:
    """Likewise."""
    for begins in _prefixes(name):
        owners = store.owners(after=begins or f"{PRIVATE}\U0010ffff", limit=MAX_NAME_CANDIDATES)
        there = [owner for owner in owners if owner.startswith(begins) and owner != ANONYMOUS]
        if near := get_close_matches(name, there, n=1):
            return near[0]
    return ""


def _prefixes(name: str) -> Iterable[str]:
    """That it may share with what was meant, the longest first. Nobody is called what cannot be printed."""
    if not name.isprintable():
        return ()
    lengths = (len(name) - 1, len(name) - 2, len(name) - 4, len(name) // 2, 1)
    return dict.fromkeys([*(name[: max(length, 0)] for length in lengths), name[:1].swapcase(), ""])


def belongs_to_folder(legacy: LegacySession, cwd: str) -> bool:
    """By what it says, or by where its file lies: a folder's name cannot tell "-" from "/", and is all there is."""
    return legacy.cwd == cwd if legacy.cwd else legacy.path.parent.name == folder_of(cwd)


def _info(backend: Backend, begun: StreamInfo) -> SessionInfo:
    """The journal says whose it is; what it adds up to is told at a glance."""
    first = begun.first
    id, opened, summary = first.stream.removeprefix(SESSION_PREFIX), opened_by(first), backend.session_summary(begun)
    return SessionInfo(
        id=id,
        title=summary.title,
        model=summary.model,
        resource=opened.resource,
        cwd=opened.cwd,
        messages=summary.messages,
        calls=summary.calls,
        created=summary.created or first.at.isoformat(),
        updated=summary.updated,
        folder=backend.session_folder(id, opened.cwd),
        parent=opened.parent,
    )


def _legacy_info(legacy: LegacySession) -> SessionInfo:
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
