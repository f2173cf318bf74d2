"""Reads session files of Claude Code, in which many lines were never sent to the model.

Lines are linked by `parentUuid`. A user who goes back starts another branch; the branch of the last line counts. A
streamed answer is written as one line per block, all with the same `message.id`. If it has several calls, the results
are between those lines, each linked to its call, so that following the links alone would lose all results but one.
Everything that belongs to a message of the branch is therefore kept.

Summaries of compactions are left out: the summarized lines are in the file, and a replay has its own window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from inmind.apps.replay.files import LocatedValue, Recording
from inmind.core.json import is_object
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Wire

FORMAT = "anthropic"

_LINKS = ("parentUuid", "leafUuid", "sessionId")

Line = dict[str, Any]
Block = dict[str, Any]


def is_claude_code(values: Sequence[LocatedValue]) -> bool:
    """True if every line has a type and some have links."""
    lines = [located.value for located in values]
    return all(is_object(line) and "type" in line for line in lines) and any(
        link in line for line in lines for link in _LINKS
    )


def parse_claude_code(values: Sequence[LocatedValue], name: str) -> Recording:
    left_out: Counter[str] = Counter()
    messages: list[Line] = []
    # A resumed session can contain a line twice.
    lines = list({_uuid(located.value) or number: located for number, located in enumerate(values)}.values())
    for located in lines:
        reason = _skip_reason(located.value)
        if reason:
            left_out[reason] += 1
        else:
            FORMATS[FORMAT].check(_wire(located.value), field=f"{located.location}: message")
            messages.append(located.value)
    kept = _last_branch([located.value for located in lines], messages)
    left_out["lines of branches that were given up"] += len(messages) - len(kept)
    counted = {reason: count for reason, count in left_out.items() if count}
    return Recording(name=name, format=FORMAT, messages=_merge_lines(kept), left_out=counted)


def _skip_reason(line: Line) -> str:
    """Reason why the model did not see this line; empty if it did."""
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


def _last_branch(lines: Sequence[Line], messages: Sequence[Line]) -> list[Line]:
    """Messages of the last branch, without branches that were abandoned.

    Lines with a dangling link are kept.
    """
    parents = {uuid: _parent(line) for line in lines if (uuid := _uuid(line))}
    branch: set[str | None] = set()
    last = _uuid(messages[-1]) if messages else None
    while last and last not in branch:
        branch.add(last)
        last = parents.get(last)
    abandoned: set[str | None] = set()
    for uuid, parent in parents.items():  # parents come before their children
        if uuid not in branch and (parent in branch or parent in abandoned):
            abandoned.add(uuid)
    streamed = {_message_id(line) for line in messages if _uuid(line) not in abandoned} - {None}

    def is_kept(line: Line) -> bool:
        return _uuid(line) not in abandoned or _message_id(line) in streamed

    blocks = (block for line in messages if is_kept(line) for block in _blocks(line))
    calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    return [line for line in messages if is_kept(line) or not calls.isdisjoint(_result_ids(line))]


def _uuid(line: Line) -> str | None:
    return _text_or_none(line.get("uuid"))


def _parent(line: Line) -> str | None:
    """The parent link; a compaction moves it to another field."""
    return _text_or_none(line.get("parentUuid") or line.get("logicalParentUuid"))


def _message_id(line: Line) -> str | None:
    return _text_or_none(line["message"].get("id")) if line["type"] == "assistant" else None


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _result_ids(line: Line) -> list[str]:
    return [block["tool_use_id"] for block in _blocks(line) if block["type"] == "tool_result"]


def _merge_lines(lines: Sequence[Line]) -> list[Wire]:
    """Merge the blocks of one answer, and adjacent user messages.

    Adjacent user messages are one turn for the model.
    """
    merged: list[tuple[str, list[Block]]] = []
    streamed: dict[str | None, list[Block]] = {}
    for line in lines:
        role, blocks, answer = line["type"], _blocks(line), _message_id(line)
        if answer is not None and answer in streamed:
            streamed[answer] += [block for block in blocks if block not in streamed[answer]]
        elif role == "user" and merged and merged[-1][0] == "user":
            merged[-1][1].extend(blocks)
        else:
            merged.append((role, blocks))
            streamed[answer] = blocks
    return [{"role": role, "content": _simplify(blocks)} for role, blocks in merged]


def _wire(line: Line) -> Wire:
    return {"role": line["type"], "content": line["message"].get("content")}


def _blocks(line: Line) -> list[Block]:
    content = line["message"]["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _simplify(blocks: list[Block]) -> str | list[Block]:
    only_text = len(blocks) == 1 and set(blocks[0]) == {"type", "text"} and blocks[0]["type"] == "text"
    return blocks[0]["text"] if only_text else blocks
