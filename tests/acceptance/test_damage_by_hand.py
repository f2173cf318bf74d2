"""Homes changed with an editor or with SQLite: never fatal, never trusted, always reported.

Rows of the journal cannot be rebuilt: an unreadable row raises an error that names it. Transcripts, snapshots and
legacy sessions are worked around.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import a_call, a_result, assistant, user

from inmind import Memory
from inmind.core.events.base import Origin, Trust
from inmind.documents.document import NOTES_PAGE_PATH
from inmind.documents.notes_page import parse_notes
from inmind.errors import Damaged, InmindError, NotDurable
from inmind.session.session import Session

DEEP = "[" * 100_000


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without snapshots, so that every row is read."""
    monkeypatch.setattr("inmind.store.stream.SNAPSHOT_INTERVAL_EVENTS", 1_000)
    return tmp_path / "home"


def open_session(memory: Memory) -> Session:
    return memory.session("s", resource="ada", cwd="/w")


def change_database(place: Path, statement: str, *values: object) -> None:
    """Change the database in another process: one process must not open it twice."""
    script = (
        "import json, sys, apsw\n"
        "path, statement, values = json.loads(sys.stdin.read())\n"
        "connection = apsw.Connection(path)\n"
        "connection.set_busy_timeout(10_000)\n"
        "connection.execute(statement, values)\n"
        "assert connection.total_changes(), 'nothing was changed'\n"
    )
    given = json.dumps([str(place / "inmind.db"), statement, values])
    subprocess.run([sys.executable, "-c", script], input=given, text=True, check=True)


def warnings(log: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in log.records if record.levelno >= logging.WARNING]


# -- messages.jsonl ----------------------------------------------------------------------------------------


def transcript(place: Path) -> Path:
    (file,) = place.glob("sessions/*/s/messages.jsonl")
    return file


def set_aside_files(place: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(place.rglob("messages.jsonl.damaged-*"))]


def fill_home(place: Path) -> bytes:
    """Create a home with messages and one undo, and return its transcript."""
    with Memory.open(place) as memory:
        session = open_session(memory)
        for n in range(4):
            session.add([user(f"question {n}"), assistant(f"answer {n}")])
        session.undo()
        session.prepare([*session.state.conversation.wires, user("edited")][2:])
    return transcript(place).read_bytes()


def append(line: str) -> Callable[[bytes], bytes]:
    return lambda data: data + line.encode()


def without_a_middle_line(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:3], *lines[4:]])


def with_a_forged_middle_line(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:3], b'{"seq":3,"message":{"role":"user","content":"forged"}}\n', *lines[3:]])


def without_its_last_line_and_one_of_the_middle(data: bytes) -> bytes:
    return b"".join(without_a_middle_line(data).splitlines(keepends=True)[:-1])


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "endless number": append('{"seq": 1e999}\n'),
    "deep nesting": append(f"{DEEP}\n"),
    "deep nesting, unended": append(DEEP),
    "a note, unended": append("remember the milk"),
    "number beyond the journal": append('{"seq":999999}\n'),
    "number below the journal": append('{"seq":-1}\n'),
    "number of no event": append('{"seq":0}\n'),
    "a text for a number": append('{"seq":"3"}\n'),
    "a truth for a number": append('{"seq":true}\n'),
    "no object": append("7\n"),
    "not UTF-8": lambda data: data + b"\xff\xfe\n",
    "a middle line deleted": without_a_middle_line,
    "a middle line forged": with_a_forged_middle_line,
    "two lines deleted": without_its_last_line_and_one_of_the_middle,
}


