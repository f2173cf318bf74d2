"""Record replies of the model and run the memory tools that they call.

A reply may call memory tools, host tools, both, and tools that do not exist. Memory tools run in the order of the
calls, each on the state after the one before. Host tools are left to the host. A call of an unknown tool is
answered, because a call without an answer blocks the conversation. All of it is one decision and one commit.

`ReplyExecutor.call` runs a single tool without a reply, for agents whose conversation is kept elsewhere.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from inmind.core.encoding import digest, digest_of, to_json
from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.session import MessageAdded, Reverted, UsageReported
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS, get_format, read_reply
from inmind.core.messages.model import Call, Message, Reply, Result, Text, Wire
from inmind.core.text import count_noun
from inmind.documents.document import Scope
from inmind.history.compaction.build import clearing_by_provider
from inmind.history.history import Conversation
from inmind.history.turns import ReadMessage
from inmind.history.view import deep_copy
from inmind.prompt.ingest import message_draft
from inmind.prompt.state import PromptState
from inmind.session.derive import EventDeriver
from inmind.session.prepare import PromptHistory
from inmind.session.state import ResourceState, SessionState
from inmind.session.tool_calls import (
    ResourceVersion,
    ToolCallBatch,
    ToolCallParts,
    all_pages,
    page_source,
    seen_at_prompt,
    seen_by_caller,
)
from inmind.session.tools.base import ToolAnswer, ToolResult
from inmind.store.protocol import AppendResult, Key
from inmind.store.stream import Decision, key_for

log = logging.getLogger("inmind")

R = TypeVar("R")

MIN_REPLY_ID_LENGTH = 16
"""Shorter reply ids are not unique: some servers count their replies, or give all of them the same id."""


@frozen(kw_only=True)
class HostCall:
    """A call for the host to run.

    Its result goes into the host's message list, or to `session.add`.
    """

    id: str
    name: str
    arguments: Any
    """The parsed arguments; None if the model wrote invalid JSON, see `text`."""
    text: str
    """The arguments as the model wrote them."""

    @classmethod
    def of(cls, call: Call) -> HostCall:
        arguments: Any = None
        if not call.custom:
            with suppress(ValueError, RecursionError):
                arguments = json.loads(call.arguments or "{}")
        return cls(id=call.id, name=call.name, arguments=arguments, text=call.arguments)


@frozen(kw_only=True)
class Recorded:
    """A recorded reply and the results of the memory tools that it called."""

    text: str
    """The text of the reply."""
    results: list[Wire]
    """Messages to send back, in the format of the reply: results of memory tools, and errors for unknown tools."""
    host_calls: tuple[HostCall, ...]
    diagnostics: tuple[str, ...] = ()
    """Errors that were dropped without telling the model."""
    complete: bool = True
    """False if the provider cut the reply off, by length or by a filter; its memory tools were not run."""
    repeated: bool = False
    """The reply had been recorded before; nothing was done again."""

    def __str__(self) -> str:
        calls = [f"{call.name}({call.text})" for call in self.host_calls]
        results = [f"[{count_noun(len(self.results), 'result')} to send back]"] if self.results else []
        return "\n".join(filter(None, [self.text, *calls, *results]))


class ReplyExecutor:
    """Records replies of one session, and runs single tool calls."""

    def __init__(self, parts: ToolCallParts, deriver: EventDeriver, prompts: PromptHistory) -> None:
        self._parts, self._context, self._deriver, self._prompts = parts, parts.context, deriver, prompts
        self._stream, self._resource, self._store = self._context.stream, self._context.resource, self._context.store

    def record(
        self, reply: object, *, format: str | None, call: int | None, key: str | None
    ) -> tuple[Recorded, Sequence[Event]]:
        """Record a reply and run its memory tools, once for each reply.

        Returns the result for the host and the appended events.
        """
        format_name = None if format is None else get_format(format).name
        state, _ = self._stream.refresh(), self._resource.refresh()
        at_prompt = (
            state if call in (None, state.prompt.calls) else self._stream.state_at(self._prompts.find(call)[0].seq)
        )
        prompt = at_prompt.prompt
        parsed = read_reply(reply, format=format_name, hint=prompt.format or "openai")
        checked_key, resource = key_for(key, "record", parsed.wires), None
        if checked_key is None:
            own_key = _reply_key(parsed, prompt.calls, state.conversation, self._context.view.read_message)
            checked_key, resource = self._unused_key(own_key)

        def decide(state: SessionState, now: datetime) -> Decision[SessionState, list[ToolAnswer]]:
            batch = self._execute(state, now, prompt, parsed, state if call is None else at_prompt, resource)
            return self._decide(state, now, batch, batch.answers, resource)

        done = self._stream.commit(decide, key=checked_key, companion=self._resource)
        if done.result is None:
            first, last = done.appended.first, done.appended.last
            events = self._store.read(self._stream.name, after=first - 1, until=last)
            return _recorded(events, complete=parsed.is_complete, repeated=True), ()
        diagnostics = tuple(answer.diagnostic for answer in done.result if answer.diagnostic)
        for diagnostic in diagnostics:
            log.warning("%s: %s", self._stream.name, diagnostic)
        return _recorded(done.events, complete=parsed.is_complete, diagnostics=diagnostics), done.events

    def call(
        self, tool: str, arguments: Any, *, scope: Scope, read_only: bool, seen: Mapping[str, str], key: str | None
    ) -> tuple[ToolResult, Sequence[Event]]:
        """Execute one memory tool outside a reply, idempotently, in the stream that it modifies.

        Returns its result and the events appended to the session's stream.

        A refused call does not consume its key. A call that was made before with its key returns its earlier result,
        unless the session has undone it: then it is run again. A read-only tool always reads again.
        """
        call = Call("", tool, to_json(arguments))
        state, _ = self._stream.refresh(), self._resource.refresh()
        # Sessions share the stream of their resource, so the key includes the session.
        request = "call" if scope == "thread" else f"call:{digest(state.stream)}"
        checked_key = key_for(key, request, tool, arguments)
        resource_before = None
        if checked_key is not None and scope == "thread":
            checked_key, resource_before = self._unused_key(checked_key)
        pages = seen_by_caller(self._context, seen)

        def in_session(state: SessionState, now: datetime) -> Decision[SessionState, ToolResult]:
            batch = ToolCallBatch(self._parts, state, self._resource_now(), pages, now).run(call)
            decision = self._decide(state, now, batch, batch.result, resource_before)
            return replace(decision, consumes_key=batch.took_effect)

        def in_resource(resource_state: ResourceState, now: datetime) -> Decision[ResourceState, ToolResult]:
            resource = ResourceVersion(resource_state, self._resource.version)
            batch = ToolCallBatch(self._parts, self._stream.state, resource, pages, now).run(call)
            return Decision(batch.resource_drafts, batch.result, consumes_key=batch.took_effect)

        if scope == "thread":
            done = self._stream.commit(in_session, key=checked_key, companion=self._resource)
            if done.result is not None:
                return done.result, done.events
            if read_only:
                result = self._stream.dry_run(in_session).result
            else:
                before = self._stream.state_at(done.appended.first - 1)
                result = self._repeat_result(call, before, self._resource_now(), seen, done.appended.at)
        else:
            done = self._resource.commit(in_resource, key=checked_key)
            if done.result is not None:
                return done.result, ()
            seq = done.appended.first - 1
            resource = ResourceVersion(self._resource.state_at(seq), seq)
            result = self._repeat_result(call, state, resource, seen, done.appended.at)
        return replace(result, repeated=True), ()

    def _repeat_result(
        self, call: Call, state: SessionState, resource: ResourceVersion, seen: Mapping[str, str], now: datetime
    ) -> ToolResult:
        """Compute the result of an earlier call again, on the states before it.

        The call took effect then, so no unseen change refused it: it runs with full knowledge. The result's `seen` is
        kept only if the caller knows the page: it wrote all of it, or knows the version before or after the call.
        """
        pages = all_pages(self._context, state, resource.state)
        batch = ToolCallBatch(self._parts, state, resource, pages, now).run(call)
        result, (answer,) = batch.result, batch.answers
        before = page_source(self._context, answer.about, state, resource.state)
        after = result.seen.get(answer.about)
        is_known = answer.complete or seen.get(answer.about) in (before, after)
        return result if is_known else replace(result, seen={})

    def _resource_now(self) -> ResourceVersion:
        return ResourceVersion(self._resource.state, self._resource.version)

    def _decide(
        self, state: SessionState, now: datetime, batch: ToolCallBatch, answer: R, before: ResourceVersion | None
    ) -> Decision[SessionState, R]:
        """The decision to append a batch and the events derived from it.

        `before`: set if an undone recording has already changed the resource, which an undo does not revert.
        """
        decision = self._deriver.derive(state, now, batch.drafts, answer)
        return replace(decision, companion=[] if before else [*batch.resource_drafts, *decision.companion])

    def _execute(
        self,
        state: SessionState,
        now: datetime,
        prompt: PromptState,
        reply: Reply,
        state_at_prompt: SessionState,
        resource: ResourceVersion | None,
    ) -> ToolCallBatch:
        """The messages of a reply, the changes of its memory tools, and their answers.

        `state_at_prompt`: the state that the model saw. `resource`: the state of the resource before this reply, if an
        undone recording of the same reply has already changed it.
        """
        fmt = FORMATS[reply.format]
        reply_id = reply.id if fmt.rules.has_threads else ""
        messages = [message_draft(wire, fmt, reply_id=reply_id) for wire in reply.wires]
        after_reply = self._stream.preview(state, state.seq, messages, now)
        known, seen = resource or self._resource_now(), seen_at_prompt(state_at_prompt)
        batch = ToolCallBatch(self._parts, after_reply, known, seen, now, already_applied=resource is not None)
        batch.drafts += messages
        results: list[Result] = []
        calls = ((place, call) for place, wire in enumerate(reply.wires) for call in fmt.read(wire).calls)
        for place, call in calls:
            answer = batch.answer(call, reply, prompt)
            if answer is not None:
                batch.add(answer, f"{state.stream}#{state.seq + 1 + place}")
                results.append(Result(call.id, (Text(answer.text),), error=answer.error))
        if results:
            wires = fmt.write([Message("tool", tuple(results))])
            first, *others = (message_draft(wire, fmt, is_memory_reply=True) for wire in wires)
            shown_versions = tuple(batch.shown_by_answers.items())
            batch.drafts += [replace(first, payload=replace(first.payload, shown_versions=shown_versions)), *others]
        batch.drafts += [*map(clearing_by_provider, reply.edits), *_usage(prompt, reply)]
        return batch

    def _unused_key(self, key: Key) -> tuple[Key, ResourceVersion | None]:
        """The idempotency key, and the resource before undone commits with it.

        The resource is None if they did not change it. After an undo a fresh key is derived, so that the same reply can
        be recorded again. An undo does not change the resource, so the resource is changed once, however often a reply
        is recorded.
        """
        name, sources = self._stream.name, set[str]()
        while (receipt := self._store.receipt(name, key)) is not None and self._is_undone(receipt):
            key = replace(key, value=f"{key.value} {receipt.last}")
            sources.update(f"{name}#{seq}" for seq in range(receipt.first, receipt.last + 1))
        events = self._store.read(self._resource.name) if sources else ()
        changed = next((event for event in events if sources.intersection(event.sources)), None)
        return key, ResourceVersion(self._resource.state_at(changed.seq - 1), changed.seq - 1) if changed else None

    def _is_undone(self, append: AppendResult) -> bool:
        """True if an append is reverted.

        An undo may itself be undone, by going back to an event after it.
        """
        reverted = self._store.read(self._stream.name, after=append.last, kind=Reverted.kind)
        seq = reverted[-1].seq if reverted else append.last
        for event in reversed(reverted):
            if event.seq <= seq and isinstance(event.payload, Reverted):
                seq = event.payload.to
                if seq < append.last:
                    return True
        return False


def _reply_key(reply: Reply, call: int, conversation: Conversation, read: ReadMessage) -> Key:
    """Identify a reply by the provider's id, or else by call, last message and content."""
    name = reply.id
    if len(name) < MIN_REPLY_ID_LENGTH:
        newest_first = reversed(conversation[:])
        answered = (
            entry.seq for entry in newest_first if not entry.is_memory_reply and read(entry).role != "assistant"
        )
        name = f"{call} {next(answered, 0)} {reply.id}"
    return Key(f"record {digest(name, digest_of(reply.wires), '' if reply.is_complete else 'cut')}", "")


