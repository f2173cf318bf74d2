"""Everything that can happen, as typed events, and how state is made of them.

The journal is the single source of truth: every piece of state is a fold over its events, so reopening, undo,
time travel, explanation and crash recovery are one mechanism and not five. An event says when, from whom
(`origin`), how far to trust it, and which events it was derived from; those three are on every event from the
first day, because they cannot be added to old ones.

This module knows no store and no clock.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import IntEnum, StrEnum
from functools import cache
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from inmind.errors import Damaged
from inmind.frozen import frozen


class Origin(StrEnum):
    """Whose words these are."""

    OPERATOR = "operator"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    WEB = "web"
    FILE = "file"
    DREAM = "dream"


NOBODY = "default"
"""The resource of sessions that name none. It is nobody in particular, so its sessions are strangers to each other:
what one customer has ordered must not come up in the talk with the next."""


class Trust(IntEnum):
    """How far a text may reach: only people and the operator can make a rule; tools and the web deliver data."""

    DATA = 0
    AGENT = 1
    PERSON = 2
    OPERATOR = 3


TRUST_OF = {
    Origin.OPERATOR: Trust.OPERATOR,
    Origin.USER: Trust.PERSON,
    Origin.FILE: Trust.PERSON,
    Origin.ASSISTANT: Trust.AGENT,
    Origin.DREAM: Trust.AGENT,
    Origin.TOOL: Trust.DATA,
    Origin.WEB: Trust.DATA,
}


@frozen
class Happened:
    """A payload: what one kind of event carries. Subclasses are the vocabulary."""

    kind: ClassVar[str]


Shown = tuple[tuple[str, str], ...]
"""Pages, and the scratchpad, each with the event that wrote what was shown of it."""


def _tuple_pairs(what: Happened, *names: str) -> None:
    """JSON has lists for them."""
    for name in names:
        if (pairs := getattr(what, name)) is not None:
            object.__setattr__(what, name, tuple((one, other) for one, other in pairs))


@frozen
class SessionOpened(Happened):
    kind = "opened"
    resource: str
    cwd: str
    language: str = "en"
    parent: str = ""
    """The session that this one was spawned from."""
    handed: tuple[tuple[str, str], ...] = ()
    """What each of the parent's layers was handed on as: fork, view or none."""

    def __post_init__(self) -> None:
        _tuple_pairs(self, "handed")


@frozen
class SessionImported(Happened):
    """The session was kept in a file of its own before, and comes with what was said there."""

    kind = "imported"
    file: str
    """Inside the home."""
    began: str = ""
    """When it really began, where that is known."""
    model: str = ""


@frozen
class MessageAdded(Happened):
    """A message exactly as it arrived, in the format it arrived in; but for cache marks, which are a call's."""

    kind = "message"
    wire: Mapping[str, Any]
    format: str = "openai"
    ours: bool = False
    """Memory's own answer to a call: a host that was not shown the call does not have it."""
    shown: Shown = ()
    """What the model knows all of, once it has read this, and did not before."""

    def __post_init__(self) -> None:
        _tuple_pairs(self, "shown")


@frozen
class HistorySpliced(Happened):
    """The last `inserted` messages of the line take the place of `[start, stop)`.

    One shape for every way a host's list can differ from ours: a regenerated or edited tail (stop is the end),
    a dropped beginning (start 0, nothing inserted), a summary put in front. What was replaced stays in the journal.
    """

    kind = "splice"
    start: int
    stop: int
    inserted: int


class Item(NamedTuple):
    """Something that must survive every rewrite of the history, in its own words. A tuple, since JSON knows tuples."""

    kind: str
    """`goal`, `rule`, `decision`, `request`, or `pinned` where the host has declared it."""
    text: str
    seq: int = 0
    """The message that said it; 0 where none did."""


