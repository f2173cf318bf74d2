"""Events of a session: its conversation, then its prompts, then its entities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from inmind.core.events.base import EventPayload
from inmind.core.frozen import frozen

ShownVersions = tuple[tuple[str, str], ...]
"""Pages, and the scratchpad, each with the event that wrote the version that was shown."""

THREAD = "thread"
"""Strategy of a compaction whose messages the provider holds."""


@frozen
class SessionOpened(EventPayload):
    kind = "opened"
    stored_names = (("inheritance", "handed"),)
    resource: str
    cwd: str
    language: str = "en"
    parent: str = ""
    """The session that spawned this one."""
    inheritance: tuple[tuple[str, str], ...] = ()
    """Each of the parent's layers and how it was passed on: fork, view or none."""


@frozen
class SessionImported(EventPayload):
    """The session was imported from a file of an older version, with its messages."""

    kind = "imported"
    stored_names = (("started_at", "began"),)
    file: str
    """Path inside the home."""
    started_at: str = ""
    """When the session started, if known."""
    model: str = ""


@frozen
class MessageAdded(EventPayload):
    """A message exactly as it arrived, in its provider format.

    Only cache marks are removed: they belong to one call.
    """

    kind = "message"
    stored_names = (("from_memory", "ours"), ("shown_versions", "shown"))
    wire: Mapping[str, Any]
    format: str = "openai"
    from_memory: bool = False
    """True for memory's own result of a tool call. A host that was not shown the call does not have this message."""
    shown_versions: ShownVersions = ()
    """Documents that the model has seen in full after this message, and had not before."""
    reply_id: str = ""
    """The provider's id of the reply that this message is from. A thread that the provider holds continues from it."""


@frozen
class HistorySpliced(EventPayload):
    """The last `inserted` messages of the conversation replace `[start, stop)`.

    One form for every way a host's list can differ from ours: a regenerated or edited end (stop is the end), a dropped
    beginning (start 0, nothing inserted), a summary inserted at the start. Replaced messages stay in the journal.
    """

    kind = "splice"
    start: int
    stop: int
    inserted: int


class RetainedItem(NamedTuple):
    """A statement that must survive every compaction word for word.

    A tuple, because JSON stores tuples directly.
    """

    kind: str
    """`goal`, `earlier_goal`, `request`, `decision`, `open_decision`, `rule`, or `pinned` if the host declared it."""
    text: str
    seq: int = 0
    """The message that contains it. 0 if none does."""


@frozen
class Stub:
    """Messages that are sent in place of compacted ones."""

    stored_names = (("message_ranges", "of"), ("messages", "wires"), ("is_block", "block"))
    message_ranges: tuple[tuple[int, int], ...]
    """Sequence numbers of the compacted messages, as ranges from first to last."""
    messages: tuple[Mapping[str, Any], ...]
    format: str = "openai"
    is_block: bool = False
    """True for a block that replaces whole messages, False for a shortened message."""


@frozen
class Compacted(EventPayload):
    """Some messages are sent as stubs from now on. The conversation itself does not change."""

    kind = "compacted"
    target: str
    reason: str
    stubs: tuple[Stub, ...]
    strategy: str = "archive"
    messages: int = 0
    """The number of messages that were removed or shortened."""
    tokens: int = 0
    """The number of tokens by which the prompt became shorter."""
    archives: tuple[str, ...] = ()
    """Archive pages that hold the complete messages."""
    items: tuple[RetainedItem, ...] = ()
    """Retained items of all messages compacted so far."""
    left_out: tuple[RetainedItem, ...] = ()
    """Retained items for which there was no room. They are only in the archive from now on."""
    provider_item: int = 0
    """The message with the provider's own compaction, which is sent instead; in a thread, the last message that the
    provider holds. 0 if inmind compacted."""
    summary: str = ""
    """The summary of all removed messages: the model's, or extracted. The stub has it if the strategy is summarize."""

    @property
    def is_thread(self) -> bool:
        """True if the provider holds the messages in a thread and gives them to the model itself."""
        return self.strategy == THREAD


