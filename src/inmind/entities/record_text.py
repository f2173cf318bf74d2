"""Records as text: keys beside values, on one line.

    order_id #W6247578, status pending, items [name T-Shirt, product_id 9523456873, item_id 3799046073, color black]

A value that could pass for more than one is quoted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from inmind.core.json import is_list, is_object
from inmind.core.text import largest_that_fits
from inmind.core.tokens import Counter
from inmind.entities.ids import key_meaning
from inmind.entities.record import Detail, is_count, is_scalar, prune


def render_record(value: Any, handled: Callable[[str], str] | None = None) -> str:
    """Render a pruned value on one line.

    `handled` returns words to add after an id in a list of ids, for example what was done with it.
    """
    return _render(value, handled, top=True)


def fit_record(value: Any, *, budget: int, count: Counter) -> str:
    """Render a parsed result with the most detail that fits, else cut it after a value."""
    text = ""
    for detail in reversed(Detail):
        text = render_record(prune(value, detail))
        if count(text) <= budget:
            return text
    return cut_record(text, budget=budget, count=count)


def cut_record(text: str, *, budget: int, count: Counter) -> str:
    """Cut a record after a value, and say how many values are left out."""
    ends = [match.start(1) for match in _SEPARATOR.finditer(text) if match[1]]

    def kept(number: int) -> str:
        head = text[: ends[number - 1]] if number else ""
        return f"{head} … ({len(ends) + 1 - number} more)".lstrip()

    return kept(largest_that_fits(len(ends), lambda number: count(kept(number)) <= budget))


_SEPARATOR = re.compile(r'"(?:[^"\\]|\\.)*"|([,;] )')
"""A separator of values, or a quoted text, which may contain one."""


def _render(value: Any, handled: Callable[[str], str] | None, *, top: bool = False) -> str:
    if isinstance(value, str):
        return _word(value)
    if is_object(value):
        pairs = ", ".join([f"{_key_word(key)} {_render_field(key, item, handled)}" for key, item in value.items()])
        return pairs if top else f"{{{pairs}}}"
    if is_list(value):
        if key := _only_key(value):
            return f"[{_key_word(key)} {', '.join([_render_entry(item[key], handled) for item in value])}]"
        if any(is_object(item) for item in value):
            return f"[{'; '.join([_render(item, handled, top=True) for item in value])}]"
        return f"[{', '.join([_render_entry(item, handled) for item in value])}]"
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.12g}"  # 121.20000000000005 is 121.2
    return str(value).lower() if isinstance(value, bool) else _word(str(value))


def _render_field(key: str, item: Any, handled: Callable[[str], str] | None) -> str:
    if handled is None and isinstance(item, str):
        return _word(item)
    is_id = handled is not None and is_scalar(item) and key_meaning(key).role in ("own", "id", "code")
    return _render_entry(item, handled) if is_id else _render(item, handled)


def _only_key(items: Sequence[Any]) -> str:
    """The key of a list of objects that have one field, the same; else empty."""
    if len(items) < 2 or not is_object(items[0]) or len(items[0]) > 1:
        return ""
    keys = {key for item in items if is_object(item) for key in item}
    is_plain = len(keys) == 1 and all(is_object(item) and all(map(is_scalar, item.values())) for item in items)
    return keys.pop() if is_plain else ""


def _render_entry(item: Any, handled: Callable[[str], str] | None) -> str:
    text = _render(item, handled)
    words = handled(str(item)) if handled and isinstance(item, str | int) else ""
    return f"{text} ({words})" if words else text


@lru_cache(maxsize=1024)
def _key_word(key: str) -> str:
    return json.dumps(key, ensure_ascii=False) if is_count(key) else _word(key)


@lru_cache(maxsize=8192)
def _word(text: str) -> str:
    """Return the text, quoted if it could pass for more than one value.

    For example several values, a key with its value, an id with a verb, or a count.
    """
    return json.dumps(text, ensure_ascii=False) if _SPECIAL.search(text) and not is_count(text) else text


_KEY = r"(?:\w*_\w+|(?i:ids?|number|code|name|status)|\w+(?:I[dD]s?|Number|Code|Name|Status))"
_SPECIAL = re.compile(rf"[,;()\[\]{{}}\"…]|(?:^|\s){_KEY}\s+\S|^\s|\s$|[^\S ]")
