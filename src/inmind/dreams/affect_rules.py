"""Rules that derive affect signals from messages of users and from tool outcomes.

Affect is noted, weighted in dreams and shown, so a rule that fires by mistake does more harm than one that stays
silent. Only a user's own words to the agent count, never quotes or pasted text. Of tools, the outcome counts: a failed
call, and a success after a failure.

Thanks, praise, anger and urgency are about other things far more often, so their position counts: a clause that begins
with "thanks" and does not continue with "to the cache" is addressed to the agent; a clause that only contains the word
is not. The words do not count after "if", "she said" or "no", and "thanks" at the end of a request is a formula.

A tool that runs tests may succeed while tests fail, so the result is read from the runner's summary. A failure of
`pytest tests/a.py` is resolved when that passes, or when all of `pytest` passes, but not when another test passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, cast

from inmind.core.encoding import digest_of, to_json
from inmind.core.language.languages import LANGUAGES
from inmind.core.language.spans import any_of, compile_cached, cue_words, split_identifier, without_quotes
from inmind.core.language.tables import AffectPatterns, Remark
from inmind.core.text import shorten
from inmind.core.tool_outcome import ToolOutcome
from inmind.dreams.affect import QUIET_PERIOD, AffectState, is_recent

MAX_MESSAGE_CHARACTERS: Final = 20_000
"""Longer messages are documents."""

MAX_LOOKBACK: Final = 20
"""Sentences and clauses before a clause that are checked for requests and reported speech."""

_MAX_NAME_CHARACTERS: Final = 60


class AffectSignal(NamedTuple):
    """A spike, a short cause, and a key of what it is about."""

    spike: str
    why: str
    about: str = ""


def may_have_affect(text: str) -> bool:
    """A fast check for words with affect. It runs on every message."""
    return len(text) <= MAX_MESSAGE_CHARACTERS and any(_find_cues(text, patterns) for patterns in _PATTERNS)


def signals_from_text(sentences: Sequence[str]) -> list[AffectSignal]:
    """Signals in a user's sentences to the agent, each spike once."""
    unquoted = [without_quotes(sentence) for sentence in sentences]
    remarks = dict.fromkeys(remark for patterns in _PATTERNS for remark in _find_remarks(unquoted, patterns))
    if "anger" in remarks:  # thanks of an angry user do not count
        remarks = {remark: None for remark in remarks if remark in ("anger", "urgency")}
    return [_SIGNAL_BY_REMARK[remark] for remark in remarks]


def signal_from_outcome(outcome: ToolOutcome, affect: AffectState, now: datetime) -> AffectSignal | None:
    """The signal of a tool call: a new failure, or a success after a failure; else None."""
    run = parse_run(outcome.tool, outcome.arguments)
    about = run.about if run else f"{outcome.tool} {digest_of(outcome.arguments)}"
    name = shorten(outcome.tool, _MAX_NAME_CHARACTERS) or "a tool"
    if outcome.failed or (run and has_failures(outcome.result)):
        is_known = is_recent(affect.failing.get(about), now, QUIET_PERIOD)
        return None if is_known else AffectSignal("error", f"{run.name if run else name} failed", about)
    if not affect.resolved_by(about) or (run and not has_passed(outcome.result)):
        return None
    if run:
        return AffectSignal("achievement", "tests pass again after failing", about)
    return AffectSignal("reward", f"{name} works again after failing", about)


def signal_from_search(*, has_hits: bool) -> AffectSignal:
    """The signal of a memory search with or without a hit."""
    return (
        AffectSignal("recall", "memory had an answer") if has_hits else AffectSignal("missed", "memory had no answer")
    )


# -- words of users ----------------------------------------------------------------------------------------


def _find_cues(text: str, patterns: AffectPatterns) -> list[Remark]:
    """Remarks that a text may have, by its words or characters."""
    if patterns.spaced:
        words = cue_words(text)
        return [remark for remark, cues in patterns.cues.items() if not cues.isdisjoint(words)]
    if text.isascii():
        return []
    return [remark for remark, cues in patterns.cues.items() if any(map(text.__contains__, cues))]


def _find_remarks(sentences: Sequence[str], patterns: AffectPatterns) -> Iterator[Remark]:
    """The remarks in the sentences of one message."""
    for index, sentence in enumerate(sentences):
        if not _find_cues(sentence, patterns):
            continue
        clauses, earlier = _split_clauses(sentence, patterns), sentences[max(0, index - MAX_LOOKBACK) : index]
        is_question = sentence.rstrip().endswith(("?", "？"))
        for number, clause in enumerate(clauses):
            for remark in _find_cues(clause, patterns):
                if compile_cached(patterns.lead_in + patterns.remarks[remark]).match(clause) and _is_meant(
                    remark, clauses, number, earlier, patterns, is_question=is_question
                ):
                    yield remark


