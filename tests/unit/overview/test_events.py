"""What happens is noted on the page, where it is looked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.errors import InvalidInput
from inmind.overview import LANGUAGES, is_maintained, template
from inmind.overview.events import KINDS, MOST_ACTIONS, MOST_LINES, Occurrence, with_event
from inmind.overview.own import LONGEST, is_own
from inmind.overview.sections import headings_in, section_of

pytestmark = pytest.mark.spec("F5")

SECTIONS = ("Current task", "Key decisions", "Known facts", "Open problems", "Recent actions")


def after(*events: tuple[str, str], page: str = "", language: str = "en") -> str:
    page = page or template(language)
    for kind, text in events:
        page = with_event(page, Occurrence(kind, text), language)
    return page


def noted(page: str) -> dict[str, list[str]]:
    """The lines of each section that has any, but for comments."""
    found = {title: section_of(page, title).split("\n") for title in SECTIONS}
    lines = {title: [line for line in body if line and not line.startswith("<!--")] for title, body in found.items()}
    return {title: body for title, body in lines.items() if body}


@pytest.mark.parametrize(
    ("kind", "section", "line"),
    [
        ("task_started", "Current task", "- ship v2 ·"),
        ("task_completed", "Recent actions", "- done: ship v2 ·"),
        ("decision_made", "Key decisions", "- ship v2 ·"),
        ("bug_found", "Open problems", "- ship v2 ·"),
        ("context_changed", "Known facts", "- ship v2 ·"),
        ("compression_completed", "Recent actions", "- ship v2 ·"),
    ],
)
def test_each_kind_lands_in_its_section_and_nothing_else_changes(kind: str, section: str, line: str) -> None:
    page = after((kind, "ship v2"))
    assert noted(page) == {section: [line]}
    assert page.replace(f"{line}\n", "") == template("en")


def test_a_new_task_takes_the_place_of_the_one_before_which_was_set_aside() -> None:
    page = after(("task_started", "ship v2"), ("task_started", "fix login"))
    assert noted(page) == {"Current task": ["- fix login ·"], "Recent actions": ["- set aside: ship v2 ·"]}
    again = after(("task_started", "ship v2"), page=page)
    assert noted(again) == {"Current task": ["- ship v2 ·"], "Recent actions": ["- set aside: fix login ·"]}


def test_a_task_that_is_done_leaves_and_is_remembered_as_done() -> None:
    page = after(("task_started", "ship v2"), ("task_started", "fix login"), ("task_completed", "Fix  Login"))
    assert noted(page) == {"Recent actions": ["- done: Fix Login ·", "- set aside: ship v2 ·"]}
    assert noted(after(("task_completed", "ship v2"), page=page)) == {
        "Recent actions": ["- done: ship v2 ·", "- done: Fix Login ·"]
    }


def test_what_is_said_again_moves_to_the_front_and_is_not_doubled() -> None:
    page = after(("decision_made", "use SQLite"), ("decision_made", "no ORM"), ("decision_made", "Use  sqlite"))
    assert noted(page) == {"Key decisions": ["- Use sqlite ·", "- no ORM ·"]}


def test_what_somebody_else_says_already_is_theirs_to_say() -> None:
    theirs = "## Current task\n1. Ship v2\n\n## Key decisions\n* [x] use   SQLITE\n"
    assert after(("decision_made", "Use sqlite"), ("task_started", "ship V2"), page=theirs) == theirs


def test_a_line_that_somebody_adds_to_is_theirs() -> None:
    page = after(("task_started", "ship v2")).replace("ship v2 ·", "ship v2 · but not on Friday")
    assert is_maintained(page)
    assert noted(after(("task_started", "fix login"), page=page)) == {
        "Current task": ["- fix login ·", "- ship v2 · but not on Friday"]
    }


def test_only_lines_of_ours_are_let_go() -> None:
    theirs = "".join(f"- their {number}\n" for number in range(20))
    page = after(*(("decision_made", f"ours {number}") for number in range(20)), page=f"## Key decisions\n{theirs}")
    ours = [f"- ours {number} ·" for number in range(19, 19 - MOST_LINES, -1)]
    assert section_of(page, "Key decisions").split("\n") == [*ours, *theirs.strip().split("\n")]


def test_a_fixed_bug_leaves() -> None:
    page = after(("bug_found", "save failed"), ("bug_found", "load failed"), ("bug_fixed", "save failed"))
    assert noted(page) == {"Open problems": ["- load failed ·"]}
    assert after(("bug_fixed", "never heard of"), page="# Mine\n") == "# Mine\n"


def test_a_section_is_found_in_either_language_and_else_added() -> None:
    assert "## 关键决策\n<!-- 决定了什么，为什么。 -->\n- use SQLite ·\n" in after(
        ("decision_made", "use SQLite"), page=template("zh")
    )
    assert after(("decision_made", "use SQLite"), page="# Mine\n") == "# Mine\n\n## Key decisions\n- use SQLite ·\n"
    assert (
        after(("task_completed", "测试"), language="zh", page="# 我的\n") == "# 我的\n\n## 最近操作\n- 完成：测试 ·\n"
    )


def test_a_paragraph_below_does_not_become_part_of_the_list() -> None:
    page = after(("bug_found", "a"), ("bug_found", "b"), page="## Open problems\nNone so far.\n")
    assert page == "## Open problems\n- b ·\n- a ·\n\nNone so far.\n"


@pytest.mark.parametrize("hostile", ["# Rules", "```\ncode", "~~~", "<!-- hide", "-->", "a\n## Rules\nb", "</memory>"])
def test_no_text_can_open_or_close_anything(hostile: str) -> None:
    page = after(("bug_found", hostile), ("bug_found", "then this"))
    (line,) = (line for line in noted(page)["Open problems"] if "then this" not in line)
    assert [words for _, _, words in headings_in(page.split("\n"))][1:] == list(SECTIONS)
    assert not line.removeprefix("- ").startswith(("#", "```", "~~~"))
    assert "<!--" not in line
    assert "-->" not in line
    assert "</memory>" not in line


def test_a_long_text_is_one_short_line() -> None:
    (line,) = noted(after(("bug_found", "word\n" * 500)))["Open problems"]
    assert len(line) <= LONGEST + 4
    assert line.endswith("word… ·")


@pytest.mark.spec("E2")
@pytest.mark.parametrize("kind", KINDS)
def test_what_memory_notes_by_itself_does_not_make_a_page_maintained(kind: str) -> None:
    assert not is_maintained(after((kind, "ship v2")))


@pytest.mark.parametrize(
    ("kind", "text", "field"),
    [
        ("party", "x", "kind"),
        ("bug_found", " · \n", "text"),
        ("bug_found", "", "text"),
        ("bug_found", "\ud800", "text"),
    ],
)
@pytest.mark.spec("J3")
def test_what_is_no_event_is_refused_by_its_field(kind: str, text: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Occurrence(kind, text)
    assert refused.value.field == field


LINES = st.sampled_from(
    [
        *("", "text", "- a", "- a ·", "- set aside: a ·", "- 完成：b ·", "## Current task", "## 最近操作", "### Below"),
        *("## Recent actions", "# Top", "```", "~~~", "<!--", "-->", "<!-- guide -->", "---", "a: 1", "* c ·\r"),
    ]
)
PAGES = st.lists(LINES, max_size=12).map("\n".join)
EVENTS = st.builds(
    Occurrence,
    kind=st.sampled_from([*KINDS, "action_taken", "bug_fixed"]),
    text=st.sampled_from(["a", "b", "c", "# d", "<!-- e", "-->", "```", "A "])
    | st.text(min_size=1).filter(
        lambda text: text.replace("·", "").strip() and "\x00" not in text and text.isprintable()
    ),
)


@given(text=PAGES | st.text(), events=st.lists(EVENTS, max_size=20), language=st.sampled_from(LANGUAGES))
def test_events_are_noted_once_and_bounded_and_no_line_of_others_is_lost(
    text: str, events: list[Occurrence], language: str
) -> None:
    page = text
    for event in events:
        page = with_event(page, event, language)
        assert with_event(page, event, language) == page
    kept = iter(page.split("\n"))
    assert all(line in kept for line in text.split("\n") if line.strip() and not is_own(line))
    before = sum(map(is_own, text.split("\n")))
    assert sum(map(is_own, page.split("\n"))) <= before + 1 + 3 * MOST_LINES + MOST_ACTIONS
