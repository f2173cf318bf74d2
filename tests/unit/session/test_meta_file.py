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
from inmind.session.meta_file import FILE, WRITE_EVERY_NTH_PART, MetaFile, SessionSummary, read_summary
from inmind.session.state import SessionFold, SessionState
from inmind.store.atomic_files import Folder
from inmind.store.in_memory import InMemoryStore
from inmind.store.stream import Stream
from inmind.testing import ManualClock

NAME = "session/s"
EVERY = 10


class SessionFolder:
    """A stream of a session and its folder."""

    def __init__(self, folder: Path) -> None:
        self.store, self.clock = InMemoryStore(), ManualClock()
        self.stream: Stream[SessionState] = Stream(self.store, NAME, SessionFold(NAME), self.clock)
        self.stream.append(Draft(payload=SessionOpened(resource="ada", cwd="/website"), origin=Origin.OPERATOR))
        self.folder, self.file = Folder(folder), folder / FILE

    def say(self, *wires: Mapping[str, Any]) -> None:
        origins = {"user": Origin.USER, "assistant": Origin.ASSISTANT}
        drafts = [Draft(payload=MessageAdded(wire=wire), origin=origins[wire["role"]]) for wire in wires]
        self.stream.append(*drafts)

    def call_it(self, title: str) -> None:
        self.stream.append(Draft(payload=SessionTitled(title), origin=Origin.USER))

    def opened(self) -> MetaFile:
        """As if another process opened the session."""
        meta = MetaFile(self.folder, self.stream, self.store)
        meta.read_title()
        assert meta.write(self.stream.state) == ""
        return meta

    @property
    def said(self) -> dict[str, Any]:
        return json.loads(self.file.read_text())

    def edit(self, **fields: Any) -> None:
        self.file.write_text(json.dumps({**self.said, **fields}))


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionFolder:
    monkeypatch.setattr("inmind.session.meta_file.MIN_EVENTS_BETWEEN_WRITES", EVERY)
    return SessionFolder(tmp_path / "s")


def test_the_file_has_the_fields_that_lists_show(kept: SessionFolder) -> None:
    kept.say(user("Where is my order?"), assistant("On its way."))
    kept.opened()
    now = kept.clock.now.isoformat()
    assert read_summary(kept.folder) == SessionSummary(
        title="Where is my order?", created=now, version=3, messages=2, updated=now
    )


def test_the_file_is_stale_after_a_new_title_or_many_events(kept: SessionFolder) -> None:
    meta = kept.opened()
    assert not meta.is_stale(kept.stream.state)
    kept.say(user("Where is my order?"))
    assert meta.is_stale(kept.stream.state)
    meta.write(kept.stream.state)
    kept.say(*[assistant("…")] * (EVERY - 1))
    assert not meta.is_stale(kept.stream.state)
    kept.say(assistant("On its way."))
    assert meta.is_stale(kept.stream.state)


def test_a_long_session_is_written_less_often(kept: SessionFolder) -> None:
    kept.say(user("Go"), *[assistant("…")] * (EVERY * WRITE_EVERY_NTH_PART * 2))
    meta = kept.opened()
    kept.say(*[assistant("…")] * (EVERY * 2 - 1))
    assert not meta.is_stale(kept.stream.state)
    kept.say(assistant("…"))
    assert meta.is_stale(kept.stream.state)


def test_an_up_to_date_file_is_not_rewritten(kept: SessionFolder) -> None:
    kept.opened()
    before = kept.file.stat()
    kept.opened()
    assert kept.file.stat().st_ino == before.st_ino


def test_a_failed_write_is_reported_and_not_retried_at_every_call(kept: SessionFolder) -> None:
    kept.file.parent.mkdir()
    kept.file.mkdir()
    meta = MetaFile(kept.folder, kept.stream, kept.store)
    assert FILE in meta.write(kept.stream.state)
    assert not meta.is_stale(kept.stream.state)


@pytest.mark.spec("E1")
def test_a_title_written_into_the_file_becomes_the_title_of_the_session(kept: SessionFolder) -> None:
    kept.say(user("Where is my order?"))
    kept.opened()
    kept.edit(title="  Order of\n the lamp ", calls=77)
    kept.opened()
    (titled,) = kept.store.read(NAME, kind=SessionTitled.kind)
    assert (titled.payload, titled.origin) == (SessionTitled("Order of the lamp"), Origin.FILE)
    assert (kept.said["title"], kept.said["calls"]) == ("Order of the lamp", 0)