@frozen
class Stub:
    """What is sent in the place of messages."""

    of: tuple[tuple[int, int], ...]
    """Numbers of those messages, as runs from first to last."""
    wires: tuple[Mapping[str, Any], ...]
    format: str = "openai"
    block: bool = False
    """It is a block of ours, in the place of whole messages, and not a message that became shorter."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", tuple((first, last) for first, last in self.of))
        object.__setattr__(self, "wires", tuple(self.wires))


@frozen
class Compacted(Happened):
    """Some messages are sent as stubs from now on. The conversation itself stays what it is."""

    kind = "compacted"
    target: str
    reason: str
    stubs: tuple[Stub, ...]
    strategy: str = "archive"
    messages: int = 0
    """Messages that left the view, or of which a part did."""
    tokens: int = 0
    """By how much the view became shorter."""
    archives: tuple[str, ...] = ()
    """Pages that have them, complete."""
    items: tuple[Item, ...] = ()
    """What has to survive, of all that ever left the view."""
    left_out: tuple[Item, ...] = ()
    """What had to as well, and is in the archive alone from now on: there was no room for it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stubs", tuple(_value(Stub, stub) for stub in self.stubs))
        object.__setattr__(self, "archives", tuple(self.archives))
        object.__setattr__(self, "items", tuple(Item(*item) for item in self.items))
        object.__setattr__(self, "left_out", tuple(Item(*item) for item in self.left_out))


@frozen
class CompactionLifted(Happened):
    """A compaction holds no longer: its messages are sent again, with all that came since."""

    kind = "lifted"
    of: int
    archives: tuple[str, ...] = ()
    """Its pages, which go as they came."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "archives", tuple(self.archives))


@frozen
class Retained(Happened):
    """The host declares what must survive, or no longer has to."""

    kind = "retained"
    item: Item
    kept: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "item", Item(*self.item))


@frozen
class Titled(Happened):
    """What a session is called in lists, where somebody has given it a name."""

    kind = "titled"
    title: str


@frozen
class SystemSet(Happened):
    """The host's system prompt, in its own shape: a text, content blocks, or leading messages."""

    kind = "system"
    system: str | Sequence[Mapping[str, Any]] | None
    format: str = "openai"


@frozen
class ToolsSet(Happened):
    """The tools of a call: the host's, and those that layers offer beside them."""

    kind = "tools"
    tools: Sequence[Mapping[str, Any]] | None
    offered: Sequence[Mapping[str, Any]] = ()


@frozen
class WordingSet(Happened):
    """The sentences that inmind itself says in prompts, so that an old prompt keeps the words it was sent with."""

    kind = "wording"
    wording: Mapping[str, str]


@frozen
class DocumentWritten(Happened):
    """A document has a new text, in full."""

    kind = "document"
    path: str
    text: str
    upkeep: bool = False
    """Memory's own entry, as an index line: it says nothing of how far the page covers the conversation."""


@frozen
class DocumentSetAside(Happened):
    """A file on disk could not be taken for what a person meant; its bytes are kept beside it."""

    kind = "set_aside"
    path: str
    reason: str
    kept_as: str


@frozen
class Configured(Happened):
    """A memory without a folder has new settings: what would be a home's config.toml, in full."""

    kind = "configured"
    path: str
    text: str


@frozen
class AnchoredBlock:
    """One layer's text as it stands in the anchored prefix."""

    layer: str
    text: str
    left_out: int = 0
    sources: tuple[str, ...] = ()
    banner: str = ""
    """A line of ours above the text."""
    tag: str = "memory"
    """What the block is called in the prompt."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))


@frozen
class AnchorMoved(Happened):
    """The memory blocks of the prefix, from now on sent byte for byte like this."""

    kind = "anchor"
    reason: str
    blocks: tuple[AnchoredBlock, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", tuple(_value(AnchoredBlock, block) for block in self.blocks))


@frozen
class TailChanged(Happened):
    """What the tail says of changes since the anchor, until it says something else."""

    kind = "tail"
    text: str
    fresh: tuple[AnchoredBlock, ...] = ()
    """Blocks of layers that had nothing to say when the anchor was set."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "fresh", tuple(_value(AnchoredBlock, block) for block in self.fresh))


