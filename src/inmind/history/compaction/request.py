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

MAX_STUB_TOKENS = 800
"""Tokens that a stub for messages takes at most, with all that must survive; less in a small window."""
MIN_STUB_TOKENS = 160
STUB_SHARE_DIVISOR = 24

MAX_ID_TOKENS = 1_000
"""Tokens of ids that a stub for messages names at most, beside all else: without them a model would have to guess."""

MAX_KEEP_RECENT = 2**53
"""Larger numbers do not survive JSON everywhere."""


@frozen(kw_only=True)
class CompactionRequest:
    """What a compaction is to be like, whoever asked for it."""

    reason: str
    target: str = "all"
    strategy: str = "archive"
    archive_to: str | None = None
    summary: str = ""
    """As a model wrote it; without one it is extracted, where the strategy asks for it."""
    stub_tokens: int = MAX_STUB_TOKENS
    """Tokens that a stub for messages may take."""
    id_tokens: int = MAX_ID_TOKENS
    """Tokens of ids that it may name beside that."""
    last_request: RetainedItem | None = None
    """What was asked last."""
    known_ids: Sequence[str] = ()
    """Ids of things that are known, those first that are to be named first."""


def parse_request(*, target: object, strategy: object, archive_to: object, reason: str) -> CompactionRequest:
    """A request of the outside, checked."""
    if target not in TARGETS:
        raise InvalidInput(field="target", value=target, expected=f"one of {', '.join(TARGETS)}")
    if strategy not in STRATEGIES:
        raise InvalidInput(field="strategy", value=strategy, expected=f"one of {', '.join(STRATEGIES)}")
    path = None if archive_to is None else check_archive_path(archive_to)
    return CompactionRequest(reason=reason, target=str(target), strategy=str(strategy), archive_to=path)


def check_archive_path(path: object) -> str:
    """Where somebody wants an archive to be: a page of detail/ or archive/, of this session."""
    with suppress(InvalidPath):
        scope, name = resolve_path(path)
        if scope == "thread" and name != OVERVIEW_PATH and name.endswith(".md"):
            return name
    raise InvalidPath(field="archive_to", value=path, expected=f"{ARCHIVE_PREFIX}<name>.md or detail/<name>.md")


def check_keep_recent(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_KEEP_RECENT:
        raise InvalidInput(field="keep_recent", value=value, expected="a whole number, 0 or more")
    return value


def with_stub_size(request: CompactionRequest, history_tokens: int) -> CompactionRequest:
    """The same with a stub that keeps to a small share of the room that the conversation has."""
    return replace(request, stub_tokens=max(MIN_STUB_TOKENS, min(MAX_STUB_TOKENS, history_tokens // STUB_SHARE_DIVISOR)))
