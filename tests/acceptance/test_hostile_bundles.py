"""Malicious bundles are refused before anything is written, and the error names the entry.

Fault N67. The target is a home with data, and each refused import must leave its events and files unchanged.
"""

from __future__ import annotations

import json
import os
import stat
import struct
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from bundle_builders import (
    JOURNAL,
    KEYS,
    MANIFEST,
    Lines,
    change_events,
    export_home,
    fill_home,
    read_entries,
    read_events,
    write_bundle_file,
)

from inmind import Memory
from inmind.errors import InvalidInput, NotFound
from inmind.memory.bundle import reader

pytestmark = pytest.mark.spec("N67")

BundleChange = Callable[[Path, Path], object]
"""Writes a changed copy of a valid bundle."""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    fill_home(folder / "home")
    (folder / "home" / "sessions" / "--w--" / "old.jsonl").write_text('{"role": "user", "content": "hi"}\n', "utf-8")
    return export_home(folder / "home", folder / "good.inmind")


class Target:
    """A home with data, and a check that nothing was added to it."""

    def __init__(self, home: Path) -> None:
        fill_home(home, session="mine", resource="ben", dreams=False)
        self.home = home
        self.memory = Memory.open(home, embedder=None)
        self.before = self._contents()

    def import_error(self, bundle: Path) -> str:
        with pytest.raises(InvalidInput) as error:
            self.memory.import_bundle(bundle)
        assert self._contents() == self.before
        assert error.value.field.startswith("bundle")
        return str(error.value)

    def _contents(self) -> object:
        files = {path: path.read_bytes() for path in self.home.rglob("*") if path.is_file() and ".db" not in path.name}
        return read_events(self.home), {path: data for path, data in files.items() if path.name != ".lock"}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Generator[Target]:
    target = Target(tmp_path_factory.mktemp("target") / "home")
    yield target
    target.memory.close()


# -- the zip file -----------------------------------------------------------------------------------------


def with_entry(name: str, data: bytes = b"{}\n", *, mode: int = stat.S_IFREG | 0o600) -> BundleChange:
    """A valid bundle with one more entry, which its manifest lists."""

    def make(good: Path, to: Path) -> None:
        write_bundle_file(to, {**read_entries(good), name: data})
        with zipfile.ZipFile(to) as zip:
            entries = [(entry, zip.read(entry)) for entry in zip.infolist()]
        with zipfile.ZipFile(to, "w") as zip:
            for entry, content in entries:
                entry.external_attr = (mode if entry.filename == name else 0o600) << 16
                zip.writestr(entry, content)

    return make


def duplicate_entry(good: Path, to: Path) -> None:
    to.write_bytes(good.read_bytes())
    with warnings.catch_warnings(), zipfile.ZipFile(to, "a") as zip:
        warnings.simplefilter("ignore")
        zip.writestr(JOURNAL, b"")


def names_differing_in_case(good: Path, to: Path) -> None:
    write_bundle_file(to, {**read_entries(good), "kept/sessions/--w--/OLD.jsonl": b"{}\n"})


def names_differing_in_normalization(good: Path, to: Path) -> None:
    """Two names that differ only in Unicode normalization."""
    names = ("kept/sessions/--w--/caf\u00e9.jsonl", "kept/sessions/--w--/cafe\u0301.jsonl")
    write_bundle_file(to, {**read_entries(good), **dict.fromkeys(names, b"{}\n")})


def with_patched_headers(name: str, at: int, central: int, form: str, change: Callable[[int], int]) -> BundleChange:
    """A number changed in both headers of an entry."""

    def make(good: Path, to: Path) -> None:
        write_bundle_file(to, read_entries(good))
        data = bytearray(to.read_bytes())
        for mark, offset, back in ((b"PK\x03\x04", at, 30), (b"PK\x01\x02", central, 46)):
            place = data.index(name.encode(), data.index(mark)) - back
            while bytes(data[place : place + 4]) != mark:
                place = data.index(name.encode(), place + back + 1) - back
            (number,) = struct.unpack_from(form, data, place + offset)
            struct.pack_into(form, data, place + offset, change(number))
        to.write_bytes(data)

    return make


def with_compression(method: int) -> BundleChange:
    return lambda good, to: write_bundle_file(to, read_entries(good), compression=method)


