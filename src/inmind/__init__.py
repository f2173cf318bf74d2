"""Working memory for LLM agents: what an agent has in mind right now, in order, in budget, and never lost."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inmind.books import Books
    from inmind.bundle.exporting import Exported
    from inmind.bundle.importing import Imported
    from inmind.clients import wrap
    from inmind.consolidator import Consolidation
    from inmind.crystals.crystal import Crystal
    from inmind.crystals.embed import Embedder
    from inmind.crystals.note import Note
    from inmind.crystals.query import Hit
    from inmind.desk import Scratchpad, SetAside
    from inmind.dreams import Dream
    from inmind.editing import Page
    from inmind.entities.entity import Entity
    from inmind.entities.ground import CallCheck
    from inmind.entities.resolve.resolution import Resolution
    from inmind.entities.rules import EntityRules
    from inmind.entities.window import Entities
    from inmind.errors import InmindError
    from inmind.family.homecoming import MergeReport
    from inmind.feelings import Affect
    from inmind.housekeeping import Upkeep
    from inmind.journal import DocumentWritten, Draft, Event, Item, Origin, Part, ToolObserved, Trust
    from inmind.listing import SessionInfo
    from inmind.memory import Memory, default_layers
    from inmind.mind import Mind
    from inmind.prompt.compacting.report import CompactionReport, KeptItem, Lifted
    from inmind.prompt.explain import Explanation
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
    from inmind.prompt.pads import ScratchpadLayer
    from inmind.prompt.policy import CompressionPolicy
    from inmind.prompt.recorded import HostCall, Recorded
    from inmind.prompt.report import Preview, Prompt, Report
    from inmind.scratchpad.reconcile import Clash
    from inmind.session import Session
    from inmind.settings import Settings
    from inmind.stores.base import Appended
    from inmind.tools import Called

__all__ = [
    "Affect",
    "Appended",
    "Books",
    "Budget",
    "CallCheck",
    "Called",
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
    "Exported",
    "Hit",
    "HostCall",
    "Imported",
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
    "Page",
    "Part",
    "PlainLayer",
    "Preview",
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


_PLACES = {
    "Affect": "inmind.feelings",
    "Appended": "inmind.stores.base",
    "Books": "inmind.books",
    "Budget": "inmind.prompt.layer",
    "CallCheck": "inmind.entities.ground",
    "Called": "inmind.tools",
    "Clash": "inmind.scratchpad.reconcile",
    "CompactionReport": "inmind.prompt.compacting.report",
    "CompressionPolicy": "inmind.prompt.policy",
    "Consolidation": "inmind.consolidator",
    "Crystal": "inmind.crystals.crystal",
    "DocumentLayer": "inmind.prompt.layer",
    "DocumentWritten": "inmind.journal",
    "Draft": "inmind.journal",
    "Dream": "inmind.dreams",
    "Embedder": "inmind.crystals.embed",
    "Entities": "inmind.entities.window",
    "Entity": "inmind.entities.entity",
    "EntityLayer": "inmind.prompt.layer",
    "EntityRules": "inmind.entities.rules",
    "Event": "inmind.journal",
    "Explanation": "inmind.prompt.explain",
    "Exported": "inmind.bundle.exporting",
    "Hit": "inmind.crystals.query",
    "HostCall": "inmind.prompt.recorded",
    "Imported": "inmind.bundle.importing",
    "InmindError": "inmind.errors",
    "Item": "inmind.journal",
    "KeptItem": "inmind.prompt.compacting.report",
    "Layer": "inmind.prompt.layer",
    "Ledger": "inmind.prompt.ledger",
    "Lifted": "inmind.prompt.compacting.report",
    "Memory": "inmind.memory",
    "MergeReport": "inmind.family.homecoming",
    "Mind": "inmind.mind",
    "Moment": "inmind.prompt.layer",
    "Note": "inmind.crystals.note",
    "NotesLayer": "inmind.prompt.layer",
    "Origin": "inmind.journal",
    "Page": "inmind.editing",
    "Part": "inmind.journal",
    "PlainLayer": "inmind.prompt.layer",
    "Preview": "inmind.prompt.report",
    "Prompt": "inmind.prompt.report",
    "Rates": "inmind.prompt.ledger",
    "Recalled": "inmind.prompt.layer",
    "Recorded": "inmind.prompt.recorded",
    "Report": "inmind.prompt.report",
    "Resolution": "inmind.entities.resolve.resolution",
    "Scratchpad": "inmind.desk",
    "ScratchpadLayer": "inmind.prompt.pads",
    "Session": "inmind.session",
    "SessionInfo": "inmind.listing",
    "SetAside": "inmind.desk",
    "Settings": "inmind.settings",
    "Slot": "inmind.prompt.layer",
    "StateLayer": "inmind.prompt.layer",
    "TextLayer": "inmind.prompt.layer",
    "ToolObserved": "inmind.journal",
    "Trust": "inmind.journal",
    "Upkeep": "inmind.housekeeping",
    "default_layers": "inmind.memory",
    "wrap": "inmind.clients",
}
"""Where each is. It is loaded when somebody asks for it: a command that shows its help asks for none."""

if not TYPE_CHECKING:  # to a type checker this would say that every name is here

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = globals()[name] = getattr(import_module(_PLACES[name]), name)
        return found


def __dir__() -> list[str]:
    return [*globals(), *__all__]