@frozen
class CompactionUndone(EventPayload):
    """A compaction was undone: its messages are sent again, followed by all later ones."""

    kind = "lifted"
    stored_names = (("compaction_seq", "of"),)
    compaction_seq: int
    archives: tuple[str, ...] = ()
    """Its archive pages, which are removed."""


@frozen
class Retained(EventPayload):
    """The host declared an item as retained, or released it."""

    kind = "retained"
    stored_names = (("retain", "kept"),)
    item: RetainedItem
    retain: bool = True


@frozen
class SessionTitled(EventPayload):
    """The title of a session in lists."""

    kind = "titled"
    title: str


@frozen
class SystemSet(EventPayload):
    """The host's system prompt in its original form: text, content blocks, or leading messages."""

    kind = "system"
    system: str | Sequence[Mapping[str, Any]] | None
    format: str = "openai"


@frozen
class ToolsSet(EventPayload):
    """The tools of a call: those of the host and those offered by layers."""

    kind = "tools"
    stored_names = (("layer_tools", "offered"),)
    tools: Sequence[Mapping[str, Any]] | None
    layer_tools: Sequence[Mapping[str, Any]] = ()


@frozen
class ToolObserved(EventPayload):
    """A call of one of the host's tools, reported outside the conversation."""

    kind = "observed"
    tool: str
    arguments: Any
    result: Any
    error: bool = False
    call_id: str = ""


@frozen
class ChildMerged(EventPayload):
    """The changes of a child session, up to one of its events, were merged into this session."""

    kind = "came_home"
    stored_names = (("taken", "brought"), ("combined", "joined"), ("entities", "things"), ("scratchpad_seq", "pad"))
    child: str
    seq: int
    taken: tuple[str, ...] = ()
    """Documents that were taken from the child."""
    combined: tuple[str, ...] = ()
    """Documents that combine changes of both sides."""
    conflicts: tuple[Mapping[str, Any], ...] = ()
    """Path, the values of both sides and, if there was one, the common value."""
    entities: int = 0
    """The number of entities that were taken from the child."""
    scratchpad_seq: int | None = None
    """The child's event up to which its scratchpad was merged, if it could not be merged completely."""


@frozen
class Reverted(EventPayload):
    """The state is that of event `to` again.

    No event is deleted: those in between stay readable.
    """

    kind = "reverted"
    to: int


# -- prompts -------------------------------------------------------------------------------------------------


@frozen
class WordingSet(EventPayload):
    """The fixed sentences of prompts. An old prompt is rebuilt with the words it was sent with."""

    kind = "wording"
    wording: Mapping[str, str]


@frozen
class AnchoredBlock:
    """The text of one layer in the anchored prefix."""

    layer: str
    text: str
    left_out: int = 0
    sources: tuple[str, ...] = ()
    banner: str = ""
    """A line that is placed above the text."""
    tag: str = "memory"
    """The name of the block in the prompt."""


@frozen
class AnchorMoved(EventPayload):
    """New memory blocks of the prefix.

    They are sent byte for byte like this until the next anchor.
    """

    kind = "anchor"
    reason: str
    blocks: tuple[AnchoredBlock, ...]


@frozen
class TailChanged(EventPayload):
    """Changes of memory since the anchor and the changes before, as the model reads them.

    The text stays with the message that carries it, until the anchor moves or the message changes. An empty text only
    drops earlier ones whose message has changed.
    """

    kind = "tail"
    stored_names = (("new_blocks", "fresh"),)
    text: str
    new_blocks: tuple[AnchoredBlock, ...] = ()
    """Blocks of layers that had none; the text is followed by them."""
    place: int | None = None
    """Index of the carrier among the sent messages.

    None in older events: there the text is all changes since the anchor, at the end of each prompt until the next one.
    """
    view_digest: str = ""
    """Digest of the sent messages up to the carrier."""
    changed_blocks: tuple[AnchoredBlock, ...] = ()
    """The blocks that the text is about, as they are now."""
    kept: int = 0
    """Number of earlier texts that are still in place."""


