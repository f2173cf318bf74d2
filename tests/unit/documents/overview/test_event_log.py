"""Events are listed on the overview in their section."""

from __future__ import annotations

import json

import pytest
from builders import an_event
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.encoding import to_json
from inmind.core.events.base import Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.session import CompactionUndone
from inmind.documents.overview import LANGUAGES, is_maintained, template
from inmind.documents.overview.event_log import (
    HOST_EVENT_KINDS,
    MAX_ACTION_LINES,
    MAX_REMOVED_LINES,
    MAX_SECTION_LINES,
    OverviewLog,
    overview_event,
    with_log_lines,
)
from inmind.documents.overview.generated_lines import MAX_LINE_CHARACTERS, is_generated
from inmind.documents.overview.sections import find_headings, read_section
from inmind.documents.overview.size import MAX_EVENT_BYTES
from inmind.documents.overview.template import OverviewSection
from inmind.errors import InvalidInput

pytestmark = pytest.mark.spec("F5")

SECTIONS = ("Current task", "Key decisions", "Known facts", "Open problems", "Recent actions")


class Life:
    """A page, and all that happens to it: memory enters its lines after everything, as it does in a session."""

    def __init__(self, page: str = "", language: str = "en") -> None:
        self.page, self.language, self.noted, self.seq = page or template(language), language, OverviewLog(), 0

    def occurred(self, *events: tuple[str, str], trust: Trust = Trust.OPERATOR) -> Life:
        for kind, text in events:
            self.seq += 1
            self.noted = self.noted.with_event(OverviewEvent(kind, text), seq=self.seq, trust=trust)
            self.page = with_log_lines(self.page, self.noted, self.language)
        return self

    def lifted(self, of: int) -> Life:
        self.seq += 1
        self.noted = self.noted.apply(an_event(CompactionUndone(compaction_seq=of), seq=self.seq))
        self.page = with_log_lines(self.page, self.noted, self.language)
        return self

    def written(self, page: str) -> Life:
        """A write by a person or model."""
        self.seq += 1
        self.noted = self.noted.apply(an_event(DocumentWritten("overview.md", page), seq=self.seq))
        self.page = with_log_lines(page, self.noted, self.language)
        return self


def after(*events: tuple[str, str], page: str = "", language: str = "en") -> str:
    return Life(page, language).occurred(*events).page


def noted(page: str) -> dict[str, list[str]]:
    """The lines of each section that has any, but for comments."""
    found = {title: read_section(page, title).split("\n") for title in SECTIONS}
    lines = {title: [line for line in body if line and not line.startswith("<!--")] for title, body in found.items()}
    return {title: body for title, body in lines.items() if body}


