"""Pairs of notes labelled by hand: same statement, changed value, or only similar.

One half of the file is for development; the other, `held-out`, is for measuring. A pair that caused a rule change
moves to the first half. Both run through a consolidation, which makes the decision.
"""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from builders import WHEN
from tables import each_row

from inmind.search.consolidate import plan_consolidation
from inmind.search.crystal import Crystal

pytestmark = pytest.mark.spec("H5")

PAIRS: list[dict[str, str]] = [
    json.loads(line) for line in Path(__file__).with_name("statements.jsonl").read_text("utf-8").splitlines()
]
HALVES = ("dev", "held-out")


def decide(older: str, newer: str) -> str:
    notes = [
        Crystal(id=f"resource/ada#{day}", text=text, at=WHEN + timedelta(days=day))
        for day, text in enumerate([older, newer])
    ]
    batch = plan_consolidation(notes, now=WHEN + timedelta(days=2))
    return "duplicate" if batch.merged else "supersedes" if batch.superseded else "neither"


def precision_and_recall(half: str, label: str) -> tuple[float, float]:
    pairs = [(pair["label"], decide(pair["older"], pair["newer"])) for pair in PAIRS if pair["half"] == half]
    right = pairs.count((label, label))
    return right / sum(answer == label for _, answer in pairs), right / sum(labelled == label for labelled, _ in pairs)


# A false decision hides a true statement, so there is none in either half. A missed one leaves a redundant line.
@pytest.mark.parametrize(
    ("half", "label", "min_recall"),
    [
        ("dev", "duplicate", 1.0),
        ("dev", "supersedes", 0.9),
        ("held-out", "duplicate", 0.9),
        ("held-out", "supersedes", 0.85),
    ],
)
def test_decisions_are_precise_and_few_are_missed(half: str, label: str, min_recall: float) -> None:
    precision, recall = precision_and_recall(half, label)
    assert precision == 1.0
    assert recall >= min_recall


@each_row("pair", [pair for pair in PAIRS if pair["label"] == "neither"], ids=lambda pair: pair["older"])
def test_pairs_that_are_only_similar_are_not_changed(pair: dict[str, str]) -> None:
    assert decide(pair["older"], pair["newer"]) == "neither"


def test_no_pair_is_in_both_halves() -> None:
    halves = [{(pair["older"], pair["newer"]) for pair in PAIRS if pair["half"] == half} for half in HALVES]
    assert sum(map(len, halves)) == len(PAIRS)
    assert halves[0].isdisjoint(halves[1])
