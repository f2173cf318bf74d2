"""Parses a tool result into plain values.

Results are objects, JSON, YAML or Python literals in a string, MCP content blocks, or plain text. Parsing never raises:
text that cannot be parsed stays text. The YAML parser supports the subset that tools print, in one pass over the lines,
and reads a broken document as far as possible; a full parser takes a hundred times the time budget of `observe` and
rejects output that tools often produce.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeGuard

from inmind.core.json import is_list, is_object

MAX_JSON_CHARS = 4_000_000
"""Longer texts are not parsed as JSON, because parsing would block the agent."""
MAX_YAML_CHARS = 200_000
MAX_LITERAL_CHARS = 50_000
MAX_TABLE_ROWS = 1_000

# JSON inside JSON inside a content block is the deepest nesting seen in real tools.
_MAX_LAYERS = 6
_MAX_NAME_CHARS = 60
# Characters of tables, sentences and code that names do not contain.
_NOT_A_NAME = re.compile(r"[|\t,:;{}\[\]=<>]|  |[.!?]$")
_CLOSING_BRACKETS = {"{": "}", "[": "]"}


def parse_result(result: object) -> Any:
    """Return a tool result as plain values; text that cannot be parsed stays text."""
    return parse_layers(result)[-1]


def parse_layers(result: object) -> list[Any]:
    """Return the result, then each value unwrapped or parsed from it; the last is the value.

    Wrappers have information that the inner value does not have, such as `isError`.
    """
    layers = [result]
    while len(layers) <= _MAX_LAYERS and (inner := _unwrap(layers[-1])) is not None:
        layers.append(inner)
    return layers


def looks_like_json(text: str) -> bool:
    """Return True if the first character can start JSON."""
    return text.lstrip()[:1] in ("{", "[", '"')


def value_for_record(text: str, value: Any) -> Any:
    """A parsed result if it has fields or entries; None for text and numbered lines."""
    if is_object(value) and not looks_like_json(text) and _has_line_numbers(list(value)):
        return None
    return value if (is_object(value) or is_list(value)) and value else None


def _has_line_numbers(keys: Sequence[str]) -> bool:
    """True for consecutive numbers, as in a view of a file."""
    first = int(keys[0]) if len(keys) > 1 and keys[0].isdecimal() and keys[0].isascii() else None
    return first is not None and list(keys) == [str(number) for number in range(first, first + len(keys))]


def parse_name_list(text: str) -> list[str]:
    """Return the names of a text with one name per line, with heading or bullets, else none."""
    lines = [line.strip().strip("-*•").strip() for line in text[:MAX_YAML_CHARS].splitlines() if line.strip()]
    if len(lines) < 2:
        return []
    heading, colon, first = lines[0].partition(":")
    has_heading = bool(colon) and len(heading) < _MAX_NAME_CHARS
    if has_heading:
        lines = [first.strip(), *lines[1:]] if first.strip() else lines[1:]
    elif not all(line.lstrip()[:1] in "-*•" for line in text.splitlines() if line.strip()):
        return []
    plain = all(len(line) <= _MAX_NAME_CHARS and not _NOT_A_NAME.search(line) for line in lines)
    return lines if plain else []


def is_content_blocks(value: object) -> TypeGuard[list[dict[str, Any]]]:
    """Return True for a list of content blocks of MCP or a provider."""
    return is_list(value) and bool(value) and all(is_object(block) and _is_block(block) for block in value)


def _is_block(block: dict[str, Any]) -> bool:
    kind = block.get("type")
    if kind in ("text", "input_text", "output_text"):
        return isinstance(block.get("text"), str) and "id" not in block
    return kind in ("image", "audio", "resource", "resource_link", "image_url", "tool_reference") and "id" not in block


def _unwrap(value: Any) -> Any:
    """Return the value one layer further in, or None if it is not wrapped."""
    if isinstance(value, str):
        return parse_text(value.strip())
    if is_object(value):
        columns, rows = value.get("columns"), value.get("rows")
        if is_list(columns) and is_list(rows) and rows and all(isinstance(column, str) for column in columns):
            return [dict(zip(columns, row, strict=False)) if is_list(row) else row for row in rows[:MAX_TABLE_ROWS]]
        if is_object(value.get("structuredContent")):
            return value["structuredContent"]
        return value["content"] if is_content_blocks(value.get("content")) and "id" not in value else None
    return _join_blocks(value) if is_content_blocks(value) else None


def _join_blocks(blocks: list[dict[str, Any]]) -> Any:
    texts = [part["text"] for part in blocks if isinstance(part.get("text"), str)]
    values = [parse_text(text.strip()) for text in texts] if len(texts) > 1 else []
    if all(value is None for value in values):
        return "\n".join(texts)
    return [text if value is None else value for text, value in zip(texts, values, strict=True)]


@lru_cache(maxsize=4)
def parse_text(text: str) -> Any:
    """Parse a text, or return None.

    Cached, because the fold of an event reads what its observation has parsed. Callers must not modify the value.
    """
    if not text:
        return None
    if _CLOSING_BRACKETS.get(text[0]) == text[-1] or text[0] == text[-1] == '"':
        value = _parse_json(text)
        if value is None and text[0] != '"':
            value = _parse_literal(text)
        if value is not None:
            return value
    return _parse_yaml(text) if len(text) <= MAX_YAML_CHARS and _YAML_START.match(text) else None


def _parse_json(text: str) -> Any:
    if len(text) > MAX_JSON_CHARS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _parse_literal(text: str) -> Any:
    """Parse a Python `repr`."""
    if len(text) > MAX_LITERAL_CHARS:
        return None
    try:
        value = ast.literal_eval(text)
        return json.loads(json.dumps(value))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


# -- YAML -------------------------------------------------------------------------------------------------

_YAML_START = re.compile(
    r"(?:- +)*(?:[\w$@./-]{1,60}(?: [\w$@./-]{1,40}){0,2}|\"[^\"]{1,60}\"|'[^']{1,60}') *:(?: |$)|- +\S", re.MULTILINE
)
_YAML_ITEM = re.compile(r"-(?: +|$)")
_YAML_PAIR = re.compile(r"([\w$@./-]{1,80}(?: [\w$@./()-]{1,40}){0,2}|\"[^\"]{1,80}\"|'[^']{1,80}') *:(?: +|$)(.*)")
_YAML_NUMBER = re.compile(r"[-+]?\d{1,15}(?:\.\d{1,15})?")
_YAML_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None, "~": None, "": None, "[]": [], "{}": {}}


def _parse_yaml(text: str) -> Any:
    """Parse a document in which every line starts an item or pair, or continues a scalar."""
    lines = list(_logical_lines(text.split("\n")))
    try:
        value, end = _parse_node(lines, 0, -1, 0)
    except _RepeatedKey:
        return None
    # Prose that contains a colon is not a document: most of its lines would remain unread.
    return value if end >= len(lines) and (is_object(value) or is_list(value)) else None


class _RepeatedKey(Exception):
    """A key occurs twice: the values after it may belong to another thing."""


def _logical_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield indent and text of each line; a multi-line quoted or block scalar is one line."""
    index = 0
    while index < len(lines):
        body, indent = lines[index].strip(), _indent(lines[index])
        index += 1
        if not body or body.startswith(("# ", "---")):
            continue
        scalar, end = _scalar_text(body), index
        if scalar[:1] in ("'", '"') and not _is_closed(scalar):
            while end < len(lines) and not lines[end].rstrip().endswith(scalar[0]):
                end += 1
            end += 1
            body = " ".join([body, *map(str.strip, lines[index:end])])
        elif scalar in ("|", ">", "|-", ">-", "|+", ">+"):
            while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > indent):
                end += 1
            body = body[: -len(scalar)] + json.dumps("\n".join(map(str.strip, lines[index:end])))
        index = end
        yield indent, body


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _scalar_text(body: str) -> str:
    while match := _YAML_ITEM.match(body):
        body = body[match.end() :]
    pair = _YAML_PAIR.match(body)
    return pair[2] if pair else body


