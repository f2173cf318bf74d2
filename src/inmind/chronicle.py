"""What happens, entered on overview.md while it happens.

Hosts say it, and rules read it off what tools did; the index of pages follows whoever wrote them. All of it goes into
the commit of what it is about, so that one undo takes back both. A decision may be taken twice, or come to nothing, so
nothing is remembered here that is not in the state: only answers that would be worked out again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from inmind.documents import Documents
from inmind.entities.sight import Happening
from inmind.entities.success import failed
from inmind.history import Line
from inmind.journal import Draft, ToolObserved, Trust
from inmind.mind import Mind
from inmind.overview.events import Noted, occurrence
from inmind.overview.watch import Outcome, occurrences
from inmind.prompt.heard import FURTHEST, outcomes_in
from inmind.prompt.upkeep import kept_up
from inmind.stores.base import Appended, Key
from inmind.stores.stream import Decision, Stream


class Chronicle:
    """The overview of one session, as far as memory itself keeps it."""

    def __init__(self, stream: Stream[Mind], own_tool: Callable[[str], bool]) -> None:
        self._stream, self._own_tool = stream, own_tool
        self._current: tuple[Documents, Noted] | None = None
        """What the overview was last seen to be current for."""
        self._worked: tuple[int, str, frozenset[str]] = (0, "", frozenset())
        """A beginning of the conversation, by its length and its name, and the tools that have worked in it."""

    def event(self, kind: str, text: str, key: Key | None) -> Appended:
        """Something that the host says has happened."""
        told = occurrence(kind, text)

        def decide(mind: Mind, _: datetime) -> Decision[Mind, None]:
            return Decision(kept_up(mind.documents, mind.language, [told], noted=mind.noted), None)

        return self._stream.commit(decide, key=key).appended

    def entered(self, mind: Callable[[], Mind], before: Mind, told: Sequence[Happening], *, wrote: bool) -> list[Draft]:
        """What is entered for what tools did, and for pages that were written. `mind`: what is then in mind.

        `before`: what was in mind until then. `wrote`: whether pages were among what happened.
        """
        done = [
            (_outcome(one.said), one.source)
            for one in told
            if isinstance(one.said, ToolObserved) and not self._own_tool(one.said.tool)
        ]
        language = before.language
        occurred = occurrences(
            (outcome for outcome, _ in done),
            before.noted,
            worked=lambda tool: tool in before.worked or tool in self._worked_in(before.line),
            language=language,
        )
        if not occurred and not wrote and (before.documents, before.noted) == self._current:
            return []
        then = mind()
        sources = tuple(dict.fromkeys(source for _, source in done)) if occurred else ()
        drafts = kept_up(then.documents, language, occurred, noted=then.noted, trust=Trust.DATA, sources=sources)
        if not drafts:
            self._current = (then.documents, then.noted)
        return drafts

    def catch_up(self) -> bool:
        """Enter what follows from pages that people wrote as files; answers whether there was anything to enter."""

        def decide(mind: Mind, _: datetime) -> Decision[Mind, tuple[Documents, Noted]]:
            drafts = kept_up(mind.documents, mind.language, noted=mind.noted)
            return Decision(drafts, (mind.documents, mind.noted))

        state = self._stream.state
        if (state.documents, state.noted) == self._current:
            return False
        done = self._stream.commit(decide)
        if not done.events:
            self._current = done.answer
        return bool(done.events)

    def _worked_in(self, line: Line) -> frozenset[str]:
        """The tools that have worked, by the conversation alone. It is read on from where it was read before."""
        length, name, worked = self._worked
        if not line.begins_with(length, name):
            length, worked = 0, frozenset[str]()
        if length < len(line):
            outcomes = map(_outcome, outcomes_in(line[max(0, length - FURTHEST) :]))
            worked |= {outcome.tool for outcome in outcomes if not outcome.failed}
            self._worked = (len(line), line.name(), worked)
        return worked


def _outcome(told: ToolObserved) -> Outcome:
    return Outcome(
        tool=told.tool,
        arguments=_read(told.arguments),
        result=told.result,
        failed=told.error or failed(told.result),
    )


def _read(arguments: Any) -> Any:
    """Arguments as values; in the conversation they are the text that a model wrote."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None
