"""What a tool answered, as a value, whichever way it was written down.

Tools answer with objects, with JSON or YAML or a Python literal in a string, with MCP content blocks, or with plain
words. This only reads: it never raises, and what it cannot read stays the text that it is. The YAML here is the
part of it that tools print, read in one pass over the lines, and a broken document is read as far as it goes; a
full parser takes a hundred times the time that `observe` has, and refuses what an agent's tools often answer.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeGuard

MOST_JSON = 4_000_000
"""Characters of a text that are still read as JSON: parsing more would hold up the agent."""
MOST_YAML = 200_000
MOST_LITERAL = 50_000
MOST_ROWS = 1_000

# JSON inside JSON inside a content block is as deep as real tools go.
_DEEPEST = 6
_LONGEST_LINE = 60
# What a table, a sentence or a line of code has and a name has not.
_NO_LINE = re.compile(r"[|\t,:;{}\[\]=<>]|  |[.!?]$")
_OPENING = {"{": "}", "[": "]"}


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def read(result: object) -> Any:
    """A tool's result as plain values; a text that is nothing else stays a text."""
    return readings(result)[-1]


def readings(result: object) -> list[Any]:
    """A result as it came, then what it is written down or wrapped around, and so on inwards: the last is the value.

    Wrappers say things of their own: that a call failed is known by none of what is inside of `isError`.
    """
    found = [result]
    while len(found) <= _DEEPEST and (inside := _inside(found[-1])) is not None:
        found.append(inside)
    return found


def looks_like_json(text: str) -> bool:
    """By its first character: whatever else is read is written in words that people may have meant as words."""
    return text.lstrip()[:1] in ("{", "[", '"')


def listed(text: str) -> list[str]:
    """The names in a text that has one on each line, under a heading or behind bullets; none for any other text."""
    lines = [line.strip().strip("-*•").strip() for line in text[:MOST_YAML].splitlines() if line.strip()]
    if len(lines) < 2:
        return []
    heading, colon, first = lines[0].partition(":")
    headed = bool(colon) and len(heading) < _LONGEST_LINE
    if headed:
        lines = [first.strip(), *lines[1:]] if first.strip() else lines[1:]
    elif not all(line.lstrip()[:1] in "-*•" for line in text.splitlines() if line.strip()):
        return []
    plain = all(len(line) <= _LONGEST_LINE and not _NO_LINE.search(line) for line in lines)
    return lines if plain else []


def is_content(value: object) -> TypeGuard[list[dict[str, Any]]]:
    """Content blocks, as MCP and the providers have them."""
    return is_list(value) and bool(value) and all(is_object(part) and _is_block(part) for part in value)


def _is_block(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text"):
        return isinstance(part.get("text"), str) and "id" not in part
    return kind in ("image", "audio", "resource", "resource_link", "image_url", "tool_reference") and "id" not in part


def _inside(value: Any) -> Any:
    """What is in it, one step further; None where it is the value itself."""
    if isinstance(value, str):
        return _written_in(value.strip())
    if is_object(value):
        columns, rows = value.get("columns"), value.get("rows")
        if is_list(columns) and is_list(rows) and rows and all(isinstance(column, str) for column in columns):
            return [dict(zip(columns, row, strict=False)) if is_list(row) else row for row in rows[:MOST_ROWS]]
        if is_object(value.get("structuredContent")):
            return value["structuredContent"]
        return value["content"] if is_content(value.get("content")) and "id" not in value else None
    return _contained(value) if is_content(value) else None


def _contained(parts: list[dict[str, Any]]) -> Any:
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
    values = [_written_in(text.strip()) for text in texts] if len(texts) > 1 else []
    if all(value is None for value in values):
        return "\n".join(texts)
    return [text if value is None else value for text, value in zip(texts, values, strict=True)]


def _written_in(text: str) -> Any:
    if not text:
        return None
    if _OPENING.get(text[0]) == text[-1] or text[0] == text[-1] == '"':
        value = _json(text)
        if value is None and text[0] != '"':
            value = _literal(text)
        if value is not None:
            return value
    return _yaml(text) if len(text) <= MOST_YAML and _YAML_LINE.match(text) else None


def _json(text: str) -> Any:
    if len(text) > MOST_JSON:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _literal(text: str) -> Any:
    """A Python object as its `repr`: what a tool prints that was written in a hurry."""
    if len(text) > MOST_LITERAL:
        return None
    try:
        value = ast.literal_eval(text)
        return json.loads(json.dumps(value))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


# -- YAML -------------------------------------------------------------------------------------------------

_YAML_LINE = re.compile(
    r"(?:- +)*(?:[\w$@./-]{1,60}(?: [\w$@./-]{1,40}){0,2}|\"[^\"]{1,60}\"|'[^']{1,60}') *:(?: |$)|- +\S", re.MULTILINE
)
_ITEM = re.compile(r"-(?: +|$)")
_PAIR = re.compile(r"([\w$@./-]{1,80}(?: [\w$@./()-]{1,40}){0,2}|\"[^\"]{1,80}\"|'[^']{1,80}') *:(?: +|$)(.*)")
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None, "[]": [], "{}": {}}


