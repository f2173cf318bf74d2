"""The object that hosts talk to: read, decide, append.

Every method is the same sentence. It takes in what people wrote to the live files, decides on values, appends
what was decided together with nothing else, and shows the result in the files again. No state lives here that
could not be folded from the journal; the meter and the view only remember what they have counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from inmind.core.encoding import digest
from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.crystals import SearchRecorded
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.prompt import AnchorMoved, PromptPrepared, UsageReported
from inmind.core.events.session import (
    HistorySpliced,
    MessageAdded,
    Retained,
    RetainedItem,
    Reverted,
    SessionOpened,
    SessionTitled,
    ShownVersions,
    ToolObserved,
)
from inmind.core.messages import format_named
from inmind.core.messages.model import Format, Wire
from inmind.core.pricing import Usage
from inmind.core.streams import ANONYMOUS, owner_of
from inmind.core.text import shortened
from inmind.documents.document import (
    NOTES_PAGE_PATH,
    OVERVIEW_PATH,
    Document,
    Documents,
    Scope,
    resolve_path,
    validate_text,
)
from inmind.documents.overview.front_matter import (
    front_matter_error,
    merge_front_matter,
    parse_front_matter,
    split_front_matter,
)
from inmind.entities.serialize import serialize
from inmind.entities.window import Entities
from inmind.errors import Conflict, ContextOverflow, InvalidInput, NotFound
from inmind.history import Conversation
from inmind.history.compaction.policy import Summarizer
from inmind.history.compaction.report import CompactionReport, CompactionUndoReport, no_room_for
from inmind.history.compaction.retention import checked_item, survivors
from inmind.history.compaction.select import KEEP_ASKED, Leaving
from inmind.history.token_meter import Meter
from inmind.history.view import HistoryView, View
from inmind.prompt.explain import Explanation
from inmind.prompt.ingest import (
    Given,
    checked_json,
    checked_messages,
    marks_of,
    message_added,
    not_yet_in,
    taken_in,
)
from inmind.prompt.layers.base import Layer, Moment, Recalled, ViewLayer, ask, kept_by
from inmind.prompt.layers.builtin import DocumentLayer
from inmind.prompt.layers.scratchpad import SCRATCHPAD, scratchpad_of
from inmind.prompt.plan import Occasion, Plan, plan
from inmind.prompt.pressure import crowd
from inmind.prompt.rebuild import explained, presumably_shared, rebuilt
from inmind.prompt.render import Handed, render
from inmind.prompt.report import Preview, Prompt, report_on
from inmind.prompt.state import Standing
from inmind.search.note import IMPORTANCE, Note, checked_note
from inmind.session.affect import SessionAffect
from inmind.session.compaction import Compactor
from inmind.session.compaction_trigger import PlannedCompaction
from inmind.session.context import SessionConfig, SessionContext
from inmind.session.overview import OverviewWriter
from inmind.session.recorded import Recorded
from inmind.session.replies import DerivedEvents, ReplyExecutor
from inmind.session.scratchpad import Scratchpad
from inmind.session.state import MAX_TITLE_LENGTH, ResourceState, SessionState, is_file_edit
from inmind.session.tools.base import MemoryView, ToolResult
from inmind.session.tools.registry import find_tool, is_memory_tool, tool_schemas
from inmind.store.protocol import AppendResult, Key
from inmind.store.stream import CommitResult, Decision, Stream, key_for

if TYPE_CHECKING:
    from inmind.entities.grounding import CallCheck
    from inmind.entities.references.result import Resolution
    from inmind.search.query import Hit, Query
    from inmind.session.children.children import ChildSessions
    from inmind.session.children.merge_back import MergeReport


class _Crowded(Exception):
    """Something has to leave the conversation before this prompt is made."""

    def __init__(self, due: PlannedCompaction) -> None:
        super().__init__(due.request.reason)
        self.due = due


class _Sent(NamedTuple):
    """The last prompt that this object has made."""

    call: int = 0
    seq: int = 0
    view: View | None = None


Beget = Callable[[str, SessionOpened, Sequence[Draft], SessionConfig], "Session"]
"""How a child begins: by its id, how it opens, what it is handed, and its parent's setup."""


