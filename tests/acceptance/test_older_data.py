"""Homes, databases and bundles written by inmind 0.1 and 0.2.0 are read by the current code.

The fixtures and what those versions answered are in tests/fixtures/written_by_0_1 and written_by_0_2. They are never
regenerated: a version that reads them differently breaks the memories of users who upgrade.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from inmind import Memory, Session, default_layers
from inmind.layers import ScratchpadLayer

FIXTURES = Path(__file__).parents[1] / "fixtures"


@dataclass(frozen=True)
class Written:
    """Data that a version wrote, and which parts of it are compared."""

    version: str
    now: datetime
    """Shortly after the last event."""
    resources: tuple[str, ...]
    object_pads: tuple[str, ...]
    """Sessions whose scratchpad is an object."""
    full_prompts: tuple[tuple[str, int], ...]
    """Prompts that are compared in full, not by digest."""
    queries: tuple[tuple[str, str | None], ...]

    @property
    def folder(self) -> Path:
        return FIXTURES / f"written_by_{self.version}"


BY_0_1 = Written(
    version="0_1",
    now=datetime(2026, 5, 7, 20, tzinfo=UTC),
    resources=("ada", "ben", "lin"),
    object_pads=("task", "parent", "child", "viewer", "quiet"),
    full_prompts=(("shop", 6), ("billing", 1)),
    queries=(
        ("tabs or spaces", None),
        ("quails and the boat", "ada"),
        ("refund of Mei", "ada"),
        ("deadline of the harbour project", "lin"),
        ("barometer", "lin"),
        ("靠窗的座位", "lin"),
    ),
)
BY_0_2 = Written(
    version="0_2",
    now=datetime(2026, 11, 17, 12, 20, 10, tzinfo=UTC),
    resources=("ada", "ben"),
    object_pads=("orders",),
    full_prompts=(("orders", 15), ("claude", 2), ("lead", 2)),
    queries=(
        ("refunds by phone", None),
        ("who supplies kettles", "ada"),
        ("cookie lifetime", "ben"),
        ("order W4203 status", "ada"),
    ),
)


# -- contents of a memory ----------------------------------------------------------------------------------------


def open_memory(place: Path | str, written: Written = BY_0_1) -> Memory:
    return Memory.open(place, clock=lambda: written.now, embedder=None)


def session_of(memory: Memory, id: str, written: Written) -> Session:
    if id == "shared":
        return memory.session(id, layers=[ScratchpadLayer(schema={"type": "object"}, scope="resource")])
    if id in written.object_pads:
        return memory.session(id, layers=default_layers(ScratchpadLayer(schema={"type": "object"})))
    return memory.session(id)


def conversation_of(session: Session) -> list[Any]:
    return list(session.state.conversation.wires)


def usage_of(session: Session) -> dict[str, int]:
    names = "calls cached written uncached reported_calls reported_prompt reported_cached completion".split()
    return {name: getattr(session.usage, name) for name in names}


def economics_totals(memory: Memory, resource: str) -> list[dict[str, str]]:
    names = "currency earned spent earnings spendings listed buyers top".split()
    return [{name: str(getattr(one, name)) for name in names} for one in memory.resource(resource).economics.report()]


def affect_levels(memory: Memory, resource: str) -> dict[str, float]:
    return {name: round(level, 6) for name, level in memory.resource(resource).affect.levels.by_name.items()}


def session_facts(session: Session, written: Written) -> dict[str, Any]:
    prompts = [session.prompt(call).request for call in range(1, session.usage.calls + 1)]
    return {
        "resource": session.resource,
        "events": len(session.events()),
        "conversation": conversation_of(session),
        "entities": session.export_entities(),
        "scratchpad": session.scratchpad.snapshot,
        "scratchpads set aside": [one.state for one in session.scratchpad.set_aside],
        "overview": session.overview,
        "pages": {path: digest_of(session.read(path)) for path in session.documents()},
        "retained": [one.text for one in session.retained],
        "prompts": [digest_of(request) for request in prompts],
        "in full": {str(call): prompts[call - 1] for id, call in written.full_prompts if id == session.id},
        "usage": usage_of(session),
    }


def resource_facts(memory: Memory, resource: str) -> dict[str, Any]:
    dreams = memory.resource(resource).dreams()
    return {
        "state": memory.page("MEMORY.md", resource=resource).text,
        "notes": memory.page("memory/scratch.md", resource=resource).text,
        "dreams": [[one.id, one.status, one.by, one.trigger, one.code, list(one.notes)] for one in dreams],
        "feelings": affect_levels(memory, resource),
        "money": economics_totals(memory, resource),
    }


def search_hits(memory: Memory, query: str, resource: str | None) -> list[list[str]]:
    scope = memory if resource is None else memory.resource(resource)
    return [[hit.crystal.id, hit.text] for hit in scope.search(query)]


def memory_facts(memory: Memory, written: Written) -> dict[str, Any]:
    infos = {one.id: [one.title, one.model, one.parent] for one in memory.sessions()}
    facts = {
        "listed": dict(sorted(infos.items())),
        "sessions": {id: session_facts(session_of(memory, id, written), written) for id in sorted(infos)},
        "resources": {resource: resource_facts(memory, resource) for resource in written.resources},
        "settings": memory.page("config.toml").text,
        "searches": {query: search_hits(memory, query, resource) for query, resource in written.queries},
    }
    return json.loads(json.dumps(facts))


def kinds_in(memory: Memory, bundle: Path) -> dict[str, int]:
    """The number of events per kind. An export decodes and checks all of them."""
    memory.export(bundle)
    with zipfile.ZipFile(bundle) as entries:
        lines = entries.read("journal.jsonl").splitlines()
    return dict(sorted(Counter(json.loads(line)["kind"] for line in lines).items()))


def digest_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


# -- the fixtures --------------------------------------------------------------------------------------


def unpack_home(folder: Path, written: Written) -> Path:
    with zipfile.ZipFile(written.folder / "home.zip") as files:
        files.extractall(folder)
    return folder / "home"


def load_dump(url: str, written: Written) -> str:
    """The dump has a placeholder for the schema of its tenant."""
    dump = (written.folder / "database.sql").read_text("utf-8")
    dump = dump.replace(f"tenant_of_{written.version}", urlsplit(url).username or "")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(dump.encode())
    return url


@pytest.fixture(params=[BY_0_1, BY_0_2], ids=["0.1", "0.2"])
def written(request: pytest.FixtureRequest) -> Written:
    return request.param


@pytest.fixture(params=["home", "database"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def place(written: Written, kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Path | str:
    if kind == "home":
        return unpack_home(tmp_path, written)
    return load_dump(request.getfixturevalue("tenant_url"), written)


@pytest.fixture
def memory(place: Path | str, written: Written) -> Generator[Memory]:
    with open_memory(place, written) as memory:
        yield memory


def all_expected(written: Written) -> dict[str, Any]:
    return json.loads((written.folder / "expected.json").read_text("utf-8"))


@pytest.fixture
def expected(written: Written, kind: str) -> dict[str, Any]:
    return all_expected(written)[kind]


def check_equal(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare part by part, so that a failure shows only the difference."""
    for part in ("listed", "settings", "searches"):
        assert actual[part] == expected[part], part
    for part in ("sessions", "resources"):
        assert list(actual[part]) == list(expected[part])
        for name, fields in expected[part].items():
            for field, value in fields.items():
                assert actual[part][name][field] == value, f"{field} of {name}"


