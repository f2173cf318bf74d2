"""Input of the host.

Messages, results of its tools, token counts, retained texts, undo. Each function commits one change; those that return
events return the ones that were appended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from inmind.core.encoding import digest
from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.prompt import UsageReported
from inmind.core.events.session import HistorySpliced, Retained, RetainedItem, Reverted, ToolObserved
from inmind.core.messages import get_format
from inmind.documents.document import validate_text
from inmind.errors import InvalidInput, NotFound
from inmind.history.compaction.retention import check_pinned_text
from inmind.prompt.ingest import copy_json_value, copy_messages, message_draft, new_messages
from inmind.session.compaction import Compactor
from inmind.session.compaction_plan import CompactionPlanner
from inmind.session.context import SessionContext, whole_number
from inmind.session.derive import EventDeriver
from inmind.session.notes import revert_withdrawals
from inmind.session.prepare import PromptHistory
from inmind.session.state import SessionState, is_file_edit
from inmind.store.protocol import Key
from inmind.store.stream import Decision, key_for

MAX_RETAINED_CHARACTERS = 4_000
"""Total length of the texts that a host may retain: they are in every prompt."""


def add_messages(
    context: SessionContext, deriver: EventDeriver, messages: Sequence[Any], *, format: str, key: str | None
) -> Sequence[Event]:
    """Append the messages that the conversation does not have."""
    fmt = get_format(format)
    wires = copy_messages(messages, fmt)

    def drafts(state: SessionState) -> list[Draft]:
        return [message_draft(wire, fmt) for wire in new_messages(state.conversation, wires, fmt)]

    return _commit_with_derived(context, deriver, drafts, key_for(key, "add", format, wires))


def observe_tool(
    context: SessionContext,
    deriver: EventDeriver,
    tool: str,
    arguments: Any,
    result: Any,
    *,
    error: bool,
    id: str | None,
    origin: Origin,
    key: str | None,
) -> Sequence[Event]:
    """Record the result of a tool that the host has run; with an id only once."""
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
    return _commit_with_derived(context, deriver, lambda _: [Draft(payload=payload, origin=origin)], checked_key)


def _commit_with_derived(
    context: SessionContext, deriver: EventDeriver, drafts: Callable[[SessionState], list[Draft]], key: Key | None
) -> Sequence[Event]:
    def decide(state: SessionState, now: datetime) -> Decision[SessionState, None]:
        own = drafts(state)
        derived = deriver.derive(state, now, own)
        return Decision([*own, *derived.session_events], None, companion=derived.resource_events)

    context.resource.refresh()
    return context.stream.commit(decide, key=key, companion=context.resource).events


def report_usage(
    context: SessionContext,
    prompts: PromptHistory,
    *,
    prompt_tokens: int,
    cached_tokens: int,
    completion_tokens: int,
    call: int | None,
    key: str | None,
) -> None:
    """Record the provider's token counts for a prompt."""
    numbers = {"prompt_tokens": prompt_tokens, "cached_tokens": cached_tokens, "completion_tokens": completion_tokens}
    for field, value in numbers.items():
        whole_number(value, field)
    if cached_tokens > prompt_tokens:
        raise InvalidInput(field="cached_tokens", value=cached_tokens, expected=f"at most {prompt_tokens}")
    prompt = context.stream.refresh().prompt
    number = prompt.calls if call is None else whole_number(call, "call")
    is_last = number == prompt.calls > 0
    counted = prompt.last_prompt.counted_tokens if is_last else prompts.find(number)[1].used
    payload = UsageReported(number, counted, prompt_tokens, cached_tokens, completion_tokens)
    draft = Draft(payload=payload, origin=Origin.OPERATOR)
    context.stream.append(draft, key=key_for(key, "report_usage", number, numbers))


