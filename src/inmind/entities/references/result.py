"""Values returned by the resolver.

They are separate, so that importing them does not load the language tables.
"""

from __future__ import annotations

from typing import Literal

from inmind.core.frozen import frozen
from inmind.entities.entity import Entity
from inmind.entities.references.phrase import Kind

Verdict = Literal["resolved", "ambiguous", "none"]


@frozen(kw_only=True)
class Candidate:
    """An entity that may be meant."""

    entity: Entity
    confidence: float
    why: str


@frozen(kw_only=True)
class Reference:
    """One reference in a text and the entities it refers to."""

    text: str
    span: tuple[int, int]
    kind: Kind
    verdict: Verdict
    entities: tuple[Entity, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    """Best first, including the chosen ones."""
    confidence: float = 0.0
    why: str = ""
    question: str = ""

    @property
    def entity(self) -> Entity | None:
        """The entity that is meant; None for several or none."""
        return self.entities[0] if len(self.entities) == 1 else None


@frozen(kw_only=True)
class Resolution:
    """The resolution of a text: its main reference, and all references."""

    text: str
    verdict: Verdict
    entities: tuple[Entity, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    confidence: float = 0.0
    question: str = ""
    """Question to ask the user, in the language of the text; empty unless ambiguous."""
    why: str = ""
    references: tuple[Reference, ...] = ()

    @property
    def entity(self) -> Entity | None:
        """The entity that is meant; None for several or none."""
        return self.entities[0] if len(self.entities) == 1 else None

    def __str__(self) -> str:
        match self.verdict:
            case "resolved":
                return f"{'; '.join(map(str, self.entities))} ({self.confidence:.0%}: {self.why})"
            case "ambiguous":
                return f"{self.question} ({self.why})"
            case _:
                return f"nothing ({self.why})"
