"""A scratchpad as the model reads it: a text as it is, an object as JSON that people can read too.

    {
      "currentGoal": "Deploy v2",
      "completedSteps": ["write tests", "ask for a review"],
      "owner": {"name": "Ada", "email": "ada@example.com"}
    }

Every field has a line of its own, and a value takes more of them only when it is long. So a changed field is a changed
line, which is how the end of a prompt tells of changes, and when room is short whole fields can be left out.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any

from inmind.core.text import Cut, cut
from inmind.core.tokens import Counter
from inmind.documents.scratchpad.paths import is_list, is_object, spelt
from inmind.documents.scratchpad.state import State

WIDTH = 100
"""Characters of a line up to which a value stands on the line of its key."""

MOST_NAMED = 12
"""Fields that a pointer names. Of more it says how many."""

_INDENT = "  "
_encoded = json.JSONEncoder(ensure_ascii=False, default=dict).encode


def text_of(state: State) -> str:
    """All of it; empty where there is nothing to read."""
    if isinstance(state, str):
        return state.strip("\n") if state.strip() else ""
    return _joined(_fields(state).values()) if state else ""


def shortened(state: State, *, budget: int, count: Counter, where: str) -> Cut:
    """The state inside a budget, with a line that says what is left out, how large it is, and where to read it.

    A field that does not fit is left out and not cut: half of a list reads like all of it. Only where no field fits, or
    where it is a text, is it cut at the end of a line.
    """
    fields = {} if isinstance(state, str) else _fields(state)
    text = _joined(fields.values()) if fields else text_of(state)
    size = count(text)
    if size <= budget:
        return Cut(text, 0)
    fitted = _fitted(fields, budget=budget, count=count, where=where)
    return fitted or cut(
        text, budget=budget, count=count, pointer=f"[cut to fit: read all of it, {size} tokens, in {where}]"
    )


def _fitted(fields: Mapping[str, str], *, budget: int, count: Counter, where: str) -> Cut | None:
    """As many whole fields as fit, in their order; None if none does."""
    frame = count("")  # what stands around the whole is counted with every text
    sizes = {key: count(field) - frame for key, field in fields.items()}

    def pointer(left_out: Collection[str]) -> str:
        named = [f"{spelt([key])} ({sizes[key]} tokens)" for key in left_out][:MOST_NAMED]
        more = [f"{len(left_out) - MOST_NAMED} more"] if len(left_out) > MOST_NAMED else []
        return f"[left out to fit: {', '.join([*named, *more])}; read all of it in {where}]"

    def shown(kept: Collection[str]) -> Cut:
        left_out = [key for key in fields if key not in kept]
        lines = sum(fields[key].count("\n") + 1 for key in left_out)
        return Cut(f"{_joined(fields[key] for key in fields if key in kept)}\n{pointer(left_out)}", lines)

    room = budget - count(pointer(fields))
    fitting: list[str] = []
    for key, size in sizes.items():
        if size <= room:
            fitting.append(key)
            room -= size
    # Tokens of the parts do not quite add up to those of the whole: the last may have to go again.
    fewer = (shown(set(fitting[:number])) for number in range(len(fitting), 0, -1))
    return next((cut for cut in fewer if count(cut.text) <= budget), None)


def _joined(fields: Iterable[str]) -> str:
    return "{\n" + ",\n".join(fields) + "\n}"


def _fields(state: Mapping[str, Any]) -> dict[str, str]:
    """Each field with its name in front, indented once."""
    return {key: "\n".join(_lines(value, f"{_INDENT}{_encoded(key)}: ", _INDENT)) for key, value in state.items()}


def _lines(value: Any, lead: str, indent: str) -> list[str]:
    """A value behind its lead: on that line if it is short or has no parts, else opened, with lines for each part."""
    whole = lead + _encoded(value)
    if len(whole) < WIDTH or not (is_object(value) or is_list(value)) or not value:
        return [whole]
    inner = indent + _INDENT
    if is_object(value):
        opens, closes = "{", "}"
        parts = [_lines(item, f"{inner}{_encoded(key)}: ", inner) for key, item in value.items()]
    else:
        opens, closes = "[", "]"
        parts = [_lines(item, inner, inner) for item in value]
    for part in parts[:-1]:
        part[-1] += ","
    return [f"{lead}{opens}", *chain.from_iterable(parts), f"{indent}{closes}"]
