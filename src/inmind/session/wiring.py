"""The collaborators of one session, each made when it is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from inmind.history.view import TokenMeter, ViewBuilder
from inmind.session.affect import SessionAffect
from inmind.session.compaction import Compactor
from inmind.session.context import SessionContext
from inmind.session.derive import EventDeriver
from inmind.session.documents import SessionDocuments
from inmind.session.host_input import HostInput
from inmind.session.layer_calls import LayerCalls
from inmind.session.notes import NoteWithdrawals
from inmind.session.overview import OverviewWriter
from inmind.session.prepare import PromptPreparer
from inmind.session.prompt_history import PromptHistory
from inmind.session.replies import ReplyExecutor
from inmind.session.retention import Retention
from inmind.session.search import SessionSearch
from inmind.session.tools.registry import is_memory_tool
from inmind.session.undo import SessionUndo
from inmind.session.views import SessionViews

if TYPE_CHECKING:
    from inmind.session.children.children import ChildSessions


class SessionParts:
    """Creates the objects that `Session` delegates to.

    They share one token meter and one history view.
    """

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._meter, self._view = TokenMeter(context.config.counter), ViewBuilder()

    @cached_property
    def overview(self) -> OverviewWriter:
        return OverviewWriter(self._context.stream, is_memory_tool)

    @cached_property
    def views(self) -> SessionViews:
        return SessionViews(self._context, self.overview)

    @cached_property
    def layer_calls(self) -> LayerCalls:
        return LayerCalls(self._context, self.compactor.items_in_memory, self._view.read_message)

    @cached_property
    def affect(self) -> SessionAffect:
        enabled = self._context.config.affect and not self._context.is_anonymous
        return SessionAffect(self._context.resource, enabled=enabled)

    @cached_property
    def deriver(self) -> EventDeriver:
        return EventDeriver(self._context, self.layer_calls, self.overview, self.affect)

    @cached_property
    def compactor(self) -> Compactor:
        return Compactor(self._context, self._meter, self._view.read_message)

    @cached_property
    def prompts(self) -> PromptHistory:
        return PromptHistory(self._context, self.compactor, self._meter)

    @cached_property
    def preparer(self) -> PromptPreparer:
        return PromptPreparer(
            self._context,
            self.layer_calls,
            self.deriver,
            self.compactor,
            self.prompts,
            meter=self._meter,
            view=self._view,
        )

    @cached_property
    def search(self) -> SessionSearch:
        return SessionSearch(self._context, self._view)

    @cached_property
    def replies(self) -> ReplyExecutor:
        return ReplyExecutor(
            self._context,
            derive=self.deriver.derive,
            spikes_for_searches=self.affect.spikes_for_searches,
            state_after=self.prompts.state_after,
            compact=self.compactor.compact_by_model,
            search=self.search.search_by_model,
            memory_view=self.preparer.memory_view,
        )

    @cached_property
    def host_input(self) -> HostInput:
        return HostInput(self._context, self.views, self.deriver, self.prompts)

    @cached_property
    def documents(self) -> SessionDocuments:
        return SessionDocuments(self._context, self.views, self.deriver)

    @cached_property
    def withdrawals(self) -> NoteWithdrawals:
        return NoteWithdrawals(self._context)

    @cached_property
    def undo(self) -> SessionUndo:
        return SessionUndo(self._context, self.compactor, self.withdrawals)

    @cached_property
    def retention(self) -> Retention:
        return Retention(self._context, self.compactor, self._meter)

    @cached_property
    def children(self) -> ChildSessions:
        from inmind.session.children.children import ChildSessions  # needed only by sessions with children

        return ChildSessions(self._context)
