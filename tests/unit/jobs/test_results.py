"""The one-line texts of results that users print."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from inmind.core.events.dreams import PageLine
from inmind.dreams.page.page import Section
from inmind.jobs.consolidation import Consolidation
from inmind.jobs.dream_history import Dream
from inmind.jobs.upkeep import Upkeep

NOON = datetime(2026, 3, 12, 12, tzinfo=UTC)
DONE = Dream(
    id=7,
    resource="ada",
    status="done",
    trigger="asked",
    began=NOON,
    notes=("resource/ada#1", "resource/ada#2"),
    lines=(PageLine(Section.BOND, "Prefers tabs"),),
)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (DONE, "dream 7 of ada: done by rules: 2 notes taken in, 1 line written"),
        (
            Dream(
                id=7, resource="ada", status="failed", trigger="spike", began=NOON, phase="check", reason="bond: lost"
            ),
            "dream 7 of ada: failed in phase check: bond: lost",
        ),
        (
            Dream(id=7, resource="ada", status="running", trigger="schedule", began=NOON, phase="propose"),
            "dream 7 of ada: running in phase propose",
        ),
        (Consolidation(merged=3, expired=1), "consolidation: 3 merged, 0 superseded, 1 expired"),
        (Consolidation(finished=False), "consolidation: 0 merged, 0 superseded, 0 expired (unfinished)"),
        (
            Upkeep(dreams=(DONE,), consolidated={"ada": Consolidation()}, notes=2),
            "upkeep: 1 dream, 1 resource consolidated, 2 automatic notes",
        ),
        (Upkeep(finished=False), "upkeep: 0 dreams, 0 resources consolidated, 0 automatic notes (unfinished)"),
    ],
)
def test_a_result_prints_as_one_line(result: Dream | Consolidation | Upkeep, text: str) -> None:
    assert str(result) == text
