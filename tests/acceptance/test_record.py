"""Recording replies: memory tools run, and host calls are returned."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from anthropic.types import Message as AnthropicMessage
from builders import a_result, assistant, user
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from inmind import Memory, Recorded, Session, default_layers
from inmind.core.events.base import Draft, Origin, Trust
from inmind.core.events.session import MessageAdded
from inmind.errors import InmindError, InvalidInput, StorageFull
from inmind.layers import ScratchpadLayer
from inmind.memory.backends import FolderBackend
from inmind.prompt.layers.base import Layer, LayerContext, LayerText
from inmind.prompt.layers.builtin import TextLayer
from inmind.store.protocol import AppendResult, Batch
from inmind.testing import InMemoryStore

HOST_TOOL = {"type": "function", "function": {"name": "get_page", "parameters": {"type": "object"}}}
ARGUMENTS = {"text": "The customer is Mei."}


def chat(
    *calls: tuple[str, str, Any], text: str | None = None, id: str = "chatcmpl-0123456789abcdef"
) -> dict[str, Any]:
    """A chat completion with calls as (id, name, arguments)."""
    tool_calls = [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": name, "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)},
        }
        for call_id, name, arguments in calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if tool_calls:
        message["tool_calls"] = tool_calls
    return {
        "id": id,
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "tool_calls" if tool_calls else "stop", "message": message, "logprobs": None}
        ],
        "usage": {"prompt_tokens": 400, "completion_tokens": 7, "total_tokens": 407},
    }


def response(*calls: tuple[str, str, Any], text: str = "") -> dict[str, Any]:
    output: list[dict[str, Any]] = []
    if text:
        part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        output.append({"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]})
    output += [
        {
            "id": f"fc_{call_id}",
            "type": "function_call",
            "call_id": call_id,
            "name": name,
            "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            "status": "completed",
        }
        for call_id, name, arguments in calls
    ]
    return {
        "id": "resp_0123456789abcdef",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def claude(*calls: tuple[str, str, Any], text: str = "") -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": call_id, "name": name, "input": arguments} for call_id, name, arguments in calls
    ]
    return {
        "id": "msg_0123456789abcdef",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 7, "cache_read_input_tokens": 300},
    }


CALLS = (("call_a", "working_memory_update", ARGUMENTS), ("call_b", "get_page", {"id": "page-1"}))
REPLIES: dict[str, tuple[str, Any]] = {
    "chat-dict": ("openai", chat(*CALLS, text="One moment.")),
    "chat-object": ("openai", ChatCompletion.model_validate(chat(*CALLS, text="One moment."))),
    "chat-message": ("openai", chat(*CALLS, text="One moment.")["choices"][0]["message"]),
    "responses-dict": ("responses", response(*CALLS, text="One moment.")),
    "responses-object": ("responses", Response.model_validate(response(*CALLS, text="One moment."))),
    "responses-items": ("responses", response(*CALLS, text="One moment.")["output"]),
    "anthropic-dict": ("anthropic", claude(*CALLS, text="One moment.")),
    "anthropic-object": ("anthropic", AnthropicMessage.model_validate(claude(*CALLS, text="One moment."))),
}


def host_tool(format: str) -> dict[str, Any]:
    function = HOST_TOOL["function"]
    if format == "openai":
        return HOST_TOOL
    assert isinstance(function, dict)
    if format == "responses":
        return {"type": "function", **function}
    return {"name": function["name"], "input_schema": function["parameters"]}


def prepare_prompt(session: Session, format: str = "openai", tools: list[Any] | None = None) -> None:
    session.prepare([user("Show me page 1.")], tools=[host_tool(format)] if tools is None else tools, format=format)


@pytest.mark.spec("C5", "D9")
@pytest.mark.parametrize("kind", REPLIES)
def test_a_reply_is_recorded_memory_tools_run_and_host_calls_are_returned(session: Session, kind: str) -> None:
    format, reply = REPLIES[kind]
    prepare_prompt(session, format)
    recorded = session.record(reply)
    assert session.scratchpad.snapshot == "The customer is Mei."
    assert recorded.text == "One moment."
    (call,) = recorded.host_calls
    assert (call.id, call.name, call.arguments) == ("call_b", "get_page", {"id": "page-1"})
    assert "call_a" in json.dumps(recorded.results)
    assert "call_b" not in json.dumps(recorded.results)
    messages = [event for event in session.events() if isinstance(event.payload, MessageAdded)]
    assert [event.origin.value for event in messages] == ["user", *["assistant"] * (len(messages) - 2), "tool"]


@pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
def test_results_in_the_hosts_list_are_not_stored_twice(session: Session, format: str) -> None:
    reply = {"openai": chat, "responses": response, "anthropic": claude}[format](*CALLS[:1])
    prepare_prompt(session, format)
    recorded = session.record(reply)
    history = {
        "openai": lambda: [reply["choices"][0]["message"]],
        "responses": lambda: reply["output"],
        "anthropic": lambda: [{"role": "assistant", "content": reply["content"]}],
    }[format]()
    before = session.state.conversation.wires
    prompt = session.prepare(
        [user("Show me page 1."), *history, *recorded.results], tools=[host_tool(format)], format=format
    )
    assert session.state.conversation.wires == before
    assert prompt.report.repaired == ()
    assert [event.kind for event in session.events()].count("splice") == 0


def test_a_session_with_its_own_history_continues_from_a_recorded_reply(session: Session) -> None:
    session.add([user("Show me page 1.")])
    session.prepare()
    session.record(chat(*CALLS))
    session.add([a_result("call_b", '{"page": {"id": "page-1", "title": "Home"}}')])
    sent = session.prepare()
    assert [message["role"] for message in sent.messages[-4:]] == ["user", "assistant", "tool", "tool"]
    assert sent.report.repaired == ()
    assert session.entities.latest("page") is not None


@pytest.mark.spec("A6")
@pytest.mark.parametrize("kind", REPLIES)
def test_recording_the_same_reply_twice_returns_the_same(session: Session, kind: str) -> None:
    format, reply = REPLIES[kind]
    prepare_prompt(session, format)
    first = session.record(reply)
    before = session.state.seq
    again = session.record(reply)
    assert session.state.seq == before
    assert again.repeated
    assert (again.text, again.results, again.host_calls) == (first.text, first.results, first.host_calls)


def test_the_same_text_for_another_prompt_is_another_reply(session: Session) -> None:
    session.prepare([user("ok?")])
    session.record(assistant("ok"))
    session.prepare([user("ok?"), assistant("ok"), user("really?")])
    assert not session.record(assistant("ok")).repeated
    assert [entry.wire["content"] for entry in session.state.conversation] == ["ok?", "ok", "really?", "ok"]


def test_replies_with_the_same_short_id_are_all_recorded(session: Session) -> None:
    session.prepare([user("a")])
    session.record(chat(text="first", id="chatcmpl-0"))
    session.prepare([user("a"), assistant("first"), user("b")])
    session.record(chat(text="second", id="chatcmpl-0"))
    assert [entry.wire["content"] for entry in session.state.conversation] == ["a", "first", "b", "second"]


@pytest.mark.spec("A3", "A4")
def test_a_reply_and_its_tools_are_undone_together(session: Session) -> None:
    prepare_prompt(session)
    before = session.state
    session.record(chat(*CALLS))
    assert session.undo() == before.seq
    assert (session.scratchpad.snapshot, session.state.conversation.wires) == ("", before.conversation.wires)


def test_calls_run_in_order_each_on_the_state_before(session: Session) -> None:
    write = {"path": "detail/a.md", "text": "one"}
    recorded = session.record(
        chat(
            ("1", "memory_write", write),
            ("2", "memory_write", {**write, "text": "two", "append": True}),
            ("3", "memory_read", {"path": "detail/a.md"}),
        )
    )
    assert [result["content"] for result in recorded.results] == [
        "detail/a.md: 3 bytes.",
        "detail/a.md: 7 bytes.",
        "one\ntwo",
    ]
    assert session.read("detail/a.md") == "one\ntwo"


# -- errors ----------------------------------------------------------------------------------------------------


def only_result(recorded: Recorded) -> str:
    (result,) = recorded.results
    return str(result["content"])


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    "broken", ['{"text": "The cust', "nonsense", "[1, 2]", '"text"', "7", '{"text": "a"} and more']
)
def test_invalid_arguments_are_answered_to_the_model(session: Session, broken: str) -> None:
    session.scratchpad.update("kept")
    answer = only_result(session.record(chat(("1", "working_memory_update", broken))))
    assert answer.startswith("Error: Nothing was changed. arguments: expected a JSON object")
    assert session.scratchpad.snapshot == "kept"


def test_arguments_encoded_twice_are_parsed(session: Session) -> None:
    session.record(chat(("1", "working_memory_update", json.dumps(json.dumps(ARGUMENTS)))))
    assert session.scratchpad.snapshot == "The customer is Mei."


def test_invalid_arguments_of_a_host_call_go_to_the_host(session: Session) -> None:
    prepare_prompt(session)
    (call,) = session.record(chat(("1", "get_page", '{"id": '))).host_calls
    assert (call.arguments, call.text) == (None, '{"id": ')


def test_an_unknown_tool_is_answered_with_the_known_tools(session: Session) -> None:
    prepare_prompt(session)
    recorded = session.record(chat(("1", "get_pages", {})))
    assert recorded.host_calls == ()
    assert only_result(recorded).startswith(
        "Error: There is no tool named get_pages. There are: get_page, working_memory."
    )


@pytest.mark.parametrize("tools", [None, [HOST_TOOL, {"type": "custom", "custom": {"name": "x"}}, {"type": "odd"}]])
def test_a_call_that_may_belong_to_the_host_is_returned_to_it(session: Session, tools: list[Any] | None) -> None:
    session.prepare([user("Show me page 1.")], tools=tools)
    assert [call.name for call in session.record(chat(("1", "get_pages", {}))).host_calls] == ["get_pages"]


def test_a_host_with_an_empty_tool_list_gets_no_calls(session: Session) -> None:
    for number in range(2):
        session.prepare([user("Show me page 1.")], tools=())
        recorded = session.record(chat((f"{number}", "get_pages", {}), id=f"chatcmpl-00000000000000{number}"))
        assert (recorded.host_calls, "no tool named get_pages" in only_result(recorded)) == ((), True)
    assert [event.kind for event in session.events()].count("tools") == 1


def test_a_host_tool_with_the_name_of_a_memory_tool_belongs_to_the_host(memory: Memory) -> None:
    session = memory.session("own", memory_tools=False)
    mine = {"type": "function", "function": {"name": "memory_read", "parameters": {"type": "object"}}}
    assert prepare_prompt(session, tools=[mine]) is None
    assert [call.name for call in session.record(chat(("1", "memory_read", {}))).host_calls] == ["memory_read"]


@pytest.mark.spec("J3")
@pytest.mark.parametrize("reply", [None, 7, "text", {}, {"choices": []}, [], {"role": "user", "content": "hi"}])
def test_an_invalid_reply_is_rejected_and_nothing_is_stored(session: Session, reply: Any) -> None:
    before = session.state.seq
    with pytest.raises(InvalidInput):
        session.record(reply)
    assert session.state.seq == before


# -- memory tools ----------------------------------------------------------------------------------------------


@pytest.mark.spec("F2", "J3")
def test_a_misspelt_argument_is_reported_and_nothing_is_overwritten(session: Session) -> None:
    session.record(
        chat(("1", "memory_write", {"path": "detail/log.md", "text": "day 1"}), id="chatcmpl-1111111111111111")
    )
    wrong = {"path": "detail/log.md", "text": "day 2", "apend": True}
    answer = only_result(session.record(chat(("1", "memory_write", wrong))))
    assert answer == "Error: Nothing was changed. arguments: expected path, text, section, append, got 'apend'"
    assert session.read("detail/log.md") == "day 1"


@pytest.mark.spec("F2", "F53")
@pytest.mark.parametrize("path", ["../x.md", "/etc/passwd", "detail/../../x", "MEMORY.md", "messages.jsonl", ""])
def test_no_path_leaves_the_sessions_pages(session: Session, path: str) -> None:
    answer = only_result(session.record(chat(("1", "memory_write", {"path": path, "text": "x"}))))
    assert answer.startswith("Error: Nothing was changed. path: expected overview.md")


@pytest.mark.spec("F2")
def test_one_section_is_replaced_and_the_others_stay(session: Session) -> None:
    session.write("overview.md", "# Overview\n\n## Task\n\nold\n\n## Facts\n\nkept\n")
    session.prepare([user("hi")])
    section = {"path": "working-memory/overview.md", "section": "task", "text": "new"}
    session.record(chat(("1", "memory_write", section)))
    assert session.overview == "# Overview\n\n## Task\n\nnew\n\n## Facts\n\nkept\n"


@pytest.mark.spec("K17")
def test_a_page_that_changed_since_the_model_saw_it_is_not_overwritten(session: Session, memory: Memory) -> None:
    session.prepare([user("hi")])
    memory.session("support-42").write("overview.md", "# By another writer\n")
    mine = {"path": "overview.md", "text": "# Mine\n"}
    answer = only_result(session.record(chat(("1", "memory_write", mine))))
    assert "# By another writer" in answer
    assert session.overview == "# By another writer\n"
    session.record(chat(("2", "memory_write", mine), id="chatcmpl-fedcba9876543210"))
    assert session.overview == "# Mine\n"


def test_pages_are_listed_and_read_on_from_any_line(session: Session) -> None:
    session.write("detail/log.md", "\n".join(f"line {n}" for n in range(1, 1_001)))
    listing, first, last = session.record(
        chat(
            ("1", "memory_list", {}),
            ("2", "memory_read", {"path": "detail/log.md"}),
            ("3", "memory_read", {"path": "detail/log.md", "from_line": 990}),
        )
    ).results
    assert "detail/log.md (" in listing["content"]
    assert str(first["content"]).endswith("line 400\n[lines 1 to 400 of 1000; read on from_line 401]")
    assert str(last["content"]).startswith("line 990\n")


def test_the_answer_of_resolve_reference_is_not_a_new_sighting(session: Session) -> None:
    session.observe("create_page", {}, {"page": {"id": "page-1", "title": "Home"}})
    session.observe("find_customer", {}, {"customer": {"id": "c-9", "name": "Mei"}})
    before = session.entities
    answer = only_result(session.record(chat(("1", "resolve_reference", {"text": "that page"}))))
    assert answer.startswith('page-1, "Home"')
    assert session.entities == before


@pytest.mark.spec("C5")
@pytest.mark.parametrize("format", ["openai", "responses", "anthropic"])
def test_the_memory_tool_is_offered_in_the_providers_format(session: Session, format: str) -> None:
    prompt = session.prepare([user("hi")], tools=[host_tool(format)], format=format)
    assert prompt.tools is not None
    names = [tool.get("name") or tool["function"]["name"] for tool in prompt.tools]
    assert names == ["get_page", "working_memory"]


@pytest.mark.spec("C5")
def test_tools_are_offered_in_the_format_of_mcp(session: Session) -> None:
    tools = {tool["name"]: tool for tool in session.tools("mcp")}
    pages = ["memory_read", "memory_write", "memory_list", "compact_history"]
    more = ["resolve_reference", "working_memory_show", "working_memory_observe"]
    assert list(tools) == ["working_memory_update", "working_memory_note", "memory_search", *pages, *more]
    assert tools["memory_list"]["annotations"]["readOnlyHint"]
    assert tools["memory_write"]["inputSchema"]["required"] == ["path", "text"]
    with pytest.raises(InvalidInput):
        session.tools("carrier pigeon")


def test_tools_of_a_missing_layer_are_not_offered(memory: Memory) -> None:
    session = memory.session("pad-only", layers=[ScratchpadLayer(schema={"type": "object", "properties": {"a": {}}})])
    tool, read = session.tools("openai")
    assert (read["function"]["name"], read["function"]["description"]) == ("working_memory", "read PATH")
    assert set(tool["function"]["parameters"]["properties"]) == {"a", "delete"}
    silent = memory.session("silent", memory_tools=False)
    assert silent.prepare([user("hi")]).tools is None


def test_usage_in_a_reply_calibrates_the_counter_once(session: Session) -> None:
    prepare_prompt(session)
    session.record(chat(text="ok"))
    session.report_usage(prompt_tokens=500, cached_tokens=100, completion_tokens=8)
    token_usage = session.usage
    assert (
        token_usage.reported_calls,
        token_usage.reported_prompt,
        token_usage.reported_cached,
        token_usage.completion,
    ) == (
        1,
        500,
        100,
        8,
    )


def test_a_streamed_reply_is_recorded_from_its_chunks(session: Session) -> None:
    session.prepare([user("hi")])

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {
            "id": "chatcmpl-0123456789abcdef",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }

    start = {
        "index": 0,
        "id": "c1",
        "type": "function",
        "function": {"name": "working_memory_update", "arguments": '{"te'},
    }
    more = {"index": 0, "function": {"arguments": 'xt": "Mei"}'}}
    chunks = [
        chunk({"role": "assistant", "content": "One "}),
        chunk({"content": "moment."}),
        chunk({"tool_calls": [start]}),
        chunk({"tool_calls": [more]}),
        chunk({}, "tool_calls"),
    ]
    recorded = session.record(iter(chunks))
    assert (recorded.text, session.scratchpad.snapshot) == ("One moment.", "Mei")
    before = session.state.seq
    with pytest.raises(InvalidInput, match="chunks without an end"):
        session.record(iter(chunks[:3]))
    assert session.state.seq == before


def test_a_repeated_reply_updates_the_resources_scratchpad_once(memory: Memory) -> None:
    layers = default_layers(ScratchpadLayer(scope="resource"))
    session = memory.session("one", resource="ada", layers=layers)
    reply = chat(("1", "working_memory_update", {"text": "x", "append": True}))
    session.record(reply)
    session.record(reply)
    assert session.scratchpad.snapshot == "x"
    assert session.resource_state.scratchpads.by_name["working-memory"].state == "x"


@pytest.mark.spec("A4")
def test_an_undone_reply_can_be_recorded_again(session: Session) -> None:
    prepare_prompt(session)
    first = session.record(chat(*CALLS))
    session.undo()
    again = session.record(chat(*CALLS))
    assert (again.repeated, again.results) == (False, first.results)
    assert session.scratchpad.snapshot == "The customer is Mei."
    assert session.record(chat(*CALLS)).repeated


def test_a_reply_can_name_the_prompt_it_answers(session: Session) -> None:
    prepare_prompt(session)
    early = session.state.prompt.calls
    prepare_prompt(
        session, tools=[{"type": "function", "function": {"name": "other", "parameters": {"type": "object"}}}]
    )
    recorded = session.record(chat(("1", "get_page", {}), ("2", "other", {})), call=early)
    assert [call.name for call in recorded.host_calls] == ["get_page"]
    assert "There is no tool named other" in only_result(recorded)
    session.record(chat(text="late", id="chatcmpl-ffffffffffffffff"))
    assert (session.usage.reported_calls, session.usage.reported_prompt) == (2, 800)


def test_memory_tools_of_a_cut_off_reply_do_not_run(session: Session) -> None:
    reply = chat(*CALLS[:1])
    reply["choices"][0]["finish_reason"] = "length"
    recorded = session.record(reply)
    assert not recorded.complete
    assert "cut off" in only_result(recorded)
    assert session.scratchpad.snapshot == ""


def test_a_session_without_memory_tools_runs_none(memory: Memory) -> None:
    session = memory.session("silent", memory_tools=False)
    recorded = session.record(chat(("1", "memory_write", {"path": "detail/a.md", "text": "x"})))
    assert [call.name for call in recorded.host_calls] == ["memory_write"]
    assert "detail/a.md" not in session.documents()


def test_calls_on_a_resources_scratchpad_keep_their_order(memory: Memory) -> None:
    session = memory.session("one", resource="ada", layers=default_layers(ScratchpadLayer(scope="resource")))
    session.scratchpad.update("before")
    session.prepare([user("hi")])
    read = ("memory_read", {"path": "scratchpad"})
    update = ("2", "working_memory_update", {"text": "after"})
    answers = [result["content"] for result in session.record(chat(("1", *read), update, ("3", *read))).results]
    assert answers == ["before", "Written.", "after"]


def test_tools_added_by_messages_belong_to_the_host(session: Session) -> None:
    added: dict[str, Any] = {
        "type": "additional_tools",
        "tools": [{"type": "function", "name": "late", "parameters": {}}],
    }
    session.prepare([user("hi"), added], tools=[host_tool("responses")], format="responses")
    recorded = session.record(response(("1", "late", {})))
    assert [call.name for call in recorded.host_calls] == ["late"]


@pytest.mark.parametrize("from_line", [None, 0])
def test_a_page_is_read_from_its_beginning_by_default(session: Session, from_line: int | None) -> None:
    session.write("detail/a.md", "a\nb")
    read = {"path": "detail/a.md", "from_line": from_line}
    assert only_result(session.record(chat(("1", "memory_read", read)))) == "a\nb"


def test_a_page_that_was_shown_in_part_is_not_overwritten(session: Session, memory: Memory) -> None:
    memory.session("support-42").write("detail/a.md", "x" * 30_000)
    mine = {"path": "detail/a.md", "text": "mine"}
    for number in range(3):
        calls = (("1", "memory_write", mine), ("2", "memory_read", {"path": "detail/a.md"}))
        session.record(chat(*calls, id=f"chatcmpl-000000000000000{number}"))
    assert session.read("detail/a.md") == "x" * 30_000


def test_instructions_can_be_combined_with_a_developer_item(session: Session) -> None:
    developer = {"role": "developer", "content": "Be brief."}
    request = session.prepare([developer, user("hi")], system="You help.", format="responses").request
    assert request["instructions"] == "You help."
    assert developer in request["input"]


def test_the_same_text_with_another_short_id_is_another_reply(session: Session) -> None:
    session.prepare([user("ok?")])
    session.record(chat(text="ok", id="chatcmpl-0"))
    session.prepare([user("ok?"), assistant("ok"), user("sure?")])
    assert not session.record(chat(text="ok", id="chatcmpl-0")).repeated
    assert len(session.state.conversation) == 4


@pytest.mark.spec("A1")
def test_changes_of_a_tool_name_the_message_with_the_call(session: Session) -> None:
    prepare_prompt(session)
    session.record(chat(*CALLS))
    events = session.events()
    message = next(event for event in events if event.origin.value == "assistant" and event.kind == "message")
    assert next(event for event in events if event.kind == "pad_written").sources == (message.id,)


def test_a_list_without_reasoning_is_sent_as_it_is(session: Session) -> None:
    session.prepare([user("hi")])
    reply = chat(text="Hello.")
    reply["choices"][0]["message"]["reasoning_content"] = "They greet me."
    session.record(reply)
    sent = session.prepare([user("hi"), assistant("Hello."), user("well?")]).messages
    assert sent[1] == assistant("Hello.")


class RacingStore(InMemoryStore):
    """A store in which another writer commits once, before the next append to two streams."""

    def __init__(self) -> None:
        super().__init__()
        self.before: list[Callable[[], object]] = []

    def append(self, batch: Batch, *, companion: Batch | None = None, **options: Any) -> AppendResult:
        if companion is not None and self.before:
            self.before.pop()()
        return super().append(batch, companion=companion, **options)


LINES = [(str(n), "working_memory_update", {"text": f"line {n}", "append": True}) for n in (1, 2)]


@pytest.mark.embedded
@pytest.mark.spec("A3", "C1")
def test_a_reply_and_its_changes_of_the_resource_are_atomic(home: Path) -> None:
    store = RacingStore()
    with Memory(FolderBackend(home, store)) as memory:
        session = memory.session("one", resource="ada", layers=shared_pad_layers())
        events = len(session.events())
        store.before = [lambda: _raise(StorageFull(place="the disk"))]
        with pytest.raises(StorageFull):
            session.record(chat(*LINES))
        assert (len(session.events()), session.scratchpad.snapshot, store.before) == (events, "", [])
        assert [result["content"] for result in session.record(chat(*LINES)).results] == ["Added.", "Added."]
        assert session.scratchpad.snapshot == "line 1\nline 2"


@pytest.mark.embedded
@pytest.mark.spec("A3", "C1", "K17")
def test_a_reply_runs_on_the_newest_state_of_the_resource(home: Path) -> None:
    store = RacingStore()
    with Memory(FolderBackend(home, store)) as memory:
        session = memory.session("one", resource="ada", layers=shared_pad_layers())
        other = memory.session("other", resource="ada", layers=shared_pad_layers())
        store.before = [lambda: other.scratchpad.update("theirs", append=True)]
        session.record(chat(*LINES))
        assert store.before == []
        assert session.scratchpad.snapshot == other.scratchpad.snapshot == "theirs\nline 1\nline 2"


@pytest.mark.embedded
@pytest.mark.spec("A3", "C8")
def test_a_failed_merge_changes_nothing_and_the_next_reports_everything(
    home: Path,
) -> None:
    store = RacingStore()
    with Memory(FolderBackend(home, store)) as memory:
        parent = memory.session("one", resource="ada", layers=shared_pad_layers(schema={"type": "object"}))
        parent.scratchpad.update({"goal": "begun", "step": 1})
        child = parent.spawn()
        child.scratchpad.update({"goal": "child's", "step": 2})
        store.before = [lambda: _raise(StorageFull(place="the disk"))]
        with pytest.raises(StorageFull):
            parent.merge_back(child)
        store.before = [lambda: parent.scratchpad.update({"goal": "parent's"})]
        report = parent.merge_back(child)
        assert (report.taken, [clash.path for clash in report.conflicts]) == (("step",), ["goal"])
        assert parent.scratchpad.snapshot == {"goal": "parent's", "step": 2}


class FailingLayer(TextLayer):
    """A layer that fails to store as long as `fails` is set."""

    fails = True

    def store(self, context: LayerContext, reply: Mapping[str, Any]) -> list[Draft]:  # noqa: ARG002 -- the protocol's
        return _raise(RuntimeError("no")) if self.fails else []


@pytest.mark.spec("D1", "A3")
def test_a_layer_that_raises_leaves_the_resources_scratchpad_unchanged(memory: Memory) -> None:
    layer = FailingLayer("rules", "none")
    session = memory.session("one", resource="ada", layers=[*shared_pad_layers(), layer])
    with pytest.raises(InmindError):
        session.record(chat(*LINES))
    assert session.scratchpad.snapshot == ""
    layer.fails = False
    session.record(chat(*LINES))
    assert session.scratchpad.snapshot == "line 1\nline 2"


@pytest.mark.spec("A4", "C1")
@pytest.mark.parametrize("append", [True, False])
def test_an_undone_reply_changes_the_resource_only_once(memory: Memory, append: bool) -> None:
    """An undo does not change the resource."""
    session = memory.session("one", resource="ada", layers=shared_pad_layers())
    session.scratchpad.update("begun")
    session.prepare([user("hi")])
    reply = chat(("1", "working_memory_update", {"text": "more", "append": append}))
    first = session.record(reply)
    for _ in range(2):
        session.undo()
        again = session.record(reply)
        assert (again.repeated, again.results) == (False, first.results)
    assert session.scratchpad.snapshot == ("begun\nmore" if append else "more")


def shared_pad_layers(**options: Any) -> tuple[Layer, ...]:
    return default_layers(ScratchpadLayer(scope="resource", **options))


def _raise(error: Exception) -> NoReturn:
    raise error


@pytest.mark.spec("K17", "C1")
def test_text_of_another_writer_is_not_overwritten_after_an_own_change(memory: Memory) -> None:
    """The confirmation of a change does not show other writers' changes."""
    one, other = (
        memory.session(id, resource="ada", layers=shared_pad_layers(schema={"type": "object"})) for id in "ab"
    )
    one.scratchpad.update({"a": 1, "b": 1})
    one.prepare([user("hi")])
    other.scratchpad.update({"b": 2})
    one.record(chat(("1", "working_memory_update", {"a": 5}), id="chatcmpl-000000000000001"))
    recorded = one.record(chat(("2", "working_memory_update", {"b": 7}), id="chatcmpl-000000000000002"))
    assert "b is now 2" in only_result(recorded)
    assert one.scratchpad.snapshot == {"a": 5, "b": 2}
    one.prepare([user("hi")])
    one.record(chat(("3", "working_memory_update", {"b": 7}), id="chatcmpl-000000000000003"))
    assert one.scratchpad.snapshot == {"a": 5, "b": 7}


