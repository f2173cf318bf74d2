"""The host's system prompt: validation and text.

Every provider accepts plain text. Anthropic also accepts blocks and OpenAI messages, and neither accepts the other's.
So a prompt is checked in its own format before it is stored, and is converted to another as text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from inmind.core.json import check_json, check_text, is_object
from inmind.core.messages.model import Message, Text, Wire
from inmind.errors import InvalidInput


def system_items(system: object, field: str, expected: str) -> list[tuple[dict[str, Any], str]]:
    """Items of a system prompt that is a list, each with its field name; empty for plain text."""
    if system is None:
        return []
    if isinstance(system, str):
        check_text(system, field)
        return []
    if not isinstance(system, list | tuple):
        raise InvalidInput(field=field, value=system, expected=f"a string or a list of {expected}")
    items: list[tuple[dict[str, Any], str]] = []
    for index, item in enumerate(cast(Sequence[object], system)):
        place = f"{field}[{index}]"
        if not is_object(item):
            raise InvalidInput(field=place, value=item, expected="an object")
        check_json(item, place)
        items.append((item, place))
    return items


def check_system_role(wire: dict[str, Any], field: str) -> None:
    role = wire.get("role")
    if role not in ("system", "developer"):
        raise InvalidInput(field=f"{field}.role", value=role, expected="system or developer")


def system_text(system: Sequence[Wire] | str | None, read: Callable[[Wire], Message]) -> str:
    """The text of a system prompt that is plain text or messages."""
    if system is None or isinstance(system, str):
        return system or ""
    return join_paragraphs(part.text for wire in system for part in read(wire).parts if isinstance(part, Text))


def join_paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())
