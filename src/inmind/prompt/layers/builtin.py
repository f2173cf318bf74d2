"""The built-in layers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from inmind.core.events.base import Trust
from inmind.core.events.session import RetainedItem
from inmind.core.text import TruncatedText, count_noun
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
from inmind.dreams.affect import AUTO_MARK, is_auto_note_about
from inmind.dreams.page.page import split_prompt_characters, truncate_page
from inmind.entities.entity import Entity
from inmind.entities.render import BANNER, counts_only, render_changes, render_lines
from inmind.prompt.layers.base import Budget, LayerContext, LayerText, PlainLayer, Slot, ViewLayer, unwrap_view

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
        kept = truncate_page(page.text, budget=max_characters, count=len, pointer=STATE_POINTER)
        return LayerText(
            kept.text,
            left_out=kept.lines_left_out,
            sources=page.sources,
            pointer=STATE_POINTER,
            trust=page.trust,
            shorten=lambda budget, count: truncate_page(kept.text, budget=budget, count=count, pointer=STATE_POINTER),
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


RETAINED_LAYER = "retained"

_HEADINGS = {
    "goal": "Goal, verbatim:",
    "earlier_goal": "Earlier goal:",
    "request": "Last request, verbatim:",
    "pinned": "Pinned:",
    "decision": "Decisions:",
    "open_decision": "Open decisions:",
    "rule": "Rules from people; later ones win:",
}
_KEPT_KINDS = ("goal", "request", "pinned")
_BUDGET = Budget(max=2_000, reserved=True)


@dataclass(frozen=True)
class RetainedLayer(PlainLayer):
    """Goal, decisions, rules and pinned texts; part of every session.

    A sent message contains its own words. After it was archived, its items are shown here, before the conversation, so
    that they stay in the provider's cache. If not all fit, the oldest rules and decisions are left out and counted.
    """

    name: str = RETAINED_LAYER
    slot: int = Slot.RETAINED
    budget: Budget = _BUDGET

    def recall(self, context: LayerContext) -> LayerText | None:
        items = context.retained
        if not items:
            return None
        sources = tuple(dict.fromkeys(f"session/{context.session}#{item.seq}" for item in items if item.seq))
        return LayerText(
            render_items(items),
            sources=sources,
            trust=Trust.PERSON,
            shorten=lambda budget, count: _render_within(items, budget, count),
        )


def render_items(items: Sequence[RetainedItem], left_out: int = 0) -> str:
    """Render the items; empty if there are none."""
    lines: list[str] = []
    for kind, heading in _HEADINGS.items():
        of_kind = [item.text.replace("\x00", " ") for item in items if item.kind == kind]
        if of_kind:
            lines += [heading, *(f"- {' '.join(text.split())}" for text in of_kind)]
    if left_out:
        lines.append(f"({count_noun(left_out, 'older one')} only in archive/)")
    return "\n".join(lines)


def _render_within(items: Sequence[RetainedItem], budget: int, count: Counter) -> TruncatedText:
    """Drop the oldest rules, decisions and earlier goals until the rest fits.

    If that is not enough, the caller cuts the text.
    """
    droppable = sorted((item for item in items if item.kind not in _KEPT_KINDS), key=lambda item: item.seq)

    def without(number: int) -> str:
        dropped = set(droppable[:number])
        return render_items([item for item in items if item not in dropped], number)

    drop_count = bisect_left(range(len(droppable)), True, key=lambda number: count(without(number)) <= budget)
    return TruncatedText(without(drop_count), drop_count)


def pinned_item(item: RetainedItem) -> RetainedItem:
    """The item as a pinned text: the child has its own goal, and no message with this text."""
    return RetainedItem("pinned", item.text)


class RetainedView(ViewLayer):
    """Retained items of the parent, followed by the child's own items."""

    def recall(self, context: LayerContext) -> LayerText | None:
        own, height = unwrap_view(self)
        items, sources, above = list(context.retained), list[str](), context.parent
        for _ in range(height):
            if above is not None and (theirs := own.recall(above)) is not None:
                items[:0] = map(pinned_item, above.retained)
                sources += theirs.sources
            above = above.parent if above else None
        recalled = own.recall(replace(context, retained=tuple(dict.fromkeys(items))))
        return replace(recalled, sources=(*sources, *recalled.sources)) if recalled else None
