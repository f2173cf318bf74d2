"""A request as a whole: what the host asked for beside the conversation, and what memory adds, made to go together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from inmind.core.json import is_list, plain
from inmind.core.messages.cache_control import Ours, is_marked_by_us, mark_before, marks_left, remarked
from inmind.core.messages.model import Wire, without_id
from inmind.prompt.ingest import tool_names

Body = dict[str, Any]

# Items that the provider knows by their words too. The others need their ids.
_KNOWN_BY_WORDS = ("message", "function_call", "custom_tool_call")


def with_functions(body: Body, given: Mapping[str, Any]) -> Body:
    """Functions came before tools, and the two do not go together: a host that has them goes without memory's tools."""
    if not given.get("functions"):
        return body
    rest = {name: value for name, value in body.items() if name != "tools"}
    return {**rest, "tools": given["tools"]} if given.get("tools") else rest


def without_what_is_not_kept(body: Body, given: Mapping[str, Any]) -> Body:
    """What a provider was told not to store, it cannot be reminded of by an id."""
    if given.get("store") is not False:
        return body
    return {**body, "input": [_by_words(item) for item in body["input"] if not _is_only_kept(item)]}


def with_room_for_its_mark(body: Body, given: Mapping[str, Any]) -> Body:
    """A mark beside the messages counts like those in them, and stands behind them all. So ours last as long as that
    one; and where it is one too many, one of ours goes."""
    beside = plain(given.get("cache_control") or None, "cache_control")
    if beside is None:
        return body
    system, messages = body.get("system", []), body["messages"]
    if not marks_left(system, messages, body.get("tools", [])):
        # The one in the messages covers the memory too: of two, that one stays.
        if any(map(is_marked_by_us, system)):
            system = remarked(system, None)
        else:
            messages = _remarked(messages, None)
    lasting = mark_before([{"cache_control": beside}])
    if "ttl" in lasting:
        system, messages = remarked(system, lasting), _remarked(messages, lasting)
    return {**body, **({"system": system} if system else {}), "messages": messages}


def with_free_choice(body: Body, hidden: Callable[[str], bool]) -> Body:
    """What a host wants called is called in the first round. A choice that only memory can meet would never let the
    model speak after that, so it is left to the model; one that the host's tools can meet goes on until they do."""
    choice = plain(body.get("tool_choice"), "tool_choice")
    forced = _forced(choice, body.get("tools", ()))
    # A tool of the provider's own may have no name, and is the host's.
    named = [tool_names([tool]) for tool in forced]
    only_memory = bool(named) and all(names and all(map(hidden, names)) for names in named)
    return {**body, "tool_choice": _free(choice)} if only_memory else body


def _forced(choice: Any, tools: Sequence[Wire]) -> Sequence[Wire]:
    """The tools of which one has to be called, if any has."""
    match choice:
        case "required" | "any" | {"type": "any"}:
            return tools
        case {"type": "allowed_tools", "allowed_tools": allowed} | ({"type": "allowed_tools"} as allowed):
            return allowed["tools"] if allowed.get("mode") == "required" else ()
        case {"type": str(kind)} if kind not in ("auto", "none"):
            return [choice]
        case _:
            return ()


def _free(choice: Any) -> Any:
    """The same choice, for the model to make; among the same tools, where the host has allowed only some."""
    match choice:
        case {"type": "tool" | "any"}:
            return {**{key: value for key, value in choice.items() if key != "name"}, "type": "auto"}
        case {"type": "allowed_tools", "allowed_tools": allowed}:
            return {**choice, "allowed_tools": {**allowed, "mode": "auto"}}
        case {"type": "allowed_tools"}:
            return {**choice, "mode": "auto"}
        case _:
            return "auto"


def _is_only_kept(item: Wire) -> bool:
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


def _by_words(item: Wire) -> Wire:
    kind = item.get("type") or ("message" if item.get("role") else None)
    return without_id(item) if kind in _KNOWN_BY_WORDS else item


def _remarked(messages: Sequence[Wire], mark: Ours | None) -> list[Wire]:
    return [
        {**message, "content": remarked(message["content"], mark)} if is_list(message["content"]) else message
        for message in messages
    ]
