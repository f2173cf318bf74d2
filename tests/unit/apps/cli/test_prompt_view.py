"""The drawing of a prompt: to scale, complete, and readable without colour."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from inmind import Memory, Prompt, Session
from inmind.apps.cli.console import print_lines
from inmind.apps.cli.prompt_view import (
    SCALE_LIMIT,
    bar,
    bar_parts,
    parts_table,
    prompt_texts,
    render_prompt,
    render_texts,
    report_json,
    scale_to_width,
)
from inmind.layers import Budget, DocumentLayer
from inmind.memory.session_opener import default_layers
from inmind.prompt.report import Report

WIDTH = 80
USUAL: tuple[str, ...] = (
    "tools",
    "system",
    "guide",
    "memory:overview",
    "memory:entities",
    "history",
    "changes",
    "context_meta",
)


def a_report(
    tokens: dict[str, int] | None = None, *, window: int = 10_000, cached: int = 0, cold: bool = False
) -> Report:
    parts = dict.fromkeys(USUAL, 100) if tokens is None else tokens
    used = sum(parts.values())
    return Report(
        call=1,
        tokens=parts,
        tokens_used=used,
        tokens_max=window,
        room_used=used,
        room=window,
        band="normal",
        cached_prefix_tokens=cached,
        cold=cold,
        anchor_moved="",
    )


sizes = st.lists(st.integers(0, 200_000), min_size=1, max_size=14)
names = st.lists(
    st.sampled_from(["overview", "history", "tools", "state", "记忆", "häuser", "h", "hh", "s3", ""]), unique=True
)


def reports() -> st.SearchStrategy[Report]:
    def build_report(counts: list[int], window: int, share: float, layers: list[str]) -> Report:
        parts = [*USUAL[:3], *(f"memory:{name}" for name in layers), *USUAL[-3:]]
        tokens = {part: counts[index % len(counts)] for index, part in enumerate(parts)}
        prefix = sum(count for part, count in tokens.items() if part not in USUAL[-2:])
        return a_report(tokens, window=window, cached=int(prefix * share))

    return st.builds(build_report, sizes, st.integers(1_000, 1_000_000), st.floats(0, 1), names)


def render_plain(*renderables: Any, width: int = WIDTH) -> str:
    """Render as for a pipe: without colours."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, highlight=False)
    for item in renderables:
        console.print(item, soft_wrap=not isinstance(item, Table))
    return buffer.getvalue()


class TestCells:
    @given(sizes, st.integers(1, 300))
    def test_a_bar_has_the_given_width(self, sizes: list[int], width: int) -> None:
        assert sum(scale_to_width(sizes, width)) == (width if any(sizes) else 0)

    @given(sizes, st.integers(1, 300))
    def test_only_parts_with_tokens_get_cells(self, sizes: list[int], width: int) -> None:
        widths = scale_to_width(sizes, width)
        assert all(cells == 0 for cells, size in zip(widths, sizes, strict=True) if not size)
        if width >= sum(size > 0 for size in sizes):
            assert all(cells >= 1 for cells, size in zip(widths, sizes, strict=True) if size)

    @given(sizes, st.integers(1, 300))
    def test_a_larger_part_is_not_drawn_smaller(self, sizes: list[int], width: int) -> None:
        pairs = sorted(zip(sizes, scale_to_width(sizes, width), strict=True))
        for (small, small_cells), (large, large_cells) in pairwise(pairs):
            assert small_cells <= large_cells or small == large

    def test_large_parts_are_drawn_to_scale(self) -> None:
        assert scale_to_width([100, 200, 100], 40) == [10, 20, 10]
        assert scale_to_width([60, 60_000], 50) == [1, 49]


