"""The object that hosts talk to: read, decide, append.

Every method is the same sentence. It takes in what people wrote to the live files, decides on values, appends
what was decided together with nothing else, and shows the result in the files again. No state lives here that
could not be folded from the journal; the meter and the view only remember what they have counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from inmind.documents import OVERVIEW, Documents, Scope, checked_text, resolve
from inmind.errors import Conflict, InvalidInput, KeyReused, NotFound, PromptNotRebuilt
from inmind.history import Line, added_to, match
from inmind.journal import (
    DocumentWritten,
    Draft,
    Event,
    Happened,
    HistorySpliced,
    MessageAdded,
    Origin,
    PromptPrepared,
    Reverted,
    SystemSet,
    ToolObserved,
    ToolsSet,
    Trust,
    UsageReported,
)
from inmind.mind import Mind
from inmind.prompt.assemble import HistoryView, Own, Rendered, name_of, render
from inmind.prompt.explain import Explanation, Prompt, Report, explain
from inmind.prompt.formats import format_named
from inmind.prompt.formats.parts import Format, Wire
from inmind.prompt.formats.values import check_json, is_object, plain
from inmind.prompt.layer import Layer, Moment, Recalled
from inmind.prompt.ledger import Ledger
from inmind.prompt.meter import Meter, band
from inmind.prompt.plan import Limits, Plan, measure, plan, unchanged_prefix
from inmind.prompt.standing import System
from inmind.stores.base import Appended, Store
from inmind.stores.meta import MetaFile
from inmind.stores.stream import Decision, Stream, key_for
from inmind.stores.transcript import Transcript
from inmind.stores.views import LiveFiles
from inmind.tokens import Counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a session is put together from; `Memory` does that."""

    id: str
    store: Store
    stream: Stream[Mind]
    resource: Stream[Documents]
    files: LiveFiles[Mind]
    resource_files: LiveFiles[Documents]
    transcript: Transcript
    meta: MetaFile
    layers: tuple[Layer, ...]
    limits: Limits
    counter: Counter


