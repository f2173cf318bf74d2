"""A sentence as patterns look at it, and patterns as lists of forms."""

from __future__ import annotations

from inmind.core.language.prose import compiled


def plain(sentence: str) -> str:
    """In small letters, with one kind of apostrophe, and without what is only quoted: that is somebody else's word."""
    return compiled(_QUOTED).sub(" ", sentence).strip().lower().replace("’", "'")


def any_of(*forms: str) -> str:
    """A pattern for whichever of them."""
    return f"(?:{'|'.join(forms)})"


_QUOTED = '"[^"]*"|“[^”]*”|「[^」]*」|`[^`]*`'
