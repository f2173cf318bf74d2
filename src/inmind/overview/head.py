"""Where the head of a page ends, told by its lines alone.

Every page is asked this, on the way of every prompt: the headings of a page are not those in its head, and a head that
says something is content. What it says is read by `front_matter`, with a parser, for whoever wants to know.
"""

from __future__ import annotations

import re

# A page may also begin with a rule. What follows it is a head if the first line of it, but for comments, has a key.
_RULE = r"---[ \t]*+\r?(?:\n|\Z)"
HEAD = re.compile(
    rf"---[ \t]*+\r?\n(?P<yaml>(?:[ \t]*+(?:#.*+)?+\r?\n)*+"
    rf"(?:(?:\{{|[^\s#{{:-][^:\n]*+:(?=\s)).*+\n(?:(?!{_RULE}).*+\n)*+)?+){_RULE}"
)
_NOTHING = re.compile(r"""\s*+(?:#.*|[^\s#:][^:]*+:\s*+(?:\[\s*+\]|\{\s*+\}|""|''|null|~)?+\s*+(?:#.*)?)?""")


def parted(text: str) -> tuple[str, str]:
    """The head of a page with the rules around it, empty where there is none; and all the rest."""
    match = HEAD.match(text)
    return (match.group(), text[match.end() :]) if match else ("", text)


def has_values(head: str) -> bool:
    """Does a head say anything, beside keys that hold nothing yet? Told without a parser, since any page is asked."""
    return not all(_NOTHING.fullmatch(line) for line in head.splitlines()[1:-1])
