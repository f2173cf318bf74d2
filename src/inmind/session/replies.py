"""A reply, carried out: what the model said goes into the journal, and what it asked of its memory is done.

A door may also call one tool by itself, where no reply is around it: an agent elsewhere keeps its own conversation, and
only what it does to its memory is told here.

A reply may call memory's tools, the host's, both, and tools that nobody has. Memory's are carried out in the order of
the calls, each on what the one before it left; the host's are left alone; one that nobody has is answered, since a call
without an answer stops the conversation. All of it is one decision, so that it happens once or not at all.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

from inmind.core.encoding import digest, digest_of, to_json
from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.crystals import SearchRecorded
from inmind.core.events.prompt import UsageReported
from inmind.core.events.session import Reverted
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS, format_named
from inmind.core.messages.model import Call, Message, Result, Text
from inmind.core.messages.replies import Reply, read_reply
from inmind.documents.document import Scope
from inmind.documents.scratchpad.state import ScratchpadState, known_state_after
from inmind.history import Conversation, ConversationEntry
from inmind.history.compaction.build import Made
from inmind.prompt.ingest import message_added, tool_names
from inmind.prompt.layers.scratchpad import SCRATCHPAD, scratchpad_of
from inmind.prompt.state import Standing
from inmind.search.query import Hit, Query
from inmind.session.context import SessionContext
from inmind.session.recorded import Recorded, record_result
from inmind.session.state import ResourceState, SessionState
from inmind.session.tools.base import MemoryView, ToolAnswer, ToolContext, ToolResult
from inmind.session.tools.registry import adds_tools, cut_off_answer, route_call, run_tool, unknown_tool_answer
from inmind.store.protocol import AppendResult, Key
from inmind.store.stream import Decision, key_for

log = logging.getLogger("inmind")

R = TypeVar("R")

_SEARCH = "memory_search"

_NUMBER = re.compile(r"[0-9]{1,15}")

MIN_REPLY_ID_LENGTH = 16
"""Characters of a reply's id that make it a name. Some servers count their replies, or give all of them the same id."""


class DerivedEvents(NamedTuple):
    """What comes with something, in its commit."""

    session_events: list[Draft]
    """In the session's stream."""
    resource_events: list[Draft]
    """In the resource's."""


class SearchCall(NamedTuple):
    """A search of the model's."""

    has_hits: bool
    event: str
    """The event that called for it, or, where it was called by itself, that tells of it."""


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


@frozen
class _Owned:
    """What the resource has, and the number of the last event that it was folded from."""

    resource_state: ResourceState
    version: int


class _Known:
    """What the model knows of memory while calls of its are carried out.

    It wrote all of the calls before it had heard any answer. So beyond what it had seen, by the events that had written
    that, it knows what it writes itself; what the calls are answered it will know from the next reply on (`told`).
    """

    def __init__(self, seen: Mapping[str, Sequence[str]]) -> None:
        self.seen = dict(seen)
        self.told: dict[str, str] = {}
        self.pad: ScratchpadState | None = None

    @classmethod
    def by_prompt(cls, knew: SessionState) -> Self:
        """By the last prompt, and by what its calls were answered since."""
        paths = {**knew.shown_in_prompt, **knew.shown_in_results}
        return cls({path: (knew.shown_in_prompt.get(path, ""), knew.shown_in_results.get(path, "")) for path in paths})

    def take(self, answer: ToolAnswer, before: str, after: str) -> None:
        """An answer; with the events that had written what it is about, and have now. None where there is no such."""
        self.told.update(answer.shows)
        for draft in answer.drafts:
            self.pad = known_state_after(draft.payload, self.pad)
        if not after:
            return
        knew = answer.complete or before in self.seen.get(answer.about, ())
        if answer.complete or (answer.drafts and (knew or self.told.get(answer.about) == before)):
            self.told[answer.about] = after
        if answer.drafts and knew:
            self.seen[answer.about] = (after, after)


class _Work:
    """Calls that are carried out one after the other, each on what the one before it has left."""

    def __init__(self, state: SessionState, owned: _Owned, known: _Known) -> None:
        self.state, self.resource_state, self.version, self.known = state, owned.resource_state, owned.version, known
        self.drafts: list[Draft] = []
        self.abroad: list[Draft] = []
        """What happens in the resource's stream."""
        self.answers: list[ToolAnswer] = []
        self.lookups: list[SearchCall] = []

    @property
    def owned(self) -> _Owned:
        return _Owned(self.resource_state, self.version + len(self.abroad))

    @property
    def called(self) -> ToolResult:
        """What the last call is told, where it stands by itself."""
        answer = self.answers[-1]
        return ToolResult(
            text=answer.text,
            content=dict[str, Any]() if answer.error else answer.content,
            error=answer.error,
            code=answer.code,
            seen=self.known.told,
        )

    @property
    def took_effect(self) -> bool:
        return not any(answer.refused for answer in self.answers)


