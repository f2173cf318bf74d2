"""Events are listed on the overview in their section."""

from __future__ import annotations

import pytest
from builders import an_event, through_json
from hypothesis import given
from hypothesis import strategies as st
from tables import each_row

from inmind.core.events.base import Trust
from inmind.core.events.documents import DocumentWritten, OverviewEvent
from inmind.core.events.session import CompactionUndone
from inmind.documents.overview.event_log import (
    HOST_EVENT_KINDS,
    MAX_ACTION_LINES,
    MAX_REMOVED_LINES,
    MAX_SECTION_LINES,
    OverviewLog,
    overview_event,
    with_log_lines,
)
from inmind.documents.overview.page import LANGUAGES, MAX_EVENT_BYTES, OverviewSection, is_maintained, template
from inmind.documents.overview.sections import MAX_LINE_CHARACTERS, find_headings, is_generated, read_section
from inmind.errors import InvalidInput

pytestmark = pytest.mark.spec("F5")

SECTIONS = ("Current task", "Key decisions", "Known facts", "Open problems", "Recent actions")


class PageHistory:
    """A page and its events. Memory updates its lines after every event, as in a session."""

    def __init__(self, page: str = "", language: str = "en") -> None:
        self.page, self.language, self.log, self.seq = page or template(language), language, OverviewLog(), 0

    def record(self, *events: tuple[str, str], trust: Trust = Trust.OPERATOR) -> PageHistory:
        for kind, text in events:
            self.seq += 1
            self.log = self.log.with_event(OverviewEvent(kind, text), seq=self.seq, trust=trust)
            self.page = with_log_lines(self.page, self.log, self.language)
        return self

    def undo_compaction(self, seq: int) -> PageHistory:
        self.seq += 1
        self.log = self.log.apply(an_event(CompactionUndone(compaction_seq=seq), seq=self.seq))
        self.page = with_log_lines(self.page, self.log, self.language)
        return self

    def write(self, page: str) -> PageHistory:
        """A write by a person or model."""
        self.seq += 1
        self.log = self.log.apply(an_event(DocumentWritten("overview.md", page), seq=self.seq))
        self.page = with_log_lines(page, self.log, self.language)
        return self


def page_after(*events: tuple[str, str], page: str = "", language: str = "en") -> str:
    return PageHistory(page, language).record(*events).page


def section_lines(page: str) -> dict[str, list[str]]:
    """The lines of each section that is not empty, without comments."""
    bodies = {title: read_section(page, title).split("\n") for title in SECTIONS}
    lines = {title: [line for line in body if line and not line.startswith("<!--")] for title, body in bodies.items()}
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
def test_each_kind_is_listed_in_its_section_and_nothing_else_changes(kind: str, section: str, line: str) -> None:
    page = page_after((kind, "ship v2"))
    assert section_lines(page) == {section: [line]}
    assert page.replace(f"{line}\n", "") == template("en")


def test_a_new_task_replaces_the_current_task_which_is_set_aside() -> None:
    history = PageHistory().record(("task_started", "ship v2"), ("task_started", "fix login"))
    assert section_lines(history.page) == {
        "Current task": ["- fix login ·"],
        "Recent actions": ["- set aside: ship v2 ·"],
    }
    again = history.record(("task_started", "ship v2")).page
    assert section_lines(again) == {"Current task": ["- ship v2 ·"], "Recent actions": ["- set aside: fix login ·"]}


def test_a_completed_task_moves_to_the_recent_actions() -> None:
    history = PageHistory().record(
        ("task_started", "ship v2"), ("task_started", "fix login"), ("task_completed", "Fix  Login")
    )
    assert section_lines(history.page) == {"Recent actions": ["- done: Fix Login ·", "- set aside: ship v2 ·"]}
    assert section_lines(history.record(("task_completed", "ship v2")).page) == {
        "Recent actions": ["- done: ship v2 ·", "- done: Fix Login ·"]
    }


def test_a_task_completed_by_the_host_in_other_words_is_the_current_task() -> None:
    history = PageHistory().record(("task_started", "Fix the login bug"), ("task_completed", "the login bug is fixed."))
    assert section_lines(history.page) == {"Recent actions": ["- done: the login bug is fixed. ·"]}


