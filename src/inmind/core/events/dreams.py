"""Events of dreams, affect and economics."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from inmind.core.events.base import EventPayload, coerce_pairs, named_tuple
from inmind.core.frozen import frozen


class PageLine(NamedTuple):
    """A line that a dream has put on MEMORY.md, and what it is made of. A tuple, since JSON knows tuples."""

    section: str
    """By its heading."""
    text: str
    """As it stands on the page, without the mark of its list."""
    sources: tuple[str, ...] = ()
    """Crystals and notes that it is made of."""
    importance: float = 0.5
    kind: str = "general"
    at: str = ""
    """When the newest of its sources was said."""
    trust: int = 1
    """The least of its sources: see Trust."""


class KnowledgeGap(NamedTuple):
    """Something that the agent does not know and might want to find out."""

    topic: str
    reason: str
    """`unanswered`, `not_found` or `mentioned_once`."""
    since: str
    last_seen: str
    """When it last came up: two days later it is over."""
    sources: tuple[str, ...] = ()


class LearnedSkill(NamedTuple):
    """Something that the agent has done again and again."""

    name: str
    occurrences: int
    succeeded: int
    """How many of them came to a good end."""
    last_used: str
    """When it was last done."""
    sources: tuple[str, ...] = ()


class ProposedEdit(NamedTuple):
    """What a dream wants to do to MEMORY.md: see `dreams/page/edits.py`. A tuple, since JSON knows tuples."""

    op: str
    """`add`, `rewrite` or `retire`."""
    lines: tuple[str, ...] = ()
    """Those that it is about, as they stand on the page."""
    section: str = ""
    text: str = ""
    sources: tuple[str, ...] = ()
    importance: float = 0.0
    kind: str = ""
    at: str = ""
    trust: int = 0
    topic: str = ""
    keywords: str = ""


class GuardVerdict(NamedTuple):
    """What a guard says of a state that was proposed."""

    guard: str
    passed: bool
    detail: str = ""


@frozen
class PageAdopted(EventPayload):
    """MEMORY.md was written by hand before the first dream: it was backed up, and became crystals in this commit."""

    kind = "seeded"
    text: str
    """As it was, word for word."""
    backup: str
    chunks: int = 0


@frozen
class DreamStarted(EventPayload):
    """A dream for this resource. The number of this event is its name; that and its holder are its fencing token: while
    it holds nobody else dreams, and once another has begun, or has taken it over, who held it can change nothing."""

    kind = "dream_begun"
    trigger: str
    """`asked`, `schedule` or `spike`."""
    lease_until: str
    """How long it holds unless it says more."""
    proposer: str = ""
    """What proposes: `rules`, or the name of a model."""
    holder: str = ""
    """Whoever dreams it, by a name that nobody else has."""


@frozen
class DreamResumed(EventPayload):
    """A dream whose holder is not heard of any more is gone on with by another, from the last stage that it reached."""

    kind = "dream_taken"
    dream: int
    lease_until: str
    holder: str
    proposer: str = ""


@frozen
class DreamProgressed(EventPayload):
    """A dream that is still going on says where it is, and holds for longer."""

    kind = "dream_went"
    dream: int
    phase: str
    lease_until: str
    released: bool = False
    """Whoever held it had to go, and has left it to others as it was: it holds no longer."""


@frozen
class DreamGathered(EventPayload):
    """A dream has looked at all that it will be made of: with this the same can be put together again."""

    kind = "dream_gathered"
    dream: int
    lease_until: str
    last_seq: int
    """Of the stream."""
    journal_position: int
    """Of the whole journal."""
    as_of: str
    """The time that it goes by."""
    user_notes_digest: str = ""
    """Digest of what people typed among the notes: a proposal names that by its place."""


@frozen
class DreamAnswered(EventPayload):
    """What a model has answered in a dream, word for word: it is paid for, and whoever goes on does not ask again."""

    kind = "dream_answered"
    dream: int
    lease_until: str
    text: str
    proposer: str = ""
    truncated: bool = False
    """It had more to say than it was allowed to."""
    tokens: tuple[int, int] = (0, 0)
    """Spent, whatever becomes of the dream."""
    price: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", tuple(self.tokens))


@frozen
class DreamProposed(EventPayload):
    """What a dream will do, whole: whoever goes on with it has to ask nobody again."""

    kind = "dream_proposed"
    dream: int
    lease_until: str
    edits: tuple[ProposedEdit, ...] = ()
    proposer: str = ""
    """See `Dreamt`, for this and what follows."""
    fallback_reason: str = ""
    refused: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    """Spent beside what its answers have cost."""
    price: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "edits", tuple(named_tuple(ProposedEdit, edit) for edit in self.edits))
        for name in ("refused", "tokens"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@frozen
class DreamChecked(EventPayload):
    """The guards had nothing against the page that a proposal leads to. They are asked again when it is committed."""

    kind = "dream_checked"
    dream: int
    lease_until: str
    verdicts: tuple[GuardVerdict, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdicts", tuple(named_tuple(GuardVerdict, one) for one in self.verdicts))


@frozen
class DreamCommitted(EventPayload):
    """A dream came to its end. Pages that it wrote and crystals that it made stand beside this in its commit."""

    kind = "dreamt"
    dream: int
    proposer: str
    """What has proposed: `rules`, or the name of a model."""
    last_seq: int
    """Notes up to this event of the stream were looked at: those that stood on the page are taken in."""
    journal_position: int
    """Of the whole journal: what sessions have said up to there was looked at."""
    notes: tuple[str, ...] = ()
    """Notes that it has taken in."""
    lines: tuple[PageLine, ...] = ()
    """Lines that it has put on the page, or said anew."""
    gaps: tuple[KnowledgeGap, ...] = ()
    """All that there are from now on."""
    skills: tuple[LearnedSkill, ...] = ()
    """All that are known from now on."""
    user_lines: tuple[tuple[str, str], ...] = ()
    """What people wrote on the page, each entry with the crystal that this dream made of it."""
    replayed: tuple[str, ...] = ()
    """Crystals that were used since the last dream: they last longer by that."""
    insights: tuple[str, ...] = ()
    """What each insight is about that became a crystal here, so that it does not become one again."""
    verdicts: tuple[GuardVerdict, ...] = ()
    refused: tuple[str, ...] = ()
    """What was proposed and not done, each with the reason."""
    inputs: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """What it was made of, in numbers and words: crystals by kind, levels, what came in meanwhile."""
    mood: str = ""
    fallback_reason: str = ""
    """Why rules did what a model was asked for."""
    tokens: tuple[int, int] = (0, 0)
    """Of the model: read and written."""
    price: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        coerce_pairs(self, "user_lines")
        for name in ("notes", "replayed", "insights", "refused", "tokens"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, kind in (
            ("lines", PageLine),
            ("gaps", KnowledgeGap),
            ("skills", LearnedSkill),
            ("verdicts", GuardVerdict),
        ):
            object.__setattr__(self, name, tuple(named_tuple(kind, one) for one in getattr(self, name)))


@frozen
class DreamFailed(EventPayload):
    """A dream changed nothing, and why."""

    kind = "dream_failed"
    dream: int
    phase: str
    code: str
    reason: str
    proposer: str = ""
    verdicts: tuple[GuardVerdict, ...] = ()
    refused: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    price: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("refused", "tokens"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "verdicts", tuple(GuardVerdict(*one) for one in self.verdicts))


@frozen
class DreamUndone(EventPayload):
    """What a dream did to the pages was taken back, and the notes that it took in wait for another.

    Where dreaming stood before it is said here again: that could be folded only from the beginning.
    """

    kind = "dream_undone"
    dream: int
    previous_dream: int
    """The dream that is the last one again; 0 where there was none."""
    last_seq: int
    journal_position: int
    lines: tuple[PageLine, ...] = ()
    gaps: tuple[KnowledgeGap, ...] = ()
    skills: tuple[LearnedSkill, ...] = ()
    user_lines: tuple[tuple[str, str], ...] = ()
    adopted_entries: tuple[str, ...] = ()
    insights: tuple[str, ...] = ()
    """What it had found, which may be found again."""
    crystals: tuple[str, ...] = ()
    """What it had made of that, which is found no more."""

    def __post_init__(self) -> None:
        coerce_pairs(self, "user_lines")
        for name in ("adopted_entries", "insights", "crystals"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, kind in (("lines", PageLine), ("gaps", KnowledgeGap), ("skills", LearnedSkill)):
            object.__setattr__(self, name, tuple(named_tuple(kind, one) for one in getattr(self, name)))


DreamUnderway = DreamResumed | DreamProgressed | DreamGathered | DreamAnswered | DreamProposed | DreamChecked
"""What a dream tells of itself between its beginning and its end."""


RecordsReadPosition = DreamGathered | DreamCommitted | DreamUndone
"""Events that say up to which position of the whole journal dreams have read: that is another in another journal."""


@frozen
class AffectSpiked(EventPayload):
    """Something happened that is felt for a while."""

    kind = "affect"
    spike: str
    """`reward`, `error`, `social`, `achievement`, `urgency`, `sale`, `recall`, `missed`."""
    reason: str = ""
    subject: str = ""
    """What it was about, as rules know it again: a failure, and the success that ends it."""
    session: str = ""


@frozen
class TradeRecorded(EventPayload):
    """Money came or went, or something was offered."""

    kind = "traded"
    trade_type: str
    """`earning`, `spending` or `listing`."""
    amount: str = "0"
    """Exact, as a decimal number."""
    currency: str = "USD"
    skill: str = ""
    counterparty: str = ""
    note: str = ""
    date: str = ""
    """When it happened, where that is not when it was told."""
