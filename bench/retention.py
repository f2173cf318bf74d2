"""Precision and recall of extracting rules and decisions from user messages.

tests/golden/retention.jsonl contains utterances to agents, in English and Chinese, each with the spans that must
survive a compaction: rules, decisions, and facts about the speaker that bind like a rule. They were labelled before the
output of the library was known. The `dev` half is for development. Only the `held-out` half measures how general the
patterns are, so patterns must not be changed after looking at it.

An item is right if it contains a labelled span of its kind or is part of one. A span is kept if there is such an item.
Facts are searched among the rules, since the library has no separate kind for them.
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
from bench.timing import TimedCall, Timings, format_duration
from inmind.history.compaction.retention import extract_items
from inmind.history.turns import TurnMessage

UTTERANCES = Path(__file__).parents[1] / "tests" / "golden" / "retention.jsonl"
LANGUAGES = {"en": "English", "zh": "Chinese"}
MIN_PRECISION = {"rule": 0.85, "decision": 0.80}
MIN_RECALL = {"rule": 0.80}
MESSAGES = 2_000

_REPETITIONS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """A user message, the assistant message before it if any, and the spans that must survive."""

    text: str
    before: str
    keep: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, line: dict[str, Any]) -> Utterance:
        return cls(
            text=line["said"], before=line.get("before", ""), keep=tuple((kind, span) for kind, span in line["keep"])
        )

    def items(self) -> list[tuple[str, str]]:
        """Return the items that the library extracts, with their kinds."""
        messages = [
            TurnMessage(seq=1, speaker="assistant", text=self.before),
            TurnMessage(seq=2, speaker="user", text=self.text),
        ]
        return [
            (item.kind, item.text) for item in extract_items(messages if self.before else messages[1:], first=False)
        ]


@dataclass(frozen=True, slots=True)
class Tally:
    """Right items and kept spans of one kind, with their totals."""

    right: int
    items: int
    kept: int
    spans: int


def load_utterances(half: str, language: str) -> list[Utterance]:
    lines = map(json.loads, UTTERANCES.read_text("utf-8").splitlines())
    return [Utterance.of(line) for line in lines if (line["half"], line["language"]) == (half, language)]


def tally(utterances: Sequence[Utterance], kind: str) -> Tally:
    right = items = kept = spans = 0
    kept_as = "rule" if kind == "fact" else kind
    for utterance in utterances:
        texts = [text for of, text in utterance.items() if of == kept_as]
        wanted = [span for of, span in utterance.keep if of == kind]
        fitting = [span for of, span in utterance.keep if of == kind or (kind, of) == ("rule", "fact")]
        items += len(texts)
        right += sum(any(_matches(text, span) for span in fitting) for text in texts)
        spans += len(wanted)
        kept += sum(any(_matches(text, span) for text in texts) for span in wanted)
    return Tally(right, items, kept, spans)


def run() -> list[Table]:
    return [measure_half("dev"), measure_half("held-out"), measure_speed()]


def measure_half(half: str) -> Table:
    rows = [
        row
        for code, language in LANGUAGES.items()
        for row in _rows(language, load_utterances(half, code), has_bar=False)
    ]
    both = [utterance for code in LANGUAGES for utterance in load_utterances(half, code)]
    rows += _rows("both", both, has_bar=half == "held-out")
    return Table(f"Rules and decisions extracted, {half} half", rows, [f"{len(both)} utterances."])


def measure_speed() -> Table:
    messages = [
        TurnMessage(seq=seq, speaker=message["role"], text=message["content"] or "")
        for seq, message in enumerate(conversation(MESSAGES))
    ]
    texts = [message.text for code in LANGUAGES for message in load_utterances("dev", code)]
    user_messages = [TurnMessage(seq=seq, speaker="user", text=texts[seq % len(texts)]) for seq in range(MESSAGES)]
    inputs = {"an agent at work": messages, "nothing but the utterances": user_messages}
    timings = Timings()
    timings.run(
        {name: TimedCall(partial(extract_items, messages, first=True)) for name, messages in inputs.items()},
        repetitions=_REPETITIONS,
    )
    return Table(
        "Time of extraction",
        [
            Row(
                what=f"{MESSAGES:,} messages, {name}",
                measured=format_duration(timings.median(name)),
                figures={"s": timings.median(name)},
            )
            for name in inputs
        ],
    )


def _rows(language: str, utterances: Sequence[Utterance], *, has_bar: bool) -> Iterator[Row]:
    for kind in ("rule", "decision"):
        counts = tally(utterances, kind)
        yield _share(
            f"{language}: {kind}s right", counts.right, counts.items, MIN_PRECISION.get(kind) if has_bar else None
        )
        yield _share(f"{language}: {kind}s kept", counts.kept, counts.spans, MIN_RECALL.get(kind) if has_bar else None)
    facts = tally(utterances, "fact")
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


def _matches(item: str, span: str) -> bool:
    item, span = (" ".join(text.split()).strip(".,;:!。，；：！ ") for text in (item, span))
    return span in item or item in span