def _is_meant(
    remark: Remark,
    clauses: Sequence[str],
    number: int,
    earlier: Sequence[str],
    patterns: AffectPatterns,
    *,
    is_question: bool,
) -> bool:
    """True if a remark is meant at its place, in a clause after `earlier` sentences.

    Anger may be a question. A question whether something is good or urgent is not a statement that it is.
    """
    clause, previous = clauses[number], clauses[max(0, number - MAX_LOOKBACK) : number]
    following = clauses[number + 1] if number + 1 < len(clauses) else ""
    if any(map(compile_cached(patterns.reported).search, previous)):
        return False
    is_retracted = bool(compile_cached(patterns.retraction).match(following))
    if remark == "thanks":
        is_declined = bool(previous and compile_cached(patterns.refusal).match(previous[-1]))
        return not (is_retracted or is_declined or _is_formula(clause, previous, earlier, patterns))
    if any(map(compile_cached(patterns.condition).match, (*previous[-1:], clause))):
        return False
    is_denied = bool(compile_cached(patterns.denial).search(clause))
    is_asked = is_question and not following
    return remark == "anger" or not (is_denied or is_asked or (remark == "praise" and is_retracted))


def _is_formula(clause: str, previous: Sequence[str], earlier: Sequence[str], patterns: AffectPatterns) -> bool:
    """True for thanks at the end of a request."""
    if not compile_cached(patterns.thanks_formula).fullmatch(clause):
        return False
    context = [*(clause for sentence in earlier for clause in _split_clauses(sentence, patterns)), *previous]
    return bool(context) and compile_cached(patterns.request).search("\n".join(context)) is not None


def _split_clauses(sentence: str, patterns: AffectPatterns) -> list[str]:
    parts = compile_cached(patterns.clause_end).split(sentence.lower().replace("’", "'"))
    return [clause for part in parts if (clause := " ".join(part.split()).strip(_TRIMMED_CHARACTERS))]


_TRIMMED_CHARACTERS = " \t*_~-–—>•\"'()[]（）【】"

_PATTERNS: Final = tuple(language.affect for language in LANGUAGES if language.affect)

_SIGNAL_BY_REMARK: Final[dict[Remark, AffectSignal]] = {
    "thanks": AffectSignal("social", "the user said thanks"),
    "praise": AffectSignal("reward", "the user is pleased"),
    "anger": AffectSignal("error", "the user is angry with the agent"),
    "urgency": AffectSignal("urgency", "the user says that it is urgent"),
}


# -- runs of tests -----------------------------------------------------------------------------------------


_MAX_COMMAND_CHARACTERS: Final = 2_000
_TAIL_CHARACTERS: Final = 4_000
"""Characters at the end of a result: runners print their summary there."""


class SuiteRun(NamedTuple):
    """A run of tests."""

    name: str
    """The test runner."""
    about: str
    """Key of the tests. The key of a part starts with the key of the whole run."""


def parse_run(tool: str, arguments: Any) -> SuiteRun | None:
    """The tests that a call runs, by its command or the tool's name; None if it runs none."""
    if command := _command_text(arguments):
        return _parse_command(command)
    words = split_identifier(tool.rsplit("__", 1)[-1])
    if not words or not _RUN_WORDS.issuperset(words) or _TEST_WORDS.isdisjoint(words):
        return None
    suffix = f" {digest_of(arguments)}" if arguments else ""
    return SuiteRun(f"the tests of {tool[:60]}", f"tests {tool}{suffix}")


def has_failures(result: Any) -> bool:
    """True if the runner's summary counts failures."""
    return bool(compile_cached(_FAILS).search(_tail(result)))


def has_passed(result: Any) -> bool:
    """True if the summary says that tests passed.

    A run without tests has neither failed nor passed.
    """
    end = _tail(result)
    return bool(compile_cached(_PASSES).search(end)) and not compile_cached(_NONE_RAN).search(end)


def _parse_command(command: str) -> SuiteRun | None:
    for part in compile_cached(r"&&|\|\||[;|\n]").split(command[:_MAX_COMMAND_CHARACTERS]):
        if match := compile_cached(_RUNNER).match(part):
            runner = " ".join(match["runner"].split())
            targets = [
                word for word in match["rest"].split() if word[:1] != "-" and compile_cached(_TARGET).fullmatch(word)
            ]
            return SuiteRun(runner, " ".join(["tests", runner, *targets]))
    return None


def _command_text(arguments: Any) -> str:
    fields = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    value: object = next((fields[key] for key in ("command", "cmd", "script") if fields.get(key)), "")
    if isinstance(value, list):
        return " ".join(map(str, cast("list[object]", value)))
    return value if isinstance(value, str) else ""


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
_FAILS = any_of(
    r"\b[1-9]\d* (?:tests? )?(?:failed|failing|failures?)\b(?=\s*(?:[,;|)=.]|$|in \d|out of))",
    r"\b[1-9]\d* errors? in \d",
    r"(?m:^\s*(?:FAILED\b|FAIL\b|--- FAIL))",
    r"\btest result: FAILED|\b(?:failures|errors)=[1-9]",
    r'"(?:failed|failures|errors|failing|numFailedTests)" ?: ?[1-9]|"(?:passed|success|ok)" ?: ?false',
)
_PASSES = any_of(
    r"\b[1-9]\d* (?:tests? )?(?:passed|passing|succeeded)\b",
    r"(?m:^\s*(?:OK|PASS|PASSED|ok)\b)",
    r"\btest result: ok|\ball tests (?:have )?pass(?:ed)?|100% tests passed|BUILD SUCCESS",
    r'"(?:passed|numPassedTests)" ?: ?(?:true|[1-9])|"(?:success|ok)" ?: ?true|"(?:exit_?code|returncode)" ?: ?0\b',
    r"(?:测试)?(?:全部|都)通过",
)
_NONE_RAN = r"(?i)no tests? (?:ran|found|to run|files)|collected 0 items|\bran 0 tests|\b0 passing"
