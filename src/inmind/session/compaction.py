"""Compaction of a session's history: on request, automatic, and its undo.

The rules are in `history.compaction` and decide on values. This module applies a decision to the newest state in one
commit, so that one `undo` reverts a compaction and nothing else. A model that writes a summary is called before the
commit: other writers do not wait for it, and if it fails, nothing is changed.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import Compacted, CompactionUndone, HistorySpliced, RetainedItem
from inmind.documents.document import Documents
from inmind.documents.overview.maintain import overview_updates
from inmind.errors import Conflict, ModelFailed, NotFound, SummaryRefused
from inmind.history import ActiveCompaction, History
from inmind.history.compaction.build import CompactionPlan, CompactionReport, CompactionUndoReport, build_compaction
from inmind.history.compaction.by_provider import ProviderItems, compaction_by_provider, thread_events
from inmind.history.compaction.message_records import MessageRecords
from inmind.history.compaction.policy import (
    CompactionRequest,
    Summarizer,
    check_keep_recent,
    parse_request,
    with_stub_size,
)
from inmind.history.compaction.retention import extract_items, items_in_memory, last_request
from inmind.history.compaction.select import DEFAULT_KEEP_RECENT, CompactionSelection, select_requested
from inmind.history.compaction.summary import check_summary, summary_prompt
from inmind.history.turns import GrowingConversation, ReadMessage, TurnMessage, turn_messages
from inmind.history.view import TokenMeter
from inmind.prompt.layers.base import LayerContext
from inmind.prompt.layers.builtin import DocumentLayer, RetainedLayer
from inmind.prompt.plan import count_block, count_guide, to_block
from inmind.prompt.pressure import WindowPressure
from inmind.prompt.templates import COMPACTED, wording_for
from inmind.session.compaction_trigger import CompactionTrigger, PlannedCompaction
from inmind.session.context import SessionContext
from inmind.session.state import SessionState
from inmind.store.protocol import AppendResult
from inmind.store.stream import Decision, key_for

log = logging.getLogger("inmind")

MAX_SUMMARY_ATTEMPTS = 3
"""Summaries requested while other writers keep changing the conversation."""

NOTHING = "no message is old or large enough to archive"
BY_HOST = "asked by the host"
BY_MODEL = "asked by the model"


class PlannedCompactionResult(NamedTuple):
    """The outcome of an automatic compaction."""

    done: bool
    """True if it was committed, or would have saved nothing; False if another writer changed the conversation."""
    notices: tuple[str, ...] = ()


class Compactor:
    """Compacts the history of one session."""

    def __init__(self, context: SessionContext, meter: TokenMeter, read: ReadMessage) -> None:
        self._read, self._message_cache = read, (("", 0, 0), list[TurnMessage]())
        self._records_cache = MessageRecords(History(), (), meter)
        self._plan_cache: tuple[MessageRecords, tuple[object, ...], CompactionPlan] = (
            self._records_cache,
            (),
            _NO_COMPACTION,
        )
        self._provider_items, self._conversation = ProviderItems(read), GrowingConversation(read, meter)
        self._request_cache: tuple[tuple[str, str], RetainedItem | None] = (("", ""), None)
        self._stream, self._store, self._config, self._meter = context.stream, context.store, context.config, meter
        self._trigger = CompactionTrigger(
            context.config.compression,
            meter,
            records=self._records,
            complete=self._with_last_request,
            measure=self._net_tokens,
        )

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
        request = self._request_for(target=target, strategy=strategy, archive_to=archive_to, reason=BY_HOST)
        turns_kept = check_keep_recent(keep_recent)
        checked_key = key_for(key, "compact", target, strategy, keep_recent, archive_to)
        summarizer = model or self._config.summarizer
        if checked_key is not None and (earlier := self._store.receipt(self._stream.name, checked_key)) is not None:
            return self._repeat_report(earlier), ()  # without calling a model
        for _ in range(MAX_SUMMARY_ATTEMPTS):
            summary, summarized = "", list[int]()
            if strategy == "summarize" and summarizer is not None:
                summary, summarized = self._summarize(summarizer, target, turns_kept)

            def decide(
                state: SessionState, _: datetime, summary: str = summary, summarized: list[int] = summarized
            ) -> Decision[SessionState, CompactionPlan]:
                messages = self.messages(state.history)
                selection = select_requested(messages, target=target, keep_recent=turns_kept)
                if summary and [messages[place].seq for place in selection.removed] != summarized:
                    raise _ConversationChanged
                plan = self._build(state, selection, self._with_last_request(state, replace(request, summary=summary)))
                plan = plan if plan.history_tokens > 0 else _NO_COMPACTION
                return Decision(plan.drafts, plan)

            try:
                done = self._stream.commit(decide, key=checked_key)
            except _ConversationChanged:
                continue
            if done.result is None:
                return self._repeat_report(done.appended), ()
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
        messages = self.messages(state.history)
        selection = select_requested(messages, target=request.target, keep_recent=turns_kept)
        plan = self._build(state, selection, self._with_last_request(state, request))
        return plan if plan.report.tokens > 0 else _NO_COMPACTION

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
        events = thread_events(state.history, held_count, format, messages=self.messages, meter=self._meter)
        state = self._stream.preview(state, state.seq, events, now) if events else state
        item = self._provider_items.last(state.conversation, format)
        active = [one for one in state.history.compactions if one.payload.provider_item and not one.payload.is_thread]
        sendable = {entry.seq for entry in state.conversation if entry.format == format} if active else ()
        ended = [one for one in active if one.payload.provider_item not in sendable]
        undone = [Draft(payload=CompactionUndone(one.seq), origin=Origin.OPERATOR) for one in reversed(ended)]
        events += undone
        if item is not None and all(one.payload.provider_item != item.seq for one in active):
            history = (self._stream.preview(state, state.seq, undone, now) if undone else state).history
            request, messages = self._current_request(history), self.messages(history)
            events += compaction_by_provider(history, messages, item, request=request, meter=self._meter)
        return events

    def automatic_since(self, history: History, *, since: int) -> list[Compacted]:
        """Active automatic compactions that were made after event `since`."""
        return [
            compaction.payload
            for compaction in history.compactions
            if compaction.seq > since
            and compaction.payload.messages
            and compaction.payload.reason not in (BY_HOST, BY_MODEL)
        ]

    def report_for(self, compacted: Compacted, history: History) -> CompactionReport:
        """The report of a compaction, against the current history."""
        request = self._current_request(history)
        unsent = items_in_memory(history, request)
        return CompactionReport.of(compacted, unsent=unsent, request=request, left_out=history.dropped)

    def items_in_memory(self, history: History) -> list[RetainedItem]:
        """The items that no sent message contains."""
        return items_in_memory(history, self._current_request(history) if history.compactions else None)

    # -- automatic -----------------------------------------------------------------------------------------

    def planned(self, state: SessionState, pressure: WindowPressure) -> PlannedCompaction | None:
        """The compaction that has to, or should, run before the next prompt; usually None."""
        return self._trigger.plan(state, pressure)

    def run_planned(self, planned: PlannedCompaction) -> PlannedCompactionResult:
        """Run a planned compaction, unless the conversation has changed since it was planned."""
        request, notices = self._with_summary(planned)

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, bool]:
            if state.history.sent.prefix_digest() != planned.based_on:
                return Decision([], False)
            return Decision(self.planned_drafts(state, replace(planned, request=request)), True)

        return PlannedCompactionResult(done=bool(self._stream.commit(decide).result), notices=notices)

    def planned_drafts(self, state: SessionState, planned: PlannedCompaction) -> Sequence[Draft]:
        """The events of a planned compaction; none if it saves nothing."""
        return self._build_planned(state, planned).drafts

    def _build_planned(self, state: SessionState, planned: PlannedCompaction) -> CompactionPlan:
        """Plan an automatic compaction; `_NO_COMPACTION` if it saves nothing.

        In a prompt that is too long, memory blocks are cut, so only the conversation counts.
        """
        plan = self._build(state, planned.selection, planned.request)
        return plan if (plan.history_tokens if planned.is_over else plan.report.tokens) > 0 else _NO_COMPACTION

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
        if self._build_planned(state, planned) is _NO_COMPACTION:
            return planned.request, ()  # nothing to summarize
        try:
            summary = self._call_model(model, self.messages(state.history), planned.selection)
            return replace(planned.request, summary=summary), ()
        except (ModelFailed, SummaryRefused) as error:
            notice = f"the summary was extracted because the session's model failed: {error.reason}"
            log.warning("%s: %s", self._stream.name, notice)
            return planned.request, (notice,)

    # -- helpers -------------------------------------------------------------------------------------------

    def messages(self, history: History) -> list[TurnMessage]:
        """The messages that are sent, with their roles and sizes; cached."""
        sent = history.sent
        name = (sent.prefix_digest(), len(sent), sent[-1].seq if len(sent) else 0)
        if name != self._message_cache[0]:
            self._message_cache = (name, turn_messages(history, self._read, self._meter))
        return self._message_cache[1]

    def _request_for(self, *, target: object, strategy: object, archive_to: object, reason: str) -> CompactionRequest:
        request = parse_request(target=target, strategy=strategy, archive_to=archive_to, reason=reason)
        return with_stub_size(request, self._config.limits.spendable)

    def _records(self, state: SessionState) -> MessageRecords:
        """The records of the sent messages; cached until a message or a known id changes."""
        history, messages, known = state.history, self.messages(state.history), state.entities.parts_by_recency
        cached = self._records_cache
        is_same = cached.messages is messages and cached.known_ids == known
        if not (is_same and _settings_of(cached.history) == _settings_of(history)):
            self._records_cache = MessageRecords(history, messages, self._meter, known)
        return self._records_cache

    def _build(self, state: SessionState, selection: CompactionSelection, request: CompactionRequest) -> CompactionPlan:
        """Plan a compaction. It is measured before it is stored, so the last plan is cached."""
        records = self._records(state)
        selection = records.without_unprunable(selection)
        if not selection:
            return _NO_COMPACTION
        inputs = (selection, request, state.documents, state.overview_lines, state.language, state.prompt.blocks)
        if self._plan_cache[0] is not records or self._plan_cache[1] != inputs:
            plan = build_compaction(
                records,
                state.documents,
                selection,
                request,
                overview_log=state.overview_lines,
                language=state.language,
                memory_tokens=partial(self._memory_tokens, state),
            )
            self._plan_cache = (records, inputs, plan)
        return self._plan_cache[2]

    def _net_tokens(self, state: SessionState, selection: CompactionSelection, request: CompactionRequest) -> int:
        """Tokens by which a compaction makes the prompt shorter."""
        return self._build(state, selection, request).report.tokens

    def _memory_tokens(
        self, state: SessionState, documents: Documents, items: Sequence[RetainedItem], has_stubs: bool
    ) -> int:
        """Tokens of what a compaction changes in memory, uncut: guide, retained items and overview."""
        context = LayerContext(
            session="",
            resource="",
            now=_NO_TIME,
            documents=documents.by_path,
            messages=(),
            language=state.language,
            retained=items,
            window=self._config.limits.window,
        )
        layers = (layer for layer in self._config.layers if isinstance(layer, RetainedLayer | DocumentLayer))
        changing = {layer.name: (layer, layer.recall(context)) for layer in layers if layer.scope == "thread"}
        texts = [(layer, text) for layer, text in changing.values() if text is not None and text.text]
        present = {block.layer for block in state.prompt.blocks if block.text and block.layer not in changing}
        present |= {layer.name for layer, _ in texts} | ({COMPACTED} if has_stubs else set())
        return count_guide(wording_for((), present), self._meter) + sum(
            min(count_block(self._meter, to_block(layer, text), text.text), layer.budget.max) for layer, text in texts
        )

    def _with_last_request(self, state: SessionState, request: CompactionRequest) -> CompactionRequest:
        return replace(request, last_request=self._current_request(state.history))

    def _current_request(self, history: History) -> RetainedItem | None:
        """The last request of the user, in full even if it was cut in the prompt; cached."""
        conversation = history.messages
        name = (conversation.prefix_digest(), conversation[-1].id if len(conversation) else "")
        if name != self._request_cache[0]:
            self._request_cache = (name, last_request(self._conversation.newest_first(conversation)))
        return self._request_cache[1]

    def _summarize(self, model: Summarizer, target: str, keep_recent: int) -> tuple[str, list[int]]:
        """Let a model summarize the messages to archive.

        Returns the summary and their event numbers.
        """
        messages = self.messages(self._stream.refresh().history)
        selection = select_requested(messages, target=target, keep_recent=keep_recent)
        return self._call_model(model, messages, selection), [messages[place].seq for place in selection.removed]

    def _call_model(self, model: Summarizer, messages: Sequence[TurnMessage], selection: CompactionSelection) -> str:
        removed = [messages[place] for place in selection.removed]
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


def _settings_of(history: History) -> tuple[object, ...]:
    """Values of a history that a compaction reads beside its messages."""
    return history.compactions, history.pinned, history.released


_NO_TIME = datetime.min.replace(tzinfo=UTC)
"""The layers that are measured do not read the time."""

_NO_COMPACTION = CompactionPlan([], CompactionReport(reason=NOTHING))


class _ConversationChanged(Exception):
    """The conversation changed while its summary was written."""
