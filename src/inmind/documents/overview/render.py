"""What of a page stands in the prompt: all that somebody has written, and not the comments that came with it.

They tell whoever opens the file what belongs where. In a prompt they would be paid for on every call, and the headings
say the same in a fifth of the tokens. Comments that somebody else has written are content like any other line.
"""

from __future__ import annotations

import re
from functools import cache

from inmind.documents.overview.front_matter import BOM
from inmind.documents.overview.template import LANGUAGES, template

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def as_shown(text: str) -> str:
    """The page without its guiding comments, and without the blank lines that were only there for them.

    Nor does it matter to a model what its lines end in.
    """
    return _guiding().sub("", text.removeprefix(BOM).replace("\r\n", "\n")).strip("\n")


@cache
def _guiding() -> re.Pattern[str]:
    """The comments of every template, word for word, each with the line ends behind it."""
    said = (comment for language in LANGUAGES for comment in _COMMENT.findall(template(language)))
    return re.compile(rf"(?:{'|'.join(map(re.escape, said))})\n*")
