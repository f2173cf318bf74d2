"""Renders a scratchpad for the model: text as it is, an object as readable JSON.

    {
      "currentGoal": "Deploy v2",
      "completedSteps": ["write tests", "ask for a review"],
      "owner": {"name": "Ada", "email": "ada@example.com"}
    }

Each field starts a line, and only long values take several. So a changed field is a changed line, which the tail of a
prompt can show, and whole fields can be left out to fit a budget.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any

from inmind.core.text import TruncatedText, truncate
from inmind.core.tokens import Counter
from inmind.documents.scratchpad.state import ScratchpadState
from inmind.documents.scratchpad.values import format_path, is_list, is_object

MAX_LINE_WIDTH = 100
"""Characters up to which a value stays on the line of its key."""

MAX_NAMED_FIELDS = 12
"""Fields that a pointer names; more are counted."""

_INDENT = "  "
_encode = json.JSONEncoder(ensure_ascii=False, default=dict).encode


def render_state(state: ScratchpadState) -> str:
    """Return the complete state as text; empty if there is nothing to read."""
    if isinstance(state, str):
        return state.strip("\n") if state.strip() else ""
    return _join_fields(_render_fields(state).values()) if state else ""


def render_within(state: ScratchpadState, *, budget: int, count: Counter, path: str) -> TruncatedText:
    """Render the state within a budget, with a pointer to the omitted fields.

    A field that does not fit is left out and not cut, because half of a list looks complete. If no field fits, or for a
    text, the end is cut at a line end.
    """
    fields = {} if isinstance(state, str) else _render_fields(state)
    text = _join_fields(fields.values()) if fields else render_state(state)
    size = count(text)
    if size <= budget:
        return TruncatedText(text, 0)
    fitted = _render_fitting_fields(fields, budget=budget, count=count, path=path)
    return fitted or truncate(
        text, budget=budget, count=count, pointer=f"[cut to fit: read all of it, {size} tokens, in {path}]"
    )


def _render_fitting_fields(
    fields: Mapping[str, str], *, budget: int, count: Counter, path: str
) -> TruncatedText | None:
    """Render as many whole fields as fit, in order; None if none fits."""
    frame = count("")  # the counter adds this overhead to every text
    sizes = {key: count(field) - frame for key, field in fields.items()}

    def pointer(left_out: Collection[str]) -> str:
        named = [f"{format_path([key])} ({sizes[key]} tokens)" for key in left_out][:MAX_NAMED_FIELDS]
        more = [f"{len(left_out) - MAX_NAMED_FIELDS} more"] if len(left_out) > MAX_NAMED_FIELDS else []
        return f"[left out to fit: {', '.join([*named, *more])}; read all of it in {path}]"

    def render_kept(kept: Collection[str]) -> TruncatedText:
        left_out = [key for key in fields if key not in kept]
        lines = sum(fields[key].count("\n") + 1 for key in left_out)
        return TruncatedText(
            f"{_join_fields(fields[key] for key in fields if key in kept)}\n{pointer(left_out)}", lines
        )

    room = budget - count(pointer(fields))
    fitting: list[str] = []
    for key, size in sizes.items():
        if size <= room:
            fitting.append(key)
            room -= size
    # Token counts of parts do not add up exactly: the last field may have to be dropped again.
    fewer = (render_kept(set(fitting[:number])) for number in range(len(fitting), 0, -1))
    return next((cut for cut in fewer if count(cut.text) <= budget), None)


def _join_fields(fields: Iterable[str]) -> str:
    return "{\n" + ",\n".join(fields) + "\n}"


def _render_fields(state: Mapping[str, Any]) -> dict[str, str]:
    """Return each field with its key, indented once."""
    return {key: "\n".join(_value_lines(value, f"{_INDENT}{_encode(key)}: ", _INDENT)) for key, value in state.items()}


def _value_lines(value: Any, lead: str, indent: str) -> list[str]:
    """Return the lines of a value after its lead.

    A short or scalar value has one line; any other has one or more for each part.
    """
    one_line = lead + _encode(value)
    if len(one_line) < MAX_LINE_WIDTH or not (is_object(value) or is_list(value)) or not value:
        return [one_line]
    inner = indent + _INDENT
    if is_object(value):
        opens, closes = "{", "}"
        parts = [_value_lines(item, f"{inner}{_encode(key)}: ", inner) for key, item in value.items()]
    else:
        opens, closes = "[", "]"
        parts = [_value_lines(item, inner, inner) for item in value]
    for part in parts[:-1]:
        part[-1] += ","
    return [f"{lead}{opens}", *chain.from_iterable(parts), f"{indent}{closes}"]
