"""Edits that a model makes from tool text are marked, whatever their kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dream_builders import a_line, a_material, a_note

from inmind.core.events.base import Trust
from inmind.dreams.page.edits import Add, Rewrite
from inmind.dreams.parse_answer import label_material, parse_answer

pytestmark = pytest.mark.spec("G12", "J5")

MARKED = a_line('(from a tool) "Build 77 failed on Monday"', trust=Trust.DATA)
OWN = a_line("The build is watched by Ben")
MATERIAL = a_material([MARKED, OWN], notes=(a_note("Build 77 failed", trust=Trust.DATA), a_note("Ben is on leave")))
LABELS = label_material(MATERIAL)
L = {line.text: label for label, line in LABELS.lines.items()}


def parse_line(**edit: Any) -> str:
    answer = parse_answer(json.dumps({"edits": [{"section": "Active Context", "sources": [], **edit}]}), LABELS)
    assert not answer.refused
    (one,) = answer.edits
    assert isinstance(one, Add | Rewrite)
    return one.text


def test_added_and_rewritten_lines_from_tools_have_the_same_mark() -> None:
    text, marked = "Build 77 failed and is watched by Ben", '(from a tool) "Build 77 failed and is watched by Ben"'
    sources = {"text": text, "sources": ["N1", "N2"]}
    assert parse_line(op="add", **sources) == marked
    assert parse_line(op="rewrite", lines=[L[OWN.text]], **sources) == marked


def test_a_rewritten_tool_line_is_marked_once() -> None:
    marked = '(from a tool) "On Monday, Build 77 failed"'
    for text in ("On Monday, Build 77 failed", marked):
        assert parse_line(op="rewrite", lines=[L[MARKED.text]], text=text) == marked


def test_text_without_tool_sources_is_not_marked() -> None:
    text = "The build is watched by Ben, who is on leave"
    assert parse_line(op="rewrite", lines=[L[OWN.text]], text=text, sources=["N2"]) == text
