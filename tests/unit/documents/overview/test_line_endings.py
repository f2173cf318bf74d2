"""Every edit keeps the byte order mark and line endings of a page."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inmind.core.events.base import Trust
from inmind.documents.overview.event_log import OverviewLog, overview_event, with_log_lines
from inmind.documents.overview.front_matter import (
    line_ending,
    merge_front_matter,
    parse_front_matter,
    split_front_matter,
)
from inmind.documents.overview.maintain import index_line, with_index
from inmind.documents.overview.page import LANGUAGES, is_maintained, prompt_text, template, written_lines
from inmind.documents.overview.sections import read_section, replace_section

pytestmark = pytest.mark.spec("F4", "A5")

HEAD = "---\nmeta:\n  version: '1'  # of the form\n---\n"
HEADS = st.sampled_from(["", HEAD, *map(template, LANGUAGES)])
LINES = st.lists(st.sampled_from(["", "# Top", "## Rules", "- one", "text", "<!-- x -->", "```", "---"]), min_size=1)
PAGES = st.tuples(HEADS, LINES).map(lambda parts: parts[0] + "\n".join([*parts[1], ""]))
MARKS = st.sampled_from(["", "\ufeff"])


def with_crlf(page: str, mark: str = "\ufeff") -> str:
    return mark + page.replace("\n", "\r\n")


def a_log() -> OverviewLog:
    log = OverviewLog()
    for kind, text in (("decision_made", "use tabs"), ("bug_found", "it leaks")):
        log = log.with_event(overview_event(kind, text), trust=Trust.OPERATOR)
    return log


CHANGES: dict[str, Callable[[str], str]] = {
    "a section": lambda page: replace_section(page, "Rules", "- two\n- three"),
    "a section with the other line ending": lambda page: replace_section(page, "Rules", "- two\r\n- three\r\n"),
    "the index": lambda page: with_index(page, {"detail/a.md": "# A\nsays\n"}, "en"),
    "no index": lambda page: with_index(page, {}, "en"),
    "events": lambda page: with_log_lines(page, a_log(), "en"),
    "fields": lambda page: merge_front_matter(page, {"meta": {"session_id": "s"}, "issues": [{"id": 1}]}),
    "the same fields": lambda page: merge_front_matter(page, {}),
}


@pytest.mark.parametrize("change", CHANGES)
@given(page=PAGES, mark=MARKS)
def test_an_edit_is_the_same_for_every_line_ending(change: str, page: str, mark: str) -> None:
    assert CHANGES[change](with_crlf(page, mark)) == with_crlf(CHANGES[change](page), mark)


@given(page=PAGES, mark=MARKS)
def test_a_page_reads_the_same_for_every_line_ending(page: str, mark: str) -> None:
    written = with_crlf(page, mark)
    assert prompt_text(written) == prompt_text(page)
    assert read_section(written, "Rules") == read_section(page, "Rules")
    assert (is_maintained(written), written_lines(written)) == (is_maintained(page), written_lines(page))
    assert parse_front_matter(written) == parse_front_matter(page)
    one, other = index_line("detail/a.md", written), index_line("detail/a.md", page)
    assert one.partition(" KB): ")[2] == other.partition(" KB): ")[2]
    assert "".join(split_front_matter(written)) == written


def test_a_page_with_mixed_line_endings_keeps_them() -> None:
    page = "# A\r\n\n## B\nold\r\n## C\r\n"
    assert line_ending(page) == "\n"
    assert replace_section(page, "B", "new") == "# A\r\n\n## B\n\nnew\n\n## C\r\n"


def test_front_matter_keeps_its_line_endings_and_those_of_the_page() -> None:
    page = HEAD.replace("\n", "\r\n") + "# Mine\n"
    changed = merge_front_matter(page, {"meta": {"version": "2"}})
    assert changed == "---\r\nmeta:\r\n  version: '2'  # of the form\r\n---\r\n# Mine\n"