@frozen
class PromptPrepared(Happened):
    """A call to the model is about to be made. With the state before it, this is the whole prompt.

    Only numbers that cannot be computed again stand here: what the counter said that day, what was cached.
    """

    kind = "prompt"
    digest: str
    used: int
    cached: int
    written: int
    changes: int = 0
    """Tokens of the tail that say what changed since the anchor."""
    behind: int = 0
    """Messages that stood behind the tail."""
    format: str = "openai"
    window: int = 128_000
    reserve: int = 4_096
    largest: tuple[tuple[int, int], ...] = ()
    """Message sequence number and tokens of the largest messages, when the meter named them."""
    marks: tuple[tuple[int, tuple[int | str, ...], Any], ...] = ()
    """Where the host has told the provider to cache up to: a message of those sent, the way to the mark, the mark."""
    shown: Shown | None = None
    """What of memory it shows whole; None where that is the same as in the prompt before."""

    def __post_init__(self) -> None:
        _tuple_pairs(self, "largest", "shown")
        if self.marks:
            object.__setattr__(self, "marks", tuple((at, tuple(path), mark) for at, path, mark in self.marks))

    @property
    def uncached(self) -> int:
        """The tail: it differs on every call."""
        return self.used - self.cached - self.written


@frozen
class UsageReported(Happened):
    kind = "usage"
    call: int
    counted: int
    """What we had counted for that call."""
    prompt_tokens: int
    cached_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""
    """The model that answered, as the provider calls it."""


@frozen
class ToolObserved(Happened):
    """What a host's tool did, seen from outside the conversation."""

    kind = "observed"
    tool: str
    arguments: Any
    result: Any
    error: bool = False
    call_id: str = ""


@frozen
class Occurred(Happened):
    """Something that belongs on the overview: a host says so, or rules have read it off what tools did."""

    kind = "occurred"
    what: str
    """`task_started`, `decision_made`, `bug_found` and so on."""
    text: str
    about: str = ""
    """What it is said of, where that is known: another of its kind about the same takes its place."""


class Part(NamedTuple):
    """An id inside a thing: an order's item, a booking's flight. It takes no place of its own in the window.

    A tuple, since a result may hold hundreds and JSON knows tuples.
    """

    type: str
    id: str
    name: str = ""
    beside: bool = False
    """It stood in the same list as the thing, not in it: it rides along, and is the first to go."""


@frozen
class ThingSeen:
    """A thing with an id, as somebody spoke of it: a tool's result, a call, a user, the host."""

    type: str
    id: str
    name: str = ""
    """What it is called there; empty where it was not named."""
    how: str = "seen"
    """`seen` alive, `listed` alive among others, `told` of by a result that is about it, `used` in a call or a message
    (both say nothing of its life), or `deleted`."""
    action: str = ""
    parent: tuple[str, str] | None = None
    parts: tuple[Part, ...] = ()
    more: int = 0
    """Ids that were inside of it, or beside it in its list, and are not among the parts."""
    aliases: tuple[str, ...] = ()
    pinned: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent", tuple(self.parent) if self.parent else None)
        object.__setattr__(self, "aliases", tuple(self.aliases))
        object.__setattr__(self, "parts", tuple(Part(*part) for part in self.parts))


@frozen
class Things(Happened):
    """What an event says of things, in their order."""

    things: tuple[ThingSeen, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "things", tuple(_value(ThingSeen, thing) for thing in self.things))


class EntitiesSeen(Things):
    """Things that were spoken of together, the best match first: they come to the front as one."""

    __slots__ = ()
    kind = "seen"


class EntitiesLeft(Things):
    """Things for which the window had no place any more, with all that is known of them: deep memory takes them in."""

    __slots__ = ()
    kind = "left"


class EntitiesRestored(Things):
    """The window as a checkpoint had it, in front of whatever is there."""

    __slots__ = ()
    kind = "restored"


@frozen
class EntityPinned(Happened):
    """A thing that stays in the window, or no longer has to."""

    kind = "pinned"
    type: str
    id: str
    pinned: bool = True


@frozen
class PadBegun(Happened):
    """A scratchpad begins with something: its template, or what a parent has handed on."""

    kind = "pad_begun"
    pad: str
    state: str | Mapping[str, Any]