def change_retained(
    context: SessionContext, planner: CompactionPlanner, text: str, key: str | None, *, retain: bool
) -> None:
    """Add a retained text, or release an item."""
    item = RetainedItem("pinned", check_pinned_text(text))

    def decide(state: SessionState, _: datetime) -> Decision[SessionState, None]:
        pinned = state.history.pinned
        known = any(one.text == item.text for one in (pinned if retain else planner.retained_items(state.history)))
        if not retain and not known:
            raise NotFound(what="retained text", name=item.text, hint="session.retained lists them")
        if retain and not known:
            # Items inherited from the parent do not count.
            is_child = state.opened is not None and bool(state.opened.parent)
            inherited = context.stream.state_at(state.opening_end).history.pinned if is_child else ()
            used = sum(len(one.text) for one in pinned if one not in inherited)
            remaining = MAX_RETAINED_CHARACTERS - used
            if remaining < len(item.text):
                expected = f"at most {max(remaining, 0)} characters: {used} of {MAX_RETAINED_CHARACTERS} are in use"
                raise InvalidInput(field="text", value=item.text, expected=expected)
        changed = Draft(payload=Retained(item, retain), origin=Origin.OPERATOR)
        return Decision([] if known == retain else [changed], None)

    context.stream.commit(decide, key=key_for(key, "retain" if retain else "release", text))


def undo(context: SessionContext, *, to: int | None, key: str | None) -> int:
    """Revert the last change, or all changes after event `to`, by appending events.

    Returns the number of the event whose state is restored.
    """
    stream = context.stream

    def decide(state: SessionState, _: datetime) -> Decision[SessionState, int]:
        target = state.undo_target if to is None else whole_number(to, "to", minimum=1)
        if not state.opening_end <= target < state.seq or target == 0:
            if to is None:
                hint = "nothing has changed since it was opened"
                raise NotFound(what="change to undo in", name=context.id, hint=hint)
            hint = f"the session was opened with {state.opening_end}, its last event is {state.seq}"
            raise NotFound(what="earlier event", name=target, hint=hint)
        if to is not None:
            _check_batch_end(context, target)
        reverted = Draft(payload=Reverted(to=target), origin=Origin.USER)
        companion = revert_withdrawals(context, state, target)
        return Decision([reverted, *_file_edits_since(context, state, target)], target, companion=companion)

    context.resource.refresh()
    done = stream.commit(decide, key=key_for(key, "undo", to), companion=context.resource)
    if done.result is not None:
        return done.result
    (event,) = context.store.read(stream.name, after=done.appended.first - 1, until=done.appended.first)
    return event.payload.to if isinstance(event.payload, Reverted) else 0


def _file_edits_since(context: SessionContext, state: SessionState, seq: int) -> list[Draft]:
    """Pages as people last saved them after an event; they are kept when the rest is reverted."""
    written = context.store.read(context.stream.name, after=seq, until=state.seq, kind=DocumentWritten.kind)
    saved = {
        event.payload.path: event
        for event in written
        if isinstance(event.payload, DocumentWritten) and is_file_edit(event)
    }
    return [
        Draft(payload=event.payload, origin=Origin.FILE, sources=(event.id,), trust=event.trust)
        for event in saved.values()
    ]


def _check_batch_end(context: SessionContext, seq: int) -> None:
    """Check that an event ends a batch. In the middle of one, tool calls would have no answers."""
    name = context.stream.name
    (following,) = context.store.read(name, after=seq, until=seq + 1)
    if not following.starts_batch:
        starts = [event.seq for event in context.store.read(name) if event.starts_batch]
        first = max(start for start in starts if start <= seq)
        last = min((start for start in starts if start > seq), default=context.stream.version + 1) - 1
        raise InvalidInput(field="to", value=seq, expected=f"the last event of a change: {first - 1} or {last}")


def remove_last_messages(
    context: SessionContext, compactor: Compactor, messages: int, *, key: str | None
) -> Sequence[Event]:
    """Remove the last messages from the conversation."""
    last = whole_number(messages, "messages", minimum=1)

    def decide(state: SessionState, now: datetime) -> Decision[SessionState, None]:
        count = len(state.conversation)
        if last > count:
            raise InvalidInput(field="messages", value=last, expected=f"at most {count}, the number of messages")
        removed = [Draft(payload=HistorySpliced(count - last, count, 0), origin=Origin.USER)]
        return Decision([*removed, *compactor.undone_by_edits(state, removed, now)], None)

    return context.stream.commit(decide, key=key_for(key, "take_back", last)).events
