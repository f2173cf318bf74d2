"""The layers of a prompt, and what a custom layer needs: see docs/how-to/write-a-layer.md."""

from typing import TYPE_CHECKING

from inmind.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from inmind.core.events.base import Draft
    from inmind.core.events.documents import DocumentWritten
    from inmind.memory.session_opener import default_layers
    from inmind.prompt.layers.base import Budget, Layer, LayerContext, LayerText, PlainLayer, Slot
    from inmind.prompt.layers.builtin import DocumentLayer, EntityLayer, NotesLayer, StateLayer, TextLayer
    from inmind.prompt.layers.scratchpad import ScratchpadLayer

__all__ = [
    "Budget",
    "DocumentLayer",
    "DocumentWritten",
    "Draft",
    "EntityLayer",
    "Layer",
    "LayerContext",
    "LayerText",
    "NotesLayer",
    "PlainLayer",
    "ScratchpadLayer",
    "Slot",
    "StateLayer",
    "TextLayer",
    "default_layers",
]

if not TYPE_CHECKING:  # a type checker would accept any name
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "inmind.core.events.base": ["Draft"],
            "inmind.core.events.documents": ["DocumentWritten"],
            "inmind.memory.session_opener": ["default_layers"],
            "inmind.prompt.layers.base": ["Budget", "Layer", "LayerContext", "LayerText", "PlainLayer", "Slot"],
            "inmind.prompt.layers.builtin": ["DocumentLayer", "EntityLayer", "NotesLayer", "StateLayer", "TextLayer"],
            "inmind.prompt.layers.scratchpad": ["ScratchpadLayer"],
        },
    )
