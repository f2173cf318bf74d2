"""Combine the host's arguments with the prepared request, as each provider accepts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inmind.core.json import is_list, to_plain
from inmind.core.messages.cache_control import (
    OwnCacheMark,
    has_own_mark,
    own_mark_before,
    remaining_marks,
    replace_own_marks,
)
from inmind.core.messages.model import Wire, without_id
from inmind.core.messages.responses import SELF_CONTAINED
from inmind.prompt.ingest import tool_names

Body = dict[str, Any]


def adapt_chat_request(body: Body, host_arguments: Mapping[str, Any]) -> Body:
    """Drop memory tools if the host uses `functions`, the older form.

    The two cannot be combined.
    """
    if not host_arguments.get("functions"):
        return body
    rest = {name: value for name, value in body.items() if name != "tools"}
    return {**rest, "tools": host_arguments["tools"]} if host_arguments.get("tools") else rest


def adapt_responses_request(body: Body, host_arguments: Mapping[str, Any]) -> Body:
    """With `store=False`, send items in full.

    The provider has not stored them and cannot resolve ids.
    """
    if host_arguments.get("store") is not False:
        return body
    return {**body, "input": [_without_stored_id(item) for item in body["input"] if not _is_reference(item)]}


def adapt_anthropic_request(body: Body, host_arguments: Mapping[str, Any]) -> Body:
    """Make room for a top-level `cache_control`, which counts like a mark after all messages.

    Our marks get its lifetime. If there are too many marks, one of ours is removed.
    """
    cache_control = to_plain(host_arguments.get("cache_control") or None, "cache_control")
    if cache_control is None:
        return body
    system, messages = body.get("system", []), body["messages"]
    if not remaining_marks(system, messages, body.get("tools", [])):
        # The mark in the messages covers memory too, so of our two marks that one stays.
        if any(map(has_own_mark, system)):
            system = replace_own_marks(system, None)
        else:
            messages = _replace_marks(messages, None)
    own_mark = own_mark_before([{"cache_control": cache_control}])
    if "ttl" in own_mark:
        system, messages = replace_own_marks(system, own_mark), _replace_marks(messages, own_mark)
    return {**body, **({"system": system} if system else {}), "messages": messages}


def relax_tool_choice(body: Body, hidden: Callable[[str], bool]) -> Body:
    """After the first round, relax a tool choice that only memory tools can satisfy.

    Otherwise the model could never answer with text. A choice that the host's tools can satisfy stays.
    """
    choice = to_plain(body.get("tool_choice"), "tool_choice")
    forced = _forced_tools(choice, body.get("tools", ()))
    # A built-in tool of the provider may have no name. It belongs to the host.
    tool_name_lists = [tool_names([tool]) for tool in forced]
    only_memory = bool(tool_name_lists) and all(names and all(map(hidden, names)) for names in tool_name_lists)
    return {**body, "tool_choice": _auto_choice(choice)} if only_memory else body


def _forced_tools(choice: Any, tools: Sequence[Wire]) -> Sequence[Wire]:
    """The tools of which one has to be called; empty if none has to."""
    match choice:
        case "required" | "any" | {"type": "any"}:
            return tools
        case {"type": "allowed_tools", "allowed_tools": allowed} | ({"type": "allowed_tools"} as allowed):
            return allowed["tools"] if allowed.get("mode") == "required" else ()
        case {"type": str(kind)} if kind not in ("auto", "none"):
            return [choice]
        case _:
            return ()


def _auto_choice(choice: Any) -> Any:
    """The same choice left to the model, among the same tools."""
    match choice:
        case {"type": "tool" | "any"}:
            return {**{key: value for key, value in choice.items() if key != "name"}, "type": "auto"}
        case {"type": "allowed_tools", "allowed_tools": allowed}:
            return {**choice, "allowed_tools": {**allowed, "mode": "auto"}}
        case {"type": "allowed_tools"}:
            return {**choice, "mode": "auto"}
        case _:
            return "auto"


def _is_reference(item: Wire) -> bool:
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


def _without_stored_id(item: Wire) -> Wire:
    kind = item.get("type") or ("message" if item.get("role") else None)
    return without_id(item) if kind in SELF_CONTAINED else item


def _replace_marks(messages: Sequence[Wire], mark: OwnCacheMark | None) -> list[Wire]:
    return [
        {**message, "content": replace_own_marks(message["content"], mark)} if is_list(message["content"]) else message
        for message in messages
    ]
