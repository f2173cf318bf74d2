"""The structured head of a page: YAML between two rules, checked and merged, while the text below it stays free.

Hosts and tools want fields (which task, which issues), people and models want prose; so a page may begin with

    ---
    meta: …            version, last_updated, session_id
    project: …         name, description, tech_stack, key_paths, commands
    current_state: …   status, task, next_actions
    issues: …          a list, each with id, title, severity, status, proposal
    ---

and any other key is somebody's own. A change keeps the comments, the order and the quotes of what it does not touch;
that is what ruamel.yaml is for, an extra. Without it a head is text like any other, until somebody asks what it says.
YAML can say more than data: anchors, which a few lines grow into gigabytes with, and tags, which other readers run;
both are refused, unread. And two versions of it are in use, in the older of which `no` is false: a text that either
would take for something else is written in quotes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import date
from io import StringIO
from typing import Any, Protocol, cast

from inmind.core.encoding import to_json
from inmind.documents.overview.fields import check_fields, merge
from inmind.documents.overview.head import BOM, HEAD, line_end, parted
from inmind.documents.overview.values import DEEPEST, checked_key, checked_object, is_list, is_object
from inmind.errors import InvalidInput

MOST_CHARACTERS = 65_536

_FIELD = "front_matter"


def front_matter(text: str) -> dict[str, Any] | None:
    """What the head of a page says, as plain values; None where there is none."""
    written = _written(text)
    if written is None:
        return None
    said = _plain(_read(written, _reader()))
    check_fields(said, field=_FIELD)
    return said


def misread(text: str) -> str:
    """Why the head of a page cannot be read, for whoever wrote it; empty where it can, or nobody here could tell."""
    if _written(text) is None or _ruamel() is None:
        return ""
    try:
        front_matter(text)
    except InvalidInput as error:
        return str(error)
    return ""


def with_front_matter(text: str, values: Mapping[str, Any]) -> str:
    """The page with these values merged into its head. Every byte behind the head stays.

    Where nothing changes the page is the same, and what would not be valid is refused whole. A head keeps its line
    ends; a new one has those of the page.
    """
    ruamel = _reader()
    written = _written(text) or ""
    head = _read(written, ruamel)
    before = _plain(head)
    merge(head, _quoted(checked_object(values, field=_FIELD)))
    after = _plain(head)
    check_fields(after, field=_FIELD)
    if to_json(before) == to_json(after):
        return text
    alone = all(line.lstrip()[:1] in ("", "#") for line in written.splitlines())
    above = written if alone else ""  # comments without a key are forgotten by the library
    dumped = f"---\n{_within_size(above + _dumped(head, after, ruamel))}---\n"
    mark = BOM if text.startswith(BOM) else ""
    old, behind = parted(text)
    return mark + dumped.replace("\n", line_end(old if "\n" in old else behind)) + behind


def _written(text: str) -> str | None:
    """The YAML of a head, its lines plainly ended; None where there is no head."""
    match = HEAD.match(text)
    return match["yaml"].replace("\r\n", "\n") if match else None


class _Yaml(Protocol):
    """What ruamel.yaml offers, as far as it is asked."""

    def parse(self, stream: str) -> Iterable[object]: ...
    def load(self, stream: str) -> Any: ...
    def dump(self, data: Any, stream: StringIO) -> None: ...


def _reader() -> _Yaml:
    ruamel = _ruamel()
    if ruamel is None:
        expected = 'the library ruamel.yaml, which the extra brings: pip install "inmind[yaml]"'
        raise InvalidInput(field=_FIELD, value=None, expected=expected)
    return ruamel


def _ruamel() -> _Yaml | None:
    try:
        from ruamel.yaml import YAML
    except ImportError:
        return None
    ruamel = YAML()  # typ="rt": it builds plain data only, whatever the tags say; those are refused all the same
    ruamel.preserve_quotes = True
    ruamel.width = MOST_CHARACTERS  # a line that a person wrote is not folded
    ruamel.indent(mapping=2, sequence=4, offset=2)
    return cast(_Yaml, ruamel)


def _read(written: str, ruamel: _Yaml) -> dict[str, Any]:
    """The head as values that remember how they were written."""
    from ruamel.yaml.comments import CommentedMap
    from ruamel.yaml.error import YAMLError

    _within_size(written)
    try:
        _refuse_what_acts(ruamel.parse(written))
        value = ruamel.load(written)
    except (YAMLError, ValueError) as error:  # of a date that there is none of, Python says so
        line, reason = _place_and_reason(error, written)
        raise InvalidInput(field=_FIELD, value=line, expected=f"YAML ({reason})") from error
    if value is not None and not is_object(value):
        raise InvalidInput(field=_FIELD, value=value, expected="keys with values")
    return CommentedMap() if value is None else value


def _quoted(value: Any) -> Any:
    """The same, with quotes around each text that a reader of YAML 1.1 or 1.2 would take for something else."""
    from ruamel.yaml.scalarstring import SingleQuotedScalarString

    if is_object(value):
        return {_quoted(key): _quoted(item) for key, item in value.items()}
    if is_list(value):
        return [_quoted(item) for item in value]
    return SingleQuotedScalarString(value) if isinstance(value, str) and _is_taken_for_another(value) else value


def _is_taken_for_another(text: str) -> bool:
    from ruamel.yaml.resolver import implicit_resolvers

    rules = cast(Iterable[tuple[object, object, re.Pattern[str], object]], implicit_resolvers)
    return any(pattern.match(text) for _, _, pattern, _ in rules)


def _dumped(head: dict[str, Any], said: object, ruamel: _Yaml) -> str:
    """The head as YAML that says the same when it is read: of a few control characters the library makes others."""
    dumped = StringIO()
    ruamel.dump(head, dumped)
    written = dumped.getvalue()
    if to_json(_plain(_read(written, ruamel))) != to_json(said):
        raise InvalidInput(field=_FIELD, value=said, expected="text without control characters")
    return written


def _refuse_what_acts(events: Iterable[Any]) -> None:
    """Looked for among what the parser sees, before anything is built of it."""
    deep = -2  # the stream and the document are levels too
    for event in events:
        kind = type(event).__name__
        deep += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
        if deep > DEEPEST:
            raise InvalidInput(field=_FIELD, value=f"{deep} levels", expected=f"at most {DEEPEST} levels")
        if anchor is not None:
            raise InvalidInput(field=_FIELD, value=f"&{anchor}", expected="values without anchors and aliases")
        if tag is not None:
            raise InvalidInput(field=_FIELD, value=str(tag), expected="values without tags")


def _within_size(head: str) -> str:
    if len(head) > MOST_CHARACTERS:
        raise InvalidInput(field=_FIELD, value=f"{len(head)} characters", expected=f"at most {MOST_CHARACTERS}")
    return head


def _place_and_reason(error: Any, written: str) -> tuple[str, str]:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error).split("\n")[0]
    if mark is None:
        return written, reason
    upto = written.split("\n")[: mark.line + 1]
    said = (line for line in reversed(upto) if line.strip())  # where something is missing, the mark is behind it all
    return next(said, ""), f"line {mark.line + 1}: {reason}"


def _plain(value: Any, field: str = _FIELD) -> Any:
    """The same as JSON has it; a date becomes the text that it is."""
    if is_object(value):
        keys = [checked_key(key, field=field) for key in value]
        return {str(key): _plain(value[key], f"{field}.{key}") for key in keys}
    if is_list(value):
        return [_plain(item, f"{field}[{place}]") for place, item in enumerate(value)]
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(field=field, value=value, expected="a number that JSON has")
    for kind in (bool, int, float, str):  # the library has kinds of its own of these
        if isinstance(value, kind):
            return kind(value)
    return None
