"""Working memory for LLM agents: what an agent has in mind right now, in order, in budget, and never lost."""

from typing import TYPE_CHECKING

from inmind.entities.entity import Entity
from inmind.entities.rules import EntityRules
from inmind.entities.window import Entities
from inmind.errors import InmindError
from inmind.journal import DocumentWritten, Draft, Event, Item, Origin, Part, ToolObserved, Trust
from inmind.memory import Memory, SessionInfo, default_layers
from inmind.mind import Mind
from inmind.prompt.layer import (
    Budget,
    DocumentLayer,
    EntityLayer,
    Layer,
    Moment,
    NotesLayer,
    PlainLayer,
    Recalled,
    Slot,
    StateLayer,
    TextLayer,
)
from inmind.prompt.ledger import Ledger, Rates
from inmind.prompt.policy import CompressionPolicy
from inmind.stores.base import Appended

if TYPE_CHECKING:
    from inmind.books import Books
    from inmind.clients import wrap
    from inmind.consolidator import Consolidation
    from inmind.crystals.crystal import Crystal
    from inmind.crystals.embed import Embedder
    from inmind.crystals.note import Note
    from inmind.crystals.query import Hit
    from inmind.desk import Scratchpad, SetAside
    from inmind.dreams import Dream
    from inmind.entities.ground import CallCheck
    from inmind.entities.resolve.resolution import Resolution
    from inmind.family.homecoming import MergeReport
    from inmind.feelings import Affect
    from inmind.housekeeping import Upkeep
    from inmind.prompt.compacting.report import CompactionReport, KeptItem, Lifted
    from inmind.prompt.explain import Explanation
    from inmind.prompt.pads import ScratchpadLayer
    from inmind.prompt.recorded import HostCall, Recorded
    from inmind.prompt.report import Prompt, Report
    from inmind.scratchpad.reconcile import Clash
    from inmind.session import Session
    from inmind.settings import Settings

__all__ = [
    "Affect",
    "Appended",
    "Books",
    "Budget",
    "CallCheck",
    "Clash",
    "CompactionReport",
    "CompressionPolicy",
    "Consolidation",
    "Crystal",
    "DocumentLayer",
    "DocumentWritten",
    "Draft",
    "Dream",
    "Embedder",
    "Entities",
    "Entity",
    "EntityLayer",
    "EntityRules",
    "Event",
    "Explanation",
    "Hit",
    "HostCall",
    "InmindError",
    "Item",
    "KeptItem",
    "Layer",
    "Ledger",
    "Lifted",
    "Memory",
    "MergeReport",
    "Mind",
    "Moment",
    "Note",
    "NotesLayer",
    "Origin",
    "Part",
    "PlainLayer",
    "Prompt",
    "Rates",
    "Recalled",
    "Recorded",
    "Report",
    "Resolution",
    "Scratchpad",
    "ScratchpadLayer",
    "Session",
    "SessionInfo",
    "SetAside",
    "Settings",
    "Slot",
    "StateLayer",
    "TextLayer",
    "ToolObserved",
    "Trust",
    "Upkeep",
    "default_layers",
    "wrap",
]


_LATE = {
    "Affect": "inmind.feelings",
    "Books": "inmind.books",
    "CallCheck": "inmind.entities.ground",
    "Clash": "inmind.scratchpad.reconcile",
    "CompactionReport": "inmind.prompt.compacting.report",
    "Consolidation": "inmind.consolidator",
    "Crystal": "inmind.crystals.crystal",
    "Dream": "inmind.dreams",
    "Embedder": "inmind.crystals.embed",
    "Explanation": "inmind.prompt.explain",
    "Hit": "inmind.crystals.query",
    "HostCall": "inmind.prompt.recorded",
    "KeptItem": "inmind.prompt.compacting.report",
    "Lifted": "inmind.prompt.compacting.report",
    "MergeReport": "inmind.family.homecoming",
    "Note": "inmind.crystals.note",
    "Prompt": "inmind.prompt.report",
    "Recorded": "inmind.prompt.recorded",
    "Report": "inmind.prompt.report",
    "Resolution": "inmind.entities.resolve.resolution",
    "Scratchpad": "inmind.desk",
    "ScratchpadLayer": "inmind.prompt.pads",
    "Session": "inmind.session",
    "SetAside": "inmind.desk",
    "Settings": "inmind.settings",
    "Upkeep": "inmind.housekeeping",
    "wrap": "inmind.clients",
}
"""What not everybody who imports us asks for, and where it is."""


def __getattr__(name: str) -> object:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATE[name]), name)
