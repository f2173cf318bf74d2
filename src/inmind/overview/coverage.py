"""What somebody has written on a page, apart from its frame: that is what can cover a conversation."""

from __future__ import annotations

import re

from inmind.overview.head import parted
from inmind.overview.own import is_own

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def written_part(text: str) -> list[str]:
    """Its lines of words: no headings, no comments, no fields, nothing that memory has entered."""
    lines = _COMMENT.sub("", parted(text)[1]).splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#") and not is_own(line)]
