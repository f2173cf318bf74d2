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
    """What a user said, perhaps to something that an assistant had said, and which words have to survive."""

    text: str
    before: str
    keep: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, line: dict[str, Any]) -> Utterance:
        return cls(
            text=line["said"], before=line.get("before", ""), keep=tuple((kind, span) for kind, span in line["keep"])
        )

    def items(self) -> list[tuple[str, str]]:
        """What the library keeps of it, by kind."""
        messages = [
            TurnMessage(seq=1, speaker="assistant", text=self.before),
            TurnMessage(seq=2, speaker="user", text=self.text),
        ]
        return [
            (item.kind, item.text) for item in extract_items(messages if self.before else messages[1:], first=False)
        ]


@dataclass(frozen=True, slots=True)
class Tally:
    """Of the items of a kind those that are right; of the spans of a kind those that are kept."""

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
    return Table(f"Rules and decisions told apart, {half} half", rows, [f"{len(both)} utterances."])


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
        "Time to find them",
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
