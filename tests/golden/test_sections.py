"""Sections of labelled statements, in English and Chinese.

The rules were written for the first part of the table. The held-out part was written afterwards, and no rule changed
for it: it measures how well they generalize.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tables import each_row

from inmind.core.events.base import Trust
from inmind.dreams.page.page import Section
from inmind.dreams.statements import classify_section

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


def test_nineteen_of_twenty_held_out_statements_have_their_section() -> None:
    correct = [row for row in HELD_OUT if section(row) == row["section"]]
    assert len(correct) >= 0.95 * len(HELD_OUT)


def test_misclassified_statements_are_in_the_active_context() -> None:
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
def test_a_given_kind_takes_precedence_over_the_words(kind: str, section: Section) -> None:
    assert classify_section("Earned 3 USDC", kind=kind) is section
    assert classify_section("I should read more", kind=kind) is section


def test_a_statement_in_the_first_person_belongs_to_its_speaker() -> None:
    assert classify_section("I'm a teacher", trust=Trust.PERSON) is Section.BOND
    assert classify_section("I'm a teacher", trust=Trust.AGENT) is Section.PHENOTYPE
