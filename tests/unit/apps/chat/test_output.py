"""The printed answer and its status line."""

from __future__ import annotations

from contextlib import redirect_stderr
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from rich.cells import cell_len

from inmind.apps.chat.file_tools import FileChange, ToolOutput
from inmind.apps.chat.output import MAX_COMPARED_LINES, MAX_DIFF_LINES, ChatOutput
from inmind.apps.chat.providers import StreamPiece
from inmind.apps.chat.status import WIDTH, status_line
from inmind.apps.chat.turn import ChatToolUse, ChatTurn
from inmind.core.pricing import Usage
from inmind.prompt.report import Report

pytestmark = pytest.mark.spec("I2")


def a_turn(
    *, used: int = 1_000, window: int = 128_000, band: str = "normal", token_usage: Usage | None = None
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
    return ChatTurn(text="", report=report, usage=token_usage or Usage(calls=1, uncached=used))


def test_the_status_line_has_entities_fill_and_usage() -> None:
    reported = Usage(reported_calls=2, reported_prompt=1_000, reported_cached=500, completion=100)
    turn = a_turn(used=60_000, band="medium_compression", token_usage=reported)
    assert status_line(turn, ["a.py"], (0.0, 0.0)) == (
        "in mind: a.py · medium compression, 47% full · 1,100 tokens, 50% from cache"
    )
    assert status_line(a_turn(), [], (0.0, 0.0)) == "normal, 1% full · about 1,000 tokens, 0% cacheable"
    assert status_line(a_turn(token_usage=reported), [], (2.0, 10.0)).endswith("$0.0021")


def test_names_that_do_not_fit_are_counted() -> None:
    names = ["a rather long name of a page", "another one", "b.py"]
    assert status_line(a_turn(), names, (0.0, 0.0)).startswith("in mind: 3 · normal")
    few = status_line(a_turn(), ["a.py", "b.py", "c.py", "d.py"], (0.0, 0.0))
    assert few.startswith("in mind: a.py, b.py +2 · normal")


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
        screen.show_piece(StreamPiece(text))
    screen.show_piece(StreamPiece(reasoning="hidden"))
    screen.end_answer()
    screen.show_piece(StreamPiece("four\n"))
    screen.end_answer()
    assert capsys.readouterr().out == "one\ntwo⟨U+001B⟩[2J three\nfour\n"


@settings(max_examples=examples(50))
@given(name=st.text(max_size=100), arguments=st.text(max_size=200), gist=st.text(max_size=300))
@pytest.mark.spec("J4")
def test_a_tool_call_is_printed_on_one_line(name: str, arguments: str, gist: str) -> None:
    with redirect_stderr(StringIO()) as stderr:
        ChatOutput(interactive=False).show_tool_use(ChatToolUse(name, arguments, ToolOutput("", gist)))
    assert len(stderr.getvalue().rstrip("\n").splitlines()) == 1


def test_an_unpaired_surrogate_does_not_stop_a_chat(capfd: pytest.CaptureFixture[str]) -> None:
    ChatOutput(interactive=True).show_tool_use(
        ChatToolUse("read_file", r'{"path": "\ud800"}', ToolOutput("", "no text", error=True))
    )
    assert capfd.readouterr().out == "✗ read_file \\ud800 → no text\n"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, "one\n", "+one"),
        ("one\ntwo\n", "one\nthree\n", "-two\n+three"),
        ("", "line\n" * (MAX_DIFF_LINES + 10), "(13 more lines, v shows all)\n+line"),
        ("one\n", "one\r\n", "+one⟨U+000D⟩"),
        ("one", "one\n", " one\n-(no line end)"),
        ("x" * 500, "x" * 500 + "y", "… (501 characters)"),
        ("x" * 500 + "y", "x" * 500 + "z", "(the change is"),
        ("", "line\n" * (MAX_COMPARED_LINES + 1), "0 lines before, 4001 after"),
    ],
)
def test_a_question_shows_the_change_or_states_that_it_is_hidden(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, before: str | None, after: str, expected: str
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    assert ChatOutput(interactive=True).refuse_write(FileChange("a.txt", before, after)) == ""
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("before", "after", "hidden"),
    [
        ("", "line\n" * 30 + "in the middle\n" + "line\n" * 30, "in the middle"),
        ("", "x" * 500 + "y\n", "xy\n"),
        ("", "line\n" * MAX_COMPARED_LINES + "the last\n", "the last"),
    ],
)
def test_the_whole_change_can_be_shown_before_the_answer(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, before: str, after: str, hidden: str
) -> None:
    screen = ChatOutput(interactive=True)
    for answers, times_shown, refused in (("n\n", 0, True), ("v\ny\n", 1, False), ("v\nv\n\n", 2, True)):
        monkeypatch.setattr("sys.stdin", StringIO(answers))
        assert bool(screen.refuse_write(FileChange("a.txt", before, after))) == refused
        output = capsys.readouterr().out
        assert output.count(hidden) == times_shown
        assert output.count("[y/N/v]") == times_shown + 1


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [("0\n\n2\n", "model-2"), ("model-3\n", "model-3"), ("50\n", "model-50"), ("", "")],
)
def test_a_model_is_chosen_by_number_or_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, typed: str, chosen: str
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(typed))
    assert ChatOutput(interactive=True).choose([f"model-{number}" for number in range(1, 51)]) == chosen
    listed = capsys.readouterr().out
    assert "  40  model-40\n" in listed
    assert "and 10 more" in listed
    assert "model-41" not in listed
