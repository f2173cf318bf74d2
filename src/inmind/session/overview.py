"""Lines that memory itself writes on overview.md.

The host reports events, and rules derive lines from tool results; the index of pages follows the pages. Lines go into
the commit of their cause, so that one undo reverts both. A decision may be computed twice or discarded, so this object
keeps only caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from inmind.core.events.base import Draft, Trust
from inmind.core.events.session import ToolObserved
from inmind.documents.document import Documents
from inmind.documents.overview.event_log import OverviewLog
from inmind.documents.overview.maintain import overview_updates
from inmind.documents.overview.tool_rules import ToolCallOutcome, overview_events
from inmind.entities.outcome import exit_code, is_failure, reports_failure
from inmind.entities.parse_result import is_object, looks_like_json, parse_layers
from inmind.history import Conversation
from inmind.history.turns import ReadMessage
from inmind.session.message_events import MAX_LOOKBACK, tool_results_in
from inmind.session.state import SessionState
from inmind.session.tools.registry import is_memory_tool
from inmind.store.stream import Decision, Stream


class OverviewUpkeep:
    """Maintains memory's lines on the overview of one session."""

    def __init__(self, stream: Stream[SessionState], read: ReadMessage) -> None:
        self._stream, self._read = stream, read
        self._current: tuple[Documents, OverviewLog] | None = None
        """The documents and lines for which the overview was last found up to date."""
        self._working_tools: tuple[int, str, frozenset[str]] = (0, "", frozenset())
        """A prefix of the conversation (its length and digest), and the tools that have succeeded in it."""

    def entries_for(
        self,
        next_state: Callable[[], SessionState],
        before: SessionState,
        outcomes: Sequence[tuple[ToolCallOutcome, str]],
        *,
        wrote: bool,
    ) -> list[Draft]:
        """Events that update the overview for tool calls and written pages.

        Each outcome comes with the id of its event. `next_state` returns the state after them, `before` is the state
        until then. `wrote`: whether pages were written.
        """
        outcomes = [(outcome, source) for outcome, source in outcomes if not is_memory_tool(outcome.tool)]
        events = overview_events(
            (outcome for outcome, _ in outcomes),
            before.overview_lines,
            has_worked=lambda tool: tool in before.working_tools or tool in self._working_tools_in(before.conversation),
            language=before.language,
        )
        if not events and not wrote and (before.documents, before.overview_lines) == self._current:
            return []
        after = next_state()
        sources = tuple(dict.fromkeys(source for _, source in outcomes)) if events else ()
        drafts = overview_updates(
            after.documents, before.language, events, log=after.overview_lines, trust=Trust.DATA, sources=sources
        )
        if not drafts:
            self._current = (after.documents, after.overview_lines)
        return drafts

    def refresh(self) -> bool:
        """Update the overview for pages that people wrote as files.

        Returns whether anything changed.
        """

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, tuple[Documents, OverviewLog]]:
            drafts = overview_updates(state.documents, state.language, log=state.overview_lines)
            return Decision(drafts, (state.documents, state.overview_lines))

        state = self._stream.state
        if (state.documents, state.overview_lines) == self._current:
            return False
        done = self._stream.commit(decide)
        if not done.events:
            self._current = done.result
        return bool(done.events)

    def _working_tools_in(self, conversation: Conversation) -> frozenset[str]:
        """Tools that have succeeded in the conversation.

        Reading continues where the last call stopped.
        """
        length, digest, worked = self._working_tools
        if not conversation.begins_with(length, digest):
            length, worked = 0, frozenset[str]()
        if length < len(conversation):
            outcomes = tool_results_in(conversation[max(0, length - MAX_LOOKBACK) :], self._read)
            worked |= {
                result.tool
                for result in outcomes
                if result.tool not in worked and not (result.error or is_failure(result.result))
            }
            self._working_tools = (len(conversation), conversation.prefix_digest(), worked)
        return worked


def read_outcome(observation: ToolObserved) -> ToolCallOutcome:
    """The outcome of a tool call, parsed once for all rules."""
    answer = parse_layers(observation.result)
    return ToolCallOutcome(
        tool=observation.tool,
        arguments=_parse_arguments(observation.arguments),
        result=next(filter(_is_plain_text, answer), answer[-1]),
        failed=observation.error or any(map(reports_failure, answer)),
        exit_code=exit_code(answer[-1]),
    )


def _is_plain_text(value: Any) -> bool:
    """Text is quoted as it is, even if it could be parsed as YAML: "Error: disk full"."""
    return isinstance(value, str) and not looks_like_json(value)


def _parse_arguments(arguments: Any) -> Any:
    """Arguments as values.

    In the conversation they are JSON text, and lists in them may be JSON text again.
    """
    parsed = _parse_text(arguments)
    if not is_object(parsed):
        return parsed
    lists = {key: _parse_text(item) for key, item in parsed.items() if isinstance(item, str) and item[:1] == "["}
    return parsed | lists


def _parse_text(value: Any) -> Any:
    """Parse text once. Fields named "content" in it are not unwrapped, unlike in a tool result."""
    return next((one for one in parse_layers(value) if not isinstance(one, str)), value)
