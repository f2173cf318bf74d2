"""What raises the levels by itself: what people say to the agent, and how its tools fare.

What is felt is noted, weighed in dreams and shown; so a rule that fires on a stray word does more harm than one that
stays silent. People are heard by what they say to the agent in their own words, never by what they quote or paste. Of
tools it is the outcome that counts: a call that failed, and what works again after it had failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from inmind.core.encoding import digest_of
from inmind.core.frozen import frozen
from inmind.core.text import shorten
from inmind.dreams.affect.matcher import Saying, compiled, find_sayings
from inmind.dreams.affect.patterns_en import ENGLISH
from inmind.dreams.affect.patterns_zh import CHINESE
from inmind.dreams.affect.run_results import SuiteRun, has_failures, has_passed, parse_run
from inmind.dreams.affect.state import QUIET_PERIOD, AffectState, is_recent

MAX_MESSAGE_CHARACTERS: Final = 20_000
"""Characters of a message that somebody may have said; what is longer is a document."""

_MAX_NAME_CHARACTERS = 60


@frozen
class AffectSignal:
    """Something that is felt: the spike, why in a few words of ours, and what it is about."""

    spike: str
    why: str
    about: str = ""


@frozen(kw_only=True)
class ToolOutcome:
    """A call of a tool, and what came of it."""

    tool: str
    arguments: Any = None
    """As values, like the result."""
    result: Any = None
    failed: bool = False


def may_have_affect(text: str) -> bool:
    """Could these be words that are felt?

    Every message is asked this, so it takes next to no time.
    """
    return len(text) <= MAX_MESSAGE_CHARACTERS and any(forms.find_cues(text) for forms in _LANGUAGES)


def signals_from_text(sentences: Sequence[str]) -> list[AffectSignal]:
    """What a person's own sentences say to the agent, each spike once."""
    unquoted = [compiled(_QUOTED).sub(" ", sentence) for sentence in sentences]
    said = dict.fromkeys(one for forms in _LANGUAGES for one in find_sayings(unquoted, forms))
    if "anger" in said:  # who is angry may thank in the same breath, and does not mean it
        said = {one: None for one in said if one in ("anger", "urgency")}
    return [AffectSignal(*_SIGNAL_BY_SAYING[one]) for one in said]


def signal_from_outcome(outcome: ToolOutcome, affect: AffectState, now: datetime) -> AffectSignal | None:
    """What a call is felt as: a failure, unless the same has just been felt; or that something works again."""
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


def signal_from_search(*, found: bool) -> AffectSignal:
    """Memory that was asked and had an answer, or had none."""
    return AffectSignal("recall", "memory had an answer") if found else AffectSignal("missed", "memory had no answer")


def _outcome_key(outcome: ToolOutcome, run: SuiteRun | None) -> str:
    """By which a call is known again: the same tool with the same arguments, or the tests that it runs."""
    return run.about if run else f"{outcome.tool} {digest_of(outcome.arguments)}"


_LANGUAGES: Final = (ENGLISH, CHINESE)

_SIGNAL_BY_SAYING: Final[dict[Saying, tuple[str, str]]] = {
    "thanks": ("social", "the user said thanks"),
    "praise": ("reward", "the user is pleased"),
    "anger": ("error", "the user is angry with the agent"),
    "urgency": ("urgency", "the user says that it is urgent"),
}

# What somebody quotes is not what they say. An apostrophe opens no quotation inside a word.
_QUOTED = (
    r"\"[^\"\n]*\"|“[^”\n]*”|「[^」\n]*」|『[^』\n]*』|《[^》\n]*》|‘[^’\n]*’(?!\w)|(?<!\w)'[^'\n]*'(?!\w)|`[^`\n]*`"
)