class Session:
    """One conversation and what is in mind during it."""

    def __init__(self, parts: Parts) -> None:
        self.id = parts.id
        self._store, self._stream, self._resource = parts.store, parts.stream, parts.resource
        self._files, self._resource_files = parts.files, parts.resource_files
        self._transcript, self._meta = parts.transcript, parts.meta
        self._layers = tuple(sorted(parts.layers, key=lambda layer: layer.slot))
        self._limits, self._meter, self._view = parts.limits, Meter(parts.counter), HistoryView()
        self._seen: dict[str, int] = {}
        self._lag = ""
        self._take_in()
        self._show()

    # -- talking to the model ------------------------------------------------------------------------------

    def prepare(
        self,
        messages: Sequence[Any] | None = None,
        *,
        system: str | Sequence[Any] | None = None,
        tools: Sequence[Any] | None = None,
        format: str = "openai",
        key: str | None = None,
    ) -> Prompt:
        """What to send to the model now.

        With `messages`, the host's whole list: what is new in it is worked out and kept. Without, the journal's
        own history. The answer is committed before it is returned, so it can be explained and rebuilt for ever.
        """
        spoken = format_named(format)
        given = _Given.of(messages, system, tools, spoken)
        named = key_for(key, "prepare", format, messages, system, tools)
        self._take_in()
        notices = self._notices()
        done = self._stream.commit(lambda mind, now: self._decide_prompt(mind, now, given, spoken, notices), key=named)
        self._show(done.events)
        if done.answer is None:
            return self._rebuilt(self._prompt_event(done.appended.last))
        return done.answer

    def add(self, messages: Sequence[Any], *, format: str = "openai", key: str | None = None) -> Appended:
        """Keep messages in the journal's own history: a user's, a reply, a tool's result.

        A message whose `id` is in the history already is not added again.
        """
        spoken = format_named(format)
        wires = _checked(messages, spoken)
        named = key_for(key, "add", format, wires)
        self._take_in()
        done = self._stream.commit(lambda mind, now: self._decide_add(mind, now, wires, format), key=named)
        self._show()
        return done.appended

    def observe(
        self, tool: str, arguments: Any, result: Any, *, error: bool = False, id: str = "", key: str | None = None
    ) -> Appended:
        """Tell what a tool of the host did. The same `id` twice is one observation."""
        what = ToolObserved(
            tool=checked_text(tool, field="tool"),
            arguments=_json(arguments, "arguments"),
            result=_json(result, "result"),
            error=error,
            call_id=checked_text(id, field="id"),
        )
        if key is None and id:
            named = key_for(f"observed:{id}"[:200], "observed", id)
        else:
            named = key_for(key, "observe", what.tool, what.arguments, what.result, error, id)
        return self._stream.append(Draft(what=what, origin=Origin.TOOL), key=named)

    def report_usage(
        self,
        *,
        prompt_tokens: int,
        cached_tokens: int = 0,
        completion_tokens: int = 0,
        call: int | None = None,
        key: str | None = None,
    ) -> Appended:
        """Tell what the provider counted. It corrects our counting and goes into the ledger."""
        numbers = {
            "prompt_tokens": prompt_tokens,
            "cached_tokens": cached_tokens,
            "completion_tokens": completion_tokens,
        }
        for field, value in numbers.items():
            _whole(value, field)
        if cached_tokens > prompt_tokens:
            raise InvalidInput(field="cached_tokens", value=cached_tokens, expected=f"at most {prompt_tokens}")
        calls = self._stream.state.standing.calls
        of = calls if call is None else _whole(call, "call")
        counted = self._prompt_of(of)[1].used
        what = UsageReported(call=of, counted=counted, **numbers)
        named = key_for(key, "report_usage", of, numbers)
        return self._stream.append(Draft(what=what, origin=Origin.OPERATOR), key=named)

    # -- documents -----------------------------------------------------------------------------------------

    @property
    def overview(self) -> str:
        return self.read(OVERVIEW)

    def read(self, path: str) -> str:
        """The newest text of a document, with whatever people have just written into its file."""
        scope, name = resolve(path)
        self._take_in()
        documents = self._refreshed(scope)
        if name not in documents.by_path:
            raise NotFound(what="document", name=path, hint="see documents() for those there are")
        self._seen[name] = documents.version(name)
        return documents.text(name)

    def write(
        self, path: str, text: str, *, base: int | None = None, origin: Origin = Origin.USER, key: str | None = None
    ) -> int:
        """Replace a document's text; answers with its version.

        The text was decided on some version: `base`, or the one that this session last read or wrote. If the
        document has moved on since, that is a Conflict with both texts, and nothing is overwritten.
        """
        scope, name = resolve(path)
        text = checked_text(text)
        if not isinstance(origin, Origin):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="origin", value=origin, expected=f"one of {', '.join(Origin)}")
        named = key_for(key, "write", name, text)
        self._take_in()
        seen = self._seen.get(name) if base is None else _whole(base, "base")

        def decide(documents: Documents) -> list[Draft]:
            have = documents.version(name)
            if seen is not None and have != seen:
                theirs = documents.text(name)
                raise Conflict(stream=name, expected=seen, actual=have, mine=text, theirs=theirs)
            same = name in documents.by_path and documents.text(name) == text
            return [] if same else [Draft(what=DocumentWritten(path=name, text=text), origin=origin)]

        if scope == "thread":
            done = self._stream.commit(lambda mind, _: Decision(decide(mind.documents), True), key=named)
        else:
            done = self._resource.commit(lambda docs, _: Decision(decide(docs), True), key=named)
        self._show()
        if done.answer is None:  # an earlier call with this key wrote it, and somebody may have written since
            return done.appended.last
        self._seen[name] = self._documents(scope).version(name)
        return self._seen[name]

    def documents(self) -> dict[str, int]:
        """Paths of all documents, of the session and of its resource, with their versions."""
        self._take_in()
        both = {**self._refreshed("thread").by_path, **self._refreshed("resource").by_path}
        return {path: document.version for path, document in sorted(both.items())}

    # -- looking back --------------------------------------------------------------------------------------

    @property
    def mind(self) -> Mind:
        """Everything folded so far, with what other processes have done."""
        return self._stream.refresh()

    @property
    def ledger(self) -> Ledger:
        return self._stream.refresh().standing.ledger

    @property
    def resource(self) -> str:
        opened = self._stream.state.opened
        return opened.resource if opened else ""

    def at(self, seq: int) -> Mind:
        """The state right after any past event."""
        return self._stream.at(_whole(seq, "seq"))

    def journal(self, *, after: int = 0) -> Sequence[Event]:
        return self._store.read(self._stream.name, after=after)

    def undo(self, *, to: int | None = None, key: str | None = None) -> int:
        """Go back one change, or to the state at `to`. Appends a reversal; answers with where it went back to."""
        self._take_in()
        named = key_for(key, "undo", to)

        def decide(mind: Mind, _: datetime) -> Decision[Mind, int]:
            target = mind.before if to is None else _whole(to, "to")
            if not 0 < target < mind.seq:
                raise NotFound(what="state to go back to", name=target, hint="nothing was changed since it was opened")
            return Decision([Draft(what=Reverted(to=target), origin=Origin.USER)], target)

        done = self._stream.commit(decide, key=named)
        self._seen.clear()
        self._show()
        if done.answer is not None:
            return done.answer
        (event,) = self._store.read(self._stream.name, after=done.appended.first - 1, until=done.appended.last)
        return event.what.to if isinstance(event.what, Reverted) else 0

    def prompt(self, call: int) -> Prompt:
        """The prompt of any past call, byte for byte as it was sent."""
        return self._rebuilt(self._prompt_of(call)[0])

    def explain(self, call: int | None = None) -> Explanation:
        """For each part of a prompt: which layer, how many tokens, from which events, and why."""
        number = self._stream.refresh().standing.calls if call is None else call
        event, prepared = self._prompt_of(number)
        mind, rendered = self._rendered(event, prepared)
        return explain(number, mind.standing, mind.line, rendered, self._measured(mind, prepared, rendered))

    # -- inside --------------------------------------------------------------------------------------------

    def _decide_prompt(
        self, mind: Mind, now: datetime, given: _Given, spoken: Format, notices: tuple[str, ...]
    ) -> Decision[Mind, Prompt]:
        offered = [tool for layer in self._layers for tool in layer.tools(spoken.name)]
        drafts, own = _taken_in(mind, given, offered, spoken)
        mind = self._stream.foresee(mind, mind.seq, drafts, now)
        recalled = self._recall(mind, now)
        planned = self._planned(mind, recalled, spoken, now, rides=True)
        after = self._stream.foresee(mind, mind.seq, planned.drafts, now)
        rendered = render(after.standing, after.line, planned.prepared, self._view, own=own)
        if not rendered.tail_carried:
            planned = self._planned(mind, recalled, spoken, now, rides=False)
            after = self._stream.foresee(mind, mind.seq, planned.drafts, now)
            rendered = render(after.standing, after.line, planned.prepared, self._view, own=own)
        name = name_of(after.standing, after.line, planned.prepared, rendered.tail)
        asked = _from(replace(planned.prepared, digest=name), Origin.OPERATOR)
        foreseen = self._stream.foresee(after, after.seq, [asked], now)
        call = foreseen.standing.calls
        report = _report(call, after, planned, rendered, notices)
        prompt = Prompt(call=call, format=spoken.name, request=rendered.request, report=report)
        return Decision([*drafts, *planned.drafts, asked], prompt, foreseen=foreseen)

    def _planned(
        self, mind: Mind, recalled: list[tuple[Layer, Recalled]], spoken: Format, now: datetime, *, rides: bool
    ) -> Plan:
        return plan(
            mind.standing,
            mind.line,
            recalled,
            format=spoken.name,
            limits=self._limits,
            meter=self._meter,
            now=now,
            rides=rides,
        )

    def _decide_add(self, mind: Mind, now: datetime, wires: Sequence[Wire], format: str) -> Decision[Mind, None]:
        fresh = _not_yet(mind.line, wires)
        drafts = [_message(wire, format) for wire in fresh]
        moment = self._moment(mind, now)
        for wire in fresh:
            if format_named(format).read(wire).role == "assistant":
                drafts += [draft for layer in self._layers for draft in layer.store(moment, wire)]
        return Decision(drafts, None)

    def _recall(self, mind: Mind, now: datetime) -> list[tuple[Layer, Recalled]]:
        moment = self._moment(mind, now)
        said = ((layer, layer.recall(moment)) for layer in self._layers)
        return [(layer, recalled) for layer, recalled in said if recalled is not None and recalled.text]

    def _moment(self, mind: Mind, now: datetime) -> Moment:
        return Moment(
            session=self.id,
            resource=self.resource,
            now=now,
            documents={**self._resource.state.by_path, **mind.documents.by_path},
            messages=mind.line.wires,
        )

    def _prompt_of(self, call: int) -> tuple[Event, PromptPrepared]:
        events = self._store.read(self._stream.name, kind=PromptPrepared.kind)
        if not 0 < _whole(call, "call") <= len(events):
            raise NotFound(what="call", name=call, hint=f"this session has made {len(events)}")
        return events[call - 1], _prepared(events[call - 1])

    def _prompt_event(self, seq: int) -> Event:
        (event,) = self._store.read(self._stream.name, after=seq - 1, until=seq)
        return event

    def _rendered(self, event: Event, prepared: PromptPrepared) -> tuple[Mind, Rendered]:
        mind = self._stream.at(event.seq - 1)
        rendered = render(mind.standing, mind.line, prepared, HistoryView())
        name = name_of(mind.standing, mind.line, prepared, rendered.tail)
        if name != prepared.digest:
            raise PromptNotRebuilt(call=mind.standing.calls + 1, sent=prepared.digest, rebuilt=name)
        return mind, rendered

    def _rebuilt(self, event: Event) -> Prompt:
        prepared = _prepared(event)
        mind, rendered = self._rendered(event, prepared)
        call = mind.standing.calls + 1
        tokens = self._measured(mind, prepared, rendered)
        unchanged = unchanged_prefix(mind.standing, mind.line, tokens, prepared.format, Meter(self._meter.count))
        planned = Plan(
            drafts=(), prepared=prepared, tokens=tokens, unchanged=unchanged, cold=prepared.cached < unchanged
        )
        report = _report(call, mind, planned, rendered, ())
        return Prompt(call=call, format=prepared.format, request=rendered.request, report=report)

    def _measured(self, mind: Mind, prepared: PromptPrepared, rendered: Rendered) -> dict[str, int]:
        window = prepared.window if rendered.tail_carried else None
        return measure(mind.standing, mind.line, Meter(self._meter.count), window)

    def _refreshed(self, scope: Scope) -> Documents:
        return self._stream.refresh().documents if scope == "thread" else self._resource.refresh()

    def _documents(self, scope: Scope) -> Documents:
        return self._stream.state.documents if scope == "thread" else self._resource.state

    def _take_in(self) -> None:
        self._files.take_in()
        self._resource_files.take_in()

    def _show(self, fresh: Sequence[Event] = ()) -> None:
        """After a commit: bring the live files up to date. The change is safe by now, so a file may only lag."""
        self._files.publish()
        self._resource_files.publish()
        self._lag = self._transcript.catch_up(fresh)
        if self._meta.lags(self._stream.state):
            self._lag = self._lag or self._meta.write(self._stream.state)

    def close(self) -> None:
        """Write what only a closed session shows. Called by `Memory.close`."""
        self._meta.write(self._stream.state)

    def _notices(self) -> tuple[str, ...]:
        lag = (self._lag,) if self._lag else ()
        return (*self._files.notices(), *self._resource_files.notices(), *lag)


