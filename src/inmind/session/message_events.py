"""Read messages of a conversation: tool results, and texts of users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inmind.core.encoding import to_json
from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import MessageAdded, ToolObserved
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Opaque, Part, Result, Text
from inmind.core.tool_outcome import is_failure, read_outcome
from inmind.entities.observe import Observation
from inmind.history import Conversation, ConversationEntry
from inmind.history.turns import ReadMessage
from inmind.session.state import SessionState
from inmind.session.tools.registry import is_memory_tool

if TYPE_CHECKING:
    from inmind.entities.grounding import SessionTexts

MAX_LOOKBACK = 64
"""Messages to search backwards for the call of a result. Most providers require it right before."""


def observations_in(state: SessionState, drafts: Sequence[Draft], read: ReadMessage) -> list[Observation]:
    """Tool results and user messages among drafts that will be appended after `state`.

    Results of memory tools in messages come from memory and are not learned again.
    """
    observations: list[Observation] = []
    observed: list[Observation] = []
    calls: dict[str, Call] = {}
    for seq, draft in enumerate(drafts, start=state.seq + 1):
        source = f"{state.stream}#{seq}"
        if isinstance(draft.payload, ToolObserved):
            observed.append(Observation(read_outcome(draft.payload), draft.origin, source))
        if not isinstance(draft.payload, MessageAdded):
            continue
        message = FORMATS[draft.payload.format].read(draft.payload.wire)
        calls.update((call.id, call) for call in message.calls)
        for result in message.results:
            call = calls.get(result.id) or _find_call(state.conversation, result.id, read)
            outcome = _outcome(result, call, draft.payload.wire)
            if not is_memory_tool(outcome.tool):
                observations.append(Observation(read_outcome(outcome), draft.origin, source))
        if draft.origin is Origin.USER and message.text:
            observations.append(Observation(message.text, draft.origin, source))
    return [*observations, *observed]


def tool_results_in(entries: Sequence[ConversationEntry], read: ReadMessage) -> Iterator[ToolObserved]:
    """Tool results in messages of the conversation."""
    calls: dict[str, Call] = {}
    for entry in entries:
        message = read(entry)
        calls.update((call.id, call) for call in message.calls)
        yield from (_outcome(result, calls.get(result.id), entry.wire) for result in message.results)


def last_reply(line: Conversation, read: ReadMessage) -> tuple[str, int]:
    """The last text of the model and its event number; an empty text if there is none."""
    for entry in reversed(line[max(0, len(line) - MAX_LOOKBACK) :]):
        message = read(entry)
        if message.role == "assistant" and message.text:
            return message.text, entry.seq
    return "", 0


def session_texts(
    line: Conversation, read: ReadMessage, *, system: object, observed: Iterable[ToolObserved]
) -> SessionTexts:
    """All texts of a session that the model did not write.

    Results of failed calls are left out: they repeat ids that do not exist.
    """
    from inmind.entities.grounding import SessionTexts  # imported late: it is rarely needed

    people: list[str] = []
    operator = [to_json(system)] if system else []
    tools = [to_json(outcome.result) for outcome in observed if not (outcome.error or is_failure(outcome.result))]
    for entry in line:
        message = read(entry)
        for result in message.results:
            if not (result.error or is_failure(_result_value(result))):
                tools += _texts(result.parts)
        if message.role != "assistant":
            texts = people if message.role == "user" else tools if message.role == "tool" else operator
            texts += _texts(message.parts)
    return SessionTexts(operator="\n".join(operator), user="\n".join(people), tools="\n".join(tools))


def _outcome(result: Result, call: Call | None, wire: Mapping[str, Any]) -> ToolObserved:
    return ToolObserved(
        tool=call.name if call else str(wire.get("name") or ""),
        arguments=call.arguments if call else None,
        result=_result_value(result),
        error=result.error,
        call_id=result.id,
    )


def _find_call(line: Conversation, id: str, read: ReadMessage) -> Call | None:
    for entry in reversed(line[max(0, len(line) - MAX_LOOKBACK) :]):
        for call in read(entry).calls:
            if call.id == id:
                return call
    return None


def _result_value(result: Result) -> Any:
    """The text of a result; several texts as content blocks."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    return texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]


def _texts(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, Opaque):
            yield to_json(part.body)
