"""A reference as it was phrased, before it is resolved.

Each language has a parser (`english`, `chinese`) that produces these values, so the meaning is decided once, in
`candidates` and `resolve`.
"""

from __future__ import annotations

from typing import Literal

from inmind.core.frozen import frozen

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
    possessive: str = ""
    """The pronoun it begins with: "its sections", "their price"."""
    demonstrative: bool = False
    """True for "this page" and "it", false for a plain "the page"."""
    deleted: bool = False
    undo: bool = False
    """The last action is to be reverted: "undo that" refers to an entity that was just deleted."""
    indefinite: bool = False
    """"a page" is yet to be created: it refers to nothing, and its words name nothing."""

    def possessor(self) -> Phrase:
        """Return the pronoun as a phrase, if the noun is no known type: the "it" of "its price"."""
        is_their = self.possessive == "their"
        return Phrase(
            span=self.span,
            plural=is_their,
            maybe_singular=is_their,
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
