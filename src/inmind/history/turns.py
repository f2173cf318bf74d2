"""Messages and turns as compaction sees them: speaker, text, tool calls and tool results.

They are independent of provider formats, so that rules about turns, retention and summaries are written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from inmind.core.frozen import frozen

Speaker = Literal["operator", "user", "assistant", "tool"]


@frozen
class TurnCall:
    """A tool call with its arguments as written by the model."""

    id: str
    tool: str
    arguments: str
    is_compaction: bool = False
    """The provider's own compaction. No result ever answers it, so no compaction of ours changes it."""


@frozen
class TurnResult:
    """The result of a tool call."""

    id: str
    text: str
    tokens: int
    error: bool = False
    from_memory: bool = False
    """It is what memory answered: a page of the archive, found notes. No record of it is needed."""


@frozen(kw_only=True)
class TurnMessage:
    """One message. `text` excludes tool results."""

    seq: int
    speaker: Speaker
    text: str = ""
    calls: tuple[TurnCall, ...] = ()
    results: tuple[TurnResult, ...] = ()
    tokens: int = 0
    stub: bool = False
    """It is sent in place of archived messages."""
    maybe_output: bool = False
    """A user message that may be the output of a command."""

    @property
    def is_block(self) -> bool:
        """A stub that replaces whole messages."""
        return self.stub and self.speaker == "operator"

    @property
    def starts_turn(self) -> bool:
        """True for a user message. A message with tool results continues the turn."""
        return self.speaker == "user" and not self.results


@frozen
class Turn:
    """A user message with everything up to the next one: messages `[start, stop)`."""

    start: int
    stop: int


def split_turns(messages: Sequence[TurnMessage]) -> list[Turn]:
    """Return all turns in order. Messages before the first user message are one turn."""
    starts = [place for place, one in enumerate(messages) if place == 0 or one.starts_turn]
    return [Turn(start, stop) for start, stop in pairwise([*starts, len(messages)])]
