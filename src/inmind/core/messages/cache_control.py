"""Where a provider is told to remember the prompt up to.

A mark says nothing: it belongs to one request and not to the conversation, and hosts move theirs on from call to call.
So a host's marks are taken off its messages where those come in, are kept with the call, and are put on again where
the call goes out. A history that only grows stays one, and the marks are those of the host's newest list.

Anthropic caches only as far as an explicit mark, and takes four in a request. Two of ours pay: behind the memory
block, which stands for many calls, and behind the last block that the next request will repeat. That block is the
one *before* the tail, since the tail changes with every call. `carry` puts the tail in as a `Tail`, a dict that
goes out like any other, so that the request can tell it from the host's words without being told where it is.

A mark for an hour is refused behind one for five minutes (in tools, then system, then messages), so ours last as
long as any of the host's that stands behind them. One beside the messages stands behind everything; it is no part of
the conversation and comes when the request is made already, so ours are told from the host's there: they are `Ours`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from inmind.core.json import TEXT_PART_TYPES, is_list, is_object
from inmind.core.messages.model import Wire

MOST = 4

Path = tuple[int | str, ...]
Marks = tuple[tuple[int, Path, Any], ...]
"""Each with the place of its message in a list, and the way to it from there."""

_NAMES = ("cache_control", "prompt_cache_breakpoint")
_WITH_PARTS = ("content", "output")
_WITHIN = "source"
"""Where a document has what it is made of."""
_FOR_AN_HOUR = "1h"
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


class Tail(dict[str, Any]):
    """The content block that carries this call's changes and nothing of the conversation."""


class Ours(dict[str, str]):
    """A mark of ours, which goes out like any other."""


def marks_in(wires: Sequence[object]) -> Marks:
    """The marks in a list of messages. Objects of a client have none: nobody writes on those."""
    given = ((place, path, mark) for place, wire in enumerate(wires) for path, mark in _marked(wire))
    return tuple((place, path, mark) for place, path, mark in given if mark is not None)


def unmarked(wire: Wire) -> Wire:
    """The message without marks; the very same object where it has none."""
    return wire if next(_marked(wire), None) is None else _unmarked(wire)


def in_bare_words(value: Any) -> Any:
    """The message with words that stand alone as bare words. To put a mark on them, hosts spell them as a part."""
    if not is_object(value):
        return value
    said = {key: _bare(parts) for key in _WITH_PARTS if is_list(parts := value.get(key))}
    within = {_WITHIN: in_bare_words(value[_WITHIN])} if _WITHIN in value else {}
    return {**value, **said, **within}


def placed(marks: Marks, line: Sequence[Wire], sent: Sequence[Wire]) -> Marks:
    """The same marks at the places where the messages of the line stand in what is sent.

    Of a message that had to be written anew, a part may stand in another one as it was. What is not found, or could be
    this as well as that, loses its mark; so does a part that only the host's own copy of a reply has.
    """
    found: list[tuple[int, Path, Any]] = []
    for place, path, mark in marks:
        at = _place_in(sent, line, place)
        if at is not None:
            found += [(at, path, mark)] if _reaches(line[place], path) else []
        else:
            found += [(at, moved, mark) for at, moved in _part_in(sent, line[place], path)]
    return tuple(found)


def marked(wires: Sequence[Wire], marks: Marks, *, words: str) -> list[Wire]:
    """The messages with these marks. `words`: what the part is called that bare words become when they are marked."""
    sent = list(wires)
    for place, path, mark in marks:
        sent[place] = _with(sent[place], path, mark, words)
    return sent


def marks_left(*places: Iterable[Wire]) -> int:
    """How many marks the host has left to us in its system blocks, tools and messages."""
    return max(0, MOST - sum(1 for place in places for wire in place for _ in _marks(wire)))


def mark_before(wires: Iterable[Wire]) -> Ours:
    """The mark for a block with these messages behind it. Five minutes is what no `ttl` means."""
    longer = any(is_object(mark) and mark.get("ttl") == _FOR_AN_HOUR for wire in wires for mark in _marks(wire))
    return Ours(type="ephemeral", ttl=_FOR_AN_HOUR) if longer else Ours(type="ephemeral")


def remarked(blocks: Sequence[Wire], mark: Ours | None) -> list[Wire]:
    """The same blocks with this in the place of each mark of ours; None is no mark."""
    given = {"cache_control": mark} if mark else {}
    return [{**_without(block), **given} if is_marked_by_us(block) else block for block in blocks]


def is_marked_by_us(block: Wire) -> bool:
    return isinstance(block.get("cache_control"), Ours)


