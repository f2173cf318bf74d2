"""A host passes its complete list of messages, and the session stores the new ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import Home, a_call, a_result, assistant, turns, user

from inmind import Memory, Session
from inmind.core.events.session import HistorySpliced
from inmind.errors import InvalidInput, KeyReused


def transcript_lines(home: Path) -> list[dict[str, Any]]:
    (file,) = home.glob("sessions/*/support-42/messages.jsonl")
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


@pytest.mark.both_stores
@pytest.mark.spec("A6")
def test_a_longer_list_stores_only_new_messages(session: Session) -> None:
    session.prepare(turns(2))
    session.prepare([*turns(2), assistant("done"), user("thanks")])
    assert [event.kind for event in session.events()].count("message") == 7


def test_the_stored_history_is_sent_if_no_list_is_given(session: Session) -> None:
    session.add([user("hello"), assistant("hi"), user("who am I")])
    sent = session.prepare().messages
    assert [message["content"] for message in sent[:2]] == ["hello", "hi"]


@pytest.mark.embedded
@pytest.mark.spec("A4")
def test_a_regenerated_tail_is_a_branch_and_the_old_one_stays_in_the_journal(session: Session, home: Path) -> None:
    session.prepare([user("a"), assistant("b"), user("c")])
    session.prepare([user("a"), assistant("b"), user("C, really")])
    assert [entry.wire["content"] for entry in session.state.conversation] == ["a", "b", "C, really"]
    assert [event.payload for event in session.events() if event.kind == "splice"] == [HistorySpliced(2, 3, 1)]
    assert [line.get("splice") or line["message"]["content"] for line in transcript_lines(home)] == [
        "a",
        "b",
        "c",
        "C, really",
        [2, 3, 1],
    ]


def test_the_conversation_follows_a_trimmed_list(session: Session) -> None:
    talk = turns(6)
    session.prepare(talk)
    for start in (2, 4, 6):
        talk = [*talk, assistant("ok"), user("next")]
        session.prepare(talk[start:])
        assert session.state.conversation.wires == talk[start:]
    assert [event.kind for event in session.events()].count("message") == len(talk)


@pytest.mark.spec("A6")
def test_a_message_id_is_stored_once(session: Session) -> None:
    message = {**user("hello"), "id": "m1"}
    session.add([message])
    session.add([message, {**assistant("hi"), "id": "m2"}])
    assert [entry.wire["id"] for entry in session.state.conversation] == ["m1", "m2"]
    with pytest.raises(KeyReused):
        session.add([{**user("something else"), "id": "m1"}])


@pytest.mark.spec("A6")
def test_a_tool_result_added_twice_is_stored_once_unless_its_call_id_is_reused(
    session: Session,
) -> None:
    session.add([user("look"), a_call("c1"), a_result("c1", "found")])
    session.add([a_result("c1", "found")])
    assert len(session.state.conversation) == 3
    session.add([a_call("c1"), a_result("c1", "found again")])
    assert len(session.state.conversation) == 5


@pytest.mark.spec("A6")
def test_a_tool_result_observed_twice_under_one_id_is_stored_once(session: Session) -> None:
    for _ in range(2):
        session.observe("get_page", {"id": 1}, {"page": {"id": "page-1"}}, id="call-1")
        session.observe("get_page", {"id": 1}, {"page": {"id": "page-1"}}, id="call-1", key="another")
    assert [event.kind for event in session.events()].count("observed") == 1


def test_changing_messages_later_changes_nothing(session: Session) -> None:
    part = {"type": "text", "text": "before"}
    session.prepare([{"role": "user", "content": [part]}])
    part["text"] = "after"
    assert session.state.conversation[0].wire["content"][0]["text"] == "before"


def test_changing_a_prompt_later_changes_nothing(session: Session) -> None:
    session.add([user("one"), assistant("two"), {"role": "user", "content": [{"type": "text", "text": "three"}]}])
    prompt = session.prepare(tools=[{"type": "function", "function": {"name": "f"}}])
    for message in prompt.messages:
        message["content"] = "overwritten"
    (prompt.tools or [])[0]["function"]["name"] = "g"
    assert [entry.wire["content"] for entry in session.state.conversation][:2] == ["one", "two"]
    assert session.prepare().messages[0]["content"] == "one"
    assert session.prompt(1).tools == [{"type": "function", "function": {"name": "f"}}, *session.tools()]


def test_messages_are_sent_unchanged(session: Session) -> None:
    talk = turns(2)
    sent = session.prepare(talk).messages
    assert json.dumps(sent[:-1]) == json.dumps(talk[:-1])
    assert talk == turns(2)


def test_client_objects_are_accepted_as_messages(session: Session) -> None:
    chat = pytest.importorskip("openai.types.chat")
    reply = chat.ChatCompletionMessage.model_validate(a_call("c1"))
    talk: list[Any] = [user("look"), reply, a_result("c1", "found")]
    session.prepare(talk)
    session.prepare([*talk, assistant("there"), user("good")])
    assert [event.kind for event in session.events()].count("message") == 5
    assert session.state.conversation[1].wire["tool_calls"][0]["id"] == "c1"


def test_an_unanswered_call_is_answered_in_the_prompt_and_named_in_the_report(session: Session) -> None:
    prompt = session.prepare([user("look"), a_call("c1"), user("never mind")])
    roles = [message["role"] for message in prompt.messages]
    assert roles == ["user", "assistant", "tool", "user"]
    assert any("c1" in repair for repair in prompt.report.repaired)
    assert [entry.wire["role"] for entry in session.state.conversation] == ["user", "assistant", "user"]


@pytest.mark.embedded
@pytest.mark.spec("E1")
def test_a_session_folder_has_the_documented_files(session: Session, home: Path) -> None:
    session.prepare(turns(1))
    session.write("detail/design.md", "long")
    folder = home / "sessions" / "--website--" / "support-42"
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file() and p.name[0] != ".") == [
        "messages.jsonl",
        "meta.json",
        "working-memory/detail/design.md",
        "working-memory/overview.md",
    ]
    assert (folder / "working-memory" / "archive").is_dir()


@pytest.mark.both_stores
@pytest.mark.spec("E1")
def test_sessions_are_listed_switched_and_resumed(home: Home) -> None:
    with Memory.open(home) as memory:
        memory.session("one", resource="ada", cwd="/a").prepare([user("in one")])
        memory.session("two", resource="bob", cwd="/b/c").prepare([user("in two"), assistant("x"), user("y")])
        memory.session("one").add([assistant("still in one")])
    with Memory.open(home) as memory:
        assert [(info.id, info.resource, info.cwd, info.messages, info.calls) for info in memory.sessions()] == [
            ("one", "ada", "/a", 2, 1),
            ("two", "bob", "/b/c", 3, 1),
        ]
        assert [entry.wire["content"] for entry in memory.session("one").state.conversation] == [
            "in one",
            "still in one",
        ]
        assert memory.session("two").resource == "bob"


@pytest.mark.embedded
@pytest.mark.spec("E1")
def test_a_legacy_session_opens_and_its_file_stays(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = home / "sessions" / "--website--"
    folder.mkdir(parents=True)
    wires = [user("old question"), assistant("old answer")]
    text = "".join(json.dumps(wire) + "\n" for wire in wires) + '{"broken\n' + json.dumps({"message": user("last")})
    (folder / "old-1.jsonl").write_text(text)
    (folder / "old-1.meta.json").write_text(json.dumps({"cwd": "/website", "title": "t"}))
    with Memory.open(home) as memory:
        assert [(info.id, info.legacy, info.messages) for info in memory.sessions()] == [("old-1", True, 3)]
        session = memory.session("old-1")
        assert [entry.wire["content"] for entry in session.state.conversation] == ["old question", "old answer", "last"]
        assert [(info.id, info.legacy) for info in memory.sessions()] == [("old-1", False)]
    assert (folder / "old-1.jsonl").read_text() == text
    assert "line 3 is not a message" in caplog.text


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ("hello", "messages"),
        ([None], "messages[0]"),
        ([user("a"), {"role": "robot", "content": "x"}], "messages[1].role"),
        ([user("a"), {"role": "user", "content": 7}], "messages[1].content"),
        ([{"role": "user", "content": "\ud800"}], "messages[0].content"),
        ([{"role": "user", "content": "x", "when": float("nan")}], "messages[0].when"),
        ([{"role": "user", "content": "x", "raw": b"bytes"}], "messages[0].raw"),
    ],
)
@pytest.mark.spec("J3")
def test_an_invalid_message_is_located_and_nothing_is_stored(session: Session, messages: Any, field: str) -> None:
    before = session.state.seq
    with pytest.raises(InvalidInput) as error:
        session.prepare(messages)
    assert error.value.field == field
    assert session.state.seq == before


def test_a_recursive_message_is_rejected(session: Session) -> None:
    endless: dict[str, Any] = {"role": "user", "content": "x"}
    endless["again"] = endless
    with pytest.raises(InvalidInput, match="levels of nesting"):
        session.prepare([endless])
