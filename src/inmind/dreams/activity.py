"""What sessions have lived through since the last dream, as dreams look at it: who said what, which tools did what."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime

from inmind.core.events.base import Trust
from inmind.core.frozen import frozen
from inmind.core.language.prose import own_words, sentences


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
    _sentences: list[tuple[str, ...]] = field(
        default_factory=list[tuple[str, ...]], init=False, compare=False, hash=False, repr=False
    )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What somebody says in it of their own, without what they have only pasted.

        Gaps, loops and skills all look at this, and to tell it takes longer than all that they do with it: it is told
        when the first of them asks, and kept.
        """
        if not self._sentences:
            self._sentences.append(tuple(one for line in own_words(self.text) for one in sentences(line)))
        return self._sentences[0]


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
