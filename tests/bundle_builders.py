"""Homes to export, their contents, and bundles that no export would write."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inmind import Memory
from inmind.core.events import KINDS
from inmind.core.events.base import Event
from inmind.core.paths import DATABASE
from inmind.store.protocol import Receipt
from inmind.store.sqlite.store import SqliteStore

JOURNAL, KEYS, MANIFEST = "journal.jsonl", "keys.jsonl", "manifest.json"

Lines = list[dict[str, Any]]


def fill_home(home: Path, *, session: str = "shop", resource: str = "ada", dreams: bool = True) -> None:
    """Some of everything: messages, a note, a dream, a key, a page."""
    with Memory.open(home, embedder=None) as memory:
        opened = memory.session(session, resource=resource, cwd="/w")
        opened.add([{"role": "user", "content": f"Where is the harbour of {session}?"}], key="asked")
        opened.note("Ada prefers tabs", key="noted")
        opened.write("detail/harbour.md", "# Harbour\n\nIt is in the north. 港口\n")
        if dreams:
            assert memory.dream(resource).status == "done"
        opened.add([{"role": "assistant", "content": "In the north."}, {"role": "user", "content": "And the boat?"}])


def fill_home_with_all_kinds(home: Path) -> None:
    """Events of most kinds."""
    fill_home(home)
    with Memory.open(home, embedder=None) as memory:
        session = memory.session("rich", resource="ada", cwd="/w", window=20_000)
        for turn in range(8):
            text = f"open page {turn}, never delete it. We decided on tabs."
            session.add([{"role": "user", "content": text}])
            session.prepare(system="X", format="openai")
            session.record({"role": "assistant", "content": f"opened {turn} " + "and so on " * 50})
            page = {"id": f"page-{turn}", "title": f"About {turn}"}
            session.observe("get_page", {"id": f"page-{turn}"}, {"page": page})
        session.scratchpad.update("hello")
        session.event("decision_made", "use tabs")
        session.compact("all", keep_recent=1)
        session.search("tabs")
        memory.resource("ada").economics.record("earning", amount="3", skill="tides", buyer="ben")
        memory.resource("ada").affect.spike("reward", "well done")
        session.note("Ada sails on Sundays")
        memory.dream("ada")
        memory.resource("ada").undo_dream()
        session.undo()


def read_events(home: Path) -> list[Event]:
    """All events in the order in which they were stored."""
    store = SqliteStore(home / DATABASE)
    try:
        return [event for _, event in store.events_since(0, kinds=list(KINDS), limit=10**9) if event]
    finally:
        store.close()


def events_by_stream(home: Path) -> dict[str, list[Event]]:
    streams: dict[str, list[Event]] = {}
    for event in read_events(home):
        streams.setdefault(event.stream, []).append(event)
    return streams


def read_keys(home: Path) -> list[Receipt]:
    store = SqliteStore(home / DATABASE)
    try:
        return [receipt for stream in store.stream_names("") for receipt in store.receipts(stream, limit=10**9)]
    finally:
        store.close()


def export_home(home: Path, to: Path, **options: Any) -> Path:
    with Memory.open(home, embedder=None) as memory:
        memory.export(to, **options)
    return to


def import_into_home(bundle: Path, home: Path, **options: Any) -> Any:
    with Memory.open(home, embedder=None) as memory:
        return memory.import_bundle(bundle, **options)


def read_entries(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as zip:
        return {name: zip.read(name) for name in zip.namelist()}


def write_bundle_file(
    to: Path, entries: Mapping[str, bytes], *, honest: bool = True, compression: int = zipfile.ZIP_DEFLATED
) -> Path:
    """A bundle with these entries. `honest`: with a manifest that matches them."""
    contents = dict(entries)
    if honest:
        manifest = json.loads(contents.pop(MANIFEST))
        hashes = {n: {"bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for n, d in contents.items()}
        manifest |= {"entries": hashes, "events": len(contents[JOURNAL].splitlines())}
        contents[MANIFEST] = json.dumps(manifest).encode()
    with zipfile.ZipFile(to, "w", compression=compression) as zip:
        for name, data in contents.items():
            zip.writestr(name, data)
    return to


def change_events(bundle: Path, to: Path, change: Callable[[Lines], object]) -> Path:
    """A copy of the bundle with changed events and a matching manifest."""
    entries = read_entries(bundle)
    lines: Lines = [json.loads(line) for line in entries[JOURNAL].splitlines()]
    change(lines)
    return write_bundle_file(to, {**entries, JOURNAL: "".join(json.dumps(line) + "\n" for line in lines).encode()})
