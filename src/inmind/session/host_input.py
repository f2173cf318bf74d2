"""Input from the host: messages, results of its tools, and token counts of the provider."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from inmind.core.encoding import digest
from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.prompt import UsageReported
from inmind.core.events.session import ToolObserved
from inmind.core.messages import get_format
from inmind.documents.document import validate_text
from inmind.errors import InvalidInput
from inmind.prompt.ingest import copy_json_value, copy_messages, message_draft, new_messages
from inmind.session.context import SessionContext, whole_number
from inmind.session.derive import EventDeriver
from inmind.session.prompt_history import PromptHistory
from inmind.session.state import SessionState
from inmind.session.views import SessionViews
from inmind.store.stream import Decision, key_for


class HostInput:
    """Records what the host reports. Methods return the events that were appended."""

    def __init__(
        self, context: SessionContext, views: SessionViews, deriver: EventDeriver, prompts: PromptHistory
    ) -> None:
        self._stream, self._resource = context.stream, context.resource
        self._views, self._deriver, self._prompts = views, deriver, prompts

    def add(self, messages: Sequence[Any], *, format: str, key: str | None) -> Sequence[Event]:
        fmt = get_format(format)
        wires = copy_messages(messages, fmt)
        checked_key = key_for(key, "add", format, wires)
        self._views.read_edits()
        self._resource.refresh()

        def decide(state: SessionState, now: datetime) -> Decision[SessionState, None]:
            drafts = [message_draft(wire, fmt) for wire in new_messages(state.conversation, wires, fmt)]
            derived = self._deriver.derive(state, now, drafts)
            return Decision([*drafts, *derived.session_events], None, companion=derived.resource_events)

        return self._stream.commit(decide, key=checked_key, companion=self._resource).events

    def observe(
        self, tool: str, arguments: Any, result: Any, *, error: bool, id: str | None, origin: Origin, key: str | None
    ) -> Sequence[Event]:
        if origin not in (Origin.TOOL, Origin.WEB):
            raise InvalidInput(field="origin", value=origin, expected="Origin.TOOL or Origin.WEB")
        if not isinstance(error, bool):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="error", value=error, expected="True or False")
        payload = ToolObserved(
            tool=validate_text(tool, field="tool"),
            arguments=copy_json_value(arguments, "arguments"),
            result=copy_json_value(result, "result"),
            error=error,
            call_id=validate_text("" if id is None else id, field="id"),
        )
        if id:
            checked_key = key_for(f"observed:{digest(id)}", "observed", id)
        else:
            checked_key = key_for(key, "observe", payload.tool, payload.arguments, payload.result, error, origin)

        def decide(state: SessionState, now: datetime) -> Decision[SessionState, None]:
            observed = Draft(payload=payload, origin=origin)
            derived = self._deriver.derive(state, now, [observed])
            return Decision([observed, *derived.session_events], None, companion=derived.resource_events)

        self._resource.refresh()
        return self._stream.commit(decide, key=checked_key, companion=self._resource).events

    def report_usage(
        self, prompt_tokens: int, cached_tokens: int, completion_tokens: int, *, call: int | None, key: str | None
    ) -> None:
        numbers = {
            "prompt_tokens": prompt_tokens,
            "cached_tokens": cached_tokens,
            "completion_tokens": completion_tokens,
        }
        for field, value in numbers.items():
            whole_number(value, field)
        if cached_tokens > prompt_tokens:
            raise InvalidInput(field="cached_tokens", value=cached_tokens, expected=f"at most {prompt_tokens}")
        prompt = self._stream.refresh().prompt
        number = prompt.calls if call is None else whole_number(call, "call")
        is_last = number == prompt.calls > 0
        counted = prompt.last_prompt.counted_tokens if is_last else self._prompts.find(number)[1].used
        payload = UsageReported(number, counted, prompt_tokens, cached_tokens, completion_tokens)
        checked_key = key_for(key, "report_usage", number, numbers)
        self._stream.append(Draft(payload=payload, origin=Origin.OPERATOR), key=checked_key)
