"""Events of a conversation: messages, compactions, system prompts, tools, child sessions, undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inmind.core.events.base import EventPayload, coerce_pairs, nested_value
from inmind.core.frozen import frozen

ShownVersions = tuple[tuple[str, str], ...]
"""Pages, and the scratchpad, each with the event that wrote what was shown of it."""


@frozen
class SessionOpened(EventPayload):
    kind = "opened"
    resource: str
    cwd: str
    language: str = "en"
    parent: str = ""
    """The session that this one was spawned from."""
    inheritance: tuple[tuple[str, str], ...] = ()
    """What each of the parent's layers was handed on as: fork, view or none."""

    def __post_init__(self) -> None:
        coerce_pairs(self, "inheritance")


@frozen
class SessionImported(EventPayload):
    """The session was kept in a file of its own before, and comes with what was said there."""

    kind = "imported"
    file: str
    """Inside the home."""
    started_at: str = ""
    """When it really began, where that is known."""
    model: str = ""


@frozen
class MessageAdded(EventPayload):
    """A message exactly as it arrived, in the format it arrived in; but for cache marks, which are a call's."""

    kind = "message"
    wire: Mapping[str, Any]
    format: str = "openai"
    from_memory: bool = False
    """Memory's own answer to a call: a host that was not shown the call does not have it."""
    shown_versions: ShownVersions = ()
    """What the model knows all of, once it has read this, and did not before."""

    def __post_init__(self) -> None:
        coerce_pairs(self, "shown_versions")


@frozen
class HistorySpliced(EventPayload):
    """The last `inserted` messages of the line take the place of `[start, stop)`.

    One shape for every way a host's list can differ from ours: a regenerated or edited tail (stop is the end),
    a dropped beginning (start 0, nothing inserted), a summary put in front. What was replaced stays in the journal.
    """

    kind = "splice"
    start: int
    stop: int
    inserted: int


class RetainedItem(NamedTuple):
    """Something that must survive every rewrite of the history, in its own words. A tuple, since JSON knows tuples."""

    kind: str
    """`goal`, `rule`, `decision`, `request`, or `pinned` where the host has declared it."""
    text: str
    seq: int = 0
    """The message that said it; 0 where none did."""


@frozen
class Stub:
    """What is sent in the place of messages."""

    message_ranges: tuple[tuple[int, int], ...]
    """Numbers of those messages, as runs from first to last."""
    messages: tuple[Mapping[str, Any], ...]
    format: str = "openai"
    is_block: bool = False
    """It is a block of ours, in the place of whole messages, and not a message that became shorter."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message_ranges", tuple((first, last) for first, last in self.message_ranges))
        object.__setattr__(self, "messages", tuple(self.messages))


@frozen
class Compacted(EventPayload):
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
    items: tuple[RetainedItem, ...] = ()
    """What has to survive, of all that ever left the view."""
    left_out: tuple[RetainedItem, ...] = ()
    """What had to as well, and is in the archive alone from now on: there was no room for it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "stubs", tuple(nested_value(Stub, stub) for stub in self.stubs))
        object.__setattr__(self, "archives", tuple(self.archives))
        object.__setattr__(self, "items", tuple(RetainedItem(*item) for item in self.items))
        object.__setattr__(self, "left_out", tuple(RetainedItem(*item) for item in self.left_out))


@frozen
class CompactionUndone(EventPayload):
    """A compaction holds no longer: its messages are sent again, with all that came since."""

    kind = "lifted"
    compaction_seq: int
    archives: tuple[str, ...] = ()
    """Its pages, which go as they came."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "archives", tuple(self.archives))


@frozen
class Retained(EventPayload):
    """The host declares what must survive, or no longer has to."""

    kind = "retained"
    item: RetainedItem
    retain: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "item", RetainedItem(*self.item))


@frozen
class SessionTitled(EventPayload):
    """What a session is called in lists, where somebody has given it a name."""

    kind = "titled"
    title: str


@frozen
class SystemSet(EventPayload):
    """The host's system prompt, in its own shape: a text, content blocks, or leading messages."""

    kind = "system"
    system: str | Sequence[Mapping[str, Any]] | None
    format: str = "openai"


@frozen
class ToolsSet(EventPayload):
    """The tools of a call: the host's, and those that layers offer beside them."""

    kind = "tools"
    tools: Sequence[Mapping[str, Any]] | None
    layer_tools: Sequence[Mapping[str, Any]] = ()


@frozen
class ToolObserved(EventPayload):
    """What a host's tool did, seen from outside the conversation."""

    kind = "observed"
    tool: str
    arguments: Any
    result: Any
    error: bool = False
    call_id: str = ""


@frozen
class ChildMerged(EventPayload):
    """The changes of a child session, up to an event of its stream, were brought into this one."""

    kind = "came_home"
    child: str
    seq: int
    taken: tuple[str, ...] = ()
    combined: tuple[str, ...] = ()
    conflicts: tuple[Mapping[str, Any], ...] = ()
    """Path, and the values of both sides and of the beginning, where there were any."""
    entities: int = 0
    scratchpad_seq: int | None = None
    """Up to which event its scratchpad was, where that could not be taken as things were."""

    def __post_init__(self) -> None:
        for name in ("taken", "combined", "conflicts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@frozen
class Reverted(EventPayload):
    """The state is again what it was at `to`. Nothing is deleted: the events between stay readable."""

    kind = "reverted"
    to: int
