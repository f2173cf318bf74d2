"""What was said, as turns: somebody asks for something, and what is said and done until they ask again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.dreams.activity import Spoke, Used

SOON: Final = timedelta(minutes=10)
"""Whoever was asked no longer ago may be about to begin."""


class Turn(NamedTuple):
    """Within one session."""

    asked: tuple[Spoke, ...]
    """What a user said, in one message or several; nothing where the turn began before the last dream."""
    answered: tuple[Spoke, ...]
    """What the assistant and tools made of it so far."""

    @property
    def reply(self) -> str:
        """What the assistant said in the end; nothing where it has not come to that."""
        last = self.answered[-1] if self.answered else None
        return last.text if last is not None and last.role == "assistant" and not last.used else ""

    @property
    def calls(self) -> list[Used]:
        """Tools that were used, in the order of the calls, each as it ended."""
        calls: list[Used] = []
        open_calls: dict[str, list[int]] = {}
        for spoke in self.answered:
            for used in spoke.used:
                waiting = open_calls.get(used.tool)
                if spoke.role == "tool" and waiting:
                    calls[waiting.pop(0)] = used
                    continue
                if spoke.role != "tool":
                    open_calls.setdefault(used.tool, []).append(len(calls))
                calls.append(used)
        return calls


def turns(talk: Iterable[Spoke]) -> list[Turn]:
    """Of every session, in the order in which the sessions came up."""
    by_session: dict[str, list[tuple[list[Spoke], list[Spoke]]]] = {}
    for spoke in talk:
        said = by_session.setdefault(spoke.session, [([], [])])
        asked, answered = said[-1]
        if spoke.role != "user":
            answered.append(spoke)
        elif answered:
            said.append(([spoke], []))
        else:
            asked.append(spoke)
    return [Turn(tuple(asked), tuple(answered)) for said in by_session.values() for asked, answered in said]


def left_alone(said: Sequence[Turn], now: datetime) -> list[Turn]:
    """Those with which a session ends, and for which nobody has said or done anything."""
    last = {turn.asked[-1].session: turn for turn in said if turn.asked}
    return [turn for turn in last.values() if not turn.answered and now - turn.asked[-1].at >= SOON]
