"""Plan compactions before a prompt.

Reasons: the context window is full; the overview covers old messages and the prompt is rewritten anyway; the host's
policy asks for it at this fill level; or it saves money. Decides on values; `Compactor` carries it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from inmind.core.events.session import RetainedItem
from inmind.core.frozen import frozen
from inmind.core.tokens import Rates
from inmind.documents.document import Documents
from inmind.history.compaction.build import CompactionPlan, build_compaction
from inmind.history.compaction.message_records import MessageRecords
from inmind.history.compaction.policy import CompactionReport, CompactionRequest, pays_off, with_stub_size
from inmind.history.compaction.retention import items_in_memory, last_request, retained_items, unsent_items
from inmind.history.compaction.select import (
    FURTHER_STUB_TOKENS,
    CompactionSelection,
    MessageSizes,
    select_covered,
    select_for_budget,
    select_requested,
)
from inmind.history.compaction.stubs import FRAME_TOKENS
from inmind.history.history import History
from inmind.history.turns import GrowingConversation, TurnMessage, turn_messages
from inmind.history.view import band_for
from inmind.prompt.budget import count_block, to_block
from inmind.prompt.layers.base import LayerContext
from inmind.prompt.layers.builtin import DocumentLayer, RetainedLayer, render_items
from inmind.prompt.plan import WindowPressure, count_guide
from inmind.prompt.templates import COMPACTED, wording_for
from inmind.session.context import SessionContext
from inmind.session.state import SessionState

MIN_RECORD_TOKENS = 10
"""Below this many tokens for records, a stub is not shortened further."""
COST_SAVING_RECORD_DIVISOR = 8
"""A compaction that saves cost has fewer records: all that stays is written to the cache again."""
MIN_GAIN_TOKENS = 300
"""Tokens that an optional compaction has to free."""

FULL = "the window was full"
COVERED = "the overview covers it"
PAYS = "it pays"


NOTHING = "no message is old or large enough to archive"

NO_COMPACTION = CompactionPlan([], CompactionReport(reason=NOTHING))

_NO_TIME = datetime.min.replace(tzinfo=UTC)
"""The layers that are measured do not read the time."""


@frozen
class PlannedCompaction:
    """An automatic compaction: the messages to archive, and how."""

    selection: CompactionSelection
    request: CompactionRequest
    based_on: str
    """Digest of the messages that it was planned for."""
    is_over: bool = False
    """The prompt does not fit without it."""


class CompactionPlanner:
    """Plans compactions of one session. It keeps only caches."""

    def __init__(self, context: SessionContext) -> None:
        self._meter, self._read = context.meter, context.view.read_message
        self._layers, self._window = context.config.layers, context.config.limits.window
        self._policy = context.config.compression
        self._message_cache = (("", 0, 0), list[TurnMessage]())
        self._records_cache = MessageRecords(History(), (), context.meter)
        self._plan_cache: tuple[object, tuple[object, ...], CompactionPlan] = (None, (), NO_COMPACTION)
        self._conversation = GrowingConversation(self._read, context.meter)
        self._request_cache: tuple[tuple[str, str], RetainedItem | None] = (("", ""), None)

    def plan(self, state: SessionState, pressure: WindowPressure) -> PlannedCompaction | None:
        """The compaction that has to, or should, run before the next prompt; usually None."""
        if pressure.cannot_shrink:
            return None
        if pressure.is_full:
            return self._when_full(state, pressure)
        return self._when_covered(state, pressure) or self._by_policy(state, pressure)

    def _when_full(self, state: SessionState, pressure: WindowPressure) -> PlannedCompaction | None:
        """Compact because the window is full.

        Details of records take what the target leaves. Stubs are shortened only if the prompt would not fit otherwise.
        """
        records = self.records(state)
        request = self._request(state, pressure, CompactionRequest(reason=FULL, strategy="summarize"))
        while True:
            sizes = records.sizes(record_tokens=request.record_tokens)
            selection = self._select_for_space(records, pressure, request, sizes)
            gain = _gain(records.messages, selection, request, sizes)
            spare = max(0, pressure.budget.target - (pressure.history - gain))
            request = replace(request, detailed_record_tokens=_line_tokens(selection, request, sizes) + spare)
            saved = self.build(state, selection, request).report.tokens
            needed = pressure.fixed + pressure.reserved + pressure.history - saved
            if needed <= pressure.available or request.record_tokens < MIN_RECORD_TOKENS:
                break
            request = request.with_less(needed - pressure.available)
        if not selection or not (pressure.is_over or gain >= pressure.min_gain):
            return None
        return PlannedCompaction(selection, request, state.history.sent.prefix_digest(), pressure.is_over)

    def _when_covered(self, state: SessionState, pressure: WindowPressure) -> PlannedCompaction | None:
        """Compact what the overview covers, if the prompt is rewritten anyway."""
        if not (pressure.rewrites_history and state.overview_covers):
            return None
        records = self.records(state)
        selection = select_covered(
            records.messages, before_seq=state.overview_covers, keep_recent=self._policy.keep_recent
        )
        request = self._request(state, pressure, CompactionRequest(reason=COVERED, target="conversation"))
        gain = _gain(records.messages, selection, request, records.sizes(record_tokens=request.record_tokens))
        if not selection or gain < MIN_GAIN_TOKENS:
            return None
        return PlannedCompaction(selection, request, state.history.sent.prefix_digest())

    def _by_policy(self, state: SessionState, pressure: WindowPressure) -> PlannedCompaction | None:
        """Compact as the host's policy asks at this fill level, if it frees enough and pays off."""
        name = band_for(pressure.percent)
        policy_target = self._policy.target_for(name)
        rates = self._policy.rates
        # With prices a lower limit is enough. Without them, each message could cause a compaction.
        least = max(MIN_GAIN_TOKENS, pressure.min_gain // 4 if rates else pressure.min_gain)
        if policy_target is None or pressure.history < least:
            return None
        target, keep = policy_target
        records = self.records(state)
        messages = records.messages
        reason = PAYS if rates else name
        request = self._request(state, pressure, CompactionRequest(reason=reason, target=target, strategy="summarize"))
        if rates:
            request = replace(request, record_tokens=request.record_tokens // COST_SAVING_RECORD_DIVISOR)
        sizes = records.sizes(record_tokens=request.record_tokens)
        if rates:
            selection = self._select_for_space(records, pressure, request, sizes)
        else:
            selection = select_requested(messages, target=target, keep_recent=keep)
        gain = _gain(messages, selection, request, sizes)
        if gain < least:
            return None
        if rates and not pressure.rewrites_history and not _pays(rates, messages, gain, pressure):
            return None
        return PlannedCompaction(selection, request, state.history.sent.prefix_digest())

    def _select_for_space(
        self, records: MessageRecords, pressure: WindowPressure, request: CompactionRequest, sizes: MessageSizes
    ) -> CompactionSelection:
        """Select messages to archive so that the rest fits, including the items that must survive."""
        history, messages = records.history, records.messages

        def selection(pressure: WindowPressure) -> CompactionSelection:
            room = pressure.cost_saving_budget if self._policy.rates else pressure.budget
            room = room._replace(stub_tokens=_stub_tokens(request), record_tokens=request.record_tokens)
            return select_for_budget(messages, room, sizes, keep_recent=self._policy.keep_recent)

        first = selection(pressure)
        remaining = pressure.memory + pressure.history - _gain(messages, first, request, sizes)
        if remaining + RetainedLayer.budget.max <= pressure.available:  # the retained items fit at any size
            return first
        last = request.last_request
        kept = retained_items(history, messages, first, self._meter, request=last).kept
        more = self._meter.count(render_items(unsent_items(kept, messages, first)))
        more -= self._meter.count(render_items(items_in_memory(history, last)))
        return selection(pressure.with_reserved(more)) if more > 0 else first

    def _request(self, state: SessionState, pressure: WindowPressure, request: CompactionRequest) -> CompactionRequest:
        """The request with the size of stubs for this window, and with the user's last request."""
        sized = with_stub_size(request, pressure.budget.threshold)
        return replace(sized, last_request=self.current_request(state.history))

    def build_planned(self, state: SessionState, planned: PlannedCompaction) -> CompactionPlan:
        """Build an automatic compaction; `NO_COMPACTION` if it saves nothing.

        In a prompt that is too long, memory blocks are cut, so only the conversation counts.
        """
        plan = self.build(state, planned.selection, planned.request)
        return plan if (plan.history_tokens if planned.is_over else plan.report.tokens) > 0 else NO_COMPACTION

    def messages(self, history: History) -> list[TurnMessage]:
        """The messages that are sent, with their roles and sizes; cached."""
        sent = history.sent
        name = (sent.prefix_digest(), len(sent), sent[-1].seq if len(sent) else 0)
        if name != self._message_cache[0]:
            self._message_cache = (name, turn_messages(history, self._read, self._meter))
        return self._message_cache[1]

    def records(self, state: SessionState) -> MessageRecords:
        """The records of the sent messages; cached until a message or a known id changes."""
        history, messages, known = state.history, self.messages(state.history), state.entities.parts_by_recency
        cached = self._records_cache
        is_same = cached.messages is messages and cached.known_ids == known
        if not (is_same and _settings_of(cached.history) == _settings_of(history)):
            self._records_cache = MessageRecords(history, messages, self._meter, known)
        return self._records_cache

    def build(self, state: SessionState, selection: CompactionSelection, request: CompactionRequest) -> CompactionPlan:
        """Plan a compaction. It is measured before it is stored, so the last plan is cached."""
        records = self.records(state)
        selection = records.without_unprunable(selection)
        if not selection:
            return NO_COMPACTION
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

    def _memory_tokens(
        self, state: SessionState, documents: Documents, items: Sequence[RetainedItem], has_stubs: bool
    ) -> int:
        """Tokens of what a compaction changes in memory, uncut: guide, retained items and overview."""
        empty = LayerContext(session="", resource="", now=_NO_TIME, documents=documents.by_path, messages=())
        context = replace(empty, language=state.language, retained=items, window=self._window)
        layers = (layer for layer in self._layers if isinstance(layer, RetainedLayer | DocumentLayer))
        changing = {layer.name: (layer, layer.recall(context)) for layer in layers if layer.scope == "thread"}
        texts = [(layer, text) for layer, text in changing.values() if text is not None and text.text]
        present = {block.layer for block in state.prompt.blocks if block.text and block.layer not in changing}
        present |= {layer.name for layer, _ in texts} | ({COMPACTED} if has_stubs else set())
        return count_guide(wording_for((), present), self._meter) + sum(
            min(count_block(self._meter, to_block(layer, text), text.text), layer.budget.max) for layer, text in texts
        )

    def current_request(self, history: History) -> RetainedItem | None:
        """The last request of the user, in full even if it was cut in the prompt; cached."""
        conversation = history.messages
        name = (conversation.prefix_digest(), conversation[-1].id if len(conversation) else "")
        if name != self._request_cache[0]:
            self._request_cache = (name, last_request(self._conversation.newest_first(conversation)))
        return self._request_cache[1]

    def items_in_memory(self, history: History) -> list[RetainedItem]:
        """The items that no sent message contains."""
        return items_in_memory(history, self.current_request(history) if history.compactions else None)

    def retained_items(self, history: History) -> tuple[RetainedItem, ...]:
        """The items that would be kept if the whole conversation were compacted now.

        Without the last request, which every new one replaces.
        """
        messages = self.messages(history)
        everything = CompactionSelection(runs=(tuple(range(len(messages))),))
        return tuple(retained_items(history, messages, everything, self._meter, request=None).kept)


def _pays(rates: Rates, messages: Sequence[TurnMessage], gain: int, pressure: WindowPressure) -> bool:
    calls = sum(message.speaker == "assistant" and not message.stub for message in messages) or 1
    growth = sum(message.tokens for message in messages if not message.stub) / calls
    rewritten = max(0, pressure.history - gain) + pressure.memory
    return pays_off(rates, freed=gain, rewritten=rewritten, growth=growth)


def _gain(
    messages: Sequence[TurnMessage],
    selection: CompactionSelection,
    request: CompactionRequest,
    sizes: MessageSizes,
) -> int:
    """Tokens that a compaction frees at least."""
    pruned = sum(messages[place].tokens - sizes.pruned(place, detail) for place, detail in selection.outputs.items())
    whole = sum(messages[place].tokens for place in selection.removed)
    lines = _line_tokens(selection, request, sizes)
    cut = sum(messages[place].tokens - kept_tokens for place, kept_tokens in selection.cut.items())
    stubs = _stub_tokens(request) + FURTHER_STUB_TOKENS * (len(selection.runs) - 1) if selection.runs else 0
    return pruned + whole - lines - stubs + cut


def _line_tokens(selection: CompactionSelection, request: CompactionRequest, sizes: MessageSizes) -> int:
    """Tokens of the records of removed messages."""
    return min(request.record_tokens, sum(map(sizes.line, selection.removed)))


def _stub_tokens(request: CompactionRequest) -> int:
    """Usual size of a stub for messages, without its records."""
    return FRAME_TOKENS + request.stub_tokens // 2


def _settings_of(history: History) -> tuple[object, ...]:
    """Values of a history that a compaction reads beside its messages."""
    return history.compactions, history.pinned, history.released
