"""Events of documents: pages, settings, overview entries, scratchpads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inmind.core.events.base import EventPayload
from inmind.core.frozen import frozen


@frozen
class DocumentWritten(EventPayload):
    """A document has a new text, stored in full."""

    kind = "document"
    path: str
    text: str
    upkeep: bool = False
    """True for an entry written by memory itself, such as an index line. It does not count for the page's coverage."""


@frozen
class DocumentSetAside(EventPayload):
    """A file on disk could not be read as a document. Its bytes were saved under another name."""

    kind = "set_aside"
    stored_names = (("saved_as", "kept_as"),)
    path: str
    reason: str
    saved_as: str


@frozen
class SettingsWritten(EventPayload):
    """New settings of a memory without a folder: the text that would be config.toml, in full."""

    kind = "configured"
    path: str
    text: str


@frozen
class OverviewEvent(EventPayload):
    """An entry for the overview, reported by the host or detected by rules in tool results."""

    kind = "occurred"
    stored_names = (("event_type", "what"), ("subject", "about"))
    event_type: str
    """`task_started`, `decision_made`, `bug_found` and so on."""
    text: str
    subject: str = ""
    """The subject of the entry, if known. It replaces an earlier entry of the same type and subject."""


@frozen
class ScratchpadStarted(EventPayload):
    """The initial state of a scratchpad: the template, or the state inherited from a parent."""

    kind = "pad_begun"
    stored_names = (("scratchpad", "pad"),)
    scratchpad: str
    state: str | Mapping[str, Any]


@frozen
class ScratchpadWritten(EventPayload):
    """A text scratchpad was replaced by this text, or this text was appended to it."""

    kind = "pad_written"
    stored_names = (("scratchpad", "pad"),)
    scratchpad: str
    text: str
    append: bool = False


@frozen
class ScratchpadMerged(EventPayload):
    """An update of a scratchpad that holds an object: `delete` is applied first, then `values`."""

    kind = "pad_merged"
    stored_names = (("scratchpad", "pad"),)
    scratchpad: str
    values: Mapping[str, Any]
    delete: tuple[tuple[str, ...], ...] = ()
    """Paths of keys."""


@frozen
class ScratchpadSetAside(EventPayload):
    """The stored state no longer fits the schema, so the scratchpad is empty again.

    The old state stays in the journal.
    """

    kind = "pad_set_aside"
    stored_names = (("scratchpad", "pad"),)
    scratchpad: str
    reason: str
