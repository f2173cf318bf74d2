"""Values of a chat: a turn, an exchange, and a listener that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Protocol

from inmind.apps.chat.file_tools import ToolOutput
from inmind.apps.chat.providers import StreamPiece
from inmind.core.frozen import frozen
from inmind.core.messages.replies import ReplyUsage
from inmind.core.pricing import Usage
from inmind.prompt.report import Report


class ChatListener(Protocol):
    """Shows an answer while it is streamed."""

    def show_waiting(self) -> None: ...
    def show_piece(self, piece: StreamPiece) -> None: ...
    def end_answer(self) -> None: ...
    def show_tool_use(self, use: ChatToolUse) -> None: ...


@frozen
class ChatToolUse:
    """A tool call and its result."""

    name: str
    arguments: str
    """As the model wrote them."""
    output: ToolOutput


@frozen(kw_only=True)
class ChatTurn:
    """An answer, its usage and how it ended."""

    text: str
    report: Report
    """Report of the last prompt."""
    usage: Usage
    """Usage of this answer only."""
    notices: tuple[str, ...] = ()
    """Notices of memory, for example about a compaction."""
    tools: tuple[ChatToolUse, ...] = ()
    end_reason: str = ""
    """Reason if the answer is incomplete; otherwise empty."""

    @property
    def is_stopped(self) -> bool:
        """True if the user stopped it."""
        return self.end_reason == STOPPED_REASON

    @property
    def tokens(self) -> int:
        """Input and output tokens as reported by the provider, or the estimated input."""
        usage = self.usage
        return usage.reported_prompt + usage.completion if usage.reported_calls else usage.tokens

    @property
    def cached_share(self) -> float:
        """Share of the input from the cache as reported by the provider, or as estimated."""
        usage = self.usage
        if not usage.reported_calls:
            return usage.cached_share
        return usage.reported_cached / usage.reported_prompt if usage.reported_prompt else 0.0


@frozen(kw_only=True)
class ChatExchange:
    """The last message of the user, and its answer."""

    question: str
    answer: str
    """Text of the answer without tool calls and results."""
    messages: int
    """Number of messages, including the user's."""
    is_from_this_chat: bool
    """False for an exchange of an earlier chat or another terminal."""
    is_answered: bool = True
    """The answer has ended, even if the user stopped it."""


@frozen(kw_only=True)
class OtherChanges:
    """Changes of the conversation by other processes since the last check."""

    messages: tuple[str, ...] = ()
    removed: int = 0
    """Number of removed messages."""


STOPPED_REASON = "stopped"


def call_usage(report: Report, usage: ReplyUsage | None) -> Usage:
    """Usage of one call, estimated and as reported.

    The session's usage includes calls of other processes.
    """
    cached = 0 if report.cold else report.cached_prefix_tokens
    estimated = Usage(calls=1, cached=cached, uncached=report.tokens_used - cached)
    if usage is None:
        return estimated
    return replace(
        estimated,
        reported_calls=1,
        reported_prompt=usage.prompt_tokens,
        reported_cached=usage.cached_tokens,
        completion=usage.completion_tokens,
    )


def sum_usage(usages: Iterable[Usage]) -> Usage:
    total: Counter[str] = Counter()
    for usage in usages:
        total.update(asdict(usage))
    return Usage(**total)
