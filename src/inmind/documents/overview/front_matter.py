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

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from io import StringIO
from typing import Any, Protocol, TypeGuard, cast

from inmind.core.encoding import to_json
from inmind.core.json import is_list, is_object
from inmind.documents.document import validate_text
from inmind.errors import InvalidInput

MAX_CHARACTERS = 65_536

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
    ruamel = _require_yaml_parser()
    written = _yaml_text(text) or ""
    head = _parse_yaml(written, ruamel)
    before = _to_json_values(head)
    if not is_object(values):
        raise InvalidInput(field=_FIELD, value=values, expected="an object")
    _merge_fields(head, _quote_ambiguous(_to_json_values(values)))
    after = _to_json_values(head)
    _check_fields(after)
    if to_json(before) == to_json(after):
        return text
    only_comments = all(line.lstrip()[:1] in ("", "#") for line in written.splitlines())
    above = written if only_comments else ""  # the library drops comments that have no key
    dumped = f"---\n{_check_size(above + _dump_yaml(head, after, ruamel))}---\n"
    mark = BOM if text.startswith(BOM) else ""
    old, body = split_front_matter(text)
    return mark + dumped.replace("\n", line_ending(old if "\n" in old else body)) + body


def _yaml_text(text: str) -> str | None:
    r"""Return the YAML with LF line ends; None if the page has no front matter."""
    match = FRONT_MATTER.match(text)
    return match["yaml"].replace("\r\n", "\n") if match else None


class _YamlParser(Protocol):
    """The part of ruamel.yaml that is used."""

    def parse(self, stream: str) -> Iterable[object]: ...
    def load(self, stream: str) -> Any: ...
    def dump(self, data: Any, stream: StringIO) -> None: ...


def _require_yaml_parser() -> _YamlParser:
    ruamel = _yaml_parser()
    if ruamel is None:
        expected = 'the library ruamel.yaml: pip install "inmind[yaml]"'
        raise InvalidInput(field=_FIELD, value=None, expected=expected)
    return ruamel


def _yaml_parser() -> _YamlParser | None:
    try:
        from ruamel.yaml import YAML
    except ImportError:
        return None
    ruamel = YAML()  # typ="rt" builds only plain data; tags are refused in addition
    ruamel.preserve_quotes = True
    ruamel.width = MAX_CHARACTERS  # do not fold long lines
    ruamel.indent(mapping=2, sequence=4, offset=2)
    return cast(_YamlParser, ruamel)


def _parse_yaml(written: str, ruamel: _YamlParser) -> dict[str, Any]:
    """Return the front matter as round-trip values, which remember comments and quotes."""
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import YAMLError

    _check_size(written)
    try:
        _refuse_anchors_and_tags(ruamel.parse(written))
        value = ruamel.load(written)
    except (YAMLError, ValueError) as error:  # ValueError: a date that does not exist
        line, reason = _error_line_and_reason(error, written)
        raise InvalidInput(field=_FIELD, value=line, expected=f"YAML ({reason})") from error
    if value is not None and not is_object(value):
        raise InvalidInput(field=_FIELD, value=value, expected="keys with values")
    return CommentedMap() if value is None else value


def _quote_ambiguous(value: Any) -> Any:
    """Quote each text that YAML 1.1 or 1.2 would read as another type."""
    from ruamel.yaml.scalarstring import SingleQuotedScalarString

    if is_object(value):
        return {_quote_ambiguous(key): _quote_ambiguous(item) for key, item in value.items()}
    if is_list(value):
        return [_quote_ambiguous(item) for item in value]
    return SingleQuotedScalarString(value) if isinstance(value, str) and _is_ambiguous(value) else value


def _is_ambiguous(text: str) -> bool:
    from ruamel.yaml.resolver import implicit_resolvers

    rules = cast(Iterable[tuple[object, object, re.Pattern[str], object]], implicit_resolvers)
    return any(pattern.match(text) for _, _, pattern, _ in rules)