@frozen
class PadWritten(Happened):
    """A scratchpad that holds text: this one from now on, or this behind what is there."""

    kind = "pad_written"
    pad: str
    text: str
    append: bool = False


@frozen
class PadMerged(Happened):
    """A scratchpad that holds an object: first what is removed, as paths of keys, then what is merged in."""

    kind = "pad_merged"
    pad: str
    values: Mapping[str, Any]
    delete: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "delete", tuple(tuple(path) for path in self.delete))


@frozen
class PadSetAside(Happened):
    """What a scratchpad held does not fit its schema any more: it begins anew, empty. The old state stays above."""

    kind = "pad_set_aside"
    pad: str
    reason: str


@frozen
class ChildCameHome(Happened):
    """The changes of a child session, up to an event of its stream, were brought into this one."""

    kind = "came_home"
    child: str
    seq: int
    brought: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    conflicts: tuple[Mapping[str, Any], ...] = ()
    """Path, and the values of both sides and of the beginning, where there were any."""
    things: int = 0
    pad: int | None = None
    """Up to which event its scratchpad was, where that could not be taken as things were."""

    def __post_init__(self) -> None:
        for name in ("brought", "joined", "conflicts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@frozen
class Crystallised(Happened):
    """Something to be found again, as long as there is memory: distilled by a dream, or brought along from elsewhere.

    Messages, pages and things need no such event: they are found as what they are.
    """

    kind = "crystallised"
    text: str
    importance: float = 0.5
    about: str = "general"
    """What kind of crystal it is: a fact, a preference, a goal and so on."""
    valence: float = 0.0
    valid_from: str = ""
    valid_to: str = ""
    consolidated: bool = False
    """It comes from what was gone through already."""


@frozen
class NoteTaken(Happened):
    """A note between two dreams: shown to the model until a dream has taken it in, and found again for ever."""

    kind = "note"
    text: str
    importance: float = 0.7
    about: str = "general"
    valence: float = 0.0
    valid_from: str = ""
    valid_to: str = ""


@frozen
class Searched(Happened):
    """Somebody looked something up in deep memory, and was shown these."""

    kind = "searched"
    query: str
    found: tuple[str, ...] = ()
    """Crystals, the best first."""
    limit: int = 10
    """How many it would have taken."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "found", tuple(self.found))


@frozen
class Consolidated(Happened):
    """A consolidation has gone through some crystals of a resource. Whatever is not named here stays as it was."""

    kind = "consolidated"
    upto: str
    """The last crystal that was gone through; empty where the pass came to its end."""
    merged: tuple[tuple[str, str], ...] = ()
    """Crystals that others say in nearly the same words, each with the one that stays."""
    superseded: tuple[tuple[str, str], ...] = ()
    """Crystals that are said anew, each with the newer one."""
    expired: tuple[str, ...] = ()
    """Crystals that faded: they leave search."""

    def __post_init__(self) -> None:
        _tuple_pairs(self, "merged", "superseded")
        object.__setattr__(self, "expired", tuple(self.expired))


@frozen
class CrystalFrozen(Happened):
    """A crystal that shall never fade, or may again."""

    kind = "frozen"
    id: str
    frozen: bool = True


class StateLine(NamedTuple):
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


class Gap(NamedTuple):
    """Something that the agent does not know and might want to find out."""

    topic: str
    why: str
    """`unanswered`, `not_found` or `mentioned_once`."""
    since: str
    renewed: str
    """When it last came up: two days later it is over."""
    sources: tuple[str, ...] = ()


class Skill(NamedTuple):
    """Something that the agent has done again and again."""

    name: str
    occurrences: int
    succeeded: int
    """How many of them came to a good end."""
    last: str
    """When it was last done."""
    sources: tuple[str, ...] = ()


class ProposedEdit(NamedTuple):
    """What a dream wants to do to MEMORY.md: see `state/edits.py`. A tuple, since JSON knows tuples."""

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


class Verdict(NamedTuple):
    """What a guard says of a state that was proposed."""

    guard: str
    passed: bool
    detail: str = ""


@frozen
class Seeded(Happened):
    """MEMORY.md was written by hand before the first dream: it was backed up, and became crystals in this commit."""

    kind = "seeded"
    text: str
    """As it was, word for word."""
    backup: str
    chunks: int = 0


@frozen
class DreamBegun(Happened):
    """A dream for this resource. The number of this event is its name; that and its holder are its fencing token: while
    it holds nobody else dreams, and once another has begun, or has taken it over, who held it can change nothing."""

    kind = "dream_begun"
    trigger: str
    """`asked`, `schedule` or `spike`."""
    until: str
    """How long it holds unless it says more."""
    by: str = ""
    """What proposes: `rules`, or the name of a model."""
    holder: str = ""
    """Whoever dreams it, by a name that nobody else has."""


@frozen
class DreamTaken(Happened):
    """A dream whose holder is not heard of any more is gone on with by another, from the last stage that it reached."""

    kind = "dream_taken"
    dream: int
    until: str
    holder: str
    by: str = ""


@frozen
class DreamWent(Happened):
    """A dream that is still going on says where it is, and holds for longer."""

    kind = "dream_went"
    dream: int
    phase: str
    until: str
    left: bool = False
    """Whoever held it had to go, and has left it to others as it was: it holds no longer."""


@frozen
class DreamGathered(Happened):
    """A dream has looked at all that it will be made of: with this the same can be put together again."""

    kind = "dream_gathered"
    dream: int
    until: str
    upto: int
    """Of the stream."""
    position: int
    """Of the whole journal."""
    at: str
    """The time that it goes by."""
    typed: str = ""
    """Digest of what people typed among the notes: a proposal names that by its place."""


@frozen
class DreamAnswered(Happened):
    """What a model has answered in a dream, word for word: it is paid for, and whoever goes on does not ask again."""

    kind = "dream_answered"
    dream: int
    until: str
    text: str
    by: str = ""
    cut: bool = False
    """It had more to say than it was allowed to."""
    tokens: tuple[int, int] = (0, 0)
    """Spent, whatever becomes of the dream."""
    price: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", tuple(self.tokens))


@frozen
class DreamProposed(Happened):
    """What a dream will do, whole: whoever goes on with it has to ask nobody again."""

    kind = "dream_proposed"
    dream: int
    until: str
    edits: tuple[ProposedEdit, ...] = ()
    by: str = ""
    """See `Dreamt`, for this and what follows."""
    fell_back: str = ""
    refused: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    """Spent beside what its answers have cost."""
    price: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "edits", tuple(row(ProposedEdit, edit) for edit in self.edits))
        for name in ("refused", "tokens"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@frozen
class DreamChecked(Happened):
    """The guards had nothing against the page that a proposal leads to. They are asked again when it is committed."""

    kind = "dream_checked"
    dream: int
    until: str
    verdicts: tuple[Verdict, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdicts", tuple(row(Verdict, one) for one in self.verdicts))


@frozen
class Dreamt(Happened):
    """A dream came to its end. Pages that it wrote and crystals that it made stand beside this in its commit."""

    kind = "dreamt"
    dream: int
    by: str
    """What has proposed: `rules`, or the name of a model."""
    upto: int
    """Notes up to this event of the stream were looked at: those that stood on the page are taken in."""
    position: int
    """Of the whole journal: what sessions have said up to there was looked at."""
    notes: tuple[str, ...] = ()
    """Notes that it has taken in."""
    lines: tuple[StateLine, ...] = ()
    """Lines that it has put on the page, or said anew."""
    gaps: tuple[Gap, ...] = ()
    """All that there are from now on."""
    skills: tuple[Skill, ...] = ()
    """All that are known from now on."""
    theirs: tuple[tuple[str, str], ...] = ()
    """What people wrote on the page, each entry with the crystal that this dream made of it."""
    replayed: tuple[str, ...] = ()
    """Crystals that were used since the last dream: they last longer by that."""
    insights: tuple[str, ...] = ()
    """What each insight is about that became a crystal here, so that it does not become one again."""
    verdicts: tuple[Verdict, ...] = ()
    refused: tuple[str, ...] = ()
    """What was proposed and not done, each with the reason."""
    inputs: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """What it was made of, in numbers and words: crystals by kind, levels, what came in meanwhile."""
    mood: str = ""
    fell_back: str = ""
    """Why rules did what a model was asked for."""
    tokens: tuple[int, int] = (0, 0)
    """Of the model: read and written."""
    price: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        _tuple_pairs(self, "theirs")
        for name in ("notes", "replayed", "insights", "refused", "tokens"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, kind in (("lines", StateLine), ("gaps", Gap), ("skills", Skill), ("verdicts", Verdict)):
            object.__setattr__(self, name, tuple(row(kind, one) for one in getattr(self, name)))


@frozen
class DreamFailed(Happened):
    """A dream changed nothing, and why."""

    kind = "dream_failed"
    dream: int
    phase: str
    code: str
    reason: str
    by: str = ""
    verdicts: tuple[Verdict, ...] = ()
    refused: tuple[str, ...] = ()
    tokens: tuple[int, int] = (0, 0)
    price: float = 0.0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for name in ("refused", "tokens"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "verdicts", tuple(Verdict(*one) for one in self.verdicts))


@frozen
class DreamUndone(Happened):
    """What a dream did to the pages was taken back, and the notes that it took in wait for another.

    Where dreaming stood before it is said here again: that could be folded only from the beginning.
    """

    kind = "dream_undone"
    dream: int
    last: int
    """The dream that is the last one again; 0 where there was none."""
    upto: int
    position: int
    lines: tuple[StateLine, ...] = ()
    gaps: tuple[Gap, ...] = ()
    skills: tuple[Skill, ...] = ()
    theirs: tuple[tuple[str, str], ...] = ()
    seed: tuple[str, ...] = ()
    insights: tuple[str, ...] = ()
    """What it had found, which may be found again."""
    crystals: tuple[str, ...] = ()
    """What it had made of that, which is found no more."""

    def __post_init__(self) -> None:
        _tuple_pairs(self, "theirs")
        for name in ("seed", "insights", "crystals"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, kind in (("lines", StateLine), ("gaps", Gap), ("skills", Skill)):
            object.__setattr__(self, name, tuple(row(kind, one) for one in getattr(self, name)))


DreamUnderway = DreamTaken | DreamWent | DreamGathered | DreamAnswered | DreamProposed | DreamChecked
"""What a dream tells of itself between its beginning and its end."""

HasRead = DreamGathered | Dreamt | DreamUndone
"""Events that say up to which position of the whole journal dreams have read: that is another in another journal."""


@frozen
class AffectRaised(Happened):
    """Something happened that is felt for a while."""

    kind = "affect"
    spike: str
    """`reward`, `error`, `social`, `achievement`, `urgency`, `sale`, `recall`, `missed`."""
    why: str = ""
    about: str = ""
    """What it was about, as rules know it again: a failure, and the success that ends it."""
    session: str = ""


@frozen
class Traded(Happened):
    """Money came or went, or something was offered."""

    kind = "traded"
    what: str
    """`earning`, `spending` or `listing`."""
    amount: str = "0"
    """Exact, as a decimal number."""
    currency: str = "USD"
    skill: str = ""
    with_whom: str = ""
    note: str = ""
    on: str = ""
    """When it happened, where that is not when it was told."""


@frozen
class Reverted(Happened):
    """The state is again what it was at `to`. Nothing is deleted: the events between stay readable."""

    kind = "reverted"
    to: int


KINDS: dict[str, type[Happened]] = {
    kind.kind: kind for kind in (*Happened.__subclasses__(), *Things.__subclasses__()) if hasattr(kind, "kind")
}

BOOKKEEPING = frozenset(
    {
        "anchor",
        "opened",
        "prompt",
        "reverted",
        "searched",
        "set_aside",
        "system",
        "tail",
        "titled",
        "tools",
        "usage",
        "wording",
    }
)
"""Kinds that `undo` steps over: what was done with the state and what a host is set up with, not changes to it."""


@frozen(kw_only=True)
class Draft:
    """An event that has not happened yet: the store gives it its number and its time."""

    what: Happened
    origin: Origin
    sources: tuple[str, ...] = ()
    trust: Trust | None = None
    """Least of the sources, where it is derived; the origin's own where it is not given."""

    @property
    def trusted(self) -> Trust:
        own = TRUST_OF[self.origin]
        return own if self.trust is None else min(own, self.trust)


@frozen(kw_only=True)
class Event:
    """Something that happened, once, at its place in its stream."""

    stream: str
    seq: int
    at: datetime
    what: Happened
    origin: Origin
    trust: Trust
    sources: tuple[str, ...] = ()
    opens: bool = True
    """The first of the events that were appended together: what `undo` takes back as one step."""

    @property
    def id(self) -> str:
        """Where it stands is what it is called, so an id costs no bytes and needs no index."""
        return f"{self.stream}#{self.seq}"

    @property
    def kind(self) -> str:
        return self.what.kind


S = TypeVar("S")


class Fold(Protocol[S]):
    """How one stream's events add up to a state. `apply` is pure: same state, same event, same answer."""

    version: int
    """Raised when the shape of the state changes: snapshots of another version are ignored, not migrated."""

    def initial(self) -> S: ...
    def apply(self, state: S, event: Event) -> S: ...

    def reverted(self, past: S, present: S, event: Event) -> S:
        """The state after an undo: the past one, but for what an undo cannot take back (money was spent)."""
        ...

    def freeze(self, state: S) -> dict[str, Any]:
        """The state for a snapshot, without the messages, which the journal already holds."""
        ...

    def thaw(self, frozen: Mapping[str, Any], messages: Iterable[Event]) -> S: ...


def encode(what: Happened) -> str:
    """A payload as the journal stores it: fields that have their default are not written."""
    return to_json(_written(what))


def decode(kind: str, body: str) -> Happened:
    """A payload out of the journal. Rows are data: a kind picks a class from `KINDS`, nothing else is made."""
    try:
        return KINDS[kind](**json.loads(body))
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(place=f"an event of kind {kind!r}", reason=str(error)) from error


UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""All that comes of reading a payload which is not what its fields are declared as: `decode` does not look into them,
and whoever takes events of others in has to go on."""


def to_json(value: object) -> str:
    """The one way we write JSON: compact, readable in any script."""
    return _COMPACT.encode(value)


def digest(*texts: str) -> str:
    """A short name for content: 64 bits, enough to tell versions apart (it is not a signature)."""
    hashed = blake2b(digest_size=8)
    for text in texts:
        hashed.update(text.encode("utf-8", "surrogatepass"))
        hashed.update(b"\x00")
    return hashed.hexdigest()


def digest_of(value: object) -> str:
    """The same for a JSON value, whatever the order of its keys."""
    return digest(_SORTED.encode(value))


def moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def microseconds(at: datetime) -> int:
    """Exact at any date; a float of seconds is not, from 2106 on."""
    return (at.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def _written(value: object) -> dict[str, Any]:
    fields = ((name, getattr(value, name), default) for name, default in _fields(type(value)))
    return {name: value for name, value, default in fields if default is dataclasses.MISSING or value != default}


@cache
def _fields(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((field.name, field.default) for field in dataclasses.fields(kind))


def _plain(value: object) -> object:
    """Nested payload values as JSON; anything else was let in by an edge that should have refused it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _written(value)
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] -- a JSON object
    raise TypeError(f"{type(value).__name__} is not a JSON value")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)
_SORTED = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, default=_plain)


V = TypeVar("V")


def _value(kind: type[V], value: V | Mapping[str, Any]) -> V:
    """A nested value as it was given, or as it comes out of the journal."""
    return kind(**value) if isinstance(value, Mapping) else value


def row(kind: type[V], values: Sequence[Any]) -> V:
    """A named tuple out of the journal, where tuples within are lists."""
    return kind(*(tuple(value) if isinstance(value, list) else value for value in values))  # pyright: ignore[reportUnknownArgumentType] -- a JSON list