@pytest.mark.spec("E1")
def test_a_stale_file_does_not_count_as_edited(kept: SessionFolder) -> None:
    """Its writer was killed, so it has an old title."""
    kept.opened()
    kept.say(user("Where is my order?"))
    kept.opened()
    kept.call_it("The lamp")
    kept.opened()
    assert (kept.stream.state.title, kept.said["title"]) == ("The lamp", "The lamp")


def test_a_title_edited_in_a_stale_file_is_used(kept: SessionFolder) -> None:
    kept.say(user("Where is my order?"))
    kept.opened()
    kept.call_it("The lamp")
    kept.edit(title="The chair")
    kept.opened()
    assert kept.stream.state.title == "The chair"


def test_a_title_edited_while_the_session_is_open_is_read_at_the_next_opening(kept: SessionFolder) -> None:
    kept.say(user("Where is my order?"))
    meta = kept.opened()
    kept.edit(title="The lamp")
    kept.say(assistant("On its way."))
    meta.write(kept.stream.state)
    assert (kept.said["title"], kept.said["messages"]) == ("The lamp", 2)
    assert kept.stream.state.title == "Where is my order?"
    kept.opened()
    assert kept.stream.state.title == "The lamp"


@pytest.mark.spec("E1")
def test_renaming_an_open_session_wins_over_the_file(kept: SessionFolder) -> None:
    kept.say(user("Where is my order?"))
    meta = kept.opened()
    kept.edit(title="The lamp")
    kept.call_it("The chair")
    assert meta.write(kept.stream.state) == ""
    assert kept.said["title"] == "The chair"
    kept.opened()
    assert (kept.stream.state.title, kept.said["title"]) == ("The chair", "The chair")


@pytest.mark.spec("E1")
def test_editing_the_file_of_a_renamed_session_wins(kept: SessionFolder) -> None:
    meta = kept.opened()
    kept.call_it("The chair")
    meta.write(kept.stream.state)
    kept.edit(title="The lamp")
    kept.say(user("Where is my order?"))
    meta.write(kept.stream.state)
    assert kept.said["title"] == "The lamp"
    kept.opened()
    assert kept.stream.state.title == "The lamp"


@pytest.mark.spec("E1")
def test_first_words_are_not_a_given_title(kept: SessionFolder) -> None:
    """They are the title of a session without a name, and do not override a rename."""
    meta = kept.opened()
    kept.edit(title="The lamp")
    kept.say(user("Where is my order?"))
    meta.write(kept.stream.state)
    assert kept.said["title"] == "The lamp"


@pytest.mark.parametrize("title", ["", " ", 7, None, ["x"], "\ud800"])
def test_an_invalid_title_is_ignored(kept: SessionFolder, title: Any) -> None:
    kept.say(user("Where is my order?"))
    kept.opened()
    kept.edit(title=title)
    kept.opened()
    assert (kept.stream.state.title, kept.said["title"]) == ("Where is my order?", "Where is my order?")


@pytest.mark.parametrize("version", [0, -1, 10**6, "2", None, True])
def test_a_title_without_a_valid_version_is_ignored(kept: SessionFolder, version: Any) -> None:
    kept.say(user("Where is my order?"))
    kept.opened()
    kept.edit(title="The chair", version=version)
    kept.opened()
    assert kept.stream.state.title == "Where is my order?"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner), max_leaves=4
)
FIELDS = st.sampled_from(["title", "model", "version", "messages", "calls", "updated", "other"])
WRITTEN = st.binary() | st.dictionaries(FIELDS, JSON).map(lambda said: json.dumps(said).encode())


@given(written=WRITTEN)
def test_invalid_values_in_the_file_are_ignored(tmp_path_factory: pytest.TempPathFactory, written: bytes) -> None:
    folder = tmp_path_factory.mktemp("s", numbered=True)
    (folder / FILE).write_bytes(written)
    found = read_summary(Folder(folder))
    assert all(type(text) is str for text in (found.title, found.model, found.updated))
    assert all(type(number) is int and number >= 0 for number in (found.version, found.messages, found.calls))
    assert found.updated or found.version == 0