@pytest.mark.spec("K17")
def test_a_model_may_write_the_same_twice_in_one_reply(session: Session) -> None:
    session.scratchpad.update("zero")
    session.prepare([user("hi")])
    session.record(
        chat(
            ("1", "working_memory_update", {"text": "one"}),
            ("2", "working_memory_update", {"text": "two"}),
            ("3", "memory_write", {"path": "detail/a.md", "text": "one"}),
            ("4", "memory_write", {"path": "detail/a.md", "text": "two"}),
        )
    )
    assert (session.scratchpad.snapshot, session.read("detail/a.md")) == ("two", "two")


@pytest.mark.spec("K17")
def test_a_page_that_the_model_was_never_shown_is_not_overwritten(memory: Memory) -> None:
    memory.session("one").write("detail/a.md", "before")
    session = memory.session("one")
    session.prepare([user("hi")])
    mine = {"path": "detail/a.md", "text": "mine"}
    assert "before" in only_result(session.record(chat(("1", "memory_write", mine))))
    assert session.read("detail/a.md") == "before"
    session.record(chat(("2", "memory_write", mine), id="chatcmpl-000000000000002"))
    assert session.read("detail/a.md") == "mine"


@pytest.mark.spec("K17", "D3")
def test_a_page_shown_only_in_part_in_the_prompt_is_not_overwritten(memory: Memory) -> None:
    session = memory.session("one", window=4_000, reserve=500)
    text = "\n\n".join(f"## Section {n}\n\n{'word ' * 100}" for n in range(40))
    session.write("overview.md", text)
    assert "Section 39" not in str(session.prepare([user("hi")]).messages)
    session.record(chat(("1", "memory_write", {"path": "overview.md", "text": "mine"})))
    assert session.overview == text


