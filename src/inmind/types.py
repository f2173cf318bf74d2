"""Types that calls return or take, for annotations."""

from typing import TYPE_CHECKING

from inmind.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from inmind.core.events.base import Event
    from inmind.core.events.entities import EntityPart
    from inmind.core.events.session import RetainedItem, ToolObserved
    from inmind.core.messages.model import Wire
    from inmind.core.pricing import Rates
    from inmind.core.tokens import Counter
    from inmind.documents.scratchpad.merge3 import MergeConflict
    from inmind.dreams.affect.levels import Levels
    from inmind.dreams.economics import CurrencyTotals
    from inmind.dreams.model import Model
    from inmind.entities.entity import EntityRules
    from inmind.entities.window import Entities
    from inmind.history.compaction.build import CompactionReport, CompactionUndoReport, KeptItem
    from inmind.history.compaction.policy import Summarizer
    from inmind.jobs.consolidation import Consolidation
    from inmind.jobs.upkeep import Upkeep
    from inmind.memory.aio.resource import AsyncAffect, AsyncEconomics
    from inmind.memory.aio.session import AsyncScratchpad
    from inmind.memory.bundle.export_bundle import Exported
    from inmind.memory.bundle.import_bundle import Imported
    from inmind.memory.documents import Page
    from inmind.memory.listing import SessionInfo
    from inmind.prompt.explain import Explanation
    from inmind.prompt.report import PromptPreview, Report
    from inmind.search.embedders.base import Embedder
    from inmind.session.affect import Affect
    from inmind.session.children.merge_back import MergeReport
    from inmind.session.economics import Economics
    from inmind.session.scratchpad import Scratchpad, SetAside
    from inmind.session.state import ResourceState, SessionState
    from inmind.store.protocol import Clock

__all__ = [
    "Affect",
    "AsyncAffect",
    "AsyncEconomics",
    "AsyncScratchpad",
    "Clock",
    "CompactionReport",
    "CompactionUndoReport",
    "Consolidation",
    "Counter",
    "CurrencyTotals",
    "Economics",
    "Embedder",
    "Entities",
    "EntityPart",
    "EntityRules",
    "Event",
    "Explanation",
    "Exported",
    "Imported",
    "KeptItem",
    "Levels",
    "MergeConflict",
    "MergeReport",
    "Model",
    "Page",
    "PromptPreview",
    "Rates",
    "Report",
    "ResourceState",
    "RetainedItem",
    "Scratchpad",
    "SessionInfo",
    "SessionState",
    "SetAside",
    "Summarizer",
    "ToolObserved",
    "Upkeep",
    "Wire",
]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "inmind.core.events.base": ["Event"],
            "inmind.core.events.entities": ["EntityPart"],
            "inmind.core.events.session": ["RetainedItem", "ToolObserved"],
            "inmind.core.messages.model": ["Wire"],
            "inmind.core.pricing": ["Rates"],
            "inmind.core.tokens": ["Counter"],
            "inmind.documents.scratchpad.merge3": ["MergeConflict"],
            "inmind.dreams.affect.levels": ["Levels"],
            "inmind.dreams.economics": ["CurrencyTotals"],
            "inmind.dreams.model": ["Model"],
            "inmind.entities.entity": ["EntityRules"],
            "inmind.entities.window": ["Entities"],
            "inmind.history.compaction.policy": ["Summarizer"],
            "inmind.history.compaction.build": ["CompactionReport", "CompactionUndoReport", "KeptItem"],
            "inmind.jobs.consolidation": ["Consolidation"],
            "inmind.jobs.upkeep": ["Upkeep"],
            "inmind.memory.aio.resource": ["AsyncAffect", "AsyncEconomics"],
            "inmind.memory.aio.session": ["AsyncScratchpad"],
            "inmind.memory.bundle.export_bundle": ["Exported"],
            "inmind.memory.bundle.import_bundle": ["Imported"],
            "inmind.memory.documents": ["Page"],
            "inmind.memory.listing": ["SessionInfo"],
            "inmind.prompt.explain": ["Explanation"],
            "inmind.prompt.report": ["PromptPreview", "Report"],
            "inmind.search.embedders.base": ["Embedder"],
            "inmind.session.affect": ["Affect"],
            "inmind.session.children.merge_back": ["MergeReport"],
            "inmind.session.economics": ["Economics"],
            "inmind.session.scratchpad": ["Scratchpad", "SetAside"],
            "inmind.session.state": ["ResourceState", "SessionState"],
            "inmind.store.protocol": ["Clock"],
        },
    )
