"""Record replies of the model and run the memory tools that they call.

A reply may call memory tools, host tools, both, and tools that do not exist. Memory tools run in the order of the
calls, each on the state that the one before has left. Host tools are left to the host. A call of an unknown tool is
answered, because a call without an answer blocks the conversation. All of it is one decision and one commit.

`ReplyExecutor.call` runs a single tool without a reply, for agents whose conversation is kept elsewhere.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from inmind.core.encoding import digest, digest_of, to_json
from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.prompt import UsageReported
from inmind.core.events.session import Reverted
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS, format_named
from inmind.core.messages.model import Call, Message, Result, Text
from inmind.core.messages.replies import Reply, read_reply
from inmind.documents.document import Scope
from inmind.history import Conversation, ConversationEntry
from inmind.history.compaction.build import CompactionPlan
from inmind.prompt.ingest import message_draft
from inmind.prompt.layers.scratchpad import SCRATCHPAD_PATH
from inmind.prompt.state import PromptState
from inmind.search.query import Hit, Query
from inmind.session.affect import SearchCall
from inmind.session.context import SessionContext
from inmind.session.derive import DerivedEvents
from inmind.session.recorded import Recorded, record_result
from inmind.session.state import ResourceState, SessionState
from inmind.session.tool_calls import CallerKnowledge, ResourceVersion, ToolCallBatch, ToolCallRunner
from inmind.session.tools.base import MemoryView, ToolAnswer, ToolResult
from inmind.store.protocol import AppendResult, Key
from inmind.store.stream import Decision, key_for

log = logging.getLogger("inmind")

R = TypeVar("R")

MIN_REPLY_ID_LENGTH = 16
"""Shorter reply ids are not unique: some servers count their replies, or give all of them the same id."""


@frozen
class RecordedReply:
    """A reply that was recorded: what the host is told, and what was appended for it."""

    recorded: Recorded
    events: Sequence[Event] = ()


@frozen
class ToolCallResult:
    """A tool that was called by itself: what the door is told, and what was appended to the session's stream for it."""

    result: ToolResult
    events: Sequence[Event] = ()


