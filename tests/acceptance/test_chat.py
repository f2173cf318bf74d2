"""A chat with an endpoint that does what endpoints do: whatever becomes of an answer, nothing that was said is lost."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from builders import Home, home_of
from model_server import Said, model_server
from provider import Fails, Provider, Says, asks, chunks, says
from provider_rules import faults

from inmind import Memory, Session
from inmind.apps.chat.conversation import CUT_MARK, MAX_ROUNDS, STOPPED_MARK, ChatConversation
from inmind.apps.chat.endpoint import ChatEndpoint, explain_error
from inmind.apps.chat.file_tools import FileTools, ToolOutput
from inmind.apps.chat.providers import StreamPiece
from inmind.apps.chat.status import status_line
from inmind.apps.chat.turn import ChatExchange, ChatToolUse, OtherChanges
from inmind.apps.signals import InterruptHandler
from inmind.core.http import HttpEndpoint
from inmind.core.messages import FORMATS
from inmind.core.messages.model import Text
from inmind.errors import ModelFailed, NotFound

pytestmark = pytest.mark.spec("I2")

KEY = "sk-very-secret"
PATIENCE = 20.0
STORY = "Once upon a time there was a page that nobody had ever named, and so nobody could find it again."


@dataclass
class Watching:
    """A listener that records what it is shown, and can react to it."""

    text: str = ""
    thoughts: str = ""
    calls: list[tuple[str, ToolOutput]] = field(default_factory=list[tuple[str, ToolOutput]])
    heard: Callable[[str], None] = lambda _: None
    seen: Callable[[str], None] = lambda _: None

    def show_waiting(self) -> None: ...

    def show_piece(self, piece: StreamPiece) -> None:
        self.text += piece.text
        self.thoughts += piece.reasoning
        self.heard(self.text)

    def end_answer(self) -> None:
        self.heard(self.text)

    def show_tool_use(self, use: ChatToolUse) -> None:
        self.calls.append((use.name, use.output))
        self.seen(use.name)


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture
def memory(home: Home) -> Generator[Memory]:
    with Memory.open(home, embedder=None) as memory:
        yield memory


@pytest.fixture(params=["openai", "anthropic"])
def spoken(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def watching() -> Watching:
    return Watching()


@pytest.fixture
def interruptions() -> Iterator[InterruptHandler]:
    interruptions = InterruptHandler()
    with interruptions.install():
        yield interruptions


Make = Callable[..., ChatConversation]


@pytest.fixture
def make(memory: Memory, watching: Watching, interruptions: InterruptHandler, tmp_path: Path) -> Make:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.md").write_text("order-123 is late\n")

    def conversation(
        url: str,
        spoken: str = "openai",
        *,
        id: str = "talk",
        patience: float = PATIENCE,
        window: int = 128_000,
        tools: bool = True,
    ) -> ChatConversation:
        return ChatConversation(
            lambda: memory.session(id, resource="ada", window=window, memory_tools=tools),
            ChatEndpoint(provider=spoken, url=url, model="model-1", key_env="SOME_KEY", window=128_000),
            HttpEndpoint(url=url, key=KEY, retry_delays=()),
            FileTools(work, home=memory.home, interruptible=interruptions.interruptible) if tools else None,
            listener=watching,
            interrupts=interruptions,
            timeout=patience,
        )

    return conversation


@pytest.fixture
def chat(make: Make, provider: Provider, spoken: str) -> ChatConversation:
    return make(provider.openai if spoken == "openai" else provider.anthropic, spoken)


def line(session: Session) -> list[tuple[str, str]]:
    messages = [FORMATS[entry.format].read(entry.wire) for entry in session.state.conversation]
    return [("tool" if message.results else message.role, message.text) for message in messages]


def tool_results(session: Session) -> str:
    messages = [FORMATS[entry.format].read(entry.wire) for entry in session.state.conversation]
    results = [result for message in messages for result in message.results]
    return "\n".join(part.text for result in results for part in result.parts if isinstance(part, Text))


def unanswered(session: Session) -> set[str]:
    messages = [FORMATS[entry.format].read(entry.wire) for entry in session.state.conversation]
    called = {call.id for message in messages for call in message.calls}
    return called - {result.id for message in messages for result in message.results}


# -- when all goes well ------------------------------------------------------------------------------------


def test_an_answer_is_heard_as_it_comes_and_kept_whole(
    chat: ChatConversation, provider: Provider, watching: Watching
) -> None:
    came: list[str] = []
    watching.heard = came.append
    provider.will(says(STORY, thinking="A story, then."))
    turn = chat.say("Tell me a story.")
    assert (turn.text, watching.text, watching.thoughts) == (STORY, STORY, "A story, then.")
    assert len(set(came)) > 10
    assert line(chat.session) == [("user", "Tell me a story."), ("assistant", STORY)]
    assert turn.end_reason == ""


def test_files_and_notes_are_at_hand_and_what_was_read_comes_to_mind(
    chat: ChatConversation, provider: Provider, watching: Watching
) -> None:
    provider.will(
        says(
            "Let me see.",
            asks("read_file", {"path": "notes.md"}),
            asks("working_memory_note", {"note": "Ada waits for order-123"}),
        ),
        says("It is late."),
    )
    turn = chat.say("Where is my order?")
    sent = json.dumps(provider.asked[1].body)
    assert "order-123 is late" in sent
    assert {name for name, outcome in watching.calls if not outcome.error} == {"read_file", "working_memory_note"}
    assert [entity.name for entity in chat.session.entities] == ["notes.md"]
    assert "Ada waits for order-123" in chat.session.read("memory/scratch.md")
    assert turn.text == "Let me see.\nIt is late."


def test_what_the_provider_counts_goes_into_the_ledger_and_the_status_line(
    chat: ChatConversation, provider: Provider
) -> None:
    provider.will(says("", asks("list_files")), says("One file."))
    turn = chat.say("What is there?")
    assert (turn.usage.reported_prompt, turn.usage.reported_cached, turn.usage.completion) == (200, 160, 20)
    shown = status_line(turn, ["notes.md"], (3.0, 15.0))
    assert shown == "in mind: notes.md · normal, 1% of 128k · 220 tokens, 80% from cache · $0.0005"


def test_arguments_that_are_no_json_are_answered_and_the_model_goes_on(
    chat: ChatConversation, provider: Provider, watching: Watching
) -> None:
    provider.will(says("", asks("read_file", '{"path": notes}')), says("I see."))
    assert chat.say("Read it.").text == "I see."
    [(_, outcome)] = watching.calls
    assert outcome.error
    assert unanswered(chat.session) == set()


@pytest.mark.parametrize("tools", [True, False])
def test_a_tool_that_there_is_not_is_answered_and_the_model_goes_on(
    make: Make, provider: Provider, spoken: str, tools: bool
) -> None:
    provider.will(says("", asks("run_shell", {"command": "ls"}), asks("list_files")), says("I see."))
    talk = make(provider.openai if spoken == "openai" else provider.anthropic, spoken, tools=tools)
    turn = talk.say("Look around.")
    assert turn.text == "I see."
    assert [used.name for used in turn.tools] == ["run_shell", "list_files"]
    assert all(used.output.text for used in turn.tools)
    assert unanswered(talk.session) == set()


def test_a_server_that_does_not_count_in_streams_is_asked_without(make: Make) -> None:
    with model_server() as server:
        refusal = {"error": {"message": "unknown parameter: stream_options"}}
        server.will(Said(json.dumps(refusal), 400), streamed("openai", says("Hello.")))
        assert make(server.url).say("Hello").text == "Hello."
        assert ["stream_options" in asked.body for asked in server.asked] == [True, False]


def test_a_model_that_never_ends_calling_is_stopped_and_the_chat_goes_on(make: Make, provider: Provider) -> None:
    provider.will(*[says("", asks("list_files"))] * MAX_ROUNDS, says("Four."))
    talk = make(provider.openai)
    turn = talk.say("Look around.")
    assert str(MAX_ROUNDS) in turn.end_reason
    assert provider.unused == 1
    assert talk.say("What is two and two?").text == "Four."
    assert unanswered(talk.session) == set()


@pytest.mark.spec("E5")
def test_a_window_that_is_full_is_relieved_and_the_person_is_told(
    make: Make, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "work" / "long.txt").write_text("one of many lines\n" * 300)
    for _ in range(6):
        provider.will(says("", asks("read_file", {"path": "long.txt"})), says("Many lines."))
    talk = make(provider.openai, window=8_000)
    notices = [notice for _ in range(6) for notice in talk.say("Read long.txt.").notices]
    assert any("archive/" in notice for notice in notices), notices


def test_a_server_that_reads_less_than_it_is_sent_is_noticed_once(chat: ChatConversation, provider: Provider) -> None:
    provider.will(says("Hello."), says("Many words."), says("Still many."))
    assert chat.say("Hello").notices == ()
    [notice] = chat.say("word " * 6_000).notices
    assert notice.startswith("The model read 100 of about ")
    assert all(way in notice for way in ("--window", "config.toml", "OLLAMA_CONTEXT_LENGTH"))
    assert chat.say("And now?").notices == ()


# -- when it does not --------------------------------------------------------------------------------------


@pytest.mark.spec("N65", "J1")
def test_a_stream_that_breaks_keeps_what_was_heard_and_can_be_asked_again(
    chat: ChatConversation, provider: Provider, watching: Watching
) -> None:
    provider.will(says(STORY, torn=True))
    with pytest.raises(ModelFailed, match="broke off"):
        chat.say("Tell me a story.")
    heard = watching.text
    assert heard
    assert STORY.startswith(heard)
    assert heard != STORY
    assert line(chat.session) == [("user", "Tell me a story."), ("assistant", f"{heard}\n{CUT_MARK}")]
    provider.will(says(STORY))
    assert chat.retry().text == STORY
    assert line(chat.session) == [("user", "Tell me a story."), ("assistant", STORY)]
    assert CUT_MARK not in json.dumps(provider.asked[-1].body)


@pytest.mark.spec("N65")
def test_wherever_a_stream_is_cut_no_call_is_left_open_and_none_is_half_done(
    make: Make, spoken: str, tmp_path: Path
) -> None:
    reply = says(
        "I write it, and keep it in mind.",
        asks("write_file", {"path": "new.md", "text": "all of it or nothing"}),
        asks("working_memory_note", {"note": "new.md is written"}),
    )
    whole = stream(spoken, reply)
    end = whole.index(ENDED[spoken])
    cuts = range(0, end, 1 + end // 15)
    with model_server() as server:
        url = server.url if spoken == "openai" else server.url.removesuffix("/v1")
        for cut in cuts:
            talk = make(url, spoken, id=f"cut-{cut}")
            server.will(Said(whole[:cut], 200, EVENTS, promised=9), streamed(spoken, says("As you like.")))
            with pytest.raises(ModelFailed):
                talk.say("Write new.md.")
            assert unanswered(talk.session) == set()
            assert not (tmp_path / "work" / "new.md").exists()
            assert talk.say("Never mind.").text == "As you like."
            sent = server.asked[-1].body["messages"]
            assert faults(spoken, sent) == []
            said = [text for role, text in line(talk.session) if role == "assistant"]
            assert all(reply.text.startswith(text.removesuffix(CUT_MARK).rstrip("\n")) for text in said[:-1])


def test_what_breaks_behind_the_end_of_a_reply_has_broken_nothing(make: Make, spoken: str, tmp_path: Path) -> None:
    reply = says("", asks("write_file", {"path": "new.md", "text": "all of it"}))
    whole = stream(spoken, reply)
    until = whole.index(b"\n\n", whole.index(ENDED[spoken])) + 2
    with model_server() as server:
        server.will(Said(whole[:until], 200, EVENTS, promised=9), streamed(spoken, says("It is there.")))
        talk = make(server.url if spoken == "openai" else server.url.removesuffix("/v1"), spoken)
        assert talk.say("Write new.md.").text == "It is there."
    assert (tmp_path / "work" / "new.md").read_text() == "all of it"


@pytest.mark.spec("N65")
def test_an_endpoint_that_dies_between_two_rounds_leaves_what_the_tools_did(
    make: Make, watching: Watching, spoken: str, provider: Provider
) -> None:
    dying = Provider()
    dying.will(says("Let me see.", asks("read_file", {"path": "notes.md"})))
    talk = make(dying.openai if spoken == "openai" else dying.anthropic, spoken)
    watching.seen = lambda _: dying.close()
    with pytest.raises(ModelFailed, match="cannot be reached"):
        talk.say("Where is my order?")
    assert [role for role, _ in line(talk.session)] == ["user", "assistant", "tool"]
    watching.seen = lambda _: None
    provider.will(says("It is late."))
    revived = make(provider.openai if spoken == "openai" else provider.anthropic, spoken)
    assert revived.retry().text == "It is late."
    assert [role for role, _ in line(revived.session)] == ["user", "assistant", "tool", "assistant"]


def test_a_server_that_falls_silent_is_not_waited_for(make: Make, provider: Provider) -> None:
    gate = Event()
    provider.will(says("One moment", gate=gate))
    talk = make(provider.openai, patience=0.3)
    try:
        with pytest.raises(ModelFailed, match=r"sent nothing for 0\.3 s"):
            talk.say("Hello?")
    finally:
        gate.set()
    assert line(talk.session)[-1] == ("assistant", f"One moment\n{CUT_MARK}")


def test_a_provider_that_gives_up_in_the_middle_says_why(make: Make, spoken: str) -> None:
    begun = stream(spoken, says("Half of it", short=True), ended=False)
    failure = {"type": "error", "error": {"type": "overloaded_error", "message": f"Overloaded for {KEY}"}}
    with model_server() as server:
        server.will(Said(begun + f"event: error\ndata: {json.dumps(failure)}\n\n".encode(), 200, EVENTS))
        talk = make(server.url if spoken == "openai" else server.url.removesuffix("/v1"), spoken)
        with pytest.raises(ModelFailed, match="Overloaded") as failed:
            talk.say("Hello")
    assert KEY not in str(failed.value)
    assert line(talk.session)[-1] == ("assistant", f"Half of it\n{CUT_MARK}")


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
def test_a_refusal_says_what_to_do_and_the_message_is_kept(
    chat: ChatConversation, provider: Provider, status: int, hint: str
) -> None:
    provider.will(Fails(status, f"slow down, {KEY}"), says("Hello."))
    with pytest.raises(ModelFailed) as failed:
        chat.say("Hello?")
    said = explain_error(failed.value, chat.endpoint)
    assert hint in said
    assert str(status) in said
    assert KEY not in said
    assert line(chat.session) == [("user", "Hello?")]
    assert chat.retry().text == "Hello."


def test_a_server_that_cannot_call_tools_is_talked_to_without(chat: ChatConversation, provider: Provider) -> None:
    provider.will(Fails(500, "tools param requires --jinja flag"))
    with pytest.raises(ModelFailed) as failed:
        chat.say("Hello?")
    assert "--no-tools" in explain_error(failed.value, chat.endpoint)


@pytest.mark.parametrize("body", [b"", b"data: {\n\n", b"data: 7\n\n", b"data: [DONE]\n\n", b"<html>hello</html>"])
def test_an_answer_that_says_nothing_or_nonsense_is_a_failure_of_the_model(make: Make, body: bytes) -> None:
    with model_server() as server:
        server.will(Said(body, 200, EVENTS), Said(b'{"choices": []}', 200, {"Content-Type": "application/json"}))
        talk = make(server.url)
        with pytest.raises(ModelFailed):
            talk.say("Hello?")
        with pytest.raises(ModelFailed, match="a stream of events"):
            talk.retry()
    assert line(talk.session) == [("user", "Hello?")]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (says(STORY, short=True), "the stream ended early"),
        (says(STORY, reason="length"), "maximum length reached"),
    ],
)
def test_an_answer_that_is_cut_says_whether_it_was_too_long_or_just_ended(make: Make, reply: Says, said: str) -> None:
    with model_server() as server:
        server.will(Said(stream("openai", reply, ended=False), 200, EVENTS))
        talk = make(server.url)
        assert said in talk.say("Tell me a story.").end_reason
    assert line(talk.session)[-1] == ("assistant", f"{STORY}\n{CUT_MARK}")


def test_a_reply_whose_server_says_only_that_it_is_done_is_whole(make: Make) -> None:
    reply = says("Let me look.", asks("read_file", {"path": "notes.md"}), short=True)
    with model_server() as server:
        server.will(streamed("openai", reply), streamed("openai", says(STORY, short=True)))
        talk = make(server.url)
        turn = talk.say("Where is my order?")
    assert (turn.text, turn.end_reason) == (f"Let me look.\n{STORY}", "")
    assert "order-123 is late" in tool_results(talk.session)
    assert line(talk.session)[-1] == ("assistant", STORY)


# -- a person who stops it ---------------------------------------------------------------------------------


@pytest.mark.spec("N65")
def test_ctrl_c_keeps_the_text_so_far_and_the_chat_continues(
    chat: ChatConversation, provider: Provider, watching: Watching
) -> None:
    watching.heard = pressing(signal.SIGINT)
    provider.will(says(STORY), says("As you like."))
    turn = chat.say("Tell me a story.")
    assert turn.end_reason == "stopped"
    assert line(chat.session)[-1] == ("assistant", f"{watching.text}\n{STOPPED_MARK}")
    watching.heard = lambda _: None
    assert chat.say("Something else.").text == "As you like."


def test_an_answer_that_is_stopped_before_its_first_word_leaves_the_question(
    chat: ChatConversation, provider: Provider, watching: Watching
) -> None:
    watching.heard = pressing(signal.SIGINT, after=-1)
    provider.will(says(STORY), says("Gladly."))
    assert chat.say("Tell me a story.").end_reason == "stopped"
    assert line(chat.session) == [("user", "Tell me a story.")]
    watching.heard = lambda _: None
    assert chat.retry().text == "Gladly."


@pytest.mark.spec("N65")
def test_calls_that_a_person_stops_are_answered_with_that(
    chat: ChatConversation,
    provider: Provider,
    interruptions: InterruptHandler,
    watching: Watching,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def in_between(self: Session, *given: Any, **more: Any) -> Any:
        signal.raise_signal(signal.SIGINT)  # while memory writes: it counts for what comes next
        return record(self, *given, **more)

    record = Session.record
    monkeypatch.setattr(Session, "record", in_between)
    provider.will(
        says(
            "", asks("working_memory_note", {"note": "a"}), asks("list_files"), asks("read_file", {"path": "notes.md"})
        )
    )
    turn = chat.say("Look around.")
    assert turn.end_reason == "stopped"
    assert [(name, outcome.error) for name, outcome in watching.calls] == [
        ("working_memory_note", False),
        ("list_files", True),
        ("read_file", True),
    ]
    assert unanswered(chat.session) == set()
    monkeypatch.undo()
    interruptions.discard()
    provider.will(says("Hello."))
    assert chat.say("Hello").text == "Hello."


@pytest.mark.spec("N65")
@pytest.mark.parametrize("place", ["open", "rename"])
def test_a_write_that_has_begun_is_ended_and_told_whatever_a_person_presses(
    make: Make, provider: Provider, watching: Watching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    pressed: list[str] = []
    real = getattr(os, place)

    def presses(*given: Any, **more: Any) -> Any:
        done = real(*given, **more)
        if str(given[0]).startswith(".new.md."):
            pressed.append(place)
            signal.raise_signal(signal.SIGINT)
        return done

    provider.will(
        says("", asks("write_file", {"path": "new.md", "text": "all of it"}), asks("read_file", {"path": "new.md"}))
    )
    talk = make(provider.openai)
    with monkeypatch.context() as pressing:
        pressing.setattr(os, place, presses)
        assert talk.say("Write new.md.").end_reason == "stopped"
    assert pressed
    assert (tmp_path / "work" / "new.md").read_text() == "all of it"
    assert sorted(os.listdir(tmp_path / "work")) == ["new.md", "notes.md"]
    assert [(name, outcome.error) for name, outcome in watching.calls] == [("write_file", False), ("read_file", True)]
    assert "Created new.md" in tool_results(talk.session)


@pytest.mark.spec("N65")
@pytest.mark.parametrize("gone", [BrokenPipeError, SystemExit])
def test_a_closed_output_leaves_no_call_open(
    chat: ChatConversation, provider: Provider, watching: Watching, tmp_path: Path, gone: type[BaseException]
) -> None:
    def leaves(_: str) -> None:
        raise gone

    watching.seen = leaves
    provider.will(
        says(
            "",
            asks("working_memory_note", {"note": "a"}),
            asks("write_file", {"path": "new.md", "text": "all of it"}),
            asks("list_files"),
        )
    )
    with pytest.raises(gone):
        chat.say("Write new.md.")
    assert (tmp_path / "work" / "new.md").read_text() == "all of it"
    assert unanswered(chat.session) == set()
    assert "Created new.md" in tool_results(chat.session)


@pytest.mark.spec("N65")
def test_what_breaks_in_a_tool_is_raised_once_every_call_has_its_answer(
    chat: ChatConversation, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> ToolOutput:
        raise RuntimeError("a defect")

    monkeypatch.setattr(FileTools, "execute", breaks)
    provider.will(says("", asks("list_files"), asks("read_file", {"path": "notes.md"})))
    with pytest.raises(RuntimeError):
        chat.say("Look around.")
    assert unanswered(chat.session) == set()
    assert "unknown" in tool_results(chat.session)


def test_a_name_that_is_no_text_is_told_and_the_chat_goes_on(
    chat: ChatConversation, provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "work" / os.fsdecode(b"caf\xe9.txt")).write_text("needle\n")
    provider.will(says("", asks("list_files"), asks("search_files", {"text": "needle"})), says("I see."))
    assert chat.say("Look around.").text == "I see."
    assert "caf\\xe9.txt:1: needle" in tool_results(chat.session)


@pytest.mark.spec("C08", "N65")
def test_a_termination_signal_keeps_the_text_so_far(
    chat: ChatConversation, provider: Provider, watching: Watching
) -> None:
    watching.heard = pressing(signal.SIGTERM)
    provider.will(says(STORY))
    with pytest.raises(SystemExit) as left:
        chat.say("Tell me a story.")
    assert left.value.code == 128 + signal.SIGTERM
    assert line(chat.session)[-1] == ("assistant", f"{watching.text}\n{CUT_MARK}")


@pytest.mark.spec("N65")
def test_a_closed_pipe_loses_no_text(chat: ChatConversation, provider: Provider, watching: Watching) -> None:
    def is_gone(text: str) -> None:
        if len(text) > 20:
            raise BrokenPipeError

    watching.heard = is_gone
    provider.will(says(STORY))
    with pytest.raises(BrokenPipeError):
        chat.say("Tell me a story.")
    assert line(chat.session)[-1] == ("assistant", f"{watching.text}\n{CUT_MARK}")


# -- going back --------------------------------------------------------------------------------------------


def test_the_last_exchange_is_taken_back_with_all_that_followed(chat: ChatConversation, provider: Provider) -> None:
    provider.will(says("Hello."), says("", asks("read_file", {"path": "notes.md"})), says("It is late."))
    chat.say("Hello")
    before = line(chat.session)
    chat.say("Where is my order?")
    assert chat.remove_last_exchange() == ("Where is my order?", 4)
    assert line(chat.session) == before
    ledger = chat.session.usage
    assert chat.remove_last_exchange() == ("Hello", 2)
    assert chat.session.usage == ledger
    assert chat.last_exchange is None
    with pytest.raises(NotFound):
        chat.remove_last_exchange()
    with pytest.raises(NotFound):
        chat.retry()


def test_an_answer_is_asked_for_again_and_what_tools_did_before_it_stays(
    chat: ChatConversation, provider: Provider
) -> None:
    provider.will(says("", asks("read_file", {"path": "notes.md"})), says("Never."), says("It is late."))
    chat.say("Where is my order?")
    assert chat.retry().text == "It is late."
    assert [text for role, text in line(chat.session) if role == "assistant"] == ["", "It is late."]
    assert len(provider.asked) == 3


@pytest.mark.embedded
@pytest.mark.spec("E5")
@pytest.mark.parametrize("goes_back", ["retry", "remove_last_exchange"])
def test_going_back_takes_back_what_was_said_and_nothing_else(
    chat: ChatConversation, provider: Provider, memory: Memory, goes_back: str
) -> None:
    for number in range(9):
        provider.will(says(f"Answer {number}. " + "word " * 200))
        chat.say(f"Question {number}? " + "word " * 200)
    session = chat.session
    report = session.compact(keep_recent=2)
    assert report.archives
    [page] = home_of(memory).glob("sessions/*/talk/working-memory/overview.md")
    page.write_text(page.read_text().replace("## Known facts\n", "## Known facts\nThe port is 8443\n"))
    session.scratchpad.update("call Ada back")
    session.write("detail/plan.md", "first this, then that")
    before = session.state
    provider.will(*[says("Another answer.")] if goes_back == "retry" else [])
    getattr(chat, goes_back)()
    after = session.state
    assert len(after.conversation) == len(before.conversation) - (2 if goes_back == "remove_last_exchange" else 0)
    assert after.history.compactions == before.history.compactions
    assert after.scratchpads == before.scratchpads
    assert "The port is 8443" in session.overview
    assert "The port is 8443" in page.read_text()
    assert session.read("detail/plan.md") == "first this, then that"
    provider.will(says("On we go."))
    assert chat.say("And now?").text == "On we go."
    assert "Answer 0." not in json.dumps(provider.asked[-1].body["messages"])


def test_a_chat_can_switch_providers_and_back(make: Make, provider: Provider) -> None:
    provider.will(says("", asks("read_file", {"path": "notes.md"})), says("It is late."))
    make(provider.openai).say("Where is my order?")
    other = make(provider.anthropic, "anthropic")
    provider.will(says("", asks("list_files")), says("One file."), says("One file, notes.md."), says("Still late."))
    other.say("What is there?")
    assert other.retry().text == "One file, notes.md."
    assert other.remove_last_exchange() == ("What is there?", 4)
    assert unanswered(other.session) == set()
    back = make(provider.openai)
    assert back.retry().text == "Still late."
    assert line(back.session)[-1] == ("assistant", "Still late.")
    assert provider.failures == []


def test_what_was_said_last_is_known_and_whether_it_was_answered(chat: ChatConversation, provider: Provider) -> None:
    provider.will(says("Let me look.", asks("read_file", {"path": "notes.md"})), says("It is late."), Fails(500))
    chat.say("Where is my order?")
    assert chat.last_exchange == ChatExchange(
        question="Where is my order?", answer="Let me look. It is late.", messages=4, is_from_this_chat=True
    )
    with pytest.raises(ModelFailed):
        chat.say("And now?")
    assert chat.last_exchange == ChatExchange(
        question="And now?", answer="", messages=1, is_from_this_chat=True, is_answered=False
    )


# -- two terminals -----------------------------------------------------------------------------------------


def test_what_another_terminal_does_to_a_session_is_noticed_once(make: Make, provider: Provider) -> None:
    here, there = make(provider.openai), make(provider.openai)
    provider.will(*[says("Hello.")] * 5)
    here.say("Hello from here")
    assert here.poll_other_changes() == OtherChanges()
    there.say("Hello from there")
    assert here.poll_other_changes() == OtherChanges(messages=("Hello from there",))
    assert here.poll_other_changes() == OtherChanges()
    assert here.last_exchange is not None
    assert not here.last_exchange.is_from_this_chat
    here.say("And again")
    assert here.poll_other_changes() == OtherChanges()
    here.retry()
    assert here.poll_other_changes() == OtherChanges()
    there.remove_last_exchange()
    assert here.poll_other_changes() == OtherChanges(removed=2)
    here.say("Once more")
    assert here.poll_other_changes() == OtherChanges()
    here.remove_last_exchange()
    assert here.poll_other_changes() == OtherChanges()


def test_what_is_translated_for_another_provider_was_said_where_it_was_said(make: Make, provider: Provider) -> None:
    provider.will(says("", asks("list_files")), *[says("Hello.")] * 3)
    make(provider.openai).say("Hello from there")
    here = make(provider.anthropic, "anthropic")
    here.say("Hello from here")
    assert here.poll_other_changes() == OtherChanges()
    before = {entry.seq for entry in here.session.state.conversation}
    here.retry()
    assert len({entry.seq for entry in here.session.state.conversation} - before) > 1
    assert here.poll_other_changes() == OtherChanges()
    assert here.last_exchange is not None
    assert here.last_exchange.is_from_this_chat
    here.remove_last_exchange()
    assert not here.last_exchange.is_from_this_chat


def test_what_an_answer_took_is_counted_without_what_others_asked_meanwhile(
    make: Make, provider: Provider, watching: Watching
) -> None:
    here, there = make(provider.openai), make(provider.openai)
    provider.will(says("", asks("list_files")), says("Hello."), says("One file."))
    watching.seen = lambda _: there.say("Hello") and None
    turn = here.say("What is there?")
    assert (turn.text, len(provider.asked)) == ("One file.", 3)
    assert (turn.usage.calls, turn.usage.reported_calls, turn.tokens) == (2, 2, 220)


def pressing(which: signal.Signals, *, after: int = 20) -> Callable[[str], None]:
    """Somebody who has heard enough, and says so once."""
    pressed: list[str] = []

    def heard(text: str) -> None:
        if len(text) > after and not pressed:
            pressed.append(text)
            signal.raise_signal(which)

    return heard


# -- how an endpoint says it -------------------------------------------------------------------------------

EVENTS = {"Content-Type": "text/event-stream"}
ENDED = {"openai": b'"finish_reason": "tool_calls"', "anthropic": b'"stop_reason": "tool_use"'}
"""From here on a reply with calls is whole."""


def stream(spoken: str, reply: Says, *, ended: bool = True) -> bytes:
    events: list[dict[str, Any]] = chunks(spoken, reply, stream_options={"include_usage": True})
    told = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return (told + ("data: [DONE]\n\n" if spoken == "openai" and ended else "")).encode()


def streamed(spoken: str, reply: Says) -> Said:
    return Said(stream(spoken, reply), 200, EVENTS)
