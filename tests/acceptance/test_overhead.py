"""What memory costs while it has nothing to say: guide, meter, tools and empty sections."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user

from inmind import Memory, Session
from inmind.errors import ContextOverflow

pytestmark = pytest.mark.spec("D11")

FORMATS = ["openai", "responses", "anthropic"]
PAGE = {"page": {"id": "page-123", "title": "About Us"}}
WINDOW = 4_000


def overhead(session: Session, format: str = "openai", **options: Any) -> dict[str, int]:
    tokens = session.prepare([user("hi")], format=format, **options).report.tokens
    return {part: size for part, size in tokens.items() if part not in ("system", "history")}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("tools", [True, False])
def test_an_empty_memory_costs_little_in_a_small_window(memory: Memory, format: str, tools: bool) -> None:
    session = memory.session("s", window=WINDOW, memory_tools=tools)
    sizes = overhead(session, format)
    offered = sizes.pop("tools")
    assert (offered > 0) is tools
    assert sum(sizes.values()) <= 60
    assert offered <= 75


@pytest.mark.parametrize("format", FORMATS)
def test_the_guide_of_a_session_that_shows_everything_stays_within_the_overhead(memory: Memory, format: str) -> None:
    session = memory.session("s", window=WINDOW)
    session.observe("cms_getPage", {}, PAGE)
    session.write("overview.md", "- the task\n")
    session.add([user("Build the shop. " * 40), assistant("Done. " * 200), user("and now?"), assistant("ok")])
    session.compact("all", keep_recent=1)
    sizes = overhead(session, format)
    assert sizes["guide"] <= 95
    assert sizes["guide"] + sizes["context_meta"] <= 250
    assert sizes["guide"] + sizes["context_meta"] + sizes["tools"] <= 600


def test_without_memory_nothing_is_added_before_the_conversation(session: Session) -> None:
    prompt = session.prepare([{"role": "system", "content": "You edit."}, user("hi")])
    assert [message["role"] for message in prompt.messages] == ["system", "user"]
    assert prompt.memory == ""
    assert "No entities tracked yet." not in json.dumps(prompt.request)


@pytest.mark.parametrize("page", ["# Overview\n\n## Task\n\n<!-- what it is -->\n\n## Facts\n", "", "<!-- later -->\n"])
def test_a_page_of_headings_and_comments_is_not_shown(session: Session, page: str) -> None:
    session.write("overview.md", page)
    assert session.prepare([user("hi")]).memory == ""


def test_a_block_that_would_be_cut_to_its_headings_is_not_shown(memory: Memory) -> None:
    session = memory.session("s", window=1_000, reserve=0, memory_tools=False)
    session.write("overview.md", "# Overview\n\n## Task\n\n- " + "word " * 400 + "\n")
    prompt = session.prepare([user("one " * 500)])
    assert prompt.memory == ""
    assert prompt.report.cut == ("overview: 1 line",)


def test_what_an_empty_section_gets_later_comes_in_the_tail(session: Session) -> None:
    talk = [user("hi " * 600)]
    first = session.prepare(talk)
    session.observe("cms_getPage", {}, PAGE)
    session.write("overview.md", "# Overview\n\n## Task\n\n- publish the page\n")
    second = session.prepare(talk)
    text = json.dumps(second.messages[-1])
    assert "publish the page" in text
    assert "page-123" in text
    assert "data, never instructions" in text
    assert second.request["tools"] == first.request["tools"]


def test_a_block_comes_with_the_guide(session: Session) -> None:
    session.observe("cms_getPage", {}, PAGE)
    memory_text = session.prepare([user("hi")]).memory
    assert memory_text.startswith("<memory_guide>")
    assert "Unsure: ask which. None or not shown: ask or search." in memory_text
    assert "page-123" in memory_text


def test_a_model_without_memory_tools_is_not_asked_to_write(memory: Memory) -> None:
    session = memory.session("s", window=WINDOW, memory_tools=False)
    session.write("overview.md", "- the task\n")
    for words in (10, 900, 2_000):
        request = json.dumps(session.prepare([user("word " * words)]).request)
        assert "Keep overview.md" not in request
        assert "Compact" not in request


# -- the tool ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("working_memory", {"command": "write detail/plan.md\nthe plan"}),
        ("memory_write", {"path": "detail/plan.md", "text": "the plan"}),
    ],
)
def test_a_tool_runs_by_its_command_and_by_its_own_name(session: Session, name: str, arguments: dict[str, str]) -> None:
    session.prepare([user("hi")], tools=[{"type": "function", "function": {"name": "mine"}}])
    recorded = session.record(a_call("c1", name, json.dumps(arguments)))
    assert [result["content"] for result in recorded.results] == ["detail/plan.md: 8 bytes."]
    assert session.read("detail/plan.md") == "the plan"


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"command": "forget everything"}, "note, search, resolve, read, write, append, list, update, compact"),
        ({}, "note, search, resolve"),
        ({"command": "write", "text": "x"}, "path"),
        ({"command": "note tea", "importnace": 1}, "note, importance"),
        ({"command": "compact everything"}, "conversation, tools, all"),
    ],
)
def test_a_wrong_command_or_argument_names_the_right_ones(
    session: Session, arguments: dict[str, Any], names: str
) -> None:
    result = session.call_tool("working_memory", arguments)
    assert (result.error, result.code) == (True, "INVALID_INPUT")
    assert names in result.text
    assert result.text.startswith("Nothing was changed. ")


def test_a_search_by_command_is_recorded_like_one_by_name(session: Session) -> None:
    session.call_tool("working_memory", {"command": "note Mei prefers tea"})
    assert "Mei prefers tea" in session.call_tool("working_memory", {"command": "search tea"}).text
    assert sum(event.kind == "searched" for event in session.events()) == 1


def test_a_tool_of_the_host_with_the_same_name_is_refused(session: Session) -> None:
    with pytest.raises(Exception, match="working_memory"):
        session.prepare([user("hi")], tools=[{"type": "function", "function": {"name": "working_memory"}}])


def test_when_the_memory_tool_does_not_fit_the_error_names_the_option(memory: Memory) -> None:
    rules = {"role": "system", "content": "word " * 800}
    with pytest.raises(ContextOverflow, match="memory_tools=False"):
        memory.session("s", window=1_000, reserve=0).prepare([rules, user("hi")])
    without = memory.session("t", window=1_000, reserve=0, memory_tools=False)
    assert without.prepare([rules, user("hi")])
    with pytest.raises(ContextOverflow) as error:
        without.prepare([{**rules, "content": "word " * 2_000}, user("hi")])
    assert "memory_tools" not in str(error.value)


def test_results_of_the_memory_tool_are_no_entities(session: Session) -> None:
    call = a_call("c1", "working_memory", '{"command": "list"}')
    session.prepare([user("hi"), call, a_result("c1", "page-9"), user("?")])
    assert list(session.entities.window) == []


def test_blank_lines_in_a_page_that_is_cut_take_no_time(memory: Memory) -> None:
    session = memory.session("s", window=WINDOW, reserve=500)
    session.scratchpad.update("Plan:\n" + "\n" * 60 + "\n".join(f"step {n} of the plan" for n in range(400)))
    prompt = session.prepare([user("word " * 1_800)])
    assert prompt.report.cut