def with_mark_before_tail(wires: Sequence[Wire]) -> list[Wire]:
    """The same messages with a mark on the last block that will stand unchanged in the next request.

    Without a tail that is the end of the last message that is not the assistant's: what an assistant message at
    the end holds is a beginning, and will be longer next time.
    """
    marked = list(wires)
    end = _tail_message(wires)
    for place in range(end, -1, -1):
        blocks = _blocks(wires[place])
        for index in range(len(blocks) - 1, -1, -1):
            block = blocks[index]
            if block.get("cache_control") is not None:
                return marked
            if not isinstance(block, Tail) and _markable(block):
                blocks[index] = {**block, "cache_control": mark_before(wires[place + 1 :])}
                marked[place] = {**wires[place], "content": blocks}
                return marked
    return marked


def _place_in(sent: Sequence[Wire], line: Sequence[Wire], place: int) -> int | None:
    """Where a message of the line stands in what is sent. Messages that say the same are told apart by their order."""
    before = [at for at, wire in enumerate(line) if wire == line[place]]
    now = [at for at, wire in enumerate(sent) if wire == line[place]]
    return now[before.index(place)] if len(now) == len(before) else None


def _part_in(sent: Sequence[Wire], wire: Wire, path: Path) -> list[tuple[int, Path]]:
    """Where the part of a message that the way leads through stands in what is sent, if it stands there once."""
    key, at = path[0], path[1] if len(path) > 1 else None
    parts = wire.get(str(key))
    if not is_list(parts) or not isinstance(at, int) or at >= len(parts) or not _reaches(parts[at], path[2:]):
        return []
    lists = [(place, other.get(str(key))) for place, other in enumerate(sent)]
    found = [
        (place, (key, index, *path[2:]))
        for place, listed in lists
        for index, part in enumerate(listed if is_list(listed) else ())
        if part == parts[at]
    ]
    return found if len(found) == 1 else []


def _marks(wire: Wire) -> Iterator[object]:
    return (mark for _, mark in _marked(wire) if mark is not None)


def _marked(value: object) -> Iterator[tuple[Path, Any]]:
    """The marks of a message or a part, each with its way; null ones too, which are not to be told from none."""
    if not is_object(value):
        return
    for key in _WITH_PARTS:
        parts = value.get(key)
        for at, part in enumerate(parts) if is_list(parts) else ():
            for path, mark in _marked(part):
                yield (key, at, *path), mark
    for path, mark in _marked(value.get(_WITHIN)):
        yield (_WITHIN, *path), mark
    for name in _NAMES:
        if name in value:
            yield (name,), value[name]


def _unmarked(value: Any) -> Any:
    if not is_object(value):
        return value
    kept = _without(value)
    parts = {key: [_unmarked(part) for part in kept[key]] for key in _WITH_PARTS if is_list(kept.get(key))}
    within = {_WITHIN: _unmarked(kept[_WITHIN])} if _WITHIN in kept else {}
    return {**kept, **parts, **within}


def _without(value: Wire) -> Wire:
    return {key: inner for key, inner in value.items() if key not in _NAMES}


def _bare(parts: list[Any]) -> Any:
    match parts:
        case [{"type": str(kind), "text": text, **more}] if kind in TEXT_PART_TYPES and not more:
            return text
        case _:
            return [in_bare_words(part) for part in parts]


def _reaches(value: Any, path: Sequence[int | str]) -> bool:
    """Is there something to put a mark on at the end of the way? Bare words are one part."""
    step, *rest = path
    if not rest:
        return True
    if isinstance(step, int):
        parts: Any = [value] if isinstance(value, str) else value
        return is_list(parts) and step < len(parts) and _reaches(parts[step], rest)
    return is_object(value) and _reaches(value.get(step), rest)


def _with(value: Any, path: Sequence[int | str], mark: Any, words: str) -> Any:
    """A copy with a mark at the end of the way."""
    if not path:
        return mark
    step, *rest = path
    if isinstance(step, int):
        parts = [{"type": words, "text": value}] if isinstance(value, str) else value
        return [*parts[:step], _with(parts[step], rest, mark, words), *parts[step + 1 :]]
    return {**value, step: _with(value.get(step), rest, mark, words)}


def _tail_message(wires: Sequence[Wire]) -> int:
    said = [place for place, wire in enumerate(wires) if wire["role"] != "assistant"]
    for place in reversed(said):
        content = wires[place]["content"]
        if is_list(content) and any(isinstance(block, Tail) for block in content):
            return place
    return said[-1] if said else -1


def _blocks(wire: Wire) -> list[Wire]:
    content = wire["content"]
    return list(content) if is_list(content) else [{"type": "text", "text": content}]


def _markable(block: Wire) -> bool:
    kind = block["type"]
    return kind not in _UNMARKABLE and not (kind == "text" and not block["text"].strip())
