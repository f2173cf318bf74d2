"""A prompt as it is drawn: to scale, complete, and the same without colour."""

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
from inmind.apps.cli.prompt_view import (
    SCALE_LIMIT,
    bar,
    bar_parts,
    legend,
    print_prompt,
    prompt_texts,
    render_prompt,
    render_texts,
    report_json,
    scale_to_width,
    table,
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
    def made(counts: list[int], window: int, share: float, layers: list[str]) -> Report:
        parts = [*USUAL[:3], *(f"memory:{name}" for name in layers), *USUAL[-3:]]
        tokens = {part: counts[place % len(counts)] for place, part in enumerate(parts)}
        prefix = sum(count for part, count in tokens.items() if part not in USUAL[-2:])
        return a_report(tokens, window=window, cached=int(prefix * share))

    return st.builds(made, sizes, st.integers(1_000, 1_000_000), st.floats(0, 1), names)


def plain(*drawn: Any, width: int = WIDTH) -> str:
    """As it leaves through a pipe."""
    paper = io.StringIO()
    console = Console(file=paper, width=width, highlight=False)
    for one in drawn:
        console.print(one, soft_wrap=not isinstance(one, Table))
    return paper.getvalue()


class TestCells:
    @given(sizes, st.integers(1, 300))
    def test_a_bar_is_as_wide_as_it_was_to_be(self, sizes: list[int], width: int) -> None:
        assert sum(scale_to_width(sizes, width)) == (width if any(sizes) else 0)

    @given(sizes, st.integers(1, 300))
    def test_whatever_there_is_can_be_seen_and_nothing_else(self, sizes: list[int], width: int) -> None:
        given = scale_to_width(sizes, width)
        assert all(have == 0 for have, size in zip(given, sizes, strict=True) if not size)
        if width >= sum(size > 0 for size in sizes):
            assert all(have >= 1 for have, size in zip(given, sizes, strict=True) if size)

    @given(sizes, st.integers(1, 300))
    def test_what_is_larger_is_never_drawn_smaller(self, sizes: list[int], width: int) -> None:
        drawn = sorted(zip(sizes, scale_to_width(sizes, width), strict=True))
        for (small, few), (large, many) in pairwise(drawn):
            assert few <= many or small == large

    def test_what_is_large_enough_is_to_scale(self) -> None:
        assert scale_to_width([100, 200, 100], 40) == [10, 20, 10]
        assert scale_to_width([60, 60_000], 50) == [1, 49]


class TestBar:
    @given(reports(), st.integers(20, 200))
    def test_it_takes_the_width_that_there_is_whatever_is_in_the_prompt(self, report: Report, width: int) -> None:
        line, below = bar(report, width=width)
        assert len(line.plain) == width
        assert len(below.plain) == len(line.plain.rstrip("·⋯"))

    @given(reports())
    def test_each_part_has_a_letter_of_its_own_in_the_order_of_the_prompt(self, report: Report) -> None:
        parts = bar_parts(report)
        assert [part.part for part in parts] == [part for part, tokens in report.tokens.items() if tokens]
        assert len({part.letter for part in parts}) == len(parts)
        line = bar(report, width=200)[0].plain
        assert [letter for place, letter in enumerate(line) if line[place - 1 : place] != letter][: len(parts)] == [
            part.letter for part in parts
        ]

    @given(reports())
    def test_what_is_served_from_cache_is_the_beginning_of_what_is_sent(self, report: Report) -> None:
        parts = [part for part in bar_parts(report) if part.name not in ("changes", "context_meta")]
        assert sum(part.cached for part in parts) == report.cached_prefix_tokens
        whole = [part.cached == part.tokens for part in parts]
        assert whole == sorted(whole, reverse=True)

    def test_a_cache_that_has_gone_cold_serves_nothing(self) -> None:
        assert sum(part.cached for part in bar_parts(a_report(cached=500, cold=True))) == 0

    def test_free_room_is_to_scale_until_it_would_leave_nothing_to_look_at(self) -> None:
        half = bar(a_report(window=1_600), width=WIDTH)[0].plain
        assert half.count("·") == WIDTH / 2
        hardly = bar(a_report(window=128_000), width=WIDTH)[0].plain
        assert hardly.count("·") + hardly.count("⋯") == WIDTH / SCALE_LIMIT
        assert hardly.count("⋯") == 1

    def test_a_prompt_that_is_over_its_window_is_drawn_all_the_same(self) -> None:
        assert set(bar(a_report(window=700), width=WIDTH)[0].plain) == set("TSGoeHCM")

    def test_the_letters_stay_where_colours_do_not(self) -> None:
        line = bar(a_report(), width=WIDTH)[0]
        paper = io.StringIO()
        Console(file=paper, width=WIDTH, force_terminal=True, color_system="standard").print(line)
        assert "\x1b[" in paper.getvalue()
        assert plain(line) == f"{line.plain}\n"

    @given(reports(), st.integers(30, 200))
    def test_the_legend_names_all_of_it_and_breaks_no_name(self, report: Report, width: int) -> None:
        lines = legend(report, width=width)
        said = "  ".join(line.plain for line in lines)
        for part in bar_parts(report):
            assert f"{part.letter} " in said
            assert f" {part.tokens:,}" in said
        assert f"of {report.tokens_max:,}" in said

    def test_programs_get_the_same_numbers(self) -> None:
        report = a_report(cached=300)
        assert report_json(report) == {
            "call": 1,
            "tokens": dict.fromkeys(USUAL, 100),
            "tokens_used": 800,
            "tokens_max": 10_000,
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
SAID = [
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
    session.add(SAID[:3])
    session.prepare(system=SYSTEM)
    session.note("Ada prefers tabs.")
    session.add(SAID[3:])
    return session


def prompt_for(session: Session, format: str) -> Prompt:
    return session.prepare(tools=TOOLS[format], format=format)


@pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
class TestText:
    def test_every_part_stands_below_its_name_and_nothing_below_another(self, session: Session, format: str) -> None:
        prompt = prompt_for(session, format)
        found = {passage.part: passage.text for passage in prompt_texts(prompt)}
        assert set(found) == {part.part for part in bar_parts(prompt.report)}
        assert found["system"] == SYSTEM
        assert "Ask Mei about the colours." in found["memory:working-memory"]
        assert "not the state" in found["memory:house"]
        assert found["context_meta"].startswith("<context_meta>\n{")
        assert found["context_meta"].endswith("\n</context_meta>")
        assert "get_page" in found["tools"]

    def test_the_blocks_together_are_what_was_sent_to_the_letter(self, session: Session, format: str) -> None:
        prompt = prompt_for(session, format)
        ours = [
            passage.text
            for passage in prompt_texts(prompt)
            if passage.part == "guide" or passage.part.startswith("memory:")
        ]
        assert json.dumps("\n\n".join(ours)) in json.dumps(prompt.request)

    def test_the_conversation_is_there_word_for_word_and_says_whose_words(self, session: Session, format: str) -> None:
        said = [(one.label, one.text) for one in prompt_texts(prompt_for(session, format)) if one.part == "history"]
        assert said == [
            ("user", SAID[0]["content"]),
            ("assistant calls get_page", '{"id": "page-123"}'),
            ("result", SAID[2]["content"]),
            ("assistant", "There it is."),
            ("user", "Now a second one."),
        ]


def test_what_changed_since_the_anchor_stands_apart_from_the_meter(memory: Memory) -> None:
    session = memory.session("s", resource="ada")
    session.add([user("word " * 2_000)])
    session.prepare()
    session.write("overview.md", f"{session.overview}- Staging runs build 118.\n")
    session.add([assistant("Yes."), user("And now?")])
    found = {passage.part: passage.text for passage in prompt_texts(session.prepare())}
    assert found["changes"].startswith("<memory_changes>\n")
    assert "build 118" in found["changes"]
    assert found["context_meta"].startswith("<context_meta>\n")


def test_the_table_says_of_each_part_how_it_is_served_and_what_was_cut(memory: Memory) -> None:
    small = DocumentLayer(name="house", path="detail/h.md", budget=Budget(max=60))
    session = memory.session("s", layers=default_layers(small))
    session.write("detail/h.md", "\n".join(f"line {number}" for number in range(200)))
    session.add([user("Hi")])
    session.prepare()
    session.add([assistant("Yes?"), user("word " * 50)])
    prompt = session.prepare()
    rows = plain(table(prompt.report, session.explain()), width=120).splitlines()
    (history,) = (row for row in rows if " history " in row)
    assert history.startswith("H history")
    assert " cached, " in history
    (cut,) = (row for row in rows if " house " in row)
    assert "cut: " in cut
    assert "did not fit its budget" in cut
    (meter,) = (row for row in rows if " context_meta " in row)
    assert " tail " in meter
    narrow = plain(table(prompt.report, session.explain()), width=60).splitlines()
    assert max(map(len, narrow)) <= 60


def test_a_long_line_is_not_broken_and_nothing_in_it_acts(memory: Memory) -> None:
    session = memory.session("s")
    session.add([user(f"{'x' * 500}\x1b[2J[bold]markup[/bold]")])
    prompt = session.prepare()
    paper = io.StringIO()
    print_prompt(Console(file=paper, width=WIDTH, highlight=False), prompt, session.explain())
    assert f"{'x' * 500}⟨U+001B⟩[2J[bold]markup[/bold]\n" in paper.getvalue()
    assert "\x1b" not in paper.getvalue()


def test_each_passage_stands_below_a_line_with_its_name(memory: Memory) -> None:
    session = memory.session("s")
    session.add([user("Hi")])
    prompt = session.prepare(system=SYSTEM)
    lines = [line.plain for line in render_texts(prompt, width=40)]
    assert lines[lines.index(SYSTEM) - 1] == f"── S system {'─' * 28}"
    first, *_ = render_prompt(prompt, session.explain(), width=40)
    assert str(first).startswith(f"Call 1, for openai: {prompt.report.tokens_used:,} of 128,000 tokens")


@pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
def test_a_host_that_writes_as_we_do_is_not_taken_for_us(memory: Memory, format: str) -> None:
    mine = '<memory_guide>\nObey.\n</memory_guide>\n\n<memory layer="overview">\nmine\n</memory>'
    session = memory.session("s")
    session.add([user("Hi")], format=format)
    found = list(prompt_texts(session.prepare(system=mine, format=format)))
    assert [passage.text for passage in found if passage.part == "system"] == [mine]
    (guide,) = (passage.text for passage in found if passage.part == "guide")
    assert "Obey" not in guide
