"""Working memory for LLM agents: prompts on budget, entities, notes, search and dreams."""

from typing import TYPE_CHECKING

from inmind.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from inmind.core.events.base import Origin as Origin
    from inmind.core.events.base import Trust as Trust
    from inmind.core.settings import Settings as Settings
    from inmind.core.tokens import Usage as Usage
    from inmind.entities.entity import Entity as Entity
    from inmind.entities.grounding import CallCheck as CallCheck
    from inmind.entities.references.result import Resolution as Resolution
    from inmind.errors import InmindError as InmindError
    from inmind.history.compaction.policy import CompressionPolicy as CompressionPolicy
    from inmind.integrations.wrap import wrap as wrap
    from inmind.jobs.dream_history import Dream as Dream
    from inmind.memory.aio import AsyncMemory as AsyncMemory
    from inmind.memory.aio import AsyncResource as AsyncResource
    from inmind.memory.aio import AsyncSession as AsyncSession
    from inmind.memory.memory import Memory as Memory
    from inmind.memory.resource import Resource as Resource
    from inmind.memory.session_opener import default_layers as default_layers
    from inmind.prompt.layers.base import Layer as Layer
    from inmind.prompt.report import Prompt as Prompt
    from inmind.search.crystal import Crystal as Crystal
    from inmind.search.note import Note as Note
    from inmind.search.query import Hit as Hit
    from inmind.session.replies import HostCall as HostCall
    from inmind.session.replies import Recorded as Recorded
    from inmind.session.session import Session as Session
    from inmind.session.tools.base import ToolResult as ToolResult

if not TYPE_CHECKING:  # a type checker would accept any name
    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "inmind.core.events.base": ["Origin", "Trust"],
            "inmind.core.settings": ["Settings"],
            "inmind.core.tokens": ["Usage"],
            "inmind.entities.entity": ["Entity"],
            "inmind.entities.grounding": ["CallCheck"],
            "inmind.entities.references.result": ["Resolution"],
            "inmind.errors": ["InmindError"],
            "inmind.history.compaction.policy": ["CompressionPolicy"],
            "inmind.integrations.wrap": ["wrap"],
            "inmind.jobs.dream_history": ["Dream"],
            "inmind.memory.aio": ["AsyncMemory", "AsyncResource", "AsyncSession"],
            "inmind.memory.memory": ["Memory"],
            "inmind.memory.resource": ["Resource"],
            "inmind.memory.session_opener": ["default_layers"],
            "inmind.prompt.layers.base": ["Layer"],
            "inmind.prompt.report": ["Prompt"],
            "inmind.search.crystal": ["Crystal"],
            "inmind.search.note": ["Note"],
            "inmind.search.query": ["Hit"],
            "inmind.session.replies": ["HostCall", "Recorded"],
            "inmind.session.session": ["Session"],
            "inmind.session.tools.base": ["ToolResult"],
        },
    )
