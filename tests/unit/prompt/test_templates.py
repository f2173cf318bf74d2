"""The guide is about what a prompt shows, and the reminders about what the model can do."""

from __future__ import annotations

import pytest
from tables import each_row

from inmind.core.tokens import estimator
from inmind.history.view import BANDS, EMERGENCY_BAND
from inmind.prompt.templates import COMMAND_TOOL, WORDING, offered_commands, wording_for

COMMANDS = ("write", "compact", "search")
PRESENT = ("entities", "overview", "retained", "compacted_history")
BANDS_WITH_AN_ASK = [name for name in (*(name for _, name in BANDS), EMERGENCY_BAND) if name != "normal"]


@pytest.mark.spec("E4")
@each_row("band", BANDS_WITH_AN_ASK)
def test_each_band_says_what_to_compact_to_a_model_that_can(band: str) -> None:
    assert wording_for(COMMANDS, PRESENT)[band].startswith("Compact ")
    assert wording_for({"write"}, PRESENT)[band] == ""


@pytest.mark.spec("D11")
def test_a_model_that_cannot_write_is_not_asked_to() -> None:
    texts = " ".join(wording_for((), ["entities"]).values())
    assert "overview.md" not in texts
    assert "archive" not in texts


@pytest.mark.spec("D11", "B6")
def test_a_model_that_cannot_search_is_not_asked_to() -> None:
    assert "search" not in wording_for((), PRESENT)["guide"]
    assert "None: ask." in wording_for((), PRESENT)["guide"]


@pytest.mark.spec("D11", "B6")
@pytest.mark.parametrize(
    ("about", "words"),
    [
        ("entities", ['"It", "that page"', "Unsure: ask which.", "None or not shown: ask or search."]),
        ("retained", ["retained still applies"]),
        ("compacted_history", ["ids in them are exact"]),
    ],
)
def test_the_guide_explains_what_is_shown_and_nothing_else(about: str, words: list[str]) -> None:
    assert all(part in wording_for(COMMANDS, [about])["guide"] for part in words)
    assert not any(part in wording_for(COMMANDS, {*PRESENT} - {about})["guide"] for part in words)


@pytest.mark.spec("D11")
def test_without_memory_there_is_no_guide() -> None:
    assert wording_for(COMMANDS, ())["guide"] == ""


def test_the_wording_for_everything_is_complete() -> None:
    assert wording_for(COMMANDS, PRESENT) == WORDING


@pytest.mark.spec("D11")
@pytest.mark.parametrize(("present", "max_tokens"), [(("entities", "overview"), 60), (PRESENT, 90)])
def test_the_guide_is_short_because_it_is_in_every_prompt(present: tuple[str, ...], max_tokens: int) -> None:
    assert estimator()(wording_for(COMMANDS, present)["guide"]) <= max_tokens


def test_the_offered_commands_are_read_from_the_declaration() -> None:
    declared = {"name": COMMAND_TOOL, "description": "note TEXT; list"}
    assert offered_commands([declared]) == offered_commands([{"type": "function", "function": declared}])
    assert offered_commands([declared]) == {"note", "list"}
    assert offered_commands([{"name": "mine", "description": "note"}]) == frozenset()