# -- reading ------------------------------------------------------------------------------------------------


def test_older_data_opens_and_reads_the_same(memory: Memory, written: Written, expected: dict[str, Any]) -> None:
    check_equal(memory_facts(memory, written), expected["facts"])


def test_older_data_reads_the_same_after_reopening(
    place: Path | str, written: Written, expected: dict[str, Any]
) -> None:
    """The first opening may migrate tables and files."""
    with open_memory(place, written) as memory:
        memory_facts(memory, written)
    with open_memory(place, written) as memory:
        check_equal(memory_facts(memory, written), expected["facts"])


def test_every_older_event_can_be_decoded_and_exported(
    memory: Memory, written: Written, expected: dict[str, Any], tmp_path: Path
) -> None:
    assert kinds_in(memory, tmp_path / "first.inmind") == expected["kinds"]
    with open_memory(tmp_path / "elsewhere", written) as other:
        other.import_bundle(tmp_path / "first.inmind")
        assert kinds_in(other, tmp_path / "second.inmind") == expected["kinds"]


def test_an_older_bundle_is_imported_and_reads_the_same(written: Written, tmp_path: Path) -> None:
    """Except for its settings, which are stored next to the existing ones."""
    expected = all_expected(written)["home"]
    facts = expected["facts"]
    with open_memory(tmp_path / "home", written) as memory:
        memory.import_bundle(written.folder / "bundle.inmind")
        check_equal({**memory_facts(memory, written), "settings": facts["settings"]}, facts)
        assert kinds_in(memory, tmp_path / "again.inmind") == expected["kinds"]


