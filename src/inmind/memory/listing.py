"""Lists of sessions and resources, and the nearest name for "did you mean"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from operator import itemgetter
from pathlib import Path

from inmind.core.frozen import frozen
from inmind.core.paths import ANONYMOUS, PRIVATE, SESSION_PREFIX, cwd_folder_name, opened_by, require_resource
from inmind.core.text import count_noun
from inmind.errors import InvalidInput
from inmind.session.context import Backend
from inmind.session.legacy_files import LegacySession
from inmind.store.protocol import Store, StreamInfo


@frozen(kw_only=True)
class SessionInfo:
    """A session in a list."""

    id: str
    title: str
    """Its name, or the beginning of its first user message; empty if there is none."""
    model: str
    """The model of the last reply, if known."""
    resource: str = ""
    cwd: str
    messages: int
    """Number of messages added so far, including removed ones."""
    calls: int = 0
    created: str
    updated: str
    folder: Path | None
    """The folder of its live files; None in a database."""
    legacy: bool = False
    """A single-file session of an older version. Opening it imports it."""
    parent: str = ""
    """The id of the parent session; empty for a session that was not spawned."""

    def __str__(self) -> str:
        title = f" {self.title!r}" if self.title else ""
        size = f"{count_noun(self.messages, 'message')}, {count_noun(self.calls, 'call')}"
        return f"{self.id}{title} of {self.resource}: {size}, updated {self.updated[:16]}"


RECENT_SESSIONS = 200
"""The number of sessions that are searched first. Nearly always the wanted ones are among them."""

MAX_SCANNED_SESSIONS = 5_000
"""The most recently used sessions that a search with a limit reads.

The sessions of one resource are all read, and so are all sessions if there is no limit."""


def list_sessions(
    backend: Backend, *, cwd: str | None, resource: str | None, limit: int | None = None, children: bool = True
) -> list[SessionInfo]:
    """The sessions of a folder, of a resource, or all, the most recently used first.

    With a limit and without a resource, only the last MAX_SCANNED_SESSIONS are searched. `children`: with child
    sessions.
    """

    def matches(session: StreamInfo) -> bool:
        opened = opened_by(session.first)
        in_folder, of_resource = cwd is None or opened.cwd == cwd, resource is None or opened.resource == resource
        return in_folder and of_resource and (children or not opened.parent)

    entries: list[tuple[str, StreamInfo | LegacySession]] = [
        (one.updated.isoformat(), one) for one in _matching_sessions(backend.store, resource, matches, limit)
    ]
    if resource is None:  # single-file sessions have no resource
        legacy = backend.legacy_sessions(lambda id: backend.store.version(SESSION_PREFIX + id) == 0)
        entries += [(one.changed.isoformat(), one) for one in legacy if cwd is None or belongs_to_folder(one, cwd)]
    entries.sort(key=itemgetter(0), reverse=True)
    return [_legacy_info(one) if isinstance(one, LegacySession) else _info(backend, one) for _, one in entries[:limit]]


def _matching_sessions(
    store: Store, resource: str | None, matches: Callable[[StreamInfo], bool], limit: int | None
) -> Sequence[StreamInfo]:
    owner = None if resource in (None, ANONYMOUS) else resource
    scans: tuple[int | None, ...] = (None,)
    if limit is not None:
        scans = (max(limit, RECENT_SESSIONS), max(limit, MAX_SCANNED_SESSIONS) if owner is None else None)
    matching: list[StreamInfo] = []
    for scan in scans:
        sessions = store.stream_infos(SESSION_PREFIX, owner=owner, limit=scan)
        matching = [session for session in sessions if matches(session)][:limit]
        if len(matching) == limit or scan is None or len(sessions) < scan:
            break
    return matching


def checked_limit(limit: object) -> int | None:
    if limit is not None and (type(limit) is not int or limit < 1):
        raise InvalidInput(field="limit", value=limit, expected="a whole number of 1 or more")
    return limit


def list_resources(store: Store) -> Iterator[str]:
    """The names of all resources. Sessions without a resource have none in common."""
    return (owner for owner in store.owners() if owner not in ("", ANONYMOUS) and not owner.startswith(PRIVATE))


def is_known_resource(store: Store, resource: object) -> bool:
    """True if a resource has a session, a note or a document. False for an invalid name."""
    try:
        return bool(store.stream_names("", owner=require_resource(resource), limit=1))
    except InvalidInput:
        return False


MAX_NAME_CANDIDATES = 1_000
"""Names that are compared per prefix, however many there are."""


def nearest_session(store: Store, id: str) -> str:
    """The id most similar to a mistyped one; empty if none is similar."""

    def candidates(prefix: str) -> list[str]:
        streams = store.stream_names(SESSION_PREFIX + prefix, limit=MAX_NAME_CANDIDATES)
        return [stream.removeprefix(SESSION_PREFIX) for stream in streams]

    return _nearest(id, candidates)


def nearest_resource(store: Store, name: str) -> str:
    """The name most similar to a mistyped one; empty if none is similar."""

    def candidates(prefix: str) -> list[str]:
        owners = store.owners(after=prefix or f"{PRIVATE}\U0010ffff", limit=MAX_NAME_CANDIDATES)
        return [owner for owner in owners if owner.startswith(prefix) and owner != ANONYMOUS]

    return _nearest(name, candidates)


def _nearest(name: str, candidates: Callable[[str], list[str]]) -> str:
    """Compare a name with those that share a prefix, the longest prefix first."""
    lengths = (len(name) - 1, len(name) - 2, len(name) - 4, len(name) // 2, 1)
    prefixes = dict.fromkeys([*(name[: max(length, 0)] for length in lengths), name[:1].swapcase(), ""])
    matches = (get_close_matches(name, candidates(prefix), n=1) for prefix in prefixes if name.isprintable())
    return next((near[0] for near in matches if near), "")


def belongs_to_folder(legacy: LegacySession, cwd: str) -> bool:
    """True if the session was started in this folder.

    If its file does not say so, the folder of the file decides. Its name does not distinguish "-" from "/".
    """
    return legacy.cwd == cwd if legacy.cwd else legacy.path.parent.name == cwd_folder_name(cwd)


def _info(backend: Backend, info: StreamInfo) -> SessionInfo:
    first = info.first
    id, opened, summary = first.stream.removeprefix(SESSION_PREFIX), opened_by(first), backend.session_summary(info)
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
        cwd=legacy.cwd,
        messages=legacy.messages,
        created=(legacy.created or legacy.changed).isoformat(),
        updated=legacy.changed.isoformat(),
        folder=legacy.path.parent,
        legacy=True,
    )