class ReplyExecutor:
    """Records replies of one session, and runs single tool calls.

    The callables: `derive` returns the events that share the commit of some drafts; `spikes_for_searches` the affect
    events of searches, for the resource's stream; `state_after` the state right after a numbered call was prepared;
    `compact` the plan of a compaction that the model asks for; `search` the hits of a query; `memory_view` the memory
    blocks of a prompt.
    """

    def __init__(
        self,
        context: SessionContext,
        *,
        derive: Callable[[SessionState, datetime, Sequence[Draft]], DerivedEvents],
        spikes_for_searches: Callable[[SessionState, datetime, Sequence[SearchCall]], list[Draft]],
        state_after: Callable[[int], SessionState],
        compact: Callable[[SessionState, dict[str, Any]], CompactionPlan],
        search: Callable[[Query], Sequence[Hit]],
        memory_view: Callable[[SessionState, datetime], MemoryView],
    ) -> None:
        self._stream, self._resource, self._store = context.stream, context.resource, context.store
        self._derive, self._spikes_for_searches, self._state_after = derive, spikes_for_searches, state_after
        self._runner = ToolCallRunner(context, compact=compact, search=search, memory_view=memory_view)

    def record(self, reply: object, *, format: str | None, call: int | None, key: str | None) -> RecordedReply:
        """Store it and carry it out, once."""
        fmt = None if format is None else format_named(format).name
        state, _ = self._stream.refresh(), self._resource.refresh()
        then = state if call in (None, state.prompt.calls) else self._state_after(call)
        asked = then.prompt
        read = read_reply(reply, format=fmt, hint=asked.format or "openai")
        named, undone = key_for(key, "record", read.wires), list[AppendResult]()
        if named is None:
            named, undone = self._key(_key(read, asked.calls, state.conversation))
        owned = self._resource_before(undone)

        def decide(state: SessionState, now: datetime) -> Decision[SessionState, list[ToolAnswer]]:
            work = self._execute(state, now, asked, read, state if call is None else then, owned)
            decision = self._decide(state, now, work, work.answers)
            return replace(decision, companion=()) if owned else decision

        done = self._stream.commit(decide, key=named, companion=self._resource)
        if done.result is None:
            first, last = done.appended.first, done.appended.last
            events = self._store.read(self._stream.name, after=first - 1, until=last)
            return RecordedReply(record_result(events, complete=read.whole, repeated=True))
        diagnostics = tuple(answer.diagnostic for answer in done.result if answer.diagnostic)
        for diagnostic in diagnostics:
            log.warning("%s: %s", self._stream.name, diagnostic)
        return RecordedReply(record_result(done.events, complete=read.whole, diagnostics=diagnostics), done.events)

    def call(
        self, tool: str, arguments: Any, *, scope: Scope, read_only: bool, seen: Mapping[str, str], key: str | None
    ) -> ToolCallResult:
        """Carry out one tool by itself, once, in the stream of whom it changes something for.

        What is refused has not happened, and keeps no key. What was done under its key before is told as it was told
        then, unless the session has taken it back: then it is another call. What only reads is read again.
        """
        call = Call("", tool, to_json(arguments))
        state, _ = self._stream.refresh(), self._resource.refresh()
        # Sessions share their resource's stream, and each has keys of its own.
        named = key_for(key, "call" if scope == "thread" else f"call:{digest(state.stream)}", tool, arguments)
        undone = list[AppendResult]()
        if named is not None and scope == "thread":
            named, undone = self._key(named)
        abroad_already = self._resource_before(undone) is not None

        def here(state: SessionState, now: datetime) -> Decision[SessionState, ToolResult]:
            work = self._runner.run_call(
                call, state, self._runner.resource_version, self._runner.knowledge_from(seen), now
            )
            decision = replace(self._decide(state, now, work, work.called), consumes_key=work.took_effect)
            return replace(decision, companion=()) if abroad_already else decision

        def abroad(resource_state: ResourceState, now: datetime) -> Decision[ResourceState, ToolResult]:
            owned = ResourceVersion(resource_state, self._resource.version)
            work = self._runner.run_call(call, self._stream.state, owned, self._runner.knowledge_from(seen), now)
            return Decision(work.abroad, work.called, consumes_key=work.took_effect)

        if scope == "thread":
            mine = self._stream.commit(here, key=named, companion=self._resource)
            if mine.result is not None:
                return ToolCallResult(mine.result, mine.events)
            if read_only:
                again = self._stream.dry_run(here).result
            else:
                then = self._stream.state_at(mine.appended.first - 1)
                again = self._repeat_result(call, then, self._runner.resource_version, seen, mine.appended.at)
        else:
            theirs = self._resource.commit(abroad, key=named)
            if theirs.result is not None:
                return ToolCallResult(theirs.result)
            before = theirs.appended.first - 1
            owned = ResourceVersion(self._resource.state_at(before), before)
            again = self._repeat_result(call, state, owned, seen, theirs.appended.at)
        return ToolCallResult(replace(again, repeated=True))

    def _repeat_result(
        self, call: Call, state: SessionState, owned: ResourceVersion, seen: Mapping[str, str], now: datetime
    ) -> ToolResult:
        """What a call was told that took effect, decided once more on what there was then.

        Then it was not held up by anything that its caller had not seen, whatever the caller has seen by now. What came
        of it is known to who wrote all of it, or knows what there was before, or what came of it.
        """
        work = self._runner.run_call(call, state, owned, self._runner.full_knowledge(state, owned.resource_state), now)
        told, (answer,) = work.called, work.answers
        before, after = self._runner.source_of(answer.about, state, owned.resource_state), told.seen.get(answer.about)
        knew = answer.complete or seen.get(answer.about) in (before, after)
        return told if knew else replace(told, seen={})

    def _decide(self, state: SessionState, now: datetime, work: ToolCallBatch, answer: R) -> Decision[SessionState, R]:
        """What was worked out, with all that follows from it."""
        followed = self._derive(state, now, work.drafts)
        abroad = [*work.abroad, *followed.resource_events, *self._spikes_for_searches(state, now, work.lookups)]
        return Decision([*work.drafts, *followed.session_events], answer, companion=abroad)

    def _execute(
        self,
        state: SessionState,
        now: datetime,
        asked: PromptState,
        reply: Reply,
        knew: SessionState,
        owned: ResourceVersion | None,
    ) -> ToolCallBatch:
        """The reply, what its calls of memory tools change, and their answers.

        `knew`: what was in mind when the model was asked. `owned`: what the resource had before this, where it was done
        there already.
        """
        fmt = FORMATS[reply.format]
        said = [message_draft(wire, fmt) for wire in reply.wires]
        state = self._stream.preview(state, state.seq, said, now)
        work = ToolCallBatch(state, owned or self._runner.resource_version, CallerKnowledge.by_prompt(knew))
        work.drafts += said
        seen = work.known.seen.get(SCRATCHPAD_PATH, ())
        work.known.pad = self._runner.known_scratchpad(state, work.resource_state, seen, done=owned is not None)
        results: list[Result] = []
        for place, call in _calls(reply):
            answer = self._runner.answer(call, reply, asked, self._runner.context_for(work, now))
            if answer is not None:
                self._runner.apply(
                    work, call, answer, f"{state.stream}#{state.seq + 1 + place}", now, done=owned is not None
                )
                results.append(Result(call.id, (Text(answer.text),), error=answer.error))
        if results:
            wires = fmt.write([Message("tool", tuple(results))])
            first, *others = (message_draft(wire, fmt, is_memory_reply=True) for wire in wires)
            shown = tuple(work.known.told.items())
            work.drafts += [replace(first, payload=replace(first.payload, shown_versions=shown)), *others]
        work.drafts += _usage(asked, reply)
        return work

    def _key(self, key: Key) -> tuple[Key, list[AppendResult]]:
        """The key of a reply, as long as nobody has taken it back: then it is another, beside what was undone."""
        taken_back: list[AppendResult] = []
        while (known := self._store.receipt(self._stream.name, key)) is not None and self._is_undone(known):
            key = replace(key, value=f"{key.value} {known.last}")
            taken_back.append(known)
        return key, taken_back

    def _is_undone(self, done: AppendResult) -> bool:
        """Is it out of the state? An undo may itself have been undone, by going back to an event behind it."""
        reverted = self._store.read(self._stream.name, after=done.last, kind=Reverted.kind)
        now = reverted[-1].seq if reverted else done.last
        for event in reversed(reverted):
            if event.seq <= now and isinstance(event.payload, Reverted):
                now = event.payload.to
                if now < done.last:
                    return True
        return False

    def _resource_before(self, undone: Sequence[AppendResult]) -> ResourceVersion | None:
        """What the resource had before the replies that were taken back; None if they changed nothing there.

        An undo leaves alone what belongs to the resource, so that is done once, however often a reply is recorded.
        """
        said = {f"{self._stream.name}#{seq}" for done in undone for seq in range(done.first, done.last + 1)}
        events = self._store.read(self._resource.name) if said else ()
        changed = next((event for event in events if said.intersection(event.sources)), None)
        return ResourceVersion(self._resource.state_at(changed.seq - 1), changed.seq - 1) if changed else None