class ReplyExecutor:
    """What one session does with replies, and with tools that are called by themselves.

    `followed`: what comes with some drafts, in their commit; `recalled`: what comes with searches, abroad. `prepared`:
    what was in mind right after some call was prepared. `compact`: what a compaction comes to that the model asks for.
    `search`: what deep memory answers it. `in_mind`: what memory would say in a prompt.
    """

    def __init__(
        self,
        parts: SessionContext,
        *,
        followed: Callable[[SessionState, datetime, Sequence[Draft]], DerivedEvents],
        recalled: Callable[[SessionState, datetime, Sequence[SearchCall]], list[Draft]],
        prepared: Callable[[int], SessionState],
        compact: Callable[[SessionState, dict[str, Any]], Made],
        search: Callable[[Query], Sequence[Hit]],
        in_mind: Callable[[SessionState, datetime], MemoryView],
    ) -> None:
        self._stream, self._resource, self._store = parts.stream, parts.resource, parts.store
        self._attention, self._ancestors, self._setup = parts.entities, parts.ancestors, parts.config
        self._followed, self._recalled = followed, recalled
        self._prepared, self._compact, self._search, self._in_mind = prepared, compact, search, in_mind

    def record(self, reply: object, *, format: str | None, call: int | None, key: str | None) -> RecordedReply:
        """Store it and carry it out, once."""
        fmt = None if format is None else format_named(format).name
        state, _ = self._stream.refresh(), self._resource.refresh()
        then = state if call in (None, state.prompt.calls) else self._prepared(call)
        asked = then.prompt
        read = read_reply(reply, format=fmt, hint=asked.format or "openai")
        named, undone = key_for(key, "record", read.wires), list[AppendResult]()
        if named is None:
            named, undone = self._key(_key(read, asked.calls, state.conversation))
        owned = self._before(undone)

        def decide(state: SessionState, now: datetime) -> Decision[SessionState, list[ToolAnswer]]:
            work = self._carried_out(state, now, asked, read, state if call is None else then, owned)
            decision = self._decision(state, now, work, work.answers)
            return replace(decision, beside=()) if owned else decision

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
        self, tool: str, arguments: Any, *, scope: Scope, reads_only: bool, seen: Mapping[str, str], key: str | None
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
        abroad_already = self._before(undone) is not None

        def here(state: SessionState, now: datetime) -> Decision[SessionState, ToolResult]:
            work = self._called(call, state, self._owned, self._known_by(seen), now)
            decision = replace(self._decision(state, now, work, work.called), binding=work.took_effect)
            return replace(decision, beside=()) if abroad_already else decision

        def abroad(resource_state: ResourceState, now: datetime) -> Decision[ResourceState, ToolResult]:
            owned = _Owned(resource_state, self._resource.version)
            work = self._called(call, self._stream.state, owned, self._known_by(seen), now)
            return Decision(work.abroad, work.called, consumes_key=work.took_effect)

        if scope == "thread":
            mine = self._stream.commit(here, key=named, companion=self._resource)
            if mine.result is not None:
                return ToolCallResult(mine.result, mine.events)
            if reads_only:
                again = self._stream.dry_run(here).result
            else:
                then = self._stream.state_at(mine.appended.first - 1)
                again = self._told_again(call, then, self._owned, seen, mine.appended.at)
        else:
            theirs = self._resource.commit(abroad, key=named)
            if theirs.result is not None:
                return ToolCallResult(theirs.result)
            before = theirs.appended.first - 1
            owned = _Owned(self._resource.state_at(before), before)
            again = self._told_again(call, state, owned, seen, theirs.appended.at)
        return ToolCallResult(replace(again, repeated=True))

    def _called(self, call: Call, state: SessionState, owned: _Owned, known: _Known, now: datetime) -> _Work:
        """One call and nothing else, carried out by somebody who knows so much."""
        work = _Work(state, owned, known)
        known.pad = self._pad_known(state, owned.resource_state, known.seen.get(SCRATCHPAD, ()), done=False)
        self._take(work, call, run_tool(call, self._reach(work, now)), "", now)
        return work

    def _told_again(
        self, call: Call, state: SessionState, owned: _Owned, seen: Mapping[str, str], now: datetime
    ) -> ToolResult:
        """What a call was told that took effect, decided once more on what there was then.

        Then it was not held up by anything that its caller had not seen, whatever the caller has seen by now. What came
        of it is known to who wrote all of it, or knows what there was before, or what came of it.
        """
        work = self._called(call, state, owned, self._all_known(state, owned.resource_state), now)
        told, (answer,) = work.called, work.answers
        before, after = self._source(answer.about, state, owned.resource_state), told.seen.get(answer.about)
        knew = answer.complete or seen.get(answer.about) in (before, after)
        return told if knew else replace(told, seen={})

    @property
    def _owned(self) -> _Owned:
        return _Owned(self._resource.state, self._resource.version)

    def _all_known(self, state: SessionState, resource_state: ResourceState) -> _Known:
        pages = {path: page.source for path, page in state.documents.by_path.items()}
        seen = {**pages, SCRATCHPAD: self._source(SCRATCHPAD, state, resource_state)}
        return _Known({path: (event,) for path, event in seen.items()})

    def _known_by(self, seen: Mapping[str, str]) -> _Known:
        """By what a caller says that it was told. An event that there is none of makes nothing known."""
        last = {self._stream.name: self._stream.version, self._resource.name: self._resource.version}

        def is_one(path: str, event: str) -> bool:
            stream, _, seq = event.rpartition("#")
            whose = stream == self._stream.name or (path == SCRATCHPAD and stream in last)
            return whose and _NUMBER.fullmatch(seq) is not None and int(seq) <= last[stream]

        return _Known({path: (event,) for path, event in seen.items() if is_one(path, event)})

    def _decision(self, state: SessionState, now: datetime, work: _Work, answer: R) -> Decision[SessionState, R]:
        """What was worked out, with all that follows from it."""
        followed = self._followed(state, now, work.drafts)
        abroad = [*work.abroad, *followed.resource_events, *self._recalled(state, now, work.lookups)]
        return Decision([*work.drafts, *followed.session_events], answer, companion=abroad)

    def _carried_out(
        self,
        state: SessionState,
        now: datetime,
        asked: Standing,
        reply: Reply,
        knew: SessionState,
        owned: _Owned | None,
    ) -> _Work:
        """The reply, what its calls of memory tools change, and their answers.

        `knew`: what was in mind when the model was asked. `owned`: what the resource had before this, where it was done
        there already.
        """
        fmt = FORMATS[reply.format]
        said = [message_added(wire, fmt) for wire in reply.wires]
        state = self._stream.preview(state, state.seq, said, now)
        work = _Work(state, owned or self._owned, _Known.by_prompt(knew))
        work.drafts += said
        seen = work.known.seen.get(SCRATCHPAD, ())
        work.known.pad = self._pad_known(state, work.resource_state, seen, done=owned is not None)
        results: list[Result] = []
        for place, call in _calls(reply):
            answer = self._answer(call, reply, asked, self._reach(work, now))
            if answer is not None:
                self._take(work, call, answer, f"{state.stream}#{state.seq + 1 + place}", now, done=owned is not None)
                results.append(Result(call.id, (Text(answer.text),), error=answer.error))
        if results:
            wires = fmt.write([Message("tool", tuple(results))])
            first, *others = (message_added(wire, fmt, ours=True) for wire in wires)
            shown = tuple(work.known.told.items())
            work.drafts += [replace(first, payload=replace(first.payload, shown_versions=shown)), *others]
        work.drafts += _usage(asked, reply)
        return work

    def _take(self, work: _Work, call: Call, answer: ToolAnswer, by: str, now: datetime, *, done: bool = False) -> None:
        """What a call was answered, entered into the work. `by`: the event that it stands in, where there is one.

        `done`: what belongs to the resource was changed by it before.
        """
        drafts = [replace(draft, sources=(by, *draft.sources)) if by else draft for draft in answer.drafts]
        before = self._source(answer.about, work.state, work.resource_state)
        if answer.scope == "thread":
            work.state = self._stream.preview(work.state, work.state.seq, drafts, now)
            work.drafts += drafts
        else:
            owned = work.owned
            work.resource_state = self._resource.preview(owned.resource_state, owned.version, drafts, now)
            work.abroad += drafts
        after = self._source(answer.about, work.state, work.resource_state)
        if done and after.startswith(f"{self._resource.name}#"):
            after = ""  # nothing is appended there once more
        work.known.take(answer, before, after)
        work.answers.append(answer)
        if call.name == _SEARCH and not answer.error:
            found = any(isinstance(one.payload, SearchRecorded) and one.payload.hits for one in drafts)
            work.lookups.append(SearchCall(found, by or f"{work.state.stream}#{work.state.seq}"))

    def _answer(self, call: Call, reply: Reply, asked: Standing, reach: ToolContext) -> ToolAnswer | None:
        match self._whose(call, asked, reach.state):
            case "memory":
                return run_tool(call, reach) if reply.whole else cut_off_answer()
            case "unknown":
                return unknown_tool_answer(call, tool_names(asked.all_tools or ()))
            case _:
                return None

    def _whose(self, call: Call, asked: Standing, state: SessionState) -> str:
        """By the tools of the prompt that was answered. Memory has no custom tools."""
        if call.custom:
            return "host"
        said = (FORMATS[entry.format].read(entry.wire) for entry in state.conversation)
        return route_call(
            call.name,
            asked.tools,
            lambda: adds_tools(said),
            layer_tools=asked.offered,
            memory_tools=self._setup.memory_tools,
        )

    def _pad_known(
        self, state: SessionState, resource_state: ResourceState, seen: Sequence[str], *, done: bool
    ) -> ScratchpadState | None:
        """The scratchpad as the model knew it, by the events that wrote what it was shown; None if it was not.

        `done`: what belongs to the resource was changed by this reply before, so the model knew what there was.
        """
        layer = scratchpad_of(self._setup.layers)
        if layer is None:
            return None
        pads, stream = (
            (state.scratchpads, self._stream)
            if layer.scope == "thread"
            else (resource_state.scratchpads, self._resource)
        )
        if layer.source(stream.name, pads) in seen or (done and layer.scope == "resource"):
            return layer.held(pads)
        seqs = [_seq(id) for id in seen if id.startswith(f"{stream.name}#")]
        return layer.held(stream.state_at(max(seqs)).scratchpads) if seqs else None

    def _page_then(self, seen: Mapping[str, Sequence[str]], path: str) -> str:
        seqs = [_seq(id) for id in seen.get(path, ()) if id]
        return self._stream.state_at(max(seqs)).documents.text(path) if seqs else ""

    def _source(self, path: str, state: SessionState, resource_state: ResourceState) -> str:
        """The event that wrote a page, or the scratchpad, as it is."""
        layer = scratchpad_of(self._setup.layers)
        if path == SCRATCHPAD and layer is not None:
            if layer.scope == "thread":
                return layer.source(state.stream, state.scratchpads)
            return layer.source(self._resource.name, resource_state.scratchpads)
        page = state.documents.by_path.get(path)
        return page.source if page else ""

    def _reach(self, work: _Work, now: datetime) -> ToolContext:
        state, owned, known = work.state, work.owned, work.known
        nexts = {"thread": f"{state.stream}#{state.seq + 1}", "resource": f"{self._resource.name}#{owned.version + 1}"}
        return ToolContext(
            now=now,
            state=state,
            resource_state=owned.resource_state,
            ancestors=[stream.state for stream in self._ancestors],
            layers=self._setup.layers,
            seen=known.seen,
            page_as_seen=partial(self._page_then, known.seen),
            scratchpad_as_seen=known.pad,
            next_id=nexts.__getitem__,
            resolve=self._attention.resolve,
            search=self._search,
            compact=partial(self._compact, state),
            memory_view=partial(self._in_mind, state, now),
        )

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

    def _before(self, undone: Sequence[AppendResult]) -> _Owned | None:
        """What the resource had before the replies that were taken back; None if they changed nothing there.

        An undo leaves alone what belongs to the resource, so that is done once, however often a reply is recorded.
        """
        said = {f"{self._stream.name}#{seq}" for done in undone for seq in range(done.first, done.last + 1)}
        events = self._store.read(self._resource.name) if said else ()
        changed = next((event for event in events if said.intersection(event.sources)), None)
        return _Owned(self._resource.state_at(changed.seq - 1), changed.seq - 1) if changed else None


