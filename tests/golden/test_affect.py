"""What people say, labelled by hand: what of it an agent feels, and what it must not feel.

The file beside this test has two halves. The `dev` half is held to the letter; the `held-out` half was written when the
rules were done, and says how far they reach: whoever mends a rule because of one of its lines moves that line over.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tables import each_row

from inmind.dreams.affect.levels import SPIKES
from inmind.session.affect import affect_from_text

pytestmark = pytest.mark.spec("G9")

LINES: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("affect.jsonl").read_text("utf-8").splitlines()
]
HALVES = ("dev", "held-out")


def spikes(said: str) -> set[str]:
    return {one.spike for one in affect_from_text(said)}


@each_row("line", [line for line in LINES if line["half"] == "dev"], ids=lambda line: line["said"][:40])
def test_what_is_said_to_the_agent_is_felt_and_nothing_else(line: dict[str, Any]) -> None:
    assert spikes(line["said"]) == set(line["felt"])


# What is felt by mistake is noted and dreamt of; what is missed is merely missed. Measured: 0.98 and 0.83.
def test_what_was_never_worked_on_is_hardly_ever_felt_by_mistake_and_mostly_felt() -> None:
    pairs = [(spikes(line["said"]), set(line["felt"])) for line in LINES if line["half"] == "held-out"]
    right = sum(len(felt & meant) for felt, meant in pairs)
    assert right / sum(len(felt) for felt, _ in pairs) >= 0.95
    assert right / sum(len(meant) for _, meant in pairs) >= 0.80


def test_both_halves_have_enough_of_either_kind_in_both_languages_and_no_line_twice() -> None:
    assert {spike for line in LINES for spike in line["felt"]} <= set(SPIKES)
    for half in HALVES:
        lines = [line for line in LINES if line["half"] == half]
        assert len([line for line in lines if line["felt"]]) >= 60
        assert len([line for line in lines if not line["felt"]]) >= 60
        assert {(bool(line["felt"]), line["language"]) for line in lines} == {
            (felt, language) for felt in (True, False) for language in ("en", "zh")
        }
    assert len({line["said"] for line in LINES}) == len(LINES)