@pytest.mark.spec("D1")
def test_a_tool_offered_by_a_host_layer_is_run_by_the_host(memory: Memory) -> None:
    class ToolLayer(TextLayer):
        def tools(self, format: str) -> list[dict[str, Any]]:  # noqa: ARG002 -- the protocol's
            return [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]

    session = memory.session("one", layers=[*default_layers(), ToolLayer("rules", "none")])
    session.prepare([user("hi")], tools=[HOST_TOOL])
    recorded = session.record(chat(("1", "look_up", {}), ("2", "look_down", {})))
    assert [call.name for call in recorded.host_calls] == ["look_up"]
    assert "no tool named look_down" in only_result(recorded)


@pytest.mark.spec("C8", "C4")
def test_a_child_with_a_view_can_read_a_page_that_was_cut(memory: Memory) -> None:
    parent = memory.session("one", layers=[ScratchpadLayer()])
    parent.scratchpad.update("the parent's")
    child = parent.spawn(policy="view")
    child.prepare([user("hi")])
    assert only_result(child.record(chat(("1", "memory_read", {"path": "scratchpad"})))) == "the parent's"


@pytest.mark.spec("A6")
def test_the_same_text_after_another_question_is_another_reply_without_a_prompt(session: Session) -> None:
    session.add([user("a")])
    session.record(assistant("ok"))
    session.add([user("b")])
    assert not session.record(assistant("ok")).repeated
    assert session.record(assistant("ok")).repeated
    assert [entry.wire["content"] for entry in session.state.conversation] == ["a", "ok", "b", "ok"]