def test_a_step_completed_by_a_tool_does_not_end_the_task_of_the_host() -> None:
    history = PageHistory().record(("task_started", "Fix the login bug"))
    history.record(("task_completed", "write a test"), trust=Trust.DATA)
    assert section_lines(history.page)["Current task"] == ["- Fix the login bug ·"]


def test_a_restarted_task_can_be_finished_again() -> None:
    history = PageHistory().record(("task_started", "a"), ("task_completed", "a"))
    assert history.log.finished_titles == ("a",)
    assert history.record(("task_started", "A")).log.finished_titles == ()


def test_only_the_last_active_compaction_is_listed() -> None:
    history = PageHistory().record(("compression_completed", "archived 3"), ("compression_completed", "archived 5"))
    assert section_lines(history.page) == {"Recent actions": ["- archived 5 ·"]}
    assert section_lines(history.undo_compaction(1).page) == {"Recent actions": ["- archived 3 ·"]}
    assert section_lines(history.undo_compaction(0).page) == {}


def test_undoing_an_earlier_compaction_keeps_the_line_of_the_later_one() -> None:
    history = PageHistory().record(("compression_completed", "archived 3"), ("compression_completed", "archived 5"))
    assert section_lines(history.undo_compaction(0).page) == {"Recent actions": ["- archived 5 ·"]}
    assert section_lines(history.undo_compaction(1).page) == {}


def test_deleting_the_line_of_a_compaction_does_not_show_the_one_before() -> None:
    history = PageHistory().record(("compression_completed", "archived 3"), ("compression_completed", "archived 5"))
    bare = history.page.replace("- archived 5 ·\n", "")
    assert section_lines(history.write(bare).write(bare).page) == {}


def test_a_repeated_event_moves_to_the_front_without_a_duplicate() -> None:
    page = page_after(("decision_made", "use SQLite"), ("decision_made", "no ORM"), ("decision_made", "Use  sqlite"))
    assert section_lines(page) == {"Key decisions": ["- Use sqlite ·", "- no ORM ·"]}


def test_a_line_of_another_writer_is_not_repeated() -> None:
    theirs = "## Current task\n1. Ship v2\n\n## Key decisions\n* [x] use   SQLITE\n"
    assert page_after(("decision_made", "Use sqlite"), ("task_started", "ship V2"), page=theirs) == theirs


def test_a_generated_line_that_a_writer_extends_belongs_to_the_writer() -> None:
    history = PageHistory().record(("task_started", "ship v2"))
    history.write(history.page.replace("ship v2 ·", "ship v2 · but not on Friday"))
    history.write(history.page.replace("- ship v2 ·\n", ""))
    assert is_maintained(history.page)
    assert section_lines(history.record(("task_started", "fix login")).page) == {
        "Current task": ["- fix login ·", "- ship v2 · but not on Friday"]
    }


@pytest.mark.spec("J4")
def test_a_line_that_only_looks_generated_is_not_moved_or_removed() -> None:
    theirs = [f"- fact {number} by the model ·" for number in range(MAX_SECTION_LINES + 3)]
    page = "## Known facts\n" + "\n".join(theirs) + "\n"
    history = PageHistory(page).record(*(("context_changed", f"ours {number}") for number in range(20)))
    assert read_section(history.page, "Known facts").split("\n")[-len(theirs) :] == theirs


def test_generated_lines_follow_their_heading_and_not_a_subheading() -> None:
    page = "# Current task\nDeploy\n## Key decisions\n- use X ·\n## Open problems\n- disk full ·\n"
    assert page_after(("task_started", "New task"), page=page) == page.replace("task\n", "task\n- New task ·\n\n", 1)


# -- pages written by others


@pytest.mark.spec("F5", "A3")
def test_a_page_written_before_a_line_was_entered_does_not_remove_it() -> None:
    history = PageHistory().record(("decision_made", "use SQLite"))
    before = history.page
    history.record(("decision_made", "no ORM"), ("bug_found", "disk full"))
    history.write(f"{before}- theirs\n")
    assert section_lines(history.page) == {
        "Key decisions": ["- no ORM ·", "- use SQLite ·"],
        "Open problems": ["- disk full ·"],
        "Recent actions": ["- theirs"],
    }


def test_a_line_deleted_while_a_newer_one_was_kept_stays_deleted() -> None:
    history = PageHistory().record(("decision_made", "use SQLite"), ("decision_made", "no ORM"))
    history.write(history.page.replace("- use SQLite ·\n", ""))
    assert section_lines(history.page) == {"Key decisions": ["- no ORM ·"]}


