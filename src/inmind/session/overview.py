"""What happens, entered on overview.md while it happens.

Hosts say it, and rules read it off what tools did; the index of pages follows whoever wrote them. All of it goes into
the commit of what it is about, so that one undo takes back both. A decision may be taken twice, or come to nothing, so
nothing is remembered here that is not in the state: only answers that would be worked out again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from inmind.core.events.base import Draft, Trust
from inmind.core.events.session import ToolObserved
from inmind.documents.document import Documents
from inmind.documents.overview.event_log import OverviewLog, overview_event
from inmind.documents.overview.maintain import overview_updates
from inmind.documents.overview.tool_rules import ToolCallOutcome, overview_events
from inmind.entities.observe import Observation
from inmind.entities.outcome import exit_code, is_failure, reports_failure
from inmind.entities.parse_result import is_object, looks_like_json, parse_layers
from inmind.history import Conversation
from inmind.session.message_events import MAX_LOOKBACK, tool_results_in
from inmind.session.state import SessionState
from inmind.store.protocol import AppendResult, Key
from inmind.store.stream import Decision, Stream


class OverviewWriter:
    """The overview of one session, as far as memory itself keeps it."""

    def __init__(self, stream: Stream[SessionState], own_tool: Callable[[str], bool]) -> None:
        self._stream, self._own_tool = stream, own_tool
        self._current: tuple[Documents, OverviewLog] | None = None
        """What the overview was last seen to be current for."""
        self._working_tools: tuple[int, str, frozenset[str]] = (0, "", frozenset())
        """A beginning of the conversation, by its length and its name, and the tools that have worked in it."""

    def add_event(self, kind: str, text: str, key: Key | None) -> AppendResult:
        """Something that the host says has happened."""
        told = overview_event(kind, text)

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, None]:
            return Decision(overview_updates(state.documents, state.language, [told], log=state.overview_lines), None)

        return self._stream.commit(decide, key=key).appended

    def entries_for(
        self, state: Callable[[], SessionState], before: SessionState, told: Sequence[Observation], *, wrote: bool
    ) -> list[Draft]:
        """What is entered for what tools did, and for pages that were written. `mind`: what is then in mind.

        `before`: what was in mind until then. `wrote`: whether pages were among what happened.
        """
        done = [
            (read_outcome(one.content), one.source)
            for one in told
            if isinstance(one.content, ToolObserved) and not self._own_tool(one.content.tool)
        ]
        language = before.language
        occurred = overview_events(
            (outcome for outcome, _ in done),
            before.overview_lines,
            has_worked=lambda tool: tool in before.working_tools or tool in self._working_tools_in(before.conversation),
            language=language,
        )
        if not occurred and not wrote and (before.documents, before.overview_lines) == self._current:
            return []
        then = state()
        sources = tuple(dict.fromkeys(source for _, source in done)) if occurred else ()
        drafts = overview_updates(
            then.documents, language, occurred, log=then.overview_lines, trust=Trust.DATA, sources=sources
        )
        if not drafts:
            self._current = (then.documents, then.overview_lines)
        return drafts

    def refresh(self) -> bool:
        """Enter what follows from pages that people wrote as files; answers whether there was anything to enter."""

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

    def _working_tools_in(self, line: Conversation) -> frozenset[str]:
        """The tools that have worked, by the conversation alone. It is read on from where it was read before."""
        length, name, worked = self._working_tools
        if not line.begins_with(length, name):
            length, worked = 0, frozenset[str]()
        if length < len(line):
            outcomes = tool_results_in(line[max(0, length - MAX_LOOKBACK) :])
            worked |= {
                one.tool for one in outcomes if one.tool not in worked and not (one.error or is_failure(one.result))
            }
            self._working_tools = (len(line), line.prefix_digest(), worked)
        return worked


def read_outcome(told: ToolObserved) -> ToolCallOutcome:
    """What a tool did, read once for all rules."""
    answer = parse_layers(told.result)
    return ToolCallOutcome(
        tool=told.tool,
        arguments=_parse_arguments(told.arguments),
        result=next(filter(_is_plain_text, answer), answer[-1]),
        failed=told.error or any(map(reports_failure, answer)),
        exit_code=exit_code(answer[-1]),
    )


def _is_plain_text(value: Any) -> bool:
    """Words are quoted as they were said, though they can be read as YAML: "Error: disk full"."""
    return isinstance(value, str) and not looks_like_json(value)


def _parse_arguments(arguments: Any) -> Any:
    """Arguments as values: in the conversation they are the text that a model wrote, and so is many a list in them."""
    given = _parse_text(arguments)
    if not is_object(given):
        return given
    lists = {key: _parse_text(item) for key, item in given.items() if isinstance(item, str) and item[:1] == "["}
    return given | lists


def _parse_text(value: Any) -> Any:
    """Not read any further than to where it is no text: what is called content there is no answer's."""
    return next((one for one in parse_layers(value) if not isinstance(one, str)), value)
