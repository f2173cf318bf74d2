"""`Session`: one conversation and its working memory, as hosts use it.

Every method has the same steps: read edits from the live files, decide on values, append the events as one commit, and
publish the result to the live files. All state can be rebuilt from the journal; the token meter and the history view
are caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import SessionOpened, SessionTitled
from inmind.core.json import copy_json_value
from inmind.core.messages import get_format
from inmind.core.text import shorten
from inmind.documents.document import validate_text
from inmind.documents.overview.event_log import overview_event
from inmind.documents.overview.maintain import overview_updates
from inmind.errors import InvalidInput, NotFound
from inmind.history.compaction.policy import CompactionReport, CompactionUndoReport, Summarizer
from inmind.history.compaction.select import DEFAULT_KEEP_RECENT
from inmind.prompt.ingest import PrepareInput
from inmind.prompt.report import Prompt
from inmind.session.context import SessionConfig, SessionContext
from inmind.session.entities import import_entities, set_pinned, track
from inmind.session.host_input import HostInput
from inmind.session.notes import NoteInput, NoteWriter, withdraw_note
from inmind.session.prepare import PromptRequest
from inmind.session.replies import Recorded, ReplyExecutor
from inmind.session.scratchpad import Scratchpad
from inmind.session.search import search_session
from inmind.session.state import MAX_TITLE_LENGTH
from inmind.session.tool_calls import ToolCallParts
from inmind.session.tools.base import ToolResult
from inmind.session.tools.registry import expand_command, find_tool
from inmind.store.stream import Decision, key_for

if TYPE_CHECKING:
    from inmind.search.query import Hit
    from inmind.session.children import MergeReport


OpenChild = Callable[[str, SessionOpened, Sequence[Draft], SessionConfig], "Session"]
"""Opens a child session: (id, opening event, inherited events, configuration of the parent)."""


class Session(HostInput, NoteInput):
    """One conversation and its working memory."""

    def __init__(self, context: SessionContext, open_child: OpenChild) -> None:
        super().__init__(context)
        self._open_child = open_child
        parts = ToolCallParts(context, self._compactor, self._preparer)
        self._replies = ReplyExecutor(parts, self._deriver, self._prompts)
        self._documents.read_edits()
        self._documents.publish()
        self._documents.mark_all_seen()
        if context.scratchpad is not None and (misfit := context.scratchpad.misfit):
            self._documents.add_notice(f"the saved scratchpad does not fit ({misfit}): the first update sets it aside")

    # -- talking to the model ------------------------------------------------------------------------------

    def prepare(
        self,
        messages: Sequence[Any] | None = None,
        *,
        system: str | Sequence[Any] | None = None,
        tools: Sequence[Any] | None = None,
        format: str = "openai",
        thread: str | None = None,
        key: str | None = None,
    ) -> Prompt:
        """Return the next prompt to send to the model.

        `messages` is the host's complete list; new messages in it are recorded. Without it, the history in the journal
        is used. `thread`: id of a reply or conversation that OpenAI holds; `messages` are then only those after it. The
        prompt is committed before it is returned, so it can be explained and rebuilt later.
        """
        fmt = get_format(format)
        inputs = PrepareInput.of(messages, system, tools, fmt, thread)
        checked_key = key_for(key, "prepare", format, messages, system, tools, *([thread] if thread else []))
        self._documents.read_edits()
        self._preparer.refresh()
        done = self._preparer.prepare(PromptRequest(inputs, fmt, self._documents.notices()), checked_key)
        self._documents.publish(done.events)
        if done.result is None:
            return self._prompts.rebuild(done.appended.last)
        self._documents.mark_prompt_seen()
        return done.result

    def record(
        self, reply: Any, *, format: str | None = None, call: int | None = None, key: str | None = None
    ) -> Recorded:
        """Record the model's reply and run the memory tools that it calls.

        Takes a reply of any provider, its message, or the chunks of a stream; as objects or plain values. `results` are
        messages to send back, `host_calls` are for the host to run. The reply, the changes of the tools and their
        answers are one commit; recording the same reply again changes nothing. `call`: number of the prompt that the
        reply answers, if not the last one.
        """
        self._documents.read_edits()
        self._layer_calls.refresh_ancestors()
        recorded, events = self._replies.record(reply, format=format, call=call, key=key)
        self._documents.publish(events)
        self._documents.mark_results_seen()
        return recorded

    def call_tool(
        self,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        seen: Mapping[str, str] | None = None,
        key: str | None = None,
    ) -> ToolResult:
        """Run one memory tool for an agent whose conversation is kept elsewhere.

        An error in the tool becomes its result, as for a model; an unknown tool raises NotFound. That agent gets no
        prompt from us, so the caller passes in `seen` which pages it knows: the `seen` of earlier results. Pages that
        it has not seen can be appended to, but not overwritten.

        A refused call does not consume its `key` and can be retried with it. A call that was undone since is run again.
        A read-only tool always reads again.
        """
        checked_arguments = copy_json_value({} if arguments is None else arguments, "arguments")
        tool, checked_arguments = expand_command(validate_text(tool, field="tool"), checked_arguments)
        memory_tool, layer = find_tool(tool, self._config.layers)
        self._layer_calls.refresh_ancestors()
        if memory_tool.uses_pages:
            self._documents.read_edits()
        scope = memory_tool.scope(layer, self._context.is_anonymous)
        result, events = self._replies.call(
            tool, checked_arguments, scope=scope, read_only=memory_tool.read_only, seen=seen or {}, key=key
        )
        if memory_tool.uses_pages:
            self._documents.publish(events)
        elif not memory_tool.read_only:
            self._context.notes.publish()
        return result

    # -- scratchpad and child sessions ---------------------------------------------------------------------

    @property
    def scratchpad(self) -> Scratchpad:
        """The scratchpad: `snapshot` and `update`."""
        if self._context.scratchpad is None:
            raise NotFound(what="scratchpad in session", name=self.id, hint="add a ScratchpadLayer to its layers")
        return self._context.scratchpad

    def spawn(
        self, id: str | None = None, *, policy: str | Mapping[str, str] | None = None, key: str | None = None
    ) -> Session:
        """Open a child session for a sub-agent, with the same resource and a new conversation.

        For each layer the child gets a copy (fork), a read-only view (view) or nothing (none): as the layer declares,
        or as `policy` says, for all layers or by layer name. The same id, or the same key, is the same child.
        """
        self._documents.read_edits()
        from inmind.session.children import prepare_child  # needed only by sessions with children

        return self._open_child(*prepare_child(self._context, self._planner, id, policy, key), self._config)

    def merge_back(self, child: Session | str, *, key: str | None = None) -> MergeReport:
        """Merge what a child has changed since it was opened or last merged.

        `child` may be an id. If both changed the same item, the parent's value stays and the report has both.
        """
        self._documents.read_edits()
        from inmind.session.children import merge_child

        report = merge_child(self._context, child.id if isinstance(child, Session) else child, key)
        self._documents.publish()
        return report

    # -- entities ------------------------------------------------------------------------------------------

    def track(self, entities: Sequence[Any], *, key: str | None = None) -> None:
        """Add entities that no tool has shown: entities, or objects with id, type and name.

        The last entity becomes the first of the window.
        """
        if isinstance(entities, str) or not isinstance(entities, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="entities", value=entities, expected="a list")
        track(self._context, entities, key_for(key, "track"))

    def pin(self, id: str, type: str | None = None, *, key: str | None = None) -> None:
        """Keep an entity in the window until it is unpinned."""
        set_pinned(self._context, id, type, key_for(key, "pin", id, type), pinned=True)

    def unpin(self, id: str, type: str | None = None, *, key: str | None = None) -> None:
        """Allow an entity to leave the window again."""
        set_pinned(self._context, id, type, key_for(key, "unpin", id, type), pinned=False)

    def import_entities(self, data: object, *, key: str | None = None) -> None:
        """Add the entities of an export, of any older version too, in front of the window."""
        import_entities(self._context, data, key_for(key, "restore", data))

    # -- notes and search ----------------------------------------------------------------------------------

    def _note_writer(self) -> NoteWriter:
        return self._context.notes

    def withdraw(self, note_id: str, *, key: str | None = None) -> None:
        """Withdraw a note: it leaves the notes page, prompts and search. `undo` restores it.

        The note stays in the journal, and so do lines that a dream has already written from it.
        """
        self._documents.read_edits()
        self._documents.publish(withdraw_note(self._context, note_id, key=key))

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

        `as_of` searches what was known on that day. The search is recorded in the background, once for each `key`: hits
        expire later, and a query without hits becomes a gap for the next dream. A session without a resource searches
        only itself.
        """
        where = {"kinds": kinds, "sources": sources, "since": since, "until": until, "session": session, "as_of": as_of}
        options = {"limit": limit if limit != 10 else None, **where}
        filters = {name: value for name, value in options.items() if value is not None}
        return search_session(self._context, query, filters, key)

    # -- documents -----------------------------------------------------------------------------------------

    def event(self, kind: str, text: str, *, key: str | None = None) -> None:
        """Add a line to the overview for an event.

        `kind`: task_started, task_completed, decision_made, bug_found or context_changed.
        """
        event, checked_key = overview_event(kind, validate_text(text)), key_for(key, "event", kind, text)
        self._documents.read_edits()
        self._stream.commit(
            lambda state, _: Decision(
                overview_updates(state.documents, state.language, [event], log=state.overview_lines), None
            ),
            key=checked_key,
        )
        self._documents.publish()

    def rename(self, title: str, *, key: str | None = None) -> None:
        """Set the title shown in lists. The default is the first words of the user."""
        name = shorten(validate_text(title, field="title"), MAX_TITLE_LENGTH)
        if not name:
            raise InvalidInput(field="title", value=title, expected="a name")
        self._stream.append(Draft(payload=SessionTitled(name), origin=Origin.USER), key=key_for(key, "rename", title))
        self._documents.publish()

    # -- history -------------------------------------------------------------------------------------------

    def compact(
        self,
        target: str = "all",
        *,
        strategy: str = "archive",
        keep_recent: int = DEFAULT_KEEP_RECENT,
        archive_to: str | None = None,
        model: Summarizer | None = None,
        key: str | None = None,
    ) -> CompactionReport:
        """Archive old messages and send a stub instead.

        `target`: `conversation`, `tools` (tool results) or `all`. They go into a page of archive/, or the one named by
        `archive_to`. With the strategy `summarize` the stub has a summary, by `model`, a function from a prompt to a
        text, or extracted. The last `keep_recent` turns before the active one stay, as many of its rounds, at least
        three, and as many tool results; so does the current request. Items that must survive are checked and reported
        one by one. `undo_compaction` reverts it.
        """
        if model is not None and strategy != "summarize":
            raise InvalidInput(field="strategy", value=strategy, expected="summarize, if a model is given")
        self._documents.read_edits()
        report, events = self._compactor.compact(
            target=target, strategy=strategy, keep_recent=keep_recent, archive_to=archive_to, model=model, key=key
        )
        self._documents.publish(events)
        return report

    def undo_compaction(self, *, key: str | None = None) -> CompactionUndoReport:
        """Send the messages of the last compaction again. Messages added since stay."""
        self._documents.read_edits()
        report, events = self._compactor.undo(key=key)
        self._documents.publish(events)
        return report

    def close(self) -> None:
        """Write meta.json. Called by `Memory.close`."""
        self._context.meta.write(self._stream.state)
