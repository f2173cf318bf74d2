"""A call of a host tool, parsed once for every subject, and whether it failed.

A failed call adds no entities, and an entity whose deletion failed is not marked as deleted. Providers have a field for
errors; tools report them in text. A result about failures (a failed build, a guide to errors) is not a failed call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from inmind.core.events.session import ToolObserved
from inmind.core.frozen import frozen
from inmind.core.json import is_list, is_object
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


def is_failure(result: object, parse: Callable[[object], list[Any]] = parse_layers) -> bool:
    """Return True if a result says that the call failed, in any of its layers.

    `parse` returns the layers, for example if they are known.
    """
    if isinstance(result, str) and not (looks_like_json(result) or _OUTCOME_LINE.search(result)):
        return reports_failure(result)  # callers check whole conversations, and parsing YAML is slow
    return any(map(reports_failure, parse(result)))


def reports_failure(value: object) -> bool:
    """Return True if one parsed layer of a result says that the call failed."""
    if isinstance(value, str):
        head = value[:_MAX_SENTENCE_CHARS]
        return bool(_FAILURE.match(head) or (len(value) < _MAX_SENTENCE_CHARS and _REFUSAL.match(head)))
    if not is_object(value) or _OUTCOME_KEYS.isdisjoint(value):
        return False
    if value.get("isError") is True or value.get("is_error") is True:
        return True
    if any(value.get(flag) in (False, "false") for flag in SUCCESS_KEYS):
        return True
    if any(value.get(field) for field in ("error", "exception")) and not value.get("success"):
        return True
    if value.get("errors") and not _has_data(value.get("data")):
        return "data" in value or not any(is_object(item) or item is True for item in value.values())
    has_little_else = (
        "id" not in value or len(value) < 4
    )  # an object with a failed status, such as a build, is not a failed call
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
        return len(result) < _MAX_SENTENCE_CHARS and _DELETION_REFUSED.search(result) is not None
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
_OTHER_KEYS = (
    "isError",
    "is_error",
    "error",
    "exception",
    "errors",
    "metadata",
    "meta",
    "content",
    "structuredContent",
)
_OUTCOME_KEYS = frozenset((*_EXIT_CODE_KEYS, *_STATUS_KEYS, *SUCCESS_KEYS, *_REASON_KEYS, *_OTHER_KEYS))
# A key at the start of a line that may describe the whole result.
_OUTCOME_LINE = re.compile(
    rf"""^["']?(?:{"|".join(sorted(_OUTCOME_KEYS))})["']? *:""",
    re.MULTILINE,
)
_EMPTY_TEXTS = frozenset(
    {"", "none", "null", "[]", "{}", "nothing found", "no results", "no results found", "not found"}
)
_BAD_WORDS = re.compile(r"error|fail|denied|forbidden|unauthori[sz]ed|not_?found|invalid", re.IGNORECASE)


def _is_bad_status(status: object) -> bool:
    if isinstance(status, int) and not isinstance(status, bool):
        return 400 <= status < 600
    return isinstance(status, str) and len(status) < 40 and " " not in status and _BAD_WORDS.search(status) is not None


def _has_data(data: object) -> bool:
    """GraphQL returns errors together with partial data; without data the call failed."""
    return any(item is not None for item in data.values()) if is_object(data) else data is not None


_FAILURE = re.compile(
    r"\s*<(?:\w+_)?error>|(?!\s*\w+ *: *(?:null|none|false|~)\s*(?:\n|\Z))\s*\W{0,3}(?:an? )?(?:"
    r"(?:\w+(?:error|exception)|error|exception|failure|fatal|failed)(?:\s*[:!(\[–—-]|\s*$|\s+(?:\d|code|occurred|while|when|to)\b)"
    r"|traceback\b|错误|失败|npm err!"
    r"|http(?:/[\d.]+)? [45]\d\d(?:\s*$|:| (?:bad|client|conflict|error|forbidden|gone|internal|not|server|unauth))"
    r"|(?:(?:the )?(?:command|process|program) )?(?:exit(?:ed)?|failed|returned)(?: with)?(?: an?)?(?: non-zero)?"
    r"(?: exit| return)? (?:code|status)(?:\s*[:=]\s*|\s+)[1-9]\d{0,2}\b)",
    re.IGNORECASE,
)
# A single sentence that refuses. Longer results and objects may contain these words in another meaning, and so may a
# sentence that starts with a completed action.
_REFUSAL = re.compile(
    r"\s*(?![{\[])(?!(?:created|updated|added|saved|sent|moved|renamed|done|success\w*|ok)\b)[^\n{\[]{0,150}"
    r"(?:\bnot found\b|\bdoes(?: not|n't) exist\b|\bno such \w+|\b(?:permission|access) denied\b|\bunauthori[sz]ed\b|"
    r"\bforbidden\b|\btimed out\b|\brate limit\b|未找到|不存在|失败)[^\n]{0,60}\s*\Z",
    re.IGNORECASE,
)
_DELETION_REFUSED = re.compile(
    r"(?<![A-Za-z])(?:could ?n[o']t|cannot|can't|unable|not (?:allowed|deleted|permitted|possible|be)|permission|"
    r"denied|locked|time(?:d )?out|rate limit|are you sure|confirm|cancell?ed|queued|pending|approval|dry[- _]run|"
    r"failed|failure|would delete)(?![A-Za-z])"
    r"|无法|失败|不能|拒绝|确认",
    re.IGNORECASE,
)
