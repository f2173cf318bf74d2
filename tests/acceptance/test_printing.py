"""`print` of a value that a call returns shows one readable line, not its fields."""

from __future__ import annotations

from pathlib import Path

from inmind import Memory

MAX_LINE = 200


def test_printed_values_are_readable(memory: Memory, tmp_path: Path) -> None:
    session = memory.session("site", resource="ada")
    session.observe("cms_createPage", {"title": "About Us"}, {"page": {"id": "page-123", "title": "About Us"}})
    prompt = session.prepare([{"role": "user", "content": "Hello"}])
    call = {"id": "call_1", "type": "function", "function": {"name": "send", "arguments": "{}"}}
    recorded = session.record({"role": "assistant", "content": "Hi", "tool_calls": [call]}, format="openai")
    note = session.note("Ada likes tea.")
    ada = memory.resource("ada")
    ada.economics.record("earning", amount=5, buyer="bo")
    printed = [
        *(session, memory, ada, prompt, prompt.report, session.preview(), recorded, note, ada.dream(), session.usage),
        *(session.entities, session.resolve("that page"), session.check_call("update", {"pageId": "page-123"})),
        *(session.merge_back(session.spawn("helper")), session.state, ada.state, ada.affect, ada.affect.levels),
        *(ada.economics, *ada.economics.report(), memory.get(note.id), *session.search("tea"), *session.events()),
        *(*memory.sessions(), memory.export(tmp_path / "all.inmind"), memory.run_upkeep(), ada.consolidate()),
        *(session.compact("all"), session.call_tool("memory_search", {"query": "tea"}), session.scratchpad),
    ]
    lines = [(type(value).__name__, line) for value in printed for line in str(value).splitlines()]
    assert [(name, line) for name, line in lines if line.startswith(f"{name}(") or " object at 0x" in line] == []
    assert [(name, line) for name, line in lines if len(line) > MAX_LINE] == []
    assert str(recorded) == "Hi\nsend({})"
    assert str(memory.page("memory/scratch.md", resource="ada")) == ada.state.documents.text("memory/scratch.md")


def test_an_observation_without_an_id_may_say_so(memory: Memory) -> None:
    session = memory.session("site")
    for _ in range(2):
        session.observe("read_page", {}, {"page": {"id": "page-1"}}, error=False, id=None)
    assert [event.kind for event in session.events()].count("observed") == 2