def test_a_repeated_line_does_not_prove_that_lines_before_it_were_seen() -> None:
    history = PageHistory().record(("decision_made", "use SQLite"))
    before = history.page
    history.record(("decision_made", "no ORM"), ("decision_made", "use SQLite")).write(before)
    assert section_lines(history.page) == {"Key decisions": ["- use SQLite ·", "- no ORM ·"]}


def test_the_newest_line_is_entered_again_once_and_then_stays_deleted() -> None:
    history = PageHistory().record(("decision_made", "use SQLite"))
    assert "- use SQLite ·" in history.write(template("en")).page
    assert history.write(template("en")).page == template("en")
    assert "- use SQLite ·" in history.record(("decision_made", "use SQLite")).page


def test_a_removed_line_on_a_stale_page_is_removed_again() -> None:
    history = PageHistory().record(("bug_found", "disk full"))
    before = history.page
    history.record(("bug_closed", "disk full")).write(before)
    assert history.page == template("en")


def test_a_moved_line_stays_where_the_writer_put_it() -> None:
    history = PageHistory().record(("decision_made", "use SQLite"))
    history.write(template("en").replace("## Known facts\n", "## Known facts\n- use SQLite ·\n"))
    assert section_lines(history.record(("decision_made", "no ORM")).page) == {
        "Key decisions": ["- no ORM ·"],
        "Known facts": ["- use SQLite ·"],
    }


# -- the page


def test_only_generated_lines_are_removed() -> None:
    theirs = "".join(f"- their {number}\n" for number in range(20))
    page = page_after(
        *(("decision_made", f"ours {number}") for number in range(20)), page=f"## Key decisions\n{theirs}"
    )
    ours = [f"- ours {number} ·" for number in range(19, 19 - MAX_SECTION_LINES, -1)]
    assert read_section(page, "Key decisions").split("\n") == [*ours, *theirs.strip().split("\n")]


def test_a_closed_problem_is_removed() -> None:
    page = page_after(("bug_found", "save failed"), ("bug_found", "load failed"), ("bug_closed", "save failed"))
    assert section_lines(page) == {"Open problems": ["- load failed ·"]}
    assert page_after(("bug_closed", "an unknown problem"), page="# Mine\n") == "# Mine\n"


def test_a_section_is_found_in_either_language_or_added() -> None:
    assert "## 关键决策\n<!-- 决定了什么，为什么。 -->\n- use SQLite ·\n" in page_after(
        ("decision_made", "use SQLite"), page=template("zh")
    )
    assert (
        page_after(("decision_made", "use SQLite"), page="# Mine\n") == "# Mine\n\n## Key decisions\n- use SQLite ·\n"
    )
    assert (
        page_after(("task_completed", "测试"), language="zh", page="# 我的\n")
        == "# 我的\n\n## 最近操作\n- 完成：测试 ·\n"
    )


def test_a_paragraph_below_does_not_become_part_of_the_list() -> None:
    page = page_after(("bug_found", "a"), ("bug_found", "b"), page="## Open problems\nNone so far.\n")
    assert page == "## Open problems\n- b ·\n- a ·\n\nNone so far.\n"


@each_row("hostile", ["# Rules", "```\ncode", "~~~", "<!-- hide", "-->", "a\n## Rules\nb", "</memory>"])
def test_no_text_can_open_or_close_a_heading_fence_comment_or_tag(hostile: str) -> None:
    page = page_after(("bug_found", hostile), ("bug_found", "then this"))
    (line,) = (line for line in section_lines(page)["Open problems"] if "then this" not in line)
    assert [words for _, _, words in find_headings(page.split("\n"))][1:] == list(SECTIONS)
    assert not line.removeprefix("- ").startswith(("#", "```", "~~~"))
    assert "<!--" not in line
    assert "-->" not in line
    assert "</memory>" not in line


def test_a_long_text_is_one_short_line() -> None:
    (line,) = section_lines(page_after(("bug_found", "word\n" * 500)))["Open problems"]
    assert len(line) <= MAX_LINE_CHARACTERS + 4
    assert line.endswith("word… ·")


