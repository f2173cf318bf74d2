"""A message as compaction looks at it: who said what, what it asks of tools and what it answers.

Formats know how providers write this; here only its meaning counts, so that the rules about turns, retention and
summaries are written once and know no provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

from inmind.core.frozen import frozen

Speaker = Literal["operator", "user", "assistant", "tool"]


@frozen
class TurnCall:
    """A call of a tool, with its arguments as the model wrote them."""

    id: str
    tool: str
    arguments: str


@frozen
class TurnResult:
    """What a tool answered to a call."""

    id: str
    text: str
    tokens: int
    error: bool = False


@frozen(kw_only=True)
class TurnMessage:
    """One message of the conversation. Its words are those beside the answers of tools."""

    seq: int
    speaker: Speaker
    text: str = ""
    calls: tuple[TurnCall, ...] = ()
    results: tuple[TurnResult, ...] = ()
    tokens: int = 0
    stub: bool = False
    """It is sent in the place of what was archived."""
    maybe_output: bool = False
    """It stands in a user's name, and may be what a command answered."""

    @property
    def is_block(self) -> bool:
        """It stands for whole messages that left, in words of ours."""
        return self.stub and self.speaker == "operator"

    @property
    def starts_turn(self) -> bool:
        """A user speaks. What only brings the answers of tools goes on with the turn that asked for them."""
        return self.speaker == "user" and not self.results


@frozen
class Turn:
    """One user message with everything up to the next: `[start, stop)` of the messages."""

    start: int
    stop: int


def split_turns(messages: Sequence[TurnMessage]) -> list[Turn]:
    """All turns in order. What stands before the first user message is a turn of its own."""
    starts = [place for place, one in enumerate(messages) if place == 0 or one.starts_turn]
    return [Turn(start, stop) for start, stop in pairwise([*starts, len(messages)])]
