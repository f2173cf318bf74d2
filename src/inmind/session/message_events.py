"""Read messages of a conversation: tool results, and texts of users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from inmind.core.encoding import to_json
from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import MessageAdded, ToolObserved
from inmind.core.frozen import frozen
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Call, Message, Opaque, Part, Result, Text
from inmind.entities.observe import Observation
from inmind.entities.outcome import is_failure
from inmind.history import Conversation, ConversationEntry

if TYPE_CHECKING:
    from inmind.entities.grounding import SessionTexts

MAX_LOOKBACK = 64
"""Messages to search backwards for the call of a result. Most providers require it right before."""


def observations_in(
    line: Conversation, drafts: Sequence[Draft], *, stream: str, version: int, own: Callable[[str], bool]
) -> list[Observation]:
    """Tool results and user messages among these drafts, in order.

    They will be appended right after `version`.

    `own`: whether a name is that of a memory tool. Their results come from memory and are not learned again.
    """
    observations: list[Observation] = []
    calls: dict[str, Call] = {}
    for place, draft in enumerate(drafts):
        if not isinstance(draft.payload, MessageAdded):
            continue
        message = FORMATS[draft.payload.format].read(draft.payload.wire)
        calls.update((call.id, call) for call in message.calls)
        source = f"{stream}#{version + 1 + place}"
        contents = (
            one for one in _observed_in(message, line, calls, draft) if isinstance(one, str) or not own(one.tool)
        )
        observations += [Observation(one, draft.origin, source) for one in contents]
    return observations


def tool_results_in(entries: Sequence[ConversationEntry]) -> Iterator[ToolObserved]:
    """Tool results in messages of the conversation."""
    calls: dict[str, Call] = {}
    for entry in entries:
        message = FORMATS[entry.format].read(entry.wire)
        calls.update((call.id, call) for call in message.calls)
        yield from (_outcome(result, calls.get(result.id), entry.wire) for result in message.results)


@frozen
class LastReply:
    """Text of the last reply, and its event number."""

    text: str
    seq: int


def last_reply(line: Conversation) -> LastReply | None:
    """The last text of the model."""
    for entry in reversed(line[max(0, len(line) - MAX_LOOKBACK) :]):
        message = FORMATS[entry.format].read(entry.wire)
        if message.role == "assistant" and message.text:
            return LastReply(message.text, entry.seq)
    return None


def session_texts(line: Conversation, *, system: object, observed: Iterable[ToolObserved]) -> SessionTexts:
    """All texts of a session that the model did not write.

    Results of failed calls are left out: they repeat ids that do not exist.
    """
    from inmind.entities.grounding import SessionTexts  # imported late: it is rarely needed

    people: list[str] = []
    operator = [to_json(system)] if system else []
    tools = [to_json(outcome.result) for outcome in observed if not (outcome.error or is_failure(outcome.result))]
    for entry in line:
        message = FORMATS[entry.format].read(entry.wire)
        for result in message.results:
            if not (result.error or is_failure(_result_value(result))):
                tools += _texts(result.parts)
        if message.role != "assistant":
            texts = people if message.role == "user" else tools if message.role == "tool" else operator
            texts += _texts(message.parts)
    return SessionTexts(operator="\n".join(operator), user="\n".join(people), tools="\n".join(tools))


def _observed_in(
    message: Message, line: Conversation, calls: dict[str, Call], draft: Draft
) -> Iterator[str | ToolObserved]:
    for result in message.results:
        call = calls.get(result.id) or _find_call(line, result.id)
        yield _outcome(result, call, draft.payload.wire if isinstance(draft.payload, MessageAdded) else {})
    if draft.origin is Origin.USER and message.text:
        yield message.text


def _outcome(result: Result, call: Call | None, wire: Mapping[str, Any]) -> ToolObserved:
    return ToolObserved(
        tool=call.name if call else str(wire.get("name") or ""),
        arguments=call.arguments if call else None,
        result=_result_value(result),
        error=result.error,
        call_id=result.id,
    )


def _find_call(line: Conversation, id: str) -> Call | None:
    for entry in reversed(line[max(0, len(line) - MAX_LOOKBACK) :]):
        for call in FORMATS[entry.format].read(entry.wire).calls:
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
