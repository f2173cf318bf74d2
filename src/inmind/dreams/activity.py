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
class ToolUse:
    """A tool that was called."""

    tool: str
    arguments: str = ""
    """As they were written."""
    failed: bool = False


@frozen(kw_only=True)
class Utterance:
    """A message: by a user, the assistant, or what stands in for one: a tool that was observed."""

    id: str
    session: str
    at: datetime
    role: str
    """`user`, `assistant` or `tool`."""
    text: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    """Tools that it calls, or whose outcome it is."""
    trust: Trust = Trust.PERSON
    _sentence_cache: list[tuple[str, ...]] = field(
        default_factory=list[tuple[str, ...]], init=False, compare=False, hash=False, repr=False
    )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What somebody says in it of their own, without what they have only pasted.

        Gaps, loops and skills all look at this, and to tell it takes longer than all that they do with it: it is told
        when the first of them asks, and kept.
        """
        if not self._sentence_cache:
            self._sentence_cache.append(tuple(one for line in own_words(self.text) for one in sentences(line)))
        return self._sentence_cache[0]


@frozen(kw_only=True)
class SearchUse:
    """A search in deep memory."""

    id: str
    session: str
    at: datetime
    query: str
    hits: tuple[str, ...] = ()


@frozen(kw_only=True)
class Activity:
    """In the order in which it happened."""

    utterances: tuple[Utterance, ...] = ()
    searches: tuple[SearchUse, ...] = ()


ANSWER_GRACE: Final = timedelta(minutes=10)
"""Whoever was asked no longer ago may be about to begin."""


class ActivityTurn(NamedTuple):
    """Within one session."""

    user_messages: tuple[Utterance, ...]
    """What a user said, in one message or several; nothing where the turn began before the last dream."""
    responses: tuple[Utterance, ...]
    """What the assistant and tools made of it so far."""

    @property
    def final_reply(self) -> str:
        """What the assistant said in the end; nothing where it has not come to that."""
        last = self.responses[-1] if self.responses else None
        return last.text if last is not None and last.role == "assistant" and not last.tool_uses else ""

    @property
    def tool_calls(self) -> list[ToolUse]:
        """Tools that were used, in the order of the calls, each as it ended."""
        calls: list[ToolUse] = []
        open_calls: dict[str, list[int]] = {}
        for spoke in self.responses:
            for used in spoke.tool_uses:
                waiting = open_calls.get(used.tool)
                if spoke.role == "tool" and waiting:
                    calls[waiting.pop(0)] = used
                    continue
                if spoke.role != "tool":
                    open_calls.setdefault(used.tool, []).append(len(calls))
                calls.append(used)
        return calls


def split_turns(utterances: Iterable[Utterance]) -> list[ActivityTurn]:
    """Of every session, in the order in which the sessions came up."""
    by_session: dict[str, list[tuple[list[Utterance], list[Utterance]]]] = {}
    for spoke in utterances:
        said = by_session.setdefault(spoke.session, [([], [])])
        asked, answered = said[-1]
        if spoke.role != "user":
            answered.append(spoke)
        elif answered:
            said.append(([spoke], []))
        else:
            asked.append(spoke)
    return [ActivityTurn(tuple(asked), tuple(answered)) for said in by_session.values() for asked, answered in said]


def unanswered_turns(turns: Sequence[ActivityTurn], now: datetime) -> list[ActivityTurn]:
    """Those with which a session ends, and for which nobody has said or done anything."""
    last = {turn.user_messages[-1].session: turn for turn in turns if turn.user_messages}
    return [turn for turn in last.values() if not turn.responses and now - turn.user_messages[-1].at >= ANSWER_GRACE]
