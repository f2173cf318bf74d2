"""A reply, carried out: what the model said goes into the journal, and what it asked of its memory is done.

A reply may call memory's tools, the host's, both, and tools that nobody has. Memory's are carried out in the order of
the calls, each on what the one before it left; the host's are left alone; one that nobody has is answered, since a call
without an answer stops the conversation. All of it is one decision, so that it happens once or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from inmind.history import Entry, Line
from inmind.journal import Draft, Event, Origin, Reverted, UsageReported, digest, digest_of
from inmind.mind import Belongings, Mind
from inmind.parts import Parts
from inmind.prompt.formats import FORMATS, format_named
from inmind.prompt.formats.parts import Call, Message, Result, Text
from inmind.prompt.intake import message_added, tool_names
from inmind.prompt.pads import scratchpad_of
from inmind.prompt.recorded import Recorded, recorded
from inmind.prompt.replies import Reply, read_reply
from inmind.prompt.standing import Standing
from inmind.scratchpad.pad import State, changed_by
from inmind.stores.base import Appended, Key
from inmind.stores.stream import Decision, key_for
from inmind.tools import Answer, Reach, adds_tools, carry_out, cut_off, unknown, whose

log = logging.getLogger("inmind")

LEAST_NAME = 16
"""Characters of a reply's id that make it a name. Some servers count their replies, or give all of them the same id."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the model has seen: versions of documents, and the scratchpad, where that is known."""

    pages: Mapping[str, int]
    pad: State | None


@dataclass(frozen=True, slots=True)
class Done:
    """A reply that was recorded: what the host is told, and what the session has to know."""

    recorded: Recorded
    events: Sequence[Event] = ()
    seen: Seen = Seen({}, None)


@dataclass(frozen=True, slots=True)
class _Carried:
    """What a reply comes to."""

    drafts: list[Draft]
    abroad: list[Draft]
    """What happens in the resource's stream."""
    answers: list[Answer]
    seen: Seen
    """What the model has seen after it."""


