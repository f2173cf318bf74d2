"""A call of a host tool, parsed once for every subject, and whether it failed.

A failed call adds no entities, and an entity whose deletion failed is not marked as deleted. Providers have a field for
errors; tools report them in text. A result about failures (a failed build, a guide to errors) is not a failed call.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from inmind.core.events.session import ToolObserved
from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
from inmind.core.language.languages import result_words
from inmind.core.parse_result import looks_like_json, parse_layers

_MAX_SENTENCE_CHARS = 300
"""Length of text in which a failure is reported."""


@frozen(kw_only=True)
class ToolOutcome:
    """A call of a host tool and its result, as values."""

    tool: str
    arguments: Any = None
    value: Any = None
    """The parsed result."""
    result: Any = None
    """The result as it is quoted: plain text as it is, even if it could be parsed as YAML ("Error: disk full")."""
    failed: bool = False
    exit_code: int = 0
    observed: ToolObserved | None = None
    """What the host reported."""


def read_outcome(observed: ToolObserved) -> ToolOutcome:
    """Parse a reported call."""
    layers = parse_layers(observed.result)
    texts = (layer for layer in layers if isinstance(layer, str) and not looks_like_json(layer))
    return ToolOutcome(
        tool=observed.tool,
        arguments=_parse_arguments(observed.arguments),
        value=layers[-1],
        result=next(texts, layers[-1]),
        failed=observed.error or any(map(reports_failure, layers)),
        exit_code=exit_code(layers[-1]),
        observed=observed,
    )


def _parse_arguments(arguments: Any) -> Any:
    """Arguments as values.

    In the conversation they are JSON text, and lists in them may be JSON text again.
    """
    parsed = _parse_argument(arguments)
    if not is_object(parsed):
        return parsed
    lists = {key: _parse_argument(item) for key, item in parsed.items() if isinstance(item, str) and item[:1] == "["}
    return parsed | lists


def _parse_argument(value: Any) -> Any:
    """Parse text. Fields named "content" in it are not unwrapped, unlike in a tool result."""
    return next((layer for layer in parse_layers(value) if not isinstance(layer, str)), value)


def is_failure(result: object) -> bool:
    """Return True if a result says that the call failed, in any of its layers."""
    if isinstance(result, str) and not (looks_like_json(result) or _OUTCOME_LINE.search(result)):
        return reports_failure(result)  # callers check whole conversations, and parsing YAML is slow
    return any(map(reports_failure, parse_layers(result)))


def reports_failure(value: object) -> bool:
    """Return True if one parsed layer of a result says that the call failed."""
    if isinstance(value, str):
        head = value[:_MAX_SENTENCE_CHARS]
        return bool(failure_pattern().match(head) or (len(value) < _MAX_SENTENCE_CHARS and _refusal().match(head)))
    if not is_object(value) or _OUTCOME_KEYS.isdisjoint(value):
        return False
    if value.get("isError") is True or value.get("is_error") is True:
        return True
    if any(value.get(flag) in (False, "false") for flag in SUCCESS_KEYS):
        return True
    if any(value.get(field) for field in ("error", "exception")) and not value.get("success"):
        return True
    data = value.get("data")
    has_data = any(item is not None for item in data.values()) if is_object(data) else data is not None
    if value.get("errors") and not has_data:  # GraphQL returns errors together with partial data
        return "data" in value or not any(is_object(item) or item is True for item in value.values())
    # An object with a failed status, such as a build, is not a failed call.
    has_little_else = "id" not in value or len(value) < 4
    if has_little_else and (any(_is_bad_status(value.get(field)) for field in _STATUS_KEYS) or exit_code(value)):
        return True
    is_flat = not any(is_object(item) or is_list(item) for item in value.values())
    reasons = (value.get(field) for field in _REASON_KEYS)
    return is_flat and any(isinstance(text, str) and reports_failure(text) for text in reasons)


def exit_code(value: object) -> int:
    """Return the exit code of a command, or 0 if the result has none."""
    if not is_object(value):
        return 0
    objects = [value, *(value[key] for key in ("metadata", "meta") if is_object(value.get(key)))]
    codes = (object_.get(key) for object_ in objects for key in _EXIT_CODE_KEYS)
    return next((code for code in codes if isinstance(code, int) and not isinstance(code, bool)), 0)


def deletion_refused(result: object) -> bool:
    """Return True if the result of a deletion denies or does not confirm it."""
    if isinstance(result, str):
        words = re.compile(result_words("not_deleted"), re.IGNORECASE)
        return len(result) < _MAX_SENTENCE_CHARS and words.search(result) is not None
    if is_object(result):
        outcomes = (item for key, item in result.items() if "delet" in key.lower() or "remov" in key.lower())
        if any(item is False or item == 0 for item in outcomes) or result.get("dry_run") is True:
            return True
        if any(key.lower().startswith("would") for key in result):
            return True
        return any(isinstance(item, str) and deletion_refused(item) for item in result.values())
    return result is False


def split_deletion(result: object) -> tuple[set[str], set[str] | None]:
    """Return the ids that a bulk deletion did not delete, and those it did if it lists them."""
    if not is_object(result):
        return set(), None
    not_deleted = {str(id) for key in _NOT_DELETED_KEYS for id in _scalar_items(result.get(key))}
    entries = [item for value in result.values() if is_list(value) for item in value if is_object(item)]
    not_deleted |= {
        str(item.get("id")) for item in entries if reports_failure({k: v for k, v in item.items() if k != "id"})
    }
    deleted = {str(id) for key in ("deleted", "removed") for id in _scalar_items(result.get(key))}
    return not_deleted, deleted or None


def _scalar_items(value: object) -> list[Any]:
    return [item for item in value if isinstance(item, str | int)] if is_list(value) else []


_NOT_DELETED_KEYS = ("failed", "skipped", "not_deleted", "notDeleted", "not_found", "remaining")


def is_empty_result(value: object) -> bool:
    """Return True if the result says that nothing was found."""
    return value is None or value in ("", [], {}) or (isinstance(value, str) and value.strip().lower() in _EMPTY_TEXTS)


_EXIT_CODE_KEYS = ("exit_code", "exitCode", "exit_status", "exitStatus", "returncode", "return_code", "returnCode")
_STATUS_KEYS = ("status", "statusCode", "status_code", "code", "result")
SUCCESS_KEYS = ("success", "ok", "succeeded")
"""Keys whose value says whether the call succeeded."""
_REASON_KEYS = ("message", "detail", "reason", "error_description")
_OTHER_KEYS = tuple("isError is_error error exception errors metadata meta content structuredContent".split())
_OUTCOME_KEYS = frozenset((*_EXIT_CODE_KEYS, *_STATUS_KEYS, *SUCCESS_KEYS, *_REASON_KEYS, *_OTHER_KEYS))
# A key at the start of a line that may describe the whole result.
_OUTCOME_LINE = re.compile(rf"""^["']?(?:{"|".join(sorted(_OUTCOME_KEYS))})["']? *:""", re.MULTILINE)
_EMPTY_TEXTS = frozenset(
    {"", "none", "null", "[]", "{}", "nothing found", "no results", "no results found", "not found"}
)
_BAD_WORDS = re.compile(r"error|fail|denied|forbidden|unauthori[sz]ed|not_?found|invalid", re.IGNORECASE)


def _is_bad_status(status: object) -> bool:
    if isinstance(status, int) and not isinstance(status, bool):
        return 400 <= status < 600
    return isinstance(status, str) and len(status) < 40 and " " not in status and _BAD_WORDS.search(status) is not None


@cache
def failure_pattern() -> re.Pattern[str]:
    not_empty = r"(?!\s*\w+ *: *(?:null|none|false|~)\s*(?:\n|\Z))"
    words = result_words("failure")
    return re.compile(rf"\s*<(?:\w+_)?error>|{not_empty}\s*\W{{0,3}}(?:an? )?{words}", re.IGNORECASE)


@cache
def _refusal() -> re.Pattern[str]:
    """Return the pattern of a single sentence that refuses.

    Longer results and objects may have these words in another meaning.
    """
    start = rf"\s*(?![{{\[])(?!{result_words('completed')})[^\n{{\[]{{0,150}}"
    return re.compile(rf"{start}{result_words('refusal')}[^\n]{{0,60}}\s*\Z", re.IGNORECASE)
