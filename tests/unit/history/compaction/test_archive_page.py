"""An archive page has every message verbatim, at the lines that its stub names."""

from __future__ import annotations

from typing import Any

import pytest
from builders import a_call, a_conversation, a_result, assistant, user
from hypothesis import given
from hypothesis import strategies as st
from strategies import parsed_messages
from tables import each_row

from inmind.core.encoding import digest_of, to_json
from inmind.core.messages.model import ParsedMessage
from inmind.documents.document import MAX_DOCUMENT_BYTES, split_lines
from inmind.history.compaction.stubs import (
    MAX_PAGE_BYTES,
    ArchivePage,
    build_pages,
    new_path,
    page_name,
    parse_location,
)
from inmind.history.history import ConversationEntry

PATH = "archive/001-orders.md"


def entries(*wires: dict[str, Any]) -> list[ConversationEntry]:
    return a_conversation(wires)[:]


def an_entry(seq: int, one: ParsedMessage) -> ConversationEntry:
    return ConversationEntry(seq, f"session/s#{seq}", one.format, one.wire, digest_of(one.wire))


def a_page(*wires: dict[str, Any], before: str = "") -> ArchivePage:
    (page,) = build_pages(entries(*wires), title="Orders", path=PATH, existing=before)
    return page


def lines_of(page: ArchivePage, seq: int) -> list[str]:
    first, last = page.lines[seq]
    return split_lines(page.text)[first - 1 : last]


@pytest.mark.spec("E3")
def test_a_page_has_a_title_a_count_and_every_message_under_its_number() -> None:
    page = a_page(user("Where is it?"), a_call("c1", "get_order", '{"id": 7}'), a_result("c1", "shipped\ntoday"))
    assert page.text == (
        "# Orders\n\n3 messages\n\n"
        "## 1: user\n\nWhere is it?\n\n"
        '## 2: assistant\n\ncalls get_order (c1):\n{"id": 7}\n\n'
        "## 3: tool\n\nanswers (c1):\nshipped\ntoday\n"
    )


@pytest.mark.spec("E3")
def test_a_message_has_the_lines_that_its_stub_names() -> None:
    page = a_page(user("one\n\ntwo\n"), assistant(""), user("three"))
    assert lines_of(page, 1) == ["## 1: user", "", "one", "", "two", ""]
    assert lines_of(page, 3) == ["## 3: user", "", "three"]


@pytest.mark.spec("E3")
def test_a_part_that_is_not_text_is_kept_as_json() -> None:
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]}
    assert to_json(picture) in a_page(picture).text


@pytest.mark.spec("E3")
def test_an_existing_page_is_continued() -> None:
    page = a_page(user("and this"), before="# Notes\n\nmine\n")
    assert page.text.startswith("# Notes\n\nmine\n\n# Orders\n")
    assert lines_of(page, 1) == ["## 1: user", "", "and this"]


@pytest.mark.spec("E3")
def test_a_long_conversation_continues_on_further_pages_without_loss() -> None:
    halves = [user("a" * (MAX_PAGE_BYTES - 500)), user("长" * (MAX_PAGE_BYTES // 2))]
    pages = build_pages(entries(*halves), title="Orders", path=PATH)
    assert [page.path for page in pages] == [PATH, "archive/001-orders-2.md", "archive/001-orders-3.md"]
    assert all(len(page.text.encode()) < MAX_DOCUMENT_BYTES for page in pages)
    assert "".join(page.text for page in pages).count("长") == MAX_PAGE_BYTES // 2
    assert "Goes on from archive/001-orders.md." in pages[1].text


@pytest.mark.spec("E3")
@given(st.lists(parsed_messages(), min_size=1, max_size=8))
def test_every_named_line_is_the_start_of_its_message(messages: list[ParsedMessage]) -> None:
    pages = build_pages([an_entry(3 * n, one) for n, one in enumerate(messages, start=1)], title="Orders", path=PATH)
    (page,) = pages
    for number, one in enumerate(messages, start=1):
        lines = lines_of(page, 3 * number)
        assert lines[0] == f"## {3 * number}: {one.message.role}"
        assert all(line in lines for line in one.message.text.split("\n"))


@pytest.mark.spec("F3")
def test_archives_are_numbered_after_existing_ones_and_named_by_their_title() -> None:
    assert new_path("Add a hero section!", []) == "archive/001-add-a-hero-section.md"
    assert (
        new_path("关于 我们", ["archive/009-x.md", "archive/mine.md", "detail/900-y.md"]) == "archive/010-关于-我们.md"
    )
    assert new_path("…", ["archive/1000-x.md"]) == "archive/1001-conversation.md"


@pytest.mark.spec("F3")
@given(st.text(max_size=80))
def test_any_title_gives_a_valid_page_name(title: str) -> None:
    name = new_path(title, []).removeprefix("archive/")
    assert "/" not in name
    assert not name.startswith(".")
    assert len(name) <= 40


PROVIDER_FORMS = [
    ("anthropic", {"role": "assistant", "content": "hello"}),
    ("anthropic", {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}),
    ("anthropic", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "shipped"}]}),
    ("responses", {"role": "assistant", "content": "hello"}),
    ("responses", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}),
]


@pytest.mark.spec("E3")
@each_row(("format", "wire"), PROVIDER_FORMS)
def test_a_message_is_written_once_in_any_provider_form(format: str, wire: dict[str, Any]) -> None:
    (page,) = build_pages(
        [ConversationEntry(1, "session/s#1", format, wire, digest_of(wire))], title="Orders", path=PATH
    )
    assert "as it came" not in page.text


@pytest.mark.spec("E3")
def test_a_part_of_a_message_includes_its_last_line() -> None:
    rows = "\n".join(f"row {number}" for number in range(MAX_PAGE_BYTES // 8))
    pages = build_pages(entries(user(rows)), title="Orders", path=PATH)
    assert len(pages) > 1
    text = "".join(line for page in pages for line in lines_of(page, 1))
    assert text == f"## 1: user{rows}".replace("\n", "")


@pytest.mark.spec("E3", "E10")
@each_row(
    ("location", "path", "lines"),
    [
        ("archive/001", "archive/001-orders.md", None),
        ("archive/001:5-9", "archive/001-orders.md", (5, 9)),
        ("working-memory/archive/001:5", "archive/001-orders.md", (5, 5)),
        ("archive/001-orders-2.md:5-9", "archive/001-orders-2.md", (5, 9)),
        ("archive/012:5-9", "archive/012-shops.md", (5, 9)),
        ("overview.md", "overview.md", None),
        ("detail/log.md:3-4", "detail/log.md", (3, 4)),
        ("archive/002:5-9", "archive/002", (5, 9)),
        ("archive/001:", "archive/001-orders.md", None),
        ("archive/001:x", "archive/001:x", None),
    ],
)
def test_a_location_names_a_page_and_its_lines(location: str, path: str, lines: tuple[int, int] | None) -> None:
    pages = ["archive/012-shops.md", "archive/001-orders-2.md", "archive/001-orders.md", "detail/log.md"]
    assert parse_location(location, pages) == (path, lines)


@pytest.mark.spec("E10")
@given(st.lists(st.text(max_size=40), min_size=1, max_size=12))
def test_a_numbered_page_is_found_by_its_short_name(titles: list[str]) -> None:
    paths: list[str] = []
    for title in titles:
        paths.append(new_path(title, paths))
    assert [parse_location(page_name(path), paths) for path in paths] == [(path, None) for path in paths]
