"""The built-in layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from inmind.core.events.base import Trust
from inmind.core.text import TruncatedText
from inmind.core.tokens import Counter
from inmind.documents.document import (
    MEMORY_PAGE_PATH,
    NOTES_PAGE_PATH,
    OVERVIEW_PATH,
    Scope,
    resolve_path,
    validate_text,
)
from inmind.documents.notes_page import parse_notes, remove_pieces, strip_heading, truncate_to_newest
from inmind.documents.overview.maintain import without_archive_lines
from inmind.documents.overview.page import has_content, prompt_text, size_warning, without_empty_sections
from inmind.dreams.affect.state import AUTO_MARK, is_auto_note_about
from inmind.dreams.page.limits import split_prompt_characters
from inmind.entities.entity import Entity
from inmind.entities.render import BANNER, counts_only, render_changes, render_lines
from inmind.prompt.layers.base import Budget, LayerContext, LayerText, PlainLayer, Slot

NOTES_BANNER = "Unsynthesized Notes (pending dream consolidation)"


STATE_POINTER = "[Full working memory available via memory_search]"


@dataclass(frozen=True)
class TextLayer(PlainLayer):
    """A fixed text of the host."""

    name: str
    text: str
    slot: int = 120
    budget: Budget = Budget()

    def __post_init__(self) -> None:
        validate_text(self.text, field="text")

    def recall(self, context: LayerContext) -> LayerText | None:  # noqa: ARG002 -- the protocol's
        return LayerText(self.text) if self.text else None


@dataclass(frozen=True)
class DocumentLayer(PlainLayer):
    """A document: overview.md of a session, MEMORY.md of a resource."""

    name: str
    path: str
    slot: int = Slot.OVERVIEW
    budget: Budget = Budget(min=200, max=1_500)
    scope: Scope = "thread"

    def __post_init__(self) -> None:
        resolve_path(self.path)

    def recall(self, context: LayerContext) -> LayerText | None:
        document = context.documents.get(self.path)
        if document is None:
            return None
        text = prompt_text(document.text) if has_content(document.text) else ""
        if self.path == OVERVIEW_PATH:
            text = without_empty_sections(without_archive_lines(text) if context.window < _SMALL_WINDOW else text)
        # Not in the banner: as a line of the text it is part of the line diff in the tail.
        warning = size_warning(document.text, context.language) if self.path == OVERVIEW_PATH else ""
        return LayerText(
            f"{warning}\n{text}" if warning else text,
            sources=(document.source,),
            pointer=f"[cut to fit: the rest is in {self.path}]",
            trust=document.trust,
        )


_SMALL_WINDOW = 16_000
"""Below it the overview is sent without what the stubs in the conversation say: archived pages and their summary."""

_RESOURCE_PAGE_BUDGET = Budget(min=200, max=8_500)
"""Pages of a resource are limited by characters. Even at one token per character this budget does not cut."""


@dataclass(frozen=True)
class StateLayer(DocumentLayer):
    """MEMORY.md, limited by characters depending on the window and the waiting notes."""

    name: str = "state"
    path: str = MEMORY_PAGE_PATH
    slot: int = Slot.STATE
    budget: Budget = _RESOURCE_PAGE_BUDGET
    scope: Scope = "resource"

    def recall(self, context: LayerContext) -> LayerText | None:
        page = super().recall(context)
        if page is None or not page.text:
            return None
        max_characters, _ = split_prompt_characters(context.window, page.text, _notes_text(context))
        kept = (
            TruncatedText(page.text, 0)
            if len(page.text) <= max_characters
            else _truncate_state(page.text, max_characters, len)
        )
        return LayerText(
            kept.text,
            left_out=kept.lines_left_out,
            sources=page.sources,
            pointer=STATE_POINTER,
            trust=page.trust,
            shorten=lambda budget, count: _truncate_state(kept.text, budget, count),
            # A new note leaves less room for the page; that is not a change of the page.
            describe_changes=lambda block, _: "" if block.sources == page.sources else None,
        )


@dataclass(frozen=True)
class NotesLayer(DocumentLayer):
    """Notes that no dream has consolidated yet; the newest if not all fit."""

    name: str = "notes"
    path: str = NOTES_PAGE_PATH
    slot: int = Slot.STATE
    budget: Budget = _RESOURCE_PAGE_BUDGET
    scope: Scope = "resource"

    def recall(self, context: LayerContext) -> LayerText | None:
        page, text = super().recall(context), _notes_text(context)
        if page is None or not text:
            return None
        state = context.documents.get(MEMORY_PAGE_PATH)
        _, max_characters = split_prompt_characters(context.window, prompt_text(state.text) if state else "", text)
        kept = (
            TruncatedText(text, 0)
            if len(text) <= max_characters
            else truncate_to_newest(text, budget=max_characters, count=len, pointer=page.pointer)
        )
        return LayerText(
            kept.text,
            left_out=kept.lines_left_out,
            sources=page.sources,
            pointer=page.pointer,
            trust=page.trust,
            banner=NOTES_BANNER,
            shorten=lambda budget, count: truncate_to_newest(
                kept.text, budget=budget, count=count, pointer=page.pointer
            ),
        )


def _truncate_state(text: str, budget: int, count: Counter) -> TruncatedText:
    from inmind.dreams.page.page import truncate_page

    return truncate_page(text, budget=budget, count=count, pointer=STATE_POINTER)


def _notes_text(context: LayerContext) -> str:
    """Text of the notes page without its heading.

    Automatic notes about this session are left out: the conversation shows what they are about.
    """
    page = context.documents.get(NOTES_PAGE_PATH)
    text = prompt_text(page.text) if page else ""
    if AUTO_MARK in text:
        about_this = [note for note in parse_notes(text) if is_auto_note_about(note.text, context.session)]
        text = remove_pieces(text, about_this, ())
    return strip_heading(text)


@dataclass(frozen=True)
class EntityLayer(PlainLayer):
    """The entity window, as the [WORKING MEMORY] block."""

    name: str = "entities"
    slot: int = Slot.ENTITIES
    budget: Budget = Budget(min=400, max=400)

    def recall(self, context: LayerContext) -> LayerText | None:
        entities = context.entities
        if not len(entities):
            return None

        def visible(entity: Entity) -> bool:
            if context.is_visible(entity.observed_in):
                return True
            if entity.id not in context.visible_ids:
                return False
            hidden = [part.id for part in entity.parts if part.id not in context.visible_ids]
            return not hidden or counts_only(entity, hidden)

        render = partial(render_lines, entities, visible=visible)
        return LayerText(
            render().text,
            sources=tuple(dict.fromkeys(entity.source for entity in entities)),
            trust=Trust.DATA,
            banner=BANNER,
            shorten=lambda budget, count: render(budget=budget, count=count),
            describe_changes=lambda block, count: render_changes(
                entities, block.sources, visible, budget=self.budget.max, count=count
            ),
        )
