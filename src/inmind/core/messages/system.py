"""The system prompt that a host gives beside its messages: what it may be made of, and what it says.

Every provider takes plain text. Beyond that Anthropic takes blocks and OpenAI messages, and neither takes the
other's; so a prompt is checked as its own format before it is stored, and crosses to another as its words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from inmind.core.json import check_json, check_text, is_object
from inmind.core.messages.model import Message, Text, Wire
from inmind.errors import InvalidInput


def system_items(system: object, field: str, expected: str) -> list[tuple[dict[str, Any], str]]:
    """What a system prompt is made of where it is a list, each part with its place; nothing where it is plain text."""
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


def words_of(system: Sequence[Wire] | str | None, read: Callable[[Wire], Message]) -> str:
    """The words of a system prompt that is plain text or messages."""
    if system is None or isinstance(system, str):
        return system or ""
    return in_paragraphs(part.text for wire in system for part in read(wire).parts if isinstance(part, Text))


def in_paragraphs(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text.strip())
