"""Events of dreams, affect and economics."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from inmind.core.events.base import EventPayload
from inmind.core.frozen import frozen


class PageLine(NamedTuple):
    """A line that a dream wrote on MEMORY.md, with its sources.

    A tuple, because JSON stores tuples directly.
    """

    section: str
    """The heading of the section."""
    text: str
    """The text on the page without the list marker."""
    sources: tuple[str, ...] = ()
    """Ids of the crystals and notes that it is derived from."""
    importance: float = 0.5
    kind: str = "general"
    at: str = ""
    """Time of the newest source."""
    trust: int = 1
    """The lowest trust of the sources: see Trust."""


class KnowledgeGap(NamedTuple):
    """A topic that the agent does not know and may research."""

    topic: str
    reason: str
    """`unanswered` or `not_found`; earlier versions also wrote `mentioned_once`."""
    since: str
    last_seen: str
    """When it last came up. It expires two days later."""
    sources: tuple[str, ...] = ()


class LearnedSkill(NamedTuple):
    """A task that the agent has done repeatedly."""

    name: str
    occurrences: int
    succeeded: int
    """The number of occurrences that succeeded."""
    last_used: str
    """When it was last done."""
    sources: tuple[str, ...] = ()


class GuardVerdict(NamedTuple):
    """The result of one guard for a proposed page."""

    guard: str
    passed: bool
    detail: str = ""


@frozen
class PageAdopted(EventPayload):
    """A MEMORY.md written by hand before the first dream was backed up and split into crystals.

    The crystals are in the same batch.
    """

    kind = "seeded"
    text: str
    """The original text."""
    backup: str
    chunks: int = 0


@frozen
class DreamStarted(EventPayload):
    """A dream for this resource started. The sequence number of this event is the dream's id.

    Its input is everything that was stored before this event.

    The id and the holder are its fencing token. While the lease is valid no other dream can start. After another dream
    has started, or another holder has resumed this one, the former holder cannot change anything.
    """

    kind = "dream_begun"
    stored_names = (("lease_until", "until"), ("proposer", "by"))
    trigger: str
    """`asked`, `schedule` or `spike`."""
    lease_until: str
    """The lease expires at this time unless a later event renews it."""
    proposer: str = ""
    """Source of the proposals: `rules`, or the name of a model."""
    holder: str = ""
    """A unique name of the running worker."""


@frozen
class DreamResumed(EventPayload):
    """A dream whose lease expired was resumed by another holder.

    If the model had answered within a day, the input stays and the answers are used. Otherwise the input is gathered as
    of this event.
    """

    kind = "dream_taken"
    stored_names = (("lease_until", "until"), ("proposer", "by"))
    dream: int
    lease_until: str
    holder: str
    proposer: str = ""


@frozen
class DreamProgressed(EventPayload):
    """A running dream reports its phase and renews the lease."""

    kind = "dream_went"
    stored_names = (("lease_until", "until"), ("released", "left"))
    dream: int
    phase: str
    lease_until: str
    released: bool = False
    """The holder gave up the lease, so that another can resume the dream at once."""


@frozen
class DreamGathered(EventPayload):
    """A dream has read its inputs.

    Only earlier versions wrote this: now the input ends where the dream starts.
    """

    kind = "dream_gathered"
    stored_names = (
        ("lease_until", "until"),
        ("last_seq", "upto"),
        ("journal_position", "position"),
        ("as_of", "at"),
        ("user_notes_digest", "typed"),
    )
    dream: int
    lease_until: str
    last_seq: int
    """The last event of the resource's stream that was read."""
    journal_position: int
    """The last position of the whole journal that was read."""
    as_of: str
    """The time that the dream uses as now."""
    user_notes_digest: str = ""
    """Digest of the notes that people typed. A proposal refers to them by position."""


@frozen
class DreamAnswered(EventPayload):
    """A model's answer in a dream, word for word.

    A resumed dream uses it instead of paying for another.
    """

    kind = "dream_answered"
    stored_names = (("lease_until", "until"), ("proposer", "by"), ("truncated", "cut"))
    dream: int
    lease_until: str
    text: str
    proposer: str = ""
    truncated: bool = False
    """The answer reached the token limit."""
    tokens: tuple[int, int] = (0, 0)
    """Tokens read and written. They are spent whether or not the dream is committed."""
    price: float = 0.0


@frozen
class DreamProposed(EventPayload):
    """All edits that a dream will apply.

    Only earlier versions wrote this: now they follow from the answers.
    """

    kind = "dream_proposed"
    stored_names = (("lease_until", "until"), ("proposer", "by"), ("fallback_reason", "fell_back"))
    dream: int
    lease_until: str
    edits: tuple[Any, ...] = ()
    proposer: str = ""
    """See `DreamCommitted` for this and the following fields."""
    fallback_reason: str = ""
    refused: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    """Tokens spent in addition to those of its answers."""
    price: float = 0.0


