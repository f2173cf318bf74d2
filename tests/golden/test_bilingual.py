"""Conversations in Chinese and Japanese, and in both with English words among them: which line answers which question.

All of them are one person's, so that every conversation is in the way of all the others. There are no vectors: what is
measured is whether words are found where no spaces stand between them.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from inmind import Memory

pytestmark = pytest.mark.spec("H3")

TALKS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("bilingual.jsonl").read_text("utf-8").splitlines()
]


@pytest.fixture(scope="module")
def remembering(tmp_path_factory: pytest.TempPathFactory) -> Generator[Memory]:
    with Memory.open(tmp_path_factory.mktemp("home") / "memory", embedder=None) as memory:
        for number, talk in enumerate(TALKS):
            session = memory.session(f"talk-{number}", resource="ada")
            session.prepare(
                [
                    {"role": ("user", "assistant")[place % 2], "content": line}
                    for place, line in enumerate(talk["lines"])
                ]
            )
        yield memory


def places(memory: Memory, language: str) -> list[int]:
    """Where the answers stand among what is found, from 1; 0 for one that is not found."""
    found: list[int] = []
    for talk in TALKS:
        if talk["language"] == language:
            for query, answer in talk["queries"]:
                texts = [hit.crystal.text for hit in memory.resource("ada").search(query)]
                found.append(texts.index(talk["lines"][answer]) + 1 if talk["lines"][answer] in texts else 0)
    return found


# Most of what does not come first comes behind a line that asks the same question.
@pytest.mark.parametrize(("language", "queries", "first"), [("zh", 30, 0.75), ("ja", 15, 0.9), ("mixed", 6, 0.8)])
def test_the_answer_is_among_the_first_three_hits(
    remembering: Memory, language: str, queries: int, first: float
) -> None:
    found = places(remembering, language)
    assert len(found) >= queries
    assert all(1 <= place <= 3 for place in found)
    assert found.count(1) >= first * len(found)
