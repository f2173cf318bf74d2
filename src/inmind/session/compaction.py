"""What a session does about the length of its history: compacts it, archives what leaves, brings it back.

Deciding is done on values, by `history.compact` and `prompt.compacting`; here the decision meets the newest state and
becomes one commit of its own, so that one `undo` takes back a compaction and nothing else. A model that is to write a
summary is asked before anything is decided for good: while it thinks nobody has to wait, and if it fails nothing has
happened.
"""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import Compacted, CompactionUndone, HistorySpliced, RetainedItem
from inmind.documents.document import Documents
from inmind.documents.overview.maintain import overview_updates
from inmind.entities.render import render_lines
from inmind.entities.window import Entities
from inmind.errors import Conflict, ModelFailed, NotFound, SummaryRefused
from inmind.history import ActiveCompaction, History
from inmind.history.compaction.build import CompactionPlan, build_compaction
from inmind.history.compaction.policy import Summarizer
from inmind.history.compaction.report import CompactionReport, CompactionUndoReport
from inmind.history.compaction.request import CompactionRequest, check_keep_recent, parse_request, with_stub_size
from inmind.history.compaction.retention import extract_items, last_request
from inmind.history.compaction.select import DEFAULT_KEEP_RECENT, CompactionSelection, select_requested
from inmind.history.compaction.stubs import possible_ids
from inmind.history.compaction.summary import check_summary, summary_prompt
from inmind.history.token_meter import TokenMeter
from inmind.history.turn_messages import ReadMessage, to_turn_message, turn_messages
from inmind.history.turns import TurnMessage
from inmind.prompt.layers.builtin import EntityLayer
from inmind.prompt.pressure import WindowPressure
from inmind.session.compaction_trigger import CompactionTrigger, PlannedCompaction
from inmind.session.context import SessionContext
from inmind.session.state import SessionState
from inmind.store.protocol import AppendResult
from inmind.store.stream import Decision, key_for

log = logging.getLogger("inmind")

MAX_SUMMARY_ATTEMPTS = 3
"""Summaries that are asked for while others keep changing the conversation underneath."""

NOTHING = "nothing is old enough, or large enough, to leave"
BY_HOST = "asked by the host"
BY_MODEL = "asked by the model"


class PlannedCompactionResult(NamedTuple):
    """What became of a compaction that had come due."""

    done: bool
    """It was made, or would have made nothing shorter. Otherwise others have said more meanwhile."""
    notices: tuple[str, ...] = ()


