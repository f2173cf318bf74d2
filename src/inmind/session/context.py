"""The values that all parts of a session share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from inmind.core.frozen import frozen
from inmind.core.paths import ANONYMOUS
from inmind.core.tokens import Counter
from inmind.entities.entity import EntityRules
from inmind.errors import InvalidInput
from inmind.history.compaction.policy import DEFAULT_POLICY, CompressionPolicy, Summarizer
from inmind.prompt.budget import WindowLimits
from inmind.prompt.layers.base import Layer
from inmind.session.backend import DocumentFiles, SessionMeta, Transcript
from inmind.session.state import ResourceState, SessionState
from inmind.store.protocol import Store
from inmind.store.stream import Stream

if TYPE_CHECKING:
    from inmind.history.view import TokenMeter, ViewBuilder
    from inmind.session.entities import SiblingEntities
    from inmind.session.notes import NoteWriter
    from inmind.session.scratchpad import Scratchpad
    from inmind.session.search import MemorySearch


@frozen(kw_only=True)
class SessionConfig:
    """Options of a session. A child has those of its parent."""

    layers: tuple[Layer, ...]
    limits: WindowLimits
    counter: Counter
    entities: EntityRules
    memory_tools: bool
    compression: CompressionPolicy = DEFAULT_POLICY
    summarizer: Summarizer | None = None
    affect: bool = True
    """True if messages and tool results change the affect of the resource."""


@frozen(kw_only=True)
class SessionContext:
    """Streams, files, options and caches of one session; `Memory` creates it."""

    id: str
    store: Store
    stream: Stream[SessionState]
    resource: Stream[ResourceState]
    files: DocumentFiles
    resource_files: DocumentFiles
    transcript: Transcript
    meta: SessionMeta
    siblings: SiblingEntities
    scratchpad: Scratchpad | None
    ancestors: tuple[Stream[SessionState], ...]
    """Streams of the parent session, its parent, and so on."""
    config: SessionConfig
    session_stream: Callable[[str], Stream[SessionState]]
    notes: NoteWriter
    search: MemorySearch
    schedule_embedding: Callable[[], None]
    """Schedules the embedding of new crystals in the background."""
    meter: TokenMeter
    view: ViewBuilder
    """Builds the history of a prompt. `view.read_message` parses each message once."""

    @property
    def resource_name(self) -> str:
        """Name of the resource that owns the session."""
        opened = self.stream.state.opened
        return opened.resource if opened else ""

    @property
    def is_anonymous(self) -> bool:
        """True if the session was opened without a resource.

        It then must not read resource-level memory.
        """
        return self.resource_name == ANONYMOUS


MAX_INTEGER = 2**53
"""Larger integers do not survive JSON in every language."""


def whole_number(value: object, field: str, *, minimum: int = 0) -> int:
    """Check an integer that a host passed."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= MAX_INTEGER:
        printable = value if not isinstance(value, int) or value.bit_length() < 100 else f"{value.bit_length()} bits"
        raise InvalidInput(field=field, value=printable, expected=f"a whole number from {minimum} to {MAX_INTEGER}")
    return value
