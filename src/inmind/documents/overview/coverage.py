"""What somebody has written on a page, apart from its frame: that is what can cover a conversation.

The comments guide a model that sees the file in every request; they are not content, so a page that has only
headings and comments still counts as empty, in whichever language it was begun. Nor are the lines that memory keeps
there itself: the history may be cut to what somebody has understood of it, not to what was noted by rule.
"""

from __future__ import annotations

import re

from inmind.documents.overview.front_matter import has_front_matter_values, split_front_matter
from inmind.documents.overview.generated_lines import is_own, says_nothing

_COMMENT_OR_UNCLOSED = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def is_maintained(text: str) -> bool:
    """Has anybody written here, be it in the head of the page?"""
    return has_front_matter_values(split_front_matter(text)[0]) or bool(written_part(text))


def written_part(text: str) -> list[str]:
    """Its lines of words: no headings, no comments, no rules, no fields, nothing that memory has entered."""
    lines = map(str.strip, _COMMENT_OR_UNCLOSED.sub("", split_front_matter(text)[1]).splitlines())
    return [line for line in lines if not (says_nothing(line) or line.startswith("#") or is_own(line))]