def zip_bomb(name: str) -> BundleChange:
    return lambda good, to: write_bundle_file(
        to, {**read_entries(good), name: b" " * 60_000_000}, honest=name != MANIFEST
    )


def a_million_entries(_: Path, to: Path) -> None:
    local = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 0, 0, 0, 0, 1, 0) + b"a"
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", 20, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(entry) * 10**6, len(local), 0)
    to.write_bytes(local + entry * 10**6 + end)


def without_entry(name: str) -> BundleChange:
    return lambda good, to: write_bundle_file(
        to, {n: d for n, d in read_entries(good).items() if n != name}, honest=False
    )


def with_comment(good: Path, to: Path) -> None:
    write_bundle_file(to, read_entries(good))
    with zipfile.ZipFile(to, "a") as zip:
        zip.comment = b"a comment can hide another end"


def truncated(share: float) -> BundleChange:
    return lambda good, to: to.write_bytes(good.read_bytes()[: int(good.stat().st_size * share)])


def manifest_with(**members: object) -> BundleChange:
    """A bundle with a changed manifest."""

    def make(good: Path, to: Path) -> None:
        entries = read_entries(good)
        manifest = {**json.loads(entries[MANIFEST]), **members}
        write_bundle_file(to, {**entries, MANIFEST: json.dumps(manifest).encode()}, honest=False)

    return make


def with_raw_entry(name: str, data: bytes) -> BundleChange:
    return lambda good, to: write_bundle_file(to, {**read_entries(good), name: data}, honest=name != MANIFEST)


ZIPS: dict[str, tuple[BundleChange, str]] = {
    "a path that leads out": (with_entry("kept/../../evil.jsonl"), "bundle kept/../../evil.jsonl"),
    "a path that leads out from the top": (with_entry("../evil"), "bundle ../evil"),
    "an absolute path": (with_entry("/tmp/evil"), "bundle /tmp/evil"),
    "a path of another system": (with_entry("kept/sessions\\--w--\\evil.jsonl"), "an unknown entry"),
    "a path to the database": (with_entry("kept/inmind.db"), "bundle kept/inmind.db"),
    "a path to a live file": (with_entry("kept/resources/ada/MEMORY.md"), "bundle kept/resources"),
    "a hidden file": (with_entry("kept/sessions/--w--/.lock.jsonl"), "an unknown entry"),
    "a folder": (with_entry("kept/sessions/"), "bundle kept/sessions/"),
    "a link": (with_entry("kept/sessions/--w--/a.jsonl", b"/etc/passwd", mode=stat.S_IFLNK | 0o777), "a regular file"),
    "a device": (with_entry("kept/sessions/--w--/a.jsonl", mode=stat.S_IFCHR | 0o600), "a regular file"),
    "an entry twice": (duplicate_entry, "a second entry"),
    "two that differ in case": (names_differing_in_case, "a second entry"),
    "two that differ in normalization": (names_differing_in_normalization, "a second entry"),
    "an unknown entry": (with_entry("readme.txt"), "bundle readme.txt"),
    "a bundle in the bundle": (with_entry("inner.inmind", b"PK\x05\x06" + bytes(18)), "bundle inner.inmind"),
    "a name with a bell": (with_entry("kept/sessions/--w--/a\x07.jsonl"), "a printable name"),
    "a size that is too small": (with_patched_headers(JOURNAL, 22, 24, "<L", lambda size: size - 500), JOURNAL),
    "a size that is too large": (with_patched_headers(JOURNAL, 22, 24, "<L", lambda size: size + 500), JOURNAL),
    "a length that is too small": (with_patched_headers(JOURNAL, 18, 20, "<L", lambda size: size - 50), JOURNAL),
    "an encrypted entry": (with_patched_headers(JOURNAL, 6, 8, "<H", lambda flags: flags | 1), "an encrypted entry"),
    "another compression": (with_compression(zipfile.ZIP_LZMA), "deflated"),
    "a bomb": (zip_bomb(JOURNAL), "decompressed bytes in a file of"),
    "a bomb in a kept file": (zip_bomb("kept/resources/ada/MEMORY.md.damaged-1"), "decompressed bytes in a file of"),
    "a bomb in the manifest": (zip_bomb(MANIFEST), "bundle"),
    "a million entries": (a_million_entries, "a central directory of"),
    "no manifest": (without_entry(MANIFEST), MANIFEST),
    "no journal": (without_entry(JOURNAL), JOURNAL),
    "no keys": (without_entry(KEYS), KEYS),
    "a comment": (with_comment, "a file that is no zip archive"),
    "an empty file": (lambda _, to: to.write_bytes(b""), "a file that is no zip archive"),
    "a text": (lambda _, to: to.write_text("hello " * 100), "a file that is no zip archive"),
    "only an end record": (lambda _, to: to.write_bytes(b"PK\x05\x06" + bytes(18)), MANIFEST),
    "a tenth of the file": (truncated(0.1), "a file that is no zip archive"),
    "nearly the whole file": (truncated(0.99), "a file that is no zip archive"),
    "a newer format": (manifest_with(format=2, by="9.9"), "upgrade inmind"),
    "a format that is no number": (manifest_with(format="1"), MANIFEST),
    "too many events": (manifest_with(events=10**6), MANIFEST),
    "fewer streams": (manifest_with(streams=1), MANIFEST),
    "negative numbers": (manifest_with(keys=-1), MANIFEST),
    "another member": (manifest_with(exec="rm -rf"), MANIFEST),
    "invalid entries": (manifest_with(entries=[1]), MANIFEST),
    "invalid hashes": (manifest_with(entries={JOURNAL: {"bytes": 1, "sha256": 5}, KEYS: {"bytes": 0}}), MANIFEST),
    "other hashes": (manifest_with(entries={n: {"bytes": 1, "sha256": ""} for n in (JOURNAL, KEYS)}), "bundle"),
    "a manifest of another encoding": (with_raw_entry(MANIFEST, b"\xff\xfe{}"), MANIFEST),
    "a deep manifest": (with_raw_entry(MANIFEST, b"[" * 10**6), MANIFEST),
    "a list for a manifest": (with_raw_entry(MANIFEST, b"[]"), MANIFEST),
}


