"""What sessions have lived through since the last dream, as dreams look at it: who said what, which tools did what."""

from __future__ import annotations

from datetime import datetime

from inmind.frozen import frozen
from inmind.journal import Trust


@frozen(kw_only=True)
class Used:
    """A tool that was called."""

    tool: str
    arguments: str = ""
    """As they were written."""
    failed: bool = False


@frozen(kw_only=True)
class Spoke:
    """A message: by a user, the assistant, or what stands in for one: a tool that was observed."""

    id: str
    session: str
    at: datetime
    role: str
    """`user`, `assistant` or `tool`."""
    text: str = ""
    used: tuple[Used, ...] = ()
    """Tools that it calls, or whose outcome it is."""
    trust: Trust = Trust.PERSON


@frozen(kw_only=True)
class LookedUp:
    """A search in deep memory."""

    id: str
    session: str
    at: datetime
    query: str
    found: tuple[str, ...] = ()


@frozen(kw_only=True)
class Lived:
    """In the order in which it happened."""

    talk: tuple[Spoke, ...] = ()
    lookups: tuple[LookedUp, ...] = ()