@pytest.mark.spec("A6", "C1")
@pytest.mark.parametrize("key", [None, "turn-1"])
def test_the_same_reply_runs_in_two_sessions_of_a_resource(memory: Memory, key: str | None) -> None:
    layers = default_layers(ScratchpadLayer(scope="resource"))
    one, other = (memory.session(id, resource="ada", layers=layers) for id in ("one", "other"))
    reply = chat(("1", "working_memory_update", {"text": "x", "append": True}))
    one.record(reply, key=key)
    assert not other.record(reply, key=key).repeated
    assert one.scratchpad.snapshot == "x\nx"


@pytest.mark.parametrize("append", [True, "true"])
def test_append_may_be_the_text_true(session: Session, append: Any) -> None:
    session.scratchpad.update("one")
    session.write("detail/a.md", "one")
    session.record(
        chat(
            ("1", "working_memory_update", {"text": "two", "append": append}),
            ("2", "memory_write", {"path": "detail/a.md", "text": "two", "append": append}),
        )
    )
    assert (session.scratchpad.snapshot, session.read("detail/a.md")) == ("one\ntwo", "one\ntwo")
    recorded = session.record(chat(("3", "working_memory_update", {"text": "three", "append": 1}), id="chatcmpl-3"))
    assert "append: expected true or false" in only_result(recorded)