@dataclass(frozen=True, slots=True)
class _Given:
    """What a host handed to `prepare`, in its own objects. Only what is new in it gets copied and checked."""

    system: Any
    tools: Any
    lead: int
    """How many messages at the beginning of its list are its system prompt."""
    wires: Sequence[Any] | None
    """The messages behind those; None when the journal's own history is meant."""

    @classmethod
    def of(cls, messages: Any, system: Any, tools: Any, spoken: Format) -> _Given:
        if messages is None:
            return cls(system, tools, 0, None)
        wires = _listed(messages, "messages")
        lead = next((i for i, wire in enumerate(wires) if not _is_system(spoken, wire)), len(wires))
        if lead and system is not None:
            raise InvalidInput(field="system", value=system, expected="none, since messages begin with a system prompt")
        return cls(wires[:lead] if lead else system, tools, lead, wires[lead:] if lead else wires)


def _taken_in(mind: Mind, given: _Given, offered: Sequence[Any], spoken: Format) -> tuple[list[Draft], Own]:
    """The events that bring the journal up to what the host has, and what of its own objects can go out again.

    With the journal's own history, a system prompt or tools that are not given stay as they were.
    """
    drafts, wires = _said_since(mind.line, given, spoken)
    standing, owned = mind.standing, given.wires is None
    system = standing.system if owned and given.system is None else given.system
    if system != standing.system and (plainly := _system(given, spoken)) != standing.system:
        drafts.append(_from(SystemSet(system=plainly), Origin.OPERATOR))
    tools = standing.tools if owned and given.tools is None else given.tools or None
    if tools != standing.tools or offered != standing.offered:
        what = ToolsSet(tools=_objects(tools, "tools"), offered=_objects(offered, "offered") or ())
        if (what.tools, what.offered) != (standing.tools, standing.offered):
            drafts.append(_from(what, Origin.OPERATOR))
    return drafts, Own(given.system, given.tools, wires)


