"""What of a page stands in the prompt: all that somebody has written, and not the comments that came with it.

They tell whoever opens the file what belongs where. In a prompt they would be paid for on every call, and the headings
say the same in a fifth of the tokens. Comments that somebody else has written are content like any other line.
"""

from __future__ import annotations

import re
from functools import cache

from inmind.documents.overview.front_matter import BOM, has_front_matter_values, split_front_matter
from inmind.documents.overview.generated_lines import has_no_words, is_generated
from inmind.documents.overview.template import LANGUAGES, template

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def prompt_text(text: str) -> str:
    """The page without its guiding comments, and without the blank lines that were only there for them.

    Nor does it matter to a model what its lines end in.
    """
    return _guide_comments().sub("", text.removeprefix(BOM).replace("\r\n", "\n")).strip("\n")


@cache
def _guide_comments() -> re.Pattern[str]:
    """The comments of every template, word for word, each with the line ends behind it."""
    said = (comment for language in LANGUAGES for comment in _COMMENT.findall(template(language)))
    return re.compile(rf"(?:{'|'.join(map(re.escape, said))})\n*")


_ANY_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def is_maintained(text: str) -> bool:
    """Has anybody written here, be it in the head of the page?"""
    return has_front_matter_values(split_front_matter(text)[0]) or bool(written_lines(text))


def written_lines(text: str) -> list[str]:
    """Its lines of words: no headings, no comments, no rules, no fields, nothing that memory has entered."""
    lines = map(str.strip, _ANY_COMMENT.sub("", split_front_matter(text)[1]).splitlines())
    return [line for line in lines if not (has_no_words(line) or line.startswith("#") or is_generated(line))]
