from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from builders import assistant, user
from hypothesis import given
from hypothesis import strategies as st

from inmind.core.events.base import Draft, Origin
from inmind.core.events.session import MessageAdded, SessionOpened, SessionTitled
from inmind.session.derived_files import META_FILE, MetaFile, SessionSummary, read_summary
from inmind.session.state import SessionFold, SessionState
from inmind.store.atomic_files import Folder
from inmind.store.stream import Stream
from inmind.testing import InMemoryStore, ManualClock

NAME = "session/s"


class SessionFolder:
    """A stream of a session and its folder."""

    def __init__(self, folder: Path) -> None:
        self.store, self.clock = InMemoryStore(), ManualClock()
        self.stream: Stream[SessionState] = Stream(self.store, NAME, SessionFold(NAME), self.clock)
        self.stream.append(Draft(payload=SessionOpened(resource="ada", cwd="/website"), origin=Origin.OPERATOR))
        self.folder, self.file = Folder(folder), folder / META_FILE

    def say(self, *wires: Mapping[str, Any]) -> None:
        origins = {"user": Origin.USER, "assistant": Origin.ASSISTANT}
        drafts = [Draft(payload=MessageAdded(wire=wire), origin=origins[wire["role"]]) for wire in wires]
        self.stream.append(*drafts)

    def rename(self, title: str) -> None:
        self.stream.append(Draft(payload=SessionTitled(title), origin=Origin.USER))

    def open(self) -> MetaFile:
        """As if another process opened the session."""
        meta = MetaFile(self.folder, self.stream, self.store)
        meta.read_title()
        assert meta.write(self.stream.state) == ""
        return meta

    @property
    def content(self) -> dict[str, Any]:
        return json.loads(self.file.read_text())

    def edit(self, **fields: Any) -> None:
        self.file.write_text(json.dumps({**self.content, **fields}))


@pytest.fixture
def session(tmp_path: Path) -> SessionFolder:
    return SessionFolder(tmp_path / "s")


def test_the_file_has_the_fields_of_session_lists(session: SessionFolder) -> None:
    session.say(user("Where is my order?"), assistant("On its way."))
    session.open()
    now = session.clock.now.isoformat()
    assert read_summary(session.folder) == SessionSummary(
        title="Where is my order?", created=now, version=3, messages=2, updated=now
    )


def test_the_file_is_stale_after_a_new_title_and_not_after_other_events(session: SessionFolder) -> None:
    meta = session.open()
    assert not meta.is_stale(session.stream.state)
    session.say(user("Where is my order?"))
    assert meta.is_stale(session.stream.state)
    meta.write(session.stream.state)
    session.say(assistant("On its way."))
    assert not meta.is_stale(session.stream.state)


def test_an_up_to_date_file_is_not_rewritten(session: SessionFolder) -> None:
    session.open()
    before = session.file.stat()
    session.open()
    assert session.file.stat().st_ino == before.st_ino


def test_a_failed_write_is_reported_and_not_retried_at_every_call(session: SessionFolder) -> None:
    session.file.parent.mkdir()
    session.file.mkdir()
    meta = MetaFile(session.folder, session.stream, session.store)
    assert META_FILE in meta.write(session.stream.state)
    assert not meta.is_stale(session.stream.state)


@pytest.mark.spec("E1")
def test_a_title_written_into_the_file_becomes_the_title_of_the_session(session: SessionFolder) -> None:
    session.say(user("Where is my order?"))
    session.open()
    session.edit(title="  Order of\n the lamp ", calls=77)
    session.open()
    (titled,) = session.store.read(NAME, kind=SessionTitled.kind)
    assert (titled.payload, titled.origin) == (SessionTitled("Order of the lamp"), Origin.FILE)
    assert (session.content["title"], session.content["calls"]) == ("Order of the lamp", 0)