def test_a_memory_result_stays_between_two_edits(session: Session) -> None:
    session.prepare([user("a")])
    answers = session.record(chat(*CALLS[:1])).results
    reply = session.state.conversation.wires[1]
    session.prepare([user("A"), reply, *answers, user("b")])
    assert [entry.is_memory_reply for entry in session.state.conversation] == [False, False, True, False]


# -- content seen by the model -----------------------------------------------------------------------------


def two_sessions(memory: Memory) -> tuple[Session, Session]:
    one, other = (
        memory.session(id, resource="ada", layers=shared_pad_layers(schema={"type": "object"})) for id in "ab"
    )
    one.scratchpad.update({"goal": "old", "n": 1})
    return one, other


def update_reply(values: dict[str, Any], id: int = 1) -> dict[str, Any]:
    return chat((f"{id}", "working_memory_update", values), id=f"chatcmpl-00000000000000{id}")


@pytest.mark.spec("K17")
def test_the_text_of_a_refusal_is_not_known_to_the_next_call(memory: Memory) -> None:
    """The model wrote both calls before it saw any answer."""
    one, other = two_sessions(memory)
    one.write("detail/x.md", "precious")
    one.prepare([user("hi")])
    other.scratchpad.update({"goal": "theirs"})
    mine = {"path": "detail/x.md", "text": "mine"}
    recorded = one.record(
        chat(
            ("1", "working_memory_update", {"goal": "mine"}),
            ("2", "working_memory_update", {"goal": "mine"}),
            ("3", "memory_write", mine),
            ("4", "memory_read", {"path": "detail/x.md"}),
            ("5", "memory_write", mine),
        )
    )
    assert ["Nothing was" in str(result["content"]) for result in recorded.results] == [True, True, True, False, True]
    assert (one.scratchpad.snapshot, one.read("detail/x.md")) == ({"goal": "theirs", "n": 1}, "precious")
    one.record(chat(("6", "memory_write", mine), id="chatcmpl-000000000000006"))
    assert one.read("detail/x.md") == "mine"


