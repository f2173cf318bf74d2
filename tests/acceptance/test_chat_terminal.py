"""`inmind chat` as a person meets it at a terminal, and as a script does in a pipe: in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from threading import Event

import pytest
from chat_terminal import CTRL_D, PATIENCE, AtTerminal, environment
from fork_server import text as decode
from local_model import local_model
from loopback import QuietHandler, listening
from model_server import Said, model_server
from provider import Fails, Provider, asks, says
from terminal import INMIND, at_once, command, warm_inmind, where

from inmind import Memory, Session
from inmind.apps.chat.conversation import STOPPED_MARK
from inmind.apps.chat.input import HISTORY_FILE
from inmind.core.messages import FORMATS
from inmind.core.paths import CONFIG

pytestmark = pytest.mark.spec("I2")

KEY = "sk-very-secret"
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
    (work / "notes.md").write_text("order-123 is late\n")
    return work


def piped(said: str, *arguments: str, home: Path, work: Path, **keys: str) -> subprocess.CompletedProcess[str]:
    line = [*where(home), "chat", *arguments]
    ran = warm_inmind().run(INMIND, *line, stdin=said.encode(), cwd=work, env=environment(**keys))
    return subprocess.CompletedProcess(ran.args, ran.returncode, decode(ran.stdout), decode(ran.stderr))


def only_session(memory: Memory) -> Session:
    [info] = memory.sessions()
    return memory.session(info.id)


def line(session: Session) -> list[tuple[str, str]]:
    messages = [FORMATS[entry.format].read(entry.wire) for entry in session.state.conversation]
    return [("tool" if message.results else message.role, message.text) for message in messages]


@pytest.fixture
def kept(home: Path) -> Generator[Memory]:
    with Memory.open(home, embedder=None) as memory:
        yield memory


# -- at a terminal -----------------------------------------------------------------------------------------


def test_a_person_talks_stops_an_answer_tries_again_and_leaves(provider: Provider, home: Path, work: Path) -> None:
    gate = Event()
    provider.will(
        says("Let me look.", asks("read_file", {"path": "notes.md"})),
        says("It is late."),
        says("Once upon a time", gate=gate),
        Fails(429, "slow down"),
        says("Now it works."),
    )
    with AtTerminal("chat", "--base-url", provider.openai, home=home, cwd=work) as person:
        person.sees("model-1 at http://127.0.0.1")
        person.sees("> ")
        person.says("Where is my order?")
        person.sees("Let me look.\n· read_file notes.md → 1 line\nIt is late.\n")
        person.sees("in mind: notes.md · normal, 1% of 128k · 220 tokens, 80% from cache\n> ")
        person.says("Tell me a story.")
        person.sees("Once upon a time")
        person.presses_ctrl_c(until_it_says="(stopped)\n")
        gate.set()
        person.sees("> ")
        person.says("And now?")
        assert person.sees("/retry asks again.").count("\n") == 1
        person.sees("> ")
        person.says("/retry")
        person.sees("Now it works.")
        person.sees("> ")
        person.types(CTRL_D)
        person.sees("Saved. `inmind chat --session chat-")
        assert person.leaves() == 0
    assert provider.failures == []
    with Memory.open(home, embedder=None) as memory:
        said = line(only_session(memory))
    assert said[4:] == [
        ("user", "Tell me a story."),
        ("assistant", f"Once upon a time\n{STOPPED_MARK}"),
        ("user", "And now?"),
        ("assistant", "Now it works."),
    ]


def test_nothing_is_written_without_a_yes(provider: Provider, home: Path, work: Path) -> None:
    wanted = asks("write_file", {"path": "notes.md", "text": "order-123 is here\n"})
    provider.will(says("", wanted), says("Then not."), says("", wanted), says("Done."), says("", wanted))
    with AtTerminal("chat", "--base-url", provider.openai, home=home, cwd=work) as person:
        person.sees("> ")
        person.says("Change it.")
        assert "-order-123 is late\n+order-123 is here\n" in person.sees("Change notes.md? [y/N] ")
        person.says("")
        person.sees("the user refused.")
        person.sees("Then not.")
        person.sees("> ")
        assert (work / "notes.md").read_text() == "order-123 is late\n"
        person.says("Do it.")
        person.sees("[y/N] ")
        person.says("y")
        person.sees("Done.")
        assert (work / "notes.md").read_text() == "order-123 is here\n"
        (work / "notes.md").write_text("order-123 is late\n")
        person.sees("> ")
        person.says("Once more.")
        person.sees("[y/N] ")
        person.presses_ctrl_c(until_it_says="(stopped)")
        person.sees("> ")
        person.presses_ctrl_c(until_it_says="Saved. ")
        assert person.leaves() == 0
    assert (work / "notes.md").read_text() == "order-123 is late\n"


@pytest.mark.spec("J4")
def test_commands_of_the_chat_show_and_change_memory_and_nothing_stored_can_act(
    provider: Provider, home: Path, work: Path
) -> None:
    provider.will(
        says(HOSTILE, asks("working_memory_note", {"note": f"note {HOSTILE}"})), says("Hello."), says("Two lines.")
    )
    with AtTerminal("chat", "--provider", "anthropic", "--base-url", provider.anthropic, home=home, cwd=work) as person:
        person.sees("> ")
        person.says("Hello")
        person.sees("⟨U+001B⟩]0;owned⟨U+0007⟩⟨U+001B⟩[2J⟨U+009B⟩31m⟨U+202E⟩ and\nthe rest")
        person.sees("> ")
        for asked, answered in {
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
            "/undo": "Hello\nFiles, notes and pages that were written are not changed.",
        }.items():
            person.says(asked)
            person.sees(answered)
            person.sees("\n> ")
        person.says("one\\")
        person.sees("… ")
        person.says("two")
        person.sees("Two lines.")
        person.sees("> ")
        person.says("/quit")
        assert person.leaves() == 0
    for acting in (b"\x1b]0;", b"\x1b[2J", b"\x9b31m", "‮".encode()):
        assert acting not in person.raw
    assert (home / HISTORY_FILE).stat().st_mode & 0o777 == 0o600
    assert "Ada likes tea" in (home / HISTORY_FILE).read_text()
    assert provider.asked[-1].messages[0]["content"][0]["text"] == "one\ntwo"
    with Memory.open(home, embedder=None) as memory:
        assert line(only_session(memory)) == [("user", "one\ntwo"), ("assistant", "Two lines.")]


def test_what_is_pasted_is_one_message(provider: Provider, home: Path, work: Path) -> None:
    provider.will(says("I see two lines."))
    chat = ("chat", "--base-url", provider.openai)
    with AtTerminal(*chat, home=home, cwd=work, terminal="xterm-256color") as person:
        person.sees("> ")
        person.types("\x1b[200~first\nsecond\x1b[201~\n")
        person.sees("I see two lines.")
        person.sees("> ")
        person.types(CTRL_D)
        assert person.leaves() == 0
    with Memory.open(home, embedder=None) as memory:
        assert line(only_session(memory))[0] == ("user", "first\nsecond")


def test_without_an_endpoint_a_person_is_told_how_to_get_one(home: Path, work: Path) -> None:
    with AtTerminal("chat", home=home, cwd=work) as person:
        told = person.sees("[y/N] ")
        assert all(way in told for way in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ollama", "llama-server"))
        person.says("n")
        assert person.leaves() == 0


def test_a_resumed_chat_chooses_a_model_and_reports_its_state_and_other_terminals(home: Path, work: Path) -> None:
    with listening(Several) as url:
        with AtTerminal("chat", "--base-url", url, home=home, cwd=work) as person:
            person.sees("   1  small\n   2  large\n")
            for wrong in ("", "3"):
                person.sees("Which model, by number or name? ")
                person.says(wrong)
            person.sees("Which model, by number or name? ")
            person.says("2")
            person.sees(f"large at {url}, session")
            person.sees("Context window unknown, assuming 128,000 tokens: set --window or window of [model].\n> ")
            person.says("Where is my order?")
            person.sees(f"Is 'large' a model of {url}? Your message is saved; /retry asks again.")
            person.sees("> ")
            person.says("exit")
            assert person.leaves() == 0
        with AtTerminal("chat", "--continue", "--model", "small", "--base-url", url, home=home, cwd=work) as person:
            person.sees(" (resumed).\n")
            person.sees("About: Where is my order?\nLast: Where is my order? → no answer yet: /retry\n> ")
            with Memory.open(home, embedder=None) as memory:
                session = only_session(memory)
                session.add([{"role": "user", "content": "Hello from there"}])
                person.says("/undo")
                person.sees("New from another process: Hello from there\n")
                person.sees("From another chat: Hello from there\nRemove it? [y/N] ")
                person.says("n")
                person.sees("> ")
                assert len(line(session)) == 2
                for _ in range(2):
                    person.says("/undo")
                    person.sees("[y/N] ")
                    person.says("y")
                    person.sees("Removed 1 message: ")
                    person.sees("> ")
                assert line(session) == []
            person.says("/undo")
            person.sees("Nothing to undo.\n> ")
            person.says("/exit")
            assert person.leaves() == 0


class Several(QuietHandler):
    """An endpoint that has two models, and knows neither when it is asked."""

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
    provider.will(says("Hello."))
    gate = Event()
    with model_server() as dreaming:
        dreaming.will(*[Said("{}", gate=gate)] * 2)
        home.mkdir()
        (home / CONFIG).write_text(f'[model]\nname = "slow"\nurl = "{dreaming.url}"\n')
        chat = ("chat", "--base-url", provider.openai, "--resource", "ada")
        with AtTerminal(*chat, home=home, cwd=work) as person:
            for said in ("Hello", "/note Ada likes tea", "/dream"):
                person.sees("> ")
                person.says(said)
            has_come(lambda: len(dreaming.asked) == 1)
            person.presses_ctrl_c(until_it_says="changed nothing")
            person.sees("> ")
            person.says("/dream")
            has_come(lambda: len(dreaming.asked) == 2)
            person.process.terminate()
            assert person.leaves() == 128 + signal.SIGTERM
        gate.set()


def has_come(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until, "it never came"
        time.sleep(0.01)


# -- in a pipe ---------------------------------------------------------------------------------------------


def test_in_a_pipe_the_answers_are_the_output_and_the_session_goes_on_the_next_time(
    provider: Provider, home: Path, work: Path
) -> None:
    provider.will(says("Hello."), says("", asks("read_file", {"path": "notes.md"})), says("It is late."))
    asked = piped("Hello\nWhere is my order?\n", "--base-url", provider.openai, home=home, work=work)
    assert (asked.stdout, asked.returncode) == ("Hello.\nIt is late.\n", 0)
    told = asked.stderr.splitlines()
    assert told[1] == "· read_file notes.md → 1 line"
    assert all(len(one) <= 80 for one in told)
    assert "\x1b" not in asked.stderr
    provider.will(says("As I said, it is late."))
    again = piped("Once more?\n", "--continue", "--base-url", provider.openai, home=home, work=work)
    assert again.stdout == "As I said, it is late.\n"
    refused = piped("/undo\n", "--continue", "--base-url", provider.openai, home=home, work=work)
    assert refused.returncode == 3
    assert "no exchange of this chat to undo" in refused.stderr
    assert "Where is my order?" in str(provider.asked[-1].messages)
    with Memory.open(home, embedder=None) as memory:
        assert len(line(only_session(memory))) == 8


def test_in_a_pipe_answers_can_be_read_as_json_a_line_each(provider: Provider, home: Path, work: Path) -> None:
    provider.will(
        says("Let me look.", asks("read_file", {"path": "notes.md"}), asks("read_file", "{no")),
        says("It is\nlate."),
        says("It is a file."),
        says("A file."),
        Fails(401, "who are you?"),
    )
    said = "Where is my order?\n/etc/hosts what is it\n/retry\n/session\nAnd now?\n"
    anywhere = provider.openai.replace("127.0.0.1", "0.0.0.0")  # noqa: S104 -- it is asked there: the same server, at an address that is no loopback
    talk = ("--json", "--session", "j", "--base-url", anywhere, "--key-env", "MY_KEY")
    asked = piped(said, *talk, home=home, work=work, MY_KEY=KEY)
    first, second, third, failed = [json.loads(one) for one in asked.stdout.splitlines()]
    assert asked.returncode == 6
    assert first == {
        "session": "j",
        "call": 2,
        "text": "Let me look.\nIt is\nlate.",
        "tools": [
            {"name": "read_file", "arguments": {"path": "notes.md"}, "error": False},
            {"name": "read_file", "arguments": "{no", "error": True},
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
    assert "/etc/hosts what is it" in str(provider.asked[2].messages[-1])
    assert (failed["session"], failed["text"], failed["error"]["code"]) == ("j", None, "MODEL_FAILED")
    assert failed.keys() == first.keys()
    assert asked.stderr.startswith(f"inmind: MY_KEY is sent to {anywhere} unencrypted\n")
    assert provider.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert "Session j of" in asked.stderr
    assert asked.stderr.splitlines()[-1].startswith("inmind: MODEL_FAILED: ")


@pytest.mark.spec("N65")
def test_a_closed_reader_leaves_no_call_open(provider: Provider, home: Path, work: Path) -> None:
    provider.will(says("", asks("write_file", {"path": "new.md", "text": "hello\n"}), asks("list_files")))
    theirs, ours = os.pipe()
    os.close(theirs)
    arguments = ("chat", "--allow-writes", "--session", "left", "--base-url", provider.openai)
    with subprocess.Popen(
        command(*arguments, home=home), stdin=subprocess.PIPE, stdout=ours, stderr=ours, cwd=work, env=environment()
    ) as chat:
        os.close(ours)
        chat.communicate(b"Write.\n", timeout=60)
    assert chat.returncode == 141
    assert (work / "new.md").read_text() == "hello\n"
    with Memory.open(home, embedder=None) as memory:
        assert [role for role, _ in line(memory.session("left"))] == ["user", "assistant", "tool", "tool"]


@pytest.mark.exhaustive
def test_in_a_pipe_nothing_is_written_unless_that_was_allowed(provider: Provider, home: Path, work: Path) -> None:
    wanted = asks("write_file", {"path": "new.md", "text": "hello\n"})
    provider.will(says("", wanted), says("I may not."))
    refused = piped("Write.\n", "--base-url", provider.openai, home=home, work=work)
    assert (refused.stdout, refused.returncode) == ("I may not.\n", 0)
    assert "--allow-writes" in refused.stderr
    assert not (work / "new.md").exists()
    provider.will(says("", wanted), says("Done."))
    allowed = piped("Write.\n", "--allow-writes", "--base-url", provider.openai, home=home, work=work)
    assert allowed.stdout == "Done.\n"
    assert (work / "new.md").read_text() == "hello\n"


def test_in_a_pipe_a_failure_is_one_line_and_an_exit_code_and_no_key_is_ever_shown(
    provider: Provider, home: Path, work: Path
) -> None:
    provider.will(Fails(401, f"bad key {KEY}"))
    failed = piped("Hello\nAnd?\n", "--base-url", provider.openai, home=home, work=work, OPENAI_API_KEY=KEY)
    assert failed.returncode == 6
    assert failed.stderr.startswith("inmind: MODEL_FAILED: ")
    assert failed.stderr.count("\n") == 1
    assert "OPENAI_API_KEY" in failed.stderr
    assert provider.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in failed.stderr + failed.stdout
    assert len(provider.asked) == 1
    for file in home.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()
    with Memory.open(home, embedder=None) as memory:
        assert line(only_session(memory)) == [("user", "Hello")]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
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
def test_what_cannot_begin_says_why_in_one_line_and_begins_nothing(
    provider: Provider,
    home: Path,
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(work)
    monkeypatch.setattr("inmind.core.http.RETRY_DELAYS_SECONDS", ())
    given = [provider.openai if one == "URL" else one for one in arguments]
    result = at_once("chat", *given, home=home)
    assert result.exit_code == code
    assert said in result.stderr.splitlines()[-1]
    assert result.stderr.count("\n") == 1 or not arguments
    assert home.exists() == ("--continue" in arguments)
    with Memory.open(home, embedder=None) as memory:
        assert memory.sessions() == []


# -- a real model ------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_a_real_model_is_talked_to_and_its_session_is_one_as_any_other(home: Path, work: Path) -> None:
    with local_model() as url:
        talk = ("--base-url", url, "--session", "real", "--resource", "ada", "--timeout", "120")
        asked = piped("What is the capital of France?\n/note Ada asked for Paris\n", *talk, home=home, work=work)
    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.strip()
    assert "of 8,192" in asked.stderr
    assert "What is the capital of France?" in at_once("show", "prompt", "real", home=home).stdout
    assert "capital of France" in at_once("search", "capital of France", "--resource", "ada", home=home).stdout
    with Memory.open(home, embedder=None) as memory:
        assert memory.session("real").usage.reported_calls == 1
        assert "Ada asked for Paris" in "\n".join(memory.dream("ada").after.splitlines())
