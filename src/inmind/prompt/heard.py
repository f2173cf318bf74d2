"""What the messages of a conversation say that tools did and people spoke of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from inmind.entities.sight import Happening
from inmind.history import Line
from inmind.journal import Draft, MessageAdded, Origin, ToolObserved
from inmind.prompt.formats import FORMATS
from inmind.prompt.formats.parts import Call, Message, Opaque, Result, Text

FURTHEST = 64
"""Messages to look back for the call that a result answers. Providers want it right before; a few allow more."""


def heard(line: Line, drafts: Sequence[Draft], *, stream: str, version: int) -> list[Happening]:
    """What the messages among these drafts tell, in order; they will stand in the stream right after `version`."""
    told: list[Happening] = []
    calls: dict[str, Call] = {}
    for place, draft in enumerate(drafts):
        if not isinstance(draft.what, MessageAdded):
            continue
        message = FORMATS[draft.what.format].read(draft.what.wire)
        calls.update((call.id, call) for call in message.calls)
        source = f"{stream}#{version + 1 + place}"
        told += [Happening(said, draft.origin, source) for said in _told_by(message, line, calls, draft)]
    return told


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model said, and where that stands in the stream."""

    text: str
    seq: int


def last_reply(line: Line) -> Reply | None:
    """The words that the model said last."""
    for entry in reversed(line[max(0, len(line) - FURTHEST) :]):
        message = FORMATS[entry.format].read(entry.wire)
        if message.role == "assistant" and message.text:
            return Reply(message.text, entry.seq)
    return None


def was_said(id: str, line: Line) -> bool:
    """Does this stand in anything that a person, a tool or the operator said? What the model said proves nothing."""
    for entry in line:
        message = FORMATS[entry.format].read(entry.wire)
        parts = message.results if message.role == "assistant" else message.parts
        if any(id in text for part in parts for text in _texts(part)):
            return True
    return False


def _told_by(message: Message, line: Line, calls: dict[str, Call], draft: Draft) -> Iterator[str | ToolObserved]:
    for result in message.results:
        call = calls.get(result.id) or _call_before(line, result.id)
        name = str(draft.what.wire.get("name") or "") if isinstance(draft.what, MessageAdded) else ""
        yield ToolObserved(
            tool=call.name if call else name,
            arguments=call.arguments if call else None,
            result=_answer(result),
            error=result.error,
            call_id=result.id,
        )
    if draft.origin is Origin.USER and message.text:
        yield message.text


def _call_before(line: Line, id: str) -> Call | None:
    for entry in reversed(line[max(0, len(line) - FURTHEST) :]):
        for call in FORMATS[entry.format].read(entry.wire).calls:
            if call.id == id:
                return call
    return None


def _answer(result: Result) -> Any:
    """The texts of an answer: one as it is, several as the content blocks that they were."""
    texts = [part.text for part in result.parts if isinstance(part, Text)]
    return texts[0] if len(texts) == 1 else [{"type": "text", "text": text} for text in texts]


def _texts(part: object) -> Iterator[str]:
    if isinstance(part, Text):
        yield part.text
    elif isinstance(part, Result):
        for inner in part.parts:
            yield from _texts(inner)
    elif isinstance(part, Opaque):
        yield str(part.body)
