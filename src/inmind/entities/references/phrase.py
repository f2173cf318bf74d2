"""How people point at things: the words for one reference, before anybody asks which thing is meant.

Each language has its own reader (`english`, `chinese`) and all of them answer in this one vocabulary, so what a
reference means is decided once, in `resolve`.
"""

from __future__ import annotations

from typing import Literal

from inmind.core.frozen import frozen

Pick = Literal["recent", "place", "other", "previous", "oldest", "newest"]

Kind = Literal["id", "name", "ordinal", "other", "plural", "typed", "pronoun"]
"""What a reference goes by; "them" is a pronoun, "both" a plural."""


@frozen(kw_only=True)
class Phrase:
    """One reference as it was said: "it", "the second image", "those two", "the deleted page", "第二张图片"."""

    span: tuple[int, int]
    """Where it stands in the text."""
    nouns: tuple[str, ...] = ()
    """The types it may be about; none for "it" and "the other one"."""
    noun: str = ""
    """The type as it was said, for asking back."""
    words: tuple[str, ...] = ()
    """What describes it, in small letters: "the *red* one". Part of a name, mostly."""
    pick: Pick = "recent"
    position: int = 0
    """Counted from 1; from the end when negative."""
    numbered: bool = False
    """Its place was said as a number, "image 3", which may as well be its id."""
    plural: bool = False
    count: int = 0
    """How many there should be: 2 for "both". 0 where nobody said."""
    exhaustive: bool = False
    """There are no others: "both pages", "all three"."""
    maybe_singular: bool = False
    """A plural that one thing may be called by as well: "they" of a shop, "those" of trousers."""
    qualified: bool = False
    """What follows says which one, in words that we cannot judge: "the one on the left"."""
    possessive: str = ""
    """The pronoun that it begins with: "its sections", "their price"."""
    demonstrative: bool = False
    """"this page" and "it", as against a plain "the page"."""
    deleted: bool = False
    undo: bool = False
    """What was last done is to be taken back: a thing that was just deleted is what "undo that" is about."""
    indefinite: bool = False
    """"a page" is yet to be made, or any: it points at nothing, and the words in it name nothing."""

    def possessor(self) -> Phrase:
        """What the pronoun in front of it means, where the noun is none of our types: the "it" of "its price"."""
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
        """A noun and nothing that points, counts or describes."""
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
