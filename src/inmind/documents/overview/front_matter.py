r"""Front matter of a page: YAML between two rules, validated and merged.

Hosts and tools need fields (current task, issues); people and models write prose below them. A page may begin with

    ---
    meta: …            version, last_updated, session_id
    project: …         name, description, tech_stack, key_paths, commands
    current_state: …   status, task, next_actions
    issues: …          a list, each with id, title, severity, status, proposal
    ---

and any other keys. A change keeps comments, order and quotes of everything it does not touch; that is why ruamel.yaml,
an optional extra, is used. Without it front matter is plain text until a caller parses it.

YAML can express more than data: anchors can expand a few lines to gigabytes, and tags can run code in other parsers.
Both are refused before anything is built. YAML 1.1 reads `no` as false, so a text that YAML 1.1 or 1.2 would read as
another type is quoted.

Splitting a page needs no parser, since it is done for every prompt: headings inside front matter are not headings of
the page. A byte order mark and \\r\\n line ends are kept, and written text follows them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import date
from io import StringIO
from typing import Any, TypeGuard

from inmind.core.encoding import to_json
from inmind.core.json import check_json, is_list, is_object
from inmind.errors import InvalidInput

MAX_CHARACTERS = 65_536
MAX_DEPTH = 16

_FIELD = "front_matter"


def parse_front_matter(text: str) -> dict[str, Any] | None:
    """Return the front matter as plain values; None if the page has none."""
    written = _yaml_text(text)
    if written is None:
        return None
    values = _to_json_values(_parse_yaml(written, _require_yaml_parser()))
    _check_fields(values)
    return values


def front_matter_error(text: str) -> str:
    """Return why the front matter cannot be read.

    Empty if it can, or if no parser is installed.
    """
    if _yaml_text(text) is None or _yaml_parser() is None:
        return ""
    try:
        parse_front_matter(text)
    except InvalidInput as error:
        return str(error)
    return ""


def merge_front_matter(text: str, values: Mapping[str, Any]) -> str:
    """Return the page with these values merged into its front matter.

    The rest of the page stays byte for byte. If nothing changes, the page is returned as it is. Invalid values are
    refused as a whole. Front matter keeps its line ends; a new one uses those of the page.
    """
    parser = _require_yaml_parser()
    written = _yaml_text(text) or ""
    head = _parse_yaml(written, parser)
    before = to_json(_to_json_values(head))
    if not is_object(values):
        raise InvalidInput(field=_FIELD, value=values, expected="an object")
    _merge_fields(head, _quote_ambiguous(_to_json_values(values)))
    after = _to_json_values(head)
    _check_fields(after)
    if before == to_json(after):
        return text
    only_comments = all(line.lstrip()[:1] in ("", "#") for line in written.splitlines())
    above = written if only_comments else ""  # the library drops comments that have no key
    dumped = f"---\n{_check_size(above + _dump_yaml(head, after, parser))}---\n"
    mark = BOM if text.startswith(BOM) else ""
    old, body = split_front_matter(text)
    return mark + dumped.replace("\n", line_ending(old if "\n" in old else body)) + body


def _yaml_text(text: str) -> str | None:
    r"""Return the YAML with LF line ends; None if the page has no front matter."""
    match = FRONT_MATTER.match(text)
    return match["yaml"].replace("\r\n", "\n") if match else None


def _require_yaml_parser() -> Any:
    parser = _yaml_parser()
    if parser is None:
        expected = 'the library ruamel.yaml: pip install "inmind[yaml]"'
        raise InvalidInput(field=_FIELD, value=None, expected=expected)
    return parser


def _yaml_parser() -> Any:
    """Return a parser that keeps comments and quotes; None if the library is not installed."""
    try:
        from ruamel.yaml import YAML
    except ImportError:
        return None
    parser: Any = YAML()  # typ="rt" builds only plain data; tags are refused in addition
    parser.preserve_quotes = True
    parser.width = MAX_CHARACTERS  # do not fold long lines
    parser.indent(mapping=2, sequence=4, offset=2)
    return parser


def _parse_yaml(written: str, parser: Any) -> dict[str, Any]:
    """Return the front matter as round-trip values, which remember comments and quotes."""
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import YAMLError

    _check_size(written)
    try:
        _refuse_anchors_and_tags(parser.parse(written))
        value = parser.load(written)
    except (YAMLError, ValueError) as error:  # ValueError: a date that does not exist
        line, reason = _error_line_and_reason(error, written)
        raise InvalidInput(field=_FIELD, value=line, expected=f"YAML ({reason})") from error
    if value is not None and not is_object(value):
        raise InvalidInput(field=_FIELD, value=value, expected="keys with values")
    return CommentedMap() if value is None else value


def _quote_ambiguous(value: Any) -> Any:
    """Quote each text that YAML 1.1 or 1.2 would read as another type."""
    from ruamel.yaml.resolver import implicit_resolvers
    from ruamel.yaml.scalarstring import SingleQuotedScalarString

    if is_object(value):
        return {_quote_ambiguous(key): _quote_ambiguous(item) for key, item in value.items()}
    if is_list(value):
        return [_quote_ambiguous(item) for item in value]
    rules: Any = implicit_resolvers
    is_ambiguous = isinstance(value, str) and any(pattern.match(value) for _, _, pattern, _ in rules)
    return SingleQuotedScalarString(value) if is_ambiguous else value


def _dump_yaml(head: dict[str, Any], values: object, parser: Any) -> str:
    """Return YAML that reads back as the same values.

    The library changes a few control characters.
    """
    dumped = StringIO()
    parser.dump(head, dumped)
    written = dumped.getvalue()
    if to_json(_to_json_values(_parse_yaml(written, parser))) != to_json(values):
        raise InvalidInput(field=_FIELD, value=values, expected="text without control characters")
    return written


def _refuse_anchors_and_tags(events: Iterable[Any]) -> None:
    """Refuse deep nesting, anchors and tags from parser events, before any value is built."""
    deep = -2  # stream and document count as levels
    for event in events:
        kind = type(event).__name__
        deep += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if deep > MAX_DEPTH:
            raise InvalidInput(field=_FIELD, value=f"{deep} levels", expected=f"at most {MAX_DEPTH} levels")
        if getattr(event, "anchor", None) is not None:
            raise InvalidInput(field=_FIELD, value=f"&{event.anchor}", expected="values without anchors and aliases")
        if getattr(event, "tag", None) is not None:
            raise InvalidInput(field=_FIELD, value=str(event.tag), expected="values without tags")


def _check_size(head: str) -> str:
    if len(head) > MAX_CHARACTERS:
        raise InvalidInput(field=_FIELD, value=f"{len(head)} characters", expected=f"at most {MAX_CHARACTERS}")
    return head


def _error_line_and_reason(error: Any, written: str) -> tuple[str, str]:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error).split("\n")[0]
    if mark is None:
        return written, reason
    # If a value is missing, the mark is at the end: the last line with text is reported.
    lines = (line for line in reversed(written.split("\n")[: mark.line + 1]) if line.strip())
    return next(lines, ""), f"line {mark.line + 1}: {reason}"


def _to_json_values(value: Any) -> Any:
    """Return a copy as JSON values; dates become text."""
    copy = _without_dates(value, 0)
    check_json(copy, _FIELD)
    return json.loads(to_json(copy))


def _without_dates(value: Any, depth: int) -> Any:
    if (is_object(value) or is_list(value)) and depth >= MAX_DEPTH:
        raise InvalidInput(field=_FIELD, value=value, expected=f"at most {MAX_DEPTH} levels")
    if is_object(value):
        return {key: _without_dates(item, depth + 1) for key, item in value.items()}
    if is_list(value):
        return [_without_dates(item, depth + 1) for item in value]
    return value.isoformat() if isinstance(value, date) else value


_TEXT, _TEXTS, _OBJECT = "a text", "a list of texts", "an object"

_FIELD_TYPES: Mapping[str, Mapping[str, str]] = {
    "meta": {"version": _TEXT, "last_updated": _TEXT, "session_id": _TEXT},
    "project": {"name": _TEXT, "description": _TEXT, "tech_stack": _OBJECT, "key_paths": _OBJECT, "commands": _OBJECT},
    "current_state": {"status": _TEXT, "task": _TEXT, "next_actions": _TEXTS},
}
_ISSUE_FIELD_TYPES = {"id": _TEXT, "title": _TEXT, "severity": _TEXT, "status": _TEXT, "proposal": _TEXT}


def _check_fields(fields: Mapping[str, Any]) -> None:
    """Raise InvalidInput with the exact field unless each known key has its type.

    Only keys that tools rely on have a type. A missing or null value is valid: front matter is filled in step by step.
    """
    for key, field_types in _FIELD_TYPES.items():
        if fields.get(key) is not None:
            _check_shape(fields[key], field_types, f"{_FIELD}.{key}")
    issues = fields.get("issues")
    if issues is None:
        return
    if not is_list(issues):
        raise InvalidInput(field=f"{_FIELD}.issues", value=issues, expected="a list of objects")
    seen_ids: set[str] = set()
    for index, issue in enumerate(issues):
        _check_shape(issue, _ISSUE_FIELD_TYPES, f"{_FIELD}.issues[{index}]")
        id = str(issue.get("id") or "")
        if not id or id in seen_ids:
            raise InvalidInput(field=f"{_FIELD}.issues[{index}].id", value=issue.get("id"), expected="a unique id")
        seen_ids.add(id)


def _check_shape(value: object, field_types: Mapping[str, str], field: str) -> None:
    if not is_object(value):
        raise InvalidInput(field=field, value=value, expected=_OBJECT)
    for key, expected in field_types.items():
        if value.get(key) is not None and not _fits(value[key], expected):
            raise InvalidInput(field=f"{field}.{key}", value=value[key], expected=expected)


def _fits(value: object, expected: str) -> bool:
    if expected == _OBJECT:
        return is_object(value)
    return is_list(value) and all(map(_is_text, value)) if expected == _TEXTS else _is_text(value)


def _is_text(value: object) -> bool:
    """True for text and for numbers, since YAML reads a version like 1.0 as a number."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _merge_fields(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    """Merge objects recursively and lists of objects by id; everything else is replaced.

    Works in place, because the round-trip values remember how they were written and a copy would not.
    """
    for key, value in values.items():
        held = into.get(key)
        if is_object(held) and is_object(value):
            _merge_fields(held, value)
        elif _have_ids(held) and _have_ids(value):
            known = {to_json(item["id"]): item for item in held}
            for item in value:
                if to_json(item["id"]) in known:
                    _merge_fields(known[to_json(item["id"])], item)
                else:
                    held.append(item)
        else:
            into[key] = value


def _have_ids(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return is_list(value) and bool(value) and all(is_object(item) and _is_text(item.get("id")) for item in value)


# A page may also begin with a rule. The text after it is front matter if its first line, ignoring comments, has a key.
_RULE = r"---[ \t]*+\r?(?:\n|\Z)"


BOM = "\ufeff"


FRONT_MATTER = re.compile(
    rf"{BOM}?+---[ \t]*+\r?\n(?P<yaml>(?:[ \t]*+(?:#.*+)?+\r?\n)*+"
    rf"(?:(?:\{{|[^\s#{{:-][^:\n]*+:(?=\s)).*+\n(?:(?!{_RULE}).*+\n)*+)?+){_RULE}"
)


_EMPTY_FIELD = re.compile(r"""\s*+(?:#.*|[^\s#:][^:]*+:\s*+(?:\[\s*+\]|\{\s*+\}|""|''|null|~)?+\s*+(?:#.*)?)?""")


def split_front_matter(text: str) -> tuple[str, str]:
    """Split a page into front matter and the rest.

    The front matter includes its rules; it is empty or only a byte order mark if there is none.
    """
    match = FRONT_MATTER.match(text)
    end = match.end() if match else len(text) - len(text.removeprefix(BOM))
    return text[:end], text[end:]


def line_ending(text: str) -> str:
    r"""Return the line end of a text: "\\r\\n" if every line ends in it, else "\\n"."""
    return "\r\n" if 0 < text.count("\n") == text.count("\r\n") else "\n"


def has_front_matter_values(head: str) -> bool:
    """True if any key has a value. Uses no parser, since it runs for every page."""
    return not all(_EMPTY_FIELD.fullmatch(line) for line in head.splitlines()[1:-1])
