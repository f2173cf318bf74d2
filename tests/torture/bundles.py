"""Actors that export and import homes under concurrent writes and kills."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from bundle_builders import fill_home, read_events, read_keys
from torture.harness import ActorChannel
from torture.session_steps import sound

import inmind.memory.bundle.export_bundle
from inmind import Memory
from inmind.apps.cli.console import select_place
from inmind.apps.cli.home_commands import import_
from inmind.core.paths import DATABASE

BUNDLE = "in.inmind"
EXTRA_FILES = ("resources/ada/MEMORY.md.damaged-1", "sessions/--w--/old.jsonl")
"""Files of the home that the bundle contains. The second is a session."""


def begin(channel: ActorChannel, *, folder: str) -> None:
    """Create a bundle, and a home that contains part of it and some other events."""
    target, source = Path(folder), Path(f"{folder}-source")
    fill_home(source)
    with Memory.open(source, embedder=None) as memory:
        memory.export(target / "older.inmind")
    fill_home(source, session="later", dreams=False)
    for name in EXTRA_FILES:
        (source / name).write_bytes(b"the only copy")
    with Memory.open(source, embedder=None) as memory:
        memory.export(target / BUNDLE)
    fill_home(target / "used", session="mine", resource="ben", dreams=False)
    with Memory.open(target / "used", embedder=None) as memory:
        memory.import_bundle(target / "older.inmind")
    channel.report("begun")


def import_bundle(channel: ActorChannel, *, folder: str) -> None:
    with Memory.open(Path(folder) / "used", embedder=None) as memory:
        memory.import_bundle(Path(folder) / BUNDLE)
        channel.report("done")


def import_into_new(channel: ActorChannel, *, folder: str) -> None:
    """Import with the command line, which creates the home."""
    select_place(Path(folder) / "new")
    import_(str(Path(folder) / BUNDLE))
    channel.report("done")


def export(channel: ActorChannel, *, folder: str) -> None:
    with Memory.open(Path(folder) / "used", embedder=None) as memory:
        memory.export(Path(folder) / "out.inmind")
        channel.report("done")


def look(_: ActorChannel, *, folder: str) -> dict[str, Any]:
    """The content of each existing home."""
    contents: dict[str, Any] = {}
    for home in (Path(folder) / "used", Path(folder) / "new"):
        if home.exists():
            assert (home / DATABASE).exists()
            sound(home)
            events = [repr(event) for event in read_events(home)]
            files = [name for name in EXTRA_FILES if (home / name).exists()]
            contents[home.name] = [events, [repr(key) for key in read_keys(home)], files]
    out = Path(folder) / "out.inmind"
    if out.exists():
        with Memory.open(Path(folder) / "copy", embedder=None) as memory:
            memory.import_bundle(out)
        contents["out"] = [repr(event) for event in read_events(Path(folder) / "copy")]
    return contents


def write_forever(channel: ActorChannel, *, home: str, name: str) -> None:
    """Write forever, in batches with keys, also to the shared resource; report each write."""
    session = Memory.open(home, embedder=None).session(name, resource="ada", cwd="/w")
    for number in itertools.count():
        session.add([{"role": "user", "content": f"{name} {number} {part}"} for part in range(3)], key=f"add {number}")
        session.note(f"Boat {number} of {name} is ready", key=f"{name} {number}")
        session.write("detail/log.md", f"- {number}\n" * 20)
        channel.report("wrote", number)


def export_often(channel: ActorChannel, *, home: str, to: str, times: int) -> None:
    """Export repeatedly, in batches that may end inside of batches of other processes."""
    inmind.memory.bundle.export_bundle.BATCH_SIZE = 7
    with Memory.open(home, embedder=None) as memory:
        for number in range(times):
            memory.export(Path(to) / str(number))
            channel.report("exported", number)