def _dump_yaml(head: dict[str, Any], values: object, ruamel: _YamlParser) -> str:
    """Return YAML that reads back as the same values.

    The library changes a few control characters.
    """
    dumped = StringIO()
    ruamel.dump(head, dumped)
    written = dumped.getvalue()
    if to_json(_to_json_values(_parse_yaml(written, ruamel))) != to_json(values):
        raise InvalidInput(field=_FIELD, value=values, expected="text without control characters")
    return written


def _refuse_anchors_and_tags(events: Iterable[Any]) -> None:
    """Refuse deep nesting, anchors and tags from parser events, before any value is built."""
    deep = -2  # stream and document count as levels
    for event in events:
        kind = type(event).__name__
        deep += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if deep > MAX_DEPTH:
            raise InvalidInput(field=_FIELD, value=f"{deep} levels", expected=f"at most {MAX_DEPTH} levels")
        if anchor is not None:
            raise InvalidInput(field=_FIELD, value=f"&{anchor}", expected="values without anchors and aliases")
        if tag is not None:
            raise InvalidInput(field=_FIELD, value=str(tag), expected="values without tags")


def _check_size(head: str) -> str:
    if len(head) > MAX_CHARACTERS:
        raise InvalidInput(field=_FIELD, value=f"{len(head)} characters", expected=f"at most {MAX_CHARACTERS}")
    return head


def _error_line_and_reason(error: Any, written: str) -> tuple[str, str]:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error).split("\n")[0]
    if mark is None:
        return written, reason
    lines_to_mark = written.split("\n")[: mark.line + 1]
    # If a value is missing, the mark is at the end: the last line with text is reported.
    lines = (line for line in reversed(lines_to_mark) if line.strip())
    return next(lines, ""), f"line {mark.line + 1}: {reason}"


def _to_json_values(value: Any, field: str = _FIELD, depth: int = 0) -> Any:
    """Return a copy as JSON values; dates become text.

    Raises InvalidInput with the path of any other value.
    """
    if (is_object(value) or is_list(value)) and depth >= MAX_DEPTH:
        raise InvalidInput(field=field, value=value, expected=f"at most {MAX_DEPTH} levels")
    if is_object(value):
        keys = [_check_key(key, field) for key in value]
        return {str(key): _to_json_values(value[key], f"{field}.{key}", depth + 1) for key in keys}
    if is_list(value):
        return [_to_json_values(item, f"{field}[{place}]", depth + 1) for place, item in enumerate(value)]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(field=field, value=value, expected="a finite number")
    if isinstance(value, str):
        return str(validate_text(value, field=field))
    for kind in (bool, int, float):  # the library uses subclasses of these
        if isinstance(value, kind):
            return kind(value)
    if value is not None:
        raise InvalidInput(field=field, value=value, expected="a JSON value")
    return None


MAX_DEPTH = 16


def _check_key(key: object, field: str) -> str:
    if not isinstance(key, str):
        raise InvalidInput(field=field, value=key, expected="keys that are text")
    return validate_text(key, field=field)


FieldTypes = Mapping[str, str]


_TEXT, _TEXTS, _OBJECT = "a text", "a list of texts", "an object"


_FIELD_TYPES: Mapping[str, FieldTypes] = {
    "meta": {"version": _TEXT, "last_updated": _TEXT, "session_id": _TEXT},
    "project": {"name": _TEXT, "description": _TEXT, "tech_stack": _OBJECT, "key_paths": _OBJECT, "commands": _OBJECT},
    "current_state": {"status": _TEXT, "task": _TEXT, "next_actions": _TEXTS},
}


_ISSUE_FIELD_TYPES: FieldTypes = {"id": _TEXT, "title": _TEXT, "severity": _TEXT, "status": _TEXT, "proposal": _TEXT}


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
        if not _is_id(issue.get("id")) or str(issue["id"]) in seen_ids:
            raise InvalidInput(field=f"{_FIELD}.issues[{index}].id", value=issue.get("id"), expected="a unique id")
        seen_ids.add(str(issue["id"]))


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


def _check_shape(value: object, field_types: FieldTypes, field: str) -> None:
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


def _is_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _have_ids(value: object) -> TypeGuard[list[dict[str, Any]]]:
    return is_list(value) and bool(value) and all(is_object(item) and _is_id(item.get("id")) for item in value)


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
