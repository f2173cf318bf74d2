"""What the resolver answers with: values that a host can hold without loading the languages behind them."""

from __future__ import annotations

from typing import Literal

from inmind.core.frozen import frozen
from inmind.entities.entity import Entity
from inmind.entities.references.phrase import Kind

Verdict = Literal["resolved", "ambiguous", "none"]


@frozen(kw_only=True)
class Candidate:
    """A thing that may be meant."""

    entity: Entity
    confidence: float
    why: str


@frozen(kw_only=True)
class Reference:
    """One reference in a text, with what it refers to."""

    text: str
    span: tuple[int, int]
    kind: Kind
    verdict: Verdict
    entities: tuple[Entity, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    """The best first, those that were chosen among them."""
    confidence: float = 0.0
    why: str = ""
    question: str = ""

    @property
    def entity(self) -> Entity | None:
        """The one thing that is meant; None for several, and for none."""
        return self.entities[0] if len(self.entities) == 1 else None


@frozen(kw_only=True)
class Resolution:
    """What a text refers to: the answer for what it is most about, and every reference in it."""

    text: str
    verdict: Verdict
    entities: tuple[Entity, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    confidence: float = 0.0
    question: str = ""
    """What to ask the user, in the language of the text; empty unless the verdict is ambiguous."""
    why: str = ""
    references: tuple[Reference, ...] = ()

    @property
    def entity(self) -> Entity | None:
        """The one thing that is meant; None for several, and for none."""
        return self.entities[0] if len(self.entities) == 1 else None

    def __str__(self) -> str:
        match self.verdict:
            case "resolved":
                return f"{'; '.join(map(str, self.entities))} ({self.confidence:.0%}: {self.why})"
            case "ambiguous":
                return f"{self.question} ({self.why})"
            case _:
                return f"nothing ({self.why})"
