"""How well rules and decisions are told from everything else that people say.

tests/golden/retention.jsonl holds utterances as agents hear them, in English and Chinese, each with what of it would
have to survive a compaction: rules, decisions, and facts about the speaker that bind like a rule. They were labelled
before anybody looked at what the library makes of them. The `dev` half is there to learn from; only the `held-out` half
says how far the forms reach, so none is mended by looking at it.

An item is right if it says a labelled span of its kind or is part of one, and a span is kept if such an item is there.
Facts are looked for among the rules, since they have no kind of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.conversations import conversation
from bench.table import Row, Table
from bench.timing import Contender, Race, spoken
from inmind.history.compaction.retention import extract_items
from inmind.history.turns import TurnMessage

UTTERANCES = Path(__file__).parents[1] / "tests" / "golden" / "retention.jsonl"
LANGUAGES = {"en": "English", "zh": "Chinese"}
LEAST_RIGHT = {"rule": 0.85, "decision": 0.80}
LEAST_KEPT = {"rule": 0.80}
MESSAGES = 2_000

_REPETITIONS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """What a user said, perhaps to something that an assistant had said, and which words have to survive."""

    said: str
    before: str
    keep: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, line: dict[str, Any]) -> Utterance:
        return cls(
            said=line["said"], before=line.get("before", ""), keep=tuple((kind, span) for kind, span in line["keep"])
        )

    def items(self) -> list[tuple[str, str]]:
        """What the library keeps of it, by kind."""
        talk = [
            TurnMessage(seq=1, speaker="assistant", text=self.before),
            TurnMessage(seq=2, speaker="user", text=self.said),
        ]
        return [(item.kind, item.text) for item in extract_items(talk if self.before else talk[1:], first=False)]


@dataclass(frozen=True, slots=True)
class Tally:
    """Of the items of a kind those that are right; of the spans of a kind those that are kept."""

    right: int
    items: int
    kept: int
    spans: int


def utterances(half: str, language: str) -> list[Utterance]:
    lines = map(json.loads, UTTERANCES.read_text("utf-8").splitlines())
    return [Utterance.of(line) for line in lines if (line["half"], line["language"]) == (half, language)]


def tally(heard: Sequence[Utterance], kind: str) -> Tally:
    right = items = kept = spans = 0
    kept_as = "rule" if kind == "fact" else kind
    for one in heard:
        taken = [text for of, text in one.items() if of == kept_as]
        wanted = [span for of, span in one.keep if of == kind]
        fitting = [span for of, span in one.keep if of == kind or (kind, of) == ("rule", "fact")]
        items += len(taken)
        right += sum(any(_says(text, span) for span in fitting) for text in taken)
        spans += len(wanted)
        kept += sum(any(_says(text, span) for text in taken) for span in wanted)
    return Tally(right, items, kept, spans)


def run() -> list[Table]:
    return [told_apart("dev"), told_apart("held-out"), speed()]


def told_apart(half: str) -> Table:
    rows = [
        row for code, language in LANGUAGES.items() for row in _rows(language, utterances(half, code), barred=False)
    ]
    both = [one for code in LANGUAGES for one in utterances(half, code)]
    rows += _rows("both", both, barred=half == "held-out")
    return Table(f"Rules and decisions told apart, {half} half", rows, [f"{len(both)} utterances."])


def speed() -> Table:
    talk = [
        TurnMessage(seq=seq, speaker=one["role"], text=one["content"] or "")
        for seq, one in enumerate(conversation(MESSAGES))
    ]
    said = [one.said for code in LANGUAGES for one in utterances("dev", code)]
    people = [TurnMessage(seq=seq, speaker="user", text=said[seq % len(said)]) for seq in range(MESSAGES)]
    courses = {"an agent at work": talk, "nothing but the utterances": people}
    race = Race()
    race.run(
        {name: Contender(partial(extract_items, course, first=True)) for name, course in courses.items()},
        repetitions=_REPETITIONS,
    )
    return Table(
        "Time to find them",
        [
            Row(
                what=f"{MESSAGES:,} messages, {name}",
                measured=spoken(race.median(name)),
                figures={"s": race.median(name)},
            )
            for name in courses
        ],
    )


def _rows(language: str, heard: Sequence[Utterance], *, barred: bool) -> Iterator[Row]:
    for kind in ("rule", "decision"):
        found = tally(heard, kind)
        yield _share(f"{language}: {kind}s right", found.right, found.items, LEAST_RIGHT.get(kind) if barred else None)
        yield _share(f"{language}: {kind}s kept", found.kept, found.spans, LEAST_KEPT.get(kind) if barred else None)
    facts = tally(heard, "fact")
    yield _share(f"{language}: facts kept", facts.kept, facts.spans, None)


def _share(what: str, part: int, whole: int, bar: float | None) -> Row:
    share = part / whole if whole else 1.0
    return Row(
        what=what,
        measured=f"{share:.0%} ({part} of {whole})",
        bar=f"at least {bar:.0%}" if bar else "",
        met=share >= bar if bar else None,
        figures={"share": share, "of": whole},
    )


def _says(item: str, span: str) -> bool:
    item, span = (" ".join(text.split()).strip(".,;:!。，；：！ ") for text in (item, span))
    return span in item or item in span
