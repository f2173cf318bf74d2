"""Working memory for LLM agents: what an agent has in mind right now, in order, in budget, and never lost."""

from inmind.errors import InmindError
from inmind.journal import DocumentWritten, Draft, Event, Origin, Trust
from inmind.memory import Memory, SessionInfo
from inmind.mind import Mind
from inmind.prompt.explain import Explanation
from inmind.prompt.layer import Budget, DocumentLayer, Layer, Moment, PlainLayer, Recalled, Slot, TextLayer
from inmind.prompt.ledger import Ledger, Rates
from inmind.prompt.report import Prompt, Report
from inmind.session import Session
from inmind.stores.base import Appended

__all__ = [
    "Appended",
    "Budget",
    "DocumentLayer",
    "DocumentWritten",
    "Draft",
    "Event",
    "Explanation",
    "InmindError",
    "Layer",
    "Ledger",
    "Memory",
    "Mind",
    "Moment",
    "Origin",
    "PlainLayer",
    "Prompt",
    "Rates",
    "Recalled",
    "Report",
    "Session",
    "SessionInfo",
    "Slot",
    "TextLayer",
    "Trust",
]