@pytest.mark.spec("K17")
def test_a_refusal_counts_as_seen_only_for_the_text_in_it(memory: Memory) -> None:
    one, other = two_sessions(memory)
    one.prepare([user("hi")])
    other.scratchpad.update({"goal": "theirs", "n": 99})
    one.record(update_reply({"goal": "mine"}, 1))
    assert "n is now 99" in only_result(one.record(update_reply({"n": 7}, 2)))
    assert one.scratchpad.snapshot == {"goal": "theirs", "n": 99}


@pytest.mark.spec("K17")
def test_an_unseen_value_is_not_replaced_by_an_object(memory: Memory) -> None:
    one, other = two_sessions(memory)
    one.prepare([user("hi")])
    other.scratchpad.update({"owner": "Team B"})
    assert "owner is now" in only_result(one.record(update_reply({"owner": {"name": "x"}})))
    one.prepare([user("hi")])
    other.scratchpad.update({"n": 2})
    assert "n is now 2" in only_result(one.record(update_reply({"delete": ["n"]}, 2)))


@pytest.mark.spec("K17", "A5")
def test_any_process_reads_from_the_journal_what_the_model_has_seen(memory: Memory) -> None:
    layers = shared_pad_layers(schema={"type": "object"})

    def reopen() -> Session:
        return memory.session("a", resource="ada", layers=layers)

    _, other = two_sessions(memory)
    reopen().write("detail/x.md", "precious")
    reopen().prepare([user("hi")])
    other.scratchpad.update({"goal": "theirs"})
    assert "goal is now" in only_result(reopen().record(update_reply({"goal": "mine"}, 1)))
    page = {"path": "overview.md", "text": "# Mine"}
    assert only_result(reopen().record(chat(("2", "memory_write", page), id="chatcmpl-000000000000002"))) == (
        "overview.md: 6 bytes."
    )
    read = ("3", "memory_read", {"path": "detail/x.md"})
    reopen().record(chat(read, id="chatcmpl-000000000000003"))
    write = ("4", "memory_write", {"path": "detail/x.md", "text": "mine"})
    reopen().record(chat(write, id="chatcmpl-000000000000004"))
    assert reopen().read("detail/x.md") == "mine"


