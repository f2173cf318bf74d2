"""Recognize calls that run tests, which tests they run, and the result.

A tool that runs tests may succeed while tests fail, so the result is read from the runner's summary. A failure of
`pytest tests/a.py` is resolved when that passes, or when all of `pytest` passes, but not when another test passes.
"""

from __future__ import annotations

from typing import Any, TypeGuard

from inmind.core.encoding import digest_of, to_json
from inmind.core.frozen import frozen
from inmind.core.language.spans import split_identifier
from inmind.dreams.affect.matcher import compiled, one_of

_MAX_COMMAND_CHARACTERS = 2_000
_TAIL_CHARACTERS = 4_000
"""Characters at the end of a result: runners print their summary there."""


@frozen
class SuiteRun:
    """A run of tests."""

    name: str
    """The test runner."""
    about: str
    """Key of the tests. The key of a part starts with the key of the whole run."""


def parse_run(tool: str, arguments: Any) -> SuiteRun | None:
    """The tests that a call runs, by its command or the tool's name; None if it runs none."""
    command = _command_text(arguments)
    if command:
        return _parse_command(command)
    words = split_identifier(tool.rsplit("__", 1)[-1])
    if not words or not _RUN_WORDS.issuperset(words) or _TEST_WORDS.isdisjoint(words):
        return None
    suffix = f" {digest_of(arguments)}" if arguments else ""
    return SuiteRun(f"the tests of {tool[:60]}", f"tests {tool}{suffix}")


def has_failures(result: Any) -> bool:
    """True if the runner's summary counts failures."""
    return bool(compiled(_FAILS).search(_tail(result)))


def has_passed(result: Any) -> bool:
    """True if the summary says that tests passed.

    A run without tests has neither failed nor passed.
    """
    end = _tail(result)
    return bool(compiled(_PASSES).search(end)) and not compiled(_NONE_RAN).search(end)


def _parse_command(command: str) -> SuiteRun | None:
    for part in compiled(r"&&|\|\||[;|\n]").split(command[:_MAX_COMMAND_CHARACTERS]):
        if match := compiled(_RUNNER).match(part):
            runner = " ".join(match["runner"].split())
            targets = [word for word in match["rest"].split() if word[:1] != "-" and compiled(_TARGET).fullmatch(word)]
            return SuiteRun(runner, " ".join(["tests", runner, *targets]))
    return None


def _command_text(arguments: Any) -> str:
    if not _is_object(arguments):
        return ""
    value = next((arguments[key] for key in ("command", "cmd", "script") if arguments.get(key)), "")
    return " ".join(map(str, value)) if isinstance(value, list) else value if isinstance(value, str) else ""  # pyright: ignore[reportUnknownArgumentType] -- a JSON list


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _tail(result: Any) -> str:
    return (result if isinstance(result, str) else to_json(result))[-_TAIL_CHARACTERS:]


_TEST_WORDS = frozenset("test tests pytest jest vitest unittest".split())
_RUN_WORDS = _TEST_WORDS | frozenset("all e2e execute integration project run runner suite unit".split())

_COMMAND_PREFIX = (
    r"(?:[A-Za-z_]\w*=\S*\s+|(?:sudo|time|env|npx|bunx|nice|xvfb-run|coverage run|coverage run -m)\s+|timeout\s+\S+\s+|"
    r"(?:uv|poetry|pipenv|hatch|pdm|rye)\s+run\s+|(?:pnpm|yarn|npm|bundle)\s+exec\s+|\S*python[\d.]*\s+(?:-\w+\s+)*?-m\s+|"
    r"docker(?:\s+|-)compose\s+(?:run|exec)\s+(?:-\S+\s+)*\S+\s+|\S*python[\d.]*\s+(?=\S*manage\.py))*"
)
_RUNNER = (
    rf"\s*(?:\(\s*)?{_COMMAND_PREFIX}(?:\S*/)?(?P<runner>pytest|py\.test|tox|nox|unittest|jest|vitest|mocha|ava|rspec|phpunit|"
    r"ctest|playwright\s+test|cypress\s+run|manage\.py\s+test|"
    r"(?:go|cargo|dotnet|mix|swift|bun|deno|flutter|dart|zig|bazel|sbt|lein|npm|pnpm|yarn|make|just|rake|gradlew|gradle|"
    r"mvn)\s+(?:run\s+)?(?:t|tests?|nextest\s+run|check)(?::\S+)?)(?=\s|$|\))(?P<rest>.*)"
)
# Excludes the number of workers and redirections.
_TARGET = r"(?!\d+\Z)[^<>&]+"
_FAILS = one_of(
    r"\b[1-9]\d* (?:tests? )?(?:failed|failing|failures?)\b(?=\s*(?:[,;|)=.]|$|in \d|out of))",
    r"\b[1-9]\d* errors? in \d",
    r"(?m:^\s*(?:FAILED\b|FAIL\b|--- FAIL))",
    r"\btest result: FAILED|\b(?:failures|errors)=[1-9]",
    r'"(?:failed|failures|errors|failing|numFailedTests)" ?: ?[1-9]|"(?:passed|success|ok)" ?: ?false',
)
_PASSES = one_of(
    r"\b[1-9]\d* (?:tests? )?(?:passed|passing|succeeded)\b",
    r"(?m:^\s*(?:OK|PASS|PASSED|ok)\b)",
    r"\btest result: ok|\ball tests (?:have )?pass(?:ed)?|100% tests passed|BUILD SUCCESS",
    r'"(?:passed|numPassedTests)" ?: ?(?:true|[1-9])|"(?:success|ok)" ?: ?true|"(?:exit_?code|returncode)" ?: ?0\b',
    r"(?:测试)?(?:全部|都)通过",
)
_NONE_RAN = r"(?i)no tests? (?:ran|found|to run|files)|collected 0 items|\bran 0 tests|\b0 passing"
