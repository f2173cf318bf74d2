"""Any event survives encoding, and homes with a common past can be merged in any order."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import pytest
from bundle_builders import Lines, change_events, export_home, fill_home_with_all_kinds
from hypothesis import example, given, settings
from hypothesis import strategies as st
from profiles import examples
from strategies import any_entity_sightings, json_values
from tables import each_row

from inmind import Memory
from inmind.core.encoding import decode
from inmind.core.events import KINDS, encode_payload
from inmind.core.events.base import TRUST_BY_ORIGIN, Draft, Event, EventPayload, Origin, Trust
from inmind.core.events.documents import DocumentWritten
from inmind.core.events.dreams import DreamAnswered, DreamCommitted, DreamProposed
from inmind.core.events.session import EntitiesSeen, MessageAdded, SessionOpened
from inmind.errors import Conflict, InvalidInput
from inmind.memory.backends import FolderBackend
from inmind.memory.bundle import export_bundle
from inmind.memory.bundle.event_lines import (
    decode_event_line,
    decode_receipt_line,
    encode_event_line,
    encode_receipt_line,
)
from inmind.memory.bundle.export_bundle import write_bundle
from inmind.memory.bundle.import_bundle import Imported, import_into, open_bundle
from inmind.store.protocol import AppendResult, Batch, Key, Receipt, Store
from inmind.testing import InMemoryStore

pytestmark = pytest.mark.spec("M40")

WHEN = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
TEXTS = st.text(max_size=20)
NUL = "\\u0000"
"""NUL in JSON. No page or name that is in prompts may contain it."""
PLAIN = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20)
TIMES = st.datetimes(timezones=st.just(UTC))
WIRES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {"role": st.just("user"), "content": TEXTS}, optional={"id": TEXTS, "more": json_values()}
)
PAYLOADS: st.SearchStrategy[EventPayload] = st.one_of(
    st.builds(DocumentWritten, path=st.sampled_from(["overview.md", "detail/港口.md"]), text=PLAIN),
    st.builds(MessageAdded, wire=WIRES),
    st.builds(EntitiesSeen, sightings=st.lists(any_entity_sightings(), max_size=2).map(tuple)).filter(
        lambda seen: NUL not in encode_payload(seen)
    ),
    st.builds(
        DreamCommitted,
        dream=st.integers(1, 9),
        proposer=TEXTS,
        last_seq=st.integers(0, 9),
        journal_position=st.integers(0, 9),
    ),
    st.builds(DreamAnswered, dream=st.integers(1, 9), lease_until=TIMES.map(datetime.isoformat), text=TEXTS),
    st.builds(
        DreamProposed,
        dream=st.integers(1, 9),
        lease_until=TIMES.map(datetime.isoformat),
        edits=st.lists(st.lists(TEXTS)).map(tuple),
        tokens=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    ),
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    origin = draw(st.sampled_from(Origin))
    return Event(
        stream=f"session/{draw(TEXTS)}",
        seq=draw(st.integers(1, 2**40)),
        at=draw(TIMES),
        payload=draw(PAYLOADS),
        origin=origin,
        trust=Trust(draw(st.integers(0, TRUST_BY_ORIGIN[origin]))),
        sources=tuple(draw(st.lists(PLAIN, max_size=2))),
        starts_batch=draw(st.booleans()),
    )


@given(event=events(), position=st.integers(1, 2**40))
def test_an_event_survives_encoding_and_decoding(event: Event, position: int) -> None:
    line = encode_event_line(position, event).encode()
    assert b"\n" not in line
    assert decode_event_line(line) == (position, event)


@pytest.mark.spec("N67")
@each_row("kind", KINDS)
def test_every_kind_of_event_is_type_checked_at_every_level(kind: str) -> None:
    """No field is skipped because its declared type is unknown."""
    with pytest.raises(ValueError, match=f"^ has type NoneType, not {KINDS[kind].__name__}$"):
        decode(KINDS[kind], None, strict=True)


@given(key=TEXTS, request=TEXTS, first=st.integers(1, 99), length=st.integers(0, 9), at=TIMES)
def test_a_key_survives_encoding_and_decoding(key: str, request: str, first: int, length: int, at: datetime) -> None:
    receipt = Receipt("session/s", Key(key, request), AppendResult(first=first, last=first - 1 + length, at=at))
    assert decode_receipt_line(encode_receipt_line(receipt).encode()) == receipt


@given(data=st.binary(max_size=60) | json_values().map(lambda value: str(value).encode("utf-8", "replace")))
@example(b"[" * 100_000)
@example(b'{"position":' + b"9" * 5_000)
def test_an_invalid_line_raises_value_error_and_nothing_else(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- the message depends on the fault
        decode_event_line(data)


# -- homes with a common past -----------------------------------------------------------------------------------

Written = Sequence[tuple[str, int]]
"""Streams, and the number of events that each append adds."""

WRITTEN = st.lists(st.tuples(st.sampled_from(["session/a", "session/b", "resource/r"]), st.integers(1, 3)), max_size=8)


def write(store: Store, written: Written, *, word: str = "") -> None:
    for number, (stream, length) in enumerate(written):
        version = store.version(stream)
        drafts = [
            Draft(payload=DocumentWritten("overview.md", f"{word}{number}.{n}"), origin=Origin.USER)
            for n in range(length)
        ]
        if version == 0 and stream.startswith("session/"):
            drafts[0] = Draft(payload=SessionOpened(resource="r", cwd=f"/{word}"), origin=Origin.OPERATOR)
        if stream.startswith("resource/"):
            dream = DreamCommitted(
                dream=version + 1, proposer=f"{word}rules", last_seq=version, journal_position=store.last_position()
            )
            drafts[-1] = Draft(payload=dream, origin=Origin.DREAM)
        key = Key(f"{word}{number}", "r") if number % 2 else None
        store.append(Batch(stream, drafts, version), at=WHEN + timedelta(seconds=number), key=key)


def export_store(store: Store, folder: Path, name: str) -> Path:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    write_bundle(
        FolderBackend(home, store), folder / name, resource="", now=WHEN, overwrite=False, watch=ignore_progress
    )
    return folder / name


def import_to(bundle: Path, store: Store) -> Imported:
    with open_bundle(bundle) as file:
        place = FolderBackend(bundle.parent / "home", store)
        return import_into(file, place, fold=store.read, only_new=False, now=WHEN, watch=ignore_progress)


def named(value: object, _: str) -> str:
    return str(value)


def ignore_progress(_done: int, _total: int) -> None: ...


def all_of(store: Store) -> list[tuple[int, Event | None]]:
    return list(store.events_since(0, kinds=list(KINDS), limit=10**9))


def keys_of(store: Store) -> list[Receipt]:
    return [receipt for stream in store.stream_names("") for receipt in store.receipts(stream, limit=10**9)]


FEWER_EXAMPLES = settings(max_examples=examples(25))
"""Each example writes files and waits for the disk."""


@FEWER_EXAMPLES
@given(before=WRITTEN, since=WRITTEN, newer_first=st.booleans())
def test_an_older_and_a_newer_bundle_can_be_imported_in_any_order(
    before: Written, since: Written, newer_first: bool
) -> None:
    """The result is the same as importing the newer one: events, keys and positions."""
    with TemporaryDirectory() as place:
        folder, source, target = Path(place), InMemoryStore(), InMemoryStore()
        write(source, before)
        older = export_store(source, folder, "older")
        write(source, since, word="since ")
        newer = export_store(source, folder, "newer")
        for bundle in (newer, older, newer) if newer_first else (older, newer, older):
            import_to(bundle, target)
        assert (all_of(target), keys_of(target)) == (all_of(source), keys_of(source))
        assert import_to(newer, target).events == 0


@FEWER_EXAMPLES
@given(before=WRITTEN, theirs=WRITTEN.filter(bool), ours=WRITTEN.filter(bool))
def test_two_homes_are_merged_unless_a_stream_has_diverged(before: Written, theirs: Written, ours: Written) -> None:
    with TemporaryDirectory() as place:
        folder, source, target = Path(place), InMemoryStore(), InMemoryStore()
        write(source, before)
        import_to(export_store(source, folder, "shared"), target)
        write(source, theirs, word="theirs ")
        write(target, ours, word="ours ")
        state, diverged = (
            (all_of(target), keys_of(target)),
            {stream for stream, _ in theirs} & {stream for stream, _ in ours},
        )
        has_new_dream = "resource/r" in {stream for stream, _ in theirs} and any(s != "resource/r" for s, _ in ours)
        bundle = export_store(source, folder, "theirs")
        if diverged or has_new_dream:
            with pytest.raises(Conflict):
                import_to(bundle, target)
            assert (all_of(target), keys_of(target)) == state
        else:
            import_to(bundle, target)
            for stream in source.stream_names(""):
                assert len(target.read(stream)) == max(len(source.read(stream)), len(target.read(stream)))
            assert all_of(target)[: len(state[0])] == state[0]


class BusyStore(InMemoryStore):
    """A store that gets new events whenever its last position is read."""

    def last_position(self, *, owner: str | None = None) -> int:
        last_before = super().last_position(owner=owner)
        write(self, [("session/a", 3)], word=f"behind {last_before} ")
        return last_before


@pytest.mark.parametrize("batch_size", [1, 2, 4, 1_000])
def test_events_stored_during_an_export_are_not_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_size: int
) -> None:
    """This includes their keys, and holds for any batch size."""
    monkeypatch.setattr(export_bundle, "BATCH_SIZE", batch_size)
    source, target = BusyStore(), InMemoryStore()
    write(source, [("session/a", 2), ("session/b", 1), ("session/a", 1)])
    before, keys = all_of(source), keys_of(source)
    import_to(export_store(source, tmp_path, "b"), target)
    assert (all_of(target), keys_of(target)) == (before, keys)
    assert len(all_of(source)) == len(before) + 3


# -- changed bundles -----------------------------------------------------------------------------------

ValuePath = tuple[str | int, ...]
"""The path to a value inside a payload."""

INVALID_VALUES: Sequence[Any] = (
    *(None, True, -1, 2**62, 10**30, 1e308, float("nan"), "", "\0", "x" * 10, "../../x"),
    *([], {}, [[]], ["x"], [None], [{}], {"a": None}),
)
CHANGED = settings(max_examples=examples(60))


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rich")
    fill_home_with_all_kinds(folder / "home")
    return export_home(folder / "home", folder / "rich.inmind")


def inside(value: Any) -> Iterable[tuple[str | int, Any]]:
    if type(value) is dict:
        return cast(dict[str, Any], value).items()
    return enumerate(cast(list[Any], value)) if type(value) is list else ()


def value_paths(value: Any, path: ValuePath = ()) -> Iterator[ValuePath]:
    for step, one in inside(value):
        yield (*path, step)
        yield from value_paths(one, (*path, step))


def set_value(value: Any, path: ValuePath, replacement: object) -> None:
    *between, last = path
    for step in between:
        value = value[step]
    value[last] = replacement


def change_one(lines: Lines, data: st.DataObject) -> None:
    """Change any value in any payload, or add one that has its default."""
    kind = data.draw(st.sampled_from(sorted({line["kind"] for line in lines})))
    line = data.draw(st.sampled_from([line for line in lines if line["kind"] == kind]))
    body = json.loads(line["body"])
    defaults = [(field.name,) for field in dataclasses.fields(KINDS[kind])]
    path = data.draw(st.sampled_from([*value_paths(body), *defaults]))
    set_value(body, path, data.draw(st.sampled_from(INVALID_VALUES)))
    line["body"] = json.dumps(body)


@pytest.mark.spec("N67")
@CHANGED
@given(data=st.data())
def test_a_changed_bundle_is_either_usable_after_the_import_or_refused(rich: Path, data: st.DataObject) -> None:
    """Searching, opening, preparing, dreaming and continuing raise no unexpected error."""
    with TemporaryDirectory() as place:
        bundle = change_events(rich, Path(place) / "b", lambda lines: change_one(lines, data))
        with Memory.open(Path(place) / "home", embedder=None) as memory:
            try:
                memory.import_bundle(bundle)
            except InvalidInput:
                assert memory.sessions() == []
                return
            assert {one.id for one in memory.sessions()} == {"rich", "shop"}
            memory.search("tabs page")
            for id in ("rich", "shop"):
                session = memory.session(id)
                session.export_entities()
                for call in range(1, session.state.prompt.calls + 1):
                    session.explain(call)
                session.add([{"role": "user", "content": "hi"}])
                assert session.prepare(format="openai").messages[-1]["role"] == "user"
            memory.resource("ada").economics.report()
            assert memory.resource("ada").affect.mood
            memory.dream("ada")
            memory.export(Path(place) / "again")
