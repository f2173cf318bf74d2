"""Reopening, undo, past states, and past prompts byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import Home, a_call, assistant, turns, user

from inmind import Memory, Session
from inmind.core.encoding import to_json
from inmind.core.events.base import Draft, Event, Origin
from inmind.core.events.session import PromptPrepared
from inmind.errors import InvalidInput, NotFound, PromptNotRebuilt
from inmind.memory.backends import FolderBackend
from inmind.prompt.templates import WORDING
from inmind.session.state import SessionFold, SessionState
from inmind.store.stream import SNAPSHOT_INTERVAL_EVENTS
from inmind.testing import InMemoryStore


def fifty_calls(session: Session) -> list[str]:
    """A conversation with changes of memory, edited messages and changing host tools."""
    sent: list[str] = []
    talk = [{"role": "system", "content": "You edit."}]
    for call in range(50):
        talk += [user(f"question {call}")]
        if call % 2 == 0:
            session.write("overview.md", session.overview + f"\n- fact {call}")
        if call % 11 == 10:
            talk = [*talk[:-3], user(f"another question {call}")]
        tools = [{"type": "function", "function": {"name": f"tool_{call // 20}"}}]
        sent.append(json.dumps(session.prepare(talk, tools=tools).request, ensure_ascii=False))
        talk += [assistant(f"answer {call}")]
    return sent


@pytest.mark.both_stores
@pytest.mark.spec("A4")
def test_any_prompt_of_a_fifty_call_session_is_rebuilt_byte_for_byte_after_reopening(home: Home) -> None:
    with Memory.open(home) as memory:
        sent = fifty_calls(memory.session("long"))
    with Memory.open(home) as memory:
        session = memory.session("long")
        assert session.state.prompt.calls == 50
        for call in (7, 1, 50, 12, 33):
            assert json.dumps(session.prompt(call).request, ensure_ascii=False) == sent[call - 1]


@pytest.mark.spec("A4")
def test_an_old_prompt_keeps_its_wording(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(home) as memory:
        sent = memory.session("s").prepare([user("hi")]).request
    new = {**WORDING, "guide": "New words.", "reminder": "New reminder."}

    def return_new_wording(commands: object, present: object) -> dict[str, str]:  # noqa: ARG001 -- as wording_for is called
        return new

    monkeypatch.setattr("inmind.prompt.plan.wording_for", return_new_wording)
    with Memory.open(home) as memory:
        session = memory.session("s")
        now = session.prepare([user("hi")]).request
        assert "New words." in now["messages"][0]["content"]
        assert session.prompt(1).request == sent


@pytest.mark.spec("A4")
def test_a_prompt_that_cannot_be_rebuilt_exactly_raises(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    session.prepare([user("hi")])
    monkeypatch.setattr("inmind.prompt.render.RENDERING_VERSION", "another")
    with pytest.raises(PromptNotRebuilt) as error:
        session.prompt(1)
    assert error.value.call == 1


@pytest.mark.both_stores
@pytest.mark.spec("A2")
def test_reopening_restores_the_same_state(home: Home) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s")
        fifty_calls(session)
        before = to_json(SessionFold("session/s").freeze(session.state))
        assert session.state.seq > SNAPSHOT_INTERVAL_EVENTS
    with Memory.open(home) as memory:
        session = memory.session("s")
        assert to_json(SessionFold("session/s").freeze(session.state)) == before


@pytest.mark.both_stores
@pytest.mark.spec("A2")
def test_the_state_is_the_same_without_a_snapshot(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s")
        fifty_calls(session)
        with_snapshot = to_json(SessionFold("session/s").freeze(session.state))
    monkeypatch.setattr(SessionFold, "version", SessionFold.version + 1)
    with Memory.open(home) as memory:
        session = memory.session("s")
        assert to_json(SessionFold("session/s").freeze(session.state)) == with_snapshot


@pytest.mark.embedded
@pytest.mark.spec("A2")
def test_many_short_processes_still_write_snapshots(home: Path) -> None:
    store = InMemoryStore()
    for number in range(SNAPSHOT_INTERVAL_EVENTS + 20):
        Memory(FolderBackend(home, store)).session("s").scratchpad.update(f"line {number}")
    snapshot = store.snapshot("session/s", fold_version=SessionFold.version)
    assert snapshot is not None
    assert store.version("session/s") - snapshot.seq < 50


@pytest.mark.both_stores
@pytest.mark.spec("A4")
def test_state_at_returns_any_past_state(session: Session) -> None:
    versions: dict[int, str] = {}
    for number in range(5):
        session.write("overview.md", f"version {number}")
        versions[session.state.seq] = f"version {number}"
    assert {seq: session.state_at(seq).documents.text("overview.md") for seq in versions} == versions


@pytest.mark.both_stores
@pytest.mark.spec("A4")
def test_undo_appends_an_event_and_goes_back_step_by_step(session: Session) -> None:
    session.write("overview.md", "one")
    session.add([user("a"), assistant("b")])
    session.write("overview.md", "two")
    length = session.state.seq
    session.undo()
    assert (session.overview, len(session.state.conversation)) == ("one", 2)
    session.undo()
    assert (session.overview, len(session.state.conversation)) == ("one", 0)
    session.undo()
    assert session.overview.startswith("# Working memory")
    assert session.state.seq == length + 3
    assert session.state_at(length).documents.text("overview.md") == "two"


@pytest.mark.spec("A4")
def test_a_change_after_an_undo_continues_from_there(session: Session) -> None:
    session.add([user("a")])
    session.add([user("b")])
    session.undo()
    session.add([user("c")])
    assert [entry.wire["content"] for entry in session.state.conversation] == ["a", "c"]
    session.undo()
    session.undo()
    assert len(session.state.conversation) == 0


@pytest.mark.both_stores
def test_reopening_folds_each_event_once_however_often_undo_was_used(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s")
        for number in range(60):
            session.write("overview.md", f"version {number}")
            if number % 3:
                session.undo()
        before, length = session.overview, session.state.seq
    folded: list[int] = []

    class CountingFold(SessionFold):
        version = SessionFold.version + 1

        def apply(self, state: SessionState, event: Event) -> SessionState:
            folded.append(event.seq)
            return super().apply(state, event)

    monkeypatch.setattr("inmind.memory.context.SessionFold", CountingFold)
    with Memory.open(home) as memory:
        session = memory.session("s")
        assert (session.overview, session.state.seq) == (before, length)
        assert len(folded) == len(set(folded))


@pytest.mark.spec("A4")
@pytest.mark.parametrize("other", [{"content": "hi", "role": "user"}, {"role": "user", "content": "hi", "n": True}])
def test_an_equal_message_is_sent_as_it_was_first_written(session: Session, other: dict[str, object]) -> None:
    first = {**user("hi"), **({"n": 1} if "n" in other else {})}
    session.prepare([first, assistant("hello"), user("go on")])
    sent = session.prepare([other, assistant("hello"), user("go on")])
    assert json.dumps(session.prompt(2).request) == json.dumps(sent.request)
    assert json.dumps(sent.messages[0]) == json.dumps(first)


def other_words(*_: object) -> str:
    return "other words"


@pytest.mark.spec("A4")
@pytest.mark.parametrize("changed", ["inmind.prompt.render.memory_text", "inmind.prompt.render.render_context_meta"])
def test_a_changed_wording_is_detected_when_rebuilding(
    session: Session, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    session.prepare([user("look"), a_call("c1"), user("stop")])
    monkeypatch.setattr(changed, other_words)
    with pytest.raises(PromptNotRebuilt):
        session.prompt(1)


def test_a_changed_placeholder_result_is_detected_when_rebuilding(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.prepare([user("look"), a_call("c1"), user("stop")])
    monkeypatch.setattr("inmind.core.messages.pairing.NO_RESULT_TEXT", "other words")
    with pytest.raises(PromptNotRebuilt):
        session.prompt(1)


def test_undo_cannot_go_before_the_opening(session: Session) -> None:
    session.add([user("a")])
    with pytest.raises(NotFound):
        session.undo(to=1)
    for invalid in (0, -1):
        with pytest.raises(InvalidInput, match="from 1 to"):
            session.undo(to=invalid)
    assert session.overview.startswith("# Working memory")


def test_undo_can_go_back_to_any_state(session: Session) -> None:
    session.add([user("a")])
    before = session.state.seq
    for word in "bcd":
        session.add([user(word)])
    assert session.undo(to=before) == before
    assert [entry.wire["content"] for entry in session.state.conversation] == ["a"]


def test_a_fresh_session_has_nothing_to_undo(session: Session) -> None:
    before = session.state.seq
    with pytest.raises(NotFound):
        session.undo()
    assert session.state.seq == before


def test_undo_reverts_messages_but_not_usage(session: Session) -> None:
    session.prepare(turns(1))
    spent = session.usage
    session.undo()
    assert (len(session.state.conversation), session.usage) == (0, spent)
    assert session.prompt(1).call == 1


@pytest.mark.embedded
def test_undo_updates_the_live_files(session: Session, home: Path) -> None:
    session.write("overview.md", "one")
    session.write("detail/plan.md", "a plan")
    folder = home / "sessions/--website--/support-42/working-memory"
    session.undo()
    assert not (folder / "detail/plan.md").exists()
    session.undo()
    assert (folder / "overview.md").read_text().startswith("# Working memory")


@pytest.mark.embedded
@pytest.mark.spec("A4", "A5")
@pytest.mark.parametrize("read_first", [True, False], ids=["read before the undo", "read by the undo"])
def test_undo_skips_edits_saved_in_files(session: Session, home: Path, read_first: bool) -> None:
    session.add([user("one")])
    before = session.state.seq
    session.add([user("two")])
    session.write("overview.md", "# Page\n- theirs\n")
    session.add([user("three")])
    page = next(home.glob("sessions/*/*/working-memory/overview.md"))
    page.write_text(page.read_text() + "- a person's line\n")
    if read_first:
        assert "a person's line" in session.overview
        session.read("overview.md")
    session.undo()
    assert [entry.wire["content"] for entry in session.state.conversation] == ["one", "two"]
    assert "- a person's line\n" in session.overview
    session.undo(to=before)
    assert [entry.wire["content"] for entry in session.state.conversation] == ["one"]
    assert "- a person's line\n" in session.overview
    assert "- a person's line\n" in page.read_text()
    with pytest.raises(NotFound):
        _ = [session.undo() for _ in range(3)]
    assert "- a person's line\n" in page.read_text()


@pytest.mark.spec("A4")
def test_only_the_last_messages_are_removed(session: Session) -> None:
    session.add([user("one"), assistant("yes"), user("two"), assistant("no")])
    session.write("overview.md", "# Page\n- theirs\n")
    session.scratchpad.update("a plan")
    for _ in range(2):
        session.remove_last_messages(2, key="once")
    assert [entry.wire["content"] for entry in session.state.conversation] == ["one", "yes"]
    assert ("- theirs\n" in session.overview, session.scratchpad.snapshot) == (True, "a plan")
    assert "two" not in str(session.prepare().messages)
    with pytest.raises(InvalidInput, match="at most 2"):
        session.remove_last_messages(3)
    session.undo()
    assert [entry.wire["content"] for entry in session.state.conversation] == ["one", "yes", "two", "no"]


def test_a_prompt_prepared_after_an_undo_is_rebuilt_too(home: Home) -> None:
    with Memory.open(home) as memory:
        session = memory.session("s")
        session.prepare(turns(1))
        session.undo()
        sent = session.prepare([user("another beginning")]).request
        assert session.prompt(2).request == sent
    with Memory.open(home) as memory:
        assert memory.session("s").prompt(2).request == sent


def test_an_unknown_call_is_not_found(session: Session) -> None:
    session.prepare([user("hi")])
    for call in (0, 2):
        with pytest.raises(NotFound, match="this session has made 1"):
            session.prompt(call)


def test_a_repeated_key_returns_the_first_prompt(session: Session) -> None:
    first = session.prepare(turns(1), key="k1")
    session.prepare(turns(2))
    again = session.prepare(turns(1), key="k1")
    assert (again.call, again.request) == (first.call, first.request)
    assert session.state.prompt.calls == 2


def test_a_forged_prompt_event_is_detected(session: Session) -> None:
    prepared = PromptPrepared("0" * 16, used=1, cached=0, written=1)
    session.prepare([user("hi")])
    session._stream.append(Draft(payload=prepared, origin=Origin.OPERATOR))  # pyright: ignore[reportPrivateUsage] -- forged
    with pytest.raises(PromptNotRebuilt):
        session.prompt(2)