@pytest.mark.spec("K17")
def test_a_reply_is_checked_against_its_prompt(memory: Memory) -> None:
    one, other = two_sessions(memory)
    first = one.prepare([user("hi")])
    other.scratchpad.update({"goal": "theirs"})
    one.prepare([user("hi"), assistant("hm"), user("well?")])
    assert "goal is now" in only_result(one.record(update_reply({"goal": "mine"}), call=first.call))
    assert one.scratchpad.snapshot == {"goal": "theirs", "n": 1}


@pytest.mark.spec("K17", "A4")
def test_an_undo_does_not_count_as_seen(memory: Memory) -> None:
    one, other = two_sessions(memory)
    one.write("detail/x.md", "to take back")
    one.prepare([user("hi")])
    one.add([user("and this")])
    other.scratchpad.update({"goal": "theirs"})
    one.undo()
    assert "goal is now" in only_result(one.record(update_reply({"goal": "mine"})))


@pytest.mark.spec("K17", "C4")
def test_a_scratchpad_text_shown_only_in_part_is_not_overwritten(session: Session) -> None:
    lines = "\n".join(f"fact {n}" for n in range(2_000))
    session.scratchpad.update(lines)
    assert "fact 1999" not in str(session.prepare([user("hi")]).messages)
    write = {"text": "fact 0 only"}
    assert "not seen all" in only_result(session.record(update_reply(write, 1)))
    assert session.scratchpad.snapshot == lines
    more = {"text": "one more", "append": True}
    assert only_result(session.record(update_reply(more, 2))) == "Added."


@pytest.mark.spec("A4", "A6")
def test_a_reply_restored_by_undoing_an_undo_does_not_run_again(session: Session) -> None:
    session.prepare([user("hi")])
    reply = update_reply({"text": "line", "append": True})
    session.record(reply)
    recorded_at = session.state.seq
    session.undo()
    session.undo(to=recorded_at)
    assert session.scratchpad.snapshot == "line"
    assert session.record(reply).repeated
    assert session.scratchpad.snapshot == "line"


@pytest.mark.spec("A4")
def test_undo_cannot_stop_in_the_middle_of_a_change(session: Session) -> None:
    session.prepare([user("hi")])
    before = session.state.seq
    session.record(update_reply({"text": "line"}))
    with pytest.raises(InvalidInput) as error:
        session.undo(to=before + 1)
    assert (error.value.field, str(before) in str(error.value)) == ("to", True)
    assert session.scratchpad.snapshot == "line"