class Session:
    """One conversation and what is in mind during it."""

    def __init__(self, parts: SessionContext, beget: Beget) -> None:
        self.id, self._parts, self._beget = parts.id, parts, beget
        self._store, self._stream, self._resource = parts.store, parts.stream, parts.resource
        self._files, self._resource_files = parts.files, parts.resource_files
        self._transcript, self._meta = parts.transcript, parts.meta
        self._attention, self._scratchpad, self._ancestors = parts.entities, parts.scratchpad, parts.ancestors
        self._setup, self._layers, self._limits = parts.config, parts.config.layers, parts.config.limits
        self._meter, self._view = Meter(parts.config.counter), HistoryView()
        self._handed = Handed()
        self._sent = _Sent()
        self._seen: dict[str, int] = {}
        self._lags: list[str] = []
        self._lagging: dict[str, str] = {}
        self._head = ""
        self._take_in()
        self._show()
        self._seen = self._versions()
        if self._scratchpad is not None and (misfit := self._scratchpad.misfit):
            self._lags.append(f"the saved scratchpad does not fit here ({misfit}): the first update sets it aside")

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
        fmt = format_named(format)
        given = Given.of(messages, system, tools, fmt)
        named = key_for(key, "prepare", format, messages, system, tools)
        self._take_in()
        self._resource.refresh()
        self._look_up()
        notices = self._notices()
        done = self._prepared(given, fmt, notices, named)
        self._show(done.events)
        if done.result is None:
            (event,) = self._store.read(self._stream.name, after=done.appended.last - 1, until=done.appended.last)
            return self._rebuilt(event, _prepared(event))
        prompt, view = done.result
        self._sent = _Sent(prompt.call, done.appended.last, view)
        self._have_shown()
        return prompt

    def preview(
        self,
        messages: Sequence[Any] | None = None,
        *,
        system: str | Sequence[Any] | None = None,
        tools: Sequence[Any] | None = None,
        format: str = "openai",
    ) -> Preview:
        """What `prepare` would answer now, with its explanation. Nothing is stored, and no call is counted.

        A compaction that is due before it is foreseen too; the words of its summary are then the extracted ones, since
        no model is asked.
        """
        fmt = format_named(format)
        given = Given.of(messages, system, tools, fmt)
        self._take_in()
        self._resource.refresh()
        self._look_up()
        return self._stream.dry_run(partial(self._foreseen, given=given, fmt=fmt))

    def record(
        self, reply: Any, *, format: str | None = None, call: int | None = None, key: str | None = None
    ) -> Recorded:
        """Keep the model's reply, carry out the memory tools that it calls, and answer with what is left to do.

        A reply of any provider, its message, or the chunks of a streamed one; as objects or plain values. `results` are
        messages to send back, `host_calls` are the host's to run. The reply, what the tools changed and what they
        answered are one commit, and the same reply twice is one. `call`: the prompt that it answers, where that is not
        the last one.
        """
        self._take_in()
        self._look_up()
        done = self._hands.record(reply, format=format, call=call, key=key)
        self._show(done.events)
        state = self._stream.state
        known = (
            (path, page)
            for path, page in state.documents.by_path.items()
            if state.shown_in_results.get(path) == page.source
        )
        self._seen |= {path: page.version for path, page in known}
        return done.recorded

    def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        seen: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> ToolResult:
        """Carry out one memory tool for an agent whose conversation is kept elsewhere.

        What goes wrong in the tool is its answer, as for a model; a tool that is not offered here is NotFound. Nobody
        sends that agent a prompt of ours, so whoever calls says what it has `seen` of pages: what earlier calls were
        answered in theirs. What it has not seen it can add to, but not overwrite.

        What is refused keeps no `key`, so it can be tried again under the same; what the session has taken back since
        is done again. What only reads is read again.
        """
        given = checked_json({} if arguments is None else arguments, "arguments")
        asked, layer = find_tool(validate_text(tool, field="tool"), self._layers)
        self._look_up()
        if asked.uses_pages:
            self._take_in()
        scope = asked.scope(layer, self._is_anonymous)
        done = self._hands.call(tool, given, scope=scope, reads_only=asked.read_only, seen=seen or {}, key=key)
        if asked.uses_pages:
            self._show(done.events)
        elif not asked.read_only:
            self._parts.notes.publish()
        return done.result

    def tools(self, format: str = "openai") -> list[dict[str, Any]]:
        """The memory tools of this session in the shape of `openai`, `responses`, `anthropic` or `mcp`."""
        return tool_schemas(self._layers, format)

    def add(self, messages: Sequence[Any], *, format: str = "openai", key: str | None = None) -> AppendResult:
        """Keep messages in the journal's own history: a user's, a reply, a tool's result.

        A message whose `id` is in the history already is not added again.
        """
        fmt = format_named(format)
        wires = checked_messages(messages, fmt)
        named = key_for(key, "add", format, wires)
        self._take_in()
        self._resource.refresh()
        decide = partial(self._decide_add, wires=wires, fmt=fmt)
        done = self._stream.commit(decide, key=named, companion=self._resource)
        self._show(done.events)
        return done.appended

    def observe(
        self,
        tool: str,
        arguments: Any,
        result: Any,
        *,
        error: bool = False,
        id: str = "",
        origin: Origin = Origin.TOOL,
        key: str | None = None,
    ) -> AppendResult:
        """Tell what a tool of the host did; one that fetched from the web says so by its origin.

        The things it speaks of come to mind in the same commit. An `id` is its key: the same one twice is one
        observation.
        """
        if origin not in (Origin.TOOL, Origin.WEB):
            raise InvalidInput(field="origin", value=origin, expected="Origin.TOOL or Origin.WEB")
        if not isinstance(error, bool):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="error", value=error, expected="True or False")
        what = ToolObserved(
            tool=validate_text(tool, field="tool"),
            arguments=checked_json(arguments, "arguments"),
            result=checked_json(result, "result"),
            error=error,
            call_id=validate_text(id, field="id"),
        )
        if id:
            named = key_for(f"observed:{digest(id)}", "observed", id)
        else:
            named = key_for(key, "observe", what.tool, what.arguments, what.result, error, origin)

        def decide(state: SessionState, now: datetime) -> Decision[SessionState, None]:
            seen = Draft(payload=what, origin=origin)
            followed = self._followed(state, now, [seen])
            return Decision([seen, *followed.session_events], None, companion=followed.resource_events)

        self._resource.refresh()
        done = self._stream.commit(decide, key=named, companion=self._resource)
        self._show(done.events)
        return done.appended

    def report_usage(
        self,
        *,
        prompt_tokens: int,
        cached_tokens: int = 0,
        completion_tokens: int = 0,
        call: int | None = None,
        key: str | None = None,
    ) -> AppendResult:
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
        standing = self._stream.refresh().prompt
        of = standing.calls if call is None else _whole(call, "call")
        counted = standing.sent.counted if of == standing.calls > 0 else self._prompt_of(of)[1].used
        what = UsageReported(of, counted, prompt_tokens, cached_tokens, completion_tokens)
        named = key_for(key, "report_usage", of, numbers)
        return self._stream.append(Draft(payload=what, origin=Origin.OPERATOR), key=named)

    # -- the scratchpad, and children ----------------------------------------------------------------------

    @property
    def scratchpad(self) -> Scratchpad:
        """The agent's own pad: `snapshot` and `update`."""
        if self._scratchpad is None:
            raise NotFound(what="scratchpad in session", name=self.id, hint="name a ScratchpadLayer among its layers")
        return self._scratchpad

    def spawn(
        self, id: str | None = None, *, policy: str | Mapping[str, str] | None = None, key: str | None = None
    ) -> Session:
        """Begin a child session, for a sub-agent: of the same resource, with a conversation of its own.

        What it gets of each layer is what the layer says, or what `policy` says, for all or by the layer's name: a copy
        of its own (fork), a read-only view of what is here (view), or nothing (none). The same id is the same child,
        and so is the same key.
        """
        self._take_in()
        return self._beget(*self._family.prepare_child(id, policy, key, self._must_survive), self._setup)

    def merge_back(self, child: Session | str, *, key: str | None = None) -> MergeReport:
        """Bring home what a child has changed since it began, or since this was last done; by its id, if it has died.

        What the parent has changed meanwhile stays; where the child had changed the same, the report has both.
        """
        self._take_in()
        report = self._family.merge_back(child.id if isinstance(child, Session) else child, key)
        self._show()
        return report

    # -- things --------------------------------------------------------------------------------------------

    @property
    def entities(self) -> Entities:
        """The things in mind, the most recent first, and what is known beyond them."""
        return self._stream.refresh().entities

    def resolve(self, text: str) -> Resolution:
        """What a person's words refer to, with the doubt that is left; without a model."""
        return self._attention.resolve(validate_text(text))

    def check_call(self, tool: str, arguments: Any) -> CallCheck:
        """Which ids among a call's arguments this session or its resource has never seen. It only reports."""
        return self._attention.check_call(validate_text(tool, field="tool"), checked_json(arguments, "arguments"))

    def track(self, entities: Sequence[Any], *, key: str | None = None) -> AppendResult:
        """Bring things to mind that no tool has shown: entities, or objects with id, type and name.

        They come one by one, so that the last of them stands first.
        """
        if isinstance(entities, str) or not isinstance(entities, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="entities", value=entities, expected="a list")
        return self._attention.track(entities, key_for(key, "track"))

    def pin(self, id: str, type: str | None = None, *, key: str | None = None) -> AppendResult:
        """Keep a thing in the window, however much else comes."""
        return self._attention.pin(id, type, key_for(key, "pin", id, type), pinned=True)

    def unpin(self, id: str, type: str | None = None, *, key: str | None = None) -> AppendResult:
        """Let it leave the window as others do."""
        return self._attention.pin(id, type, key_for(key, "unpin", id, type), pinned=False)

    def export_entities(self) -> dict[str, Any]:
        """The window as a checkpoint that a host may keep; `Memory.restore` takes it, now and in later versions."""
        return serialize(self.entities)

    def import_entities(self, data: object, *, key: str | None = None) -> AppendResult:
        """Bring the things of a checkpoint back to mind, in front of what is there; any older version will do."""
        return self._attention.import_entities(data, key_for(key, "restore", data))

    # -- notes ---------------------------------------------------------------------------------------------

    def note(
        self,
        text: str,
        *,
        importance: float = IMPORTANCE,
        kind: str = "general",
        valence: float = 0.0,
        valid_from: date | str | None = None,
        valid_to: date | str | None = None,
        origin: Origin = Origin.ASSISTANT,
        key: str | None = None,
    ) -> Note:
        """Keep something beyond the conversation: in every prompt until a dream has taken it in, and found for ever.

        It belongs to the resource, or to this session alone where that is nobody in particular. It is safe when this
        answers, which takes one commit and no more: its page, memory/scratch.md, is shown a little later. `kind` says
        what it is about (fact, preference, goal and so on), `valence` how it felt, from -1 to 1, the dates how long
        it is true, and `origin` whose words it is.
        """
        what = checked_note(
            text, importance=importance, kind=kind, valence=valence, valid_from=valid_from, valid_to=valid_to
        )
        return self._parts.notes.add(what, origin=origin, key=key)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        kinds: str | Iterable[str] | None = None,
        sources: str | Iterable[str] | None = None,
        since: date | str | None = None,
        until: date | str | None = None,
        session: str | None = None,
        as_of: date | str | None = None,
        key: str | None = None,
    ) -> list[Hit]:
        """Search messages, notes and pages of this session's resource, the best hits first.

        `as_of` searches what was known on that day. The search is recorded: hits expire later, and a query without hits
        becomes a gap for the next dream. A session without a resource searches only itself.
        """
        from inmind.search.query import checked_query

        options = {
            "limit": limit if limit != 10 else None,
            "kinds": kinds,
            "sources": sources,
            "since": since,
            "until": until,
            "session": session,
            "as_of": as_of,
        }
        filters = {name: value for name, value in options.items() if value is not None}
        asked = checked_query(query, **{"limit": limit, **filters})
        hits = self._search_for(asked)
        found = SearchRecorded(asked.text, tuple(hit.crystal.id for hit in hits), asked.limit)
        self._stream.append(Draft(payload=found, origin=Origin.OPERATOR), key=key_for(key, "search", query, filters))
        return hits

    def _search_for(self, query: Query) -> list[Hit]:
        """Among the crystals of its resource, or of nobody's in particular its own."""
        return self._parts.search(query, [owner_of(self._stream.name, self.resource)])

    # -- documents -----------------------------------------------------------------------------------------

    @property
    def overview(self) -> str:
        """overview.md, with whatever people have just written into it."""
        return self.read(OVERVIEW_PATH)

    @property
    def front_matter(self) -> Mapping[str, Any] | None:
        """What the overview says in its YAML front matter; None where it has none.

        InvalidInput where it does not read, or the library that reads it is not there.
        """
        return parse_front_matter(self.overview)

    def update_front_matter(self, values: Mapping[str, Any], *, key: str | None = None) -> int:
        """Merge values into the overview's front matter, which is begun if need be; the text behind it stays as it is.

        Answers with the page's version.
        """
        named = key_for(key, "update_front_matter", values)
        self._take_in()

        def decide(state: SessionState) -> list[Draft]:
            page = state.documents.text(OVERVIEW_PATH)
            text = validate_text(merge_front_matter(page, values))
            written = DocumentWritten(OVERVIEW_PATH, text)
            return [] if text == page else [Draft(payload=written, origin=Origin.ASSISTANT)]

        knew = not self._documents("thread").is_edited_since(OVERVIEW_PATH, version=self._seen.get(OVERVIEW_PATH, 0))
        done = self._stream.commit(partial(self._with_upkeep, decide), key=named)
        self._show()
        version = self._documents_at("thread", done.appended.last).version(OVERVIEW_PATH)
        if knew and done.result is not None:
            self._seen[OVERVIEW_PATH] = version
        return version

    def event(self, kind: str, text: str, *, key: str | None = None) -> AppendResult:
        """Tell what has happened: task_started, task_completed, decision_made, bug_found, context_changed.

        Memory enters it on the overview in the section where it is looked for, once and in a line.
        """
        self._take_in()
        appended = self._chronicle.add_event(kind, validate_text(text), key_for(key, "event", kind, text))
        self._show()
        return appended

    def read(self, path: str) -> str:
        """The newest text of a document, with whatever people have just written into its file."""
        scope, name = resolve_path(path, anonymous=self._is_anonymous)
        self._take_in()
        documents = self._refreshed(scope)
        if name not in documents.by_path:
            raise NotFound(what="document", name=path, hint="see documents() for those there are")
        self._seen[name] = documents.version(name)
        return documents.text(name)

    def write(
        self,
        path: str,
        text: str,
        *,
        base: int | None = None,
        origin: Origin = Origin.ASSISTANT,
        key: str | None = None,
    ) -> int:
        """Replace a document's text; answers with its version.

        The text was decided on some version: `base`, or the one that this object has last shown, by `read`, in a
        prompt, or when it was opened. If the document has moved on since, by another process or a person's edit,
        that is a Conflict with both texts, and nothing is overwritten.
        """
        scope, name = resolve_path(path, anonymous=self._is_anonymous)
        text = validate_text(text)
        if not isinstance(origin, Origin):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="origin", value=origin, expected=f"one of {', '.join(Origin)}")
        named = key_for(key, "write", name, text)
        self._take_in()
        seen = self._seen.get(name, 0) if base is None else _whole(base, "base")

        def decide(documents: Documents) -> list[Draft]:
            """Nothing if it says that already."""
            if documents.is_edited_since(name, version=seen):
                have, theirs = documents.version(name), documents.text(name)
                raise Conflict(stream=name, expected=seen, actual=have, mine=text, theirs=theirs)
            same = name in documents.by_path and documents.text(name) == text
            return [] if same else [Draft(payload=DocumentWritten(path=name, text=text), origin=origin)]

        if scope == "thread":
            done = self._stream.commit(partial(self._with_upkeep, lambda state: decide(state.documents)), key=named)
        else:
            done = self._resource.commit(lambda owned, _: Decision(decide(owned.documents), True), key=named)
        self._show()
        if done.result is None:  # an earlier call with this key wrote it, and somebody may have written since
            return self._documents_at(scope, done.appended.last).version(name)
        self._seen[name] = self._documents(scope).version(name)
        return self._seen[name]

    def documents(self) -> dict[str, int]:
        """Paths of all documents, of the session and of its resource, with their versions."""
        self._take_in()
        both = {**self._refreshed("thread").by_path, **self._refreshed("resource").by_path}
        return {path: document.version for path, document in sorted(both.items())}

    def rename(self, title: str, *, key: str | None = None) -> AppendResult:
        """Call the session by a name of its own in lists; without one it goes by the first words that it was asked."""
        name = shortened(validate_text(title, field="title"), MAX_TITLE_LENGTH)
        if not name:
            raise InvalidInput(field="title", value=title, expected="a name")
        appended = self._stream.append(
            Draft(payload=SessionTitled(name), origin=Origin.USER), key=key_for(key, "rename", title)
        )
        self._show()
        return appended

    # -- the history ---------------------------------------------------------------------------------------

    def compact(
        self,
        target: str = "all",
        *,
        strategy: str = "archive",
        keep_recent: int = KEEP_ASKED,
        archive_to: str | None = None,
        model: Summarizer | None = None,
        key: str | None = None,
    ) -> CompactionReport:
        """Take old turns and rounds, or what tools have answered, out of what is sent: `conversation`, `tools`, `all`.

        All of it goes into a page of archive/, or the one named by `archive_to`, and a stub says where it is. With the
        strategy `summarize` the stub tells it in short: in the words of `model`, a function from a prompt to a text, or
        in its own. The last `keep_recent` turns before the active one stay, as many of its rounds, three at the least,
        and as many answers of tools; and so does what is being asked. What must survive is checked and reported item by
        item. `undo_compaction` brings it all back.
        """
        if model is not None and strategy != "summarize":
            raise InvalidInput(field="strategy", value=strategy, expected="summarize, where a model is given")
        self._take_in()
        report, events = self._archivist.compact(
            target=target, strategy=strategy, keep_recent=keep_recent, archive_to=archive_to, model=model, key=key
        )
        self._show(events)
        return report

    def undo_compaction(self, *, key: str | None = None) -> CompactionUndoReport:
        """Send again what the last compaction in force took out, whatever was said since."""
        self._take_in()
        lifted, events = self._archivist.undo(key=key)
        self._show(events)
        return lifted

    @property
    def retained(self) -> tuple[RetainedItem, ...]:
        """What must survive every compaction: the goal, the rules and decisions so far, and what was declared."""
        return self._must_survive(self._stream.refresh())

    def retain(self, text: str, *, key: str | None = None) -> AppendResult:
        """Declare something that must survive every compaction, word for word."""
        return self._retained(text, key, kept=True)

    def release(self, text: str, *, key: str | None = None) -> AppendResult:
        """What was declared by `retain`, or is kept as a rule, a goal or a decision, no longer has to survive."""
        return self._retained(text, key, kept=False)

    # -- looking back --------------------------------------------------------------------------------------

    @property
    def state(self) -> SessionState:
        """Everything folded so far, with what other processes have done."""
        return self._stream.refresh()

    @property
    def memory_tools(self) -> bool:
        """Whether its model is offered memory's tools, and they are carried out."""
        return self._setup.memory_tools

    @property
    def resource_state(self) -> ResourceState:
        """What its resource owns, shared with the resource's other sessions."""
        return self._resource.refresh()

    @property
    def usage(self) -> Usage:
        """What all calls so far have sent, and how much of it came from the cache."""
        return self._stream.refresh().prompt.token_usage

    @property
    def resource(self) -> str:
        """Whom it belongs to."""
        opened = self._stream.state.opened
        return opened.resource if opened else ""

    def state_at(self, seq: int) -> SessionState:
        """The state right after any past event."""
        return self._stream.state_at(_whole(seq, "seq"))

    def events(self, *, after: int = 0) -> Sequence[Event]:
        """Everything that happened, from some event on."""
        return self._store.read(self._stream.name, after=_whole(after, "after"))

    def undo(self, *, to: int | None = None, key: str | None = None) -> int:
        """Go back one change of this session, or to its state at `to`; answers with where it went back to.

        A reversal is appended and nothing deleted. Documents of the resource are not the session's to take back, and
        what a person saved in a file is nobody's: it is no change to go back over, and stays on its page.
        """
        self._take_in()
        named = key_for(key, "undo", to)

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, int]:
            target = state.undo_target if to is None else _whole(to, "to", least=1)
            if not state.opening_end <= target < state.seq or target == 0:
                if to is None:
                    raise NotFound(
                        what="change to undo in", name=self.id, hint="nothing was changed since it was opened"
                    )
                raise NotFound(
                    what="earlier event",
                    name=target,
                    hint=f"it was opened with {state.opening_end}, the newest is {state.seq}",
                )
            if to is not None:
                self._check_end(target)
            reverted = Draft(payload=Reverted(to=target), origin=Origin.USER)
            return Decision([reverted, *self._saved_since(state, target)], target)

        done = self._stream.commit(decide, key=named)
        self._show()
        self._seen = self._versions()
        if done.result is not None:
            return done.result
        (event,) = self._store.read(self._stream.name, after=done.appended.first - 1, until=done.appended.first)
        return event.payload.to if isinstance(event.payload, Reverted) else 0

    def _saved_since(self, state: SessionState, seq: int) -> list[Draft]:
        """Pages as people last saved them behind an event, to be kept when all else goes back there."""
        written = self._store.read(self._stream.name, after=seq, until=state.seq, kind=DocumentWritten.kind)
        saved = {
            one.payload.path: one for one in written if isinstance(one.payload, DocumentWritten) and is_file_edit(one)
        }
        return [
            Draft(payload=one.payload, origin=Origin.FILE, sources=(one.id,), trust=one.trust) for one in saved.values()
        ]

    def remove_last_messages(self, messages: int, *, key: str | None = None) -> AppendResult:
        """Take the last messages out of the conversation, as a host does that hands in a shorter list; nothing else.

        They stay in the journal, and pages and the scratchpad as they are.
        """
        last = _whole(messages, "messages", least=1)
        self._take_in()

        def decide(state: SessionState, now: datetime) -> Decision[SessionState, None]:
            there = len(state.conversation)
            if last > there:
                raise InvalidInput(field="messages", value=last, expected=f"at most {there}, as many as there are")
            gone = [Draft(payload=HistorySpliced(there - last, there, 0), origin=Origin.USER)]
            return Decision([*gone, *self._archivist.undone_by_edits(state, gone, now)], None)

        done = self._stream.commit(decide, key=key_for(key, "take_back", last))
        self._show(done.events)
        return done.appended

    def _check_end(self, seq: int) -> None:
        """A change is there whole or not at all: half of one has calls without their answers."""
        (behind,) = self._store.read(self._stream.name, after=seq, until=seq + 1)
        if not behind.starts_batch:
            opening = [event.seq for event in self._store.read(self._stream.name) if event.starts_batch]
            first = max(start for start in opening if start <= seq)
            last = min((start for start in opening if start > seq), default=self._stream.version + 1) - 1
            raise InvalidInput(field="to", value=seq, expected=f"where a change ended: {first - 1} or {last}")

    def prompt(self, call: int) -> Prompt:
        """The prompt of any past call, byte for byte as it was sent; its report counts anew, with today's counter."""
        return self._rebuilt(*self._prompt_of(call))

    def explain(self, call: int | None = None) -> Explanation:
        """For each part of a prompt: which layer, how many tokens, from which events, and why."""
        event, prepared = self._prompt_of(self._stream.refresh().prompt.calls if call is None else call)
        state = self._stream.state_at(event.seq - 1)
        return explained(state.prompt, state.history.sent, prepared, counter=self._meter.count)

    def __repr__(self) -> str:
        state = self._stream.state
        return f"<Session {self.id!r} of {self.resource!r}: {len(state.conversation)} messages, {state.prompt.calls} calls>"

    # -- inside --------------------------------------------------------------------------------------------

    @cached_property
    def _hands(self) -> ReplyExecutor:
        return ReplyExecutor(
            self._parts,
            followed=self._followed,
            recalled=self._feelings.spikes_for_searches,
            prepared=self._asked,
            compact=self._archivist.compact_by_model,
            search=self._search_by_model,
            in_mind=self._in_mind,
        )

    def _in_mind(self, state: SessionState, now: datetime) -> MemoryView:
        """What memory would say in a prompt that begins a conversation."""
        nothing = Conversation()
        recalled = self._recall(state, now)
        occasion = Occasion(
            standing=Standing(),
            line=nothing,
            view=self._view.of(nothing, "openai"),
            recalled=recalled,
            shared=0,
            limits=self._limits,
            meter=self._meter,
            now=now,
        )
        planned = plan(occasion)
        blocks = [block for d in planned.drafts if isinstance(d.payload, AnchorMoved) for block in d.payload.blocks]
        return MemoryView(blocks, self._shown_whole(replace(state, shown_in_prompt={}), planned, recalled) or ())

    def _search_by_model(self, query: Query) -> list[Hit]:
        """Without what it is just being asked: nothing is closer to a question than itself, and the model has that."""
        said = ((entry, self._view.message(entry)) for entry in reversed(self._stream.state.conversation[:]))
        asking = next((entry.id for entry, message in said if message.role == "user" and message.text), "")
        return self._search_for(replace(query, without=frozenset({asking})))

    @cached_property
    def _chronicle(self) -> OverviewWriter:
        return OverviewWriter(self._stream, is_memory_tool)

    @cached_property
    def _feelings(self) -> SessionAffect:
        return SessionAffect(self._resource, enabled=self._setup.affect and not self._is_anonymous)

    @cached_property
    def _archivist(self) -> Compactor:
        return Compactor(self._parts, self._meter, self._view.message)

    def _asked(self, call: int) -> SessionState:
        """What was in mind right after a call was prepared."""
        return self._stream.state_at(self._prompt_of(call)[0].seq)

    @cached_property
    def _family(self) -> ChildSessions:
        from inmind.session.children.children import ChildSessions  # only those who have children need it

        return ChildSessions(self._parts)

    def _prepared(
        self, given: Given, fmt: Format, notices: tuple[str, ...], key: Key | None
    ) -> CommitResult[tuple[Prompt, View]]:
        """Commit the next prompt; where a compaction is due before it, that is a change of its own.

        Then first what the host has handed in is kept, so that taking back the compaction takes back nothing else.
        """
        decide = partial(self._decide_prompt, given=given, fmt=fmt)
        commit = partial(self._stream.commit, key=key, companion=self._resource)
        for _ in range(MOST_RELIEFS):
            try:
                return commit(partial(decide, notices=notices, settled=False))
            except _Crowded as crowded:
                self._stream.commit(partial(self._decide_intake, given=given, fmt=fmt), companion=self._resource)
                relieved = self._archivist.run_planned(crowded.due)
                notices += relieved.notices
                if relieved.done:
                    with suppress(ContextOverflow):  # others may have said more meanwhile: then once more
                        return commit(partial(decide, notices=notices, settled=True))
        return commit(partial(decide, notices=notices, settled=True))

    def _foreseen(self, state: SessionState, now: datetime, *, given: Given, fmt: Format) -> Preview:
        """The same without committing anything."""
        decide = partial(self._decide_prompt, given=given, fmt=fmt, notices=())
        try:
            decision = decide(state, now, settled=False)
        except _Crowded as crowded:
            due = crowded.due
            state = self._stream.preview(state, state.seq, self._taken_in(state, now, given, fmt).session_events, now)
            state = self._stream.preview(
                state, state.seq, self._archivist.planned_drafts(state, due.selection, due.request), now
            )
            decision = decide(state, now, settled=True)
        prompt, _ = decision.result
        (prepared,) = (draft.payload for draft in decision.drafts if isinstance(draft.payload, PromptPrepared))
        state = self._stream.preview(state, state.seq, decision.drafts[:-1], now)
        why = explained(state.prompt, state.history.sent, prepared, counter=self._meter.count)
        return Preview(
            call=prompt.call,
            format=prompt.format,
            request=prompt.request,
            report=prompt.report,
            memory=prompt.memory,
            explanation=why,
        )

    def _decide_intake(
        self, state: SessionState, now: datetime, *, given: Given, fmt: Format
    ) -> Decision[SessionState, None]:
        taken = self._taken_in(state, now, given, fmt)
        return Decision(taken.session_events, None, companion=taken.resource_events)

    def _taken_in(self, state: SessionState, now: datetime, given: Given, fmt: Format) -> DerivedEvents:
        """What the host has handed in, and what that brings to mind."""
        theirs = [tool for layer in self._layers for tool in ask(layer, partial(layer.tools, fmt.name), _LIST)]
        ours = self.tools(fmt.name) if self._setup.memory_tools else []
        drafts = taken_in(state.prompt, state.history, given, [*theirs, *ours], fmt)
        drafts += self._archivist.undone_by_edits(state, drafts, now)
        here, abroad = self._followed(state, now, drafts)
        return DerivedEvents([*drafts, *here], abroad)

    def _with_upkeep(
        self, decide: Callable[[SessionState], list[Draft]], state: SessionState, now: datetime
    ) -> Decision[SessionState, bool]:
        drafts = decide(state)
        return Decision([*drafts, *(self._followed(state, now, drafts).session_events if drafts else [])], True)

    def _followed(self, state: SessionState, now: datetime, drafts: Sequence[Draft]) -> DerivedEvents:
        """What comes with these, in their commit: what layers keep of them, what they bring to mind, what memory enters
        on the overview, and what is felt about them."""
        kept = self._kept(state, now, drafts)
        told = self._attention.observations(state, [*drafts, *kept])
        more = [*kept, *self._attention.sightings(state, told, len(drafts) + len(kept), now)]
        wrote = any(isinstance(draft.payload, DocumentWritten | OverviewEvent) for draft in (*drafts, *kept))
        then = partial(self._stream.preview, state, state.seq, [*drafts, *more], now)
        entered = self._chronicle.entries_for(then, state, told, wrote=wrote)
        return DerivedEvents([*more, *entered], self._feelings.spikes_for(state, told, now))

    def _decide_prompt(
        self,
        state: SessionState,
        now: datetime,
        *,
        given: Given,
        fmt: Format,
        notices: tuple[str, ...],
        settled: bool,
    ) -> Decision[SessionState, tuple[Prompt, View]]:
        """`settled`: the history is compacted for this prompt, as far as it can be."""
        drafts, abroad = self._taken_in(state, now, given, fmt)
        state = self._stream.preview(state, state.seq, drafts, now)
        view = self._view.of(state.history.sent, fmt.name)
        recalled = self._recall(state, now)
        planned = self._planned(state, view, recalled, now, settled=settled)
        state = self._stream.preview(state, state.seq, planned.drafts, now)
        wires = self._view.copies(view)
        shown = self._shown_whole(state, planned, recalled)
        prepared = replace(
            planned.prepared, cache_marks=marks_of(given, state.conversation, view), shown_versions=shown
        )
        rendered = render(state.prompt, state.history.sent, prepared, view, wires, self._handed)
        asked = Draft(payload=replace(prepared, digest=rendered.name), origin=Origin.OPERATOR)
        foreseen = self._stream.preview(state, state.seq, [asked], now)
        call = foreseen.prompt.calls
        left = self._archivist.automatic_since(state.history, since=self._asked_before(state))
        notices += tuple(no_room_for(one.left_out) for one in left if one.left_out)
        compactions = tuple(self._archivist.report_for(one, state.history) for one in left)
        report = report_on(call, state.prompt, planned, view, notices, compactions)
        prompt = Prompt(call=call, format=fmt.name, request=rendered.request, report=report, memory=rendered.memory)
        return Decision([*drafts, *planned.drafts, asked], (prompt, view), next_state=foreseen, companion=abroad)

    def _planned(
        self,
        state: SessionState,
        view: View,
        recalled: Sequence[tuple[Layer, Recalled]],
        now: datetime,
        *,
        settled: bool,
    ) -> Plan:
        """The plan of a prompt, unless something has to leave the conversation first."""
        occasion = Occasion(
            standing=state.prompt,
            line=state.history.sent,
            view=view,
            recalled=recalled,
            shared=self._shared(state, view),
            limits=self._limits,
            meter=self._meter,
            now=now,
        )
        try:
            planned = plan(occasion)
        except ContextOverflow:
            if not settled:
                self._look_for_relief(state, occasion, None)
            raise
        if not settled:
            self._look_for_relief(state, occasion, planned)
        return planned

    def _look_for_relief(self, state: SessionState, occasion: Occasion, planned: Plan | None) -> None:
        if (due := self._archivist.planned(state, crowd(occasion, planned))) is not None:
            raise _Crowded(due)

    def _shown_whole(
        self, state: SessionState, planned: Plan, recalled: Sequence[tuple[Layer, Recalled]]
    ) -> ShownVersions | None:
        """Pages, and the scratchpad, that a prompt shows all of; of an object each field is a whole, so it counts also
        where it is cut. None if it is the same as in the prompt before."""
        cut = {layer for layer, _ in planned.cut}
        pages = state.documents.by_path
        whole = [layer.path for layer, _ in recalled if isinstance(layer, DocumentLayer) and layer.name not in cut]
        seen = {path: pages[path].source for path in whole if path in pages}
        pad = scratchpad_of(self._layers)
        if pad is not None and (pad.shape is not None or pad.name not in cut):
            thread = pad.scope == "thread"
            stream, pads = (
                (state.stream, state.scratchpads) if thread else (self._resource.name, self._resource.state.scratchpads)
            )
            seen[SCRATCHPAD] = pad.source(stream, pads)
        return None if seen == state.shown_in_prompt else tuple(seen.items())

    def _declared(self, state: SessionState) -> int:
        """Characters that were declared here; what a parent has handed on is not counted against its child."""
        handed = self._stream.state_at(state.opening_end).history.pinned if state.opened and state.opened.parent else ()
        return sum(len(one.text) for one in state.history.pinned if one not in handed)

    def _must_survive(self, state: SessionState) -> tuple[RetainedItem, ...]:
        """What would be kept if all of the conversation left now."""
        said = self._archivist.messages(state.history)
        everything = Leaving(runs=(tuple(range(len(said))),))
        return tuple(survivors(state.history, said, everything, self._meter).kept)

    def _retained(self, text: str, key: str | None, *, kept: bool) -> AppendResult:
        item = RetainedItem("pinned", checked_item(text))

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, None]:
            pinned = state.history.pinned
            known = any(one.text == item.text for one in (pinned if kept else self._must_survive(state)))
            if not kept and not known:
                raise NotFound(what="retained text", name=item.text, hint="see session.retained for those there are")
            if kept and not known and (left := MOST_RETAINED - self._declared(state)) < len(item.text):
                most = f"at most {max(left, 0)} characters: {MOST_RETAINED - left} of {MOST_RETAINED} are in use"
                raise InvalidInput(field="text", value=item.text, expected=most)
            return Decision(
                [] if known == kept else [Draft(payload=Retained(item, kept), origin=Origin.OPERATOR)], None
            )

        return self._stream.commit(decide, key=key_for(key, "retain" if kept else "release", text)).appended

    def _shared(self, state: SessionState, view: View) -> int:
        """Leading wires that the previous prompt had at the same place; by its events, if others have sent it."""
        if self._sent.view is not None and self._sent.call == state.prompt.calls:
            return view.shared_with(self._sent.view)
        return presumably_shared(state.prompt, state.history.sent, view)

    def _kept(self, state: SessionState, now: datetime, drafts: Sequence[Draft]) -> list[Draft]:
        """What layers keep of the assistant's messages among these; committed together with them."""
        replies = [
            d.payload.wire for d in drafts if isinstance(d.payload, MessageAdded) and d.origin is Origin.ASSISTANT
        ]
        if not replies:
            return []
        moment = self._moment(state, now)
        return [
            kept_by(layer, draft)
            for wire in replies
            for layer in self._layers
            for draft in ask(layer, partial(layer.store, moment, wire), _LIST)
        ]

    def _decide_add(
        self, state: SessionState, now: datetime, *, wires: Sequence[Wire], fmt: Format
    ) -> Decision[SessionState, bool]:
        drafts = [message_added(wire, fmt) for wire in not_yet_in(state.conversation, wires, fmt)]
        followed = self._followed(state, now, drafts)
        return Decision([*drafts, *followed.session_events], True, companion=followed.resource_events)

    def _recall(self, state: SessionState, now: datetime) -> list[tuple[Layer, Recalled]]:
        moment = self._moment(state, now)
        said = [(layer, ask(layer, partial(layer.recall, moment), _RECALLED)) for layer in self._layers]
        return [(layer, recalled) for layer, recalled in said if recalled is not None and recalled.text]

    def _moment(
        self, state: SessionState, now: datetime, ancestors: Sequence[Stream[SessionState]] | None = None
    ) -> Moment:
        """What layers may look at; with the moment of the parent, as it is now, and so on up."""
        above = self._ancestors if ancestors is None else ancestors
        resource_state = self._resource.state
        own = ancestors is None
        return Moment(
            session=state.stream.removeprefix("session/"),
            resource=self.resource,
            now=now,
            documents={**self._shared_pages(resource_state), **state.documents.by_path},
            messages=state.history.sent.wires,
            entities=state.entities,
            pads={"thread": state.scratchpads, "resource": resource_state.scratchpads},
            visible=state.history.sent.holds if own else _nothing,
            parent=self._moment(above[0].state, now, above[1:]) if above else None,
            language=state.language,
            retained=state.history.unsaid,
            window=self._limits.window,
        )

    @property
    def _is_anonymous(self) -> bool:
        """Nobody in particular owns this session: what belongs to a resource is then shared with strangers."""
        return self.resource == ANONYMOUS

    def _shared_pages(self, resource_state: ResourceState) -> Mapping[str, Document]:
        """What of its resource's documents a session has in mind; its notes are its own, where it is alone."""
        pages = resource_state.documents.by_path
        return {path: page for path, page in pages.items() if path != NOTES_PAGE_PATH} if self._is_anonymous else pages

    def _look_up(self) -> None:
        """A child sees what its parent has in mind now."""
        if any(isinstance(layer, ViewLayer) for layer in self._layers):
            for ancestor in self._ancestors:
                ancestor.refresh()

    def _prompt_of(self, call: int) -> tuple[Event, PromptPrepared]:
        events = self._store.read(self._stream.name, kind=PromptPrepared.kind)
        if not 0 < _whole(call, "call") <= len(events):
            made = f"this session has made {len(events)}" if events else "this session has not made one yet"
            raise NotFound(what="call", name=call, hint=made)
        return events[call - 1], _prepared(events[call - 1])

    def _asked_before(self, state: SessionState) -> int:
        """The number of the last prompt's event, where it matters; looked up if this object has not made it."""
        known = self._sent.call == state.prompt.calls or not state.history.compactions
        return self._sent.seq if known else self._last_asked(until=state.seq)

    def _last_asked(self, *, until: int) -> int:
        events = self._store.read(self._stream.name, until=until, kind=PromptPrepared.kind)
        return events[-1].seq if events else 0

    def _rebuilt(self, event: Event, prepared: PromptPrepared) -> Prompt:
        state = self._stream.state_at(event.seq - 1)
        prompt = rebuilt(
            state.prompt,
            state.history.sent,
            prepared,
            at=event.at,
            counter=self._meter.count,
            cache_seconds=self._limits.cache_seconds,
        )
        left = self._archivist.automatic_since(state.history, since=self._last_asked(until=event.seq - 1))
        compactions = tuple(self._archivist.report_for(one, state.history) for one in left)
        return replace(prompt, report=replace(prompt.report, compactions=compactions))

    def _refreshed(self, scope: Scope) -> Documents:
        return self._stream.refresh().documents if scope == "thread" else self._resource.refresh().documents

    def _documents_at(self, scope: Scope, seq: int) -> Documents:
        return self._stream.state_at(seq).documents if scope == "thread" else self._resource.state_at(seq).documents

    def _documents(self, scope: Scope) -> Documents:
        return self._stream.state.documents if scope == "thread" else self._resource.state.documents

    def _take_in(self) -> None:
        self._files.read_edits()
        self._resource_files.read_edits()
        if self._chronicle.refresh():
            self._files.publish()

    def _show(self, fresh: Sequence[Event] = ()) -> None:
        """After a commit: bring the live files up to date. The change is safe by now, so a file may only lag."""
        self._files.publish()
        self._resource_files.publish()
        now = {"transcript": self._transcript.update(fresh)}
        if self._meta.is_stale(self._stream.state):
            now["meta"] = self._meta.write(self._stream.state)
        # What lasts is said when it begins, not at every call.
        self._lags += [lag for view, lag in now.items() if lag and lag != self._lagging.get(view)]
        self._lagging |= now
        if fresh:
            self._parts.schedule_embedding()

    def close(self) -> None:
        """Write what only a closed session shows. Called by `Memory.close`."""
        self._meta.write(self._stream.state)

    def _have_shown(self) -> None:
        """Documents that stood in the prompt just prepared, whole or cut, have been shown to whoever writes next."""
        standing = self._stream.state.prompt
        shown = {source for block in standing.blocks for source in block.sources} | set(standing.tail_sources)
        both = {**self._stream.state.documents.by_path, **self._resource.state.documents.by_path}
        self._seen |= {path: document.version for path, document in both.items() if document.source in shown}

    def _versions(self) -> dict[str, int]:
        both = {**self._stream.state.documents.by_path, **self._resource.state.documents.by_path}
        return {path: document.version for path, document in both.items()}

    def _notices(self) -> tuple[str, ...]:
        lags, self._lags = self._lags, []
        return (*self._files.notices(), *self._resource_files.notices(), *self._misread(), *lags)

    def _misread(self) -> tuple[str, ...]:
        """What is wrong with the overview's front matter, said once for each that was written."""
        page = self._documents("thread").text(OVERVIEW_PATH)
        before, (self._head, _) = self._head, split_front_matter(page)
        return (f"{OVERVIEW_PATH}: {why}",) if self._head != before and (why := front_matter_error(page)) else ()


MOST = 2**53
"""Larger numbers do not survive JSON everywhere, and nothing here is that many."""

MOST_RETAINED = 4_000
"""Characters that a host may declare in all: they stand in prompts, whatever else has to leave."""

MOST_RELIEFS = 3
"""Compactions that are tried before one prompt, where other writers change the conversation meanwhile."""

_LIST = (list, tuple)
_RECALLED = (Recalled, type(None))


def _nothing(_: str) -> bool:
    return False


def _prepared(event: Event) -> PromptPrepared:
    if not isinstance(event.payload, PromptPrepared):
        raise NotFound(what="prompt", name=event.id)
    return event.payload


def _whole(value: object, field: str, *, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST:
        shown = value if not isinstance(value, int) or value.bit_length() < 100 else f"{value.bit_length()} bits"
        raise InvalidInput(field=field, value=shown, expected=f"a whole number from {least} to {MOST}")
    return value
