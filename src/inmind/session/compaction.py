"""Compaction of a session's history: on request, automatic, and its undo.

The rules are in `history.compaction` and decide on values. This module applies a decision to the newest state in one
commit, so that one `undo` reverts a compaction and nothing else. A model that writes a summary is called before the
commit: other writers do not wait for it, and if it fails, nothing is changed.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import Compacted, CompactionUndone, HistorySpliced
from inmind.documents.document import Documents
from inmind.documents.overview.maintain import overview_updates
from inmind.errors import Conflict, ModelFailed, NotFound, SummaryRefused
from inmind.history.compaction.build import CompactionPlan, ProviderItems, compaction_by_provider, thread_events
from inmind.history.compaction.policy import (
    CompactionReport,
    CompactionRequest,
    CompactionUndoReport,
    Summarizer,
    check_keep_recent,
    parse_request,
    with_stub_size,
)
from inmind.history.compaction.retention import extract_items, items_in_memory
from inmind.history.compaction.select import DEFAULT_KEEP_RECENT, select_requested
from inmind.history.compaction.summary import check_summary, summary_prompt
from inmind.history.history import ActiveCompaction, History
from inmind.history.turns import TurnMessage
from inmind.session.compaction_plan import NO_COMPACTION, NOTHING, CompactionPlanner, PlannedCompaction
from inmind.session.context import SessionContext
from inmind.session.state import SessionState
from inmind.store.protocol import AppendResult
from inmind.store.stream import Decision, key_for

log = logging.getLogger("inmind")

MAX_SUMMARY_ATTEMPTS = 3
"""Summaries requested while other writers keep changing the conversation."""

BY_HOST = "asked by the host"
BY_MODEL = "asked by the model"

_CONVERSATION_CHANGED = CompactionPlan([], CompactionReport(reason="the conversation changed during the summary"))


class Compactor:
    """Compacts the history of one session."""

    def __init__(self, context: SessionContext, planner: CompactionPlanner) -> None:
        self._stream, self._store = context.stream, context.store
        self._config, self._meter = context.config, context.meter
        self._planner, self._provider_items = planner, ProviderItems(context.view.read_message)

    # -- on request ----------------------------------------------------------------------------------------

    def compact(
        self,
        *,
        target: str,
        strategy: str,
        keep_recent: int,
        archive_to: str | None,
        model: Summarizer | None,
        key: str | None,
    ) -> tuple[CompactionReport, Sequence[Event]]:
        """Compact on request of the host. Returns the report and the appended events."""
        request = self._request_for(target=target, strategy=strategy, archive_to=archive_to, reason=BY_HOST)
        turns_kept = check_keep_recent(keep_recent)
        checked_key = key_for(key, "compact", target, strategy, keep_recent, archive_to)
        summarizer = (model or self._config.summarizer) if strategy == "summarize" else None
        if checked_key is not None and (earlier := self._store.receipt(self._stream.name, checked_key)) is not None:
            return self._repeat_report(earlier), ()  # without calling a model
        for _ in range(MAX_SUMMARY_ATTEMPTS):
            summary, summarized = "", list[int]()
            if summarizer is not None:
                removed = self._removed(self._stream.refresh(), target, turns_kept)
                summary = self._call_model(summarizer, removed)
                summarized = [message.seq for message in removed]

            def decide(
                state: SessionState, _: datetime, summary: str = summary, summarized: list[int] = summarized
            ) -> Decision[SessionState, CompactionPlan]:
                if summary and [one.seq for one in self._removed(state, target, turns_kept)] != summarized:
                    return Decision([], _CONVERSATION_CHANGED, consumes_key=False)
                plan = self._plan(state, replace(request, summary=summary), turns_kept)
                plan = plan if plan.history_tokens > 0 else NO_COMPACTION
                return Decision(plan.drafts, plan)

            done = self._stream.commit(decide, key=checked_key)
            if done.result is None:
                return self._repeat_report(done.appended), ()
            if done.result is not _CONVERSATION_CHANGED:
                return done.result.report, done.events
        version = self._stream.version
        raise Conflict(stream=self._stream.name, expected=version, actual=version)

    def compact_by_model(self, state: SessionState, arguments: dict[str, Any]) -> CompactionPlan:
        """The plan of a compaction by the tool `compact_history`.

        Its summary is extracted, because no model is called here.
        """
        target, strategy = arguments.get("target") or "all", arguments.get("strategy") or "archive"
        to = arguments.get("archive_to") or None
        request = self._request_for(target=target, strategy=strategy, archive_to=to, reason=BY_MODEL)
        keep_recent = arguments.get("keep_recent")
        turns_kept = check_keep_recent(DEFAULT_KEEP_RECENT if keep_recent is None else keep_recent)
        plan = self._plan(state, request, turns_kept)
        return plan if plan.report.tokens > 0 else NO_COMPACTION

    def _request_for(self, *, target: object, strategy: object, archive_to: object, reason: str) -> CompactionRequest:
        request = parse_request(target=target, strategy=strategy, archive_to=archive_to, reason=reason)
        return with_stub_size(request, self._config.limits.spendable)

    def _plan(self, state: SessionState, request: CompactionRequest, turns_kept: int) -> CompactionPlan:
        messages = self._planner.messages(state.history)
        selection = select_requested(messages, target=request.target, keep_recent=turns_kept)
        complete = replace(request, last_request=self._planner.current_request(state.history))
        return self._planner.build(state, selection, complete)

    def _removed(self, state: SessionState, target: str, turns_kept: int) -> list[TurnMessage]:
        """The messages that a request would archive."""
        messages = self._planner.messages(state.history)
        return [messages[place] for place in select_requested(messages, target=target, keep_recent=turns_kept).removed]

    def _call_model(self, model: Summarizer, removed: Sequence[TurnMessage]) -> str:
        """The model's summary of the messages to archive; empty if all of them are stubs."""
        originals = [message for message in removed if not message.stub]
        if not originals:
            return ""
        prompt = summary_prompt(removed, extract_items(originals, first=False), self._config.limits.spendable)
        try:
            answer = model(prompt)
        except Exception as error:  # a host's function may raise anything
            raise ModelFailed(reason=f"{type(error).__name__}: {error}") from error
        if isinstance(answer, Coroutine):
            answer.close()  # avoids Python's warning about a coroutine that was never awaited
            raise ModelFailed(reason="the model is asynchronous; pass a function that returns a text")
        tokens = sum(message.tokens for message in removed)
        return check_summary(answer, replaced_tokens=tokens, count=self._meter.count)

    def undo(self, *, key: str | None) -> tuple[CompactionUndoReport, Sequence[Event]]:
        """Undo the last compaction. Messages added since stay."""
        checked_key = key_for(key, "lift")

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, bool]:
            own = [one for one in state.history.compactions if not one.payload.provider_item]
            if not own:
                raise NotFound(
                    what="compaction to undo in",
                    name=self._stream.name,
                    hint="every compaction has been undone, or there was none",
                )
            last = own[-1]
            return Decision(self._undo_drafts(state, last.seq, last.payload), True)

        done = self._stream.commit(decide, key=checked_key)
        events = done.events or self._events_between(done.appended.first, done.appended.last)
        (undone,) = (event.payload for event in events if isinstance(event.payload, CompactionUndone))
        (compacted,) = (
            event.payload
            for event in self._events_between(undone.compaction_seq, undone.compaction_seq)
            if isinstance(event.payload, Compacted)
        )
        return CompactionUndoReport.of(undone.compaction_seq, compacted, undone.archives), done.events

    def undone_by_edits(self, state: SessionState, drafts: Sequence[Draft], now: datetime) -> list[Draft]:
        """Events that undo the compactions affected by edits of the host among these drafts.

        If the host changes or removes a compacted message, the conversation is a different one: the stub and the items
        of the old one must not stay in it. A compaction that was built on a stub is undone with it, because both use
        the same page.
        """
        edits = [draft.payload for draft in drafts if isinstance(draft.payload, HistorySpliced)]
        changed = [(entry.seq, entry.seq) for edit in edits for entry in state.conversation[edit.start : edit.stop]]
        affected: list[ActiveCompaction] = []
        for compaction in state.history.compactions if changed else ():
            if compaction.overlaps(changed):
                affected.append(compaction)
                changed += compaction.archived_ranges
        undone: list[Draft] = []
        for compaction in reversed(affected):
            undo = self._undo_drafts(state, compaction.seq, compaction.payload)
            state = self._stream.preview(state, state.seq, undo, now)
            undone += undo
        return undone

    def by_provider(
        self, state: SessionState, drafts: Sequence[Draft], now: datetime, format: str, *, held_count: int
    ) -> list[Draft]:
        """Events for the provider's own compaction in the conversation; usually none.

        The conversation is that after these drafts. A compaction of another provider ends: its item cannot be sent.
        `held_count`: number of messages that the provider holds in a thread.
        """
        state = self._stream.preview(state, state.seq, drafts, now) if drafts else state
        events = thread_events(state.history, held_count, format, messages=self._planner.messages, meter=self._meter)
        state = self._stream.preview(state, state.seq, events, now) if events else state
        item = self._provider_items.last(state.conversation, format)
        active = [one for one in state.history.compactions if one.payload.provider_item and not one.payload.is_thread]
        sendable = {entry.seq for entry in state.conversation if entry.format == format} if active else ()
        ended = [one for one in active if one.payload.provider_item not in sendable]
        undone = [Draft(payload=CompactionUndone(one.seq), origin=Origin.OPERATOR) for one in reversed(ended)]
        events += undone
        if item is not None and all(one.payload.provider_item != item.seq for one in active):
            history = (self._stream.preview(state, state.seq, undone, now) if undone else state).history
            request, messages = self._planner.current_request(history), self._planner.messages(history)
            events += compaction_by_provider(history, messages, item, request=request, meter=self._meter)
        return events

    def report_for(self, compacted: Compacted, history: History) -> CompactionReport:
        """The report of a compaction, against the current history."""
        request = self._planner.current_request(history)
        unsent = items_in_memory(history, request)
        return CompactionReport.of(compacted, unsent=unsent, request=request, left_out=history.dropped)

    # -- automatic -----------------------------------------------------------------------------------------

    def run_planned(self, planned: PlannedCompaction) -> tuple[bool, tuple[str, ...]]:
        """Run a planned compaction, unless the conversation has changed since it was planned.

        Returns whether it was committed, or would have saved nothing; and notices.
        """
        request, notices = self._with_summary(planned)

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, bool]:
            if state.history.sent.prefix_digest() != planned.based_on:
                return Decision([], False)
            return Decision(self._planner.build_planned(state, replace(planned, request=request)).drafts, True)

        return bool(self._stream.commit(decide).result), notices

    def _with_summary(self, planned: PlannedCompaction) -> tuple[CompactionRequest, tuple[str, ...]]:
        """Add a summary by the session's model, if there is one.

        Its failure must not prevent the compaction.
        """
        state, model = self._stream.state, self._config.summarizer
        if (
            model is None
            or planned.request.strategy != "summarize"
            or state.history.sent.prefix_digest() != planned.based_on
        ):
            return planned.request, ()
        if self._planner.build_planned(state, planned) is NO_COMPACTION:
            return planned.request, ()  # nothing to summarize
        try:
            messages = self._planner.messages(state.history)
            summary = self._call_model(model, [messages[place] for place in planned.selection.removed])
            return replace(planned.request, summary=summary), ()
        except (ModelFailed, SummaryRefused) as error:
            notice = f"the summary was extracted because the session's model failed: {error.reason}"
            log.warning("%s: %s", self._stream.name, notice)
            return planned.request, (notice,)

    def _undo_drafts(self, state: SessionState, seq: int, compacted: Compacted) -> list[Draft]:
        """Events that undo a compaction and its archive pages.

        A new page is removed, a page that existed before is restored, and a page that was edited since stays.
        """
        first = seq - len(compacted.archives)  # the events of its pages come right before it
        before = self._stream.state_at(first - 1).documents
        events = self._events_between(first, seq)
        texts = {
            event.payload.path: event.payload.text for event in events if isinstance(event.payload, DocumentWritten)
        }
        unedited = [path for path in compacted.archives if state.documents.text(path) == texts.get(path)]
        new = tuple(path for path in unedited if path not in before.by_path)
        drafts = [Draft(payload=CompactionUndone(compaction_seq=seq, archives=new), origin=Origin.USER)]
        for path in unedited:
            if path in before.by_path:
                written = DocumentWritten(path, before.text(path), upkeep=True)
                drafts.append(Draft(payload=written, origin=Origin.OPERATOR, trust=before.by_path[path].trust))
        remaining = Documents({path: page for path, page in state.documents.by_path.items() if path not in new})
        overview_log = state.overview_lines.without_compaction(seq)
        return [*drafts, *overview_updates(remaining, state.language, log=overview_log)]

    def _events_between(self, first: int, last: int) -> Sequence[Event]:
        return self._store.read(self._stream.name, after=first - 1, until=last)

    def _repeat_report(self, done: AppendResult) -> CompactionReport:
        """The report of an earlier call with the same key."""
        if done.last < done.first:
            return CompactionReport(reason=NOTHING)
        events = self._events_between(done.first, done.last)
        (compacted,) = (event.payload for event in events if isinstance(event.payload, Compacted))
        return self.report_for(compacted, self._stream.state_at(done.last).history)


def automatic_compactions(history: History, *, since: int) -> list[Compacted]:
    """Active automatic compactions that were made after event `since`."""
    return [
        compaction.payload
        for compaction in history.compactions
        if compaction.seq > since
        and compaction.payload.messages
        and compaction.payload.reason not in (BY_HOST, BY_MODEL)
    ]