def _said_since(line: Line, given: _Given, spoken: Format) -> tuple[list[Draft], Sequence[Wire] | None]:
    """Messages that the journal does not have yet, and the host's list where it is plainly the same as ours."""
    if given.wires is None:
        return [], None
    added = added_to(line, given.wires)
    if added is not None:
        fresh = _checked(added, spoken, at=given.lead + len(line))
        return [_message(wire, spoken.name) for wire in fresh], given.wires if fresh == list(added) else None
    sync = match(line, _checked(given.wires, spoken, at=given.lead))  # an edit, or objects of a provider's client
    drafts = [_message(wire, spoken.name) for wire in sync.new]
    if sync.spliced:
        drafts.append(_from(HistorySpliced(sync.start, sync.stop, len(sync.new)), Origin.OPERATOR))
    return drafts + [_message(wire, spoken.name) for wire in sync.added], None


def _system(given: _Given, spoken: Format) -> System:
    if given.system is None or isinstance(given.system, str):
        return checked_text(given.system, field="system") if given.system else None
    if given.lead:
        return _checked(given.system, spoken)
    return _objects(given.system, "system")


def _message(wire: Wire, format: str) -> Draft:
    message = format_named(format).read(wire)
    origin = Origin.TOOL if message.results else _ORIGINS[message.role]
    mixed = bool(message.results) and len(message.results) < len(message.parts)
    return Draft(what=MessageAdded(wire=wire, format=format), origin=origin, trust=Trust.DATA if mixed else None)


