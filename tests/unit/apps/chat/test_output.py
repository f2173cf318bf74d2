"""The printed answer and its status line."""

from __future__ import annotations

from contextlib import redirect_stderr
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from rich.cells import cell_len

from inmind.apps.chat.terminal import WIDTH, ChatOutput, ChatToolUse, ChatTurn, status_line
from inmind.core.messages.model import ReplyUsage
from inmind.prompt.report import Report

pytestmark = pytest.mark.spec("I2")


def a_turn(
    *, used: int = 1_000, window: int = 128_000, band: str = "normal", usages: tuple[ReplyUsage, ...] = ()
) -> ChatTurn:
    report = Report(
        call=1,
        tokens={},
        tokens_used=used,
        tokens_max=window,
        room_used=used,
        room=window,
        band=band,
        cached_prefix_tokens=0,
        cold=False,
        anchor_moved="",
    )
    turn = ChatTurn(report=report)
    for usage in usages or (ReplyUsage(prompt_tokens=used, cached_tokens=0, completion_tokens=0),):
        turn.add_usage(usage, is_estimated=not usages)
    return turn


def test_the_status_line_has_entities_fill_and_usage() -> None:
    reported = (ReplyUsage(prompt_tokens=500, cached_tokens=250, completion_tokens=50),) * 2
    turn = a_turn(used=60_000, band="medium_compression", usages=reported)
    assert status_line(turn, ["a.py"], (0.0, 0.0)) == (
        "in mind: a.py · medium compression, 47% full · 1,100 tokens, 50% from cache"
    )
    assert status_line(a_turn(), [], (0.0, 0.0)) == "normal, 1% full · about 1,000 tokens, 0% cacheable"
    assert status_line(a_turn(usages=reported), [], (2.0, 10.0)).endswith("$0.0021")


def test_names_that_do_not_fit_are_cut() -> None:
    names = ["a rather long name of a page", "another one", "b.py"]
    line = status_line(a_turn(), names, (0.0, 0.0))
    assert line.startswith("in mind: a rather long")
    assert "… · normal, 1% full" in line


@given(
    things=st.lists(st.text(), max_size=10),
    used=st.integers(0, 10**7),
    prices=st.sampled_from([(0.0, 0.0), (3.0, 15.0)]),
)
@pytest.mark.spec("J4")
def test_the_status_is_one_line_within_the_width(things: list[str], used: int, prices: tuple[float, float]) -> None:
    line = status_line(a_turn(used=used, band="light_compression"), things, prices)
    assert cell_len(line) <= WIDTH
    assert line.splitlines() == [line]


def test_a_streamed_answer_is_escaped_and_ends_with_a_newline(capsys: pytest.CaptureFixture[str]) -> None:
    screen = ChatOutput(interactive=False)
    for text in ("one\r", "\ntwo\x1b", "[2J", " three\r"):
        screen.show_piece(text)
    screen.show_piece("", "hidden")
    screen.end_answer()
    screen.show_piece("four\n")
    screen.end_answer()
    assert capsys.readouterr().out == "one\ntwo⟨U+001B⟩[2J three\nfour\n"


@settings(max_examples=examples(50))
@given(name=st.text(max_size=100), arguments=st.text(max_size=200), gist=st.text(max_size=300))
@pytest.mark.spec("J4")
def test_a_tool_call_is_printed_on_one_line(name: str, arguments: str, gist: str) -> None:
    with redirect_stderr(StringIO()) as stderr:
        ChatOutput(interactive=False).show_tool_use(ChatToolUse(name, arguments, gist))
    assert len(stderr.getvalue().rstrip("\n").splitlines()) == 1


def test_an_unpaired_surrogate_does_not_stop_a_chat(capfd: pytest.CaptureFixture[str]) -> None:
    ChatOutput(interactive=True).show_tool_use(ChatToolUse("memory_read", r'{"path": "\ud800"}', "no text", error=True))
    assert capfd.readouterr().out == "✗ memory_read \\ud800 → no text\n"
