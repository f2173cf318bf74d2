"""The session files of Claude Code: a line for each thing that happened, many of which the model never saw.

Lines are linked by `parentUuid`. A user who goes back makes a second branch, and the one that counts is the one the
last line is on. A streamed answer is written as one line for each of its blocks, all with the same `message.id`; with
several calls in it the results stand between those lines, each linked to its own call, so that following the links
alone would lose all results but one. Whatever belongs to a message that counts is therefore kept as well.

The summary of a compaction is left out: what it stands for is in the file, and a replay has its own window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from inmind.apps.replay.files import Placed
from inmind.apps.replay.recording import Recording
from inmind.core.json import is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire

FORMAT = "anthropic"

_LINKS = ("parentUuid", "leafUuid", "sessionId")

Line = dict[str, Any]
Block = dict[str, Any]


def is_claude_code(values: Sequence[Placed]) -> bool:
    """Every line has a type, and some say what they hang on."""
    lines = [placed.value for placed in values]
    return all(is_object(line) and "type" in line for line in lines) and any(
        link in line for line in lines for link in _LINKS
    )


def claude_code(values: Sequence[Placed], name: str) -> Recording:
    left_out: Counter[str] = Counter()
    said: list[Line] = []
    lines = _once(values)
    for placed in lines:
        reason = _unseen(placed.value)
        if reason:
            left_out[reason] += 1
        else:
            FORMATS[FORMAT].check(_wire(placed.value), field=f"{placed.place}: message")
            said.append(placed.value)
    kept = _on_the_last_branch([placed.value for placed in lines], said)
    left_out["lines of branches that were given up"] += len(said) - len(kept)
    counted = {reason: count for reason, count in left_out.items() if count}
    return Recording(name=name, format=FORMAT, messages=_messages(kept), left_out=counted)


def _once(values: Sequence[Placed]) -> list[Placed]:
    """A session that was taken up again can have the same line twice."""
    known: set[str | None] = set()
    fresh: list[Placed] = []
    for placed in values:
        uuid = _uuid(placed.value)
        if uuid is None or uuid not in known:
            fresh.append(placed)
            known.add(uuid)
    return fresh


def _unseen(line: Line) -> str:
    """Why the model did not see this line as part of the conversation; empty if it did."""
    if line.get("isSidechain"):
        return "lines of sub-agents"
    if line["type"] not in ("user", "assistant") or not is_object(line.get("message")):
        return "lines that are no messages"
    if line.get("isCompactSummary"):
        return "summaries of compactions"
    if line.get("isMeta") or line.get("isVisibleInTranscriptOnly"):
        return "meta lines"
    if line.get("isApiErrorMessage"):
        return "errors of the provider"
    return ""


def _on_the_last_branch(lines: Sequence[Line], said: Sequence[Line]) -> list[Line]:
    """Without what hangs on this branch and is not on it. A line whose link leads nowhere stays."""
    parents = {uuid: _parent(line) for line in lines if (uuid := _uuid(line))}
    branch: set[str | None] = set()
    last = _uuid(said[-1]) if said else None
    while last and last not in branch:
        branch.add(last)
        last = parents.get(last)
    given_up: set[str | None] = set()
    for uuid, parent in parents.items():  # a parent stands before its children
        if uuid not in branch and (parent in branch or parent in given_up):
            given_up.add(uuid)
    streamed = {_message_id(line) for line in said if _uuid(line) not in given_up} - {None}
    kept = [line for line in said if _uuid(line) not in given_up or _message_id(line) in streamed]
    calls = {block["id"] for line in kept for block in _blocks(line) if block["type"] == "tool_use"}
    alive = {id(line) for line in kept}
    return [line for line in said if id(line) in alive or any(answer in calls for answer in _answers(line))]


def _uuid(line: Line) -> str | None:
    uuid = line.get("uuid")
    return uuid if isinstance(uuid, str) else None


def _parent(line: Line) -> str | None:
    """A compaction cuts the link and says where it was."""
    parent = line.get("parentUuid") or line.get("logicalParentUuid")
    return parent if isinstance(parent, str) else None


def _message_id(line: Line) -> str | None:
    id = line["message"].get("id") if line["type"] == "assistant" else None
    return id if isinstance(id, str) else None


def _answers(line: Line) -> list[str]:
    return [block["tool_use_id"] for block in _blocks(line) if block["type"] == "tool_result"]


def _messages(lines: Sequence[Line]) -> list[Wire]:
    """The lines put together: blocks of one answer, and neighbouring user messages, which are one turn to the model."""
    said: list[tuple[str, list[Block]]] = []
    streamed: dict[str | None, list[Block]] = {}
    for line in lines:
        role, blocks, answer = line["type"], _blocks(line), _message_id(line)
        if answer is not None and answer in streamed:
            streamed[answer] += [block for block in blocks if block not in streamed[answer]]
        elif role == "user" and said and said[-1][0] == "user":
            said[-1][1].extend(blocks)
        else:
            said.append((role, blocks))
            streamed[answer] = blocks
    return [{"role": role, "content": _plainest(blocks)} for role, blocks in said]


def _wire(line: Line) -> Wire:
    return {"role": line["type"], "content": line["message"].get("content")}


def _blocks(line: Line) -> list[Block]:
    content = line["message"]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _plainest(blocks: list[Block]) -> str | list[Block]:
    only_text = len(blocks) == 1 and set(blocks[0]) == {"type", "text"} and blocks[0]["type"] == "text"
    return blocks[0]["text"] if only_text else blocks
