"""Errors that each provider finds in a list of messages, written from their documentation.

Pairing is tested against these rules, and the rules are tested on lists that are known to be invalid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

Wire = Mapping[str, Any]


def faults(format: str, wires: Sequence[Wire]) -> list[str]:
    return {"openai": _chat_faults, "responses": _responses_faults, "anthropic": _anthropic_faults}[format](wires)


def _chat_faults(wires: Sequence[Wire]) -> list[str]:
    errors: list[str] = []
    awaited: list[str] = []
    legacy: str | None = None
    for place, wire in enumerate(wires):
        role = wire["role"]
        if role == "tool":
            if wire["tool_call_id"] in awaited:
                awaited.remove(wire["tool_call_id"])
            else:
                errors.append(f"{place}: no call of the message before asks for this result")
            if not isinstance(wire["content"], str) and any(part["type"] != "text" for part in wire["content"]):
                errors.append(f"{place}: a tool message takes text only")
            continue
        if role == "function":
            if wire["name"] != legacy:
                errors.append(f"{place}: no function call asks for this result")
            legacy = None
            continue
        if awaited or legacy:
            errors.append(f"{place}: {awaited or legacy} must be answered first")
        calls: list[Wire] = wire.get("tool_calls") or []
        function_call: Wire = wire.get("function_call") or {}
        awaited, legacy = [call["id"] for call in calls], function_call.get("name")
        if wire.get("tool_calls") == []:
            errors.append(f"{place}: an empty array of calls")
        has_content = wire.get("content") not in (None, []) or wire.get("refusal") or wire.get("audio")
        if role == "assistant" and not (has_content or calls or function_call):
            errors.append(f"{place}: no content and no calls")
        if len(set(awaited)) < len(awaited):
            errors.append(f"{place}: two calls share an id")
    if awaited or legacy:
        errors.append(f"end: {awaited or legacy} is not answered")
    return errors


def _responses_faults(items: Sequence[Wire]) -> list[str]:
    errors: list[str] = []
    open_calls: set[tuple[str, str]] = set()
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        call = (kind.removesuffix("_output"), str(item.get("call_id")))
        if kind in {"function_call", "custom_tool_call", "computer_call"}:
            if call in open_calls:
                errors.append(f"{place}: the id is still open")
            open_calls.add(call)
        elif kind in {"function_call_output", "custom_tool_call_output", "computer_call_output"}:
            if call not in open_calls:
                errors.append(f"{place}: no call asks for this output")
            open_calls.discard(call)
        elif kind == "reasoning" and not _is_followed(items[place + 1 :]):
            errors.append(f"{place}: reasoning without its required following item")
    return errors + [f"end: {call} is not answered" for call in open_calls]


def _is_followed(items: Sequence[Wire]) -> bool:
    """Whether the next item that is not reasoning is also of the assistant."""
    for item in items:
        kind = item.get("type", "message")
        if kind != "reasoning":
            return item["role"] == "assistant" if kind == "message" else not kind.endswith("_output")
    return False


def _has_compaction(wire: Wire) -> bool:
    """True if the provider has compacted what comes before this message, so that nothing has to."""
    blocks: list[Wire] = [] if isinstance(wire["content"], str) else wire["content"]
    return any(block["type"] == "compaction" and block["content"] for block in blocks)


def _anthropic_faults(wires: Sequence[Wire]) -> list[str]:
    errors: list[str] = []
    if wires and wires[0]["role"] == "assistant" and not _has_compaction(wires[0]):
        errors.append("0: the first message must be of the user")
    calls: list[str] = []
    known: set[str] = set()
    turn: list[Wire] = []
    for place, wire in enumerate(wires):
        content = wire["content"]
        blocks: Sequence[Wire] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        errors += [f"{place}: {fault}" for fault in _block_faults(wire["role"], blocks)]
        kinds = [block["type"] == "tool_result" for block in blocks]
        if kinds != sorted(kinds, reverse=True):
            errors.append(f"{place}: results come first")
        answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(answered) != sorted(calls):
            errors.append(f"{place}: calls {calls}, results {answered}")
        if answered and len(answered) < len(blocks) and _waits_for_results(turn):
            errors.append(f"{place}: only results are allowed while a tool of the provider waits for them")
        turn = [*turn, *blocks] if wire["role"] == "assistant" else []
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if known & set(calls) or len(set(calls)) < len(calls):
            errors.append(f"{place}: ids are used once")
        known |= set(calls)
    if calls:
        errors.append(f"end: {calls} is not answered")
    return errors


def _waits_for_results(turn: Sequence[Wire]) -> bool:
    """Whether the turn is not over: the provider's code calls host tools, or has to run a tool."""
    callers: list[Wire] = [block.get("caller") or {"type": "direct"} for block in turn if block["type"] == "tool_use"]
    running = {block["id"] for block in turn if block["type"] == "server_tool_use"}
    ran = {block["tool_use_id"] for block in turn if block["type"].endswith("_tool_result")}
    return bool(running - ran) or any(caller["type"] != "direct" for caller in callers)


def _block_faults(role: str, blocks: Sequence[Wire]) -> list[str]:
    errors: list[str] = [] if blocks else ["empty content"]
    for block in blocks:
        kind = block["type"]
        if kind == "text" and not block["text"].strip():
            errors.append("blank text")
        if (kind == "image" and role == "assistant") or (kind == "tool_result" and role != "user"):
            errors.append(f"{kind} from {role}")
        if not re.fullmatch("[a-zA-Z0-9_-]+", block.get("id", block.get("tool_use_id", "none"))):
            errors.append("an id with other characters")
        inner = block.get("content")
        if kind == "tool_result" and inner is not None and not isinstance(inner, str) and _has_blank_text(inner):
            errors.append("blank text in a result")
    return errors


def _has_blank_text(blocks: Sequence[Wire]) -> bool:
    return any(block["type"] == "text" and not block["text"].strip() for block in blocks)
