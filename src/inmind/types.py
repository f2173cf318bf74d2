"""Types that calls return or take, for annotations."""

from typing import TYPE_CHECKING

from inmind.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from inmind.core.events.base import Event as Event
    from inmind.core.events.session import EntityPart as EntityPart
    from inmind.core.events.session import RetainedItem as RetainedItem
    from inmind.core.events.session import ToolObserved as ToolObserved
    from inmind.core.messages.model import Wire as Wire
    from inmind.core.tokens import Counter as Counter
    from inmind.core.tokens import Rates as Rates
    from inmind.documents.scratchpad.state import MergeConflict as MergeConflict
    from inmind.dreams.affect import Levels as Levels
    from inmind.dreams.economics import CurrencyTotals as CurrencyTotals
    from inmind.dreams.models import Model as Model
    from inmind.entities.entity import EntityRules as EntityRules
    from inmind.entities.window import Entities as Entities
    from inmind.history.compaction.policy import CompactionReport as CompactionReport
    from inmind.history.compaction.policy import CompactionUndoReport as CompactionUndoReport
    from inmind.history.compaction.policy import KeptItem as KeptItem
    from inmind.history.compaction.policy import Summarizer as Summarizer
    from inmind.jobs.consolidation import Consolidation as Consolidation
    from inmind.jobs.upkeep import Upkeep as Upkeep
    from inmind.memory.aio import AsyncAffect as AsyncAffect
    from inmind.memory.aio import AsyncEconomics as AsyncEconomics
    from inmind.memory.aio import AsyncScratchpad as AsyncScratchpad
    from inmind.memory.bundle.export_bundle import Exported as Exported
    from inmind.memory.bundle.import_bundle import Imported as Imported
    from inmind.memory.documents import Page as Page
    from inmind.memory.listing import SessionInfo as SessionInfo
    from inmind.memory.resource_ledger import Affect as Affect
    from inmind.memory.resource_ledger import Economics as Economics
    from inmind.prompt.report import Explanation as Explanation
    from inmind.prompt.report import PromptPreview as PromptPreview
    from inmind.prompt.report import Report as Report
    from inmind.search.embedders.base import Embedder as Embedder
    from inmind.session.children import MergeReport as MergeReport
    from inmind.session.scratchpad import Scratchpad as Scratchpad
    from inmind.session.scratchpad import SetAside as SetAside
    from inmind.session.state import ResourceState as ResourceState
    from inmind.session.state import SessionState as SessionState
    from inmind.store.protocol import Clock as Clock

if not TYPE_CHECKING:  # a type checker would accept any name
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "inmind.core.events.base": ["Event"],
            "inmind.core.events.session": ["EntityPart", "RetainedItem", "ToolObserved"],
            "inmind.core.messages.model": ["Wire"],
            "inmind.core.tokens": ["Counter", "Rates"],
            "inmind.documents.scratchpad.state": ["MergeConflict"],
            "inmind.dreams.affect": ["Levels"],
            "inmind.dreams.economics": ["CurrencyTotals"],
            "inmind.dreams.models": ["Model"],
            "inmind.entities.entity": ["EntityRules"],
            "inmind.entities.window": ["Entities"],
            "inmind.history.compaction.policy": ["CompactionReport", "CompactionUndoReport", "KeptItem", "Summarizer"],
            "inmind.jobs.consolidation": ["Consolidation"],
            "inmind.jobs.upkeep": ["Upkeep"],
            "inmind.memory.aio": ["AsyncAffect", "AsyncEconomics", "AsyncScratchpad"],
            "inmind.memory.bundle.export_bundle": ["Exported"],
            "inmind.memory.bundle.import_bundle": ["Imported"],
            "inmind.memory.documents": ["Page"],
            "inmind.memory.listing": ["SessionInfo"],
            "inmind.prompt.report": ["Explanation", "PromptPreview", "Report"],
            "inmind.search.embedders.base": ["Embedder"],
            "inmind.memory.resource_ledger": ["Affect", "Economics"],
            "inmind.session.children": ["MergeReport"],
            "inmind.session.scratchpad": ["Scratchpad", "SetAside"],
            "inmind.session.state": ["ResourceState", "SessionState"],
            "inmind.store.protocol": ["Clock"],
        },
    )
