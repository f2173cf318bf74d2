"""The same memory for programs on an event loop: the same names, awaited.

    from inmind import aio

    async with aio.Memory.open() as memory:
        session = await memory.session("deploy-42", resource="ada")
        prompt = await session.prepare([{"role": "user", "content": "Add a hero section to it"}])
        for entity in await session.entities:
            print(entity)

Every method is awaited, and so is every attribute that looks into the store; what is known without looking stays as it
is (`session.id`, `memory.home`), and `id in memory` is `await memory.contains(id)`. What comes back are the values that
the synchronous names answer with, and other twins where those hand out objects. `sync` is the object that a twin stands
for, of which there is one implementation: nothing is decided here.

The loop is asyncio's. Nothing belongs to a particular one: a memory may be used from several, each in its thread.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inmind.memory.aio.memory import AsyncMemory
    from inmind.memory.aio.resource import AsyncAffect, AsyncEconomics
    from inmind.memory.aio.session import AsyncScratchpad, AsyncSession

__all__ = ["AsyncAffect", "AsyncEconomics", "AsyncMemory", "AsyncScratchpad", "AsyncSession"]

_PLACES = {
    "Affect": "inmind.memory.aio.resource",
    "Books": "inmind.memory.aio.resource",
    "Memory": "inmind.memory.aio.memory",
    "Scratchpad": "inmind.memory.aio.session",
    "Session": "inmind.memory.aio.session",
}
"""Where each is. A memory does without the others until somebody asks for one, as the synchronous one does."""

if not TYPE_CHECKING:  # to a type checker this would say that every name is here

    def __getattr__(name: str) -> object:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = globals()[name] = getattr(import_module(_PLACES[name]), name)
        return found
