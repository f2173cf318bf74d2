"""Rules that derive affect signals from messages of users and from tool outcomes.

Affect is noted, weighted in dreams and shown, so a rule that fires by mistake does more harm than one that stays
silent. Only a user's own words to the agent count, never quotes or pasted text. Of tools, the outcome counts: a failed
call, and a success after a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from inmind.core.encoding import digest_of
from inmind.core.frozen import frozen
from inmind.core.text import shorten
from inmind.documents.overview.tool_rules import ToolCallOutcome
from inmind.dreams.affect.matcher import Saying, compiled, find_sayings
from inmind.dreams.affect.patterns_en import ENGLISH
from inmind.dreams.affect.patterns_zh import CHINESE
from inmind.dreams.affect.run_results import SuiteRun, has_failures, has_passed, parse_run
from inmind.dreams.affect.state import QUIET_PERIOD, AffectState, is_recent

MAX_MESSAGE_CHARACTERS: Final = 20_000
"""Longer messages are documents."""

_MAX_NAME_CHARACTERS = 60


@frozen
class AffectSignal:
    """A spike, a short cause, and a key of what it is about."""

    spike: str
    why: str
    about: str = ""


def may_have_affect(text: str) -> bool:
    """A fast check for words with affect. It runs on every message."""
    return len(text) <= MAX_MESSAGE_CHARACTERS and any(patterns.find_cues(text) for patterns in _LANGUAGES)


def signals_from_text(sentences: Sequence[str]) -> list[AffectSignal]:
    """Signals in a user's sentences to the agent, each spike once."""
    unquoted = [compiled(_QUOTED).sub(" ", sentence) for sentence in sentences]
    sayings = dict.fromkeys(saying for patterns in _LANGUAGES for saying in find_sayings(unquoted, patterns))
    if "anger" in sayings:  # thanks of an angry user do not count
        sayings = {saying: None for saying in sayings if saying in ("anger", "urgency")}
    return [AffectSignal(*_SIGNAL_BY_SAYING[saying]) for saying in sayings]


def signal_from_outcome(outcome: ToolCallOutcome, affect: AffectState, now: datetime) -> AffectSignal | None:
    """The signal of a tool call: a new failure, or a success after a failure; else None."""
    run = parse_run(outcome.tool, outcome.arguments)
    about = _outcome_key(outcome, run)
    name = shorten(outcome.tool, _MAX_NAME_CHARACTERS) or "a tool"
    if outcome.failed or (run and has_failures(outcome.result)):
        if is_recent(affect.failing.get(about), now, QUIET_PERIOD):
            return None
        return AffectSignal("error", f"{run.name if run else name} failed", about)
    if not affect.resolved_by(about):
        return None
    if run:
        return (
            AffectSignal("achievement", "tests pass again after failing", about) if has_passed(outcome.result) else None
        )
    return AffectSignal("reward", f"{name} works again after failing", about)


def signal_from_search(*, has_hits: bool) -> AffectSignal:
    """The signal of a memory search with or without a hit."""
    return (
        AffectSignal("recall", "memory had an answer") if has_hits else AffectSignal("missed", "memory had no answer")
    )


def _outcome_key(outcome: ToolCallOutcome, run: SuiteRun | None) -> str:
    """The key of a call: tool and arguments, or the tests that it runs."""
    return run.about if run else f"{outcome.tool} {digest_of(outcome.arguments)}"


_LANGUAGES: Final = (ENGLISH, CHINESE)

_SIGNAL_BY_SAYING: Final[dict[Saying, tuple[str, str]]] = {
    "thanks": ("social", "the user said thanks"),
    "praise": ("reward", "the user is pleased"),
    "anger": ("error", "the user is angry with the agent"),
    "urgency": ("urgency", "the user says that it is urgent"),
}

# Quoted text is not the user's own. An apostrophe inside a word does not open a quotation.
_QUOTED = (
    r"\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|‘[^’\n]*’(?!\w)|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`"
)