_ORIGINS = {
    "system": Origin.OPERATOR,
    "developer": Origin.OPERATOR,
    "user": Origin.USER,
    "assistant": Origin.ASSISTANT,
    "tool": Origin.TOOL,
}


def _not_yet(line: Line, wires: Sequence[Wire]) -> list[Wire]:
    """Messages whose id is not in the line; the same id with other content is refused, not guessed at."""
    if not any("id" in wire for wire in wires):
        return list(wires)
    known = {entry.wire["id"]: entry.wire for entry in line if "id" in entry.wire}
    fresh: list[Wire] = []
    for wire in wires:
        id = wire.get("id")
        if id is not None and id in known:
            if known[id] != wire:
                raise KeyReused(key=str(id))
            continue
        if id is not None:
            known[id] = wire
        fresh.append(wire)
    return fresh


def _checked(messages: Sequence[Any], spoken: Format, *, at: int = 0) -> list[Wire]:
    """Messages as our own plain copies, each known to be one of this format."""
    wires: list[Wire] = []
    for index, message in enumerate(_listed(messages, "messages"), start=at):
        wire = plain(message, f"messages[{index}]")
        spoken.check(wire, field=f"messages[{index}]")
        wires.append(wire)
    return wires


def _listed(value: Any, field: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(field=field, value=value, expected="a list")
    return cast(Sequence[Any], value)


def _objects(value: Any, field: str) -> list[dict[str, Any]] | None:
    if value is None:
        return None
    objects = [plain(item, f"{field}[{index}]") for index, item in enumerate(_listed(value, field))]
    for index, item in enumerate(objects):
        if not is_object(item):
            raise InvalidInput(field=f"{field}[{index}]", value=item, expected="an object")
        check_json(item, f"{field}[{index}]")
    return objects or None


def _is_system(spoken: Format, wire: Any) -> bool:
    return is_object(wire) and spoken.is_system(wire)


def _json(value: Any, field: str) -> Any:
    value = plain(value, field)
    check_json(value, field)
    return value


def _report(call: int, mind: Mind, planned: Plan, rendered: Rendered, notices: tuple[str, ...]) -> Report:
    standing, prepared = mind.standing, planned.prepared
    correct = standing.calibration.correct
    used = correct(prepared.used)
    anchor = standing.anchor
    return Report(
        call=call,
        tokens={part: correct(tokens) for part, tokens in planned.tokens.items()},
        tokens_used=used,
        tokens_max=prepared.window,
        band=band(100 * used / prepared.window),
        cached_prefix_tokens=correct(planned.unchanged),
        cold=planned.cold,
        anchor_moved=anchor.reason if anchor and anchor.call == call else "",
        cut=tuple(f"{block.layer}: {block.left_out} lines" for block in standing.blocks if block.left_out),
        left_out=tuple(f"{left.what}: {left.why}" for left in rendered.left_out),
        repaired=rendered.repaired,
        notices=notices,
    )


def _prepared(event: Event) -> PromptPrepared:
    if not isinstance(event.what, PromptPrepared):
        raise NotFound(what="prompt", name=event.id)
    return event.what


def _whole(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidInput(field=field, value=value, expected="a whole number, 0 or more")
    return value


def _from(what: Happened, origin: Origin) -> Draft:
    return Draft(what=what, origin=origin)
