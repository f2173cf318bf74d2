"""`inmind chat` at a terminal and in a pipe, in a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest
from chat_terminal import CTRL_D, TIMEOUT_SECONDS, ChatTerminal, environment, messages_of
from fork_server import text as decode
from local_model import local_model
from loopback import QuietHandler, serve_handler
from model_server import HttpReply, model_server
from provider import Provider, ScriptedFailure, a_tool_call, reply_with
from terminal import INMIND, command, location_options, run_in_process, warm_inmind

from inmind import Memory, Session
from inmind.apps.chat.conversation import STOPPED_MARK
from inmind.apps.chat.terminal import HISTORY_FILE
from inmind.core.paths import CONFIG

pytestmark = pytest.mark.spec("I2")

KEY = "sk-very-secret"
NOTE = a_tool_call("working_memory_note", {"note": "order-123 is late"})
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m‮ and\r\nthe rest"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        yield provider


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


def piped(text: str, *arguments: str, home: Path, work: Path, **keys: str) -> subprocess.CompletedProcess[str]:
    messages_of = [*location_options(home), "chat", *arguments]
    ran = warm_inmind().run(INMIND, *messages_of, stdin=text.encode(), cwd=work, env=environment(**keys))
    return subprocess.CompletedProcess(ran.args, ran.returncode, decode(ran.stdout), decode(ran.stderr))


def only_session(memory: Memory) -> Session:
    [info] = memory.sessions()
    return memory.session(info.id)


# -- at a terminal -----------------------------------------------------------------------------------------


def test_a_user_can_chat_stop_an_answer_retry_and_quit(provider: Provider, home: Path, work: Path) -> None:
    gate = Event()
    provider.will(
        reply_with("Let me look.", NOTE),
        reply_with("It is late."),
        reply_with("Once upon a time", gate=gate),
        ScriptedFailure(429, "slow down"),
        reply_with("Now it works."),
    )
    with ChatTerminal("chat", "--base-url", provider.openai, home=home, cwd=work) as person:
        person.wait_for("model-1 at http://127.0.0.1")
        person.wait_for("> ")
        person.send_line("Where is my order?")
        person.wait_for("Let me look.\n· working_memory_note order-123 is late → Noted")
        person.wait_for("It is late.\nnormal, 0% full · 220 tokens, 80% from cache\n> ")
        person.send_line("Tell me a story.")
        person.wait_for("Once upon a time")
        person.press_ctrl_c(until="(stopped)\n")
        gate.set()
        person.wait_for("> ")
        person.send_line("And now?")
        assert person.wait_for("/retry asks again.").count("\n") == 1
        person.wait_for("> ")
        person.send_line("/retry")
        person.wait_for("Now it works.")
        person.wait_for("> ")
        person.type_text(CTRL_D)
        person.wait_for("Saved. `inmind chat --session chat-")
        assert person.wait_for_exit() == 0
    assert provider.failures == []
    with Memory.open(home, embedder=None) as memory:
        messages = messages_of(only_session(memory))
    assert messages[4:] == [
        ("user", "Tell me a story."),
        ("assistant", f"Once upon a time\n{STOPPED_MARK}"),
        ("user", "And now?"),
        ("assistant", "Now it works."),
    ]


@pytest.mark.spec("J4")
def test_chat_commands_show_and_change_memory_and_escape_control_characters(
    provider: Provider, home: Path, work: Path
) -> None:
    provider.will(
        reply_with(HOSTILE, a_tool_call("working_memory_note", {"note": f"note {HOSTILE}"})),
        reply_with("Hello."),
        reply_with("Two lines."),
    )
    with ChatTerminal(
        "chat", "--provider", "anthropic", "--base-url", provider.anthropic, home=home, cwd=work
    ) as person:
        person.wait_for("> ")
        person.send_line("Hello")
        person.wait_for("⟨U+001B⟩]0;owned⟨U+0007⟩⟨U+001B⟩[2J⟨U+009B⟩31m⟨U+202E⟩ and\nthe rest")
        person.wait_for("> ")
        for chat_command, expected in {
            "/note Ada likes tea": "Saved at ",
            "/show": "[WORKING MEMORY]",
            "/show overview": "# Working memory",
            "/show scratchpad": "The scratchpad is empty.",
            "/show prompt": "context_meta",
            "/show everything": "prompt, entities, scratchpad, overview, state",
            "/search tea": "Ada likes tea",
            "/session": "inmind chat --session",
            "/compact": "Nothing was compacted",
            "/dream": "2 notes merged",
            "/show state": "Ada likes tea",
            "/note": "expected TEXT",
            "/nope": "one of /show /note",
            "/help": "/retry",
            "/undo": "Hello\nNotes and pages that were written are not changed.",
        }.items():
            person.send_line(chat_command)
            person.wait_for(expected)
            person.wait_for("\n> ")
        person.send_line("one\\")
        person.wait_for("… ")
        person.send_line("two")
        person.wait_for("Two lines.")
        person.wait_for("> ")
        person.send_line("/quit")
        assert person.wait_for_exit() == 0
    for sequence in (b"\x1b]0;", b"\x1b[2J", b"\x9b31m", "‮".encode()):
        assert sequence not in person.raw
    assert (home / HISTORY_FILE).stat().st_mode & 0o777 == 0o600
    assert "Ada likes tea" in (home / HISTORY_FILE).read_text()
    assert provider.requests[-1].messages[0]["content"][0]["text"] == "one\ntwo"
    with Memory.open(home, embedder=None) as memory:
        assert messages_of(only_session(memory)) == [("user", "one\ntwo"), ("assistant", "Two lines.")]


def test_pasted_lines_are_one_message(provider: Provider, home: Path, work: Path) -> None:
    provider.will(reply_with("I see two lines."))
    chat = ("chat", "--base-url", provider.openai)
    with ChatTerminal(*chat, home=home, cwd=work, terminal="xterm-256color") as person:
        person.wait_for("> ")
        person.type_text("\x1b[200~first\nsecond\x1b[201~\n")
        person.wait_for("I see two lines.")
        person.wait_for("> ")
        person.type_text(CTRL_D)
        assert person.wait_for_exit() == 0
    with Memory.open(home, embedder=None) as memory:
        assert messages_of(only_session(memory))[0] == ("user", "first\nsecond")


def test_without_an_endpoint_the_chat_explains_how_to_configure_one(home: Path, work: Path) -> None:
    with ChatTerminal("chat", home=home, cwd=work) as person:
        output = person.wait_for("no endpoint configured; `inmind demo` needs none")
        assert all(way in output for way in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ollama", "llama-server"))
        assert person.wait_for_exit() == 3


def test_a_resumed_chat_shows_its_last_exchange_and_can_undo_it(home: Path, work: Path) -> None:
    with serve_handler(TwoModelsHandler) as url:
        chat = ("chat", "--model", "large", "--base-url", url)
        with ChatTerminal("chat", "--base-url", url, home=home, cwd=work) as person:
            person.wait_for("--model: expected one of the models of")
            person.wait_for(": small, large")
            assert person.wait_for_exit() == 2
        with ChatTerminal(*chat, home=home, cwd=work) as person:
            person.wait_for(f"large at {url}, session")
            person.wait_for("Context window unknown, assuming 128,000 tokens: set --window or window of [model].\n> ")
            person.send_line("Where is my order?")
            person.wait_for(f"Is 'large' a model of {url}? Your message is saved; /retry asks again.")
            person.wait_for("> ")
            person.send_line("exit")
            assert person.wait_for_exit() == 0
        with ChatTerminal(*chat, "--continue", home=home, cwd=work) as person:
            person.wait_for(" (resumed).\n")
            person.wait_for("About: Where is my order?\nLast: Where is my order? → no answer yet: /retry\n> ")
            person.send_line("/undo")
            person.wait_for("Removed 1 message: Where is my order?\n")
            person.wait_for("> ")
            person.send_line("/undo")
            person.wait_for("Nothing to undo.\n> ")
            person.send_line("/exit")
            assert person.wait_for_exit() == 0
    with Memory.open(home, embedder=None) as memory:
        assert messages_of(only_session(memory)) == []


class TwoModelsHandler(QuietHandler):
    """An endpoint that lists two models and rejects requests to both."""

    def do_GET(self) -> None:  # noqa: N802 -- as http.server calls it
        self._answer(200, {"data": [{"id": "small"}, {"id": "large"}]})

    def do_POST(self) -> None:  # noqa: N802 -- as http.server calls it
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(404, {"error": {"message": "no such model"}})

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.mark.spec("C08")
def test_a_dream_can_be_cancelled_and_ends_with_the_process(provider: Provider, home: Path, work: Path) -> None:
    provider.will(reply_with("Hello."))
    gate = Event()
    with model_server() as dreaming:
        dreaming.will(*[HttpReply("{}", gate=gate)] * 2)
        home.mkdir()
        (home / CONFIG).write_text(f'[model]\nname = "slow"\nurl = "{dreaming.url}"\n')
        chat = ("chat", "--base-url", provider.openai, "--resource", "ada")
        with ChatTerminal(*chat, home=home, cwd=work) as person:
            for text in ("Hello", "/note Ada likes tea", "/dream"):
                person.wait_for("> ")
                person.send_line(text)
            wait_for(lambda: len(dreaming.requests) == 1)
            person.press_ctrl_c(until="changed nothing")
            person.wait_for("> ")
            person.send_line("/dream")
            wait_for(lambda: len(dreaming.requests) == 2)
            person.process.terminate()
            assert person.wait_for_exit() == 128 + signal.SIGTERM
        gate.set()


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < until, "the condition was never met"
        time.sleep(0.01)


# -- in a pipe ---------------------------------------------------------------------------------------------


def test_in_a_pipe_stdout_has_the_answers_and_continue_resumes_the_session(
    provider: Provider, home: Path, work: Path
) -> None:
    provider.will(reply_with("Hello."), reply_with("", NOTE), reply_with("It is late."))
    first = piped("Hello\nWhere is my order?\n", "--base-url", provider.openai, home=home, work=work)
    assert (first.stdout, first.returncode) == ("Hello.\nIt is late.\n", 0)
    progress = first.stderr.splitlines()
    assert progress[1].startswith("· working_memory_note order-123 is late → Noted")
    assert all(len(one) <= 80 for one in progress)
    assert "\x1b" not in first.stderr
    provider.will(reply_with("As I said, it is late."))
    again = piped("Once more?\n", "--continue", "--base-url", provider.openai, home=home, work=work)
    assert again.stdout == "As I said, it is late.\n"
    assert "Where is my order?" in str(provider.requests[-1].messages)
    with Memory.open(home, embedder=None) as memory:
        assert len(messages_of(only_session(memory))) == 8


def test_in_a_pipe_json_has_one_line_per_answer(provider: Provider, home: Path, work: Path) -> None:
    provider.will(
        reply_with("Let me look.", NOTE, a_tool_call("working_memory_note", "{no")),
        reply_with("It is\nlate."),
        reply_with("It is a file."),
        reply_with("A file."),
        ScriptedFailure(401, "who are you?"),
    )
    text = "Where is my order?\n/etc/hosts what is it\n/retry\n/session\nAnd now?\n"
    url = provider.openai.replace("127.0.0.1", "0.0.0.0")  # noqa: S104 -- the same server at an address that is no loopback
    talk = ("--json", "--session", "j", "--base-url", url, "--key-env", "MY_KEY")
    result = piped(text, *talk, home=home, work=work, MY_KEY=KEY)
    first, second, third, failed = [json.loads(one) for one in result.stdout.splitlines()]
    assert result.returncode == 6
    assert first == {
        "session": "j",
        "call": 2,
        "text": "Let me look.\nIt is\nlate.",
        "tools": [
            {"name": "working_memory_note", "arguments": {"note": "order-123 is late"}, "error": False},
            {"name": "working_memory_note", "arguments": "{no", "error": True},
        ],
        "ended": "",
        "tokens": 220,
        "cached_share": 0.8,
        "percent": first["percent"],
        "band": "normal",
        "error": None,
    }
    assert 0 < first["percent"] < 5
    assert (second["text"], third["text"], third["call"]) == ("It is a file.", "A file.", 4)
    assert "/etc/hosts what is it" in str(provider.requests[2].messages[-1])
    assert (failed["session"], failed["text"], failed["error"]["code"]) == ("j", None, "MODEL_FAILED")
    assert failed.keys() == first.keys()
    assert result.stderr.startswith(f"inmind: MY_KEY is sent to {url} unencrypted\n")
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert "Session j of" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("inmind: MODEL_FAILED: ")


@pytest.mark.spec("N65")
def test_a_closed_reader_leaves_no_call_open(provider: Provider, home: Path, work: Path) -> None:
    provider.will(reply_with("", NOTE, a_tool_call("list_files")))
    theirs, ours = os.pipe()
    os.close(theirs)
    arguments = ("chat", "--session", "left", "--base-url", provider.openai)
    with subprocess.Popen(
        command(*arguments, home=home), stdin=subprocess.PIPE, stdout=ours, stderr=ours, cwd=work, env=environment()
    ) as chat:
        os.close(ours)
        chat.communicate(b"Note it.\n", timeout=60)
    assert chat.returncode == 141
    with Memory.open(home, embedder=None) as memory:
        assert [role for role, _ in messages_of(memory.session("left"))] == ["user", "assistant", "tool", "tool"]


def test_in_a_pipe_a_failure_is_one_line_without_the_key(provider: Provider, home: Path, work: Path) -> None:
    provider.will(ScriptedFailure(401, f"bad key {KEY}"))
    failed = piped("Hello\nAnd?\n", "--base-url", provider.openai, home=home, work=work, OPENAI_API_KEY=KEY)
    assert failed.returncode == 6
    assert failed.stderr.startswith("inmind: MODEL_FAILED: ")
    assert failed.stderr.count("\n") == 1
    assert "OPENAI_API_KEY" in failed.stderr
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in failed.stderr + failed.stdout
    assert len(provider.requests) == 1
    for file in home.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()
    with Memory.open(home, embedder=None) as memory:
        assert messages_of(only_session(memory)) == [("user", "Hello")]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 3, "no endpoint configured; `inmind demo` needs none"),
        (["--base-url", "URL", "--key-env", "NOWHERE"], 2, "an environment variable that is set"),
        (["--model", "gpt-5"], 3, "OPENAI_API_KEY is not set"),
        (["--base-url", "http://127.0.0.1:1/v1"], 6, "Is the server running?"),
        (["--base-url", "ftp://somewhere"], 2, "the address of a server"),
        (["--provider", "acme"], 2, "openai, anthropic"),
        (["--base-url", "URL", "--continue"], 3, "without --continue a new one is created"),
        (["--base-url", "URL", "--continue", "--session", "a"], 2, "no --session: the two cannot be combined"),
        (["--base-url", "URL", "--window", "10"], 2, "window"),
    ],
)
def test_a_chat_that_cannot_start_fails_in_one_line_without_a_session(
    provider: Provider,
    home: Path,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(work)
    monkeypatch.setattr("inmind.core.http.RETRY_DELAYS_SECONDS", ())
    given = [provider.openai if one == "URL" else one for one in arguments]
    result = run_in_process("chat", *given, home=home)
    assert result.exit_code == code
    assert message in result.stderr.splitlines()[-1]
    assert result.stderr.count("\n") == 1 or not arguments
    assert home.exists() == ("--continue" in arguments)
    with Memory.open(home, embedder=None) as memory:
        assert memory.sessions() == []


# -- a real model ------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_a_chat_with_a_real_model_is_stored_like_any_session(home: Path, work: Path) -> None:
    with local_model() as url:
        talk = ("--base-url", url, "--session", "real", "--resource", "ada", "--timeout", "120")
        result = piped("What is the capital of France?\n/note Ada asked for Paris\n", *talk, home=home, work=work)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
    assert "% full" in result.stderr
    assert "What is the capital of France?" in run_in_process("show", "prompt", "real", home=home).stdout
    assert "capital of France" in run_in_process("search", "capital of France", "--resource", "ada", home=home).stdout
    with Memory.open(home, embedder=None) as memory:
        assert memory.session("real").usage.reported_calls == 1
        assert "Ada asked for Paris" in "\n".join(memory.dream("ada").after.splitlines())