class Compactor:
    """The history of one session."""

    def __init__(self, parts: SessionContext, meter: TokenMeter, read: ReadMessage) -> None:
        self._read, self._said = read, (("", 0, 0), list[TurnMessage]())
        self._asked: tuple[tuple[str, int], RetainedItem | None] = (("", -1), None)
        self._stream, self._store, self._setup, self._meter = parts.stream, parts.store, parts.config, meter
        self._relief = CompactionTrigger(parts.config.compression, meter, said=self.messages, complete=self._complete)

    # -- asked for -----------------------------------------------------------------------------------------

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
        wanted = self._requested(target=target, strategy=strategy, archive_to=archive_to, reason=BY_HOST)
        kept = check_keep_recent(keep_recent)
        named = key_for(key, "compact", target, strategy, keep_recent, archive_to)
        writes = model or self._setup.summarizer
        if named is not None and (earlier := self._store.receipt(self._stream.name, named)) is not None:
            return self._report_of(earlier), ()  # before a model is asked for nothing
        for _ in range(MAX_SUMMARY_ATTEMPTS):
            summary, of = "", list[int]()
            if strategy == "summarize" and writes is not None:
                summary, of = self._summary(writes, target, kept)

            def decide(
                state: SessionState, _: datetime, summary: str = summary, of: list[int] = of
            ) -> Decision[SessionState, CompactionPlan]:
                said = self.messages(state.history)
                leaving = select_requested(said, target=target, keep_recent=kept)
                if summary and [said[place].seq for place in leaving.removed] != of:
                    raise _ConversationChanged
                made = self._if_shorter(state, said, leaving, self._complete(state, replace(wanted, summary=summary)))
                return Decision(made.drafts, made)

            try:
                done = self._stream.commit(decide, key=named)
            except _ConversationChanged:
                continue
            if done.result is None:
                return self._report_of(done.appended), ()
            return done.result.report, done.events
        version = self._stream.version
        raise Conflict(stream=self._stream.name, expected=version, actual=version)

    def compact_by_model(self, state: SessionState, arguments: dict[str, Any]) -> CompactionPlan:
        """What the tool `compact_history` comes to. Its summary is extracted: a reply is carried out in one step."""
        target, strategy = arguments.get("target") or "all", arguments.get("strategy") or "archive"
        to = arguments.get("archive_to") or None
        wanted = self._requested(target=target, strategy=strategy, archive_to=to, reason=BY_MODEL)
        given = arguments.get("keep_recent")
        kept = check_keep_recent(DEFAULT_KEEP_RECENT if given is None else given)
        said = self.messages(state.history)
        leaving = select_requested(said, target=wanted.target, keep_recent=kept)
        return self._if_shorter(state, said, leaving, self._complete(state, wanted))

    def undo(self, *, key: str | None) -> tuple[CompactionUndoReport, Sequence[Event]]:
        """Send again what the last compaction took out; what came since stays."""
        named = key_for(key, "lift")

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, bool]:
            if not state.history.compactions:
                raise NotFound(what="compaction to take back in", name=self._stream.name, hint="none is in force")
            last = state.history.compactions[-1]
            return Decision(self._lifted(state, last.seq, last.payload), True)

        done = self._stream.commit(decide, key=named)
        events = done.events or self._between(done.appended.first, done.appended.last)
        (lifted,) = (one.payload for one in events if isinstance(one.payload, CompactionUndone))
        (what,) = (
            one.payload
            for one in self._between(lifted.compaction_seq, lifted.compaction_seq)
            if isinstance(one.payload, Compacted)
        )
        return CompactionUndoReport.of(lifted.compaction_seq, what, lifted.archives), done.events

    def undone_by_edits(self, state: SessionState, drafts: Sequence[Draft], now: datetime) -> list[Draft]:
        """Compactions that an edit of the host's among these drafts takes back.

        A host that goes back to before a message that was compacted, or changes it, has another conversation: what a
        stub and the items say of the old one must not stand in it. One that was built on a stub goes with it: the
        page that both rely on does.
        """
        edits = [draft.payload for draft in drafts if isinstance(draft.payload, HistorySpliced)]
        changed = [(entry.seq, entry.seq) for edit in edits for entry in state.conversation[edit.start : edit.stop]]
        going: list[ActiveCompaction] = []
        for one in state.history.compactions if changed else ():
            if one.overlaps(changed):
                going.append(one)
                changed += one.archived_ranges
        lifted: list[Draft] = []
        for one in reversed(going):
            more = self._lifted(state, one.seq, one.payload)
            state = self._stream.preview(state, state.seq, more, now)
            lifted += more
        return lifted

    def automatic_since(self, history: History, *, since: int) -> list[Compacted]:
        """Compactions in force that have come by themselves, behind event `since`."""
        return [
            one.payload
            for one in history.compactions
            if one.seq > since and one.payload.reason not in (BY_HOST, BY_MODEL)
        ]

    def report_for(self, what: Compacted, history: History) -> CompactionReport:
        """What a compaction did, as things stand now."""
        request = self._request(history)
        return CompactionReport.of(what, unsent=history.unsent_items, request=request, left_out=history.dropped)

    # -- due by itself -------------------------------------------------------------------------------------

    def planned(self, state: SessionState, crowd: WindowPressure) -> PlannedCompaction | None:
        """What has to leave before the next prompt, or may as well: nothing, most of the time."""
        return self._relief.plan(state, crowd)

    def run_planned(self, due: PlannedCompaction) -> PlannedCompactionResult:
        """Carry out what has come due, on the messages that it was found on or not at all: it will be found again."""
        wanted, notices = self._in_words(due)

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, bool]:
            if state.history.sent.prefix_digest() != due.based_on:
                return Decision([], False)
            return Decision(self.planned_drafts(state, due.selection, wanted), True)

        return PlannedCompactionResult(done=bool(self._stream.commit(decide).result), notices=notices)

    def planned_drafts(
        self, state: SessionState, leaving: CompactionSelection, wanted: CompactionRequest
    ) -> Sequence[Draft]:
        """What that would bring about; nothing where it makes nothing shorter."""
        return self._if_shorter(state, self.messages(state.history), leaving, wanted).drafts

    def _in_words(self, due: PlannedCompaction) -> tuple[CompactionRequest, tuple[str, ...]]:
        """With a summary by the session's model, where it has one. What it does wrong is no reason not to make room."""
        state, model = self._stream.state, self._setup.summarizer
        if model is None or due.request.strategy != "summarize" or state.history.sent.prefix_digest() != due.based_on:
            return due.request, ()
        said = self.messages(state.history)
        if self._if_shorter(state, said, due.selection, due.request) is _NOTHING_MADE:
            return due.request, ()  # a model would be asked for nothing
        try:
            return replace(due.request, summary=self._written_by(model, said, due.selection)), ()
        except (ModelFailed, SummaryRefused) as error:
            notice = f"a summary was extracted, since the session's model gave none: {error.reason}"
            log.warning("%s: %s", self._stream.name, notice)
            return due.request, (notice,)

    # -- inside --------------------------------------------------------------------------------------------

    def messages(self, history: History) -> list[TurnMessage]:
        """What is sent, message by message."""
        sent = history.sent
        name = (sent.prefix_digest(), len(sent), sent[-1].seq if len(sent) else 0)
        if name != self._said[0]:
            self._said = (name, turn_messages(history, self._read, self._meter))
        return self._said[1]

    def _requested(self, *, target: object, strategy: object, archive_to: object, reason: str) -> CompactionRequest:
        wanted = parse_request(target=target, strategy=strategy, archive_to=archive_to, reason=reason)
        return with_stub_size(wanted, self._setup.limits.spendable)

    def _if_shorter(
        self, state: SessionState, said: Sequence[TurnMessage], leaving: CompactionSelection, wanted: CompactionRequest
    ) -> CompactionPlan:
        """What a request comes to: nothing where the stubs would say more than what they stand for."""
        made = self._made(state, said, leaving, wanted)
        return made if made.report.tokens > 0 else _NOTHING_MADE

    def _made(
        self, state: SessionState, said: Sequence[TurnMessage], leaving: CompactionSelection, wanted: CompactionRequest
    ) -> CompactionPlan:
        if not leaving:
            return _NOTHING_MADE
        return build_compaction(
            state.history,
            state.documents,
            said,
            leaving,
            wanted,
            overview_log=state.overview_lines,
            language=state.language,
            meter=self._meter,
        )

    def _complete(self, state: SessionState, wanted: CompactionRequest) -> CompactionRequest:
        """With what is known at this moment."""
        return replace(wanted, last_request=self._request(state.history), known_ids=self._ids(state.entities))

    def _ids(self, entities: Entities) -> list[str]:
        """All that are known: those first that the block of things has no room for, each the most recent first."""
        shown = possible_ids(render_lines(entities, budget=EntityLayer.budget.max, count=self._meter.count).text)
        return sorted(entities.ids_by_recency, key=shown.__contains__)

    def _request(self, history: History) -> RetainedItem | None:
        """What was asked last, as it was said and not as it may have had to be cut."""
        line = history.messages
        name = (line.prefix_digest(), len(line))
        if name != self._asked[0]:
            newest_first = (to_turn_message(entry, self._read(entry), self._meter) for entry in reversed(line[:]))
            self._asked = (name, last_request(newest_first))
        return self._asked[1]

    def _summary(self, model: Summarizer, target: str, keep_recent: int) -> tuple[str, list[int]]:
        """What a model writes about the messages that would leave now, and which those are."""
        said = self.messages(self._stream.refresh().history)
        leaving = select_requested(said, target=target, keep_recent=keep_recent)
        return self._written_by(model, said, leaving), [said[place].seq for place in leaving.removed]

    def _written_by(self, model: Summarizer, said: Sequence[TurnMessage], leaving: CompactionSelection) -> str:
        gone = [said[place] for place in leaving.removed]
        fresh = [one for one in gone if not one.stub]
        if not fresh:
            return ""
        prompt = summary_prompt(gone, extract_items(fresh, first=False), self._setup.limits.spendable)
        try:
            answer = model(prompt)
        except Exception as error:  # a foreign model may raise anything
            raise ModelFailed(reason=f"{type(error).__name__}: {error}") from error
        if isinstance(answer, Coroutine):
            answer.close()  # or Python warns of one that nobody awaited
            raise ModelFailed(reason="it is asynchronous, and a function is needed that answers with a text")
        tokens = sum(one.tokens for one in gone)
        return check_summary(answer, replaced_tokens=tokens, count=self._meter.count)

    def _lifted(self, state: SessionState, of: int, what: Compacted) -> list[Draft]:
        """Pages go as they came: one that was there before is as it was, and one that somebody has written on stays."""
        first = of - len(what.archives)  # its pages come right before it
        then = self._stream.state_at(first - 1).documents
        since = self._between(first, of)
        ours = {event.payload.path: event.payload.text for event in since if isinstance(event.payload, DocumentWritten)}
        untouched = [path for path in what.archives if state.documents.text(path) == ours.get(path)]
        new = tuple(path for path in untouched if path not in then.by_path)
        drafts = [Draft(payload=CompactionUndone(compaction_seq=of, archives=new), origin=Origin.USER)]
        for path in untouched:
            if path in then.by_path:
                written = DocumentWritten(path, then.text(path), upkeep=True)
                drafts.append(Draft(payload=written, origin=Origin.OPERATOR, trust=then.by_path[path].trust))
        left = Documents({path: page for path, page in state.documents.by_path.items() if path not in new})
        return [*drafts, *overview_updates(left, state.language, log=state.overview_lines.without_compaction(of))]

    def _between(self, first: int, last: int) -> Sequence[Event]:
        return self._store.read(self._stream.name, after=first - 1, until=last)

    def _report_of(self, done: AppendResult) -> CompactionReport:
        """What an earlier call with the same key did."""
        if done.last < done.first:
            return CompactionReport(reason=NOTHING)
        (what,) = (one.payload for one in self._between(done.first, done.last) if isinstance(one.payload, Compacted))
        return self.report_for(what, self._stream.state_at(done.last).history)


_NOTHING_MADE = CompactionPlan([], CompactionReport(reason=NOTHING))


class _ConversationChanged(Exception):
    """The conversation went on while its summary was written."""
