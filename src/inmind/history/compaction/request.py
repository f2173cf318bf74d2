"""The parameters of a compaction, from the model, the host or the policy."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from inmind.core.events.session import RetainedItem
from inmind.core.frozen import frozen
from inmind.documents.document import ARCHIVE_PREFIX, OVERVIEW_PATH, resolve_path
from inmind.errors import InvalidInput, InvalidPath
from inmind.history.compaction.select import TARGETS

STRATEGIES = ("archive", "summarize")

MAX_STUB_TOKENS = 800
"""Tokens of a stub for messages without its records; less in a small window."""
MIN_STUB_TOKENS = 120
STUB_SHARE_DIVISOR = 24

MAX_RECORD_TOKENS = 2_000
"""Tokens of records in a stub for messages; less in a small window."""
RECORD_SHARE_DIVISOR = 2

MAX_ID_TOKENS = 1_000
"""Tokens of ids that no record has, so that the model does not guess them; less in a small window."""
ID_SHARE_DIVISOR = 3

MAX_KEEP_RECENT = 2**53
"""Larger numbers are not exact in every JSON parser."""


@frozen(kw_only=True)
class CompactionRequest:
    """Parameters of a compaction."""

    reason: str
    target: str = "all"
    strategy: str = "archive"
    archive_to: str | None = None
    summary: str = ""
    """Summary written by a model; if empty, it is extracted."""
    stub_tokens: int = MAX_STUB_TOKENS
    """Maximum size of a stub for messages, without what follows."""
    record_tokens: int = MAX_RECORD_TOKENS
    """Maximum size of the records in it."""
    detailed_record_tokens: int = MAX_RECORD_TOKENS
    """Size of the records up to which they have more than ids, names and states."""
    id_tokens: int = MAX_ID_TOKENS
    """Maximum size of the ids in it that no record has."""
    last_request: RetainedItem | None = None
    """The user's last request."""

    def with_less(self, tokens: int) -> CompactionRequest:
        """Return the request with shorter stubs: by these tokens, and by a fifth at least."""
        share = min(0.8, 1 - tokens / max(1, self.stub_tokens + self.record_tokens + self.id_tokens))
        return replace(
            self,
            stub_tokens=max(0, int(share * self.stub_tokens)),
            record_tokens=max(0, int(share * self.record_tokens)),
            id_tokens=max(0, int(share * self.id_tokens)),
        )


def parse_request(*, target: object, strategy: object, archive_to: object, reason: str) -> CompactionRequest:
    """Validate the arguments of a model or host."""
    if target not in TARGETS:
        raise InvalidInput(field="target", value=target, expected=f"one of {', '.join(TARGETS)}")
    if strategy not in STRATEGIES:
        raise InvalidInput(field="strategy", value=strategy, expected=f"one of {', '.join(STRATEGIES)}")
    path = None if archive_to is None else check_archive_path(archive_to)
    return CompactionRequest(reason=reason, target=str(target), strategy=str(strategy), archive_to=path)


def check_archive_path(path: object) -> str:
    """Return a valid path for an archive: a page in detail/ or archive/ of this session."""
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
    """Limit the stub to a share of the tokens available for the conversation."""
    return replace(
        request,
        stub_tokens=max(MIN_STUB_TOKENS, min(MAX_STUB_TOKENS, history_tokens // STUB_SHARE_DIVISOR)),
        record_tokens=min(MAX_RECORD_TOKENS, history_tokens // RECORD_SHARE_DIVISOR),
        id_tokens=min(MAX_ID_TOKENS, history_tokens // ID_SHARE_DIVISOR),
    )
