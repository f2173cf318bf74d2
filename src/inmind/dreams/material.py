"""The input of a dream as one value, with the activity of sessions.

The same material always results in the same proposal.

A dream reads a limited number of new crystals of each kind, so that a day of messages cannot displace a preference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from inmind.core.events.base import Trust
from inmind.core.events.dreams import KnowledgeGap, LearnedSkill, PageLine
from inmind.core.frozen import frozen
from inmind.core.language.prose import own_words
from inmind.core.language.spans import split_sentences
from inmind.documents.notes_page import PageNote
from inmind.dreams.affect import Levels
from inmind.dreams.economics import CurrencyTotals
from inmind.dreams.page.page import MemoryPage
from inmind.search.crystal import Crystal


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


NEW_ID_PREFIX: Final = "new#"
"""Prefix of the temporary id of a typed note: prefix and place. The commit replaces it with an event id."""


class LineSource(NamedTuple):
    """A source of a line of the page: a note, a crystal, a fact or an insight."""

    ids: tuple[str, ...]
    """Its note or crystal, or the crystals of an insight. A note that a user typed has a temporary id until the commit.
    """
    text: str
    importance: float
    kind: str = "general"
    at: str = ""
    trust: Trust = Trust.AGENT
    valence: float = 0.0
    key: str = ""
    """Identifies an insight, which is recorded once for each key."""

    @classmethod
    def of(cls, crystal: Crystal) -> LineSource:
        at = crystal.at.isoformat()
        return cls((crystal.id,), crystal.text, crystal.importance, crystal.kind, at, crystal.trust, crystal.valence)


@frozen(kw_only=True)
class DreamMaterial:
    """The input of a dream, and how far the journal was read for it."""

    now: datetime
    page: MemoryPage
    """MEMORY.md when the dream began."""
    dream_lines: Mapping[str, PageLine]
    """Lines on the page that dreams wrote, by their text. All other entries were written by users."""
    adopted: frozenset[str] = frozenset()
    """Entries from before the first dream. Dreams move them into their sections."""
    notes: tuple[LineSource, ...] = ()
    """Notes on the notes page, except those that another note repeats or replaces: these are taken in without a line.
    """
    crystals: tuple[Crystal, ...] = ()
    """New crystals, the best of each kind."""
    insights: tuple[LineSource, ...] = ()
    closed_loops: tuple[str, ...] = ()
    """Lines of open loops that were closed since."""
    levels: Levels
    mood: str = ""
    gaps: tuple[KnowledgeGap, ...] = ()
    skills: tuple[LearnedSkill, ...] = ()
    economics: tuple[CurrencyTotals, ...] = ()
    """Totals of each currency."""
    search: Callable[[str], frozenset[str]]
    """Ids of the crystals that a search for some words returns."""
    get_crystal: Callable[[str], Crystal | None]
    """A crystal by its id."""

    last_seq: int = 0
    """The last event read from the resource's stream."""
    journal_position: int = 0
    """The position up to which the whole journal was read."""
    note_ids: tuple[str, ...] = ()
    """Event ids of the notes that the dream takes in."""
    page_notes: tuple[PageNote, ...] = ()
    """These notes and the typed ones, as they are on the notes page."""
    remarks: tuple[str, ...] = ()
    """Text that a user wrote between the notes."""
    typed_notes: tuple[LineSource, ...] = ()
    """Notes and remarks that have no event yet."""
    accessed_crystals: tuple[str, ...] = ()
    crystal_counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of new crystals, by kind."""

    def other_crystals(self) -> list[Crystal]:
        """New crystals that are not notes."""
        note_ids = {id for note in self.notes for id in note.ids}
        return [crystal for crystal in self.crystals if crystal.id not in note_ids]


MAX_BY_KIND: Final[Mapping[str, int]] = {
    "preference": 60,
    "relationship": 60,
    "goal": 60,
    "fact": 60,
    "insight": 40,
    "skill": 40,
    "task_pattern": 40,
    "general": 60,
    "episode": 1_000,
}


def select_crystals(crystals: Iterable[Crystal]) -> tuple[Crystal, ...]:
    """The best crystals of each kind, in the order of time.

    The order of preference is trust, importance, age. Words of a user have the highest trust: dreams learn from these.
    """
    by_kind: defaultdict[str, list[Crystal]] = defaultdict(list)
    for crystal in crystals:
        by_kind[crystal.kind].append(crystal)
    selected = [
        crystal
        for kind, group in by_kind.items()
        for crystal in sorted(group, key=_rank, reverse=True)[: MAX_BY_KIND.get(kind, 0)]
    ]
    return tuple(sorted(selected, key=lambda crystal: (crystal.at, crystal.id)))


def _rank(crystal: Crystal) -> tuple[int, float, float, str]:
    return crystal.trust, crystal.importance, crystal.at.timestamp(), crystal.id