def _is_closed(scalar: str) -> bool:
    quote = scalar[0]
    inner = scalar[1:].replace("\\\\", "").replace("\\" + quote, "") if quote == '"' else scalar[1:].replace("''", "")
    return inner.endswith(quote)


def _parse_node(lines: list[tuple[int, str]], index: int, parent_indent: int, depth: int) -> tuple[Any, int]:
    """Parse the value that starts at a line and is indented deeper than `parent_indent`.

    Returns the value and the index of the line after it.
    """
    if index >= len(lines) or depth > 50:
        return None, index
    indent, body = lines[index]
    if indent <= parent_indent:
        return None, index
    if _YAML_ITEM.match(body):
        return _parse_sequence(lines, index, indent, depth)
    if _YAML_PAIR.match(body):
        return _parse_mapping(lines, index, indent, depth)
    return _parse_scalar(body), index + 1


def _parse_sequence(lines: list[tuple[int, str]], index: int, indent: int, depth: int) -> tuple[list[Any], int]:
    items: list[Any] = []
    while index < len(lines) and lines[index][0] == indent and (match := _YAML_ITEM.match(lines[index][1])):
        body = lines[index][1][match.end() :]
        if body:
            lines[index] = (indent + match.end(), body)
        else:
            index += 1
        value, index = _parse_node(lines, index, indent, depth + 1)
        items.append(value)
    return items, index


def _parse_mapping(lines: list[tuple[int, str]], index: int, indent: int, depth: int) -> tuple[dict[str, Any], int]:
    pairs: dict[str, Any] = {}
    last = ""
    while index < len(lines) and lines[index][0] >= indent:
        line_indent, body = lines[index]
        match = _YAML_PAIR.match(body) if line_indent == indent else None
        if match is None:
            if line_indent == indent:
                break
            if last and isinstance(pairs[last], str):  # a plain scalar continued on the next line
                pairs[last] = f"{pairs[last]} {body}"
            index += 1
            continue
        last, scalar = match[1].strip("\"'"), match[2]
        if last in pairs:
            raise _RepeatedKey
        index += 1
        if scalar:
            pairs[last] = _parse_scalar(scalar)
        elif index < len(lines) and lines[index][0] == indent and _YAML_ITEM.match(lines[index][1]):
            pairs[last], index = _parse_sequence(lines, index, indent, depth + 1)
        else:
            pairs[last], index = _parse_node(lines, index, indent, depth + 1)
    return pairs, index


def _parse_scalar(text: str) -> Any:
    text = text.strip()
    if text.lower() in _YAML_CONSTANTS:
        return _YAML_CONSTANTS[text.lower()]
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        value = _parse_json(text)
        return value if isinstance(value, str) else text[1:-1]
    if _YAML_NUMBER.fullmatch(text):
        if text[:1] in "+0" and text not in ("0", "+") and not text.startswith("0."):
            return text  # 007 must keep its zeros
        return float(text) if "." in text else int(text)
    if _CLOSING_BRACKETS.get(text[0]) == text[-1]:
        value = _parse_json(text)
        if value is None and text[0] == "[" and "[" not in text[1:]:
            return [_parse_scalar(item) for item in text[1:-1].split(",")]
        return text if value is None else value
    return text
