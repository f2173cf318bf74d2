"""Cache marks: positions up to which a provider caches the prompt.

A mark belongs to one request and not to the conversation, and hosts move theirs from call to call. So a host's marks
are removed from its messages on arrival, stored with the call, and set again when the call is sent. The history
therefore only grows, and the marks are those of the host's newest list.

Anthropic caches only up to an explicit mark and accepts four in a request. Two of ours are worthwhile: after the memory
block, which is unchanged for many calls, and after the last block that the next request will repeat. That block is the
one *before* the tail, since the tail changes with every call. `add_tail` inserts the tail as a `TailBlock`, a dict that
is sent like any other, so that the request can recognise it.

A mark for one hour is refused after one for five minutes (in the order tools, system, messages), so ours last as long
as any mark of the host after them. A mark next to the messages counts as after everything; it is not part of the
conversation and comes when the request is already built, so our own marks must be recognisable: they are
`OwnCacheMark`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from inmind.core.json import TEXT_PART_TYPES, is_list, is_object
from inmind.core.messages.model import Wire

MAX_MARKS = 4

MarkPath = tuple[int | str, ...]
CacheMarks = tuple[tuple[int, MarkPath, Any], ...]
"""Each with the index of its message in a list and the path to it from there."""

_MARK_FIELDS = ("cache_control", "prompt_cache_breakpoint")
_PART_FIELDS = ("content", "output")
_SOURCE_FIELD = "source"
"""The field of a document with its content."""
_ONE_HOUR = "1h"
_UNMARKABLE_TYPES = frozenset({"thinking", "redacted_thinking"})


class TailBlock(dict[str, Any]):
    """The content block with this call's changes. It is not part of the conversation."""


class OwnCacheMark(dict[str, str]):
    """A mark set by inmind. It is sent like any other."""


def find_marks(wires: Sequence[object]) -> CacheMarks:
    """The marks in a list of messages. Objects of a client have none."""
    given = ((place, path, mark) for place, wire in enumerate(wires) for path, mark in _iter_marks(wire))
    return tuple((place, path, mark) for place, path, mark in given if mark is not None)


def without_marks(wire: Wire) -> Wire:
    """Return the message without marks; the same object if it has none."""
    return wire if next(_iter_marks(wire), None) is None else _strip_marks(wire)


def with_plain_text(value: Any) -> Any:
    """Return the message with single text parts as plain strings.

    Hosts use a part to attach a mark.
    """
    if not is_object(value):
        return value
    simplified = {key: _simplify_parts(parts) for key in _PART_FIELDS if is_list(parts := value.get(key))}
    source = {_SOURCE_FIELD: with_plain_text(value[_SOURCE_FIELD])} if _SOURCE_FIELD in value else {}
    return {**value, **simplified, **source}


def relocate_marks(marks: CacheMarks, conversation: Sequence[Wire], sent: Sequence[Wire]) -> CacheMarks:
    """Map marks on the conversation to the messages that are sent.

    A part of a rewritten message may be found unchanged in another one. A mark is dropped if its part is not found, is
    found more than once, or exists only in the host's copy of a reply.
    """
    relocated: list[tuple[int, MarkPath, Any]] = []
    for place, path, mark in marks:
        at = _index_in(sent, conversation, place)
        if at is not None:
            relocated += [(at, path, mark)] if _path_exists(conversation[place], path) else []
        else:
            relocated += [(at, moved, mark) for at, moved in _find_part(sent, conversation[place], path)]
    return tuple(relocated)


def apply_marks(wires: Sequence[Wire], marks: CacheMarks, *, text_type: str) -> list[Wire]:
    """Set marks on messages. `text_type`: type of the part that a marked plain text becomes."""
    sent = list(wires)
    for place, path, mark in marks:
        sent[place] = _set_at_path(sent[place], path, mark, text_type)
    return sent


def remaining_marks(*places: Iterable[Wire]) -> int:
    """Number of marks that the host has not used in its system blocks, tools and messages."""
    return max(0, MAX_MARKS - sum(1 for place in places for wire in place for _ in _non_null_marks(wire)))


def own_mark_before(wires: Iterable[Wire]) -> OwnCacheMark:
    """The mark for a block that is followed by these messages.

    Without `ttl` it lasts five minutes.
    """
    longer = any(is_object(mark) and mark.get("ttl") == _ONE_HOUR for wire in wires for mark in _non_null_marks(wire))
    return OwnCacheMark(type="ephemeral", ttl=_ONE_HOUR) if longer else OwnCacheMark(type="ephemeral")


def replace_own_marks(blocks: Sequence[Wire], mark: OwnCacheMark | None) -> list[Wire]:
    """Replace each of our marks by this one; None removes them."""
    given = {"cache_control": mark} if mark else {}
    return [{**_without_mark_fields(block), **given} if has_own_mark(block) else block for block in blocks]


def has_own_mark(block: Wire) -> bool:
    return isinstance(block.get("cache_control"), OwnCacheMark)


