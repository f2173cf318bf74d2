"""Working memory for LLM agents: what an agent has in mind right now, in order, in budget, and never lost."""

from inmind.errors import InmindError
from inmind.journal import Origin, Trust
from inmind.memory import Memory
from inmind.prompt.explain import Explanation
from inmind.prompt.layer import Budget, DocumentLayer, Layer, Moment, PlainLayer, Recalled, Slot, TextLayer
from inmind.prompt.ledger import Ledger, Rates
from inmind.prompt.report import Prompt, Report
from inmind.session import Session

__all__ = [
    "Budget",
    "DocumentLayer",
    "Explanation",
    "InmindError",
    "Layer",
    "Ledger",
    "Memory",
    "Moment",
    "Origin",
    "PlainLayer",
    "Prompt",
    "Rates",
    "Recalled",
    "Report",
    "Session",
    "Slot",
    "TextLayer",
    "Trust",
]