@pytest.mark.spec("C05")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_transcript_changed_by_hand_is_set_aside_rewritten_and_reported(
    place: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = fill_home(place)
    damaged = DAMAGES[damage](whole)
    transcript(place).write_bytes(damaged)
    with Memory.open(place) as memory:
        session = open_session(memory)
        assert transcript(place).read_bytes() == whole
        assert set_aside_files(place) == [damaged]
        (warning,) = warnings(caplog)
        assert "messages.jsonl was changed by another program" in warning
        assert [notice in warning for notice in session.prepare().report.notices] == [True]
    with Memory.open(place) as memory:
        open_session(memory)
    assert transcript(place).read_bytes() == whole
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_transcript_changed_between_two_calls_is_rewritten(place: Path, damage: str) -> None:
    """C05: a foreign end and missing lines are fixed at once, other changes at the next start."""
    fill_home(place)
    with Memory.open(place) as memory:
        session = open_session(memory)
        transcript(place).write_bytes(DAMAGES[damage](transcript(place).read_bytes()))
        session.add([user("later")])
    with Memory.open(place) as memory:
        open_session(memory)
    lines = [json.loads(line) for line in transcript(place).read_text().splitlines()]
    with Memory.open(place) as memory:
        events = open_session(memory).events()
    assert [line["seq"] for line in lines] == [e.seq for e in events if e.kind in ("message", "splice", "reverted")]
    assert len(set_aside_files(place)) == 1


@pytest.mark.parametrize("partial", [b"{", b'{"se', b'{"seq":99,"at":"20'])
def test_a_partial_last_line_is_not_reported(place: Path, partial: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """C02: after a kill, the partial line is written again without a notice."""
    whole = fill_home(place)
    transcript(place).write_bytes(whole + partial)
    with Memory.open(place) as memory:
        open_session(memory)
    assert (transcript(place).read_bytes(), set_aside_files(place), warnings(caplog)) == (whole, [], [])


def test_two_processes_writing_in_turn_do_not_report_changes(place: Path) -> None:
    fill_home(place)
    with Memory.open(place) as one, Memory.open(place) as other:
        sessions = [open_session(one), open_session(other)]
        for n in range(6):
            sessions[n % 2].add([user(f"turn {n}")])
            open_session(one)
    assert set_aside_files(place) == []


# -- legacy sessions ---------------------------------------------------------------------------------------


def legacy_file(place: Path, *lines: str, name: str = "old") -> Path:
    folder = place / "sessions" / "--w--"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.jsonl"
    file.write_text("\n".join(lines), "utf-8")
    return file


@pytest.mark.spec("E1")
@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x1c"])
def test_only_a_newline_ends_a_line_of_a_legacy_session(place: Path, mark: str) -> None:
    text = f"one{mark}two"
    legacy_file(place, json.dumps(user(text), ensure_ascii=False), json.dumps(assistant("yes")))
    with Memory.open(place) as memory:
        wires = memory.session("old").state.conversation.wires
    assert [wire["content"] for wire in wires] == [text, "yes"]


@pytest.mark.spec("E1")
def test_a_legacy_session_gives_no_text_more_trust_than_a_person(place: Path) -> None:
    """Tool results stay data, and a system prompt in a file is not from the operator."""
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "x"}
    mixed: dict[str, Any] = {"role": "user", "content": [result, {"type": "text", "text": "and I say"}]}
    system: dict[str, Any] = {"role": "system", "content": "obey"}
    wires = [system, user("u"), a_call("c1"), a_result("c1"), assistant("a"), mixed]
    legacy_file(place, *map(json.dumps, wires))
    with Memory.open(place) as memory:
        events = [event for event in memory.session("old").events() if event.kind == "message"]
    assert [(event.origin, event.trust) for event in events] == [
        (Origin.OPERATOR, Trust.PERSON),
        (Origin.USER, Trust.PERSON),
        (Origin.ASSISTANT, Trust.AGENT),
        (Origin.TOOL, Trust.DATA),
        (Origin.ASSISTANT, Trust.AGENT),
        (Origin.TOOL, Trust.DATA),
    ]


def a_folder(file: Path) -> None:
    file.mkdir()


def a_dangling_link(file: Path) -> None:
    file.symlink_to(file.parent / "nowhere")


def a_link_to_itself(file: Path) -> None:
    file.symlink_to(file)


def a_pipe(file: Path) -> None:
    os.mkfifo(file)


def unreadable(file: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can read every file")
    file.write_text(json.dumps(user("hidden")))
    file.chmod(0)


def a_link(file: Path) -> None:
    elsewhere = file.parents[3] / "secret.jsonl"
    elsewhere.write_text(json.dumps(user("not yours to read")))
    file.symlink_to(elsewhere)


ODD_FILES = [a_folder, a_link, a_dangling_link, a_link_to_itself, a_pipe, unreadable]


@pytest.mark.spec("E1", "C05")
@pytest.mark.parametrize("odd", ODD_FILES)
def test_an_odd_file_does_not_hide_other_sessions(
    place: Path, odd: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    legacy_file(place, json.dumps(user("still here")), name="good")
    odd(place / "sessions" / "--w--" / "odd.jsonl")
    with Memory.open(place) as memory:
        listed = {info.id: info.messages for info in memory.sessions()}
        assert (listed["good"], listed.get("odd", 0)) == (1, 0)
        assert len(warnings(caplog)) == 1
        assert "odd.jsonl" in warnings(caplog)[0]
        assert len(memory.session("odd").state.conversation) == 0
        assert len(memory.session("good").state.conversation) == 1


@pytest.mark.spec("E1", "C05")
@pytest.mark.parametrize("line", [DEEP, "remember the milk", '{"role": "user"', '{"type": "session', '"session"', "7"])
def test_an_invalid_line_is_skipped_and_logged(place: Path, line: str, caplog: pytest.LogCaptureFixture) -> None:
    legacy_file(place, json.dumps(user("one")), line, json.dumps(user("two")))
    with Memory.open(place) as memory:
        assert [info.id for info in memory.sessions()] == ["old"]
        assert warnings(caplog) == []
        assert [wire["content"] for wire in memory.session("old").state.conversation.wires] == ["one", "two"]
    (warning,) = warnings(caplog)
    assert "old.jsonl line 2 is not a message" in warning


@pytest.mark.parametrize("meta", [DEEP, "[]", '{"cwd": 7}', '{"cwd": "a\\u0000b"}', '{"cwd": "\\ud800"}', "\x00"])
def test_a_legacy_session_opens_with_any_metadata(place: Path, meta: str) -> None:
    file = legacy_file(place, json.dumps(user("hello")))
    file.with_name("old.meta.json").write_text(meta)
    with Memory.open(place) as memory:
        assert [(info.id, info.cwd) for info in memory.sessions()] == [("old", "")]
        assert len(memory.session("old", cwd="/w").state.conversation) == 1


# -- snapshots ---------------------------------------------------------------------------------------------

JUNK = ["{}", "", "nothing", "[]", "7", "null", '{"seq":"one"}', DEEP, "0123456789abcdef\n{}"]


@pytest.fixture
def home_with_snapshots(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with snapshots."""
    monkeypatch.setattr("inmind.store.stream.SNAPSHOT_INTERVAL_EVENTS", 3)
    return place


def contents_of(place: Path) -> tuple[list[Any], dict[str, int], str, str]:
    with Memory.open(place) as memory:
        session = open_session(memory)
        texts = [wire["content"] for wire in session.state.conversation.wires]
        return texts, session.documents(), session.overview, session.read("MEMORY.md")


@pytest.mark.spec("A2", "C05")
@pytest.mark.parametrize("junk", JUNK)
def test_an_unreadable_snapshot_is_not_used(
    home_with_snapshots: Path, junk: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything is folded from the beginning, and the next write makes a new snapshot."""
    with Memory.open(home_with_snapshots) as memory:
        session = open_session(memory)
        for n in range(5):
            session.add([user(f"message {n}")])
            session.write("MEMORY.md", f"state {n}\n")
        session.write("overview.md", "# the page\n")
    before = contents_of(home_with_snapshots)
    change_database(home_with_snapshots, "UPDATE snapshots SET body = ?", junk)
    assert contents_of(home_with_snapshots) == before
    (one, other) = warnings(caplog)
    assert "ignoring the damaged snapshot of session/s" in one
    assert "ignoring the damaged snapshot of resource/ada" in other
    with Memory.open(home_with_snapshots) as memory:
        open_session(memory).add([user("more")])
        open_session(memory).write("MEMORY.md", "newest\n")
    caplog.clear()
    assert contents_of(home_with_snapshots)[3] == "newest\n"
    assert warnings(caplog) == []


def test_a_changed_snapshot_is_not_used(home_with_snapshots: Path) -> None:
    """A2: a forged snapshot would replace the real history."""
    with Memory.open(home_with_snapshots) as memory:
        session = open_session(memory)
        session.write("MEMORY.md", "state\n")
        for n in range(5):
            session.write("memory/scratch.md", f"{n}\n")
    before = contents_of(home_with_snapshots)
    change_database(home_with_snapshots, "UPDATE snapshots SET body = replace(body, 'state', 'forged')")
    assert contents_of(home_with_snapshots) == before


def test_a_snapshot_of_another_stream_is_not_used(home_with_snapshots: Path) -> None:
    """A2: events between its position and the claimed one would be skipped."""
    with Memory.open(home_with_snapshots) as memory:
        session = open_session(memory)
        session.write("MEMORY.md", "state\n")
        for n in range(5):
            session.add([user(f"message {n}")])
    before = contents_of(home_with_snapshots)
    change_database(home_with_snapshots, "UPDATE snapshots SET seq = 1")
    assert contents_of(home_with_snapshots) == before


# -- the journal -------------------------------------------------------------------------------------------

DAMAGED_ROWS: dict[str, tuple[str, object]] = {
    "origin": ("UPDATE events SET origin = ?", "unknown"),
    "trust": ("UPDATE events SET trust = ?", 9),
    "sources that are no JSON": ("UPDATE events SET sources = ?", "[broken"),
    "sources that are no list": ("UPDATE events SET sources = ?", '"abc"'),
    "sources that are no texts": ("UPDATE events SET sources = ?", "[1]"),
    "deep sources": ("UPDATE events SET sources = ?", DEEP),
    "deep body": ("UPDATE events SET body = ?", DEEP),
    "body that is no JSON": ("UPDATE events SET body = ?", "{broken"),
    "body that is no object": ("UPDATE events SET body = ?", "[1]"),
    "body that is no text": ("UPDATE events SET body = CAST(x'ff' AS TEXT) WHERE ? > 0", 1),
    "time": ("UPDATE events SET at = ?", 2**62),
}


@pytest.mark.spec("C05")
@pytest.mark.parametrize("damage", DAMAGED_ROWS)
def test_an_unreadable_row_is_named(place: Path, damage: str) -> None:
    fill_home(place)
    change_database(place, *DAMAGED_ROWS[damage])
    with Memory.open(place) as memory, pytest.raises(Damaged) as caught:
        open_session(memory)
    assert "session/s#1" in str(caught.value) or "inmind.db" in str(caught.value)


@pytest.mark.spec("M36")
def test_an_event_of_an_unknown_kind_says_to_upgrade(place: Path) -> None:
    fill_home(place)
    change_database(place, "UPDATE events SET kind = ? WHERE seq = 3", "telepathy")
    with Memory.open(place) as memory, pytest.raises(Damaged, match="newer inmind") as caught:
        open_session(memory)
    assert "session/s#3" in str(caught.value)
    assert "telepathy" in str(caught.value)
    assert "upgrade" in caught.value.reason


@pytest.mark.parametrize("damage", DAMAGED_ROWS)
def test_other_sessions_are_not_affected(place: Path, damage: str) -> None:
    """C05: an unreadable row affects only its session."""
    fill_home(place)
    with Memory.open(place) as memory:
        memory.session("other", resource="bob", cwd="/w").add([user("hello")])
    statement, value = DAMAGED_ROWS[damage]
    where = " AND" if "WHERE" in statement else " WHERE"
    of_one = "stream = (SELECT id FROM streams WHERE name = 'session/s')"
    change_database(place, f"{statement}{where} {of_one}", value)
    with Memory.open(place) as memory:
        other = memory.session("other", resource="bob")
        other.add([user("again")])
        assert [wire["content"] for wire in other.state.conversation.wires] == ["hello", "again"]
        with pytest.raises(InmindError):
            open_session(memory)


@pytest.mark.embedded
@pytest.mark.spec("J1")
@pytest.mark.parametrize("instead", [False, True], ids=["removed", "replaced"])
def test_a_removed_journal_accepts_no_more_writes(home: Path, instead: bool) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s", resource="ada")
        session.note("one")
        for file in home.glob("inmind.db*"):
            file.rename(file.with_name(f"gone-{file.name}"))
        if instead:
            (home / "inmind.db").touch()
        with pytest.raises(NotDurable, match="removed or replaced while it was in use"):
            session.note("two")
        for file in home.glob("gone-*"):
            file.rename(file.with_name(file.name.removeprefix("gone-")))
        session.note("three")
    with Memory.open(home) as memory:
        page = memory.resource("ada").state.documents.text(NOTES_PAGE_PATH)
    assert [note.text for note in parse_notes(page)] == ["one", "three"]
