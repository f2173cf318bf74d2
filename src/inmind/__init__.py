"""Working memory for LLM agents: what an agent has in mind right now, in order, in budget, and never lost."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inmind.core.events.base import Draft, Event, Origin, Trust
    from inmind.core.events.documents import DocumentWritten
    from inmind.core.events.entities import EntityPart
    from inmind.core.events.session import RetainedItem, ToolObserved
    from inmind.core.pricing import Rates, TokenUsage
    from inmind.core.settings import Settings
    from inmind.documents.scratchpad.merge3 import Clash
    from inmind.entities.config import EntityRules
    from inmind.entities.entity import Entity
    from inmind.entities.grounding import CallCheck
    from inmind.entities.references.result import Resolution
    from inmind.entities.window import Entities
    from inmind.errors import InmindError
    from inmind.history.compaction.policy import CompressionPolicy
    from inmind.history.compaction.report import CompactionReport, CompactionUndoReport, KeptItem
    from inmind.integrations.wrap import wrap
    from inmind.jobs.consolidation import Consolidation
    from inmind.jobs.dreaming.history import Dream
    from inmind.jobs.upkeep import Upkeep
    from inmind.memory.bundle.export_bundle import Exported
    from inmind.memory.bundle.import_bundle import Imported
    from inmind.memory.documents import Page
    from inmind.memory.listing import SessionInfo
    from inmind.memory.memory import Memory, default_layers
    from inmind.prompt.explain import Explanation
    from inmind.prompt.layers.base import Budget, Layer, Moment, PlainLayer, Recalled, Slot
    from inmind.prompt.layers.builtin import DocumentLayer, EntityLayer, NotesLayer, StateLayer, TextLayer
    from inmind.prompt.layers.scratchpad import ScratchpadLayer
    from inmind.prompt.report import Preview, Prompt, Report
    from inmind.search.crystal import Crystal
    from inmind.search.embedders.base import Embedder
    from inmind.search.note import Note
    from inmind.search.query import Hit
    from inmind.session.affect import Affect
    from inmind.session.children.merge_back import MergeReport
    from inmind.session.economics import Economics
    from inmind.session.recorded import HostCall, RecordResult
    from inmind.session.scratchpad import Scratchpad, SetAside
    from inmind.session.session import Session
    from inmind.session.state import SessionState
    from inmind.session.tools.tools import ToolResult
    from inmind.store.protocol import Appended

__all__ = [
    "Affect",
    "Appended",
    "Economics",
    "Budget",
    "CallCheck",
    "ToolResult",
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
    "EntityPart",
    "EntityRules",
    "Event",
    "Explanation",
    "Exported",
    "Hit",
    "HostCall",
    "Imported",
    "InmindError",
    "KeptItem",
    "Layer",
    "TokenUsage",
    "CompactionUndoReport",
    "Memory",
    "MergeReport",
    "Moment",
    "Note",
    "NotesLayer",
    "Origin",
    "Page",
    "PlainLayer",
    "Preview",
    "Prompt",
    "Rates",
    "Recalled",
    "RecordResult",
    "Report",
    "Resolution",
    "RetainedItem",
    "Scratchpad",
    "ScratchpadLayer",
    "Session",
    "SessionInfo",
    "SessionState",
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
    "Affect": "inmind.session.affect",
    "Appended": "inmind.store.protocol",
    "Books": "inmind.session.economics",
    "Budget": "inmind.prompt.layers.base",
    "CallCheck": "inmind.entities.grounding",
    "Called": "inmind.session.tools.tools",
    "Clash": "inmind.documents.scratchpad.merge3",
    "CompactionReport": "inmind.history.compaction.report",
    "CompressionPolicy": "inmind.history.compaction.policy",
    "Consolidation": "inmind.jobs.consolidation",
    "Crystal": "inmind.search.crystal",
    "DocumentLayer": "inmind.prompt.layers.base",
    "DocumentWritten": "inmind.core.events.documents",
    "Draft": "inmind.core.events.base",
    "Dream": "inmind.jobs.dreaming.history",
    "Embedder": "inmind.search.embedders.base",
    "Entities": "inmind.entities.window",
    "Entity": "inmind.entities.entity",
    "EntityLayer": "inmind.prompt.layers.base",
    "EntityPart": "inmind.core.events.entities",
    "EntityRules": "inmind.entities.config",
    "Event": "inmind.core.events.base",
    "Explanation": "inmind.prompt.explain",
    "Exported": "inmind.memory.bundle.export_bundle",
    "Hit": "inmind.search.query",
    "HostCall": "inmind.session.recorded",
    "Imported": "inmind.memory.bundle.import_bundle",
    "InmindError": "inmind.errors",
    "KeptItem": "inmind.history.compaction.report",
    "Layer": "inmind.prompt.layers.base",
    "Ledger": "inmind.core.pricing",
    "Lifted": "inmind.history.compaction.report",
    "Memory": "inmind.memory.memory",
    "MergeReport": "inmind.session.children.merge_back",
    "Moment": "inmind.prompt.layers.base",
    "Note": "inmind.search.note",
    "NotesLayer": "inmind.prompt.layers.base",
    "Origin": "inmind.core.events.base",
    "Page": "inmind.memory.documents",
    "PlainLayer": "inmind.prompt.layers.base",
    "Preview": "inmind.prompt.report",
    "Prompt": "inmind.prompt.report",
    "Rates": "inmind.core.pricing",
    "Recalled": "inmind.prompt.layers.base",
    "Recorded": "inmind.session.recorded",
    "Report": "inmind.prompt.report",
    "Resolution": "inmind.entities.references.result",
    "RetainedItem": "inmind.core.events.session",
    "Scratchpad": "inmind.session.scratchpad",
    "ScratchpadLayer": "inmind.prompt.layers.scratchpad",
    "Session": "inmind.session.session",
    "SessionInfo": "inmind.memory.listing",
    "SessionState": "inmind.session.state",
    "SetAside": "inmind.session.scratchpad",
    "Settings": "inmind.core.settings",
    "Slot": "inmind.prompt.layers.base",
    "StateLayer": "inmind.prompt.layers.base",
    "TextLayer": "inmind.prompt.layers.base",
    "ToolObserved": "inmind.core.events.session",
    "Trust": "inmind.core.events.base",
    "Upkeep": "inmind.jobs.upkeep",
    "default_layers": "inmind.memory.memory",
    "wrap": "inmind.integrations.wrap",
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
