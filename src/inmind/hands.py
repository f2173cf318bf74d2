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

from inmind.attention import Attention
from inmind.history import Entry, Line
from inmind.journal import Draft, Event, Origin, Reverted, UsageReported, digest, digest_of
from inmind.mind import Belongings, Mind
from inmind.prompt.formats import FORMATS, format_named
from inmind.prompt.formats.parts import Call, Message, Result, Text
from inmind.prompt.intake import message_added, tool_names
from inmind.prompt.layer import Layer
from inmind.prompt.pads import scratchpad_of
from inmind.prompt.recorded import Recorded, recorded
from inmind.prompt.replies import Reply, read_reply
from inmind.prompt.standing import Standing
from inmind.scratchpad.pad import State
from inmind.stores.base import Key, Store
from inmind.stores.stream import Decision, Stream, key_for
from inmind.tools import Answer, Reach, adds_tools, carry_out, cut_off, scope_of, unknown, whose

log = logging.getLogger("inmind")

LEAST_NAME = 16
"""Characters of a reply's id that make it a name. Some servers count their replies, or give all of them the same id."""


@dataclass(frozen=True, slots=True)
class Done:
    """A reply that was recorded: what the host is told, and what the session has to know."""

    recorded: Recorded
    events: Sequence[Event] = ()
    shown: frozenset[str] = frozenset()
    """Documents that the model has seen or written by it."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the model was last shown: versions of documents, and the scratchpad, where that is known."""

    pages: Mapping[str, int]
    pad: State | None


Abroad = tuple[Answer, Belongings]
"""What a call came to that has changed what belongs to the resource, and what that is from then on."""