@pytest.mark.spec("J5")
def test_appended_text_has_the_lower_trust(session: Session) -> None:
    session.write("detail/web.md", "from the web", origin=Origin.WEB)
    write = {"path": "detail/web.md", "text": "more", "append": True}
    session.record(chat(("1", "memory_write", write)))
    page = session.state.documents.by_path["detail/web.md"]
    assert (page.text, page.trust) == ("from the web\nmore", Trust.DATA)


@pytest.mark.spec("K17", "A4")
def test_recording_an_undone_reply_again_does_not_affect_the_next(memory: Memory) -> None:
    """The resource is not changed again, so there is no new event to see."""
    one, other = (memory.session(id, resource="ada", layers=shared_pad_layers()) for id in "ab")
    one.prepare([user("hi")])
    first = update_reply({"text": "one's"}, 1)
    one.record(first)
    one.undo()
    one.record(first)
    other.scratchpad.update("the other's", append=True)
    assert "not seen all" in only_result(one.record(update_reply({"text": "one's again"}, 2)))
    one.prepare([user("hi")])
    one.record(update_reply({"text": "of both"}, 3))
    assert other.scratchpad.snapshot == "of both"


@pytest.mark.spec("K17", "D3")
def test_a_page_that_is_cut_in_the_last_prompt_is_not_known(memory: Memory) -> None:
    text = "\n\n".join(f"## Section {n}\n\n{'word ' * 20}" for n in range(40))
    session = memory.session("one", window=12_000, reserve=500)
    session.write("overview.md", text)
    assert "Section 39" in str(session.prepare([user("hi")]).messages)
    session = memory.session("one", window=2_600, reserve=500)
    prompt = session.prepare([user("hi"), assistant("hm"), user("word " * 900)])
    assert "Section 39" not in str(prompt.messages)
    write = {"path": "overview.md", "text": "mine"}
    session.record(chat(("1", "memory_write", write)), call=prompt.call)
    assert session.overview == text
    session.record(chat(("2", "memory_read", {"path": "overview.md"}), id="chatcmpl-000000000000002"))
    session.record(chat(("3", "memory_write", write), id="chatcmpl-000000000000003"))
    assert session.overview == "mine"


@pytest.mark.spec("K17", "D1")
def test_naming_a_page_as_source_does_not_show_it(memory: Memory) -> None:
    class SourceLayer(TextLayer):
        def recall(self, context: LayerContext) -> LayerText:
            return LayerText("There is a plan.", sources=(context.documents["detail/plan.md"].source,))

    session = memory.session("one", layers=[*default_layers(), SourceLayer("rules", "none")])
    session.write("detail/plan.md", "the plan")
    session.prepare([user("hi")])
    session.record(chat(("1", "memory_write", {"path": "detail/plan.md", "text": "gone"})))
    assert session.read("detail/plan.md") == "the plan"


@pytest.mark.spec("K17")
def test_a_late_reply_overwrites_nothing(memory: Memory) -> None:
    session = memory.session("one", layers=default_layers(ScratchpadLayer()))
    session.scratchpad.update("begun")
    first = session.prepare([user("hi")])
    second = session.prepare([user("hi"), assistant("hm"), user("well?")])
    session.record(update_reply({"text": "by the second"}, 1), call=second.call)
    assert "not seen all" in only_result(session.record(update_reply({"text": "by the first"}, 2), call=first.call))
    session.record(update_reply({"text": "by the second again"}, 3), call=None)
    assert session.scratchpad.snapshot == "by the second again"


@pytest.mark.spec("K17", "A4")
def test_undone_changes_do_not_count_as_unseen(memory: Memory) -> None:
    session = memory.session("one", layers=default_layers(ScratchpadLayer(schema={"type": "object"})))
    session.scratchpad.update({"goal": "old", "n": 1})
    session.prepare([user("hi")])
    session.record(update_reply({"goal": "X"}, 1))
    session.undo()
    session.scratchpad.update({"n": 2})
    assert only_result(session.record(update_reply({"goal": "Y"}, 2))) == "Updated: goal."


@pytest.mark.spec("F2", "E3")
@pytest.mark.parametrize("two", [2, "2", 2.0])
def test_numbers_and_booleans_may_be_text(session: Session, two: object) -> None:
    session.write("detail/a.md", "one\ntwo\nthree")
    history = [message for n in range(6) for message in (user(f"Step {n}."), assistant("ok " * 90))]
    session.prepare([*history, user("And now?")])
    read = {"path": "detail/a.md", "from_line": two, "to_line": two}
    recorded = session.record(
        chat(
            ("1", "memory_read", read),
            ("2", "memory_list", {"from_line": two}),
            ("3", "memory_write", {"path": "detail/a.md", "text": "four", "append": "true"}),
            ("4", "compact_history", {"target": "conversation", "keep_recent": two}),
        )
    )
    page, listing, _, compacted = (str(result["content"]) for result in recorded.results)
    assert page.startswith("two\n[lines 2 to 2 of 3")
    assert listing.startswith("detail/a.md (13 bytes)")
    assert compacted.startswith("Compacted 8 messages, ")
    assert session.read("detail/a.md") == "one\ntwo\nthree\nfour"


@pytest.mark.spec("F2", "J3")
@pytest.mark.parametrize("number", ["two", "1.5", True, [2], "-1", "9" * 5_000])
def test_an_invalid_number_is_reported_to_the_model(session: Session, number: object) -> None:
    session.write("detail/a.md", "one\ntwo\nthree")
    session.prepare([user("hi")])
    read, compact = {"path": "detail/a.md", "from_line": number}, {"target": "all", "keep_recent": number}
    results = session.record(chat(("1", "memory_read", read), ("2", "compact_history", compact))).results
    assert "from_line: expected a line number" in str(results[0]["content"])
    assert "keep_recent: expected a whole number" in str(results[1]["content"])
