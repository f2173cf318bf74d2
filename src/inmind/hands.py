"""A reply, carried out: what the model said goes into the journal, and what it asked of its memory is done.

A reply may call memory's tools, the host's, both, and tools that nobody has. Memory's are carried out in the order of
the calls, each on what the one before it left; the host's are left alone; one that nobody has is answered, since a call
without an answer stops the conversation. All of it is one decision, so that it happens once or not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from inmind.attention import Attention
from inmind.journal import Draft, Event, Origin, UsageReported, digest, digest_of
from inmind.mind import Belongings, Mind
from inmind.prompt.formats import FORMATS, format_named
from inmind.prompt.formats.parts import Call, Message, Result, Text
from inmind.prompt.intake import message_added, tool_names
from inmind.prompt.layer import Layer
from inmind.prompt.recorded import Recorded, recorded
from inmind.prompt.replies import Reply, read_reply
from inmind.stores.base import Key, Store
from inmind.stores.stream import Decision, Stream, key_for
from inmind.tools import Outcome, Scene, carry_out, scope_of, unknown, whose

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


class Hands:
    """What one session does with replies. `kept`: what its layers keep of the messages among some drafts."""

    def __init__(
        self,
        stream: Stream[Mind],
        resource: Stream[Belongings],
        store: Store,
        attention: Attention,
        layers: Sequence[Layer],
        ancestors: Sequence[Stream[Mind]],
        kept: Callable[[Mind, datetime, Sequence[Draft]], list[Draft]],
    ) -> None:
        self._stream, self._resource, self._store = stream, resource, store
        self._attention, self._layers, self._ancestors, self._kept = attention, layers, ancestors, kept

    def record(self, reply: object, *, format: str | None, key: str | None, seen: Mapping[str, int]) -> Done:
        """Store it and carry it out, once. `seen`: the version of each document that the model was last shown."""
        spoken = None if format is None else format_named(format).name
        mind = self._stream.refresh()
        read = read_reply(reply, format=spoken, hint=mind.standing.format or "openai")
        named = key_for(key, "record", read.wires) or _key(read, mind.standing.calls)
        known = self._store.receipt(self._stream.name, named) is not None
        abroad = {} if known else self._carry_out_abroad(mind, read, named, seen)

        def decide(mind: Mind, now: datetime) -> Decision[Mind, list[Outcome]]:
            drafts, outcomes = self._carried_out(mind, now, read, abroad, seen)
            drafts += self._kept(mind, now, drafts)
            return Decision([*drafts, *self._attention.of_messages(mind, drafts, now)], outcomes)

        done = self._stream.commit(decide, key=named)
        if done.answer is None:
            first, last = done.appended.first, done.appended.last
            events = self._store.read(self._stream.name, after=first - 1, until=last)
            return Done(recorded(events, repeated=True))
        diagnostics = tuple(outcome.diagnostic for outcome in done.answer if outcome.diagnostic)
        for diagnostic in diagnostics:
            log.warning("%s: %s", self._stream.name, diagnostic)
        shown = frozenset(path for outcome in done.answer for path in outcome.shown)
        return Done(recorded(done.events, diagnostics=diagnostics), done.events, shown)

    def _carried_out(
        self, mind: Mind, now: datetime, reply: Reply, abroad: Mapping[int, Outcome], seen: Mapping[str, int]
    ) -> tuple[list[Draft], list[Outcome]]:
        """The reply, what its calls of memory tools change, and their answers. `abroad`: calls already done."""
        spoken = FORMATS[reply.format]
        drafts = [message_added(wire, spoken) for wire in reply.wires]
        state = self._stream.foresee(mind, mind.seq, drafts, now)
        outcomes: list[Outcome] = []
        results: list[Result] = []
        for number, (place, call) in enumerate(_calls(reply)):
            outcome = abroad.get(number) or self._outcome(call, self._scene(state, self._resource.state, seen))
            if outcome is None:
                continue
            source = f"{mind.stream}#{mind.seq + 1 + place}"
            happened = outcome.happened if outcome.scope == "thread" else ()
            done = [Draft(what=what, origin=Origin.ASSISTANT, sources=(source,)) for what in happened]
            state = self._stream.foresee(state, state.seq, done, now)
            drafts += done
            outcomes.append(outcome)
            results.append(Result(call.id, (Text(outcome.said),), error=outcome.error))
        if results:
            drafts += [message_added(wire, spoken) for wire in spoken.write([Message("tool", tuple(results))])]
        return [*drafts, *_usage(mind, reply)], outcomes

    def _carry_out_abroad(self, mind: Mind, reply: Reply, key: Key, seen: Mapping[str, int]) -> dict[int, Outcome]:
        """Calls that change what belongs to the resource: each a commit there, under a key of its own.

        They come before the reply's own commit. Whoever repeats a reply that was cut off in between finds them done.
        """
        done: dict[int, Outcome] = {}
        for number, (_, call) in enumerate(_calls(reply)):
            scene = self._scene(mind, self._resource.refresh(), seen)
            if _whose(call, mind) != "memory" or scope_of(call, scene) != "resource":
                continue
            done[number] = self._done_abroad(call, mind, seen, Key(f"{key.value} {number}", key.request))
        return done

    def _done_abroad(self, call: Call, mind: Mind, seen: Mapping[str, int], key: Key) -> Outcome:
        first = carry_out(call, self._scene(mind, self._resource.state, seen))
        if not first.happened:
            return first

        def decide(belongings: Belongings, _: datetime) -> Decision[Belongings, Outcome]:
            outcome = carry_out(call, self._scene(mind, belongings, seen))
            return Decision([Draft(what=what, origin=Origin.ASSISTANT) for what in outcome.happened], outcome)

        return self._resource.commit(decide, key=key).answer or Outcome(said="This was done before.")

    def _outcome(self, call: Call, scene: Scene) -> Outcome | None:
        match _whose(call, scene.mind):
            case "memory":
                return carry_out(call, scene)
            case "nobody":
                standing = scene.mind.standing
                return unknown(call, [*(tool_names(standing.tools or ())), *(tool_names(standing.offered))])
            case _:
                return None

    def _scene(self, mind: Mind, belongings: Belongings, seen: Mapping[str, int]) -> Scene:
        return Scene(
            mind=mind,
            belongings=belongings,
            ancestors=[stream.state for stream in self._ancestors],
            layers=self._layers,
            seen=seen,
            resolve=self._attention.resolve,
        )


def _key(reply: Reply, call: int) -> Key:
    """What makes two replies the same: the provider's name for it, or else what it says in answer to which call."""
    name = reply.id if len(reply.id) >= LEAST_NAME else f"{call} {reply.id}"
    return Key(f"record {digest(name, digest_of(reply.wires))}", "")


def _calls(reply: Reply) -> Iterator[tuple[int, Call]]:
    """The calls of a reply, each with the place of its message among the wires."""
    spoken = FORMATS[reply.format]
    for place, wire in enumerate(reply.wires):
        for call in spoken.read(wire).calls:
            yield place, call


def _whose(call: Call, mind: Mind) -> str:
    """Memory has no custom tools."""
    return "host" if call.custom else whose(call.name, mind.standing.tools or ())


def _usage(mind: Mind, reply: Reply) -> list[Draft]:
    """What the provider counted for the last prompt, which this reply answers."""
    if reply.usage is None or not mind.standing.calls:
        return []
    usage = reply.usage
    what = UsageReported(
        call=mind.standing.calls,
        counted=mind.standing.sent.counted,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
    )
    return [Draft(what=what, origin=Origin.OPERATOR)]
