"""Search in Chinese, Japanese and mixed conversations: which line answers which question.

All conversations belong to one resource, so each competes with all others. There are no vectors: the test measures
whether words are found in scripts without spaces.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from inmind import Memory

pytestmark = pytest.mark.spec("H3")

CONVERSATIONS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("bilingual.jsonl").read_text("utf-8").splitlines()
]


@pytest.fixture(scope="module")
def open_memory(tmp_path_factory: pytest.TempPathFactory) -> Generator[Memory]:
    with Memory.open(tmp_path_factory.mktemp("home") / "memory", embedder=None) as memory:
        for number, conversation in enumerate(CONVERSATIONS):
            session = memory.session(f"talk-{number}", resource="ada")
            session.prepare(
                [
                    {"role": ("user", "assistant")[place % 2], "content": line}
                    for place, line in enumerate(conversation["lines"])
                ]
            )
        yield memory


def answer_ranks(memory: Memory, language: str) -> list[int]:
    """Ranks of the answers among the hits, from 1; 0 if not found."""
    ranks: list[int] = []
    for conversation in CONVERSATIONS:
        if conversation["language"] == language:
            for query, answer in conversation["queries"]:
                texts = [hit.crystal.text for hit in memory.resource("ada").search(query)]
                ranks.append(
                    texts.index(conversation["lines"][answer]) + 1 if conversation["lines"][answer] in texts else 0
                )
    return ranks


# Most answers that are not first come after a line that asks the same question.
@pytest.mark.parametrize(("language", "queries", "first"), [("zh", 30, 0.75), ("ja", 15, 0.9), ("mixed", 6, 0.8)])
def test_the_answer_is_among_the_first_three_hits(
    open_memory: Memory, language: str, queries: int, first: float
) -> None:
    ranks = answer_ranks(open_memory, language)
    assert len(ranks) >= queries
    assert all(1 <= place <= 3 for place in ranks)
    assert ranks.count(1) >= first * len(ranks)