def _usage(prompt: PromptState, reply: Reply) -> list[Draft]:
    """The token counts of the provider for the prompt that this reply answers."""
    if reply.usage is None or not prompt.calls:
        return []
    usage = reply.usage
    fmt = FORMATS[reply.format]
    was_edited = bool(reply.edits) or any(fmt.read(wire).has_compaction for wire in reply.wires)
    payload = UsageReported(
        call=prompt.calls,
        # A prompt that the provider has edited was shorter than the one that was counted.
        counted=0 if was_edited else prompt.last_prompt.counted_tokens,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        model=reply.model,
    )
    return [Draft(payload=payload, origin=Origin.OPERATOR)]


def _recorded(
    events: Sequence[Event], *, complete: bool, diagnostics: tuple[str, ...] = (), repeated: bool = False
) -> Recorded:
    """Build the result from the events of the commit, so that a repeated call returns the same."""
    texts: list[str] = []
    results: list[Wire] = []
    calls: list[Call] = []
    answered: Counter[str] = Counter()
    for event in events:
        if not isinstance(event.payload, MessageAdded):
            continue
        message = FORMATS[event.payload.format].read(event.payload.wire)
        if message.results:
            results.append(deep_copy(event.payload.wire))
            answered.update(result.id for result in message.results)
        else:
            calls += message.calls
            texts += [message.text] if message.text else []
    host_calls: list[HostCall] = []
    for call in calls:
        if answered[call.id]:
            answered[call.id] -= 1
        else:
            host_calls.append(HostCall.of(call))
    return Recorded(
        text="\n".join(texts),
        results=results,
        host_calls=tuple(host_calls),
        diagnostics=diagnostics,
        complete=complete,
        repeated=repeated,
    )