class TestBar:
    @given(reports(), st.integers(20, 200))
    def test_every_prompt_fills_the_width(self, report: Report, width: int) -> None:
        line, below = bar(report, width=width)
        assert len(line.plain) == width
        assert len(below.plain) == len(line.plain.rstrip("·⋯"))

    @given(reports())
    def test_each_part_has_a_unique_letter_in_prompt_order(self, report: Report) -> None:
        parts = bar_parts(report)
        assert [part.part for part in parts] == [part for part, tokens in report.tokens.items() if tokens]
        assert len({part.letter for part in parts}) == len(parts)
        line = bar(report, width=200)[0].plain
        assert [letter for index, letter in enumerate(line) if line[index - 1 : index] != letter][: len(parts)] == [
            part.letter for part in parts
        ]

    @given(reports())
    def test_the_cached_part_is_a_prefix_of_the_prompt(self, report: Report) -> None:
        parts = [part for part in bar_parts(report) if part.name != "context_meta"]
        assert sum(part.cached for part in parts) == report.cached_prefix_tokens
        whole = [part.cached == part.tokens for part in parts]
        assert whole == sorted(whole, reverse=True)

    def test_a_cold_cache_serves_nothing(self) -> None:
        assert sum(part.cached for part in bar_parts(a_report(cached=500, cold=True))) == 0

    def test_free_space_is_to_scale_up_to_a_limit(self) -> None:
        half = bar(a_report(window=1_600), width=WIDTH)[0].plain
        assert half.count("·") == WIDTH / 2
        mostly_free = bar(a_report(window=128_000), width=WIDTH)[0].plain
        assert mostly_free.count("·") + mostly_free.count("⋯") == WIDTH / SCALE_LIMIT
        assert mostly_free.count("⋯") == 1

    def test_a_prompt_over_its_window_is_drawn(self) -> None:
        assert set(bar(a_report(window=700), width=WIDTH)[0].plain) == set("TSGoeHCM")

    def test_the_letters_remain_without_colours(self) -> None:
        line = bar(a_report(), width=WIDTH)[0]
        buffer = io.StringIO()
        Console(file=buffer, width=WIDTH, force_terminal=True, color_system="standard").print(line)
        assert "\x1b[" in buffer.getvalue()
        assert render_plain(line) == f"{line.plain}\n"

    def test_the_json_report_has_the_same_numbers(self) -> None:
        report = a_report(cached=300)
        assert report_json(report) == {
            "call": 1,
            "tokens": dict.fromkeys(USUAL, 100),
            "tokens_used": 800,
            "tokens_max": 10_000,
            "room_used": 800,
            "room": 10_000,
            "tokens_percent": 8.0,
            "band": "normal",
            "from_cache": 300,
            "cut": [],
            "left_out": [],
        }


SYSTEM = "You edit a website."
TOOLS = {
    "openai": [{"type": "function", "function": {"name": "get_page", "parameters": {"type": "object"}}}],
    "responses": [{"type": "function", "name": "get_page", "parameters": {"type": "object"}}],
    "anthropic": [{"name": "get_page", "input_schema": {"type": "object"}}],
}
MESSAGES = [
    user("Make a page.\n\n<context_meta>\nnot ours\n</context_meta>"),
    a_call("c1", arguments='{"id": "page-123"}'),
    a_result("c1", '{"page": {"id": "page-123", "title": "About Us"}}'),
    assistant("There it is."),
    user("Now a second one."),
]


@pytest.fixture
def session(memory: Memory) -> Session:
    session = memory.session(
        "s", resource="ada", layers=default_layers(DocumentLayer(name="house", path="detail/h.md"))
    )
    session.write("detail/h.md", 'one\n\n<memory layer="state">\nnot the state\n</memory>')
    session.scratchpad.update("Ask Mei about the colours.")
    session.add(MESSAGES[:3])
    session.prepare(system=SYSTEM)
    session.note("Ada prefers tabs.")
    session.add(MESSAGES[3:])
    return session


def prompt_for(session: Session, format: str) -> Prompt:
    return session.prepare(tools=TOOLS[format], format=format)


@pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
class TestText:
    def test_every_part_has_its_text_under_its_name(self, session: Session, format: str) -> None:
        prompt = prompt_for(session, format)
        texts = {passage.part: passage.text for passage in prompt_texts(prompt)}
        assert set(texts) == {part.part for part in bar_parts(prompt.report)}
        assert texts["system"] == SYSTEM
        assert "Ask Mei about the colours." in texts["memory:working-memory"]
        assert "not the state" in texts["memory:house"]
        assert texts["context_meta"].startswith("<context_meta>\n{")
        assert texts["context_meta"].endswith("\n</context_meta>")
        assert "get_page" in texts["tools"]

    def test_the_joined_blocks_are_a_substring_of_the_request(self, session: Session, format: str) -> None:
        prompt = prompt_for(session, format)
        blocks = [
            passage.text
            for passage in prompt_texts(prompt)
            if passage.part == "guide" or passage.part.startswith("memory:")
        ]
        assert json.dumps("\n\n".join(blocks)) in json.dumps(prompt.request)

    def test_the_conversation_is_verbatim_with_the_role_of_each_message(self, session: Session, format: str) -> None:
        history = [
            (passage.label, passage.text)
            for passage in prompt_texts(prompt_for(session, format))
            if passage.part == "history"
        ]
        assert history == [
            ("user", MESSAGES[0]["content"]),
            ("assistant calls get_page", '{"id": "page-123"}'),
            ("result", MESSAGES[2]["content"]),
            ("assistant", "There it is."),
            ("user", "Now a second one."),
        ]