class Hands:
    """What one session does with replies.

    `kept`: what its layers keep of the messages among some drafts. `prepared`: how things stood right after some call
    was prepared.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        kept: Callable[[Mind, datetime, Sequence[Draft]], list[Draft]],
        prepared: Callable[[int], Standing],
    ) -> None:
        self._stream, self._resource, self._store = parts.stream, parts.resource, parts.store
        self._attention, self._ancestors, self._setup = parts.attention, parts.ancestors, parts.setup
        self._kept, self._prepared = kept, prepared

    def record(self, reply: object, *, format: str | None, call: int | None, key: str | None, seen: Seen) -> Done:
        """Store it and carry it out, once. `seen`: what the model was last shown."""
        spoken = None if format is None else format_named(format).name
        mind, _ = self._stream.refresh(), self._resource.refresh()
        asked = mind.standing if call in (None, mind.standing.calls) else self._prepared(call)
        read = read_reply(reply, format=spoken, hint=asked.format or "openai")
        named, undone = key_for(key, "record", read.wires), list[Appended]()
        if named is None:
            named, undone = self._key(_key(read, asked.calls, mind.line))
        then = self._before(undone)

        def decide(mind: Mind, now: datetime) -> Decision[Mind, _Carried]:
            shown = replace(seen, pad=None) if then else seen
            carried = self._carried_out(mind, now, asked, read, then or self._resource.state, shown)
            drafts = [*carried.drafts, *self._kept(mind, now, carried.drafts)]
            drafts += self._attention.of_messages(mind, drafts, now)
            return Decision(drafts, carried, beside=() if then else carried.abroad)

        done = self._stream.commit(decide, key=named, beside=self._resource)
        if done.answer is None:
            first, last = done.appended.first, done.appended.last
            events = self._store.read(self._stream.name, after=first - 1, until=last)
            return Done(recorded(events, whole=read.whole, repeated=True), seen=seen)
        diagnostics = tuple(answer.diagnostic for answer in done.answer.answers if answer.diagnostic)
        for diagnostic in diagnostics:
            log.warning("%s: %s", self._stream.name, diagnostic)
        return Done(recorded(done.events, whole=read.whole, diagnostics=diagnostics), done.events, done.answer.seen)

    def _carried_out(
        self, mind: Mind, now: datetime, asked: Standing, reply: Reply, belongings: Belongings, seen: Seen
    ) -> _Carried:
        """The reply, what its calls of memory tools change, and their answers."""
        spoken = FORMATS[reply.format]
        drafts = [message_added(wire, spoken) for wire in reply.wires]
        state = self._stream.foresee(mind, mind.seq, drafts, now)
        abroad: list[Draft] = []
        answers: list[Answer] = []
        results: list[Result] = []
        for place, call in _calls(reply):
            answer = self._answer(call, reply, asked, self._reach(state, belongings, seen))
            if answer is None:
                continue
            source = f"{mind.stream}#{mind.seq + 1 + place}"
            done = [Draft(what=what, origin=Origin.ASSISTANT, sources=(source,)) for what in answer.happened]
            if answer.scope == "thread":
                state = self._stream.foresee(state, state.seq, done, now)
                drafts += done
            else:
                belongings = self._resource.foresee(belongings, self._resource.version + len(abroad), done, now)
                abroad += done
            seen = self._seen_after(seen, answer, state, belongings)
            answers.append(answer)
            results.append(Result(call.id, (Text(answer.said),), error=answer.error))
        if results:
            wires = spoken.write([Message("tool", tuple(results))])
            drafts += [message_added(wire, spoken, ours=True) for wire in wires]
        return _Carried([*drafts, *_usage(asked, reply)], abroad, answers, seen)

    def _answer(self, call: Call, reply: Reply, asked: Standing, reach: Reach) -> Answer | None:
        match self._whose(call, asked, reach.mind):
            case "memory":
                return carry_out(call, reach) if reply.whole else cut_off()
            case "nobody":
                return unknown(call, tool_names(asked.all_tools or ()))
            case _:
                return None

    def _whose(self, call: Call, asked: Standing, mind: Mind) -> str:
        """By the tools of the prompt that was answered. Memory has no custom tools."""
        if call.custom:
            return "host"
        said = (FORMATS[entry.format].read(entry.wire) for entry in mind.line)
        return whose(
            call.name,
            asked.tools,
            lambda: adds_tools(said),
            offered=asked.offered,
            remembers=self._setup.memory_tools,
        )

    def _seen_after(self, seen: Seen, answer: Answer, mind: Mind, belongings: Belongings) -> Seen:
        """What the model knows by an answer: its own change, or, where that was refused as stale, what is there."""
        pages = {**seen.pages, **{path: mind.documents.version(path) for path in answer.shown}}
        pad = scratchpad_of(self._setup.layers)
        known = seen.pad
        if pad is not None and answer.stale:
            known = pad.held(mind.pads if pad.scope == "thread" else belongings.pads)
        for what in answer.happened:
            known = changed_by(what, known)
        return Seen(pages, known)

    def _reach(self, mind: Mind, belongings: Belongings, seen: Seen) -> Reach:
        return Reach(
            mind=mind,
            belongings=belongings,
            ancestors=[stream.state for stream in self._ancestors],
            layers=self._setup.layers,
            seen=seen.pages,
            pad_seen=seen.pad,
            resolve=self._attention.resolve,
        )

    def _key(self, key: Key) -> tuple[Key, list[Appended]]:
        """The key of a reply, as long as nobody has taken it back: then it is another, beside what was undone."""
        taken_back: list[Appended] = []
        while (known := self._store.receipt(self._stream.name, key)) is not None:
            reverted = self._store.read(self._stream.name, after=known.last, kind=Reverted.kind)
            undone = [e.seq for e in reverted if isinstance(e.what, Reverted) and e.what.to < known.first]
            if not undone:
                break
            key = replace(key, value=f"{key.value} {undone[-1]}")
            taken_back.append(known)
        return key, taken_back

    def _before(self, undone: Sequence[Appended]) -> Belongings | None:
        """What the resource had before the replies that were taken back; None if they changed nothing there.

        An undo leaves alone what belongs to the resource, so that is done once, however often a reply is recorded.
        """
        said = {f"{self._stream.name}#{seq}" for done in undone for seq in range(done.first, done.last + 1)}
        events = self._store.read(self._resource.name) if said else ()
        changed = next((event for event in events if said.intersection(event.sources)), None)
        return self._resource.at(changed.seq - 1) if changed else None


def _key(reply: Reply, call: int, line: Line) -> Key:
    """What makes two replies the same: the provider's name for it, or else what it says in answer to what."""
    name = reply.id
    if len(name) < LEAST_NAME:
        heard = (entry.seq for entry in reversed(line[:]) if not entry.ours and not _is_assistants(entry))
        name = f"{call} {next(heard, 0)} {reply.id}"
    return Key(f"record {digest(name, digest_of(reply.wires))}", "")


def _is_assistants(entry: Entry) -> bool:
    return FORMATS[entry.format].read(entry.wire).role == "assistant"


def _calls(reply: Reply) -> Iterator[tuple[int, Call]]:
    """The calls of a reply, each with the place of its message among the wires."""
    spoken = FORMATS[reply.format]
    for place, wire in enumerate(reply.wires):
        for call in spoken.read(wire).calls:
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
    )
    return [Draft(what=what, origin=Origin.OPERATOR)]
