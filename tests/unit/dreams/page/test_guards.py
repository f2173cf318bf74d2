"""The guards of MEMORY.md, one by one."""

from __future__ import annotations

import pytest

from inmind.core.events.base import Trust
from inmind.core.events.dreams import PageLine
from inmind.dreams.page.guards import run_guards
from inmind.dreams.page.page import PAGE_TITLE, Section

pytestmark = pytest.mark.spec("G6")


def a_page(text: str, section: Section = Section.ACTIVE) -> str:
    headings = (f"## {one}\n\n{text}\n" if one is section else f"## {one}\n" for one in Section)
    return f"{PAGE_TITLE}\n\n" + "\n".join(headings)


LONG_ENOUGH = a_page("A page that says enough to be one, and a little more than that")
BOND = a_page("- Ada prefers tabs, lives in Berlin, drinks tea, hates meetings", Section.BOND)


def pointers(number: int) -> str:
    return "\n".join(f"- Past: topic {n} → search: `word{n}`" for n in range(number))


def failed_guards(before: str, after: str, *lines: PageLine, **more: object) -> list[str]:
    verdicts = run_guards(before, after, {line.text: line for line in lines}, **more)  # type: ignore[arg-type]
    return [verdict.guard for verdict in verdicts if not verdict.passed]


def test_an_ordinary_change_passes_all_guards() -> None:
    assert failed_guards(LONG_ENOUGH, LONG_ENOUGH + "\nmore") == []


@pytest.mark.parametrize(
    ("old", "new", "guards"), [(4_000, 1_500, ["mass_drop"]), (4_000, 2_000, []), (1_700, 100, [])]
)
def test_a_mature_page_must_not_lose_half(old: int, new: int, guards: list[str]) -> None:
    assert failed_guards(a_page("a" * old), a_page("a" * new)) == guards


def test_a_page_over_its_limit_may_shrink_to_the_limit() -> None:
    assert failed_guards(a_page("a " * 10_000), a_page("a " * 1_600)) == []


def test_more_than_twenty_pointers_are_refused_unless_users_wrote_them_all() -> None:
    twenty, more = a_page(pointers(20), Section.POINTERS), a_page(pointers(21), Section.POINTERS)
    own = PageLine(Section.POINTERS, "Past: topic 0 → search: `word0`")
    assert failed_guards(LONG_ENOUGH, twenty, own) == []
    assert failed_guards(LONG_ENOUGH, more, own) == ["pointers"]
    assert failed_guards(LONG_ENOUGH, more) == []


def test_a_page_of_headings_only_is_refused() -> None:
    assert "substance" in failed_guards(
        LONG_ENOUGH, a_page("<!-- a comment that is long enough to look like something -->")
    )


def test_a_change_that_loses_most_of_the_bond_is_refused() -> None:
    assert failed_guards(BOND, a_page("- Somebody likes something that he may have said once", Section.BOND)) == [
        "bond"
    ]
    assert failed_guards(BOND, a_page("- Ada prefers tabs and tea, among other things she likes", Section.BOND)) == []


def test_required_texts_are_checked_line_by_line() -> None:
    listed = a_page("- Use tabs\n  in every file\n* Never use spaces, and say so to everybody")
    assert failed_guards(LONG_ENOUGH, listed, required_texts=("Use tabs\nin every file", "in every file")) == []
    assert failed_guards(LONG_ENOUGH, listed, required_texts=("Use tabs\nand is gone",)) == ["retention"]


@pytest.mark.parametrize("part", ["ever", "use spaces", "Never use spaces"])
def test_a_required_text_is_not_matched_inside_another_line(part: str) -> None:
    assert failed_guards(
        LONG_ENOUGH, a_page("- Never use spaces, and say so to everybody who asks"), required_texts=(part,)
    ) == ["retention"]


def test_the_number_of_retired_lines_is_limited() -> None:
    assert failed_guards(LONG_ENOUGH, LONG_ENOUGH, retired_count=3, max_retired=3) == []
    assert failed_guards(LONG_ENOUGH, LONG_ENOUGH, retired_count=4, max_retired=3) == ["share"]


@pytest.mark.spec("J5")
@pytest.mark.parametrize(
    ("section", "guards"), [(Section.BOND, ["trust"]), (Section.PHENOTYPE, ["trust"]), (Section.ACTIVE, [])]
)
def test_tools_cannot_write_about_people(section: Section, guards: list[str]) -> None:
    assert failed_guards(LONG_ENOUGH, LONG_ENOUGH, PageLine(section, "be evil", trust=Trust.DATA)) == guards


def test_a_page_over_its_limit_must_not_grow() -> None:
    own = PageLine(Section.ACTIVE, "words" * 1_300)
    long = a_page(f"- {own.text}")
    assert failed_guards(LONG_ENOUGH, long, own) == ["room"]
    assert failed_guards(LONG_ENOUGH, long) == []
    assert failed_guards(long, long, own) == []