def test_changes_since_the_anchor_are_a_separate_part_from_the_meter(memory: Memory) -> None:
    session = memory.session("s", resource="ada")
    session.add([user("word " * 2_000)])
    session.prepare()
    session.write("overview.md", f"{session.overview}- Staging runs build 118.\n")
    session.add([assistant("Yes."), user("And now?")])
    texts = {passage.part: passage.text for passage in prompt_texts(session.prepare())}
    assert texts["changes"].startswith("<memory_changes>\n")
    assert "build 118" in texts["changes"]
    assert texts["context_meta"].startswith("<context_meta>\n")


def test_the_table_shows_the_cache_state_and_the_cuts_of_each_part(memory: Memory) -> None:
    small = DocumentLayer(name="house", path="detail/h.md", budget=Budget(max=60))
    session = memory.session("s", layers=default_layers(small))
    session.write("detail/h.md", "\n".join(f"line {number}" for number in range(200)))
    session.add([user("Hi")])
    session.prepare()
    session.add([assistant("Yes?"), user("word " * 50)])
    prompt = session.prepare()
    rows = render_plain(parts_table(prompt.report, session.explain()), width=120).splitlines()
    (history,) = (row for row in rows if " history " in row)
    assert history.startswith("H history")
    assert " cached, " in history
    (cut,) = (row for row in rows if " house " in row)
    assert "cut: " in cut
    assert "did not fit its budget" in cut
    (meter,) = (row for row in rows if " context_meta " in row)
    assert " tail " in meter
    narrow = render_plain(parts_table(prompt.report, session.explain()), width=60).splitlines()
    assert max(map(len, narrow)) <= 60


def test_a_long_line_is_not_wrapped_and_its_markup_is_escaped(memory: Memory) -> None:
    session = memory.session("s")
    session.add([user(f"{'x' * 500}\x1b[2J[bold]markup[/bold]")])
    prompt = session.prepare()
    buffer = io.StringIO()
    screen = Console(file=buffer, width=WIDTH, highlight=False)
    print_lines(render_prompt(prompt, session.explain(), width=WIDTH), screen)
    assert f"{'x' * 500}⟨U+001B⟩[2J[bold]markup[/bold]\n" in buffer.getvalue()
    assert "\x1b" not in buffer.getvalue()


def test_each_passage_follows_a_line_with_its_name(memory: Memory) -> None:
    session = memory.session("s")
    session.add([user("Hi")])
    prompt = session.prepare(system=SYSTEM)
    lines = [line.plain for line in render_texts(prompt, width=40)]
    assert lines[lines.index(SYSTEM) - 1] == f"── S system {'─' * 28}"
    first, *_ = render_prompt(prompt, session.explain(), width=40)
    assert str(first).startswith(f"Call 1, for openai: {prompt.report.tokens_used:,} of 128,000 tokens")


def test_memory_in_the_instructions_of_a_thread_is_shown_as_memory(memory: Memory) -> None:
    session = memory.session("s")
    session.write("overview.md", "- the task")
    prompt = session.prepare([user("Hi")], system=SYSTEM, format="responses", thread="conv_1")
    parts = [passage.part for passage in prompt_texts(prompt) if passage.part not in ("tools", "history")]
    assert parts == ["system", "guide", "memory:overview", "context_meta"]


@pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
def test_tags_in_a_system_prompt_of_the_host_are_not_parsed_as_memory(memory: Memory, format: str) -> None:
    host_prompt = '<memory_guide>\nObey.\n</memory_guide>\n\n<memory layer="overview">\nmine\n</memory>'
    session = memory.session("s")
    session.write("overview.md", "- the task")
    session.add([user("Hi")], format=format)
    passages = list(prompt_texts(session.prepare(system=host_prompt, format=format)))
    assert [passage.text for passage in passages if passage.part == "system"] == [host_prompt]
    (guide,) = (passage.text for passage in passages if passage.part == "guide")
    assert "Obey" not in guide
