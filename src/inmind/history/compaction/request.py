"""What a compaction is to be like, whoever asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from inmind.core.events.session import RetainedItem
from inmind.core.frozen import frozen
from inmind.documents.document import ARCHIVE_PREFIX, OVERVIEW_PATH, resolve_path
from inmind.errors import InvalidInput, InvalidPath
from inmind.history.compaction.select import TARGETS

STRATEGIES = ("archive", "summarize")

MOST_STUB = 800
"""Tokens that a stub for messages takes at most, with all that must survive; less in a small window."""
LEAST_STUB = 160
SHARE = 24

MOST_IDS = 1_000
"""Tokens of ids that a stub for messages names at most, beside all else: without them a model would have to guess."""

MOST_RECENT = 2**53
"""Larger numbers do not survive JSON everywhere."""


@frozen(kw_only=True)
class Wanted:
    """What a compaction is to be like, whoever asked for it."""

    reason: str
    target: str = "all"
    strategy: str = "archive"
    archive_to: str | None = None
    summary: str = ""
    """As a model wrote it; without one it is extracted, where the strategy asks for it."""
    stub: int = MOST_STUB
    """Tokens that a stub for messages may take."""
    naming: int = MOST_IDS
    """Tokens of ids that it may name beside that."""
    request: RetainedItem | None = None
    """What was asked last."""
    ids: Sequence[str] = ()
    """Ids of things that are known, those first that are to be named first."""


def requested(*, target: object, strategy: object, archive_to: object, reason: str) -> Wanted:
    """A request of the outside, checked."""
    if target not in TARGETS:
        raise InvalidInput(field="target", value=target, expected=f"one of {', '.join(TARGETS)}")
    if strategy not in STRATEGIES:
        raise InvalidInput(field="strategy", value=strategy, expected=f"one of {', '.join(STRATEGIES)}")
    path = None if archive_to is None else archive_path(archive_to)
    return Wanted(reason=reason, target=str(target), strategy=str(strategy), archive_to=path)


def archive_path(path: object) -> str:
    """Where somebody wants an archive to be: a page of detail/ or archive/, of this session."""
    with suppress(InvalidPath):
        scope, name = resolve_path(path)
        if scope == "thread" and name != OVERVIEW_PATH and name.endswith(".md"):
            return name
    raise InvalidPath(field="archive_to", value=path, expected=f"{ARCHIVE_PREFIX}<name>.md or detail/<name>.md")


def checked_keep(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_RECENT:
        raise InvalidInput(field="keep_recent", value=value, expected="a whole number, 0 or more")
    return value


def sized(wanted: Wanted, room: int) -> Wanted:
    """The same with a stub that keeps to a small share of the room that the conversation has."""
    return replace(wanted, stub=max(LEAST_STUB, min(MOST_STUB, room // SHARE)))
