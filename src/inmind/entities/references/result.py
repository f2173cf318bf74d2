"""Values of the resolver: a reference as it was phrased, and as it was resolved.

They are separate, so that importing them does not load the language tables. `spaced` and `unspaced` find the phrases
of a text, so the meaning is decided once for all languages, in `candidates` and `resolve`.
"""

from __future__ import annotations

from typing import Literal

from inmind.core.frozen import frozen
from inmind.entities.entity import Entity

Pick = Literal["recent", "place", "other", "previous", "oldest", "newest"]

Kind = Literal["id", "name", "ordinal", "other", "plural", "typed", "pronoun"]
"""How the reference names its entity; "them" is a pronoun, "both" a plural."""


@frozen(kw_only=True)
class Phrase:
    """One reference: "it", "the second image", "those two", "the deleted page", "第二张图片"."""

    span: tuple[int, int]
    """Start and end in the text."""
    nouns: tuple[str, ...] = ()
    """Types it may be about; empty for "it" and "the other one"."""
    noun: str = ""
    """The type in the user's words, for a question to the user."""
    words: tuple[str, ...] = ()
    """Descriptive words in lower case: "the *red* one". Mostly part of a name."""
    pick: Pick = "recent"
    position: int = 0
    """Counted from 1; from the end if negative."""
    numbered: bool = False
    """The position was a number, "image 3", which may also be an id."""
    plural: bool = False
    count: int = 0
    """Expected number of entities: 2 for "both"; 0 if not stated."""
    exhaustive: bool = False
    """There are no others: "both pages", "all three"."""
    maybe_singular: bool = False
    """A plural that can also mean one entity: "they" for a shop, "those" for trousers."""
    qualified: bool = False
    """Followed by words that select one and cannot be evaluated: "the one on the left"."""
    possessive: bool = False
    """It begins with a pronoun: "its sections"."""
    plural_possessive: bool = False
    """That pronoun is a plural: "their price"."""
    demonstrative: bool = False
    """True for "this page" and "it", false for a plain "the page"."""
    deleted: bool = False
    undo: bool = False
    """The last action is to be reverted: "undo that" refers to an entity that was just deleted."""
    indefinite: bool = False
    """"a page" is yet to be created: it refers to nothing, and its words name nothing."""

    def possessor(self) -> Phrase:
        """Return the pronoun as a phrase, if the noun is no known type: the "it" of "its price"."""
        return Phrase(
            span=self.span,
            plural=self.plural_possessive,
            maybe_singular=self.plural_possessive,
            demonstrative=True,
            deleted=self.deleted,
            undo=self.undo,
        )

    @property
    def is_bare(self) -> bool:
        """True for a noun without determiner, count or description."""
        plain = self.pick == "recent" and not (self.words or self.demonstrative or self.count or self.deleted)
        return bool(self.nouns) and plain

    @property
    def kind(self) -> Kind:
        if self.words:
            return "name"
        if self.pick in {"place", "oldest", "newest"}:
            return "ordinal"
        if self.pick != "recent":
            return "other"
        if not self.nouns and not self.count:
            return "pronoun"
        return "plural" if self.plural else "typed"


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
