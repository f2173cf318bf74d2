"""Undone, repeated and overlapping compactions keep every message and restore every page."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import Home, a_call, a_result, assistant, user

from inmind import Memory, Session
from inmind.testing import ManualClock

Message = dict[str, Any]


def outputs(number: int, *, first: int = 0) -> list[Message]:
    messages: list[Message] = []
    for n in range(first, first + number):
        messages += [
            user(f"Look at {n}."),
            a_call(f"c{n}", "get", "{}"),
            a_result(f"c{n}", f"row {n} " * 200),
            assistant("ok"),
        ]
    return messages


def a_reply(*calls: tuple[str, dict[str, Any]]) -> Message:
    tool_calls = [
        {"id": f"m{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": tool_calls}


@pytest.fixture
def session(memory: Memory) -> Session:
    session = memory.session("s")
    session.add([*outputs(9), user("And now?")])
    return session


@pytest.mark.spec("E9")
def test_a_page_written_in_the_same_reply_keeps_its_text(session: Session) -> None:
    session.prepare()
    compact = {"target": "tools", "keep_recent": 2, "archive_to": "archive/a.md"}
    session.record(a_reply(("memory_write", {"path": "archive/a.md", "text": "mine"}), ("compact_history", compact)))
    assert session.read("archive/a.md").startswith("mine\n")
    session.undo_compaction()
    assert session.read("archive/a.md") == "mine"


@pytest.mark.spec("E9")
def test_two_compactions_to_one_page_are_undone_separately(session: Session) -> None:
    session.prepare()
    first = {"target": "tools", "keep_recent": 6, "archive_to": "archive/a.md"}
    session.record(a_reply(("compact_history", first), ("compact_history", {**first, "keep_recent": 2})))
    session.undo_compaction()
    page = session.read("archive/a.md")
    stubs = [entry for entry in session.state.history.sent if entry.is_stub]
    assert stubs
    assert all(f"## {entry.seq}: tool" in page for entry in stubs)
    session.undo_compaction()
    assert "archive/a.md" not in session.documents()


@pytest.mark.spec("E3", "E6")
def test_equal_stubs_are_kept_apart(memory: Memory) -> None:
    session = memory.session("s", window=8_000, memory_tools=False)
    messages: list[Message] = []
    for n in range(40):
        messages += [user(f"Turn {n}.")]
        for k in range(2):
            id = f"t{n}.{k}"
            messages += [a_call(id, "get", "{}"), a_result(id, "data " * 200)]
            messages = [wire for wire in session.prepare(messages).messages if wire["role"] != "system"]
        messages += [assistant("ok")]
        whole = session.state.conversation.wires
        questions = [wire["content"] for wire in whole if wire["role"] == "user"]
        assert questions == [f"Turn {k}." for k in range(n + 1)]
        call_ids = [wire["tool_call_id"] for wire in whole if wire["role"] == "tool"]
        assert call_ids == [f"t{a}.{b}" for a in range(n + 1) for b in range(2)]
    assert session.state.history.compactions


@pytest.mark.spec("A4", "E9")
def test_a_compaction_built_on_a_stub_is_undone_with_it(session: Session) -> None:
    """The first turn still waits for a result; its other result shares a page with the second."""
    both = {**a_call("waits"), "tool_calls": [*a_call("waits")["tool_calls"], *a_call("first")["tool_calls"]]}
    first = [user("look at both"), both, a_result("first", "alpha " * 400), assistant("one is missing")]
    second = [user("and this"), a_call("second"), a_result("second", "beta " * 400), assistant("seen")]
    talk = [*first, *second, user("go on")]
    session.prepare(talk)
    assert session.compact("tools", keep_recent=0).messages == 2
    assert session.compact("conversation", keep_recent=0)
    session.prepare([*second, user("go on")])
    history = session.state.history
    pages = "".join(session.read(path) for path in session.documents() if path.startswith("archive/"))
    assert {entry.seq for entry in history.sent if not entry.is_stub} == {entry.seq for entry in history.messages}
    assert (history.compactions, pages) == ((), "")


@pytest.mark.spec("A6")
def test_a_key_of_an_empty_compaction_returns_the_same_report(memory: Memory) -> None:
    session = memory.session("s")
    session.add([user("hi")])
    first = session.compact("all", key="k")
    assert (bool(first), session.compact("all", key="k")) == (False, first)


@pytest.mark.spec("A6", "E7")
def test_a_conversation_that_grows_during_its_summary_is_summarized_again(session: Session) -> None:
    prompts: list[str] = []

    def model(prompt: str) -> str:
        prompts.append(prompt)
        if len(prompts) == 1:
            session.add([assistant("ok"), *outputs(2, first=20), user("Later.")])
        return "Rows were looked at."

    report = session.compact("conversation", strategy="summarize", keep_recent=2, model=model, key="k")
    assert (bool(report), len(prompts)) == (True, 2)


@pytest.mark.spec("E2", "E9")
def test_an_undone_compaction_is_not_repeated_at_once(home: Home) -> None:
    clock = ManualClock()
    with Memory.open(home, clock=clock) as memory:
        session = memory.session("s")
        session.add([*outputs(9), user("And now?")])
        session.prepare()
        session.write("overview.md", session.overview + "\n- all rows are fine\n")
        clock.advance(seconds=3_600)
        assert session.prepare().report.compacted == "the overview covers it"
        session.undo_compaction()
        clock.advance(seconds=3_600)
        assert session.prepare().report.compacted == ""


@pytest.mark.spec("E2", "F4")
def test_front_matter_and_a_bom_do_not_count_as_written(home: Home) -> None:
    pytest.importorskip("ruamel.yaml")
    clock = ManualClock()
    with Memory.open(home, clock=clock) as memory:
        session = memory.session("s")
        session.add([*outputs(9), user("And now?")])
        session.prepare()
        session.update_front_matter({"project": {"name": "shop"}})
        session.write("overview.md", "\ufeff" + session.overview)
        clock.advance(seconds=3_600)
        assert session.prepare().report.compacted == ""


@pytest.mark.spec("E7")
def test_the_sessions_model_writes_the_summary_when_the_window_is_full(memory: Memory) -> None:
    session = memory.session("s", window=8_000, summarizer=lambda _: "Rows were looked at, all fine.")
    session.add([*outputs(30), user("And now?")])
    prompt = session.prepare()
    assert prompt.report.compacted == "the window was full"
    assert "Rows were looked at, all fine." in json.dumps(prompt.request)
    broken = memory.session("t", window=8_000, summarizer=lambda _: "")
    broken.add([*outputs(30), user("And now?")])
    assert broken.prepare().report.compacted == "the window was full"


@pytest.mark.spec("E5")
def test_a_call_larger_than_the_window_is_cut_and_stays_a_call(memory: Memory) -> None:
    session = memory.session("s", window=8_000)
    arguments = json.dumps({"path": "a.py", "text": "x = 1\n" * 9_000})
    session.add([user("Write it."), a_call("c1", "write_file", arguments), a_result("c1", "written")])
    prompt = session.prepare()
    (call,) = [message for message in prompt.messages if message.get("tool_calls")]
    assert "archive/" in json.loads(call["tool_calls"][0]["function"]["arguments"])["cut"]
    assert prompt.report.tokens_used < 8_000


@pytest.mark.spec("E5", "J3")
def test_a_title_with_a_nul_does_not_break_a_session(memory: Memory) -> None:
    session = memory.session("s", window=6_000)
    session.add([user("odd \x00 words"), assistant("ok"), *outputs(20), user("And now?")])
    assert session.prepare().report.compacted == "the window was full"


@pytest.mark.spec("E3", "F2")
@pytest.mark.parametrize("rewrites", [{}, {"section": "3: tool"}, {"section": "3: tool", "append": True}])
@pytest.mark.parametrize("to", [None, "detail/log.md"])
def test_a_model_can_append_to_an_archive_but_not_rewrite_it(
    session: Session, rewrites: dict[str, Any], to: str | None
) -> None:
    (page,) = session.compact("tools", keep_recent=2, archive_to=to).archives
    session.prepare()
    before = session.read(page)
    session.record(a_reply(("memory_read", {"path": page})))
    result = session.record(a_reply(("memory_write", {"path": page, "text": "gone", **rewrites}))).results[0]
    assert f"Nothing was written: {page} holds archived messages" in result["content"]
    session.record(a_reply(("memory_write", {"path": page, "text": "mine", "append": True})))
    assert session.read(page) == f"{before}mine"
    session.undo_compaction()
    session.prepare()
    session.record(a_reply(("memory_read", {"path": page, "from_line": 1})))
    session.record(a_reply(("memory_write", {"path": page, "text": "all mine"})))
    assert session.read(page) == "all mine"