def _key(reply: Reply, call: int, line: Conversation) -> Key:
    """What makes two replies the same: the provider's name for it, or else what it says in answer to what."""
    name = reply.id
    if len(name) < MIN_REPLY_ID_LENGTH:
        heard = (entry.seq for entry in reversed(line[:]) if not entry.ours and not _is_assistants(entry))
        name = f"{call} {next(heard, 0)} {reply.id}"
    return Key(f"record {digest(name, digest_of(reply.wires), '' if reply.whole else 'cut')}", "")


def _seq(id: str) -> int:
    return int(id.rpartition("#")[2])


def _is_assistants(entry: ConversationEntry) -> bool:
    return FORMATS[entry.format].read(entry.wire).role == "assistant"


def _calls(reply: Reply) -> Iterator[tuple[int, Call]]:
    """The calls of a reply, each with the place of its message among the wires."""
    fmt = FORMATS[reply.format]
    for place, wire in enumerate(reply.wires):
        for call in fmt.read(wire).calls:
            yield place, call


def _usage(asked: Standing, reply: Reply) -> list[Draft]:
    """What the provider counted for the prompt that this reply answers."""
    if reply.usage is None or not asked.calls:
        return []
    usage = reply.usage
    what = UsageReported(
        call=asked.calls,
        counted=asked.sent.counted,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        model=reply.model,
    )
    return [Draft(payload=what, origin=Origin.OPERATOR)]
