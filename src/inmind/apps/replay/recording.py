"""A conversation as somebody recorded it, in words that a session takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from inmind.core.frozen import frozen
from inmind.core.messages.model import Wire


@frozen(kw_only=True)
class Recording:
    """One conversation between a user, an agent and its tools, from its beginning."""

    name: str
    format: str
    messages: Sequence[Wire]
    system: str | Sequence[Any] | None = None
    tools: Sequence[Any] | None = None
    left_out: Mapping[str, int] = field(default_factory=dict[str, int])
    """How much of the file is not part of this conversation, by what it is."""
