"""Where the head of a page ends, told by its lines alone.

Every page is asked this, on the way of every prompt: the headings of a page are not those in its head, and a head that
says something is content. What it says is read by `front_matter`, with a parser, for whoever wants to know.

Some editors begin a file with a mark and end its lines in two characters. Both are whose page it is to choose: they are
read past, and what is written on the page comes as the rest of it is.
"""

from __future__ import annotations

import re

# A page may also begin with a rule. What follows it is a head if the first line of it, but for comments, has a key.
_RULE = r"---[ \t]*+\r?(?:\n|\Z)"
BOM = "\ufeff"
HEAD = re.compile(
    rf"{BOM}?+---[ \t]*+\r?\n(?P<yaml>(?:[ \t]*+(?:#.*+)?+\r?\n)*+"
    rf"(?:(?:\{{|[^\s#{{:-][^:\n]*+:(?=\s)).*+\n(?:(?!{_RULE}).*+\n)*+)?+){_RULE}"
)
_NOTHING = re.compile(r"""\s*+(?:#.*|[^\s#:][^:]*+:\s*+(?:\[\s*+\]|\{\s*+\}|""|''|null|~)?+\s*+(?:#.*)?)?""")


def parted(text: str) -> tuple[str, str]:
    """The head of a page with the rules around it, or only the mark, or nothing; and all the rest."""
    match = HEAD.match(text)
    end = match.end() if match else len(text) - len(text.removeprefix(BOM))
    return text[:end], text[end:]


def line_end(text: str) -> str:
    """What ends the lines of a page: "\\r\\n" where it ends every one."""
    return "\r\n" if 0 < text.count("\n") == text.count("\r\n") else "\n"


def has_values(head: str) -> bool:
    """Does a head say anything, beside keys that hold nothing yet? Told without a parser, since any page is asked."""
    return not all(_NOTHING.fullmatch(line) for line in head.splitlines()[1:-1])