@pytest.mark.parametrize("case", ZIPS)
def test_an_invalid_zip_file_is_refused(target: Target, good: Path, tmp_path: Path, case: str) -> None:
    make, message = ZIPS[case]
    make(good, tmp_path / "b")
    assert message in target.import_error(tmp_path / "b")


def test_the_valid_bundle_is_accepted(good: Path, tmp_path: Path) -> None:
    """Zipped by inmind or by another program; the other tests change only this bundle."""
    for number, bundle in enumerate((good, write_bundle_file(tmp_path / "again", read_entries(good)))):
        with Memory.open(tmp_path / str(number), embedder=None) as memory:
            assert memory.import_bundle(bundle).added == 2


def test_a_pipe_or_device_is_refused_without_waiting(target: Target, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        assert "not a plain file" in target.import_error(place)
    with pytest.raises(NotFound):
        target.memory.import_bundle(tmp_path / "nowhere")


# -- the lines ---------------------------------------------------------------------------------------------


def with_changed_lines(change: Callable[[Lines], object]) -> BundleChange:
    return lambda good, to: change_events(good, to, change)


def with_third_event(**members: object) -> BundleChange:
    """The third event with changed values."""
    return with_changed_lines(lambda all: all[2].update(members))


def third_event_of_kind(kind: str, **members: object) -> BundleChange:
    """The third event with another kind and a valid form."""
    return with_third_event(kind=kind, body=json.dumps(members))


def with_dream(**members: object) -> BundleChange:
    return third_event_of_kind("dreamt", dream=1, by="rules", upto=0, position=0, **members)


def with_gathered_dream(**members: object) -> BundleChange:
    body = {"dream": 1, "until": AT, "upto": 0, "position": 0, "at": AT, **members}
    return third_event_of_kind("dream_gathered", **body)


def with_session_opened_in(cwd: object, **members: object) -> BundleChange:
    return with_changed_lines(lambda all: all[0].update(body=json.dumps({"resource": "ada", "cwd": cwd, **members})))


def with_journal(data: bytes) -> BundleChange:
    return with_raw_entry(JOURNAL, data)


def with_last_event(**members: object) -> BundleChange:
    """One more event at the end of its stream."""

    def add(all: Lines) -> None:
        last = next(line for line in reversed(all) if line["stream"] == "session/shop")
        all.append({**last, "seq": last["seq"] + 1, "position": all[-1]["position"] + 1, **members})

    return with_changed_lines(add)


def with_key(**members: object) -> BundleChange:
    key: dict[str, Any] = {"stream": "session/shop", "key": "k", "request": "r", "first": 1, "last": 1, "at": AT}
    return lambda good, to: write_bundle_file(
        to, {**read_entries(good), KEYS: json.dumps({**key, **members}).encode() + b"\n"}
    )


AT = "2026-01-01T00:00:00+00:00"
LINES: dict[str, tuple[BundleChange, str]] = {
    "no JSON": (with_journal(b"hello\n"), "line 1"),
    "no object": (with_journal(b"[]\n"), "line 1"),
    "an empty line": (with_journal(b"\n"), "line 1"),
    "a missing line end": (with_journal(b"{}\n{}"), "bundle journal.jsonl"),
    "no UTF-8": (with_journal(b'{"a": "\xff"}\n'), "line 1"),
    "UTF-16": (with_journal('{"a": 1}\n'.encode("utf-16")), "bundle journal.jsonl"),
    "deep": (with_journal(b"[" * 200_000 + b"\n"), "line 1"),
    "deep inside": (with_third_event(body='{"a":' * 100_000), "line 3"),
    "a huge number": (with_journal(b'{"seq": ' + b"9" * 100_000 + b"}\n"), "line 1"),
    "another member": (with_third_event(more=1), "line 3"),
    "a missing member": (with_changed_lines(lambda all: all[2].pop("trust")), "line 3"),
    "a gap": (with_changed_lines(lambda all: all.pop(2)), "#4 after 2"),
    "an event twice": (
        with_changed_lines(lambda all: all.insert(2, {**all[1], "position": all[1]["position"]})),
        "line 3",
    ),
    "another order": (with_changed_lines(lambda all: all.insert(1, all.pop(2))), "line 2"),
    "number 0": (with_third_event(seq=0), "line 3"),
    "a number below 0": (with_third_event(seq=-1), "line 3"),
    "a number too large": (with_third_event(seq=2**63), "line 3"),
    "true for a number": (with_third_event(seq=True), "line 3"),
    "a position used before": (with_third_event(position=1), "line 3"),
    "an unknown kind": (with_third_event(kind="no_such_kind"), "upgrade inmind"),
    "a kind of Python's": (with_third_event(kind="__class__"), "line 3"),
    "a kind that is no text": (with_third_event(kind=["message"]), "line 3"),
    "a tag of another language": (with_third_event(body='{"!!python/object/apply:os.system": ["id"]}'), "line 3"),
    "a tag that is a keyword": (with_third_event(body='{"__class__": "os.system", "self": 1}'), "line 3"),
    "a body that is no object": (with_third_event(body="[1]"), "line 3"),
    "a body that is no text": (with_third_event(body={"a": 1}), "line 3"),
    "a field of another type": (third_event_of_kind("document", path=5, text="x"), "path has type int"),
    "a text that is a number": (third_event_of_kind("note", text=5), "text has type int"),
    "a message that is a text": (third_event_of_kind("message", wire="hi"), "wire has type str"),
    "invalid pairs": (third_event_of_kind("opened", resource="ada", cwd="/", handed=[1]), "line 3"),
    "an unpaired surrogate": (third_event_of_kind("note", text="\ud800"), "surrogates"),
    "an unpaired surrogate, unescaped": (with_journal(b'{"a": "\xed\xa0\x80"}\n'), "line 1"),
    "an unpaired surrogate in a name": (with_third_event(stream="session/\ud800"), "line 3"),
    "an unpaired surrogate in a source": (with_third_event(sources=["\udfff#1"]), "surrogates"),
    "a name with NUL": (with_third_event(stream="session/a\x00b"), "line 3"),
    "a name that leads up": (with_third_event(stream="session/.."), "line 3"),
    "an empty name": (with_third_event(stream="session/"), "line 3"),
    "a name that is too long": (with_third_event(stream="session/" + "a" * 300), "line 3"),
    "a stream without an owner": (with_third_event(stream="tables/a"), "neither a session's nor a resource's"),
    "an invalid resource name": (
        with_changed_lines(lambda all: all[0].update(body=json.dumps({"resource": "..", "cwd": "/"}))),
        "line 1",
    ),
    "an unknown origin": (with_third_event(origin="root"), "line 3"),
    "an unknown trust level": (with_third_event(trust=9), "line 3"),
    "too much trust for its origin": (with_last_event(origin="web", trust=3), "cannot have trust operator"),
    "a time without a zone": (with_third_event(at="2026-01-01T00:00:00"), "has no time zone"),
    "an invalid time": (with_third_event(at="yesterday"), "line 3"),
    "a time out of range": (with_third_event(at="0001-01-01T00:00:00+14:00"), "is not a timestamp"),
    "invalid sources": (with_third_event(sources=[1]), "line 3"),
    "a huge source number": (with_third_event(sources=["session/shop#" + "9" * 5_000]), "line 3"),
    "a message of an unknown role": (third_event_of_kind("message", wire={"role": "zzz", "content": ""}), "wire.role"),
    "a message without content": (
        third_event_of_kind("message", wire={"role": "user", "content": [None]}),
        "wire.content",
    ),
    "a message of an unknown format": (
        third_event_of_kind("message", wire={"role": "user", "content": ""}, format="zzz"),
        "format",
    ),
    "a message that is NaN": (
        third_event_of_kind("message", wire={"role": "user", "content": "", "n": float("nan")}),
        "wire.n",
    ),
    "an invalid system prompt": (third_event_of_kind("system", system=[None]), "system has type list"),
    "invalid tools": (third_event_of_kind("tools", tools=None, offered=5), "offered has type int"),
    "a page with an invalid path": (third_event_of_kind("document", path="\0", text=""), "line 3"),
    "a page that leads out": (third_event_of_kind("document", path="detail/../../x", text=""), "line 3"),
    "an empty amount": (third_event_of_kind("traded", what="earning", amount=""), "is not an amount"),
    "a huge amount": (third_event_of_kind("traded", what="earning", amount="1e999999999"), "is not an amount"),
    "a trade on an invalid day": (
        third_event_of_kind("traded", what="earning", amount="1", on="someday"),
        "is not a timestamp",
    ),
    "a name that is true": (
        third_event_of_kind("seen", things=[{"type": "a", "id": "b", "name": True}]),
        "things[0].name has type bool",
    ),
    "a part of a thing that is a number": (
        third_event_of_kind("left", things=[{"type": "a", "id": "b", "parts": [["c", 5]]}]),
        "things[0].parts[0].id has type int",
    ),
    "a huge importance": (third_event_of_kind("note", text="x", importance=1e308), "is out of range"),
    "importance above 1": (third_event_of_kind("note", text="x", importance=2), "between 0 and 1"),
    "a note of an unknown kind": (third_event_of_kind("note", text="x", about="zzz"), "'zzz' is not one of"),
    "a thing with NUL": (third_event_of_kind("seen", things=[{"type": "a", "id": "b\0"}]), "without NUL"),
    "a scratchpad with NUL": (third_event_of_kind("pad_written", pad="p", text="\0"), "without NUL"),
    "a line of an unknown section": (with_dream(lines=[["Nowhere", "x"]]), "'Nowhere' is not a valid Section"),
    "a gap without a time zone": (with_dream(gaps=[["x", "unanswered", "2026-01-01", AT]]), "has no time zone"),
    "a skill with an invalid time": (with_dream(skills=[["x", 1, 1, "never"]]), "line 3"),
    "an invalid note id": (with_dream(notes=["#" + "9" * 5_000]), "is not the id of a note"),
    "a dream without the end of its lease": (third_event_of_kind("dream_begun", trigger="asked", until=""), "line 3"),
    "a resumed dream without the end of its lease": (
        third_event_of_kind("dream_taken", dream=1, until="", holder="x"),
        "line 3",
    ),
    "a gathered dream without a time zone": (with_gathered_dream(at="2026-01-01T00:00:00"), "has no time zone"),
    "a gathered dream of a later position": (with_gathered_dream(position=10**6), "a dream has read a later position"),
    "a gathered dream of a later event": (with_gathered_dream(upto=3), "a dream has read a later event, 3"),
    "an answer without the end of the lease": (
        third_event_of_kind("dream_answered", dream=1, until="", text="x"),
        "line 3",
    ),
    "an answer without text": (
        third_event_of_kind("dream_answered", dream=1, until=AT, text=None),
        "text has type NoneType",
    ),
    "an invalid verdict": (
        third_event_of_kind("dream_checked", dream=1, until=AT, verdicts=[["share", "yes"]]),
        "verdicts[0]",
    ),
    "a folder with NUL": (with_session_opened_in("/a\x00b"), "line 1"),
    "a folder that is a number": (with_session_opened_in(5), "cwd has type int"),
    "an unknown language": (with_session_opened_in("/", language="tlh"), "'tlh' is not one of"),
    "a dream of a later position": (
        with_last_event(kind="dreamt", body=json.dumps({"dream": 1, "by": "", "upto": 0, "position": 10**6})),
        "a dream has read a later position",
    ),
    "an undo to a missing event": (
        with_last_event(kind="reverted", body=json.dumps({"to": 10**6})),
        "the events of a valid session or resource",
    ),
    "an undo to a negative number": (
        with_last_event(kind="reverted", body=json.dumps({"to": -5})),
        "the events of a valid session or resource",
    ),
    "invalid things": (
        with_last_event(kind="seen", body=json.dumps({"things": [{"type": 1, "id": {}}]})),
        "bundle",
    ),
    "an invalid stub": (
        with_last_event(
            kind="compacted", body=json.dumps({"target": "", "reason": "", "stubs": [{"of": [["a", "b"]], "wires": 5}]})
        ),
        "bundle",
    ),
    "a key of a missing event": (with_key(first=900, last=900), KEYS),
    "a key of an invalid stream": (with_key(stream="x"), KEYS),
    "a key backwards": (with_key(first=9, last=2), KEYS),
    "a key with an unpaired surrogate": (with_key(key="\ud800"), KEYS),
    "a key of another type": (with_key(last="1"), KEYS),
}


@pytest.mark.parametrize("case", LINES)
def test_an_invalid_event_is_refused(target: Target, good: Path, tmp_path: Path, case: str) -> None:
    make, message = LINES[case]
    make(good, tmp_path / "b")
    assert message in target.import_error(tmp_path / "b")


def test_an_unexpected_decoding_error_refuses_the_bundle(
    target: Target, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        int("9" * 5_000)

    monkeypatch.setattr("inmind.memory.bundle.import_bundle._EventImporter.check_dreams", fail)
    assert "events that can be imported" in target.import_error(good)


def test_a_line_that_is_too_long_is_refused_before_its_end(
    target: Target, good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 1_000_000)
    write_bundle_file(tmp_path / "b", {**read_entries(good), JOURNAL: b'{"a": "' + os.urandom(900_000).hex().encode()})
    assert "a line of more than 1,000,000 bytes" in target.import_error(tmp_path / "b")


def test_every_truncated_bundle_is_refused(target: Target, good: Path, tmp_path: Path) -> None:
    data = good.read_bytes()
    for length in range(0, len(data), 97):
        (tmp_path / "b").write_bytes(data[:length])
        with pytest.raises(InvalidInput):
            target.memory.import_bundle(tmp_path / "b")


LIMITED_MEMORY_SCRIPT = """
import resource, sys
from pathlib import Path
from inmind import Memory
from inmind.errors import InvalidInput
limit = int(sys.argv[1])
with Memory.open(sys.argv[2], embedder=None) as memory:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for bundle in sys.argv[3:]:
        try:
            memory.import_bundle(bundle)
        except InvalidInput:
            print(Path(bundle).name)
"""


def test_zip_bombs_are_refused_in_bounded_memory(good: Path, tmp_path: Path) -> None:
    """Reading any of them by its headers would exceed the memory limit."""
    bombs = {
        "list": a_million_entries,
        "spaces": zip_bomb(JOURNAL),
        "kept": zip_bomb("kept/resources/ada/MEMORY.md.damaged-1"),
        "manifest": zip_bomb(MANIFEST),
    }
    for name, make in bombs.items():
        make(good, tmp_path / name)
    limit = 300 * 1_048_576
    command = [sys.executable, "-c", LIMITED_MEMORY_SCRIPT, str(limit), str(tmp_path / "home")]
    process = subprocess.run(
        [*command, *(str(tmp_path / name) for name in bombs)], capture_output=True, text=True, check=False
    )
    assert (process.stdout.split(), process.stderr) == (list(bombs), "")
