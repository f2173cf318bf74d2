"""What happens, entered on overview.md while it happens.

Hosts say it, and rules read it off what tools did; the index of pages follows whoever wrote them. All of it goes into
the commit of what it is about, so that one undo takes back both. What the rules have to remember of earlier outcomes
is worked out from the conversation when a session is opened, and carried on from there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from inmind.documents import OVERVIEW, Documents
from inmind.entities.sight import Happening
from inmind.entities.success import failed
from inmind.errors import InvalidInput
from inmind.history import Line
from inmind.journal import Draft, ToolObserved, Trust
from inmind.mind import Mind
from inmind.overview.events import KINDS, Occurrence
from inmind.overview.watch import Outcome, Watch, occurrences
from inmind.prompt.heard import outcomes_in
from inmind.prompt.upkeep import indexed, kept_up
from inmind.stores.base import Appended, Key
from inmind.stores.stream import Decision, Stream

MOST_REMEMBERED = 400
"""Messages of the conversation that are looked through for earlier outcomes."""


class Chronicle:
    """The overview of one session, as far as memory itself keeps it."""

    def __init__(self, stream: Stream[Mind], own_tool: Callable[[str], bool]) -> None:
        self._stream, self._own_tool = stream, own_tool
        self._watch: Watch | None = None
        self._current: tuple[tuple[str, int], ...] | None = None
        """The pages, with their versions, for which the index was last seen to be current."""

    def event(self, kind: str, text: str, key: Key | None) -> Appended:
        """Something that the host says has happened."""
        if kind not in KINDS:
            raise InvalidInput(field="kind", value=kind, expected=f"one of {', '.join(KINDS)}")
        occurrence = Occurrence(kind, text)

        def decide(mind: Mind, _: datetime) -> Decision[Mind, None]:
            return Decision(kept_up(mind.documents, _language(mind), [occurrence]), None)

        return self._stream.commit(decide, key=key).appended

    def entered(self, mind: Callable[[], Mind], before: Mind, told: Sequence[Happening], *, wrote: bool) -> list[Draft]:
        """What is entered for what tools did, and for pages that were written. `mind`: what is then in mind.

        `before`: what was in mind until then. `wrote`: whether pages were among what happened.
        """
        done = [_outcome(one.said, one.source) for one in told if isinstance(one.said, ToolObserved)]
        if not done and not wrote and self._pages(before.documents) == self._current:
            return []
        language = _language(before)
        watch, noted = occurrences(done, self._known(before.line, language), own=self._own_tool, language=language)
        then = mind()
        drafts = kept_up(
            then.documents, language, noted, trust=Trust.DATA if noted else Trust.OPERATOR, sources=_of(told)
        )
        self._watch, self._current = watch, self._pages(then.documents) if not drafts else None
        return drafts

    def _known(self, line: Line, language: str) -> Watch:
        """What earlier outcomes were. Calls that are decided again see some twice, which says nothing new."""
        if self._watch is None:
            past = [_outcome(told, "") for told in outcomes_in(line[max(0, len(line) - MOST_REMEMBERED) :])]
            self._watch, _ = occurrences(past, Watch(), own=self._own_tool, language=language)
        return self._watch

    def _pages(self, documents: Documents) -> tuple[tuple[str, int], ...]:
        versions = ((path, page.version) for path, page in indexed(documents).items())
        return ((OVERVIEW, documents.version(OVERVIEW)), *versions)


def _outcome(told: ToolObserved, source: str) -> Outcome:
    return Outcome(
        tool=told.tool,
        arguments=_read(told.arguments),
        result=told.result,
        failed=told.error or failed(told.result),
        seq=int(source.rpartition("#")[2] or 0),
    )


def _read(arguments: Any) -> Any:
    """Arguments as values; in the conversation they are the text that a model wrote."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def _of(told: Sequence[Happening]) -> list[str]:
    return list(dict.fromkeys(one.source for one in told if isinstance(one.said, ToolObserved)))


def _language(mind: Mind) -> str:
    return mind.opened.language if mind.opened else "en"