# -- continuing ------------------------------------------------------------------------------------------


of_0_1 = pytest.mark.parametrize("written", [BY_0_1], ids=["0.1"], indirect=True)
of_0_2 = pytest.mark.parametrize("written", [BY_0_2], ids=["0.2"], indirect=True)


@of_0_1
def test_a_session_of_0_1_can_be_continued(memory: Memory) -> None:
    session = memory.session("shop")
    before, calls = session.events(), session.usage.calls
    note = session.note("The shop has moved to the northern warehouse")
    session.add([{"role": "user", "content": "Where is the shop now?"}])
    prompt = session.prepare()
    assert prompt.call == calls + 1
    assert "northern warehouse" in json.dumps(prompt.request)
    assert "Never ship to the old warehouse." in json.dumps(prompt.request)
    assert session.prompt(prompt.call).request == prompt.request
    assert session.events()[: len(before)] == before
    assert note.id in [hit.crystal.id for hit in session.search("northern warehouse")]


REPEATED_CALLS: dict[str, Callable[[Session], None]] = {
    "add": lambda session: session.add(
        [{"role": "user", "content": "From now on always answer in one sentence. We decided to use tabs."}],
        key="rules",
    ),
    "update": lambda session: session.scratchpad.update("The customer is Mei.", key="pad"),
    "report_usage": lambda session: session.report_usage(
        prompt_tokens=900, cached_tokens=100, completion_tokens=40, call=1, key="usage-1"
    ),
}


@of_0_1
@pytest.mark.parametrize("call", REPEATED_CALLS)
def test_a_call_repeated_with_a_key_of_0_1_writes_nothing(memory: Memory, call: str) -> None:
    session = memory.session("shop")
    before = len(session.events())
    REPEATED_CALLS[call](session)
    assert len(session.events()) == before


@of_0_1
def test_an_unfinished_dream_of_0_1_is_resumed(memory: Memory) -> None:
    (unfinished, *_) = memory.resource("ben").dreams()
    assert unfinished.status == "abandoned"
    dream = memory.dream("ben")
    assert (dream.id, dream.status, dream.by) == (unfinished.id, "done", "some-model")
    assert "dock of oak" in memory.page("MEMORY.md", resource="ben").text


@of_0_1
def test_a_dream_of_0_1_can_be_undone(memory: Memory) -> None:
    last = next(dream for dream in memory.resource("ada").dreams() if dream.status == "done")
    undone = memory.resource("ada").undo_dream()
    assert (undone.id, undone.status) == (last.id, "undone")
    assert memory.page("MEMORY.md", resource="ada").text == last.before


@of_0_1
def test_a_compaction_of_0_1_can_be_undone(memory: Memory) -> None:
    session = memory.session("shop")
    assert "archive/march.md" in session.documents()
    session.undo_compaction()
    assert "archive/march.md" not in session.documents()
    assert "How is order-0?" in json.dumps(session.prepare().request)


@of_0_2
def test_a_session_of_0_2_can_be_continued(memory: Memory) -> None:
    session = memory.session("lead")
    before, calls = session.events(), session.usage.calls
    prompt = session.prepare(
        [*session.messages, {"role": "user", "content": "Is that issue fixed?"}], format="responses"
    )
    assert prompt.call == calls + 1
    assert "ISS-9" in json.dumps(prompt.request)
    entity = session.resolve("close that issue").entity
    assert entity is not None
    assert (entity.id, entity.name) == ("ISS-9", "Login fails")
    assert session.events()[: len(before)] == before


@of_0_2
def test_a_dream_of_0_2_can_be_undone_and_another_follows(memory: Memory) -> None:
    ada = memory.resource("ada")
    last = next(dream for dream in ada.dreams() if dream.status == "done")
    assert ada.undo_dream().id == last.id
    assert memory.page("MEMORY.md", resource="ada").text == last.before
    assert memory.dream("ada").status == "done"


@of_0_2
def test_a_compaction_of_0_2_can_be_undone(memory: Memory) -> None:
    session = memory.session("orders", layers=default_layers(ScratchpadLayer(schema={"type": "object"})))
    session.undo_compaction()
    assert "W4200" in json.dumps(session.prepare().request)