@lru_cache(maxsize=4)
def _yaml(text: str) -> Any:
    """The value of a document whose every line begins an item, a pair, or goes on with the last scalar.

    Remembered, since several ask the same outcome, one right after the other; nobody changes what was read.
    """
    lines = list(_folded(text.split("\n")))
    if not any(_PAIR.match(body) or _ITEM.match(body) for _, body in lines):
        return None
    value, rest = _node(lines, 0, -1, 0)
    # Prose with a colon in it is no document: most of its lines would be left over.
    return value if rest >= len(lines) and (is_object(value) or is_list(value)) else None


def _folded(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Indent and text of each line; a quoted scalar over several lines, or a block scalar, is one."""
    place = 0
    while place < len(lines):
        line = lines[place]
        place += 1
        body = line.strip()
        if not body or body.startswith(("# ", "---")):
            continue
        indent = len(line) - len(line.lstrip(" "))
        scalar = _scalar_of(body)
        if scalar[:1] in ("'", '"') and not _closed(scalar):
            parts = [body]
            while place < len(lines) and not lines[place].rstrip().endswith(scalar[0]):
                parts.append(lines[place].strip())
                place += 1
            if place < len(lines):
                parts.append(lines[place].strip())
                place += 1
            body = " ".join(parts)
        elif scalar in ("|", ">", "|-", ">-", "|+", ">+"):
            parts: list[str] = []
            while place < len(lines) and (
                not lines[place].strip() or len(lines[place]) - len(lines[place].lstrip(" ")) > indent
            ):
                parts.append(lines[place].strip())
                place += 1
            body = body[: -len(scalar)] + json.dumps("\n".join(parts))
        yield indent, body


def _scalar_of(body: str) -> str:
    while match := _ITEM.match(body):
        body = body[match.end() :]
    pair = _PAIR.match(body)
    return pair[2] if pair else body


def _closed(scalar: str) -> bool:
    quote = scalar[0]
    inner = scalar[1:].replace("\\\\", "").replace("\\" + quote, "") if quote == '"' else scalar[1:].replace("''", "")
    return inner.endswith(quote)


def _node(lines: list[tuple[int, str]], place: int, above: int, depth: int) -> tuple[Any, int]:
    """The value that begins at a line and stands deeper than `above`; and the line behind it."""
    if place >= len(lines) or depth > 50:
        return None, place
    indent, body = lines[place]
    if indent <= above:
        return None, place
    if _ITEM.match(body):
        return _sequence(lines, place, indent, depth)
    if _PAIR.match(body):
        return _mapping(lines, place, indent, depth)
    return _scalar(body), place + 1


def _sequence(lines: list[tuple[int, str]], place: int, indent: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while place < len(lines) and lines[place][0] == indent and (match := _ITEM.match(lines[place][1])):
        body = lines[place][1][match.end() :]
        if not body:
            value, place = _node(lines, place + 1, indent, depth + 1)
        else:
            inner = indent + match.end()
            lines[place] = (inner, body)
            value, place = _node(lines, place, indent, depth + 1)
        items.append(value)
    return items, place


def _mapping(lines: list[tuple[int, str]], place: int, indent: int, depth: int) -> tuple[dict[str, Any], int]:
    pairs: dict[str, Any] = {}
    last = ""
    while place < len(lines) and lines[place][0] >= indent:
        at, body = lines[place]
        match = _PAIR.match(body) if at == indent else None
        if match is None:
            if at == indent:
                break
            if last and isinstance(pairs[last], str):  # a plain scalar that goes on in the next line
                pairs[last] = f"{pairs[last]} {body}"
            place += 1
            continue
        last, scalar = match[1].strip("\"'"), match[2]
        place += 1
        if scalar:
            pairs[last] = _scalar(scalar)
        elif place < len(lines) and lines[place][0] == indent and _ITEM.match(lines[place][1]):
            pairs[last], place = _sequence(lines, place, indent, depth + 1)
        else:
            pairs[last], place = _node(lines, place, indent, depth + 1)
    return pairs, place


def _scalar(text: str) -> Any:
    text = text.strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        value = _json(text)
        return value if isinstance(value, str) else text[1:-1]
    if _NUMBER.fullmatch(text):
        if text[:1] in "+0" and text not in ("0", "+") and not text.startswith("0."):
            return text  # 007 is no number, or not only
        return float(text) if "." in text else int(text)
    if _OPENING.get(text[0]) == text[-1]:
        value = _json(text)
        if value is None and text[0] == "[" and "[" not in text[1:]:
            return [_scalar(item) for item in text[1:-1].split(",")]
        return text if value is None else value
    return text
