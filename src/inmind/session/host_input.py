"""`HostInput`: what a host adds to a session and takes back, beside prompts and replies.

Messages, results of its tools, token counts, pages, retained texts, undo. Each call commits one change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from inmind.core.encoding import digest
from inmind.core.events.base import Draft, Origin
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.session import HistorySpliced, Retained, RetainedItem, Reverted, ToolObserved, UsageReported
from inmind.core.json import copy_json_value
from inmind.core.messages import get_format
from inmind.documents.document import OVERVIEW_PATH, Documents, resolve_path, validate_text
from inmind.documents.overview.front_matter import merge_front_matter
from inmind.errors import Conflict, InvalidInput, NotFound
from inmind.history.compaction.retention import check_pinned_text
from inmind.prompt.ingest import copy_messages, message_draft, new_messages
from inmind.session.context import SessionContext, whole_number
from inmind.session.notes import revert_withdrawals
from inmind.session.reader import SessionReader
from inmind.session.state import SessionState, is_file_edit
from inmind.store.protocol import Key
from inmind.store.stream import CommitResult, Decision, key_for

MAX_RETAINED_CHARACTERS = 4_000
"""Total length of the texts that a host may retain: they are in every prompt."""


class HostInput(SessionReader):
    """The calls by which a host changes conversation, pages and retained texts."""

    def add(self, messages: Sequence[Any], *, format: str = "openai", key: str | None = None) -> None:
        """Append messages to the conversation: of the user, the assistant or a tool.

        A message whose `id` is already in the conversation is skipped.
        """
        self._documents.read_edits()
        fmt = get_format(format)
        wires = copy_messages(messages, fmt)

        def drafts(state: SessionState) -> list[Draft]:
            return [message_draft(wire, fmt) for wire in new_messages(state.conversation, wires, fmt)]

        self._commit_with_derived(drafts, key_for(key, "add", format, wires))

    def observe(
        self,
        tool: str,
        arguments: Any,
        result: Any,
        *,
        error: bool = False,
        id: str | None = None,
        origin: Origin = Origin.TOOL,
        key: str | None = None,
    ) -> None:
        """Record the result of a host tool; `origin` is `Origin.WEB` if it comes from the web.

        Entities in it are added in the same commit. With an `id` the same observation is recorded once.
        """
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
        self._commit_with_derived(lambda _: [Draft(payload=payload, origin=origin)], checked_key)

    def _commit_with_derived(self, drafts: Callable[[SessionState], list[Draft]], key: Key | None) -> None:
        self._resource.refresh()
        done = self._stream.commit(
            lambda state, now: self._deriver.derive(state, now, drafts(state), None),
            key=key,
            companion=self._resource,
        )
        self._documents.publish(done.events)

    def report_usage(
        self,
        *,
        prompt_tokens: int,
        cached_tokens: int = 0,
        completion_tokens: int = 0,
        call: int | None = None,
        key: str | None = None,
    ) -> None:
        """Record the token counts of the provider. They calibrate the counter and go into `usage`."""
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
        draft = Draft(payload=payload, origin=Origin.OPERATOR)
        self._stream.append(draft, key=key_for(key, "report_usage", number, numbers))

    # -- pages ---------------------------------------------------------------------------------------------

    def write(
        self,
        path: str,
        text: str,
        *,
        base: int | None = None,
        origin: Origin = Origin.ASSISTANT,
        key: str | None = None,
    ) -> int:
        """Replace the text of a document and return its version.

        `base` is the version that the text is based on. Default: the version last shown by this object, with `read`,
        in a prompt, or when the session was opened. If the document has changed since, this raises Conflict with both
        texts, and nothing is overwritten.
        """
        scope, name = resolve_path(path, anonymous=self._context.is_anonymous)
        text = validate_text(text)
        if not isinstance(origin, Origin):  # pyright: ignore[reportUnnecessaryIsInstance] -- hosts are not all typed
            raise InvalidInput(field="origin", value=origin, expected=f"one of {', '.join(Origin)}")
        checked_key = key_for(key, "write", name, text)
        self._documents.read_edits()
        seen = self._documents.seen.get(name, 0) if base is None else whole_number(base, "base")

        def drafts(documents: Documents) -> list[Draft]:
            if documents.is_edited_since(name, version=seen):
                current = documents.version(name)
                raise Conflict(stream=name, expected=seen, actual=current, mine=text, theirs=documents.text(name))
            same = name in documents.by_path and documents.text(name) == text
            return [] if same else [Draft(payload=DocumentWritten(path=name, text=text), origin=origin)]

        if scope == "thread":
            done = self._commit_page(lambda state: drafts(state.documents), checked_key)
        else:
            done = self._resource.commit(lambda state, _: Decision(drafts(state.documents), True), key=checked_key)
        self._documents.publish()
        stream = self._stream_of(scope)
        if done.result is None:  # an earlier call with this key wrote it, and it may have changed since
            return stream.state_at(done.appended.last).documents.version(name)
        self._documents.seen[name] = stream.state.documents.version(name)
        return self._documents.seen[name]

    def update_front_matter(self, values: Mapping[str, Any], *, key: str | None = None) -> int:
        """Merge values into the overview's front matter and return the page's version.

        The text after it stays.
        """
        checked_key = key_for(key, "update_front_matter", values)
        self._documents.read_edits()

        def drafts(state: SessionState) -> list[Draft]:
            page = state.documents.text(OVERVIEW_PATH)
            text = validate_text(merge_front_matter(page, values))
            written = Draft(payload=DocumentWritten(OVERVIEW_PATH, text), origin=Origin.ASSISTANT)
            return [] if text == page else [written]

        documents, seen = self._stream.state.documents, self._documents.seen
        was_current = not documents.is_edited_since(OVERVIEW_PATH, version=seen.get(OVERVIEW_PATH, 0))
        done = self._commit_page(drafts, checked_key)
        self._documents.publish()
        version = self._stream.state_at(done.appended.last).documents.version(OVERVIEW_PATH)
        if was_current and done.result is not None:
            seen[OVERVIEW_PATH] = version
        return version

    def _commit_page(self, drafts: Callable[[SessionState], list[Draft]], key: Key | None) -> CommitResult[bool]:
        def decide(state: SessionState, now: datetime) -> Decision[SessionState, bool]:
            written = drafts(state)
            return self._deriver.derive(state, now, written, True) if written else Decision([], True)

        return self._stream.commit(decide, key=key)

    # -- history -------------------------------------------------------------------------------------------

    def retain(self, text: str, *, key: str | None = None) -> None:
        """Keep a text, word for word, through every compaction."""
        item = RetainedItem("pinned", check_pinned_text(text))

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, None]:
            pinned = state.history.pinned
            if any(one.text == item.text for one in pinned):
                return Decision([], None)
            # Items inherited from the parent do not count.
            inherited = self._stream.state_at(state.opening_end).history.pinned if state.is_child else ()
            used = sum(len(one.text) for one in pinned if one not in inherited)
            remaining = MAX_RETAINED_CHARACTERS - used
            if remaining < len(item.text):
                expected = f"at most {max(remaining, 0)} characters: {used} of {MAX_RETAINED_CHARACTERS} are in use"
                raise InvalidInput(field="text", value=item.text, expected=expected)
            return Decision([Draft(payload=Retained(item), origin=Origin.OPERATOR)], None)

        self._stream.commit(decide, key=key_for(key, "retain", text))

    def release(self, text: str, *, key: str | None = None) -> None:
        """Stop keeping a retained item: a text added with `retain`, a rule, a goal or a decision."""
        item = RetainedItem("pinned", check_pinned_text(text))

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, None]:
            if not any(one.text == item.text for one in self._planner.retained_items(state.history)):
                raise NotFound(what="retained text", name=item.text, hint="session.retained lists them")
            return Decision([Draft(payload=Retained(item, retain=False), origin=Origin.OPERATOR)], None)

        self._stream.commit(decide, key=key_for(key, "release", text))

    def undo(self, *, to: int | None = None, key: str | None = None) -> int:
        """Undo the last change of this session, or go back to its state at event `to`.

        Returns that event's number.

        An event is appended and nothing is deleted. Documents of the resource are not changed, except that
        withdrawn notes are restored. Edits that a person saved in a file are not changes of the session, and stay.
        """
        self._documents.read_edits()

        def decide(state: SessionState, _: datetime) -> Decision[SessionState, int]:
            target = _undo_target(self._context, state, to)
            reverted = Draft(payload=Reverted(to=target), origin=Origin.USER)
            drafts = [reverted, *_file_edits_since(self._context, state, target)]
            return Decision(drafts, target, companion=revert_withdrawals(self._context, state, target))

        self._resource.refresh()
        done = self._stream.commit(decide, key=key_for(key, "undo", to), companion=self._resource)
        self._documents.publish()
        self._documents.mark_all_seen()
        if done.result is not None:
            return done.result
        (event,) = self._store.read(self._stream.name, after=done.appended.first - 1, until=done.appended.first)
        return event.payload.to if isinstance(event.payload, Reverted) else 0

    def remove_last_messages(self, messages: int, *, key: str | None = None) -> None:
        """Remove the last messages from the conversation, as if the host had passed a shorter list.

        They stay in the journal. Pages and the scratchpad do not change.
        """
        self._documents.read_edits()
        last = whole_number(messages, "messages", minimum=1)

        def decide(state: SessionState, now: datetime) -> Decision[SessionState, None]:
            count = len(state.conversation)
            if last > count:
                raise InvalidInput(field="messages", value=last, expected=f"at most {count}, the number of messages")
            removed = [Draft(payload=HistorySpliced(count - last, count, 0), origin=Origin.USER)]
            return Decision([*removed, *self._compactor.undone_by_edits(state, removed, now)], None)

        self._documents.publish(self._stream.commit(decide, key=key_for(key, "take_back", last)).events)


def _undo_target(context: SessionContext, state: SessionState, to: int | None) -> int:
    """The event whose state an undo restores: `to`, or the last one before the last change."""
    target = state.undo_target if to is None else whole_number(to, "to", minimum=1)
    if not state.opening_end <= target < state.seq or target == 0:
        if to is None:
            raise NotFound(what="change to undo in", name=context.id, hint="nothing has changed since it was opened")
        hint = f"the session was opened with {state.opening_end}, its last event is {state.seq}"
        raise NotFound(what="earlier event", name=target, hint=hint)
    if to is not None:
        _check_batch_end(context, target)
    return target


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
