"""Working memory for LLM agents: prompts on budget, entities, notes, search and dreams."""

from typing import TYPE_CHECKING

from inmind.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from inmind.core.events.base import Origin, Trust
    from inmind.core.pricing import Usage
    from inmind.core.settings import Settings
    from inmind.entities.entity import Entity
    from inmind.entities.grounding import CallCheck
    from inmind.entities.references.result import Resolution
    from inmind.errors import InmindError
    from inmind.history.compaction.policy import CompressionPolicy
    from inmind.integrations.wrap import wrap
    from inmind.jobs.dream_history import Dream
    from inmind.memory.aio.memory import AsyncMemory
    from inmind.memory.aio.resource import AsyncResource
    from inmind.memory.aio.session import AsyncSession
    from inmind.memory.memory import Memory
    from inmind.memory.resource import Resource
    from inmind.memory.session_opener import default_layers
    from inmind.prompt.layers.base import Layer
    from inmind.prompt.report import Prompt
    from inmind.search.crystal import Crystal
    from inmind.search.note import Note
    from inmind.search.query import Hit
    from inmind.session.recorded import HostCall, Recorded
    from inmind.session.session import Session
    from inmind.session.tools.base import ToolResult

__all__ = [
    "AsyncMemory",
    "AsyncResource",
    "AsyncSession",
    "CallCheck",
    "CompressionPolicy",
    "Crystal",
    "Dream",
    "Entity",
    "Hit",
    "HostCall",
    "InmindError",
    "Layer",
    "Memory",
    "Note",
    "Origin",
    "Prompt",
    "Recorded",
    "Resolution",
    "Resource",
    "Session",
    "Settings",
    "ToolResult",
    "Trust",
    "Usage",
    "default_layers",
    "wrap",
]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "inmind.core.events.base": ["Origin", "Trust"],
            "inmind.core.pricing": ["Usage"],
            "inmind.core.settings": ["Settings"],
            "inmind.entities.entity": ["Entity"],
            "inmind.entities.grounding": ["CallCheck"],
            "inmind.entities.references.result": ["Resolution"],
            "inmind.errors": ["InmindError"],
            "inmind.history.compaction.policy": ["CompressionPolicy"],
            "inmind.integrations.wrap": ["wrap"],
            "inmind.jobs.dream_history": ["Dream"],
            "inmind.memory.aio.memory": ["AsyncMemory"],
            "inmind.memory.aio.resource": ["AsyncResource"],
            "inmind.memory.aio.session": ["AsyncSession"],
            "inmind.memory.memory": ["Memory"],
            "inmind.memory.resource": ["Resource"],
            "inmind.memory.session_opener": ["default_layers"],
            "inmind.prompt.layers.base": ["Layer"],
            "inmind.prompt.report": ["Prompt"],
            "inmind.search.crystal": ["Crystal"],
            "inmind.search.note": ["Note"],
            "inmind.search.query": ["Hit"],
            "inmind.session.recorded": ["HostCall", "Recorded"],
            "inmind.session.session": ["Session"],
            "inmind.session.tools.base": ["ToolResult"],
        },
    )
