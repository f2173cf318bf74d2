"""Past prompts: find them in the journal, rebuild and explain them."""

from __future__ import annotations

from dataclasses import replace

from inmind.core.events.base import Event
from inmind.core.events.prompt import PromptPrepared
from inmind.errors import NotFound
from inmind.history.view import TokenMeter
from inmind.prompt.report import Explanation, Prompt, explain_prompt, rebuild_prompt
from inmind.session.compaction import Compactor
from inmind.session.context import SessionContext, whole_number
from inmind.session.state import SessionState


class PromptHistory:
    """Past prompts of one session, rebuilt from the journal."""

    def __init__(self, context: SessionContext, compactor: Compactor, meter: TokenMeter) -> None:
        self._stream, self._store, self._limits = context.stream, context.store, context.config.limits
        self._compactor, self._meter = compactor, meter

    def find(self, call: int) -> tuple[Event, PromptPrepared]:
        """The event and payload of a numbered call. Raises NotFound."""
        events = self._store.read(self._stream.name, kind=PromptPrepared.kind)
        if not 0 < whole_number(call, "call") <= len(events):
            hint = f"this session has made {len(events)}" if events else "this session has not made one yet"
            raise NotFound(what="call", name=call, hint=hint)
        return events[call - 1], _payload(events[call - 1])

    def state_after(self, call: int) -> SessionState:
        """The state right after a call was prepared."""
        return self._stream.state_at(self.find(call)[0].seq)

    def last_prepared(self, *, until: int) -> int:
        """Number of the last event up to `until` that prepared a prompt; 0 if there is none."""
        events = self._store.read(self._stream.name, until=until, kind=PromptPrepared.kind)
        return events[-1].seq if events else 0

    def rebuild(self, event: Event, prepared: PromptPrepared) -> Prompt:
        """Rebuild a past prompt from its event."""
        state = self._stream.state_at(event.seq - 1)
        prompt = rebuild_prompt(
            state.prompt,
            state.history.sent,
            prepared,
            at=event.at,
            counter=self._meter.count,
            cache_seconds=self._limits.cache_seconds,
        )
        compacted = self._compactor.automatic_since(state.history, since=self.last_prepared(until=event.seq - 1))
        compactions = tuple(self._compactor.report_for(event_payload, state.history) for event_payload in compacted)
        return replace(prompt, report=replace(prompt.report, compactions=compactions))

    def rebuild_at(self, seq: int) -> Prompt:
        """Rebuild the prompt that the event with this number prepared."""
        (event,) = self._store.read(self._stream.name, after=seq - 1, until=seq)
        return self.rebuild(event, _payload(event))

    def explain(self, call: int | None = None) -> Explanation:
        """For each part of a prompt: its layer, tokens, source events and reason."""
        event, prepared = self.find(self._stream.refresh().prompt.calls if call is None else call)
        state = self._stream.state_at(event.seq - 1)
        return explain_prompt(state.prompt, state.history.sent, prepared, counter=self._meter.count)


def _payload(event: Event) -> PromptPrepared:
    if not isinstance(event.payload, PromptPrepared):
        raise NotFound(what="prompt", name=event.id)
    return event.payload
