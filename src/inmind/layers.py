"""The layers of a prompt, and what a custom layer needs: see docs/how-to/write-a-layer.md."""

from typing import TYPE_CHECKING

from inmind.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from inmind.core.events.base import Draft as Draft
    from inmind.core.events.documents import DocumentWritten as DocumentWritten
    from inmind.memory.session_opener import default_layers as default_layers
    from inmind.prompt.layers.base import Budget as Budget
    from inmind.prompt.layers.base import Layer as Layer
    from inmind.prompt.layers.base import LayerContext as LayerContext
    from inmind.prompt.layers.base import LayerText as LayerText
    from inmind.prompt.layers.base import PlainLayer as PlainLayer
    from inmind.prompt.layers.base import Slot as Slot
    from inmind.prompt.layers.builtin import DocumentLayer as DocumentLayer
    from inmind.prompt.layers.builtin import EntityLayer as EntityLayer
    from inmind.prompt.layers.builtin import NotesLayer as NotesLayer
    from inmind.prompt.layers.builtin import StateLayer as StateLayer
    from inmind.prompt.layers.builtin import TextLayer as TextLayer
    from inmind.prompt.layers.scratchpad import ScratchpadLayer as ScratchpadLayer

if not TYPE_CHECKING:  # a type checker would accept any name
    __all__, __getattr__, __dir__ = lazy_exports(
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