@pytest.mark.spec("E1")
def test_a_stale_file_does_not_count_as_edited(session: SessionFolder) -> None:
    """Its writer was killed, so it has an old title."""
    session.open()
    session.say(user("Where is my order?"))
    session.open()
    session.rename("The lamp")
    session.open()
    assert (session.stream.state.title, session.content["title"]) == ("The lamp", "The lamp")


def test_a_title_edited_in_a_stale_file_is_used(session: SessionFolder) -> None:
    session.say(user("Where is my order?"))
    session.open()
    session.rename("The lamp")
    session.edit(title="The chair")
    session.open()
    assert session.stream.state.title == "The chair"


def test_a_title_edited_while_the_session_is_open_is_read_at_the_next_opening(session: SessionFolder) -> None:
    session.say(user("Where is my order?"))
    meta = session.open()
    session.edit(title="The lamp")
    session.say(assistant("On its way."))
    meta.write(session.stream.state)
    assert (session.content["title"], session.content["messages"]) == ("The lamp", 2)
    assert session.stream.state.title == "Where is my order?"
    session.open()
    assert session.stream.state.title == "The lamp"


@pytest.mark.spec("E1")
def test_renaming_an_open_session_wins_over_the_file(session: SessionFolder) -> None:
    session.say(user("Where is my order?"))
    meta = session.open()
    session.edit(title="The lamp")
    session.rename("The chair")
    assert meta.write(session.stream.state) == ""
    assert session.content["title"] == "The chair"
    session.open()
    assert (session.stream.state.title, session.content["title"]) == ("The chair", "The chair")


@pytest.mark.spec("E1")
def test_editing_the_file_of_a_renamed_session_wins(session: SessionFolder) -> None:
    meta = session.open()
    session.rename("The chair")
    meta.write(session.stream.state)
    session.edit(title="The lamp")
    session.say(user("Where is my order?"))
    meta.write(session.stream.state)
    assert session.content["title"] == "The lamp"
    session.open()
    assert session.stream.state.title == "The lamp"


@pytest.mark.spec("E1")
def test_a_title_from_the_first_words_does_not_override_a_rename(session: SessionFolder) -> None:
    """The first words are the title of a session without a name."""
    meta = session.open()
    session.edit(title="The lamp")
    session.say(user("Where is my order?"))
    meta.write(session.stream.state)
    assert session.content["title"] == "The lamp"


@pytest.mark.parametrize("title", ["", " ", 7, None, ["x"], "\ud800"])
def test_an_invalid_title_is_ignored(session: SessionFolder, title: Any) -> None:
    session.say(user("Where is my order?"))
    session.open()
    session.edit(title=title)
    session.open()
    assert (session.stream.state.title, session.content["title"]) == ("Where is my order?", "Where is my order?")


@pytest.mark.parametrize("version", [0, -1, 10**6, "2", None, True])
def test_a_title_without_a_valid_version_is_ignored(session: SessionFolder, version: Any) -> None:
    session.say(user("Where is my order?"))
    session.open()
    session.edit(title="The chair", version=version)
    session.open()
    assert session.stream.state.title == "Where is my order?"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner), max_leaves=4
)
FIELDS = st.sampled_from(["title", "model", "version", "messages", "calls", "updated", "other"])
WRITTEN = st.binary() | st.dictionaries(FIELDS, JSON).map(lambda values: json.dumps(values).encode())


@given(written=WRITTEN)
def test_invalid_values_in_the_file_are_ignored(tmp_path_factory: pytest.TempPathFactory, written: bytes) -> None:
    folder = tmp_path_factory.mktemp("s", numbered=True)
    (folder / META_FILE).write_bytes(written)
    summary = read_summary(Folder(folder))
    assert all(type(text) is str for text in (summary.title, summary.model, summary.updated))
    assert all(type(number) is int and number >= 0 for number in (summary.version, summary.messages, summary.calls))
    assert summary.updated or summary.version == 0
