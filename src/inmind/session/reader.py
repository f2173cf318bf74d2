"""Read a session: state, events, messages, documents, entities and prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from inmind.core.events.base import Event
from inmind.core.events.session import RetainedItem
from inmind.core.json import copy_json_value
from inmind.core.messages import get_format
from inmind.core.messages.model import Wire
from inmind.core.text import count_noun
from inmind.core.tokens import Usage
from inmind.documents.document import OVERVIEW_PATH, Scope, resolve_path, validate_text
from inmind.documents.overview.front_matter import parse_front_matter
from inmind.entities.serialize import serialize
from inmind.entities.window import Entities
from inmind.errors import NotFound
from inmind.history.compaction.stubs import parse_location
from inmind.history.view import deep_copy
from inmind.prompt.ingest import PrepareInput
from inmind.prompt.report import Explanation, Prompt, PromptPreview
from inmind.session.compaction import Compactor
from inmind.session.compaction_plan import CompactionPlanner
from inmind.session.context import SessionContext, whole_number
from inmind.session.derive import EventDeriver, LayerCalls
from inmind.session.documents import SessionDocuments
from inmind.session.entities import check_call, resolve
from inmind.session.prepare import PromptHistory, PromptPreparer, PromptRequest
from inmind.session.state import ResourceState, SessionState
from inmind.session.tools.registry import tool_schemas
from inmind.store.stream import Stream

if TYPE_CHECKING:
    from inmind.entities.grounding import CallCheck
    from inmind.entities.references.result import Resolution


class SessionReader:
    """Reads a session.

    The host changes nothing here. Edits that people saved in live files are stored first.
    """

    def __init__(self, context: SessionContext) -> None:
        self.id, self._context, self._config = context.id, context, context.config
        self._store, self._stream, self._resource = context.store, context.stream, context.resource
        self._planner = CompactionPlanner(context)
        self._compactor = Compactor(context, self._planner)
        self._prompts = PromptHistory(context, self._compactor)
        self._layer_calls = LayerCalls(context, self._planner)
        self._deriver = EventDeriver(context, self._layer_calls)
        self._documents = SessionDocuments(context, self._deriver)
        self._preparer = PromptPreparer(
            context, self._planner, self._compactor, self._layer_calls, self._deriver, self._prompts
        )

    @property
    def resource(self) -> str:
        """Name of the resource that owns the session."""
        return self._context.resource_name

    @property
    def memory_tools(self) -> bool:
        """True if memory tools are offered to the model and executed."""
        return self._config.memory_tools

    def tools(self, format: str = "openai") -> list[dict[str, Any]]:
        """Schemas of the memory tools, for `openai`, `responses`, `anthropic` or `mcp`."""
        return tool_schemas(self._config.layers, format)

    @property
    def messages(self) -> list[Wire]:
        """The conversation as plain messages, each in the format in which it was added."""
        return [deep_copy(entry.wire) for entry in self._stream.refresh().conversation]

    @property
    def state(self) -> SessionState:
        """The current state, with the changes of other processes."""
        return self._stream.refresh()

    @property
    def resource_state(self) -> ResourceState:
        """The state of the resource, shared by its sessions."""
        return self._resource.refresh()

    @property
    def usage(self) -> Usage:
        """Tokens sent in all calls so far, and how many came from the provider's cache."""
        return self._stream.refresh().prompt.token_usage

    def state_at(self, seq: int) -> SessionState:
        """The state right after event number `seq`."""
        return self._stream.state_at(whole_number(seq, "seq"))

    def events(self, *, after: int = 0) -> Sequence[Event]:
        """All events of the session, or those after event number `after`."""
        return self._store.read(self._stream.name, after=whole_number(after, "after"))

    def prompt(self, call: int) -> Prompt:
        """The prompt of a past call, byte for byte as it was sent.

        Its report is counted with the current counter.
        """
        return self._prompts.rebuild(self._prompts.find(call)[0].seq)

    def explain(self, call: int | None = None) -> Explanation:
        """For each part of a prompt: its layer, tokens, source events and reason.

        The default is the last prompt.
        """
        return self._prompts.explain(call)

    def preview(
        self,
        messages: Sequence[Any] | None = None,
        *,
        system: str | Sequence[Any] | None = None,
        tools: Sequence[Any] | None = None,
        format: str = "openai",
        thread: str | None = None,
    ) -> PromptPreview:
        """Return what `prepare` would return now, with its explanation.

        Nothing is stored and no call is counted.

        A compaction that `prepare` would run first is included, with an extracted summary: no model is called.
        """
        fmt = get_format(format)
        request = PromptRequest(PrepareInput.of(messages, system, tools, fmt, thread), fmt)
        self._documents.read_edits()
        self._preparer.refresh()
        return self._stream.dry_run(partial(self._preparer.preview, request=request))

    @property
    def entities(self) -> Entities:
        """The entities in the window, most recent first, and those that have left it."""
        return self._stream.refresh().entities

    def export_entities(self) -> dict[str, Any]:
        """The window as JSON for `import_entities` and `Memory.import_entities` of any version."""
        return serialize(self.entities)

    def resolve(self, text: str) -> Resolution:
        """Find the entities that a user's words refer to, with a confidence; no model is called."""
        return resolve(self._context, validate_text(text))

    def check_call(self, tool: str, arguments: Any) -> CallCheck:
        """Report ids in a call's arguments that this session and its resource have never seen."""
        return check_call(self._context, validate_text(tool, field="tool"), copy_json_value(arguments, "arguments"))

    @property
    def retained(self) -> tuple[RetainedItem, ...]:
        """Items that every compaction keeps.

        They are the goal, rules, decisions, and texts added with `retain`.
        """
        return self._planner.retained_items(self._stream.refresh().history)

    @property
    def overview(self) -> str:
        """The text of overview.md, with edits that people have just saved."""
        return self.read(OVERVIEW_PATH)

    @property
    def front_matter(self) -> Mapping[str, Any] | None:
        """The YAML front matter of the overview; None if there is none.

        Raises InvalidInput if it is not valid YAML or the YAML library is not installed.
        """
        return parse_front_matter(self.overview)

    def read(self, path: str) -> str:
        """Return a document with the latest edits of people; `archive/001:5-20` names lines."""
        self._documents.read_edits()
        lines = None
        if isinstance(path, str):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            path, lines = parse_location(path, self._stream.refresh().documents.by_path)
        scope, name = resolve_path(path, anonymous=self._context.is_anonymous)
        documents = self._stream_of(scope).refresh().documents
        if name not in documents.by_path:
            raise NotFound(what="document", name=path, hint="session.documents() lists them")
        text = documents.text(name)
        if lines is not None:
            return "\n".join(text.split("\n")[lines[0] - 1 : lines[1]])
        self._documents.seen[name] = documents.version(name)
        return text

    def documents(self) -> dict[str, int]:
        """Paths of all documents of the session and its resource, with their versions."""
        self._documents.read_edits()
        by_path = {**self._stream.refresh().documents.by_path, **self._resource.refresh().documents.by_path}
        return {path: document.version for path, document in sorted(by_path.items())}

    def _stream_of(self, scope: Scope) -> Stream[SessionState] | Stream[ResourceState]:
        return self._stream if scope == "thread" else self._resource

    def __repr__(self) -> str:
        state = self._stream.state
        size = f"{count_noun(len(state.conversation), 'message')}, {count_noun(state.prompt.calls, 'call')}"
        return f"<Session {self.id!r} of {self.resource!r}: {size}>"