@pytest.mark.spec("E2")
@each_row("kind", HOST_EVENT_KINDS)
def test_generated_lines_do_not_make_a_page_maintained(kind: str) -> None:
    assert not is_maintained(page_after((kind, "ship v2")))


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
def test_events_are_listed_once_and_bounded_and_no_line_of_another_writer_is_lost(
    text: str, events: list[tuple[str, str]], language: str
) -> None:
    history = PageHistory(text, language)
    before = history.page
    for event in events:
        history.record(event)
        assert with_log_lines(history.page, history.log, language) == history.page
    kept = iter(history.page.splitlines())
    assert all(line in kept for line in before.splitlines() if line.strip() and not is_generated(line))
    assert len(history.log.visible_lines) <= 1 + 3 * MAX_SECTION_LINES + MAX_ACTION_LINES
    assert len(history.log.removed) <= MAX_REMOVED_LINES


LONG = st.tuples(
    st.sampled_from(HOST_EVENT_KINDS),
    st.sampled_from("a很x").map(lambda letter: letter * 300) | st.text("abc很", min_size=1),
)


@pytest.mark.spec("F1")
@given(events=st.lists(LONG, max_size=60), language=st.sampled_from(LANGUAGES))
def test_generated_lines_fit_their_share_and_include_the_newest(events: list[tuple[str, str]], language: str) -> None:
    history = PageHistory(language=language)
    for number, (kind, text) in enumerate(events):
        history.record((kind, f"{number} {text}"))
        own = [line for line in history.page.splitlines() if is_generated(line)]
        assert sum(len(line.encode()) + 1 for line in own) <= MAX_EVENT_BYTES
        assert any(note.entered_seq == history.seq for note in history.log.visible_lines)
        assert bool(history.log.lines_in(OverviewSection.TASK)) == any(
            note.section is OverviewSection.TASK for note in history.log.visible_lines
        )


def test_a_hidden_line_returns_when_a_newer_one_is_closed() -> None:
    problems = [("bug_found", f"{number} fails") for number in range(MAX_SECTION_LINES + 1)]
    history = PageHistory().record(*problems)
    assert "- 0 fails ·" not in history.page
    assert "- 0 fails ·" in history.record(("bug_closed", "5 fails")).page


def test_a_deleted_line_is_not_replaced_by_an_older_one() -> None:
    history = PageHistory().record(*(("decision_made", f"ours {number}") for number in range(MAX_SECTION_LINES + 5)))
    history.write(history.page.replace("- ours 9 ·\n", ""))
    assert len(section_lines(history.page)["Key decisions"]) == MAX_SECTION_LINES - 1


@pytest.mark.spec("E9")
@given(events=st.lists(EVENTS | LONG, max_size=40), since=st.lists(EVENTS, max_size=2))
def test_undoing_a_compaction_restores_the_page(events: list[tuple[str, str]], since: list[tuple[str, str]]) -> None:
    history, other = PageHistory().record(*events), PageHistory().record(*events)
    seq = history.seq
    history.record(("compression_completed", "archived 7"), *since).undo_compaction(seq)
    assert history.page == other.record(*since).page


def test_a_recurring_text_does_not_make_a_page_newer() -> None:
    """A line that is entered twice does not show which lines the writer has seen in between."""
    history = PageHistory().record(("task_started", "a"), ("task_started", "c"))
    earlier = history.page
    history.record(("task_started", "a"), ("task_started", "b")).write(earlier)
    assert section_lines(history.page)["Recent actions"] == ["- set aside: a ·", "- set aside: c ·"]


STEPS = st.lists(EVENTS | PAGES, max_size=12)


@pytest.mark.spec("A2")
@given(steps=STEPS)
def test_the_log_reads_back_from_a_snapshot(steps: list[tuple[str, str] | str]) -> None:
    history = PageHistory()
    for step in steps:
        _ = history.write(step) if isinstance(step, str) else history.record(step)
        assert through_json(history.log) == history.log


@given(steps=STEPS, stale=st.integers(0, 11))
def test_a_stale_page_removes_no_line_entered_since(steps: list[tuple[str, str] | str], stale: int) -> None:
    history = PageHistory()
    stale_page, stale_seq = history.page, 0
    for index, step in enumerate(steps):
        if index == stale:
            stale_page, stale_seq = history.page, history.seq
        if isinstance(step, tuple):
            history.record(step)
    new_lines = [note.render("en") for note in history.log.visible_lines if note.entered_seq > stale_seq]
    page = history.write(stale_page).page.split("\n")
    assert all(line in page for line in new_lines)
