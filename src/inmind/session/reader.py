"""The read-only part of a session: its state, events, messages, entities and past prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from inmind.core.events.base import Event
from inmind.core.events.session import RetainedItem
from inmind.core.messages.model import Wire
from inmind.core.text import count_noun
from inmind.core.tokens import Usage
from inmind.documents.document import validate_text
from inmind.entities.serialize import serialize
from inmind.entities.window import Entities
from inmind.history.view import deep_copy
from inmind.prompt.ingest import copy_json_value
from inmind.prompt.report import Explanation, Prompt
from inmind.session.context import SessionContext, whole_number
from inmind.session.state import ResourceState, SessionState
from inmind.session.tools.registry import tool_schemas
from inmind.session.wiring import SessionParts

if TYPE_CHECKING:
    from inmind.entities.grounding import CallCheck
    from inmind.entities.references.result import Resolution


class SessionReader:
    """Reads a session. Nothing here is stored or counted."""

    def __init__(self, context: SessionContext) -> None:
        self.id, self._context, self._config = context.id, context, context.config
        self._store, self._stream, self._resource = context.store, context.stream, context.resource
        self._parts = SessionParts(context)

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
        return self._parts.prompts.rebuild(*self._parts.prompts.find(call))

    def explain(self, call: int | None = None) -> Explanation:
        """For each part of a prompt: its layer, tokens, source events and reason.

        The default is the last prompt.
        """
        return self._parts.prompts.explain(call)

    @property
    def entities(self) -> Entities:
        """The entities in the window, most recent first, and those that have left it."""
        return self._stream.refresh().entities

    def export_entities(self) -> dict[str, Any]:
        """The window as JSON for `import_entities` and `Memory.import_entities` of any version."""
        return serialize(self.entities)

    def resolve(self, text: str) -> Resolution:
        """Find the entities that a user's words refer to, with a confidence; no model is called."""
        return self._context.entities.resolve(validate_text(text))

    def check_call(self, tool: str, arguments: Any) -> CallCheck:
        """Report ids in a call's arguments that this session and its resource have never seen."""
        return self._context.entities.check_call(
            validate_text(tool, field="tool"), copy_json_value(arguments, "arguments")
        )

    @property
    def retained(self) -> tuple[RetainedItem, ...]:
        """Items that every compaction keeps.

        They are the goal, rules, decisions, and texts added with `retain`.
        """
        return self._parts.retention.items(self._stream.refresh())

    def __repr__(self) -> str:
        state = self._stream.state
        size = f"{count_noun(len(state.conversation), 'message')}, {count_noun(state.prompt.calls, 'call')}"
        return f"<Session {self.id!r} of {self.resource!r}: {size}>"
