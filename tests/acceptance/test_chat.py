"""A chat with a scripted endpoint: no message is lost, however an answer ends."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Generator, Iterator
from threading import Event
from typing import Any

import pytest
from builders import Home, home_of
from chat_terminal import messages_of
from model_server import HttpReply, model_server
from provider import Provider, ScriptedFailure, ScriptedReply, a_tool_call, chunks, reply_with
from provider_rules import faults

from inmind import Memory, Session
from inmind.apps.chat.conversation import CUT_MARK, MAX_ROUNDS, STOPPED_MARK, ChatConversation
from inmind.apps.chat.endpoint import explain_error
from inmind.apps.chat.terminal import ChatOutput, ChatToolUse, status_line
from inmind.apps.signals import InterruptHandler
from inmind.core.http import HttpEndpoint
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Text
from inmind.core.settings import ModelSettings
from inmind.errors import ModelFailed, NotFound

pytestmark = pytest.mark.spec("I2")

KEY = "sk-very-secret"
TIMEOUT_SECONDS = 20.0
NOTED = "order-123 is late"
NOTE = a_tool_call("working_memory_note", {"note": NOTED})
STORY = "Once upon a time there was a page without a name, and so no reader could find it again for years."


class RecordingOutput(ChatOutput):
    """An output that records what it would print and can react to it."""

    def __init__(self) -> None:
        super().__init__(interactive=False)
        self.text, self.thoughts, self.calls = "", "", list[ChatToolUse]()
        self.on_text: Callable[[str], None] = lambda _: None
        self.on_tool: Callable[[str], None] = lambda _: None

    def show_piece(self, text: str, reasoning: str = "") -> None:
        self.text += text
        self.thoughts += reasoning
        self.on_text(self.text)

    def end_answer(self) -> None:
        self.on_text(self.text)

    def show_tool_use(self, use: ChatToolUse) -> None:
        self.calls.append(use)
        self.on_tool(use.name)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture
def memory(home: Home) -> Generator[Memory]:
    with Memory.open(home, embedder=None) as memory:
        yield memory


@pytest.fixture(params=["openai", "anthropic"])
def api(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def recorder() -> RecordingOutput:
    return RecordingOutput()


@pytest.fixture
def interruptions() -> Iterator[InterruptHandler]:
    interruptions = InterruptHandler()
    with interruptions.install():
        yield interruptions


Make = Callable[..., ChatConversation]


@pytest.fixture
def make(memory: Memory, recorder: RecordingOutput, interruptions: InterruptHandler) -> Make:
    def conversation(
        url: str,
        api: str = "openai",
        *,
        id: str = "talk",
        timeout_seconds: float = TIMEOUT_SECONDS,
        window: int = 128_000,
        tools: bool = True,
    ) -> ChatConversation:
        endpoint = ModelSettings(
            provider=api, url=url, name="model-1", key_env="SOME_KEY", window=128_000, seconds=timeout_seconds
        )
        return ChatConversation(
            lambda: memory.session(id, resource="ada", window=window, memory_tools=tools),
            endpoint,
            HttpEndpoint(url=url, key=KEY, retry_delays=()),
            recorder,
            interruptions,
        )

    return conversation


@pytest.fixture
def chat(make: Make, provider: Provider, api: str) -> ChatConversation:
    return make(provider.openai if api == "openai" else provider.anthropic, api)


def tool_results(session: Session) -> str:
    messages = [FORMATS[entry.format].read(entry.wire) for entry in session.state.conversation]
    results = [result for message in messages for result in message.results]
    return "\n".join(part.text for result in results for part in result.parts if isinstance(part, Text))


def unanswered(session: Session) -> set[str]:
    messages = [FORMATS[entry.format].read(entry.wire) for entry in session.state.conversation]
    called = {call.id for message in messages for call in message.calls}
    return called - {result.id for message in messages for result in message.results}


# -- success -----------------------------------------------------------------------------------------------


def test_an_answer_is_streamed_and_stored_whole(
    chat: ChatConversation, provider: Provider, recorder: RecordingOutput
) -> None:
    texts: list[str] = []
    recorder.on_text = texts.append
    provider.will(reply_with(STORY, thinking="A story, then."))
    turn = chat.say("Tell me a story.")
    assert (turn.text, recorder.text, recorder.thoughts) == (STORY, STORY, "A story, then.")
    assert len(set(texts)) > 10
    assert messages_of(chat.session) == [("user", "Tell me a story."), ("assistant", STORY)]
    assert turn.end_reason == ""


def test_the_model_takes_notes(chat: ChatConversation, provider: Provider, recorder: RecordingOutput) -> None:
    provider.will(reply_with("Let me note it.", NOTE), reply_with("It is late."))
    turn = chat.say("Where is my order?")
    assert [use.error for use in recorder.calls] == [False]
    assert turn.tools == tuple(recorder.calls)
    assert NOTED in chat.session.read("memory/scratch.md")
    assert tool_results(chat.session) in json.dumps(provider.requests[1].body, ensure_ascii=False)
    assert turn.text == "Let me note it.\nIt is late."


def test_reported_usage_is_in_the_turn_and_the_status_line(chat: ChatConversation, provider: Provider) -> None:
    provider.will(reply_with("", NOTE), reply_with("One file."))
    turn = chat.say("What is there?")
    rendered = status_line(turn, ["notes.md"], (3.0, 15.0))
    assert rendered == "in mind: notes.md · normal, 0% full · 220 tokens, 80% from cache · $0.0005"


def test_invalid_json_arguments_get_an_error_and_the_model_continues(
    chat: ChatConversation, provider: Provider, recorder: RecordingOutput
) -> None:
    provider.will(reply_with("", a_tool_call("working_memory_note", '{"note": late}')), reply_with("I see."))
    assert chat.say("Read it.").text == "I see."
    assert [use.error for use in recorder.calls] == [True]
    assert unanswered(chat.session) == set()


@pytest.mark.parametrize("tools", [True, False])
def test_an_unknown_tool_gets_an_error_and_the_model_continues(
    make: Make, provider: Provider, api: str, tools: bool
) -> None:
    provider.will(
        reply_with("", a_tool_call("run_shell", {"command": "ls"}), a_tool_call("list_files")), reply_with("I see.")
    )
    talk = make(provider.openai if api == "openai" else provider.anthropic, api, tools=tools)
    turn = talk.say("Look around.")
    assert turn.text == "I see."
    assert [used.name for used in turn.tools] == ["run_shell", "list_files"]
    assert all(used.error and used.result for used in turn.tools)
    assert unanswered(talk.session) == set()


def test_a_server_without_stream_options_is_called_without_them(make: Make) -> None:
    with model_server() as server:
        refusal = {"error": {"message": "unknown parameter: stream_options"}}
        server.will(HttpReply(json.dumps(refusal), 400), stream_reply("openai", reply_with("Hello.")))
        assert make(server.url).say("Hello").text == "Hello."
        assert ["stream_options" in request.body for request in server.requests] == [True, False]


def test_a_model_that_keeps_calling_tools_is_stopped(make: Make, provider: Provider) -> None:
    provider.will(*[reply_with("", NOTE)] * MAX_ROUNDS, reply_with("Four."))
    talk = make(provider.openai)
    turn = talk.say("Look around.")
    assert str(MAX_ROUNDS) in turn.end_reason
    assert provider.unused == 1
    assert talk.say("What is two and two?").text == "Four."
    assert unanswered(talk.session) == set()


@pytest.mark.spec("E5")
def test_a_full_window_is_compacted_with_a_notice(make: Make, provider: Provider) -> None:
    provider.will(*[reply_with("Many lines.")] * 6)
    talk = make(provider.openai, window=8_000)
    notices = [notice for _ in range(6) for notice in talk.say("one of many lines\n" * 300).notices]
    assert any("archive/" in notice for notice in notices), notices


def test_a_server_that_truncates_the_prompt_causes_one_notice(chat: ChatConversation, provider: Provider) -> None:
    provider.will(reply_with("Hello."), reply_with("Many words."), reply_with("Still many."))
    assert chat.say("Hello").notices == ()
    [notice] = chat.say("word " * 6_000).notices
    assert notice.startswith("The model read 100 of about ")
    assert all(way in notice for way in ("--window", "config.toml", "OLLAMA_CONTEXT_LENGTH"))
    assert chat.say("And now?").notices == ()


# -- failures ----------------------------------------------------------------------------------------------


@pytest.mark.spec("N65", "J1")
def test_a_broken_stream_keeps_the_text_so_far_and_can_be_retried(
    chat: ChatConversation, provider: Provider, recorder: RecordingOutput
) -> None:
    provider.will(reply_with(STORY, torn=True))
    with pytest.raises(ModelFailed, match="broke off"):
        chat.say("Tell me a story.")
    partial = recorder.text
    assert partial
    assert STORY.startswith(partial)
    assert partial != STORY
    assert messages_of(chat.session) == [("user", "Tell me a story."), ("assistant", f"{partial}\n{CUT_MARK}")]
    provider.will(reply_with(STORY))
    assert chat.retry().text == STORY
    assert messages_of(chat.session) == [("user", "Tell me a story."), ("assistant", STORY)]
    assert CUT_MARK not in json.dumps(provider.requests[-1].body)


@pytest.mark.spec("N65")
def test_a_stream_cut_anywhere_leaves_no_call_open_or_half_done(make: Make, api: str) -> None:
    page = {"path": "detail/new.md", "text": "all of it or nothing"}
    reply = reply_with("I write it, and keep it in mind.", a_tool_call("memory_write", page), NOTE)
    whole = stream(api, reply)
    end = whole.index(REPLY_END[api])
    cuts = range(0, end, 1 + end // 15)
    with model_server() as server:
        url = server.url if api == "openai" else server.url.removesuffix("/v1")
        for cut in cuts:
            talk = make(url, api, id=f"cut-{cut}")
            server.will(HttpReply(whole[:cut], 200, EVENTS, promised=9), stream_reply(api, reply_with("As you like.")))
            with pytest.raises(ModelFailed):
                talk.say("Write new.md.")
            assert unanswered(talk.session) == set()
            assert "detail/new.md" not in talk.session.documents()
            assert talk.say("Never mind.").text == "As you like."
            sent = server.requests[-1].body["messages"]
            assert faults(api, sent) == []
            texts = [text for role, text in messages_of(talk.session) if role == "assistant"]
            assert all(reply.text.startswith(text.removesuffix(CUT_MARK).rstrip("\n")) for text in texts[:-1])


def test_a_connection_lost_after_the_end_of_a_reply_loses_nothing(make: Make, api: str) -> None:
    reply = reply_with("", NOTE)
    whole = stream(api, reply)
    until = whole.index(b"\n\n", whole.index(REPLY_END[api])) + 2
    with model_server() as server:
        server.will(HttpReply(whole[:until], 200, EVENTS, promised=9), stream_reply(api, reply_with("It is there.")))
        talk = make(server.url if api == "openai" else server.url.removesuffix("/v1"), api)
        assert talk.say("Note it.").text == "It is there."
    assert NOTED in talk.session.read("memory/scratch.md")


@pytest.mark.spec("N65")
def test_an_endpoint_that_dies_between_two_rounds_keeps_tool_results(
    make: Make, recorder: RecordingOutput, api: str, provider: Provider
) -> None:
    dying = Provider()
    dying.will(reply_with("Let me see.", NOTE))
    talk = make(dying.openai if api == "openai" else dying.anthropic, api)
    recorder.on_tool = lambda _: dying.close()
    with pytest.raises(ModelFailed, match="cannot be reached"):
        talk.say("Where is my order?")
    assert [role for role, _ in messages_of(talk.session)] == ["user", "assistant", "tool"]
    recorder.on_tool = lambda _: None
    provider.will(reply_with("It is late."))
    revived = make(provider.openai if api == "openai" else provider.anthropic, api)
    assert revived.retry().text == "It is late."
    assert [role for role, _ in messages_of(revived.session)] == ["user", "assistant", "tool", "assistant"]


def test_a_silent_server_times_out(make: Make, provider: Provider) -> None:
    gate = Event()
    provider.will(reply_with("One moment", gate=gate))
    talk = make(provider.openai, timeout_seconds=0.3)
    try:
        with pytest.raises(ModelFailed, match=r"sent nothing for 0\.3 s"):
            talk.say("Hello?")
    finally:
        gate.set()
    assert messages_of(talk.session)[-1] == ("assistant", f"One moment\n{CUT_MARK}")


def test_an_error_in_the_stream_is_reported_without_the_key(make: Make, api: str) -> None:
    beginning = stream(api, reply_with("Half of it", short=True), ended=False)
    failure = {"type": "error", "error": {"type": "overloaded_error", "message": f"Overloaded for {KEY}"}}
    with model_server() as server:
        server.will(HttpReply(beginning + f"event: error\ndata: {json.dumps(failure)}\n\n".encode(), 200, EVENTS))
        talk = make(server.url if api == "openai" else server.url.removesuffix("/v1"), api)
        with pytest.raises(ModelFailed, match="Overloaded") as failed:
            talk.say("Hello")
    assert KEY not in str(failed.value)
    assert messages_of(talk.session)[-1] == ("assistant", f"Half of it\n{CUT_MARK}")


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "Set a valid key in SOME_KEY"),
        (403, "Set a valid key in SOME_KEY"),
        (404, "'model-1'"),
        (429, "slow down"),
        (500, "slow down"),
        (529, "slow down"),
    ],
)
def test_an_error_status_explains_what_to_do_and_the_message_is_kept(
    chat: ChatConversation, provider: Provider, status: int, hint: str
) -> None:
    provider.will(ScriptedFailure(status, f"slow down, {KEY}"), reply_with("Hello."))
    with pytest.raises(ModelFailed) as failed:
        chat.say("Hello?")
    explanation = explain_error(failed.value, chat.endpoint)
    assert hint in explanation
    assert str(status) in explanation
    assert KEY not in explanation
    assert messages_of(chat.session) == [("user", "Hello?")]
    assert chat.retry().text == "Hello."


def test_a_server_without_tool_support_suggests_no_tools(chat: ChatConversation, provider: Provider) -> None:
    provider.will(ScriptedFailure(500, "tools param requires --jinja flag"))
    with pytest.raises(ModelFailed) as failed:
        chat.say("Hello?")
    assert "--no-tools" in explain_error(failed.value, chat.endpoint)


@pytest.mark.parametrize("body", [b"", b"data: {\n\n", b"data: 7\n\n", b"data: [DONE]\n\n", b"<html>hello</html>"])
def test_an_empty_or_invalid_answer_is_a_model_failure(make: Make, body: bytes) -> None:
    with model_server() as server:
        server.will(
            HttpReply(body, 200, EVENTS), HttpReply(b'{"choices": []}', 200, {"Content-Type": "application/json"})
        )
        talk = make(server.url)
        with pytest.raises(ModelFailed):
            talk.say("Hello?")
        with pytest.raises(ModelFailed, match="a stream of events"):
            talk.retry()
    assert messages_of(talk.session) == [("user", "Hello?")]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (reply_with(STORY, short=True), "the stream ended early"),
        (reply_with(STORY, reason="length"), "maximum length reached"),
    ],
)
def test_a_cut_answer_reports_its_reason(make: Make, reply: ScriptedReply, reason: str) -> None:
    with model_server() as server:
        server.will(HttpReply(stream("openai", reply, ended=False), 200, EVENTS))
        talk = make(server.url)
        assert reason in talk.say("Tell me a story.").end_reason
    assert messages_of(talk.session)[-1] == ("assistant", f"{STORY}\n{CUT_MARK}")


def test_a_reply_that_ends_only_with_done_is_complete(make: Make) -> None:
    reply = reply_with("Let me look.", NOTE, short=True)
    with model_server() as server:
        server.will(stream_reply("openai", reply), stream_reply("openai", reply_with(STORY, short=True)))
        talk = make(server.url)
        turn = talk.say("Where is my order?")
    assert (turn.text, turn.end_reason) == (f"Let me look.\n{STORY}", "")
    assert NOTED in talk.session.read("memory/scratch.md")
    assert messages_of(talk.session)[-1] == ("assistant", STORY)


# -- interruption ------------------------------------------------------------------------------------------


@pytest.mark.spec("N65")
def test_ctrl_c_keeps_the_text_so_far_and_the_chat_continues(
    chat: ChatConversation, provider: Provider, recorder: RecordingOutput
) -> None:
    recorder.on_text = signal_once(signal.SIGINT)
    provider.will(reply_with(STORY), reply_with("As you like."))
    turn = chat.say("Tell me a story.")
    assert turn.end_reason == "stopped"
    assert messages_of(chat.session)[-1] == ("assistant", f"{recorder.text}\n{STOPPED_MARK}")
    recorder.on_text = lambda _: None
    assert chat.say("Something else.").text == "As you like."


def test_an_answer_stopped_before_its_first_word_keeps_the_question(
    chat: ChatConversation, provider: Provider, recorder: RecordingOutput
) -> None:
    recorder.on_text = signal_once(signal.SIGINT, after=-1)
    provider.will(reply_with(STORY), reply_with("Gladly."))
    assert chat.say("Tell me a story.").end_reason == "stopped"
    assert messages_of(chat.session) == [("user", "Tell me a story.")]
    recorder.on_text = lambda _: None
    assert chat.retry().text == "Gladly."


@pytest.mark.spec("N65")
@pytest.mark.parametrize("error", [BrokenPipeError, SystemExit])
def test_a_closed_output_leaves_no_call_open(
    chat: ChatConversation, provider: Provider, recorder: RecordingOutput, error: type[BaseException]
) -> None:
    def close_output(_: str) -> None:
        raise error

    recorder.on_tool = close_output
    provider.will(reply_with("", NOTE, a_tool_call("memory_list")))
    with pytest.raises(error):
        chat.say("Note it.")
    assert NOTED in chat.session.read("memory/scratch.md")
    assert unanswered(chat.session) == set()


@pytest.mark.spec("N65")
def test_ctrl_c_while_memory_writes_stops_before_the_next_reply(
    chat: ChatConversation, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def record_after_interrupt(self: Session, *given: Any, **more: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return record(self, *given, **more)

    record = Session.record
    provider.will(reply_with("", NOTE), reply_with("Hello."))
    with monkeypatch.context() as patched:
        patched.setattr(Session, "record", record_after_interrupt)
        assert chat.say("Look around.").end_reason == "stopped"
    assert NOTED in chat.session.read("memory/scratch.md")
    assert unanswered(chat.session) == set()
    assert chat.say("Hello").text == "Hello."


@pytest.mark.spec("C08", "N65")
def test_a_termination_signal_keeps_the_text_so_far(
    chat: ChatConversation, provider: Provider, recorder: RecordingOutput
) -> None:
    recorder.on_text = signal_once(signal.SIGTERM)
    provider.will(reply_with(STORY))
    with pytest.raises(SystemExit) as raised:
        chat.say("Tell me a story.")
    assert raised.value.code == 128 + signal.SIGTERM
    assert messages_of(chat.session)[-1] == ("assistant", f"{recorder.text}\n{CUT_MARK}")


@pytest.mark.spec("N65")
def test_a_closed_pipe_loses_no_text(chat: ChatConversation, provider: Provider, recorder: RecordingOutput) -> None:
    def close_pipe(text: str) -> None:
        if len(text) > 20:
            raise BrokenPipeError

    recorder.on_text = close_pipe
    provider.will(reply_with(STORY))
    with pytest.raises(BrokenPipeError):
        chat.say("Tell me a story.")
    assert messages_of(chat.session)[-1] == ("assistant", f"{recorder.text}\n{CUT_MARK}")


# -- retry and undo ----------------------------------------------------------------------------------------


def test_the_last_exchange_is_removed_with_its_tool_messages(chat: ChatConversation, provider: Provider) -> None:
    provider.will(reply_with("Hello."), reply_with("", NOTE), reply_with("It is late."))
    chat.say("Hello")
    before = messages_of(chat.session)
    chat.say("Where is my order?")
    assert [one.role for one in chat.remove_last_exchange()] == ["user", "assistant", "tool", "assistant"]
    assert messages_of(chat.session) == before
    token_usage = chat.session.usage
    assert [one.text for one in chat.remove_last_exchange()] == ["Hello", "Hello."]
    assert chat.session.usage == token_usage
    assert chat.remove_last_exchange() == []
    with pytest.raises(NotFound):
        chat.retry()


def test_retry_requests_a_new_answer_and_keeps_tool_results(chat: ChatConversation, provider: Provider) -> None:
    provider.will(reply_with("", NOTE), reply_with("Never."), reply_with("It is late."))
    chat.say("Where is my order?")
    assert chat.retry().text == "It is late."
    assert [text for role, text in messages_of(chat.session) if role == "assistant"] == ["", "It is late."]
    assert len(provider.requests) == 3


@pytest.mark.embedded
@pytest.mark.spec("E5")
@pytest.mark.parametrize("method", ["retry", "remove_last_exchange"])
def test_retry_and_undo_change_only_the_conversation(
    chat: ChatConversation, provider: Provider, memory: Memory, method: str
) -> None:
    for number in range(9):
        provider.will(reply_with(f"Answer {number}. " + "word " * 200))
        chat.say(f"Question {number}? " + "word " * 200)
    session = chat.session
    report = session.compact(keep_recent=2)
    assert report.archives
    [page] = home_of(memory).glob("sessions/*/talk/working-memory/overview.md")
    page.write_text(page.read_text().replace("## Known facts\n", "## Known facts\nThe port is 8443\n"))
    session.scratchpad.update("call Ada back")
    session.write("detail/plan.md", "first this, then that")
    before = session.state
    provider.will(*[reply_with("Another answer.")] if method == "retry" else [])
    getattr(chat, method)()
    after = session.state
    assert len(after.conversation) == len(before.conversation) - (2 if method == "remove_last_exchange" else 0)
    assert after.history.compactions == before.history.compactions
    assert after.scratchpads == before.scratchpads
    assert "The port is 8443" in session.overview
    assert "The port is 8443" in page.read_text()
    assert session.read("detail/plan.md") == "first this, then that"
    provider.will(reply_with("On we go."))
    assert chat.say("And now?").text == "On we go."
    assert "Answer 0." not in json.dumps(provider.requests[-1].body["messages"])


def test_a_chat_can_switch_providers_and_back(make: Make, provider: Provider) -> None:
    provider.will(reply_with("", NOTE), reply_with("It is late."))
    make(provider.openai).say("Where is my order?")
    other = make(provider.anthropic, "anthropic")
    provider.will(
        reply_with("", NOTE),
        reply_with("One file."),
        reply_with("One file, notes.md."),
        reply_with("Still late."),
    )
    other.say("What is there?")
    assert other.retry().text == "One file, notes.md."
    assert len(other.remove_last_exchange()) == 4
    assert unanswered(other.session) == set()
    back = make(provider.openai)
    assert back.retry().text == "Still late."
    assert messages_of(back.session)[-1] == ("assistant", "Still late.")
    assert provider.failures == []


def test_the_last_exchange_has_the_question_and_any_answer(chat: ChatConversation, provider: Provider) -> None:
    provider.will(
        reply_with("Let me look.", NOTE),
        reply_with("It is late."),
        ScriptedFailure(500),
    )
    chat.say("Where is my order?")
    assert [one.text for one in chat.last_exchange() if one.role != "tool"] == [
        "Where is my order?",
        "Let me look.",
        "It is late.",
    ]
    with pytest.raises(ModelFailed):
        chat.say("And now?")
    assert [one.text for one in chat.last_exchange()] == ["And now?"]


def signal_once(signum: signal.Signals, *, after: int = 20) -> Callable[[str], None]:
    """Raise a signal once, when the text is longer than `after`."""
    pressed: list[str] = []

    def press(text: str) -> None:
        if len(text) > after and not pressed:
            pressed.append(text)
            signal.raise_signal(signum)

    return press


# -- replies of an endpoint --------------------------------------------------------------------------------

EVENTS = {"Content-Type": "text/event-stream"}
REPLY_END = {"openai": b'"finish_reason": "tool_calls"', "anthropic": b'"stop_reason": "tool_use"'}
"""After this part, a reply with calls is complete."""


def stream(api: str, reply: ScriptedReply, *, ended: bool = True) -> bytes:
    events: list[dict[str, Any]] = chunks(api, reply, stream_options={"include_usage": True})
    data = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return (data + ("data: [DONE]\n\n" if api == "openai" and ended else "")).encode()


def stream_reply(api: str, reply: ScriptedReply) -> HttpReply:
    return HttpReply(stream(api, reply), 200, EVENTS)
