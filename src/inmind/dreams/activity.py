"""What sessions have lived through since the last dream, as dreams look at it: who said what, which tools did what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.events.base import Trust
from inmind.core.frozen import frozen
from inmind.core.language.prose import own_words, sentences


@frozen(kw_only=True)
class Used:
    """A tool that was called."""

    tool: str
    arguments: str = ""
    """As they were written."""
    failed: bool = False


@frozen(kw_only=True)
class Spoke:
    """A message: by a user, the assistant, or what stands in for one: a tool that was observed."""

    id: str
    session: str
    at: datetime
    role: str
    """`user`, `assistant` or `tool`."""
    text: str = ""
    used: tuple[Used, ...] = ()
    """Tools that it calls, or whose outcome it is."""
    trust: Trust = Trust.PERSON
    _sentences: list[tuple[str, ...]] = field(
        default_factory=list[tuple[str, ...]], init=False, compare=False, hash=False, repr=False
    )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What somebody says in it of their own, without what they have only pasted.

        Gaps, loops and skills all look at this, and to tell it takes longer than all that they do with it: it is told
        when the first of them asks, and kept.
        """
        if not self._sentences:
            self._sentences.append(tuple(one for line in own_words(self.text) for one in sentences(line)))
        return self._sentences[0]


@frozen(kw_only=True)
class LookedUp:
    """A search in deep memory."""

    id: str
    session: str
    at: datetime
    query: str
    found: tuple[str, ...] = ()


@frozen(kw_only=True)
class Lived:
    """In the order in which it happened."""

    talk: tuple[Spoke, ...] = ()
    lookups: tuple[LookedUp, ...] = ()


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
