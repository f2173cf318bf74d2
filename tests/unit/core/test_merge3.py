"""Three-way merge keeps every line of both sides, and is fast for any text."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from time import process_time

import pytest
from tables import each_row

from inmind.core.merge3 import MAX_LINES, MAX_PAIRS, merge_lines
from inmind.documents.document import MAX_DOCUMENT_BYTES


def text(lines: list[str]) -> str:
    return "\n".join(lines)


@pytest.mark.spec("C8")
def test_every_change_in_a_long_text_with_many_blank_lines_is_merged() -> None:
    base = [f"line {at}" if at % 2 else "" for at in range(4_000)]
    assert (len(base) // 2) ** 2 > MAX_PAIRS
    ours = ["first", *(f"{line}, mine" if at % 7 == 1 else line for at, line in enumerate(base))]
    theirs = [*(f"{line}, theirs" if at % 7 == 3 and line else line for at, line in enumerate(base)), "last"]
    both = merge_lines(text(base), text(ours), text(theirs))
    assert both is not None
    assert both.split("\n") == [
        "first",
        *(mine if mine != line else new for line, mine, new in zip(base, ours[1:], theirs, strict=False)),
        "last",
    ]


@pytest.mark.spec("C8")
def test_in_a_text_with_too_many_lines_only_one_side_may_change_the_middle() -> None:
    base = ["-"] * (MAX_LINES + 2)
    around = ["mine", *base[2:], "mine"]
    assert merge_lines(text(base), text(around), text([*base[:9], "theirs", *base[10:]])) is None
    assert merge_lines(text(base), text(["mine", *base[1:]]), text([*base[:-1], "theirs"])) == text(
        ["mine", *base[2:], "theirs"]
    )


@pytest.mark.spec("C8")
def test_a_removal_from_a_long_text_that_the_other_side_changed_is_a_conflict() -> None:
    base = [f"{at}" for at in range(MAX_LINES + 2)]
    ours = ["mine", *base[1:-1], "mine"]
    assert merge_lines(text(base), text(ours), text(base[10:20])) is None


CaseBuilder = Callable[[Random], tuple[list[str], list[str], list[str]]]
HALF = MAX_DOCUMENT_BYTES // 2 - 2


def only_blank(_: Random) -> tuple[list[str], list[str], list[str]]:
    base = [""] * (MAX_DOCUMENT_BYTES - 8)
    return base, ["x", *base, "x"], [*base[:500_000], "y", *base[500_000:]]


def two_line_values(random: Random) -> tuple[list[str], list[str], list[str]]:
    base, ours, theirs = (random.choices("ab", k=HALF) for _ in range(3))
    return base, ours, theirs


def two_line_values_short(random: Random) -> tuple[list[str], list[str], list[str]]:
    base, ours, theirs = (random.choices("ab", k=MAX_LINES) for _ in range(3))
    return base, ours, theirs


def shifted_by_a_line(random: Random) -> tuple[list[str], list[str], list[str]]:
    base = random.choices("ab", k=HALF - 4)
    return base, ["x", *base, "x"], ["y", *base[:-1]]


def shuffled(random: Random) -> tuple[list[str], list[str], list[str]]:
    base = [f"{at:06}" for at in range(MAX_LINES)]
    return base, random.sample(base, len(base)), random.sample(base, len(base))


def alternating_changes(_: Random) -> tuple[list[str], list[str], list[str]]:
    base = [f"{at:06}" for at in range(MAX_LINES)]
    ours = [line + "A" * (at % 2) for at, line in enumerate(base)]
    return base, ours, [line + "B" * (at % 2 == 0) for at, line in enumerate(base)]


def interleaved(_: Random) -> tuple[list[str], list[str], list[str]]:
    base = [f"{at:05x}" for at in range(MAX_DOCUMENT_BYTES // 8)]
    return base, [each for line in base for each in (line, "p")], [each for line in base for each in (line, "q")]


def rewritten_with_their_lines(_: Random) -> tuple[list[str], list[str], list[str]]:
    base = [f"{at:06}" for at in range(MAX_LINES)]
    theirs = [f"{at}" if at % 2 else line for at, line in enumerate(base)]
    return base, ["-"] * (HALF // 2) + theirs[1::2], theirs


@pytest.mark.exhaustive
@pytest.mark.spec("C8")
@each_row(
    "build_case",
    [
        only_blank,
        two_line_values,
        two_line_values_short,
        shifted_by_a_line,
        shuffled,
        alternating_changes,
        interleaved,
        rewritten_with_their_lines,
    ],
)
def test_merging_the_largest_text_takes_seconds_not_minutes(build_case: CaseBuilder) -> None:
    """A guard against quadratic time, not a benchmark: a busy machine is several times slower."""
    texts = [text(lines) for lines in build_case(Random(0))]
    assert all(len(version) <= MAX_DOCUMENT_BYTES for version in texts)
    started = process_time()
    merge_lines(*texts)
    assert process_time() - started < 5
