"""Actors that export and import homes while other processes write, and are killed meanwhile."""

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
from inmind.apps.cli.export_import import import_
from inmind.core.paths import DATABASE

BUNDLE = "in.inmind"
KEPT = ("resources/ada/MEMORY.md.damaged-1", "sessions/--w--/old.jsonl")
"""Files that come with it; of which one is a session as soon as it is there."""


def begin(voice: ActorChannel, *, folder: str) -> None:
    """Create a bundle, and a home that contains part of it and some other events."""
    place, source = Path(folder), Path(f"{folder}-source")
    fill_home(source)
    with Memory.open(source, embedder=None) as memory:
        memory.export(place / "older.inmind")
    fill_home(source, session="later", dreams=False)
    for name in KEPT:
        (source / name).write_bytes(b"somebody's only copy")
    with Memory.open(source, embedder=None) as memory:
        memory.export(place / BUNDLE)
    fill_home(place / "used", session="mine", resource="ben", dreams=False)
    with Memory.open(place / "used", embedder=None) as memory:
        memory.import_bundle(place / "older.inmind")
    voice.tell("begun")


def bring_in(voice: ActorChannel, *, folder: str) -> None:
    with Memory.open(Path(folder) / "used", embedder=None) as memory:
        memory.import_bundle(Path(folder) / BUNDLE)
        voice.tell("done")


def bring_in_new(voice: ActorChannel, *, folder: str) -> None:
    """Import with the command line, which creates the home."""
    select_place(Path(folder) / "new")
    import_(str(Path(folder) / BUNDLE))
    voice.tell("done")


def carry_out(voice: ActorChannel, *, folder: str) -> None:
    with Memory.open(Path(folder) / "used", embedder=None) as memory:
        memory.export(Path(folder) / "out.inmind")
        voice.tell("done")


def look(_: ActorChannel, *, folder: str) -> dict[str, Any]:
    """The content of each existing home."""
    found: dict[str, Any] = {}
    for home in (Path(folder) / "used", Path(folder) / "new"):
        if home.exists():
            assert (home / DATABASE).exists()
            sound(home)
            events = [repr(event) for event in read_events(home)]
            kept = [name for name in KEPT if (home / name).exists()]
            found[home.name] = [events, [repr(key) for key in read_keys(home)], kept]
    out = Path(folder) / "out.inmind"
    if out.exists():
        with Memory.open(Path(folder) / "copy", embedder=None) as memory:
            memory.import_bundle(out)
        found["out"] = [repr(event) for event in read_events(Path(folder) / "copy")]
    return found


def write_on(voice: ActorChannel, *, home: str, name: str) -> None:
    """Write forever, in batches with keys, also to the shared resource; report each write."""
    session = Memory.open(home, embedder=None).session(name, resource="ada", cwd="/w")
    for number in itertools.count():
        session.add([{"role": "user", "content": f"{name} {number} {part}"} for part in range(3)], key=f"add {number}")
        session.note(f"Boat {number} of {name} is ready", key=f"{name} {number}")
        session.write("detail/log.md", f"- {number}\n" * 20)
        voice.tell("wrote", number)


def export_often(voice: ActorChannel, *, home: str, to: str, times: int) -> None:
    """Export repeatedly, in batches that end anywhere, also inside of batches of others."""
    inmind.memory.bundle.export_bundle.BATCH_SIZE = 7
    with Memory.open(home, embedder=None) as memory:
        for number in range(times):
            memory.export(Path(to) / str(number))
            voice.tell("exported", number)