def _key(reply: Reply, call: int, line: Conversation) -> Key:
    """What makes two replies the same: the provider's name for it, or else what it says in answer to what."""
    name = reply.id
    if len(name) < MIN_REPLY_ID_LENGTH:
        heard = (entry.seq for entry in reversed(line[:]) if not entry.is_memory_reply and not _is_assistants(entry))
        name = f"{call} {next(heard, 0)} {reply.id}"
    return Key(f"record {digest(name, digest_of(reply.wires), '' if reply.whole else 'cut')}", "")


def _is_assistants(entry: ConversationEntry) -> bool:
    return FORMATS[entry.format].read(entry.wire).role == "assistant"


def _calls(reply: Reply) -> Iterator[tuple[int, Call]]:
    """The calls of a reply, each with the place of its message among the wires."""
    fmt = FORMATS[reply.format]
    for place, wire in enumerate(reply.wires):
        for call in fmt.read(wire).calls:
            yield place, call


def _usage(asked: PromptState, reply: Reply) -> list[Draft]:
    """What the provider counted for the prompt that this reply answers."""
    if reply.usage is None or not asked.calls:
        return []
    usage = reply.usage
    what = UsageReported(
        call=asked.calls,
        counted=asked.last_prompt.counted_tokens,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        model=reply.model,
    )
    return [Draft(payload=what, origin=Origin.OPERATOR)]