def add_mark_before_tail(wires: Sequence[Wire]) -> list[Wire]:
    """Add a mark on the last block that will be unchanged in the next request.

    Without a tail that is the end of the last message that is not the assistant's: an assistant message at the end is a
    prefill and will be longer next time.
    """
    marked = list(wires)
    end = _tail_message(wires)
    for place in range(end, -1, -1):
        blocks = _blocks(wires[place])
        for index in range(len(blocks) - 1, -1, -1):
            block = blocks[index]
            if block.get("cache_control") is not None:
                return marked
            if not isinstance(block, TailBlock) and _can_be_marked(block):
                blocks[index] = {**block, "cache_control": own_mark_before(wires[place + 1 :])}
                marked[place] = {**wires[place], "content": blocks}
                return marked
    return marked


def _index_in(sent: Sequence[Wire], conversation: Sequence[Wire], place: int) -> int | None:
    """Index of a message in the list that is sent. Equal messages are matched by their order."""
    before = [at for at, wire in enumerate(conversation) if wire == conversation[place]]
    now = [at for at, wire in enumerate(sent) if wire == conversation[place]]
    return now[before.index(place)] if len(now) == len(before) else None


def _find_part(sent: Sequence[Wire], wire: Wire, path: MarkPath) -> list[tuple[int, MarkPath]]:
    """Location of the marked part in the list that is sent, if it occurs there once."""
    key, at = path[0], path[1] if len(path) > 1 else None
    parts = wire.get(str(key))
    if not is_list(parts) or not isinstance(at, int) or at >= len(parts) or not _path_exists(parts[at], path[2:]):
        return []
    lists = [(place, other.get(str(key))) for place, other in enumerate(sent)]
    places = [
        (place, (key, index, *path[2:]))
        for place, listed in lists
        for index, part in enumerate(listed if is_list(listed) else ())
        if part == parts[at]
    ]
    return places if len(places) == 1 else []


def _non_null_marks(wire: Wire) -> Iterator[object]:
    return (mark for _, mark in _iter_marks(wire) if mark is not None)


def _iter_marks(value: object) -> Iterator[tuple[MarkPath, Any]]:
    """Marks of a message or a part with their paths, including null ones."""
    if not is_object(value):
        return
    for key in _PART_FIELDS:
        parts = value.get(key)
        for at, part in enumerate(parts) if is_list(parts) else ():
            for path, mark in _iter_marks(part):
                yield (key, at, *path), mark
    for path, mark in _iter_marks(value.get(_SOURCE_FIELD)):
        yield (_SOURCE_FIELD, *path), mark
    for name in _MARK_FIELDS:
        if name in value:
            yield (name,), value[name]


def _strip_marks(value: Any) -> Any:
    if not is_object(value):
        return value
    kept = _without_mark_fields(value)
    parts = {key: [_strip_marks(part) for part in kept[key]] for key in _PART_FIELDS if is_list(kept.get(key))}
    within = {_SOURCE_FIELD: _strip_marks(kept[_SOURCE_FIELD])} if _SOURCE_FIELD in kept else {}
    return {**kept, **parts, **within}


def _without_mark_fields(value: Wire) -> Wire:
    return {key: inner for key, inner in value.items() if key not in _MARK_FIELDS}


def _simplify_parts(parts: list[Any]) -> Any:
    match parts:
        case []:
            return ""
        case [{"type": str(kind), "text": text, **more}] if kind in TEXT_PART_TYPES and not more:
            return text
        case _:
            return [with_plain_text(part) for part in parts]


def _path_exists(value: Any, path: Sequence[int | str]) -> bool:
    """True if a mark can be set at this path. Plain text counts as one part."""
    step, *rest = path
    if not rest:
        return True
    if isinstance(step, int):
        parts: Any = [value] if isinstance(value, str) else value
        return is_list(parts) and step < len(parts) and _path_exists(parts[step], rest)
    return is_object(value) and _path_exists(value.get(step), rest)


def _set_at_path(value: Any, path: Sequence[int | str], mark: Any, text_type: str) -> Any:
    """Return a copy with a mark at this path."""
    if not path:
        return mark
    step, *rest = path
    if isinstance(step, int):
        parts = [{"type": text_type, "text": value}] if isinstance(value, str) else value
        return [*parts[:step], _set_at_path(parts[step], rest, mark, text_type), *parts[step + 1 :]]
    return {**value, step: _set_at_path(value.get(step), rest, mark, text_type)}


def _tail_message(wires: Sequence[Wire]) -> int:
    places = [place for place, wire in enumerate(wires) if wire["role"] != "assistant"]
    for place in reversed(places):
        content = wires[place]["content"]
        if is_list(content) and any(isinstance(block, TailBlock) for block in content):
            return place
    return places[-1] if places else -1


def _blocks(wire: Wire) -> list[Wire]:
    content = wire["content"]
    return list(content) if is_list(content) else [{"type": "text", "text": content}]


def _can_be_marked(block: Wire) -> bool:
    kind = block["type"]
    return kind not in _UNMARKABLE_TYPES and not (kind == "text" and not block["text"].strip())