@frozen
class PromptPrepared(EventPayload):
    """A prompt was prepared.

    Together with the state before it, this event is the complete prompt.

    It holds only numbers that cannot be computed again: token counts at that time and what was cached.
    """

    kind = "prompt"
    stored_names = (("messages_after_tail", "behind"), ("cache_marks", "marks"), ("shown_versions", "shown"))
    digest: str
    used: int
    cached: int
    written: int
    changes: int = 0
    """Tokens of the part of the tail that reports changes since the anchor."""
    messages_after_tail: int = 0
    """The number of messages after the tail."""
    format: str = "openai"
    window: int = 128_000
    reserve: int = 4_096
    largest: tuple[tuple[int, int], ...] = ()
    """Sequence number and tokens of the largest messages, if the meter named them."""
    cache_marks: tuple[tuple[int, tuple[int | str, ...], Any], ...] = ()
    """Cache marks set by the host: index of the message sent, path to the mark, and the mark."""
    shown_versions: ShownVersions | None = None
    """Documents that this prompt shows in full. None: the same as in the prompt before."""
    memory_index: int = 0
    """The number of messages before memory, if the provider's compaction is among the messages."""
    room: int = 0
    """Tokens that the window had for memory and history; 0 in older prompts, whose meter compares all with the window.
    """
    room_used: int = 0
    thread: str = ""
    """The reply or conversation that the prompt continues, if the provider holds the messages before."""

    @property
    def uncached(self) -> int:
        """Tokens of the tail, which differs on every call."""
        return self.used - self.cached - self.written


@frozen
class UsageReported(EventPayload):
    """Token usage that the provider reported for a call."""

    kind = "usage"
    call: int
    counted: int
    """The tokens that inmind had counted for that call."""
    prompt_tokens: int
    cached_tokens: int = 0
    completion_tokens: int = 0
    model: str = ""
    """The provider's name of the model."""


# -- entities ------------------------------------------------------------------------------------------------


class EntityPart(NamedTuple):
    """An id inside an entity: an order's item, a booking's flight.

    It takes no slot in the window.

    A tuple, because a result may hold hundreds and JSON stores tuples directly.
    """

    type: str
    id: str
    name: str = ""
    from_same_list: bool = False
    """True if it was in the same list as the entity, not inside it. Such parts are dropped first."""


@frozen
class EntitySighting:
    """An entity as one tool result, tool call, user message or host call described it."""

    stored_names = (("omitted_parts", "more"),)
    type: str
    id: str
    name: str = ""
    """Its name in that source. Empty if it had none."""
    how: str = "seen"
    """`seen` (exists), `listed` (exists, one of several), `told` (a result is about it), `used` (in a call or a
    message) or `deleted`. `told` and `used` do not say whether it exists."""
    action: str = ""
    parent: tuple[str, str] | None = None
    parts: tuple[EntityPart, ...] = ()
    omitted_parts: int = 0
    """The number of further ids inside it, or in its list, that are not among the parts."""
    aliases: tuple[str, ...] = ()
    pinned: bool = False
    record: Mapping[str, Any] = field(default_factory=dict[str, Any], hash=False)
    """Its own fields that tell it apart, and those of its parts, nested as they were; without id and name."""


@frozen
class EntitySightings(EventPayload):
    """The entities of one event, in order."""

    stored_names = (("sightings", "things"),)
    sightings: tuple[EntitySighting, ...]


class EntitiesSeen(EntitySightings):
    """Entities that were mentioned together, best match first.

    They move to the front of the window together.
    """

    __slots__ = ()
    kind = "seen"


class EntitiesEvicted(EntitySightings):
    """Entities evicted from the window, with everything known about them. They stay searchable."""

    __slots__ = ()
    kind = "left"


class EntitiesRestored(EntitySightings):
    """The entities of a checkpoint, inserted at the front of the window."""

    __slots__ = ()
    kind = "restored"


@frozen
class EntityPinned(EventPayload):
    """An entity was pinned, so that it stays in the window, or unpinned."""

    kind = "pinned"
    type: str
    id: str
    pinned: bool = True