class Hands:
    """What one session does with replies.

    `kept`: what its layers keep of the messages among some drafts. `prepared`: how
    things stood right after some call was prepared.
    """

    def __init__(
        self,
        stream: Stream[Mind],
        resource: Stream[Belongings],
        store: Store,
        attention: Attention,
        layers: Sequence[Layer],
        ancestors: Sequence[Stream[Mind]],
        *,
        remembers: bool,
        kept: Callable[[Mind, datetime, Sequence[Draft]], list[Draft]],
        prepared: Callable[[int], Standing],
    ) -> None:
        self._stream, self._resource, self._store = stream, resource, store
        self._attention, self._layers, self._ancestors = attention, layers, ancestors
        self._remembers, self._kept, self._prepared = remembers, kept, prepared

    def record(self, reply: object, *, format: str | None, call: int | None, key: str | None, seen: Seen) -> Done:
        """Store it and carry it out, once. `seen`: what the model was last shown."""
        spoken = None if format is None else format_named(format).name
        mind = self._stream.refresh()
        asked = mind.standing if call in (None, mind.standing.calls) else self._prepared(call)
        read = read_reply(reply, format=spoken, hint=asked.format or "openai")
        named = key_for(key, "record", read.wires) or self._key(read, asked.calls)
        begin, abroad = self._resource.refresh(), dict[int, Abroad]()
        if self._store.receipt(self._stream.name, named) is None:
            abroad = self._carry_out_abroad(mind, asked, read, named, seen)

        def decide(mind: Mind, now: datetime) -> Decision[Mind, list[Answer]]:
            drafts, answers = self._carried_out(mind, now, asked, read, begin, abroad, seen)
            drafts += self._kept(mind, now, drafts)
            return Decision([*drafts, *self._attention.of_messages(mind, drafts, now)], answers)

        done = self._stream.commit(decide, key=named)
        if done.answer is None:
            first, last = done.appended.first, done.appended.last
            events = self._store.read(self._stream.name, after=first - 1, until=last)
            return Done(recorded(events, whole=read.whole, repeated=True))
        diagnostics = tuple(answer.diagnostic for answer in done.answer if answer.diagnostic)
        for diagnostic in diagnostics:
            log.warning("%s: %s", self._stream.name, diagnostic)
        shown = frozenset(path for answer in done.answer for path in answer.shown)
        return Done(recorded(done.events, whole=read.whole, diagnostics=diagnostics), done.events, shown)

    def _carried_out(
        self,
        mind: Mind,
        now: datetime,
        asked: Standing,
        reply: Reply,
        belongings: Belongings,
        abroad: Mapping[int, Abroad],
        seen: Seen,
    ) -> tuple[list[Draft], list[Answer]]:
        """The reply, what its calls of memory tools change, and their answers. `abroad`: calls already done."""
        spoken = FORMATS[reply.format]
        drafts = [message_added(wire, spoken) for wire in reply.wires]
        state = self._stream.foresee(mind, mind.seq, drafts, now)
        answers: list[Answer] = []
        results: list[Result] = []
        for number, (place, call) in enumerate(_calls(reply)):
            if number in abroad:
                answer, belongings = abroad[number]
            else:
                answer = self._answer(call, reply, asked, self._reach(state, belongings, seen))
            if answer is None:
                continue
            source = f"{mind.stream}#{mind.seq + 1 + place}"
            happened = answer.happened if answer.scope == "thread" else ()
            done = [Draft(what=what, origin=Origin.ASSISTANT, sources=(source,)) for what in happened]
            state = self._stream.foresee(state, state.seq, done, now)
            seen = self._seen_after(seen, state, belongings)
            drafts += done
            answers.append(answer)
            results.append(Result(call.id, (Text(answer.said),), error=answer.error))
        if results:
            wires = spoken.write([Message("tool", tuple(results))])
            drafts += [message_added(wire, spoken, ours=True) for wire in wires]
        return [*drafts, *_usage(asked, reply)], answers

    def _carry_out_abroad(self, mind: Mind, asked: Standing, reply: Reply, key: Key, seen: Seen) -> dict[int, Abroad]:
        """Calls that change what belongs to the resource: each a commit there, under a key of its own.

        They come before the reply's own commit. Whoever repeats a reply that was cut off in between finds them done.
        """
        done: dict[int, Abroad] = {}
        for number, (_, call) in enumerate(_calls(reply)):
            reach = self._reach(mind, self._resource.state, seen)
            if not reply.whole or self._whose(call, asked, mind) != "memory" or scope_of(call, reach) != "resource":
                continue
            answer = self._done_abroad(call, mind, seen, Key(f"{self._stream.name} {key.value} {number}", key.request))
            done[number] = (answer, self._resource.state)
            seen = self._seen_after(seen, mind, self._resource.state)
        return done

    def _done_abroad(self, call: Call, mind: Mind, seen: Seen, key: Key) -> Answer:
        """A call that changes nothing needs no key. One that was done before is answered as it was then."""
        known = self._store.receipt(self._resource.name, key) is not None
        first = carry_out(call, self._reach(mind, self._resource.state, seen))
        if not known and not first.happened:
            return first

        def decide(belongings: Belongings, _: datetime) -> Decision[Belongings, Answer]:
            answer = carry_out(call, self._reach(mind, belongings, seen))
            return Decision([Draft(what=what, origin=Origin.ASSISTANT) for what in answer.happened], answer)

        done = self._resource.commit(decide, key=key)
        if done.answer is not None:
            return done.answer
        return carry_out(call, self._reach(mind, self._resource.at(done.appended.first - 1), seen))

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
        return whose(call.name, asked.tools or (), lambda: adds_tools(said), remembers=self._remembers)

    def _seen_after(self, seen: Seen, mind: Mind, belongings: Belongings) -> Seen:
        """Every answer of the scratchpad's tool tells what is there now."""
        pad = scratchpad_of(self._layers)
        if pad is None:
            return seen
        return replace(seen, pad=pad.held(mind.pads if pad.scope == "thread" else belongings.pads))

    def _reach(self, mind: Mind, belongings: Belongings, seen: Seen) -> Reach:
        return Reach(
            mind=mind,
            belongings=belongings,
            ancestors=[stream.state for stream in self._ancestors],
            layers=self._layers,
            seen=seen.pages,
            pad_seen=seen.pad,
            resolve=self._attention.resolve,
        )

    def _key(self, reply: Reply, call: int) -> Key:
        """What makes two replies the same, as long as nobody has taken the first one back."""
        key = _key(reply, call, self._stream.state.line)
        while (known := self._store.receipt(self._stream.name, key)) is not None:
            reverted = self._store.read(self._stream.name, after=known.last, kind=Reverted.kind)
            undone = [e.seq for e in reverted if isinstance(e.what, Reverted) and e.what.to < known.first]
            if not undone:
                break
            key = replace(key, value=f"{key.value} {undone[-1]}")
        return key


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
