"""Events of documents: pages, settings, overview entries, scratchpads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inmind.core.events.base import EventPayload
from inmind.core.frozen import frozen


@frozen
class DocumentWritten(EventPayload):
    """A document has a new text, in full."""

    kind = "document"
    path: str
    text: str
    upkeep: bool = False
    """Memory's own entry, as an index line: it says nothing of how far the page covers the conversation."""


@frozen
class DocumentSetAside(EventPayload):
    """A file on disk could not be taken for what a person meant; its bytes are kept beside it."""

    kind = "set_aside"
    path: str
    reason: str
    saved_as: str


@frozen
class SettingsWritten(EventPayload):
    """A memory without a folder has new settings: what would be a home's config.toml, in full."""

    kind = "configured"
    path: str
    text: str


@frozen
class OverviewEvent(EventPayload):
    """Something that belongs on the overview: a host says so, or rules have read it off what tools did."""

    kind = "occurred"
    event_type: str
    """`task_started`, `decision_made`, `bug_found` and so on."""
    text: str
    subject: str = ""
    """What it is said of, where that is known: another of its kind about the same takes its place."""


@frozen
class ScratchpadStarted(EventPayload):
    """A scratchpad begins with something: its template, or what a parent has handed on."""

    kind = "pad_begun"
    scratchpad: str
    state: str | Mapping[str, Any]


@frozen
class ScratchpadWritten(EventPayload):
    """A scratchpad that holds text: this one from now on, or this behind what is there."""

    kind = "pad_written"
    scratchpad: str
    text: str
    append: bool = False


@frozen
class ScratchpadMerged(EventPayload):
    """A scratchpad that holds an object: first what is removed, as paths of keys, then what is merged in."""

    kind = "pad_merged"
    scratchpad: str
    values: Mapping[str, Any]
    delete: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "delete", tuple(tuple(path) for path in self.delete))


@frozen
class ScratchpadSetAside(EventPayload):
    """What a scratchpad held does not fit its schema any more: it begins anew, empty. The old state stays above."""

    kind = "pad_set_aside"
    scratchpad: str
    reason: str
