"""Activity of sessions since the last dream: messages, tool calls, searches and turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.events.base import Trust
from inmind.core.frozen import frozen
from inmind.core.language.prose import own_words
from inmind.core.language.spans import split_sentences


@frozen(kw_only=True)
class ToolUse:
    """A tool call."""

    tool: str
    arguments: str = ""
    """The arguments as JSON text, verbatim."""
    failed: bool = False


@frozen(kw_only=True)
class Utterance:
    """A message of a user or the assistant, or a tool result."""

    id: str
    session: str
    at: datetime
    role: str
    """`user`, `assistant` or `tool`."""
    text: str = ""
    tool_uses: tuple[ToolUse, ...] = ()
    """Tools that the message calls, or the tool that returned the result."""
    trust: Trust = Trust.PERSON
    _sentence_cache: list[tuple[str, ...]] = field(
        default_factory=list[tuple[str, ...]], init=False, compare=False, hash=False, repr=False
    )

    @property
    def sentences(self) -> tuple[str, ...]:
        """The author's sentences, without pasted text.

        Gaps, loops and skills all use them. Splitting takes longer than all other work on them, so it is done once, on
        first use.
        """
        if not self._sentence_cache:
            self._sentence_cache.append(
                tuple(sentence for line in own_words(self.text) for sentence in split_sentences(line))
            )
        return self._sentence_cache[0]


@frozen(kw_only=True)
class SearchUse:
    """A search in memory."""

    id: str
    session: str
    at: datetime
    query: str
    hits: tuple[str, ...] = ()


@frozen(kw_only=True)
class Activity:
    """Utterances and searches, each in the order in which they happened."""

    utterances: tuple[Utterance, ...] = ()
    searches: tuple[SearchUse, ...] = ()


ANSWER_GRACE: Final = timedelta(minutes=10)
"""A request younger than this may still be answered."""


class ActivityTurn(NamedTuple):
    """One turn of a session."""

    user_messages: tuple[Utterance, ...]
    """Consecutive messages of the user; empty if the turn began before the last dream."""
    responses: tuple[Utterance, ...]
    """Messages of the assistant and tool results so far."""

    @property
    def final_reply(self) -> str:
        """The text of the assistant's last message; empty if the turn does not end with one."""
        last = self.responses[-1] if self.responses else None
        return last.text if last is not None and last.role == "assistant" and not last.tool_uses else ""

    @property
    def tool_calls(self) -> list[ToolUse]:
        """The tool calls in order, each with its outcome."""
        calls: list[ToolUse] = []
        open_calls: dict[str, list[int]] = {}
        for utterance in self.responses:
            for tool_use in utterance.tool_uses:
                waiting = open_calls.get(tool_use.tool)
                if utterance.role == "tool" and waiting:
                    calls[waiting.pop(0)] = tool_use
                    continue
                if utterance.role != "tool":
                    open_calls.setdefault(tool_use.tool, []).append(len(calls))
                calls.append(tool_use)
        return calls


def split_turns(utterances: Iterable[Utterance]) -> list[ActivityTurn]:
    """The turns of all sessions, in the order in which the sessions first appear."""
    by_session: dict[str, list[tuple[list[Utterance], list[Utterance]]]] = {}
    for utterance in utterances:
        session_turns = by_session.setdefault(utterance.session, [([], [])])
        user, responses = session_turns[-1]
        if utterance.role != "user":
            responses.append(utterance)
        elif responses:
            session_turns.append(([utterance], []))
        else:
            user.append(utterance)
    return [
        ActivityTurn(tuple(user), tuple(responses))
        for session_turns in by_session.values()
        for user, responses in session_turns
    ]


def unanswered_turns(turns: Sequence[ActivityTurn], now: datetime) -> list[ActivityTurn]:
    """Last turns of sessions that have no response after the grace period."""
    last = {turn.user_messages[-1].session: turn for turn in turns if turn.user_messages}
    return [turn for turn in last.values() if not turn.responses and now - turn.user_messages[-1].at >= ANSWER_GRACE]
