"""Which section statements belong to, English and Chinese, sentence by sentence.

The first half of the table is what the rules were written for. The second was written when they were done, and nothing
was changed for it since: it says how well they do on sentences that nobody has thought of.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tables import each_row

from inmind.core.events.base import Trust
from inmind.dreams.classify import classify_section
from inmind.dreams.page.sections import Section

pytestmark = pytest.mark.spec("G4")

TABLE: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("sections.jsonl").read_text("utf-8").splitlines()
]
HELD_OUT = [row for row in TABLE if row.get("held_out")]


def section(row: dict[str, Any]) -> Section:
    return classify_section(row["text"], trust=Trust[row.get("trust", "AGENT")])


@each_row("row", [row for row in TABLE if row not in HELD_OUT], ids=lambda row: row["text"])
def test_a_statement_has_its_section(row: dict[str, Any]) -> None:
    assert section(row) == row["section"]


def test_nineteen_of_twenty_that_the_rules_were_not_written_for_have_theirs() -> None:
    right = [row for row in HELD_OUT if section(row) == row["section"]]
    assert len(right) >= 0.95 * len(HELD_OUT)


def test_what_is_in_the_wrong_place_is_under_what_is_going_on_where_it_fades_soonest() -> None:
    assert {section(row) for row in HELD_OUT if section(row) != row["section"]} <= {Section.ACTIVE}


@pytest.mark.spec("J5")
@each_row("row", TABLE, ids=lambda row: row["text"])
def test_tool_text_is_about_no_person(row: dict[str, Any]) -> None:
    assert classify_section(row["text"], kind="preference", trust=Trust.DATA) is Section.ACTIVE


@each_row(
    ("kind", "section"),
    [
        ("preference", Section.BOND),
        ("relationship", Section.BOND),
        ("goal", Section.ACTIVE),
        ("task_pattern", Section.ACTIVE),
        ("episode", Section.ACTIVE),
    ],
)
def test_the_kind_that_was_given_goes_before_the_words(kind: str, section: Section) -> None:
    assert classify_section("Earned 3 USDC", kind=kind) is section
    assert classify_section("I should read more", kind=kind) is section


def test_who_i_am_depends_on_who_speaks() -> None:
    assert classify_section("I'm a teacher", trust=Trust.PERSON) is Section.BOND
    assert classify_section("I'm a teacher", trust=Trust.AGENT) is Section.PHENOTYPE
