"""Working memory for LLM agents: what an agent has in mind right now, in order, in budget, and never lost."""

from typing import TYPE_CHECKING

from inmind.entities.entity import Entity
from inmind.entities.rules import EntityRules
from inmind.entities.window import Entities
from inmind.errors import InmindError
from inmind.journal import DocumentWritten, Draft, Event, Origin, Part, ToolObserved, Trust
from inmind.memory import Memory, SessionInfo
from inmind.mind import Mind
from inmind.prompt.explain import Explanation
from inmind.prompt.layer import Budget, DocumentLayer, EntityLayer, Layer, Moment, PlainLayer, Recalled, Slot, TextLayer
from inmind.prompt.ledger import Ledger, Rates
from inmind.prompt.report import Prompt, Report
from inmind.session import Session
from inmind.stores.base import Appended

if TYPE_CHECKING:
    from inmind.entities.ground import CallCheck
    from inmind.entities.resolve.resolution import Resolution

__all__ = [
    "Appended",
    "Budget",
    "CallCheck",
    "DocumentLayer",
    "DocumentWritten",
    "Draft",
    "Entities",
    "Entity",
    "EntityLayer",
    "EntityRules",
    "Event",
    "Explanation",
    "InmindError",
    "Layer",
    "Ledger",
    "Memory",
    "Mind",
    "Moment",
    "Origin",
    "Part",
    "PlainLayer",
    "Prompt",
    "Rates",
    "Recalled",
    "Report",
    "Resolution",
    "Session",
    "SessionInfo",
    "Slot",
    "TextLayer",
    "ToolObserved",
    "Trust",
]


def __getattr__(name: str) -> object:
    """What only answers with: not everybody who imports us asks."""
    if name == "CallCheck":
        from inmind.entities.ground import CallCheck

        return CallCheck
    if name == "Resolution":
        from inmind.entities.resolve.resolution import Resolution

        return Resolution
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
