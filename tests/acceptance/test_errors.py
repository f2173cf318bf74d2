"""Every error code has a test, and a failed call leaves the store unchanged."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from builders import Home, turns, user
from tables import each_row

from inmind import InmindError, Memory, Origin, Session, errors
from inmind.layers import DocumentLayer, TextLayer
from inmind.store.protocol import Batch
from inmind.store.sqlite.store import SqliteStore
from inmind.types import Rates

Bad = Callable[[Session], Any]

BAD_INPUT: list[tuple[str, Bad]] = [
    ("format", lambda s: s.prepare([user("x")], format="gemini")),
    ("messages", lambda s: s.prepare({"role": "user"})),  # type: ignore[arg-type] -- a host's mistake
    ("messages[0]", lambda s: s.add(["hello"])),
    ("messages[0].role", lambda s: s.prepare([{}])),
    ("tools", lambda s: s.prepare([user("x")], tools={})),  # type: ignore[arg-type] -- likewise
    ("error", lambda s: s.observe("t", {}, {}, error="no")),  # type: ignore[arg-type] -- likewise
    ("prompt_tokens", lambda s: s.report_usage(prompt_tokens=10**400)),
    ("after", lambda s: s.events(after=2**70)),
    ("system[0].type", lambda s: s.prepare([user("x")], system=[{}], format="anthropic")),
    ("after", lambda s: s.events(after="x")),  # type: ignore[arg-type] -- likewise
    ("tools[0]", lambda s: s.prepare([user("x")], tools=["get_page"])),
    ("tools[0].schema", lambda s: s.prepare([user("x")], tools=[{"type": "function", "schema": {1, 2}}])),
    ("system", lambda s: s.prepare([{"role": "system", "content": "a"}, user("x")], system="b")),
    ("system[0]", lambda s: s.prepare([user("x")], system=["text"], format="anthropic")),
    ("system", lambda s: s.prepare([user("x")], system="lone \ud800")),
    ("key", lambda s: s.prepare([user("x")], key="")),
    ("key", lambda s: s.add([user("x")], key="k" * 201)),
    ("origin", lambda s: s.observe("t", {}, {}, origin=Origin.USER)),
    ("tool", lambda s: s.observe(7, {}, {})),  # type: ignore[arg-type] -- a host's mistake
    ("result.at", lambda s: s.observe("t", {}, {"at": object()})),
    ("arguments.n", lambda s: s.observe("t", {"n": float("inf")}, {})),
    ("prompt_tokens", lambda s: s.report_usage(prompt_tokens=-1)),
    ("cached_tokens", lambda s: s.report_usage(prompt_tokens=5, cached_tokens=6)),
    ("text", lambda s: s.write("overview.md", "nul \x00")),
    ("origin", lambda s: s.write("overview.md", "x", origin="unknown")),  # type: ignore[arg-type] -- likewise
    ("format", lambda s: s.prepare([user("x")], format=[])),  # type: ignore[arg-type] -- likewise
    ("base", lambda s: s.write("overview.md", "x", base=-1)),
    ("seq", lambda s: s.state_at(-1)),
    ("call", lambda s: s.prompt(True)),
    ("strategy", lambda s: s.compact(model=str)),
]


@pytest.mark.spec("J3")
@pytest.mark.parametrize(("field", "call"), BAD_INPUT, ids=[f"{n}-{field}" for n, (field, _) in enumerate(BAD_INPUT)])
def test_bad_input_names_field_value_and_expectation_and_stores_nothing(
    session: Session, field: str, call: Bad
) -> None:
    session.prepare(turns(1))
    before = session.events()
    with pytest.raises(errors.InvalidInput) as error:
        call(session)
    assert (error.value.code, error.value.field) == ("INVALID_INPUT", field)
    assert error.value.expected in str(error.value)
    assert session.events() == before
    session.prepare(turns(2))


def negative_count(text: str) -> int:
    return -len(text)


BAD_OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("id", {"id": ""}),
    ("id", {"id": ".."}),
    ("id", {"id": "a\nb"}),
    ("id", {"id": " padded "}),
    ("id", {"id": "x" * 300}),
    ("id", {"id": 7}),
    ("resource", {"id": "s", "resource": ""}),
    ("window", {"id": "s", "window": 0}),
    ("window", {"id": "s", "window": True}),
    ("reserve", {"id": "s", "window": 2_000, "reserve": 2_000}),
    ("cache_seconds", {"id": "s", "cache_seconds": -1}),
    ("language", {"id": "s", "language": "xx"}),
    ("layers", {"id": "s", "layers": [TextLayer("a", "x"), TextLayer("a", "y")]}),
    ("layers[0].name", {"id": "s", "layers": ["overview"]}),
    ("layers[0].slot", {"id": "s", "layers": [TextLayer("a", "x", slot="first")]}),  # type: ignore[arg-type] -- likewise
    ("layers[0].budget", {"id": "s", "layers": [TextLayer("a", "x", budget=50)]}),  # type: ignore[arg-type] -- likewise
    ("counter", {"id": "s", "counter": "x"}),
    ("counter", {"id": "s", "counter": negative_count}),
    ("layers", {"id": "s", "layers": 3}),
    ("cwd", {"id": "s", "cwd": 3}),
    ("cwd", {"id": "s", "cwd": "lone \ud800"}),
]


@pytest.mark.spec("J3")
@pytest.mark.parametrize(
    ("field", "options"), BAD_OPTIONS, ids=[f"{n}-{field}" for n, (field, _) in enumerate(BAD_OPTIONS)]
)
def test_a_session_that_cannot_be_opened_is_not_created(memory: Memory, field: str, options: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput) as error:
        memory.session(**options)
    assert error.value.field == field
    assert memory.sessions() == []


@pytest.mark.embedded
@pytest.mark.parametrize("id", ["a/b", "../up", "名前", "with space", "100%", ".hidden", "a" * 60])
def test_any_printable_id_is_a_separate_session_inside_the_home(memory: Memory, home: Path, id: str) -> None:
    memory.session(id, cwd="/w").prepare([user("hi")])
    assert [info.id for info in memory.sessions()] == [id]
    (folder,) = (home / "sessions" / "--w--").iterdir()
    assert (folder / "messages.jsonl").exists()


@pytest.mark.parametrize("make", [lambda: TextLayer("a", 5), lambda: DocumentLayer("a", "nope.md")])  # type: ignore[arg-type]
def test_a_layer_without_a_valid_budget_is_refused_by_its_constructor(make: Callable[[], object]) -> None:
    with pytest.raises(errors.InvalidInput):
        make()


def test_a_clock_without_a_time_zone_is_refused(home: Home) -> None:
    with pytest.raises(errors.InvalidInput) as error:
        Memory.open(home, clock=datetime.now)
    assert error.value.field == "clock"


def test_a_relative_home_stays_the_same_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    with Memory.open("mem") as memory:
        session = memory.session("s")
        monkeypatch.chdir(tmp_path / "elsewhere")
        session.write("overview.md", "mine")
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert len(list((tmp_path / "mem").glob("sessions/*/s/working-memory/overview.md"))) == 1


def test_a_session_cannot_be_opened_for_another_resource(memory: Memory) -> None:
    memory.session("s", resource="alice").write("MEMORY.md", "alice's own")
    with pytest.raises(errors.InvalidInput) as error:
        memory.session("s", resource="mallory")
    assert (error.value.field, "alice" in str(error.value)) == ("resource", False)
    assert memory.session("s").resource == "alice"


@each_row("home", ["", 7, "mysql://u:p@h/db", "~no-such-user/x", "nul\x00", "lone \ud800"])
def test_an_invalid_home_is_refused(home: Any) -> None:
    with pytest.raises(errors.InvalidInput) as error:
        Memory.open(home)
    assert error.value.field == "home"


@pytest.mark.embedded
def test_a_session_in_a_very_long_path_has_its_files(memory: Memory, home: Path) -> None:
    memory.session("s", cwd="/" + "deep/" * 100).prepare([user("hi")])
    assert len(list(home.glob("sessions/*/s/messages.jsonl"))) == 1


@pytest.mark.spec("A6", "K25")
def test_a_key_reused_with_other_arguments_is_refused_by_every_changing_call(session: Session) -> None:
    calls: list[tuple[Bad, Bad]] = [
        (lambda s: s.add([user("a")], key="1"), lambda s: s.add([user("b")], key="1")),
        (lambda s: s.prepare([user("a")], key="2"), lambda s: s.prepare([user("b")], key="2")),
        (lambda s: s.observe("t", {}, 1, key="3"), lambda s: s.observe("t", {}, 2, key="3")),
        (lambda s: s.write("overview.md", "a", key="4"), lambda s: s.write("overview.md", "b", key="4")),
        (lambda s: s.report_usage(prompt_tokens=1, key="5"), lambda s: s.report_usage(prompt_tokens=2, key="5")),
        (lambda s: s.undo(key="6"), lambda s: s.undo(to=3, key="6")),
    ]
    for first, _ in calls:
        first(session)
    session.add([user("the same key for another operation")], key="2")
    before = session.events()
    for first, other in calls:
        first(session)
        with pytest.raises(errors.KeyReused, match=r"idempotency key '[1-6]' was used before"):
            other(session)
    assert session.events() == before


@pytest.mark.spec("J3")
@pytest.mark.parametrize("prices", [{"input": -3}, {"input": 3, "cached": -1}, {"input": 3, "written": float("nan")}])
def test_a_negative_price_is_refused(prices: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput, match=list(prices)[-1]):
        Rates.per_million(**prices)
    with pytest.raises(errors.InvalidInput, match="uncached"):
        Rates(uncached=-1)


@pytest.mark.spec("E7", "J3")
def test_an_async_summarizer_is_refused_without_a_warning(session: Session) -> None:
    async def slow(_: str) -> str:
        return "All was fine."

    session.add(turns(9, words=60))
    with pytest.raises(errors.ModelFailed, match="asynchronous"):
        session.compact(strategy="summarize", model=slow)


@pytest.mark.spec("D3")
def test_a_small_window_reserves_half_for_the_reply_by_default(memory: Memory) -> None:
    assert memory.session("s", window=4_000).prepare([user("hi")]).report.tokens_used < 2_000


def test_a_closed_memory_raises_closed(home: Home) -> None:
    memory = Memory.open(home)
    session = memory.session("s")
    memory.close()
    memory.close()
    for call in (lambda: session.prepare([user("x")]), lambda: memory.session("t")):
        with pytest.raises(errors.Closed):
            call()


def test_a_home_that_is_a_file_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a folder")
    with pytest.raises(errors.UnsafeStorage):
        Memory.open(tmp_path / "home")


@pytest.mark.embedded
def test_a_database_of_another_program_is_not_changed(home: Path) -> None:
    home.mkdir()
    foreign = sqlite3.connect(home / "inmind.db")
    foreign.execute("CREATE TABLE theirs (x)")
    foreign.close()
    with pytest.raises(errors.UnsafeStorage, match="another program"):
        Memory.open(home)


@pytest.mark.embedded
def test_a_file_that_is_not_a_database_is_reported_as_damaged(home: Path) -> None:
    home.mkdir()
    (home / "inmind.db").write_bytes(b"this is not a database, whatever its name says" * 100)
    with pytest.raises(errors.Damaged):
        Memory.open(home)


@pytest.mark.embedded
def test_a_store_locked_too_long_by_another_writer_is_store_busy(home: Path) -> None:
    home.mkdir()
    one, two = SqliteStore(home / "inmind.db"), SqliteStore(home / "inmind.db", busy_seconds=0.05)
    with one._write_transaction(), pytest.raises(errors.StoreBusy):  # pyright: ignore[reportPrivateUsage] -- holds the lock
        two.append(Batch("s", [], 0), at=datetime.now(UTC))
    one.close()
    two.close()


def test_every_error_has_a_unique_code_that_the_module_docstring_lists() -> None:
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, InmindError)]
    codes = [c.code for c in classes]
    assert len(set(codes)) == len(codes)
    assert all(c.__name__ in (errors.__doc__ or "") for c in classes)


def test_a_value_whose_repr_fails_does_not_break_the_message() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert "whose repr raised RuntimeError" in str(errors.InvalidInput(field="f", value=Hostile(), expected="x"))
    assert len(str(errors.InvalidInput(field="f", value="x" * 10_000, expected="x"))) < 300


def test_a_database_url_passed_as_a_path_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """J3: otherwise a folder would be created whose name contains the password."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.InvalidInput, match="as a string") as error:
        Memory.open(Path("postgresql://ada:secret@localhost/memory"))
    assert ("secret" in str(error.value), list(tmp_path.iterdir())) == (False, [])
