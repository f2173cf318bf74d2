"""What a session is put together from, for itself and for whom it delegates to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from inmind.entities.rules import EntityRules
from inmind.frozen import frozen
from inmind.mind import Belongings, Mind
from inmind.prompt.layer import Layer
from inmind.prompt.plan import Limits
from inmind.prompt.policy import DEFAULT_POLICY, CompressionPolicy, Summarizer
from inmind.stores.abode import About, Files, Lines
from inmind.stores.base import Store
from inmind.stores.stream import Stream
from inmind.tokens import Counter

if TYPE_CHECKING:
    from inmind.attention import Attention
    from inmind.crystals.query import Hit, Query
    from inmind.desk import Scratchpad
    from inmind.notebook import Notebook


@frozen(kw_only=True)
class Setup:
    """How a host wants a session; a child has its parent's."""

    layers: tuple[Layer, ...]
    limits: Limits
    counter: Counter
    entities: EntityRules
    memory_tools: bool
    compression: CompressionPolicy = DEFAULT_POLICY
    summarizer: Summarizer | None = None
    affect: bool = True
    """Whether what is said and done in it is felt."""


@frozen(kw_only=True)
class Parts:
    """The parts of one session; `Memory` puts them together."""

    id: str
    store: Store
    stream: Stream[Mind]
    resource: Stream[Belongings]
    files: Files
    resource_files: Files
    transcript: Lines
    meta: About
    attention: Attention
    scratchpad: Scratchpad | None
    ancestors: tuple[Stream[Mind], ...]
    """Streams of the sessions that this one comes from, its parent first."""
    setup: Setup
    stream_of: Callable[[str], Stream[Mind]]
    notebook: Notebook
    search: Callable[[Query, Sequence[str]], list[Hit]]
    """What deep memory answers, of some resources."""
    keep_found: Callable[[], None]
    """See to it, in the background, that what is new here will also be found by its meaning."""
