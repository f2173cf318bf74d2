"""Lines about what tool calls did, for extracted summaries.

A call that changes something gets a line: its tool, the arguments that tell it apart, and why it failed. Calls that
only read are counted, and those of memory left out. A tool reads if its name says so; a command, if it starts with a
program that only reads.
"""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inmind.core.json import is_list, is_object
from inmind.core.language.spans import compile_cached
from inmind.core.text import count_noun, shorten
from inmind.entities.ids.keys import has_secret, is_secret_key
from inmind.entities.outcome import is_failure
from inmind.history.turns import TurnCall, TurnMessage, TurnResult

_MAX_LINE_CHARACTERS = 160
_MAX_VALUE_CHARACTERS = 48
_MAX_REASON_CHARACTERS = 80
_MAX_ARGUMENTS = 5
_MAX_SCANNED_CHARACTERS = 20_000
_MAX_TOOLS = 6


class ToolActions(NamedTuple):
    """Changes that tools made, in order, and the number of calls that only read."""

    changes: list[str]
    lookups: str


def describe_actions(messages: Sequence[TurnMessage], earlier_lookups: str = "") -> ToolActions:
    """Return what the tool calls of these messages did.

    A repeated change is listed once, at its last place. `earlier_lookups`: of an earlier summary, to be added.
    """
    results = {answer.id: answer for one in messages for answer in one.results}
    changes: dict[str, None] = {}
    lookups, failed = Tally[str](), Tally[str]()
    for tool, times, failures in compile_cached(_LOOKUPS).findall(earlier_lookups):
        lookups[tool] += int(times)
        failed[tool] += int(failures or 0)
    for call in (call for one in messages for call in one.calls):
        answer = results.get(call.id)
        if answer and answer.from_memory:
            continue
        arguments = _parse_arguments(call.arguments)
        if only_reads(call.tool, arguments):
            tool = shorten(call.tool, _MAX_VALUE_CHARACTERS)
            lookups[tool] += 1
            failed[tool] += bool(answer and _failed(answer))
        else:
            line = _describe_change(call, arguments, answer)
            changes.pop(line, None)
            changes[line] = None
    return ToolActions(list(changes), _count_lookups(lookups, failed))


def _describe_change(call: TurnCall, arguments: Mapping[str, Any], answer: TurnResult | None) -> str:
    values = ", ".join(_short_arguments(arguments))
    line = shorten(f"{call.tool} {values}".strip(), _MAX_LINE_CHARACTERS)
    if answer is None:
        return f"{line} (no result)"
    return f"{line}: failed{_reason(answer.text)}" if _failed(answer) else line


def _failed(answer: TurnResult) -> bool:
    return answer.error or is_failure(answer.text)


def _short_arguments(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arguments that identify what was changed: short values, without secrets."""
    short = {key: text for key, value in arguments.items() if (text := _short_value(value)) and not is_secret_key(key)}
    paths = [text for key, text in short.items() if compile_cached(_PATH_KEY).search(key)]
    if paths and len(short) < len(arguments):  # the other arguments are the content of the file
        yield paths[0]
        return
    for key, text in list(short.items())[:_MAX_ARGUMENTS]:
        yield text if len(short) == 1 else f"{key}={text}"


def _short_value(value: object) -> str:
    if is_list(value):
        texts = [_short_value(item) for item in value[:3]]
        more = f" +{len(value) - 3}" if len(value) > 3 else ""
        return "/".join(texts) + more if texts and all(texts) else ""
    if value is None or is_object(value) or isinstance(value, list):
        return ""
    text = " ".join(str(value).split())
    return text if 0 < len(text) <= _MAX_VALUE_CHARACTERS and not has_secret(text) else ""


def _parse_arguments(arguments: str) -> Mapping[str, Any]:
    if len(arguments) > _MAX_SCANNED_CHARACTERS:
        return {}
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return parsed if is_object(parsed) else {}


def only_reads(tool: str, arguments: Mapping[str, Any]) -> bool:
    """True if a call changes nothing, by the name of its tool or the first word of its command."""
    command = next((arguments[key] for key in _COMMAND_KEYS if isinstance(arguments.get(key), str)), "")
    if command and compile_cached(_READING_COMMAND).match(command):
        return True
    name = tool.rsplit("__", 1)[-1]
    words = [word.lower() for word in compile_cached(_NAME_WORD).findall(name)]
    return not _READ_VERBS.isdisjoint(words[:2])


_LOOKUPS = r"([^,\s][^,]*?) ×(\d+)(?: \((\d+) failed\))?"


def _reason(text: str) -> str:
    lines = (line.strip() for line in text[:_MAX_SCANNED_CHARACTERS].splitlines())
    line = shorten(next(filter(None, lines), ""), _MAX_REASON_CHARACTERS)
    return f", {line}" if line else ""


def _count_lookups(lookups: Tally[str], failed: Tally[str]) -> str:
    named = [
        f"{tool} ×{times}" + (f" ({failed[tool]} failed)" if failed[tool] else "")
        for tool, times in lookups.most_common(_MAX_TOOLS)
    ]
    if len(lookups) > _MAX_TOOLS:
        named.append(count_noun(len(lookups) - _MAX_TOOLS, "more tool"))
    return ", ".join(named)


_NAME_WORD = r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])"
_READ_VERBS = frozenset(
    "browse calculate count describe fetch find get glob grep inspect list look lookup peek query read recall retrieve "
    "search show think view".split()
)
_COMMAND_KEYS = ("command", "cmd", "script", "code")
_READING_COMMAND = (
    r"\s*(?:cd\s[^&;|]*(?:&&|;)\s*)?(?:cat|du|echo|env|file|find|git\s+(?:blame|diff|log|show|status)|grep|head|ls|pwd|rg|"
    r"sed\s+-n|stat|tail|tree|type|wc|which)\b(?![^|]*\s-(?:delete|exec))[^>;&|]*"
    r"(?:\|\s*(?:cut|grep|head|sort|tail|uniq|wc)\b[^>;&|]*)*$"
)
_PATH_KEY = r"(?i)(?:^|_)(?:path|file|filename|filepath)$|Path$|File$"
