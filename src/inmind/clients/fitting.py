"""A request as a whole: what the host asked for beside the conversation, and what memory adds, made to go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inmind.prompt.formats.marks import marks_left
from inmind.prompt.formats.parts import Wire
from inmind.prompt.formats.values import is_list, is_object, plain, without_id

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
    """A mark beside the messages counts like those in them. Where that is one too many, one of ours goes."""
    system, messages, tools = body.get("system", []), body["messages"], body.get("tools", [])
    if not given.get("cache_control") or marks_left(system, messages, tools):
        return body
    theirs = plain(given.get("system"), "system")
    left = marks_left(theirs if is_list(theirs) else [], given["messages"] or (), tools)
    if left > 1:
        return {**body, "system": [*system[:-1], _unmarked(system[-1])]}
    return {**body, "messages": _without_last_mark(messages)} if left else body


def _is_only_kept(item: Wire) -> bool:
    return item.get("type") == "reasoning" and not item.get("encrypted_content")


def _by_words(item: Wire) -> Wire:
    kind = item.get("type") or ("message" if item.get("role") else None)
    return without_id(item) if kind in _KNOWN_BY_WORDS else item


def _unmarked(block: Wire) -> Wire:
    return {name: value for name, value in block.items() if name != "cache_control"}


def _without_last_mark(messages: list[Wire]) -> list[Wire]:
    place, at = max((place, at) for place, message in enumerate(messages) for at in _marked(message["content"]))
    content = messages[place]["content"]
    blocks = [*content[:at], _unmarked(content[at]), *content[at + 1 :]]
    return [*messages[:place], {**messages[place], "content": blocks}, *messages[place + 1 :]]


def _marked(content: Any) -> list[int]:
    return [at for at, block in enumerate(content) if is_object(block) and "cache_control" in block]
