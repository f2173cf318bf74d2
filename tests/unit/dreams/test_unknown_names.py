"""Names that are reported as unknown, and names that are not."""

from __future__ import annotations

import pytest
from tables import each_row

from inmind.dreams.gaps import find_unknown_names

pytestmark = pytest.mark.spec("G3", "G5")


@each_row(
    ("sentence", "names"),
    [
        ("I met Maria Lopez at the harbour.", ["Maria Lopez"]),
        ("We had a long talk with Bob about Kubernetes.", ["Bob", "Kubernetes"]),
        ("Yesterday I spoke to Bob again.", ["Bob"]),
        ("It turned out that Ingrid owns the boat.", ["Ingrid"]),
        ("昨天我读完了《三体》。", ["三体"]),
    ],
)
def test_an_unexplained_name_is_found(sentence: str, names: list[str]) -> None:
    assert find_unknown_names([sentence]) == names


@each_row(
    "sentence",
    [
        "Never deploy anything at all on Fridays.",
        "I live in London and I prefer short answers.",
        "Next week we go to Bridgetown for a few days.",
        "We all love France and Italy very much.",
        "I have always used Google for that.",
        "Hi, my name is Ada Lovelace and I have a question.",
        "Yesterday my sister Maria called me again.",
        "We went there with Maria, my sister, and it rained.",
        "The captain is very old, and his name is Olaf.",
        "We sailed with my cousins Ingrid and Olaf for a week.",
        "Yesterday we adopted a dog named Rex.",
        "Last year we walked along the Thames for a week.",
        "The chart was drawn by Olaf Berg many years ago.",
        "Hey Ingrid, the boat is ready to sail.",
        "Wow, Ingrid, the boat is ready to sail!",
        "The boat is ready to sail, Ingrid!",
        "The oldest sailor, Olaf, sleeps all day long.",
        "I would like a table at Luigi for four.",
        "Could you book us a table with Luigi Rossi again?",
        "With Maria Lopez, please.",
        "- **Crew and Cargo Lists:** both are in the drawer below deck.",
        "我有个朋友叫王小明，他喜欢钓鱼。",
    ],
)
def test_known_explained_addressed_and_requested_names_are_skipped(sentence: str) -> None:
    assert find_unknown_names([sentence]) == []