@each_row(
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


def test_a_new_task_replaces_the_current_one_which_is_set_aside() -> None:
    life = Life().occurred(("task_started", "ship v2"), ("task_started", "fix login"))
    assert noted(life.page) == {"Current task": ["- fix login ·"], "Recent actions": ["- set aside: ship v2 ·"]}
    again = life.occurred(("task_started", "ship v2")).page
    assert noted(again) == {"Current task": ["- ship v2 ·"], "Recent actions": ["- set aside: fix login ·"]}


def test_a_task_that_is_done_leaves_and_is_remembered_as_done() -> None:
    life = Life().occurred(("task_started", "ship v2"), ("task_started", "fix login"), ("task_completed", "Fix  Login"))
    assert noted(life.page) == {"Recent actions": ["- done: Fix Login ·", "- set aside: ship v2 ·"]}
    assert noted(life.occurred(("task_completed", "ship v2")).page) == {
        "Recent actions": ["- done: ship v2 ·", "- done: Fix Login ·"]
    }


def test_a_host_that_completes_a_task_in_other_words_means_the_current_one() -> None:
    life = Life().occurred(("task_started", "Fix the login bug"), ("task_completed", "the login bug is fixed."))
    assert noted(life.page) == {"Recent actions": ["- done: the login bug is fixed. ·"]}


def test_a_step_that_a_tool_lists_as_done_does_not_end_the_hosts_task() -> None:
    life = Life().occurred(("task_started", "Fix the login bug"))
    life.occurred(("task_completed", "write a test"), trust=Trust.DATA)
    assert noted(life.page)["Current task"] == ["- Fix the login bug ·"]


def test_a_task_that_is_begun_again_can_be_finished_again() -> None:
    life = Life().occurred(("task_started", "a"), ("task_completed", "a"))
    assert life.noted.finished_titles == ("a",)
    assert life.occurred(("task_started", "A")).noted.finished_titles == ()


def test_only_the_last_active_compaction_is_listed() -> None:
    life = Life().occurred(("compression_completed", "archived 3"), ("compression_completed", "archived 5"))
    assert noted(life.page) == {"Recent actions": ["- archived 5 ·"]}
    assert noted(life.lifted(1).page) == {"Recent actions": ["- archived 3 ·"]}
    assert noted(life.lifted(0).page) == {}


def test_undoing_an_earlier_compaction_keeps_the_line_of_the_later_one() -> None:
    life = Life().occurred(("compression_completed", "archived 3"), ("compression_completed", "archived 5"))
    assert noted(life.lifted(0).page) == {"Recent actions": ["- archived 5 ·"]}
    assert noted(life.lifted(1).page) == {}


def test_deleting_the_line_of_a_compaction_does_not_show_the_one_before() -> None:
    life = Life().occurred(("compression_completed", "archived 3"), ("compression_completed", "archived 5"))
    bare = life.page.replace("- archived 5 ·\n", "")
    assert noted(life.written(bare).written(bare).page) == {}


def test_a_repeated_event_moves_to_the_front_without_a_duplicate() -> None:
    page = after(("decision_made", "use SQLite"), ("decision_made", "no ORM"), ("decision_made", "Use  sqlite"))
    assert noted(page) == {"Key decisions": ["- Use sqlite ·", "- no ORM ·"]}


def test_a_line_of_another_writer_is_not_repeated() -> None:
    theirs = "## Current task\n1. Ship v2\n\n## Key decisions\n* [x] use   SQLITE\n"
    assert after(("decision_made", "Use sqlite"), ("task_started", "ship V2"), page=theirs) == theirs


def test_a_generated_line_that_a_writer_extends_belongs_to_the_writer() -> None:
    life = Life().occurred(("task_started", "ship v2"))
    life.written(life.page.replace("ship v2 ·", "ship v2 · but not on Friday"))
    life.written(life.page.replace("- ship v2 ·\n", ""))
    assert is_maintained(life.page)
    assert noted(life.occurred(("task_started", "fix login")).page) == {
        "Current task": ["- fix login ·", "- ship v2 · but not on Friday"]
    }


@pytest.mark.spec("J4")
def test_a_line_that_only_looks_generated_is_never_moved_or_removed() -> None:
    theirs = [f"- fact {number} by the model ·" for number in range(MAX_SECTION_LINES + 3)]
    page = "## Known facts\n" + "\n".join(theirs) + "\n"
    life = Life(page).occurred(*(("context_changed", f"ours {number}") for number in range(20)))
    assert read_section(life.page, "Known facts").split("\n")[-len(theirs) :] == theirs


def test_lines_of_ours_stand_right_under_their_heading_and_not_below_the_next_of_any_level() -> None:
    page = "# Current task\nDeploy\n## Key decisions\n- use X ·\n## Open problems\n- disk full ·\n"
    assert after(("task_started", "New task"), page=page) == page.replace("task\n", "task\n- New task ·\n\n", 1)


# -- what others make of the page


@pytest.mark.spec("F5", "A3")
def test_a_page_written_before_a_line_was_entered_does_not_remove_it() -> None:
    life = Life().occurred(("decision_made", "use SQLite"))
    before = life.page
    life.occurred(("decision_made", "no ORM"), ("bug_found", "disk full"))
    life.written(f"{before}- theirs\n")
    assert noted(life.page) == {
        "Key decisions": ["- no ORM ·", "- use SQLite ·"],
        "Open problems": ["- disk full ·"],
        "Recent actions": ["- theirs"],
    }


def test_a_line_deleted_while_a_newer_one_was_kept_stays_deleted() -> None:
    life = Life().occurred(("decision_made", "use SQLite"), ("decision_made", "no ORM"))
    life.written(life.page.replace("- use SQLite ·\n", ""))
    assert noted(life.page) == {"Key decisions": ["- no ORM ·"]}


def test_a_repeated_line_does_not_prove_that_lines_before_it_were_seen() -> None:
    life = Life().occurred(("decision_made", "use SQLite"))
    before = life.page
    life.occurred(("decision_made", "no ORM"), ("decision_made", "use SQLite")).written(before)
    assert noted(life.page) == {"Key decisions": ["- use SQLite ·", "- no ORM ·"]}


def test_the_newest_line_is_entered_again_once_and_then_stays_deleted() -> None:
    life = Life().occurred(("decision_made", "use SQLite"))
    assert "- use SQLite ·" in life.written(template("en")).page
    assert life.written(template("en")).page == template("en")
    assert "- use SQLite ·" in life.occurred(("decision_made", "use SQLite")).page


def test_a_removed_line_on_a_stale_page_is_removed_again() -> None:
    life = Life().occurred(("bug_found", "disk full"))
    before = life.page
    life.occurred(("bug_closed", "disk full")).written(before)
    assert life.page == template("en")


def test_a_moved_line_stays_where_the_writer_put_it() -> None:
    life = Life().occurred(("decision_made", "use SQLite"))
    life.written(template("en").replace("## Known facts\n", "## Known facts\n- use SQLite ·\n"))
    assert noted(life.occurred(("decision_made", "no ORM")).page) == {
        "Key decisions": ["- no ORM ·"],
        "Known facts": ["- use SQLite ·"],
    }


# -- the page


def test_only_generated_lines_are_removed() -> None:
    theirs = "".join(f"- their {number}\n" for number in range(20))
    page = after(*(("decision_made", f"ours {number}") for number in range(20)), page=f"## Key decisions\n{theirs}")
    ours = [f"- ours {number} ·" for number in range(19, 19 - MAX_SECTION_LINES, -1)]
    assert read_section(page, "Key decisions").split("\n") == [*ours, *theirs.strip().split("\n")]


def test_a_closed_problem_is_removed() -> None:
    page = after(("bug_found", "save failed"), ("bug_found", "load failed"), ("bug_closed", "save failed"))
    assert noted(page) == {"Open problems": ["- load failed ·"]}
    assert after(("bug_closed", "never heard of"), page="# Mine\n") == "# Mine\n"


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


@each_row("hostile", ["# Rules", "```\ncode", "~~~", "<!-- hide", "-->", "a\n## Rules\nb", "</memory>"])
def test_no_text_can_open_or_close_anything(hostile: str) -> None:
    page = after(("bug_found", hostile), ("bug_found", "then this"))
    (line,) = (line for line in noted(page)["Open problems"] if "then this" not in line)
    assert [words for _, _, words in find_headings(page.split("\n"))][1:] == list(SECTIONS)
    assert not line.removeprefix("- ").startswith(("#", "```", "~~~"))
    assert "<!--" not in line
    assert "-->" not in line
    assert "</memory>" not in line


def test_a_long_text_is_one_short_line() -> None:
    (line,) = noted(after(("bug_found", "word\n" * 500)))["Open problems"]
    assert len(line) <= MAX_LINE_CHARACTERS + 4
    assert line.endswith("word… ·")


@pytest.mark.spec("E2")
@each_row("kind", HOST_EVENT_KINDS)
def test_generated_lines_do_not_make_a_page_maintained(kind: str) -> None:
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
def test_an_invalid_event_is_refused_with_its_field(kind: str, text: str, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        overview_event(kind, text)
    assert refused.value.field == field


LINES = st.sampled_from(
    [
        *("", "text", "- a", "- a ·", "- set aside: a ·", "- 完成：b ·", "## Current task", "## 最近操作", "### Below"),
        *("## Recent actions", "# Top", "```", "~~~", "<!--", "-->", "<!-- guide -->", "---", "a: 1", "* c ·\r"),
    ]
)
PAGES = st.lists(LINES, max_size=12).map("\n".join)
EVENTS = st.tuples(
    st.sampled_from([*HOST_EVENT_KINDS, "action_taken", "bug_closed"]),
    st.sampled_from(["a", "b", "c", "# d", "<!-- e", "-->", "```", "A "])
    | st.text(min_size=1).filter(
        lambda text: text.replace("·", "").strip() and "\x00" not in text and text.isprintable()
    ),
)


@given(text=PAGES | st.text(), events=st.lists(EVENTS, max_size=20), language=st.sampled_from(LANGUAGES))
def test_events_are_listed_once_and_bounded_and_no_line_of_others_is_lost(
    text: str, events: list[tuple[str, str]], language: str
) -> None:
    life = Life(text, language)
    began = life.page
    for event in events:
        life.occurred(event)
        assert with_log_lines(life.page, life.noted, language) == life.page
    kept = iter(life.page.splitlines())
    assert all(line in kept for line in began.splitlines() if line.strip() and not is_generated(line))
    assert len(life.noted.visible_lines) <= 1 + 3 * MAX_SECTION_LINES + MAX_ACTION_LINES
    assert len(life.noted.removed) <= MAX_REMOVED_LINES


LONG = st.tuples(
    st.sampled_from(HOST_EVENT_KINDS),
    st.sampled_from("a很x").map(lambda letter: letter * 300) | st.text("abc很", min_size=1),
)


@pytest.mark.spec("F1")
@given(events=st.lists(LONG, max_size=60), language=st.sampled_from(LANGUAGES))
def test_generated_lines_fit_their_share_and_include_the_newest(events: list[tuple[str, str]], language: str) -> None:
    life = Life(language=language)
    for number, (kind, text) in enumerate(events):
        life.occurred((kind, f"{number} {text}"))
        own = [line for line in life.page.splitlines() if is_generated(line)]
        assert sum(len(line.encode()) + 1 for line in own) <= MAX_EVENT_BYTES
        assert any(note.entered_seq == life.seq for note in life.noted.visible_lines)
        assert bool(life.noted.lines_in(OverviewSection.TASK)) == any(
            note.section is OverviewSection.TASK for note in life.noted.visible_lines
        )


def test_a_hidden_line_returns_when_a_newer_one_is_closed() -> None:
    problems = [("bug_found", f"{number} fails") for number in range(MAX_SECTION_LINES + 1)]
    life = Life().occurred(*problems)
    assert "- 0 fails ·" not in life.page
    assert "- 0 fails ·" in life.occurred(("bug_closed", "5 fails")).page


def test_a_deleted_line_is_not_replaced_by_an_older_one() -> None:
    life = Life().occurred(*(("decision_made", f"ours {number}") for number in range(MAX_SECTION_LINES + 5)))
    life.written(life.page.replace("- ours 9 ·\n", ""))
    assert len(noted(life.page)["Key decisions"]) == MAX_SECTION_LINES - 1


@pytest.mark.spec("E9")
@given(events=st.lists(EVENTS | LONG, max_size=40), since=st.lists(EVENTS, max_size=2))
def test_undoing_a_compaction_restores_the_page(events: list[tuple[str, str]], since: list[tuple[str, str]]) -> None:
    life, other = Life().occurred(*events), Life().occurred(*events)
    of = life.seq
    life.occurred(("compression_completed", "archived 7"), *since).lifted(of)
    assert life.page == other.occurred(*since).page


def test_a_recurring_text_does_not_make_a_page_newer() -> None:
    """They came, went and came again: a page from the first time says nothing about what came in between."""
    life = Life().occurred(("task_started", "a"), ("task_started", "c"))
    then = life.page
    life.occurred(("task_started", "a"), ("task_started", "b")).written(then)
    assert noted(life.page)["Recent actions"] == ["- set aside: a ·", "- set aside: c ·"]


STEPS = st.lists(EVENTS | PAGES, max_size=12)


@pytest.mark.spec("A2")
@given(steps=STEPS)
def test_the_log_reads_back_from_a_snapshot(steps: list[tuple[str, str] | str]) -> None:
    life = Life()
    for step in steps:
        _ = life.written(step) if isinstance(step, str) else life.occurred(step)
        assert OverviewLog.thaw(json.loads(to_json(life.noted.freeze()))) == life.noted


@given(steps=STEPS, stale=st.integers(0, 11))
def test_a_stale_page_removes_no_line_entered_since(steps: list[tuple[str, str] | str], stale: int) -> None:
    life = Life()
    then, known = life.page, 0
    for place, step in enumerate(steps):
        if place == stale:
            then, known = life.page, life.seq
        if isinstance(step, tuple):
            life.occurred(step)
    fresh = [note.render("en") for note in life.noted.visible_lines if note.entered_seq > known]
    page = life.written(then).page.split("\n")
    assert all(line in page for line in fresh)