@frozen
class DreamChecked(EventPayload):
    """The proposed page has passed the guards.

    Only earlier versions wrote this: now they run at the commit.
    """

    kind = "dream_checked"
    stored_names = (("lease_until", "until"),)
    dream: int
    lease_until: str
    verdicts: tuple[GuardVerdict, ...] = ()


@frozen
class DreamCommitted(EventPayload):
    """A dream was committed. The pages and crystals that it wrote are in the same batch."""

    kind = "dreamt"
    stored_names = (
        ("proposer", "by"),
        ("last_seq", "upto"),
        ("journal_position", "position"),
        ("user_lines", "theirs"),
        ("fallback_reason", "fell_back"),
    )
    dream: int
    proposer: str
    """Source of the proposals: `rules`, or the name of a model."""
    last_seq: int
    """Notes up to this event of the stream were read. Those that were on the page are processed."""
    journal_position: int
    """Events of sessions up to this position of the whole journal were read."""
    notes: tuple[str, ...] = ()
    """Notes that were processed."""
    lines: tuple[PageLine, ...] = ()
    """Lines that were added to the page or rewritten."""
    gaps: tuple[KnowledgeGap, ...] = ()
    """All gaps after this dream."""
    skills: tuple[LearnedSkill, ...] = ()
    """All skills after this dream."""
    user_lines: tuple[tuple[str, str], ...] = ()
    """Entries that people wrote on the page, each with the crystal that this dream made from it."""
    replayed: tuple[str, ...] = ()
    """Crystals that were used since the last dream. Their expiry is postponed."""
    insights: tuple[str, ...] = ()
    """Subjects of the insights that became crystals, so that they are not created again."""
    verdicts: tuple[GuardVerdict, ...] = ()
    refused: tuple[str, ...] = ()
    """Proposed edits that were not applied, each with the reason."""
    inputs: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """Summary of the inputs: crystals by kind, levels, events that arrived during the dream."""
    mood: str = ""
    fallback_reason: str = ""
    """Why rules made the proposals although a model was configured."""
    tokens: tuple[int, int] = (0, 0)
    """Tokens that the model read and wrote."""
    price: float = 0.0
    seconds: float = 0.0


@frozen
class DreamFailed(EventPayload):
    """A dream ended without changing anything, and the reason."""

    kind = "dream_failed"
    stored_names = (("proposer", "by"),)
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


@frozen
class DreamUndone(EventPayload):
    """The pages that a dream wrote were reverted.

    The notes that it processed are unprocessed again.

    The dream state before it is stored here, because otherwise it could only be folded from the first event.
    """

    kind = "dream_undone"
    stored_names = (
        ("previous_dream", "last"),
        ("last_seq", "upto"),
        ("journal_position", "position"),
        ("user_lines", "theirs"),
        ("adopted_entries", "seed"),
    )
    dream: int
    previous_dream: int
    """The dream that is the last one again. 0 if there was none."""
    last_seq: int
    journal_position: int
    lines: tuple[PageLine, ...] = ()
    gaps: tuple[KnowledgeGap, ...] = ()
    skills: tuple[LearnedSkill, ...] = ()
    user_lines: tuple[tuple[str, str], ...] = ()
    adopted_entries: tuple[str, ...] = ()
    insights: tuple[str, ...] = ()
    """Subjects of its insights, which may be created again."""
    crystals: tuple[str, ...] = ()
    """Crystals that it had made from those insights. They are removed from search."""


DreamUnderway = DreamResumed | DreamProgressed | DreamGathered | DreamAnswered | DreamProposed | DreamChecked
"""Events of a dream between its start and its end."""


RecordsReadPosition = DreamGathered | DreamCommitted | DreamUndone
"""Events that hold a position of the whole journal. An import must translate it: positions differ between journals."""


@frozen
class AffectSpiked(EventPayload):
    """A spike of affect."""

    kind = "affect"
    stored_names = (("reason", "why"), ("subject", "about"))
    spike: str
    """`reward`, `error`, `social`, `achievement`, `urgency`, `sale`, `recall`, `missed`."""
    reason: str = ""
    subject: str = ""
    """Identifier by which rules match it later: a failure, and the success that ends it."""
    session: str = ""


@frozen
class TradeRecorded(EventPayload):
    """Income, expense, or an offer."""

    kind = "traded"
    stored_names = (("trade_type", "what"), ("counterparty", "with_whom"), ("date", "on"))
    trade_type: str
    """`earning`, `spending` or `listing`."""
    amount: str = "0"
    """Exact decimal number."""
    currency: str = "USD"
    skill: str = ""
    counterparty: str = ""
    note: str = ""
    date: str = ""
    """When it happened, if that is not the time of the event."""
